//! An edit changes how the frames of a leaf wait, or moves them to another leaf: nothing is lost,
//! and the frames of a connection keep their order.

use weir_packet::Label;
use weir_units::Instant;

use super::{Crowd, Kept, Queues};
use crate::tree::node::{Kind, NONE, Node};
use crate::tree::ring::Place;
use crate::tree::store::{Chain, Link};

impl Queues {
    /// Makes a leaf plain: all its frames in one chain, those of each queue in their order.
    pub(crate) fn flatten(&mut self, number: u32, node: &mut Node) {
        self.longest.forget(number, node);
        if node.is_plain() {
            return;
        }
        node.chain = Chain::default();
        while let Some(id) = self.any_queue(number) {
            let queue = &mut self.queues[id];
            let chain = std::mem::take(&mut queue.chain);
            self.store.splice(&mut node.chain, chain);
            self.quit(id);
        }
        while let Some(id) = self.crowds[number as usize].session() {
            self.end_session(number, id);
        }
        self.crowds[number as usize] = Crowd::default();
        node.kind = Kind::Plain;
    }

    /// Empties as many queues as `budget` says of a leaf that is gone: what waited in them, and
    /// whether none is left.
    pub(crate) fn disband(
        &mut self,
        number: u32,
        node: &mut Node,
        budget: &mut usize,
    ) -> (Chain, bool) {
        let mut all = Chain::default();
        while *budget > 0 {
            *budget -= 1;
            if let Some(id) = self.any_queue(number) {
                let chain = std::mem::take(&mut self.queues[id].chain);
                node.chain.lessen(&chain);
                self.store.splice(&mut all, chain);
                self.quit(id);
            } else if let Some(id) = self.crowds[number as usize].session() {
                self.end_session(number, id);
            } else {
                self.crowds[number as usize] = Crowd::default();
                node.chain = Chain::default();
                return (all, true);
            }
        }
        (all, false)
    }

    /// Empties the queue of a connection, which leaves its leaf; what waited in it. The leaf stays
    /// a child of its parent until its turn comes.
    pub(crate) fn emptied(&mut self, id: u32, nodes: &mut [Node]) -> Option<(u32, Chain)> {
        let queue = self.queues.get(id).filter(|queue| !queue.chain.is_empty())?;
        let (leaf, host, bytes) = (queue.leaf, queue.turns_of(), queue.chain.bytes());
        let crowd = &mut self.crowds[leaf as usize];
        match host {
            NONE => crowd.fattest.notice(id, 0),
            host => self.hosts.notice(host, crowd, (id, 0), -i64::from(bytes)),
        }
        self.detach(id);
        let chain = std::mem::take(&mut self.queues[id].chain);
        nodes[leaf as usize].chain.lessen(&chain);
        self.settle(id, leaf);
        Some((leaf, chain))
    }

    /// A queue of this leaf that is in any list.
    pub(super) fn any_queue(&self, number: u32) -> Option<u32> {
        let crowd = &self.crowds[number as usize];
        let away = || crowd.held.first().or_else(|| crowd.waiting.first());
        let in_turn = || {
            let first = crowd.ring.any()?;
            if crowd.by_host { self.hosts[first].ring.any() } else { Some(first) }
        };
        away().or_else(in_turn)
    }

    /// Lets all frames of a chain wait in this leaf, whatever its limits say. `relabel` is told of
    /// each. Returns how many had to be dropped for want of places for hosts.
    pub(crate) fn fill(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        cares: &[Kept],
        mut chain: Chain,
        mut relabel: impl FnMut(&mut Label, usize),
    ) -> usize {
        let mut dropped = 0;
        let kept = cares.get(usize::from(node.care)).filter(|_| !node.is_plain());
        while let Some((at, link)) = self.store.pop(&mut chain) {
            let Some(label) = self.store.label(at) else { continue };
            relabel(label, usize::from(link.len));
            let label = *label;
            match kept {
                None => {
                    self.store.append_one(&mut node.chain, at);
                    self.longest.grew(number, node);
                }
                Some(kept) => {
                    let waits = self.put(now, number, node, kept, &label, (at, link));
                    dropped += usize::from(!waits);
                }
            }
        }
        dropped
    }

    /// Lets a frame wait in its queue; `false`: its host had no place, and it is dropped.
    pub(super) fn put(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        kept: &Kept,
        label: &Label,
        (at, link): (u32, Link),
    ) -> bool {
        let id = self.queue_of(kept, number, label);
        if let Some(sessions) = kept.care.sessions {
            let _ = self.may_speak(now, number, id, sessions, label);
        }
        let is_off = self.queues[id].turn.place == Place::Off;
        if is_off && !self.begins(now, id, number, kept, label, false) {
            self.store.append_one(&mut self.dropped, at);
            return false;
        }
        self.store.append_one(&mut self.queues[id].chain, at);
        self.grew(number, node, id, link.len);
        true
    }
}
