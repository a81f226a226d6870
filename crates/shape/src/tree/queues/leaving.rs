//! Which frame of a leaf with care is next, and which have to go.

use weir_packet::Label;
use weir_units::{Bytes, Instant};

use super::{Crowd, Kept, Queue, Queues, depth};
use crate::aqm::{Fate, Leaving};
use crate::tree::care::Care;
use crate::tree::node::{NONE, Node};
use crate::tree::ring::Place;
use crate::tree::store::{Link, Store, Waiting};

impl Queues {
    /// Takes the first frame of a queue; its place.
    pub(super) fn pop_queue(
        &mut self,
        now: Instant,
        node: &mut Node,
        id: u32,
        care: &Care,
    ) -> Option<u32> {
        let queue = &mut self.queues[id];
        let crowd = &mut self.crowds[queue.leaf as usize];
        let (at, _) = crowd.pop(&mut self.store, node, id, queue)?;
        if queue.chain.is_empty() {
            care.aqm.emptied(&mut queue.aqm, now);
        }
        Some(at)
    }

    /// The place of the frame of a leaf with care that is next, and what it costs; `None` if queue
    /// management dropped all that may leave. `cost` says what a frame costs on the link.
    #[inline]
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        kept: &Kept,
        cost: impl Fn(&Link) -> Bytes,
    ) -> Option<(u32, Bytes)> {
        loop {
            let host = if kept.by_host { self.next_host(number)? } else { NONE };
            let crowd = &mut self.crowds[number as usize];
            let ring = match host {
                NONE => &mut crowd.ring,
                host => &mut self.hosts[host].ring,
            };
            let id = ring.next(&mut self.queues)?;
            if self.queues[id].chain.is_empty() {
                self.is_silent(number, host, id);
                continue;
            }
            let Some((at, link)) = self.pop_managed(now, node, id, &kept.care) else { continue };
            let bytes = cost(&link);
            let charged = i32::try_from(bytes.get()).unwrap_or(i32::MAX);
            self.crowds[number as usize].has_sent(link.len);
            if host == NONE {
                self.crowds[number as usize].ring.sent(&mut self.queues, id, charged);
            } else {
                self.host_has_sent(number, host, id, charged);
            }
            if let Some(max) = &kept.max {
                self.has_sent(now, id, max, bytes.get());
            }
            return Some((at, bytes));
        }
    }

    /// The host whose turn it is.
    #[inline(never)]
    fn next_host(&mut self, number: u32) -> Option<u32> {
        self.crowds[number as usize].ring.next(&mut self.hosts)
    }

    /// A connection has sent, and so has its host.
    #[inline(never)]
    fn host_has_sent(&mut self, number: u32, host: u32, id: u32, bytes: i32) {
        self.hosts[host].ring.sent(&mut self.queues, id, bytes);
        self.crowds[number as usize].ring.sent(&mut self.hosts, host, bytes);
    }

    /// The queue whose turn it is has nothing to send.
    #[inline(never)]
    fn is_silent(&mut self, number: u32, host: u32, id: u32) {
        if host == NONE {
            self.crowds[number as usize].ring.has_nothing(&mut self.queues, id);
            return;
        }
        let is_last = self.hosts[host].ring.is_single();
        if is_last && self.crowds[number as usize].ring.pauses(&mut self.hosts, host) {
            // its host would begin anew with it
            self.hosts[host].ring.falls_silent(&mut self.queues, id);
        } else if self.hosts[host].ring.has_nothing(&mut self.queues, id) {
            self.has_left_host(number, host, id);
        }
    }

    /// The first frame of a queue that queue management lets go.
    #[inline]
    fn pop_managed(
        &mut self,
        now: Instant,
        node: &mut Node,
        id: u32,
        care: &Care,
    ) -> Option<(u32, Link)> {
        let queue = &mut self.queues[id];
        let crowd = &mut self.crowds[queue.leaf as usize];
        loop {
            let (at, link) = crowd.pop(&mut self.store, node, id, queue)?;
            if queue.chain.is_empty() {
                care.aqm.emptied(&mut queue.aqm, now);
            }
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

    /// The place of the frame that has to go where all is full: the first of the longest queue;
    /// if none has two, that of the queue which grew last. A leaf that is empty thereby stays a
    /// child of its parent until its turn comes.
    #[cold]
    pub(crate) fn longest_pays(
        &mut self,
        now: Instant,
        number: u32,
        nodes: &mut [Node],
        cares: &[Kept],
        joined: &Label,
    ) -> Option<u32> {
        let node = nodes.get(number as usize)?;
        let own = match cares.get(usize::from(node.care)) {
            Some(kept) if !node.is_plain() => self.queue_of(kept, number, joined),
            _ => self.flows + number,
        };
        let id = self.find_longest(nodes).unwrap_or(own);
        match self.plain(id, nodes) {
            Some(number) => self.store.pop(&mut nodes[number].chain).map(|(at, _)| at),
            None => {
                let node = &mut nodes[self.queues[id].leaf as usize];
                let kept = cares.get(usize::from(node.care))?;
                self.pop_queue(now, node, id, &kept.care)
            }
        }
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

impl Crowd {
    /// Takes the first frame of one of its queues.
    #[inline]
    fn pop(
        &mut self,
        store: &mut Store,
        node: &mut Node,
        id: u32,
        queue: &mut Queue,
    ) -> Option<(u32, Link)> {
        let (at, link) = store.pop(&mut queue.chain)?;
        node.chain.discount(link.len);
        if matches!(queue.turn.place, Place::Held | Place::Waiting) {
            self.away -= 1;
        }
        if self.fattest == id {
            self.fat = queue.chain.bytes();
        }
        Some((at, link))
    }
}
