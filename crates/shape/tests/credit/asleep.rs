//! Whoever has slept for long counts as one that lacks nothing when it has something to send again.

use super::*;

#[test]
fn one_that_slept_while_time_went_half_around_has_its_turn() {
    let nodes = vec![leaf(1, 0, 1 << 20), leaf(2, 0, 1), leaf(3, 0, 1)];
    let mut world = World::new(spec(mbit(100), nodes), 1..4);
    world.steps(50);
    world.backlogged.retain(|&leaf| leaf != 1);
    // 280 MB, 22 s
    world.steps(280_000);
    world.backlogged.push(1);
    (0..2).for_each(|_| world.push(1));
    let before = world.sent[1];
    world.steps(2_000);
    let had = world.sent[1] - before;
    assert!(had > 1_900, "{had} of 2 000 frames");
}

#[test]
fn one_that_slept_for_long_and_moves_has_its_part() {
    let class = NodeSpec::new(3, 0, false);
    let nodes = vec![leaf(1, 0, 1_000), leaf(2, 0, 1), class, leaf(4, 3, 1)];
    for silent in [5_000, 6_000, 8_000] {
        let mut world = World::new(spec(mbit(100), nodes.clone()), [1, 2, 4]);
        world.steps(50);
        world.backlogged.retain(|&leaf| leaf != 1);
        world.steps(silent);
        world.edit(|spec| {
            let moved = spec.nodes.remove(0);
            spec.nodes.push(NodeSpec { parent: 3, ..moved });
        });
        world.backlogged.push(1);
        (0..2).for_each(|_| world.push(1));
        let before = world.sent[1];
        world.steps(2_000);
        let had = world.sent[1] - before;
        assert!(had > 900, "{had} of 1 000 frames after {silent}");
    }
}
