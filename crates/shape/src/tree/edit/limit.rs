//! Limits: what others let a node have while traffic flows, below its ceiling. Whoever shares a
//! class among several trees (cores, links, boxes) says often how much of it each of them may send;
//! an edit of the policy would be a large tool for that.

use weir_units::{Instant, Rate};

use super::Own;
use crate::tree::ceiling::usual_burst;
use crate::tree::node::Kind;
use crate::tree::{LINK, Tree};

/// What holds for a node beside its policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    rate: Rate,
    /// Its ceiling by the policy.
    told: Option<Own>,
}

const _: () = assert!(size_of::<Limit>() == 32);

impl Default for Limit {
    fn default() -> Self {
        Limit { rate: Rate::MAX, told: None }
    }
}

impl Limit {
    /// The policy says another ceiling, or none; returns the one that holds.
    pub(super) fn tells(&mut self, told: Option<Own>) -> Option<Own> {
        self.told = told;
        self.own()
    }

    fn own(&self) -> Option<Own> {
        let most = self.told.map_or(Rate::MAX, |told| told.rate);
        if self.rate >= most {
            return self.told;
        }
        let usual = usual_burst(self.rate);
        let burst = self.told.map_or(usual, |told| told.burst.min(usual));
        Some(Own { rate: self.rate, burst, is_needed: true })
    }
}

impl Tree {
    /// From now on a node may have no more than `rate`, nor more than its policy says, until it
    /// gets another limit; [`Rate::MAX`] lifts it. A limit stays when the policy changes, as long
    /// as there is a node of that number. Below the node and beside it all share what there is as
    /// they would under such a ceiling. Whether there is such a node, below the link, and the tree
    /// [takes limits](super::super::Spec::takes_limits).
    ///
    /// Cost: O(log n) of the nodes that wait for their ceilings.
    pub fn limit(&mut self, now: Instant, number: u32, rate: Rate) -> bool {
        let Some(limit) = self.limits.get_mut(number as usize) else { return false };
        let node = &self.nodes[number as usize];
        if number == LINK || node.kind == Kind::None {
            return false;
        }
        if limit.rate == rate {
            return true;
        }
        limit.rate = rate;
        let own = limit.own();
        self.line_waits(now);
        self.sets_ceiling(now, number, own, false);
        self.wake_anew(now, number);
        true
    }
}
