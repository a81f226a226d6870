//! Nobody waits for much longer than its turn, whatever was edited before; and what is promised is
//! whole, and no more than that, where a class is served in a row, or an edit takes it away and
//! another gives it back.

use proptest::prelude::*;

use super::*;

/// The most frames of others in a row between two of a leaf.
fn longest_silence(world: &World, leaf: u32) -> usize {
    world.order.split(|&sent| sent == leaf).map(<[u32]>::len).max().unwrap_or(0)
}

/// The part of the line of the first of two leaves of like weight, of which it is promised so much;
/// both are below a class of half of the line, which is served in a row, after its many siblings.
fn part_below_a_class_in_a_row(rate: u64) -> f64 {
    let inner = NodeSpec { rate: mbit(50), weight: 20, ..NodeSpec::new(1, 0, false) };
    let promised = NodeSpec { rate: mbit(rate), ..leaf(2, 1, 1) };
    let mut nodes = vec![inner, promised, leaf(3, 1, 1)];
    let row = |number| NodeSpec {
        priority: Priority(0),
        rate: Rate::from_bps(2_500_000),
        ..leaf(number, 0, 1)
    };
    nodes.extend((4..24).map(row));
    let mut world = World::new(spec(mbit(100), nodes), 2..24);
    world.steps(100_000);
    world.share(2)
}

#[test]
fn a_guarantee_below_a_class_that_is_served_in_a_row_is_whole() {
    for rate in [30, 40, 45, 49] {
        let share = 100.0 * part_below_a_class_in_a_row(rate);
        let promised = f64::from(u32::try_from(rate).expect("small"));
        assert!((share - promised).abs() < 0.3, "{share:.2} % of the line, not {promised}");
    }
}

#[test]
fn a_guarantee_below_a_class_in_long_rows_is_whole() {
    let parts = [200, 1_000].map(|siblings| {
        let inner = NodeSpec { weight: u64::from(siblings), ..NodeSpec::new(1, 0, false) };
        let promised = NodeSpec { rate: mbit(25), ..leaf(2, 1, 1) };
        let mut nodes = vec![inner, promised, leaf(3, 1, 100)];
        let row = |number| NodeSpec { priority: Priority(0), ..leaf(number, 0, 1) };
        nodes.extend((4..4 + siblings).map(row));
        let mut world = World::new(spec(mbit(100), nodes), 2..4 + siblings);
        world.steps(200_000);
        world.share(2) / 0.25
    });
    assert!(parts.iter().all(|&part| part > 0.98), "{parts:.2?} of the guarantee");
}

#[test]
fn a_guarantee_that_the_weight_keeps_gives_no_more_below_a_class_that_is_served_in_a_row() {
    for rate in [1, 5, 20, 24] {
        let share = 100.0 * part_below_a_class_in_a_row(rate);
        assert!((share - 25.0).abs() < 0.3, "{share:.2} % of the line where {rate} is promised");
    }
}

/// Its siblings may be late by the pauses of their parent, which take longer on a slower line.
#[test]
fn a_guarantee_that_wakes_does_not_wait_for_the_lateness_of_others() {
    let promised = |number, rate| NodeSpec { rate: mbit(rate), ..leaf(number, 2, 1) };
    let held = NodeSpec { ceil: mbit(5), ..NodeSpec::new(1, 0, false) };
    let mut nodes = vec![held, NodeSpec::new(2, 1, false)];
    nodes.extend([promised(3, 5), promised(4, 5), promised(5, 1), leaf(6, 2, 10), leaf(7, 0, 1)]);
    let mut world = World::new(spec(mbit(1_000), nodes), [3, 4, 6, 7]);
    while world.step(START + Span::from_secs(5)) {}
    world.tree.set_rate(world.now, mbit(1));
    while world.step(START + Span::from_secs(6)) {}
    world.backlogged.push(5);
    (0..2).for_each(|_| world.push(5));
    let woken = world.now;
    while world.sent[5] == 0 && world.step(woken + Span::from_secs(30)) {}
    let waited = world.now.since(woken);
    assert!(waited <= Span::from_secs(1), "{} ms", waited.ns() / 1_000_000);
}

/// For a moment, again and again, by a ceiling of its own.
#[test]
fn a_guarantee_that_is_held_below_a_class_in_a_row_is_whole() {
    let inner = NodeSpec { weight: 100, ..NodeSpec::new(1, 0, false) };
    let promised = NodeSpec { rate: mbit(20), ceil: mbit(60), ..leaf(2, 1, 1) };
    let mut nodes = vec![inner, promised, leaf(3, 1, 100)];
    nodes.extend((4..104).map(|number| NodeSpec { priority: Priority(0), ..leaf(number, 0, 1) }));
    let mut world = World::new(spec(mbit(100), nodes), 2..104);
    world.steps(100_000);
    let share = world.share(2);
    assert!(share > 0.195, "{share:.3} of the line, 0.2 is promised");
}

