//! Trees to be tried: small ones node by node, so that a failure shrinks to a few nodes; large ones
//! from a seed and a few numbers.

use std::fmt;

use proptest::prelude::*;
use weir_shape::FrameCost;
use weir_shape::tree::{NodeSpec, Spec};
use weir_units::limits::TREE_DEPTH;
use weir_units::{Bytes, Priority, Rate};

use crate::dice::Dice;

/// What a leaf offers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Demand {
    Nothing,
    /// So many millionths of the link, evenly.
    Part(u32),
    All,
}

/// Guarantees and ceilings are none below that, in bits per second.
const LEAST_RATE: u64 = 1_000;

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) rate: u64,
    pub(crate) nodes: Vec<Told>,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Told {
    /// 0: the link; else the number of a node before this one.
    pub(crate) parent: usize,
    pub(crate) weight: u64,
    /// Guarantee and ceiling in millionths of the parent's (0: none).
    pub(crate) rate: u64,
    pub(crate) ceil: u64,
    pub(crate) priority: u8,
    pub(crate) burst: Option<u64>,
    pub(crate) demand: Demand,
    /// Frames are of random size between these.
    pub(crate) sizes: (u16, u16),
}

impl Default for Told {
    /// A leaf of the link that wants all, in full frames.
    fn default() -> Told {
        Told {
            parent: 0,
            weight: 1,
            rate: 0,
            ceil: 0,
            priority: 2,
            burst: None,
            demand: Demand::All,
            sizes: (1_514, 1_514),
        }
    }
}

/// A line for each node, with what is not usual.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s, seed {}", self.rate, self.seed)?;
        for (number, told) in (1..).zip(&self.nodes) {
            let usual = Told::default();
            write!(f, "\n{number} of {}: {:?}", told.parent, told.demand)?;
            write!(f, ", weight {}", told.weight)?;
            let mut say = |name, value: u64, usual: u64| match value == usual {
                true => Ok(()),
                false => write!(f, ", {name} {value}"),
            };
            say("rate", told.rate, usual.rate)?;
            say("ceil", told.ceil, usual.ceil)?;
            say("burst", told.burst.unwrap_or(0), 0)?;
            say("priority", told.priority.into(), usual.priority.into())?;
            say("from", told.sizes.0.into(), usual.sizes.0.into())?;
            say("to", told.sizes.1.into(), usual.sizes.1.into())?;
        }
        Ok(())
    }
}

impl Case {
    /// Node `at` has number `at + 1`. Guarantees of siblings fit into their parent's.
    pub(crate) fn spec(&self) -> Spec {
        let mut is_leaf = vec![true; self.nodes.len() + 1];
        self.nodes.iter().for_each(|told| is_leaf[told.parent] = false);
        let mut left = vec![self.rate; self.nodes.len() + 1];
        let mut rates = left.clone();
        let mut ceilings = left.clone();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (told, number) in self.nodes.iter().zip(1..) {
            let parent = told.parent;
            let ceil = if told.ceil == 0 { 1_000_000 } else { told.ceil };
            let ceil = (ceilings[parent] * ceil / 1_000_000).max(LEAST_RATE).min(ceilings[parent]);
            let mut rate = (rates[parent] * told.rate / 1_000_000).min(ceil);
            if !self.seed.is_multiple_of(3) {
                // in the others a node promises more than it has
                rate = rate.min(left[parent]);
            }
            // the clocks of guarantees and ceilings end at 8 bit/s, which nobody asks for
            let rate = if rate < LEAST_RATE { 0 } else { rate };
            left[parent] = left[parent].saturating_sub(rate);
            (rates[number], left[number], ceilings[number]) = (rate, rate, ceil);
            let mut node = NodeSpec::new(number as u32, parent as u32, is_leaf[number]);
            node.weight = told.weight;
            node.rate = Rate::from_bps(rate);
            node.ceil = Rate::from_bps(ceil);
            node.priority = Priority(told.priority);
            node.burst = told.burst.map(Bytes::new);
            nodes.push(node);
        }
        Spec {
            rate: Rate::from_bps(self.rate),
            link: FrameCost::default(),
            nodes,
            cares: vec![],
            ..Spec::default()
        }
    }
}

impl Case {
    /// A burst of one frame for each level and one more, even where a millisecond is more: a window
    /// of some frames at 10 Gbit/s would see nothing but bursts.
    pub(crate) fn with_small_bursts(mut self) -> Case {
        let mut depths = vec![0];
        for told in &mut self.nodes {
            let depth = depths[told.parent] + 1;
            depths.push(depth);
            told.burst = Some((depth + 1) * 1_538);
        }
        self
    }
}

/// What the trees of a test may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) guarantees: bool,
    pub(crate) ceilings: bool,
    pub(crate) priorities: bool,
}

pub(crate) const EVERYTHING: Parts = Parts { guarantees: true, ceilings: true, priorities: true };

/// From 20 kbit/s to 10 Gbit/s.
pub(crate) fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        (20u64..1_000).prop_map(|r| r * 1_000),
        (1u64..1_000).prop_map(|r| r * 1_000_000),
        Just(1_000_000_000),
        Just(10_000_000_000u64)
    ]
}

pub(crate) fn demand() -> impl Strategy<Value = Demand> {
    prop_oneof![
        4 => Just(Demand::All),
        2 => (1_000u32..500_000).prop_map(Demand::Part),
        1 => Just(Demand::Nothing),
    ]
}

