//! Whose frame has to go where too many wait. In a leaf that is full, and in the longest of all
//! leaves where the memory is: of the host that has the most bytes, the connection that has the
//! most. So whoever cuts his traffic into many connections pays for all of them.

use weir_units::Instant;

use super::{Kept, Queues};
use crate::tree::node::{NONE, Node};
use crate::tree::ring::Ring;

/// Members that are looked at for one that has frames.
const LOOKS: usize = 32;

/// Members of either kind that are looked at for a fatter one where the fattest that is known has
/// less than a part of so many of what waits in its leaf.
const OTHERS: usize = 8;
const PARTS: u32 = 32;

/// The member with the most bytes, as far as was noticed, and how many it has. Each is noticed when
/// a frame of it comes and when it has its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fattest {
    id: u32,
    pub(crate) bytes: u32,
}

impl Default for Fattest {
    fn default() -> Self {
        Fattest { id: NONE, bytes: 0 }
    }
}

impl Fattest {
    /// A member has so many bytes now.
    #[inline]
    pub(crate) fn notice(&mut self, id: u32, bytes: u32) {
        if bytes > self.bytes || id == self.id {
            *self = Fattest { id, bytes };
        }
    }

    fn id(self) -> Option<u32> {
        (self.bytes > 0).then_some(self.id)
    }
}

impl Queues {
    /// A leaf is full: its fattest queue gives its first frame, which has to go. `None`: the leaf
    /// has one queue only, or nobody else has frames; so the newcomer has to go.
    #[inline(never)]
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        id: u32,
        kept: &Kept,
    ) -> Option<u32> {
        let from = self.pays(number, kept, node.chain.bytes(), Some(id)).unwrap_or(id);
        kept.care.aqm.overflow(&mut self.queues[from].aqm, now);
        if !kept.by_flow {
            return None;
        }
        self.pop_queue(now, node, from, &kept.care)
    }

    /// The place of the frame that has to go where all is full: one of the longest leaf. A leaf
    /// that is empty thereby stays a child of its parent until its turn comes.
    #[cold]
    pub(crate) fn longest_pays(
        &mut self,
        now: Instant,
        nodes: &mut [Node],
        cares: &[Kept],
    ) -> Option<u32> {
        let number = self.longest.find(nodes)?;
        let node = &mut nodes[number as usize];
        if node.is_plain() {
            return self.store.pop(&mut node.chain).map(|(at, _)| at);
        }
        let kept = cares.get(usize::from(node.care))?;
        let id = self.pays(number, kept, node.chain.bytes(), None)?;
        self.pop_queue(now, node, id, &kept.care)
    }

    /// The queue of a leaf that pays, in which so many bytes wait: the fattest of the fattest host.
    /// One more frame is to come to `joins`, so that this pays if no other has more.
    fn pays(&mut self, number: u32, kept: &Kept, waiting: u32, joins: Option<u32>) -> Option<u32> {
        if !kept.by_flow {
            return Some(self.flows + number);
        }
        let of_joining = |queues: &Queues| joins.map_or(0, |id| queues.bytes_in(id, number));
        if !kept.by_host {
            let fattest = self.crowds[number as usize].fattest.id();
            let fattest = fattest.filter(|&id| self.bytes_in(id, number) > of_joining(self));
            let joins = joins.filter(|&id| !self.queues[id].chain.is_empty());
            return fattest.or(joins).or_else(|| self.anyone(number, NONE));
        }
        let own = joins.map_or(NONE, |id| self.queues[id].host);
        self.look_for_fatter(number, waiting);
        let host = self.fattest_host(number, own)?;
        let fattest = self.hosts[host].fattest.id().filter(|&id| {
            let queue = &self.queues[id];
            queue.leaf == number && queue.host == host && !queue.chain.is_empty()
        });
        match joins {
            Some(id) if own == host => {
                let has_more = |other: &u32| self.bytes_in(*other, number) > of_joining(self);
                fattest.filter(has_more).or(Some(id))
            }
            _ => fattest.or_else(|| self.anyone(number, host)).or_else(|| {
                // rather another connection of the newcomer's host than the newcomer
                let own = (own != NONE).then(|| self.hosts[own].fattest.id()).flatten();
                own.filter(|&id| self.bytes_in(id, number) > 0)
            }),
        }
    }

    /// When the host that had the most has sent or paid, whoever is next was not noticed perhaps:
    /// where it cannot be the fattest, those whose turns are next are looked at.
    fn look_for_fatter(&mut self, number: u32, waiting: u32) {
        let crowd = &mut self.crowds[number as usize];
        let known = crowd.fattest.id().map_or(0, |host| self.hosts.bytes_in(host, number));
        if known > waiting / PARTS {
            return;
        }
        for first in crowd.ring.next_ones() {
            let mut next = first;
            for _ in 0..OTHERS {
                let Some(host) = next else { break };
                crowd.fattest.notice(host, self.hosts[host].bytes);
                next = Ring::behind(&mut self.hosts, host);
            }
        }
    }

    /// The host of a leaf that has the most, if it is not less than its `own` has.
    fn fattest_host(&mut self, number: u32, own: u32) -> Option<u32> {
        let of_own = if own == NONE { 0 } else { self.hosts[own].bytes };
        let fattest = self.crowds[number as usize].fattest.id();
        let fattest = fattest.filter(|&host| self.hosts.bytes_in(host, number) > of_own);
        let own = (own != NONE).then_some(own);
        fattest.or(own).or_else(|| {
            let id = self.anyone(number, NONE)?;
            Some(self.queues[id].host)
        })
    }

    /// A queue that has frames, of a host or of anyone in a leaf. Those in front of it that have
    /// none are treated as if they had their turn, so that the next question goes on behind them.
    fn anyone(&mut self, number: u32, host: u32) -> Option<u32> {
        let crowd = &self.crowds[number as usize];
        let away = [crowd.held.first(), crowd.waiting.first()];
        let has_frames = |id: &u32| !self.queues[*id].chain.is_empty();
        if let Some(id) = away.into_iter().flatten().find(has_frames) {
            return Some(id);
        }
        for _ in 0..LOOKS {
            let crowd = &self.crowds[number as usize];
            let (host, id) = match (crowd.by_host, host) {
                (true, NONE) => {
                    let host = crowd.ring.any()?;
                    (host, self.hosts[host].ring.any()?)
                }
                (true, host) => (host, self.hosts[host].ring.any()?),
                _ => (NONE, crowd.ring.any()?),
            };
            if !self.queues[id].chain.is_empty() {
                return Some(id);
            }
            self.is_silent(number, host, id);
        }
        None
    }
}
