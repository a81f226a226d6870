//! AHAB (MacDavid et al. 2023): a slice is a node with leaves, all under one threshold for a unit
//! of weight. Two thresholds beside it are tried on every packet without dropping it; once an epoch
//! the threshold moves to where, by these three, the slice would pass just its capacity. Capacities
//! are what a control plane computes from the demands it has polled: the exact answer, but late. A
//! slice that falls silent keeps its last demand, since only its own packets measure it.

use weir_units::{Instant, Rate, Span};

use crate::estimate::follow;
use crate::fate::Fate;
use crate::level::{self, Kid, Level};
use crate::plain::{Dice, Plain};
use crate::scale::{LONGEST, bits, narrow, rate};
use crate::tree::{Node, Place, Places, Unfit};

/// What may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Over how long a user's rate is averaged, at the nearest power of two.
    pub user: Span,
    /// Over how long what a slice passes is averaged.
    pub slice: Span,
    /// The thresholds tried are 2^-this of the threshold away.
    pub nearness: u32,
    /// Of the dice.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        let one = Span::from_ms(1);
        Options { user: one, slice: one, nearness: 1, seed: 1 }
    }
}

/// The base-2 logarithm of an epoch, in ns.
const EPOCH: u32 = 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) threshold: u64,
    capacity: u64,
    /// What passes under a lower, this and a higher threshold, and what comes.
    pub(crate) passed: [u64; 3],
    demand: u64,
    last: u64,
    epoch: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct User {
    rate: u64,
    last: u64,
}

/// The allocator.
#[derive(Debug)]
pub struct Ahab {
    tree: Plain,
    slices: Vec<Slice>,
    users: Vec<User>,
    /// The children of each node, among those with children: from and up to where.
    children: Vec<[u32; 2]>,
    constants: [u32; 2],
    nearness: u32,
    dice: Dice,
    epoch: u64,
}

impl Ahab {
    /// An allocator for this tree.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn new(nodes: &[Node], options: Options) -> Result<(Ahab, Places), Unfit> {
        let (tree, places) = Plain::new(nodes)?;
        let capacity = tree.capacity();
        let slice = Slice::new(capacity.max(1), capacity);
        let mut children = vec![[0; 2]; tree.inner.len()];
        for (at, terms) in (0_u32..).zip(&tree.inner).skip(1) {
            let range = &mut children[terms.parent as usize];
            *range = if range[1] == 0 { [at, at + 1] } else { [range[0], at + 1] };
        }
        let constant = |span: Span| bits(span.ns().max(1) * 3 / 4).clamp(16, 32);
        let ahab = Ahab {
            slices: vec![slice; tree.inner.len()],
            users: vec![User::default(); tree.leaves.len()],
            children,
            constants: [constant(options.user), constant(options.slice)],
            nearness: options.nearness.min(16),
            dice: Dice::new(options.seed),
            epoch: 0,
            tree,
        };
        Ok((ahab, places))
    }

    /// A packet of a leaf.
    pub fn packet(&mut self, now: Instant, leaf: u32, len: u32) -> Fate {
        let (now, len) = (now.ns(), len.clamp(1, LONGEST));
        let Some(user) = self.users.get_mut(leaf as usize) else {
            return Fate::Drop { by: Place::Inner(0) };
        };
        let gap = now.saturating_sub(user.last);
        user.rate = follow(user.rate, len, gap, self.constants[0]);
        user.last = user.last.max(now);
        let rate = user.rate;
        if now >> EPOCH > self.epoch {
            self.epoch = now >> EPOCH;
            self.plan();
        }
        let terms = self.tree.leaves[leaf as usize];
        let slice = &mut self.slices[terms.parent as usize];
        if now >> EPOCH > slice.epoch {
            slice.epoch = now >> EPOCH;
            slice.adjust(self.nearness, self.tree.capacity());
        }
        let gap = now.saturating_sub(slice.last);
        slice.last = slice.last.max(now);
        slice.demand = follow(slice.demand, len, gap, self.constants[1]);
        let mut fate = Fate::Pass;
        for (which, threshold) in slice.thresholds(self.nearness).into_iter().enumerate() {
            let share = threshold.saturating_mul(u64::from(terms.weight));
            let passes = rate <= share || self.dice.falls(share, rate);
            let len = if passes { len } else { 0 };
            slice.passed[which] = follow(slice.passed[which], len, gap, self.constants[1]);
            if which == 1 && !passes {
                fate = Fate::Drop { by: Place::Inner(terms.parent) };
            }
        }
        fate
    }

    /// What a leaf may send now.
    #[must_use]
    pub fn share(&self, leaf: u32) -> Rate {
        let Some(terms) = self.tree.leaves.get(leaf as usize) else { return Rate::ZERO };
        let slice = &self.slices[terms.parent as usize];
        rate(slice.threshold.saturating_mul(u64::from(terms.weight)).min(self.tree.capacity()))
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let terms = size_of::<crate::plain::Terms>();
        self.slices.len() * (size_of::<Slice>() + size_of::<[u32; 2]>() + terms)
            + self.users.len() * (size_of::<User>() + terms)
    }

    fn kid(&self, child: usize) -> Kid {
        let (demand, terms) = (self.slices[child].demand, self.tree.inner[child]);
        Kid { floor: 0, least: 0, most: demand.min(terms.peak), weight: terms.weight }
    }

    /// The control plane: capacities from the demands that it reads now.
    fn plan(&mut self) {
        // demands of nodes with children from those below; a slice has its own
        for at in (1..self.slices.len()).rev() {
            let parent = self.tree.inner[at].parent as usize;
            let [from, to] = self.children[parent];
            if at + 1 == to as usize {
                let below = &self.slices[from as usize..to as usize];
                let sum = below.iter().fold(0_u64, |sum, slice| sum.saturating_add(slice.demand));
                self.slices[parent].demand = sum;
            }
        }
        self.slices[0].capacity = self.tree.capacity();
        for at in 0..self.slices.len() {
            let [from, to] = self.children[at];
            if to == 0 {
                continue;
            }
            let capacity = self.slices[at].capacity;
            let (from, to) = (from as usize, to as usize);
            let level = level::find(capacity, &(from..to).map(|child| self.kid(child)));
            let sum = (from..to).fold(0_u64, |sum, child| sum.saturating_add(self.kid(child).most));
            let spare = capacity.saturating_sub(sum);
            for child in from..to {
                let (kid, terms) = (self.kid(child), self.tree.inner[child]);
                // with room on the link a slice may grow by all of it
                let own = match level {
                    Level::Open => kid.most.saturating_add(spare).min(terms.peak),
                    _ => level.entitle(capacity, kid, 0, terms.peak).min(kid.most),
                };
                self.slices[child].capacity = own;
            }
        }
    }
}