#[test]
fn two_edits_a_frame_apart_starve_nobody() {
    let mut nodes =
        vec![NodeSpec { priority: Priority(3), ..leaf(1, 0, 10_000) }, leaf(2, 0, 10_000)];
    nodes.extend((3..9).map(|number| NodeSpec { priority: Priority(0), ..leaf(number, 0, 20) }));
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
            priority: Priority((number % 4) as u8),
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

#[test]
fn a_guarantee_that_edits_take_away_and_give_back_is_no_more_than_that() {
    for (percent, frames) in [(1, 1), (3, 1), (3, 10), (1, 50)] {
        let mut nodes: Vec<NodeSpec> = (1..=10).map(|number| leaf(number, 0, 1_000)).collect();
        nodes[1].rate = mbit(5);
        nodes.push(NodeSpec { rate: mbit(percent), ..leaf(11, 0, 1) });
        let mut world = World::new(spec(mbit(100), nodes), 1..=11);
        for round in 0..20_000 / frames {
            world.steps(frames);
            world.edit(|spec| spec.nodes[10].rate = mbit([0, percent][round % 2]));
        }
        let share = 10_000.0 * world.share(11);
        let most = f64::from(u32::try_from(percent * 101).expect("small"));
        assert!(share <= most, "{share:.0} of 10 000 frames, an edit every {frames} frames");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// Of two that have most of the weight first one loses most of its own, and then the other, a
    /// few frames later.
    #[test]
    fn after_two_edits_everyone_has_its_turn(
        heavy in 100..20_000_u64,
        light in (1..10_u64, 1..100_u64),
        siblings in 2..12_u32,
        priorities in (0..4_u8, 0..4_u8, 0..4_u8),
        phase in 0..200_usize,
        frames in 0..8_usize,
    ) {
        let mut nodes = vec![
            NodeSpec { priority: Priority(priorities.0), ..leaf(1, 0, heavy) },
            NodeSpec { priority: Priority(priorities.1), ..leaf(2, 0, heavy) },
        ];
        let sibling = |number| NodeSpec { priority: Priority(priorities.2), ..leaf(number, 0, 20) };
        nodes.extend((3..3 + siblings).map(sibling));
        let count = 2 + siblings;
        let mut world = World::new(spec(mbit(10), nodes), 1..=count);
        world.steps(1_000 + phase);
        world.edit(|spec| spec.nodes[0].weight = light.0);
        world.steps(frames);
        world.edit(|spec| spec.nodes[1].weight = light.1);
        world.order.clear();
        world.steps(5_000);
        let all: u64 = world.spec.nodes.iter().map(|node| node.weight).sum();
        for node in &world.spec.nodes {
            // its own turn, as much that it had ahead, and frames of each other: two in all but two
            // of 100 000 cases
            let turn = usize::try_from(all / node.weight).expect("small");
            let most = 2 * turn + 3 * world.spec.nodes.len();
            let silence = longest_silence(&world, node.number);
            prop_assert!(silence <= most, "{}: {silence} frames, a turn is {turn}", node.number);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Edits in steps, one after the other, with some frames between the steps.
    #[test]
    fn edits_in_steps_starve_nobody(
        weights in prop::collection::vec(prop::collection::vec(0..3_usize, 80..81), 2..5),
        priorities in prop::collection::vec(0..4_u8, 80..81),
        phase in 0..200_usize,
        frames in (0..12_usize, 0..200_usize),
    ) {
        let weight = |at: usize| [1, 20, 1_000][at];
        let told = weights[0].iter().zip(&priorities).zip(1..);
        let nodes = told.map(|((at, priority), number)| NodeSpec {
            priority: Priority(*priority),
            ..leaf(number, 0, weight(*at))
        });
        let mut world = World::new(spec(mbit(10), nodes.collect()), 1..=80);
        world.steps(500 + phase);
        for next in &weights[1..] {
            world.edit_slowly(frames.0, |spec| {
                spec.nodes.iter_mut().zip(next).for_each(|(node, at)| node.weight = weight(*at));
            });
            world.steps(frames.1);
        }
        world.order.clear();
        world.steps(5_000);
        let all: u64 = world.spec.nodes.iter().map(|node| node.weight).sum();
        for node in world.spec.nodes.iter().filter(|node| node.weight > 1) {
            let turn = usize::try_from(all / node.weight).expect("small");
            let most = 3 * turn + 2 * world.spec.nodes.len();
            let silence = longest_silence(&world, node.number);
            prop_assert!(silence <= most, "{}: {silence} frames, a turn is {turn}", node.number);
        }
    }
}
