//! Which frame of a leaf with care is next, and which have to go.

use weir_units::{Bytes, Instant};

use super::{Crowd, Kept, Queue, Queues, depth};
use crate::aqm::{Decision, Leaving};
use crate::tree::care::Care;
use crate::tree::hosts::Hosts;
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
        let (at, _) = crowd.pop(&mut self.store, &mut self.hosts, node, id, queue)?;
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
    pub(super) fn is_silent(&mut self, number: u32, host: u32, id: u32) {
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
            let (at, link) = crowd.pop(&mut self.store, &mut self.hosts, node, id, queue)?;
            if queue.chain.is_empty() {
                care.aqm.emptied(&mut queue.aqm, now);
            }
            let can_mark = care.ecn && link.can_mark();
            let frame = Leaving { since: link.since, can_mark };
            let behind = depth(&queue.chain);
            match care.aqm.leave(&mut queue.aqm, now, frame, behind, &mut self.random) {
                Decision::Take => return Some((at, link)),
                Decision::Mark => {
                    self.store.mark(at);
                    return Some((at, link));
                }
                Decision::Drop => self.store.append_one(&mut self.dropped, at),
            }
        }
    }

    /// A frame that queue management dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> Option<Waiting> {
        let (at, _) = self.store.pop(&mut self.dropped)?;
        self.store.take(at)
    }
}

impl Crowd {
    /// Takes the first frame of one of its queues.
    #[inline]
    fn pop(
        &mut self,
        store: &mut Store,
        hosts: &mut Hosts,
        node: &mut Node,
        id: u32,
        queue: &mut Queue,
    ) -> Option<(u32, Link)> {
        let (at, link) = store.pop(&mut queue.chain)?;
        node.chain.discount(link.len);
        if matches!(queue.turn.place, Place::Held | Place::Waiting) {
            self.away -= 1;
        }
        let (host, bytes) = (queue.turns_of(), queue.chain.bytes());
        if host == NONE {
            self.fattest.notice(id, bytes);
        } else {
            hosts.notice(host, self, (id, bytes), -i64::from(link.len));
        }
        Some((at, link))
    }
}
