//! For whoever shares rates among several engines: what each node would like to send, and limits
//! that hold beside the policy.

use weir_units::{ByWay, Instant, Rate, Way};

use crate::change::Change;
use crate::engine::{Engine, LINK, SLICE};
use crate::ledger::{CHUNK, Counters};

/// What a node would like to send and what it has waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The node's number.
    pub node: u32,
    /// Bytes that came so far. Leaves that are gone take with them what they had.
    pub offered: ByWay<u64>,
    /// Bytes that wait now.
    pub waiting: ByWay<u64>,
    /// Whether all leaves of the node are in it; if not, ask again.
    pub is_whole: bool,
    /// How many policies the engine has had: figures of one can be subtracted from each other.
    pub policy: u32,
    /// How far it is: among the ranges of leaves, and within one.
    at: (u32, u32),
}

impl Demand {
    /// Of this node, to be filled in by [`Engine::demands`].
    #[must_use]
    pub fn of(node: u32) -> Demand {
        Demand { node, ..Demand::default() }
    }

    fn add(&mut self, counted: &ByWay<Counters>) {
        for way in Way::ALL {
            self.offered[way] += counted[way].received.bytes;
            self.waiting[way] += counted[way].held.bytes;
        }
    }
}

/// The limit of each node, by its number, whoever enforces it: where that changes, it still holds.
#[derive(Debug)]
pub(crate) struct Limits {
    chunks: Vec<Chunk>,
}

/// A piece of memory for [`CHUNK`] numbers, made off the packet thread.
pub(crate) type Chunk = Box<[ByWay<Rate>]>;

const NONE: ByWay<Rate> = ByWay { down: Rate::MAX, up: Rate::MAX };

pub(crate) fn chunk() -> Chunk {
    vec![NONE; CHUNK].into_boxed_slice()
}

impl Limits {
    /// No limits, and room for so many pieces without allocating.
    pub(crate) fn new(chunks: usize) -> Limits {
        Limits { chunks: Vec::with_capacity(chunks) }
    }

    /// Makes room for more numbers, and forgets those that are given to others.
    pub(crate) fn follow(&mut self, change: &mut Change) {
        while self.chunks.len() < self.chunks.capacity()
            && let Some(chunk) = change.limits.pop()
        {
            self.chunks.push(chunk);
        }
        if self.chunks.is_empty() {
            return;
        }
        for number in change.fresh.iter().cloned().flatten() {
            self.set(number, NONE);
        }
    }

    fn get(&mut self, number: u32) -> Option<&mut ByWay<Rate>> {
        let chunk = self.chunks.get_mut(number as usize / CHUNK)?;
        chunk.get_mut(number as usize % CHUNK)
    }

    fn set(&mut self, number: u32, rates: ByWay<Rate>) {
        if let Some(limit) = self.get(number) {
            *limit = rates;
        }
    }

    /// The first of the numbers from `from` on that has a limit on this way.
    fn next(&self, way: Way, from: u32) -> Option<(u32, Rate)> {
        let end = self.chunks.len() * CHUNK;
        let rates = (from as usize..end).map(|at| self.chunks[at / CHUNK][at % CHUNK][way]);
        (from..).zip(rates).find(|(_, rate)| *rate < Rate::MAX)
    }
}

impl Engine {
    /// Fills in what the named nodes would like to send, of up to 4 096 leaves a call. A class is
    /// the sum of its leaves; what waits in the queue of a branch without queues of its own waits
    /// in the leaf that it is of. Returns whether all are whole; if not, call again with the same.
    /// One that is not whole when the policy changes begins anew.
    pub fn demands(&self, wanted: &mut [Demand]) -> bool {
        let mut budget = SLICE;
        for demand in wanted.iter_mut().filter(|demand| !demand.is_whole) {
            if demand.policy != self.policies {
                *demand = Demand { policy: self.policies, ..Demand::of(demand.node) };
            }
            let one = demand.node..demand.node.saturating_add(1);
            let ranges = match self.layout.below.part(demand.node) {
                _ if demand.node == LINK => {
                    demand.add(self.ledger.total());
                    demand.is_whole = true;
                    continue;
                }
                Some(ranges) => ranges,
                None => std::slice::from_ref(&one),
            };
            while let Some(range) = ranges.get(demand.at.0 as usize) {
                let from = range.start + demand.at.1;
                let to = range.end.min(from.saturating_add(budget));
                for leaf in from..to {
                    if let Some(counted) = self.ledger.leaf(leaf) {
                        demand.add(counted);
                    }
                }
                budget -= to - from;
                if to < range.end {
                    demand.at.1 += to - from;
                    return false;
                }
                demand.at = (demand.at.0 + 1, 0);
            }
            demand.is_whole = true;
        }
        true
    }

    /// Gives nodes other rates from `now` on, by the way of their frames. The link ([`LINK`])
    /// carries as much until the policy changes or weir finds another rate. Where the engine takes
    /// limits ([`Config::limits`](crate::Config::limits)), classes and leaves have at most as much,
    /// and at most what the policy says, until they get another limit or go; [`Rate::MAX`] lifts
    /// it. A leaf that was made for one host has none when it is made for another. What one may
    /// not use others have, as under a ceiling. Returns how many obey now: HSDBA limits the link
    /// alone.
    ///
    /// Cost: O(log n) for each.
    pub fn limits(&mut self, now: Instant, limits: &[(u32, Way, Rate)]) -> usize {
        let mut obeyed = 0;
        for &(node, way, rate) in limits {
            if node == LINK {
                self.set_rate(now, way, rate);
                obeyed += 1;
            } else if let Some(limit) = self.limits.get(node) {
                limit[way] = rate;
                obeyed += usize::from(self.obeys(now, node, way, rate));
            }
        }
        obeyed
    }

    fn obeys(&mut self, now: Instant, node: u32, way: Way, rate: Rate) -> bool {
        let (tree, enforcer) = (&mut self.trees[way], &mut self.enforcers[way]);
        if !enforcer.is_queue_of_link(node) {
            let is_queue = tree.limit(now, node, rate);
            return enforcer.limit(node, rate) || is_queue;
        }
        // the queue of all that the link holds has the number of one leaf of these, which may have
        // had a queue of its own
        let _ = tree.limit(now, node, Rate::MAX);
        enforcer.limit(node, rate)
    }

    /// Classes have come under another law of enforcement, or left it: their limits hold there.
    pub(crate) fn limits_move(&mut self, now: Instant, way: Way) {
        let mut from = 0;
        while let Some((node, rate)) = self.limits.next(way, from) {
            let _ = self.obeys(now, node, way, rate);
            from = node + 1;
        }
    }

    /// A leaf that was made for one host is made for another.
    pub(crate) fn forget_limits(&mut self, now: Instant, leaf: u32) {
        for way in Way::ALL {
            if self.limits.get(leaf).is_some_and(|limit| limit[way] < Rate::MAX) {
                let _ = self.obeys(now, leaf, way, Rate::MAX);
            }
        }
        self.limits.set(leaf, NONE);
    }
}
