//! Runs a test on random cases, and adds up what its comparisons have shown: a test whose
//! comparisons would let one pass who gets nothing shows nothing, however many they are.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::world::Seen;

/// A test fails when a larger part of its comparisons is vacuous.
const MOST_VACUOUS: f64 = 0.1;

/// Where a test stands, so that the seed of a failure is stored beside it.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) file: &'static str,
    pub(crate) test: &'static str,
}

#[expect(clippy::print_stderr, reason = "a test tells how much it has shown")]
pub(crate) fn on_random_cases<S: Strategy>(
    place: Place,
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<Seen, TestCaseError>,
) {
    let config = ProptestConfig {
        test_name: Some(place.test),
        source_file: Some(place.file),
        ..ProptestConfig::with_cases(cases)
    };
    let all = Cell::new(Seen::default());
    let done = TestRunner::new(config).run(strategy, |case| {
        let mut seen = all.get();
        seen += test(case)?;
        all.set(seen);
        Ok(())
    });
    if let Err(why) = done {
        panic!("{why}");
    }
    let Seen { worst, compared, vacuous } = all.get();
    let part = vacuous as f64 / compared.max(1) as f64;
    eprintln!(
        "{}: {compared} comparisons, {:.1} % vacuous, worst error {worst:.2} of what it may be",
        place.test,
        100.0 * part
    );
    assert!(part <= MOST_VACUOUS, "{vacuous} of {compared} comparisons show nothing");
}
