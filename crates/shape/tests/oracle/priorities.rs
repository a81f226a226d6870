//! A priority is about the order: small frames of a leaf that stays far below its share, and whose
//! ancestors do, go next: they wait for the frame on the line. One that offers half of its share
//! may be above it for a moment, and then waits for others.

use proptest::prelude::*;
use weir_units::Instant;

use crate::case::{Case, Demand, Told, rate};
use crate::dice::Dice;
use crate::world::World;

#[derive(Clone, Debug)]
struct Call {
    rate: u64,
    seed: u64,
    /// What it offers, in thousandths of its share.
    load: u64,
    /// Siblings at each level.
    siblings: Vec<u8>,
    size: u16,
}

fn call() -> impl Strategy<Value = Call> {
    (rate(), any::<u64>(), 20u64..500, prop::collection::vec(0u8..12, 1..8), 60u16..400)
        .prop_map(|(rate, seed, load, siblings, size)| Call { rate, seed, load, siblings, size })
}

/// The tree, and the leaf of the call. Its way has a third of the weight at each level. The bulk
/// of each level has other priorities; only on the first level does it send, below that the way
/// would use up its share.
fn tree(call: &Call) -> (Case, usize) {
    let mut dice = Dice::new(call.seed);
    let (mut nodes, mut parent, mut share) = (Vec::new(), 0, 1.0);
    for (level, &siblings) in call.siblings.iter().enumerate() {
        let weights: Vec<u64> = (0..siblings).map(|_| dice.magnitude(1, 1_000)).collect();
        let total = weights.iter().sum::<u64>().max(2);
        let weight = total / 2;
        nodes.push(Told { parent, weight, priority: 0, ..Told::default() });
        let way = nodes.len();
        let is_bulk = level == 0;
        for weight in weights {
            let demand = if is_bulk { Demand::All } else { Demand::Nothing };
            let priority = dice.within(1, 3) as u8;
            nodes.push(Told { parent, weight, priority, demand, ..Told::default() });
        }
        share *= weight as f64 / (weight + total) as f64;
        parent = way;
    }
    let part = (share * call.load as f64 * 1e3) as u32;
    nodes[parent - 1].demand = Demand::Part(part.max(1));
    nodes[parent - 1].sizes = (call.size, call.size);
    (Case { rate: call.rate, nodes, seed: call.seed }, parent)
}

/// The longest wait of a frame of the call, in full frames of the link.
fn longest_wait(call: &Call) -> f64 {
    let (case, leaf) = tree(call);
    let mut world = World::new(&case);
    let full = 1_518.0 * 8e9 / case.rate as f64;
    let mut longest = 0.0f64;
    world.run(Instant::MAX, 4_000, |world, sent| {
        if sent.leaf == leaf {
            longest = longest.max(world.now.since(sent.since).ns() as f64 / full);
        }
    });
    longest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_call_that_offers_little_waits_for_the_frame_on_the_line(mut call in call()) {
        call.load = 20;
        let waited = longest_wait(&call);
        prop_assert!(waited <= 1.001, "{waited} frames");
    }

    #[test]
    fn a_call_waits_for_no_more_than_a_frame_of_each_sibling(call in call()) {
        let waited = longest_wait(&call);
        prop_assert!(waited <= 1.001 + f64::from(call.siblings[0]), "{waited} frames");
    }
}
