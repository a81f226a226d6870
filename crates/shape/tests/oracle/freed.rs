//! What a leaf leaves is everyone else's with the next frame, and what it comes back for is its own
//! again: from that moment on, and at each frame, everyone has what the solver says to within a
//! frame of the leaf and one of each above it.

use proptest::prelude::*;
use weir_units::Instant;

use crate::case::{Case, Demand, Parts, Told, case, rate};
use crate::solver::solve;
use crate::world::World;

const WEIGHTS: Parts = Parts { guarantees: false, ceilings: false, priorities: false };

/// Looks at everyone with each of the next frames.
fn at_each_frame(world: &mut World, frames: u64) -> Result<(), TestCaseError> {
    let demand = |demand: &Demand| if *demand == Demand::All { f64::INFINITY } else { 0.0 };
    let wants: Vec<f64> = world.demands.iter().map(demand).collect();
    let ceilings = vec![f64::INFINITY; wants.len()];
    let want = solve(&world.spec, &wants, &ceilings);
    let slack = world.slack(&want);
    let before = world.before();
    let mut seen = Ok(());
    world.run(Instant::MAX, frames, |world, _| {
        for number in 1..want.len() {
            let (got, seconds) = (world.sent_since(&before, number), world.seconds(&before));
            let off = (got - want[number] * seconds).abs();
            if off > 2.0 * slack[number] + 1.0 && seen.is_ok() {
                let text = format!("node {number}: off by {off} of {} bits", slack[number]);
                seen = Err(TestCaseError::fail(text));
            }
        }
    });
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn at_once(mut case in case(24, WEIGHTS), which in any::<prop::sample::Index>()) {
        let case: Case = {
            case.nodes.iter_mut().for_each(|told| told.demand = Demand::All);
            case
        };
        let mut world = World::new(&case);
        let leaves: Vec<usize> =
            world.spec.nodes.iter().filter(|n| n.is_leaf).map(|n| n.number as usize).collect();
        let leaf = leaves[which.index(leaves.len())];
        prop_assume!(leaves.len() > 1);
        world.run(Instant::MAX, 500, |_, _| {});
        world.demand(leaf, Demand::Nothing);
        while world.waiting[leaf].0 > 0 {
            world.step();
        }
        at_each_frame(&mut world, 500)?;
        world.demand(leaf, Demand::All);
        at_each_frame(&mut world, 500)?;
    }

    /// Half of the weight is one leaf's: it has every other frame, however many begin with it.
    #[test]
    fn one_among_many_need_not_wait_for_all_of_them(many in 2usize..1_000, rate in rate()) {
        let mut nodes = vec![Told::default(); many + 1];
        nodes[0].weight = many as u64;
        let mut world = World::new(&Case { rate, nodes, seed: 0 });
        at_each_frame(&mut world, 300)?;
    }
}
