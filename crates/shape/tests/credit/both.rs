//! A guarantee and a weight do not add up: who is promised a little less than its part by weight
//! has that part and no more, in whatever order the priorities of its siblings put the frames.

use proptest::prelude::*;

use super::*;

/// A leaf that is promised something.
#[derive(Clone, Copy, Debug)]
struct Promised {
    weight: u64,
    priority: u8,
    /// In thousandths of its part by weight.
    rate: u64,
}

/// A hundred megabits a second for those that are promised something, and so many others of weight
/// 1 and of all priorities.
fn nodes(promised: &[Promised], others: u32) -> Vec<NodeSpec> {
    let weights = promised.iter().map(|one| one.weight).sum::<u64>() + u64::from(others);
    let promised = promised.iter().zip(1..).map(|(one, number)| NodeSpec {
        priority: Priority(one.priority),
        rate: Rate::from_bps(100_000 * one.weight * one.rate / weights),
        ..leaf(number, 0, one.weight)
    });
    let mut nodes: Vec<NodeSpec> = promised.collect();
    let first = u32::try_from(nodes.len()).expect("few") + 1;
    nodes.extend(
        (first..first + others).zip((0..4).cycle()).map(|(number, priority)| NodeSpec {
            priority: Priority(priority),
            ..leaf(number, 0, 1)
        }),
    );
    nodes
}

fn world(promised: &[Promised], others: u32, lens: RangeInclusive<usize>) -> World {
    let nodes = nodes(promised, others);
    let leaves = 1..=u32::try_from(nodes.len()).expect("few");
    World::with(spec(mbit(100), nodes), leaves, lens)
}

/// What each of those that are promised something has, in parts of what it has by weight.
fn parts(promised: &[Promised], others: u32, lens: RangeInclusive<usize>) -> Vec<f64> {
    let mut world = world(promised, others, lens);
    world.runs(Span::from_secs(1));
    let before = world.sent.clone();
    world.runs(Span::from_secs(10));
    (1..).zip(promised).map(|(leaf, _)| part(&world, &before, leaf)).collect()
}

/// What a leaf has had since `before`, in parts of what it has by weight.
fn part(world: &World, before: &[u64], leaf: u32) -> f64 {
    let bytes = |leaf: u32| {
        let frames = world.sent[leaf as usize] - before[leaf as usize];
        frames * world.len(leaf) as u64
    };
    let nodes = &world.spec.nodes;
    let all: u64 = nodes.iter().map(|node| bytes(node.number)).sum();
    let weights: u64 = nodes.iter().map(|node| node.weight).sum();
    let weight = nodes[leaf as usize - 1].weight;
    (bytes(leaf) * weights) as f64 / (all * weight) as f64
}

#[test]
fn one_of_a_great_weight_has_its_part() {
    let mut off = String::new();
    for (others, weight) in
        [(39, 13), (99, 33), (199, 66), (299, 100), (299, 300), (499, 100), (999, 100), (999, 300)]
    {
        for (priority, rate) in (0..4).flat_map(|p| [900, 980, 995].map(|rate| (p, rate))) {
            let one = Promised { weight, priority, rate };
            let part = parts(&[one], others, 1_514..=1_514)[0];
            if (part - 1.0).abs() > 0.005 {
                off += &format!("{one:?} beside {others}: {part:.3}\n");
            }
        }
    }
    assert!(off.is_empty(), "{off}");
}

#[test]
fn one_has_its_part_where_frames_are_large() {
    for priority in [0, 3] {
        let one = Promised { weight: 100, priority, rate: 980 };
        let part = parts(&[one], 299, 9_000..=9_000)[0];
        assert!((part - 1.0).abs() < 0.02, "{part:.3} with priority {priority}");
    }
}

#[test]
fn one_that_times_its_silences_has_no_more() {
    for (weight, others, rate, ms) in
        [(200, 399, 980, (75, 2)), (200, 399, 900, (75, 2)), (400, 799, 980, (150, 4))]
    {
        let one = Promised { weight, priority: 0, rate };
        let mut world = world(&[one], others, 1_514..=1_514);
        for _ in 0..10_000 / (ms.0 + ms.1) {
            world.runs(Span::from_ms(ms.0));
            world.backlogged.retain(|&leaf| leaf != 1);
            world.runs(Span::from_ms(ms.1));
            world.backlogged.push(1);
            (0..3).for_each(|_| world.push(1));
        }
        let part = part(&world, &vec![0; world.sent.len()], 1);
        assert!(part < 1.02, "{part:.3}: {one:?} beside {others}, {ms:?} ms");
    }
}

/// What it had by its clock it had with its weight of before.
#[test]
fn one_that_loses_its_guarantee_and_its_weight_waits_for_few_turns() {
    for (weight, others, rate) in [(100, 299, 1_050), (300, 999, 1_200), (1_000, 999, 1_200)] {
        // others keep theirs
        let least = Promised { weight: 1, priority: 0, rate: 500 };
        let promised = [Promised { weight, priority: 3, rate }, least];
        for rate in [Rate::ZERO, Rate::from_bps(8)] {
            let mut world = world(&promised, others, 1_514..=1_514);
            world.runs(Span::from_secs(2));
            world.edit(|spec| (spec.nodes[0].weight, spec.nodes[0].rate) = (1, rate));
            let (before, begun) = (world.sent[1], world.order.len());
            while world.sent[1] == before {
                world.steps(1);
            }
            let frames = world.order.len() - begun;
            let turn = others as usize + 2;
            assert!(frames <= 6 * turn, "{frames} frames of others, a turn is {turn}");
        }
    }
}

/// What they should have, in parts of what they have by weight while nobody is promised more: what
/// is promised where that is more, and of what those leave the others have their parts by weight.
fn due(promised: &[Promised], others: u32) -> Vec<f64> {
    let weight = |one: &Promised| one.weight as f64;
    let rate = |one: &Promised| one.rate as f64 / 1_000.0;
    let all = promised.iter().map(weight).sum::<f64>() + f64::from(others);
    let mut part = 1.0;
    // each pass can only lower it
    for _ in promised {
        let more = promised.iter().filter(|one| rate(one) > part);
        let (weights, taken) = more.fold((0.0, 0.0), |(weights, taken), one| {
            (weights + weight(one), taken + weight(one) * rate(one))
        });
        part = (all - taken) / (all - weights);
    }
    promised.iter().map(|one| rate(one).max(part)).collect()
}

fn promised() -> impl Strategy<Value = Promised> {
    (1_u64..100, 0_u8..4, 850_u64..1_200).prop_map(|(weight, priority, rate)| Promised {
        weight,
        priority,
        rate,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn several_have_their_parts(
        promised in prop::collection::vec(promised(), 1..4),
        others in 1_u32..400,
        least in prop::sample::select(vec![64_usize, 500, 1_514]),
    ) {
        let due = due(&promised, others);
        let weights = promised.iter().map(|one| one.weight).sum::<u64>() + u64::from(others);
        let rates: u64 = promised.iter().map(|one| one.rate * one.weight / weights).sum();
        prop_assume!(rates < 950);
        let parts = parts(&promised, others, least..=1_514);
        let is_near = parts.iter().zip(&due).all(|(part, due)| (part - due).abs() < 0.02);
        prop_assert!(is_near, "{parts:.3?}, not {due:.3?}");
    }
}
