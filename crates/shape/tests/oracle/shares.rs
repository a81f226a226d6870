//! Everyone gets what the solver says, to within what the order may cost (`World::slack`), or a
//! part of it: windows are as long as it takes to tell (`World::window`), since in shorter ones one
//! who gets nothing would pass.

use proptest::prelude::*;
use weir_units::{Bytes, Rate};

use crate::case::{Case, EVERYTHING, Parts, Plan, case, plan};
use crate::dice::Dice;
use crate::tally::{Place, on_random_cases};
use crate::world::{Seen, World};

/// Weights and priorities alone.
const PLAIN: Parts = Parts { guarantees: false, ceilings: false, priorities: true };

/// Frames of the leaf in the middle in a window.
const FRAMES: u64 = 200;
/// How many windows of a small tree are looked at, each by itself and all together.
const WINDOWS: u64 = 4;
/// Frames of each leaf, on the mean, that a large tree is given for its one window.
const MEAN_FRAMES: u64 = 300;

/// Frames of the line after which the guarantees of a node that promised a little more than it has
/// are late, and scaled.
const LATE: u64 = 20_000;

/// Frames that are lost at the start.
fn settle(world: &mut World, most: u64) {
    let late = world.spec.rate.time_for(Bytes::new(LATE * 1_538));
    let window = world.window(FRAMES / 4).max(late);
    world.run(world.now + window, most, |_, _| {});
}

/// What may be wrong beside the order: nothing where there are weights and priorities only.
fn part(world: &World) -> f64 {
    let is_plain =
        world.spec.nodes.iter().all(|n| n.rate == Rate::ZERO && n.ceil >= world.spec.rate);
    if is_plain { 0.0 } else { 0.01 }
}

/// All windows have at most so many frames together.
fn in_windows(world: &mut World, most: u64) -> Result<Seen, TestCaseError> {
    let (window, part) = (world.window(FRAMES), part(world));
    let all = world.before();
    let mut seen = Seen::default();
    for _ in 0..WINDOWS {
        let before = world.before();
        world.run(world.now + window, most / WINDOWS, |_, _| {});
        seen += world.compare(&before, part)?;
    }
    seen += world.compare(&all, part)?;
    Ok(seen)
}

fn steady(case: &Case, most: u64) -> Result<Seen, TestCaseError> {
    let mut world = World::new(&case.clone().with_small_bursts());
    settle(&mut world, most / 4);
    in_windows(&mut world, most)
}

/// A third of the leaves change their minds, three times.
fn switching(
    case: &Case,
    settles: u64,
    look: impl Fn(&mut World) -> Result<Seen, TestCaseError>,
) -> Result<Seen, TestCaseError> {
    let mut world = World::new(&case.clone().with_small_bursts());
    let mut dice = Dice::new(case.seed);
    let mut seen = Seen::default();
    for _ in 0..3 {
        settle(&mut world, settles);
        seen += look(&mut world)?;
        world.change_minds(&mut dice);
    }
    Ok(seen)
}

fn large(plan: Plan) -> Result<Seen, TestCaseError> {
    let leaves = plan.leaves as u64;
    switching(&plan.case(), 20 * leaves, |world| {
        let (window, before) = (world.window(FRAMES), world.before());
        world.run(world.now + window, MEAN_FRAMES * leaves, |_, _| {});
        world.compare(&before, part(world))
    })
}

macro_rules! place {
    ($test:ident) => {
        Place { file: file!(), test: stringify!($test) }
    };
}

#[test]
fn small_trees() {
    let cases = case(24, EVERYTHING);
    on_random_cases(place!(small_trees), 200, &cases, |case| steady(&case, 200_000));
}

#[test]
fn small_trees_of_weights() {
    let cases = case(24, PLAIN);
    on_random_cases(place!(small_trees_of_weights), 200, &cases, |case| steady(&case, 200_000));
}

#[test]
fn small_trees_whose_leaves_go_on_and_off() {
    let place = place!(small_trees_whose_leaves_go_on_and_off);
    on_random_cases(place, 200, &case(40, EVERYTHING), |case| {
        switching(&case, 25_000, |world| in_windows(world, 100_000))
    });
}

#[test]
fn large_trees() {
    let plans = plan(100..3_000);
    on_random_cases(place!(large_trees), 12, &plans, large);
}

/// Guarantees a little below what the weights give: what clocks take in advance must count, or
/// those who have one get more than their part.
#[test]
fn a_guarantee_and_a_weight_do_not_add_up() {
    let parts = Parts { guarantees: true, ceilings: true, priorities: true };
    for (seed, rate, leaves, depth) in [
        (12_412_708_998_532_162_771, 1_000_000_000, 2_127, 6),
        (10_919_772_660_305_057_479, 10_000_000_000, 10_000, 7),
    ] {
        large(Plan { seed, rate, leaves, depth, parts }).expect("nobody has too much");
    }
}

#[test]
fn ten_thousand_leaves() {
    let place = place!(ten_thousand_leaves);
    let plans = plan(10_000..10_001);
    on_random_cases(place, 2, &plans, large);
}