/// A small tree, node by node.
pub(crate) fn case(most: usize, parts: Parts) -> impl Strategy<Value = Case> {
    let Parts { guarantees, ceilings, priorities } = parts;
    let none_or = |there: bool, range| {
        if there { prop_oneof![2 => Just(0u64), 1 => range].boxed() } else { Just(0).boxed() }
    };
    let sizes = prop_oneof![
        Just((1_514u16, 1_514u16)),
        (60u16..1_514, 60u16..1_514).prop_map(|(a, b)| (a.min(b), a.max(b))),
    ];
    let node = (
        any::<prop::sample::Index>(),
        1u64..1_000,
        none_or(guarantees, 1_000u64..600_000),
        none_or(ceilings, 50_000u64..1_000_000),
        if priorities { (0u8..4).boxed() } else { Just(2).boxed() },
        demand(),
        sizes,
    );
    (rate(), any::<u64>(), prop::collection::vec(node, 1..most)).prop_map(|(rate, seed, list)| {
        let mut nodes: Vec<Told> = Vec::new();
        let mut depths = vec![0];
        for (at, (index, weight, rate, ceil, priority, demand, sizes)) in
            list.into_iter().enumerate()
        {
            let mut parent = index.index(at + 1);
            while depths[parent] >= TREE_DEPTH {
                parent = nodes[parent - 1].parent;
            }
            depths.push(depths[parent] + 1);
            let burst = None;
            nodes.push(Told { parent, weight, rate, ceil, priority, burst, demand, sizes });
        }
        Case { rate, nodes, seed }
    })
}

/// A large tree in a few numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) rate: u64,
    pub(crate) leaves: usize,
    pub(crate) depth: usize,
    pub(crate) parts: Parts,
}

pub(crate) fn plan(leaves: std::ops::Range<usize>) -> impl Strategy<Value = Plan> {
    let flag = any::<bool>;
    (any::<u64>(), rate(), leaves, 1..TREE_DEPTH + 1, flag(), flag(), flag()).prop_map(
        |(seed, rate, leaves, depth, guarantees, ceilings, priorities)| {
            let parts = Parts { guarantees, ceilings, priorities };
            Plan { seed, rate, leaves, depth, parts }
        },
    )
}

impl Plan {
    /// The interior nodes are a tenth of the leaves, and random; leaves hang anywhere. What a node
    /// has of its parent's is of the order of its part of the leaves, so that a leaf far down is
    /// not poorer by orders of magnitude than another: nobody could wait until it has had enough to
    /// be judged by.
    pub(crate) fn case(&self) -> Case {
        let mut dice = Dice::new(self.seed);
        let parents = self.parents(&mut dice);
        let mut leaves = vec![0; parents.len() + 1];
        for (at, &parent) in parents.iter().enumerate().rev() {
            leaves[at + 1] = leaves[at + 1].max(1);
            leaves[parent] += leaves[at + 1];
        }
        let nodes = (1..)
            .zip(parents)
            .map(|(number, parent)| self.node(&mut dice, parent, leaves[number], leaves[parent]));
        Case { rate: self.rate, nodes: nodes.collect(), seed: self.seed }
    }

    /// By node, from number 1 on.
    fn parents(&self, dice: &mut Dice) -> Vec<usize> {
        let (mut parents, mut depths, mut may_have_children) = (Vec::new(), vec![0], vec![0]);
        let interiors = if self.depth == 1 { 0 } else { (self.leaves / 10).max(self.depth) };
        for number in 1..=interiors {
            // the first ones are a chain, so that the tree is as deep as it should be
            let parent = match number < self.depth {
                true => number - 1,
                false => {
                    may_have_children[dice.within(0, may_have_children.len() as u64 - 1) as usize]
                }
            };
            depths.push(depths[parent] + 1);
            if depths[number] < self.depth {
                may_have_children.push(number);
            }
            parents.push(parent);
        }
        let places = may_have_children.len() as u64;
        parents.extend(
            (0..self.leaves).map(|_| may_have_children[dice.within(0, places - 1) as usize]),
        );
        parents
    }

    /// A node with so many leaves, of those of its parent.
    fn node(&self, dice: &mut Dice, parent: usize, leaves: u64, of: u64) -> Told {
        let fair = (1_000_000 * leaves / of).max(1);
        let weight = leaves * dice.magnitude(1, if leaves > 1 { 3 } else { 10 });
        let mut told = Told { parent, weight, ..Told::default() };
        if self.parts.guarantees && dice.one_in(3) {
            told.rate = dice.within(1, 2 * fair).min(900_000);
        }
        if self.parts.ceilings && dice.one_in(3) {
            told.ceil = dice.magnitude(fair.div_ceil(4), 30 * fair).min(1_000_000);
        }
        if self.parts.priorities {
            told.priority = dice.within(0, 3) as u8;
        }
        told.demand = match dice.within(0, 6) {
            0 => Demand::Nothing,
            1 | 2 => {
                let part = 1_000_000 / self.leaves as u64;
                Demand::Part(dice.within(part.div_ceil(4), 4 * part.max(1)) as u32)
            }
            _ => Demand::All,
        };
        if dice.one_in(2) {
            let (a, b) = (dice.within(60, 1_514) as u16, dice.within(60, 1_514) as u16);
            told.sizes = (a.min(b), a.max(b));
        }
        told
    }
}