impl Slice {
    pub(crate) fn new(threshold: u64, capacity: u64) -> Slice {
        Slice { threshold, capacity, passed: [0; 3], demand: 0, last: 0, epoch: 0 }
    }

    fn step(&self, nearness: u32) -> u64 {
        1_u64 << bits(self.threshold).saturating_sub(1 + nearness)
    }

    pub(crate) fn thresholds(&self, nearness: u32) -> [u64; 3] {
        let step = self.step(nearness);
        [self.threshold.saturating_sub(step), self.threshold, self.threshold.saturating_add(step)]
    }

    /// Moves the threshold to where, by what the three pass, the capacity is.
    pub(crate) fn adjust(&mut self, nearness: u32, most: u64) {
        let [low, this, high] = self.passed;
        let [lower, threshold, higher] = self.thresholds(nearness);
        let step = u128::from(self.step(nearness));
        let part = |of: u64, all: u64| narrow(step * u128::from(of) / u128::from(all.max(1)));
        let capacity = self.capacity;
        let to = if capacity <= low {
            lower
        } else if capacity >= high {
            higher
        } else if capacity < this {
            threshold - part(this - capacity, this.saturating_sub(low)).min(threshold)
        } else {
            threshold.saturating_add(part(capacity - this, high.saturating_sub(this)))
        };
        self.threshold = to.clamp((most >> 14).max(1), most.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_constants_are_the_nearest_powers_of_two() {
        let nodes = [Node::link(Rate::from_bps(1_000_000)), Node::leaf(0, 1)];
        let constants = |user: u64, slice: u64| {
            let (user, slice) = (Span::from_ns(user), Span::from_ns(slice));
            let options = Options { user, slice, ..Options::default() };
            Ahab::new(&nodes, options).unwrap().0.constants
        };
        // a millisecond is near 2^20 ns, and so is all from 3/4 to 3/2 of that
        assert_eq!(constants(1_000_000, 800_000), [20, 20]);
        assert_eq!(constants(1_390_000, 1_410_000), [20, 21]);
    }

    #[test]
    fn a_threshold_never_falls_so_low_that_it_cannot_rise() {
        // whatever passes is too much
        let mut slice = Slice::new(1 << 40, 0);
        (0..200).for_each(|_| slice.adjust(1, 1 << 40));
        assert_eq!(slice.threshold, 1 << 26, "2^-14 of what the link carries");
        let mut slice = Slice::new(100, 0);
        (0..200).for_each(|_| slice.adjust(1, 100));
        assert_eq!(slice.threshold, 1);
    }
}
