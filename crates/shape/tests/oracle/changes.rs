//! No frame is lost when the tree becomes another one under load, and it is as exact as one that
//! was always so.

use proptest::prelude::*;
use weir_units::Span;

use crate::case::{Case, EVERYTHING, case};
use crate::world::World;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_tree_that_was_changed_is_as_good_as_a_new_one(
        cases in prop::collection::vec(case(24, EVERYTHING), 2..5),
        steps in 1usize..300,
    ) {
        let cases: Vec<_> = cases.into_iter().map(Case::with_small_bursts).collect();
        let mut world = World::new(&cases[0]);
        for case in &cases[1..] {
            (0..steps).for_each(|_| _ = world.step());
            world.change(case);
        }
        (0..steps).for_each(|_| _ = world.step());
        world.drain();
        world.run(world.now + Span::from_secs(10), 6_000, |_, _| {});
        let before = world.before();
        world.run(world.now + Span::from_secs(10), 6_000, |_, _| {});
        world.compare(&before, 0.01)?;
    }
}
