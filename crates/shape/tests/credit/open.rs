//! What does not hold yet, and the README says so: each test fails, by the figure beside it. They
//! are run by `cargo test --package weir-shape --test credit -- --ignored`.

use super::*;

/// The most frames of others in a row between two of a leaf.
fn longest_silence(world: &World, leaf: u32) -> usize {
    world.order.split(|&sent| sent == leaf).map(<[u32]>::len).max().unwrap_or(0)
}

#[test]
#[ignore = "not held: 0.30 of the line where 0.45 is promised"]
fn a_guarantee_below_a_class_that_is_served_in_a_row_is_whole() {
    let inner = NodeSpec { rate: mbit(50), weight: 20, ..NodeSpec::new(1, 0, false) };
    let promised = NodeSpec { rate: mbit(45), ..leaf(2, 1, 1) };
    let mut nodes = vec![inner, promised, leaf(3, 1, 1)];
    let row =
        |number| NodeSpec { priority: 0, rate: Rate::from_bps(2_500_000), ..leaf(number, 0, 1) };
    nodes.extend((4..24).map(row));
    let mut world = World::new(spec(mbit(100), nodes), 2..24);
    world.steps(100_000);
    let share = world.share(2);
    assert!(share > 0.44, "{share:.3} of the line, 0.45 is promised");
}

#[test]
#[ignore = "not held: 638 frames of others in a row"]
fn two_edits_a_frame_apart_starve_nobody() {
    let mut nodes = vec![NodeSpec { priority: 3, ..leaf(1, 0, 10_000) }, leaf(2, 0, 10_000)];
    nodes.extend((3..9).map(|number| NodeSpec { priority: 0, ..leaf(number, 0, 20) }));
    let mut longest = 0;
    for phase in 0..30 {
        let mut world = World::new(spec(mbit(1), nodes.clone()), 1..9);
        world.steps(3_000 + 7 * phase);
        world.edit(|spec| spec.nodes[0].weight = 1);
        world.steps(1);
        world.edit(|spec| spec.nodes[1].weight = 10);
        world.order.clear();
        world.steps(4_000);
        longest = longest.max(longest_silence(&world, 2));
    }
    // its turn comes with every thirteenth or fourteenth frame
    assert!(longest <= 30, "{longest} frames of others in a row");
}

#[test]
#[ignore = "not held: silent for all 20 000 frames"]
fn an_edit_in_steps_starves_no_heavy_child() {
    let mut random = 1_u64;
    let mut draw = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        random >> 33
    };
    let mut longest = 0;
    for _ in 0..8 {
        let weights: Vec<u64> =
            (0..200).map(|_| [1, 1_000][usize::from(draw() & 1 == 1)]).collect();
        let of = |number: u32, weight| NodeSpec {
            priority: (number % 4) as u8,
            ..leaf(number, 0, weight)
        };
        let nodes = (1..).zip(&weights).map(|(number, &weight)| of(number, weight)).collect();
        let mut world = World::new(spec(mbit(100), nodes), 1..=200);
        world.steps(30_000);
        let mut next = weights;
        for at in (1..next.len()).rev() {
            next.swap(at, usize::try_from(draw()).expect("small") % (at + 1));
        }
        let heavy = (1..).zip(&next).filter(|(_, weight)| **weight > 1).map(|(number, _)| number);
        let heavy: Vec<u32> = heavy.collect();
        world.edit(|spec| spec.nodes.iter_mut().zip(&next).for_each(|(n, w)| n.weight = *w));
        world.order.clear();
        world.steps(20_000);
        longest = heavy.iter().map(|&leaf| longest_silence(&world, leaf)).fold(longest, usize::max);
    }
    // each of some hundred has its turn once a round
    assert!(longest <= 400, "{longest} frames of others in a row");
}
