//! Everyone gets what the solver says: within 1 % over a second and 0.1 % over ten, or one largest
//! frame of the node and one of each above it at each end of the window, whichever is more.
//!
//! Where ten seconds are more frames than a test can afford (10 Gbit/s carries 8 million), the
//! window ends after so many frames. Where weights and priorities are all there is, the frames
//! alone count in such a window; else 1 % as well.

use proptest::prelude::*;
use weir_units::{Rate, Span};

use crate::case::{Case, EVERYTHING, Parts, case, plan};
use crate::dice::Dice;
use crate::world::World;

/// Weights and priorities alone.
const PLAIN: Parts = Parts { guarantees: false, ceilings: false, priorities: true };

/// Ten windows of a second, or of as many frames as there are to spend, in a row.
fn in_windows(world: &mut World, frames: u64) -> Result<f64, TestCaseError> {
    let is_plain =
        world.spec.nodes.iter().all(|n| n.rate == Rate::ZERO && n.ceil >= world.spec.rate);
    let all = world.before();
    let mut worst = 0.0f64;
    for _ in 0..10 {
        let before = world.before();
        let is_second = world.run(world.now + Span::from_secs(1), frames / 10, |_, _| {});
        let part = if is_second || !is_plain { 0.01 } else { 0.0 };
        worst = worst.max(world.compare(&before, part)?);
    }
    let part = if world.seconds(&all) >= 10.0 { 0.001 } else { 0.01 };
    Ok(worst.max(world.compare(&all, part)?))
}

fn settle(world: &mut World, frames: u64) {
    let until = world.now + Span::from_secs(10);
    world.run(until, frames, |_, _| {});
}

fn small(case: &Case, frames: u64) -> Result<f64, TestCaseError> {
    let mut world = World::new(&case.clone().with_small_bursts());
    settle(&mut world, 2_000);
    in_windows(&mut world, frames)
}

/// A third of the leaves change their minds, three times.
fn switching(case: &Case, frames: u64) -> Result<f64, TestCaseError> {
    let mut world = World::new(&case.clone().with_small_bursts());
    let mut dice = Dice::new(case.seed);
    let mut worst = 0.0f64;
    for _ in 0..3 {
        settle(&mut world, 2_000 + 4 * case.nodes.len() as u64);
        worst = worst.max(in_windows(&mut world, frames)?);
        world.change_minds(&mut dice);
    }
    Ok(worst)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn small_trees(case in case(24, EVERYTHING)) {
        small(&case, 60_000)?;
    }

    #[test]
    fn small_trees_of_weights(case in case(24, PLAIN)) {
        small(&case, 60_000)?;
    }

    #[test]
    fn small_trees_whose_leaves_go_on_and_off(case in case(40, EVERYTHING)) {
        switching(&case, 20_000)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn large_trees(plan in plan(100..3_000)) {
        switching(&plan.case(), 60_000)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]
    #[test]
    fn ten_thousand_leaves(plan in plan(10_000..10_001)) {
        switching(&plan.case(), 100_000)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    /// All of ten seconds, and ceilings with their usual bursts, up to a million frames:
    /// `cargo test --profile sim -p weir-shape --test oracle -- --ignored`.
    #[test]
    #[ignore = "takes minutes"]
    fn ten_whole_seconds(plan in plan(10..10_000)) {
        let mut world = World::new(&plan.case());
        settle(&mut world, 1_000_000);
        in_windows(&mut world, 1_000_000)?;
    }
}
