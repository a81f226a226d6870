//! How far a leaf that becomes backlogged is behind its guarantee g: by any time t after that
//! moment it has been served at least `g x (t - lag)`. It has had frames before, the last of them
//! perhaps ahead of its share, and its siblings do what they can against it.
//!
//! WF2Q+ has `L/g + sum of L/rate of each ancestor` for one that begins at its share. What the tree
//! keeps is that
//! - times 2.4, the link's term apart: the last frame may have been sent as soon as it could start,
//!   or a day of the calendar earlier, so that the next starts up to 1 + 1/16 of its time later. It
//!   should then be gone after its own time; a day, and the quarter of a frame to which it is known
//!   who should finish first, make that 1 + 1/16 + 1/4;
//! - times 3 where weights do not keep the guarantees: their clocks may be two frames ahead;
//! - and at each level one frame of each sibling of a higher priority, at the rate of the parent.

use proptest::prelude::*;
use weir_shape::tree::NodeSpec;
use weir_units::{Instant, Rate, Span};

use crate::case::{Case, Demand, Told};
use crate::dice::Dice;
use crate::world::World;

/// A chain from the link to the leaf, with siblings at each level.
#[derive(Clone, Debug)]
struct Way {
    rate: u64,
    seed: u64,
    levels: Vec<Level>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    /// Guarantee in millionths of the parent's.
    part: u64,
    weight: u64,
    priority: u8,
    siblings: u8,
}

/// How siblings compete.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rules {
    /// A weight is what it is by default: the guarantee.
    weight_is_rate: bool,
    priorities: bool,
}

fn way() -> impl Strategy<Value = Way> {
    let level = (50_000u64..700_000, 1u64..1_000, 0u8..4, 0u8..8)
        .prop_map(|(part, weight, priority, siblings)| Level { part, weight, priority, siblings });
    (crate::case::rate(), any::<u64>(), prop::collection::vec(level, 1..8))
        .prop_map(|(rate, seed, levels)| Way { rate, seed, levels })
}

impl Way {
    /// The tree, and the numbers of the way from the link's child to the leaf.
    fn case(&self, rules: Rules) -> (Case, Vec<usize>) {
        let mut dice = Dice::new(self.seed);
        let (mut nodes, mut way) = (Vec::new(), Vec::new());
        let mut parent = 0;
        for level in &self.levels {
            let told = |part: u64, weight, priority, demand| Told {
                parent,
                rate: part,
                weight: if rules.weight_is_rate { part.max(1) } else { weight },
                priority: if rules.priorities { priority } else { 2 },
                demand,
                ..Told::default()
            };
            nodes.push(told(level.part, level.weight, level.priority, Demand::Nothing));
            let number = nodes.len();
            let mut left = 999_000 - level.part;
            for _ in 0..level.siblings {
                let part = dice.within(1, left.max(2) - 1).min(left);
                left -= part;
                let weight = dice.magnitude(1, 1_000);
                let demand = if dice.one_in(3) { Demand::Nothing } else { Demand::All };
                let mut sibling = told(part, weight, dice.within(0, 3) as u8, demand);
                if dice.one_in(3) {
                    sibling.sizes = (60, dice.within(60, 1_514) as u16);
                }
                nodes.push(sibling);
            }
            way.push(number);
            parent = number;
        }
        (Case { rate: self.rate, nodes, seed: self.seed }, way)
    }
}

/// The worst lag that is seen, and what it may be, in seconds.
fn worst(way: &Way, rules: Rules, frames: u64) -> (f64, f64) {
    let (case, numbers) = way.case(rules);
    let mut world = World::new(&case);
    let mut dice = Dice::new(way.seed ^ 1);
    let leaf = numbers[numbers.len() - 1];
    let rate = |number: usize| match number {
        0 => case.rate as f64,
        _ => world.spec.nodes[number - 1].rate.bps() as f64,
    };
    let g = rate(leaf);
    let frame = 1_518.0 * 8.0;
    let times = if rules.weight_is_rate { 2.4 } else { 3.0 };
    let mut bound = frame / rate(0);
    for &number in &numbers {
        let node = &world.spec.nodes[number - 1];
        let is_higher = |n: &&NodeSpec| n.parent == node.parent && n.priority < node.priority;
        let higher = world.spec.nodes.iter().filter(is_higher).count() as f64;
        bound += times * frame / rate(number) + higher * frame / rate(node.parent as usize);
    }
    let mut worst = 0.0f64;
    for _ in 0..8 {
        let idle = Span::from_ns(dice.within(0, (40.0 * frame / case.rate as f64 * 1e9) as u64));
        others(&mut world, &mut dice, &numbers);
        world.run(world.now + idle, u64::MAX, |_, _| {});
        world.demand(leaf, Demand::All);
        let from = world.now;
        let mut served = 0.0;
        world.run(Instant::MAX, frames / 8, |world, sent| {
            if sent.leaf == leaf {
                let waited = world.now.since(from).ns() as f64 / 1e9;
                worst = worst.max(waited - served / g);
                served += (sent.bytes * 8) as f64;
            }
        });
        worst = worst.max(world.now.since(from).ns() as f64 / 1e9 - served / g);
        world.demand(leaf, Demand::Nothing);
        while world.waiting[leaf].0 > 0 {
            world.step();
        }
    }
    (worst, bound)
}

/// The siblings flood, fall silent, or come in bursts.
fn others(world: &mut World, dice: &mut Dice, way: &[usize]) {
    for number in 1..world.demands.len() {
        if !world.spec.nodes[number - 1].is_leaf || way.contains(&number) {
            continue;
        }
        match dice.within(0, 3) {
            0 => world.demand(number, Demand::Nothing),
            1 => world.demand(number, Demand::All),
            2 => {
                let room = 20u32.saturating_sub(world.waiting[number].0);
                (0..room).for_each(|_| _ = world.push(number));
            }
            _ => {}
        }
    }
}

fn check(way: &Way, rules: Rules) -> Result<(), TestCaseError> {
    prop_assume!(way.case(rules).0.spec().nodes.iter().all(|n| n.rate > Rate::ZERO));
    let (worst, bound) = worst(way, rules, 8_000);
    prop_assert!(worst <= bound, "behind by {worst} s, not {bound}: {}", worst / bound);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn weights_are_guarantees(way in way()) {
        check(&way, Rules { weight_is_rate: true, priorities: false })?;
    }

    #[test]
    fn any_weights(way in way()) {
        check(&way, Rules { weight_is_rate: false, priorities: false })?;
    }

    #[test]
    fn weights_are_guarantees_among_priorities(way in way()) {
        check(&way, Rules { weight_is_rate: true, priorities: true })?;
    }

    #[test]
    fn any_weights_among_priorities(way in way()) {
        check(&way, Rules { weight_is_rate: false, priorities: true })?;
    }
}
