//! No node, leaf or not, passes its ceiling by more than its burst and one frame in any window; nor
//! does the line pass its rate by more than a frame. And the line never stands still while anybody
//! may send.

use proptest::prelude::*;
use weir_units::Span;

use crate::case::{Case, EVERYTHING, case, plan};
use crate::dice::Dice;
use crate::watch::Watch;
use crate::world::World;

/// Leaves change their minds ten times on the way, and each ceiling has a burst of its own.
fn watched(mut case: Case, frames: u64) -> Result<u64, TestCaseError> {
    let mut dice = Dice::new(case.seed);
    for told in &mut case.nodes {
        told.burst = (!dice.one_in(3)).then(|| dice.magnitude(1, 60_000));
    }
    let mut world = World::new(&case);
    let mut watch = Watch::new(&world);
    for _ in 0..10 {
        let mut seen = Ok(());
        let until = world.now + Span::from_secs(2);
        world.run(until, frames / 10, |world, sent| {
            if seen.is_ok() {
                seen = watch.saw(world, sent);
            }
        });
        seen?;
        world.change_minds(&mut dice);
    }
    watch.nobody_was_above(&world)?;
    Ok(watch.gaps)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn small_trees(case in case(24, EVERYTHING)) {
        watched(case, 10_000)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn large_trees(plan in plan(100..2_000)) {
        watched(plan.case(), 40_000)?;
    }
}
