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

/// What each of those that are promised something has, in parts of what it has by weight.
fn parts(promised: &[Promised], others: u32, lens: RangeInclusive<usize>) -> Vec<f64> {
    let nodes = nodes(promised, others);
    let weights: u64 = nodes.iter().map(|node| node.weight).sum();
    let leaves = 1..=u32::try_from(nodes.len()).expect("few");
    let mut world = World::with(spec(mbit(100), nodes), leaves, lens);
    world.runs(Span::from_secs(1));
    let before = world.sent.clone();
    world.runs(Span::from_secs(10));
    let bytes = |leaf: u32| {
        let frames = world.sent[leaf as usize] - before[leaf as usize];
        frames * world.len(leaf) as u64
    };
    let all: u64 = world.backlogged.iter().copied().map(bytes).sum();
    let part = |(one, leaf)| {
        let one: &Promised = one;
        (bytes(leaf) * weights) as f64 / (all * one.weight) as f64
    };
    promised.iter().zip(1..).map(part).collect()
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
