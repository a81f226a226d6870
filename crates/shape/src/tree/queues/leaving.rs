//! Which frame of a leaf with care is next, and which have to go.

use weir_packet::Label;
use weir_units::{Bytes, Instant};

use super::{Kept, Queues, depth};
use crate::aqm::{Fate, Leaving};
use crate::tree::care::Care;
use crate::tree::node::{NONE, Node};
use crate::tree::ring::Place;
use crate::tree::store::{Link, Waiting};

impl Queues {
    /// Takes the first frame of a queue.
    pub(super) fn pop_queue(
        &mut self,
        now: Instant,
        node: &mut Node,
        id: u32,
        care: &Care,
    ) -> Option<(u32, Link)> {
        let queue = &mut self.queues[id];
        let (at, link) = self.store.pop(&mut queue.chain)?;
        node.chain.discount(link.len);
        let crowd = &mut self.crowds[queue.leaf as usize];
        if matches!(queue.turn.place, Place::Held | Place::Waiting) {
            crowd.away -= 1;
        }
        if crowd.fattest == id {
            crowd.fat = queue.chain.bytes();
        }
        if queue.chain.is_empty() {
            care.aqm.emptied(&mut queue.aqm, now);
        }
        Some((at, link))
    }

    /// The frame of a leaf with care that is next; `None` if queue management dropped all that may
    /// leave. `cost` says what a frame costs on the link.
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        cost: impl Fn(&Link) -> Bytes,
    ) -> Option<(u32, Bytes)> {
        let cares = std::mem::take(&mut self.cares);
        let kept = cares.get(usize::from(node.care));
        let popped = kept.and_then(|kept| self.pop_with_care(now, number, node, kept, cost));
        self.cares = cares;
        popped
    }

    #[inline]
    pub(super) fn pop_with_care(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        kept: &Kept,
        cost: impl Fn(&Link) -> Bytes,
    ) -> Option<(u32, Bytes)> {
        let care = &kept.care;
        loop {
            let host = self.next_host(number, care)?;
            let ring = match host {
                NONE => &mut self.crowds[number as usize].ring,
                host => &mut self.hosts[host].ring,
            };
            let id = ring.next(&mut self.queues)?;
            if self.queues[id].chain.is_empty() {
                self.is_silent(number, host, id);
                continue;
            }
            let Some((at, link)) = self.pop_managed(now, node, id, care) else { continue };
            let bytes = cost(&link);
            let charged = i32::try_from(bytes.get()).unwrap_or(i32::MAX);
            let crowd = &mut self.crowds[number as usize];
            if host == NONE {
                crowd.ring.sent(&mut self.queues, id, charged);
            } else {
                self.hosts[host].ring.sent(&mut self.queues, id, charged);
                crowd.ring.sent(&mut self.hosts, host, charged);
            }
            if let Some(max) = &kept.max {
                self.has_sent(now, id, max, bytes.get());
            }
            return Some((at, bytes));
        }
    }

    /// Whose turn it is among hosts; `NONE` where there are none.
    #[inline]
    pub(super) fn next_host(&mut self, number: u32, care: &Care) -> Option<u32> {
        if !care.is_by_host() {
            return Some(NONE);
        }
        self.crowds[number as usize].ring.next(&mut self.hosts)
    }

    /// The queue whose turn it is has nothing to send.
    pub(super) fn is_silent(&mut self, number: u32, host: u32, id: u32) {
        let crowd = &mut self.crowds[number as usize];
        if host == NONE {
            crowd.ring.has_nothing(&mut self.queues, id);
            return;
        }
        let ring = &mut self.hosts[host].ring;
        if ring.has_nothing(&mut self.queues, id) {
            self.queues[id].host = NONE;
            if ring.is_empty() {
                crowd.ring.leave(&mut self.hosts, host);
                self.hosts.forget(host);
            }
        }
    }

    /// The first frame of a queue that queue management lets go.
    #[inline]
    pub(super) fn pop_managed(
        &mut self,
        now: Instant,
        node: &mut Node,
        id: u32,
        care: &Care,
    ) -> Option<(u32, Link)> {
        loop {
            let (at, link) = self.pop_queue(now, node, id, care)?;
            let queue = &mut self.queues[id];
            let can_mark = care.ecn && link.can_mark();
            let frame = Leaving { since: link.since, can_mark };
            let behind = depth(&queue.chain);
            match care.aqm.leave(&mut queue.aqm, now, frame, behind, &mut self.random) {
                Fate::Take => return Some((at, link)),
                Fate::Mark => {
                    self.store.mark(at);
                    return Some((at, link));
                }
                Fate::Drop => self.store.append_one(&mut self.dropped, at),
            }
        }
    }

    /// A frame that queue management dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> Option<Waiting> {
        let (at, _) = self.store.pop(&mut self.dropped)?;
        self.store.take(at)
    }

    /// The longest queue of all gives its first frame; if none has two, that of the frame which
    /// joined last. A leaf that is empty thereby stays a child of its parent until its turn comes.
    #[cold]
    pub(crate) fn longest_pays(
        &mut self,
        now: Instant,
        nodes: &mut [Node],
        joined: &Label,
    ) -> Option<Waiting> {
        let node = nodes.get(joined.leaf as usize)?;
        let own = match self.cares.get(usize::from(node.care)) {
            Some(kept) if !node.is_plain() => self.queue_of(&kept.care, joined.leaf, joined),
            _ => self.flows + joined.leaf,
        };
        let id = self.find_longest(nodes).unwrap_or(own);
        let (at, _) = match self.plain(id, nodes) {
            Some(number) => self.store.pop(&mut nodes[number].chain)?,
            None => {
                let node = &mut nodes[self.queues[id].leaf as usize];
                let care = self.cares.get(usize::from(node.care))?.care;
                self.pop_queue(now, node, id, &care)?
            }
        };
        self.store.take(at)
    }

    /// The plain leaf whose only queue this is.
    pub(super) fn plain(&self, id: u32, nodes: &[Node]) -> Option<usize> {
        let number = id.checked_sub(self.flows)? as usize;
        nodes.get(number).filter(|node| node.is_plain()).map(|_| number)
    }

    pub(super) fn find_longest(&mut self, nodes: &mut [Node]) -> Option<u32> {
        let mut longest = std::mem::take(&mut self.longest);
        let found = longest.find(|id, ring| {
            let (frames, is) = match self.plain(id, nodes) {
                Some(n) => (nodes[n].chain.frames(), &mut nodes[n].ring),
                None => {
                    let queue = &mut self.queues[id];
                    (queue.chain.frames(), &mut queue.rung)
                }
            };
            if let Some(ring) = ring {
                *is = ring;
            }
            frames
        });
        self.longest = longest;
        found
    }
}
