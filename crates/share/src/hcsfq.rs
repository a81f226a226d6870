//! HCSFQ (Yu et al., NSDI 2021), in depth: core-stateless fair queueing (Stoica, Shenker and Zhang
//! 1998) at every node. A node compares what arrives with what it accepts, and moves its fair rate
//! by the ratio once in a while; its children with children take their capacity from that. Exact on
//! one and two levels; on five the loops fight each other, which is shown, not mended.

use weir_units::{Instant, Rate, Span};

use crate::estimate::follow;
use crate::fate::Fate;
use crate::plain::{Dice, Plain};
use crate::scale::{LONGEST, bits, narrow, rate};
use crate::tree::{Node, Place, Places, Unfit};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fair {
    arrived: u64,
    pub(crate) accepted: u64,
    arrived_at: u64,
    accepted_at: u64,
    /// The fair rate of a unit of weight.
    fair: u64,
    capacity: u64,
    is_congested: bool,
    since: u64,
    /// The largest rate by weight since then.
    largest: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    rate: u64,
    last: u64,
}

/// The allocator.
#[derive(Debug)]
pub struct Hcsfq {
    tree: Plain,
    inner: Vec<Fair>,
    leaves: Vec<Flow>,
    /// The base-2 logarithm of the time constants, in ns.
    constant: u32,
    dice: Dice,
}

impl Hcsfq {
    /// An allocator for this tree; all averages over about `constant`, at the next power of two.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn new(nodes: &[Node], constant: Span, seed: u64) -> Result<(Hcsfq, Places), Unfit> {
        let (tree, places) = Plain::new(nodes)?;
        let capacity = tree.capacity();
        let inner = vec![Fair::new(capacity); tree.inner.len()];
        let leaves = vec![Flow::default(); tree.leaves.len()];
        let ns = constant.ns();
        // the nearer of the powers of two around it
        let above = bits(ns.max(1) * 3 / 4);
        let constant = above.clamp(16, 32);
        Ok((Hcsfq { tree, inner, leaves, constant, dice: Dice::new(seed) }, places))
    }

    /// A packet of a leaf.
    pub fn packet(&mut self, now: Instant, leaf: u32, len: u32) -> Fate {
        let (now, len) = (now.ns(), len.clamp(1, LONGEST));
        let Some(flow) = self.leaves.get_mut(leaf as usize) else {
            return Fate::Drop { by: Place::Inner(0) };
        };
        let gap = now.saturating_sub(flow.last);
        flow.rate = follow(flow.rate, len, gap, self.constant);
        flow.last = flow.last.max(now);
        let rate = flow.rate;
        let path = self.tree.path(leaf);
        let mut capacity = self.tree.capacity();
        let mut by = Place::Inner(0);
        for (step, &at) in path.nodes().iter().enumerate() {
            let node = &mut self.inner[at as usize];
            let gap = now.saturating_sub(node.arrived_at);
            node.arrived = follow(node.arrived, len, gap, self.constant);
            node.arrived_at = node.arrived_at.max(now);
            node.capacity = capacity;
            if let Some(&next) = path.nodes().get(step + 1) {
                let terms = self.tree.inner[next as usize];
                let own = node.fair.saturating_mul(u64::from(terms.weight)).min(terms.peak);
                if own < capacity {
                    by = Place::Inner(at);
                }
                capacity = capacity.min(own);
            }
        }
        let parent = self.tree.leaves[leaf as usize].parent;
        let share = self.own(parent, leaf);
        let is_dropped = rate > share && !self.dice.falls(share, rate);
        for (step, &at) in path.nodes().iter().enumerate() {
            let node = &mut self.inner[at as usize];
            let gap = now.saturating_sub(node.accepted_at);
            let len = if is_dropped { 0 } else { len };
            node.accepted = follow(node.accepted, len, gap, self.constant);
            node.accepted_at = node.accepted_at.max(now);
            let (child, weight) = match path.nodes().get(step + 1) {
                Some(&next) => {
                    (self.inner[next as usize].arrived, self.tree.inner[next as usize].weight)
                }
                None => (rate, self.tree.leaves[leaf as usize].weight),
            };
            self.inner[at as usize].adjust(now, 1 << self.constant, child / u64::from(weight));
        }
        if is_dropped { Fate::Drop { by } } else { Fate::Pass }
    }

    /// What a leaf may send now.
    #[must_use]
    pub fn share(&self, leaf: u32) -> Rate {
        let Some(terms) = self.tree.leaves.get(leaf as usize) else { return Rate::ZERO };
        rate(self.own(terms.parent, leaf).min(self.tree.capacity()))
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let terms = size_of::<crate::plain::Terms>();
        self.inner.len() * (size_of::<Fair>() + terms)
            + self.leaves.len() * (size_of::<Flow>() + terms)
    }

    fn own(&self, parent: u32, leaf: u32) -> u64 {
        let terms = self.tree.leaves[leaf as usize];
        self.inner[parent as usize].fair.saturating_mul(u64::from(terms.weight)).min(terms.peak)
    }
}

impl Fair {
    pub(crate) fn new(capacity: u64) -> Fair {
        Fair {
            arrived: 0,
            accepted: 0,
            arrived_at: 0,
            accepted_at: 0,
            fair: capacity,
            capacity,
            is_congested: false,
            since: 0,
            largest: 0,
        }
    }

    /// The fair rate after a round in which so much arrived, and what `accepted` says was accepted;
    /// `largest`: of the children, by weight. Time is counted in rounds.
    pub(crate) fn round(&mut self, arrived: u64, capacity: u64, largest: u64) -> u64 {
        (self.arrived, self.capacity, self.largest) = (arrived, capacity, largest);
        self.arrived_at += 1;
        self.adjust(self.arrived_at, 0, 0);
        self.fair
    }

    /// Moves the fair rate: by what is accepted where there is too much, to the largest of the
    /// children where there is not.
    fn adjust(&mut self, now: u64, window: u64, child: u64) {
        let is_over = now > self.since.saturating_add(window);
        let least = (self.capacity / 16).max(1);
        if self.arrived >= self.capacity {
            if !self.is_congested {
                (self.is_congested, self.since) = (true, now);
            } else if is_over {
                let fair = u128::from(self.fair) * u128::from(self.capacity);
                let fair = narrow(fair / u128::from(self.accepted.max(1)));
                (self.fair, self.since) = (fair.clamp(1, self.capacity.max(1)), now);
            }
        } else if self.is_congested {
            (self.is_congested, self.since, self.largest) = (false, now, 0);
        } else if is_over {
            (self.fair, self.since, self.largest) = (self.largest.max(least), now, 0);
        } else {
            self.largest = self.largest.max(child);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_memory_is_that_of_nodes_and_leaves() {
        let link = Node::link(Rate::from_bps(1_000_000));
        let bytes = |leaves: usize| {
            let nodes = [vec![link], vec![Node::leaf(0, 1); leaves]].concat();
            Hcsfq::new(&nodes, Span::from_ms(1), 1).unwrap().0.bytes()
        };
        // a leaf: rate and time, and 24 for parent, weight, floor and peak
        assert_eq!(bytes(1) - bytes(0), 16 + 24);
        assert_eq!(bytes(100), 72 + 24 + 100 * (16 + 24));
    }
}
