//! A frame comes to a leaf with care: whose queue it joins, whether it may, and who has to make
//! room.

use weir_packet::{Frame, Label, Reason};
use weir_units::Instant;

use super::{Came, Kept, Queues, depth};
use crate::aqm::{Arriving, Fate};
use crate::tree::care::{Care, Queueing};
use crate::tree::node::{NONE, Node};
use crate::tree::ring::{Member, Place};
use crate::tree::store::Waiting;

impl Queues {
    /// A frame joins a leaf with care; comes back what has to go instead of it, or itself.
    pub(crate) fn push_with_care(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        came: Came,
    ) -> Result<Option<(Waiting, Reason)>, (Frame, Reason)> {
        // lent out, so that what it says and what it governs can be used at once
        let cares = std::mem::take(&mut self.cares);
        let result = match cares.get(usize::from(node.care)) {
            Some(kept) => self.consider(now, number, node, came, kept),
            None => Err((came.frame, Reason::QueueFull)),
        };
        self.cares = cares;
        result
    }

    pub(super) fn consider(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        came: Came,
        kept: &Kept,
    ) -> Result<Option<(Waiting, Reason)>, (Frame, Reason)> {
        let care = &kept.care;
        let id = self.queue_of(care, number, &came.label);
        if self.queues[id].leaf != number {
            self.settle(id, number);
        }
        if let Some(sessions) = care.sessions
            && !self.may_speak(now, number, id, sessions)
        {
            return Err((came.frame, Reason::NoSession));
        }
        let queue = &mut self.queues[id];
        let can_mark = care.ecn && came.label.ecn() != 0;
        let frame = Arriving { colour: came.label.colour, can_mark };
        let behind = depth(&queue.chain);
        let fate = care.aqm.arrive(&mut queue.aqm, now, frame, behind, &mut self.random);
        if fate == Fate::Drop {
            return Err((came.frame, Reason::Managed));
        }
        if !self.has_turn(now, id, number, kept, &came.label) {
            return Err((came.frame, Reason::QueueFull));
        }
        let mut lost = None;
        if node.is_full(came.frame.len()) {
            match self.make_room(now, number, node, id, care) {
                Some(waiting) => lost = Some((waiting, Reason::QueueFull)),
                None => return Err((came.frame, Reason::QueueFull)),
            }
        }
        self.join(now, number, node, id, came, fate == Fate::Mark);
        Ok(lost)
    }

    /// Puts a frame into its queue, whatever the limits say.
    pub(super) fn join(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        id: u32,
        came: Came,
        mark: bool,
    ) {
        let crowd = &mut self.crowds[number as usize];
        let queue = &mut self.queues[id];
        node.chain.count(u16::try_from(came.frame.len()).unwrap_or(u16::MAX));
        self.store.push(&mut queue.chain, now, came.frame, &came.label, mark);
        if matches!(queue.turn.place, Place::Held | Place::Waiting) {
            crowd.away += 1;
        }
        self.longest.grew(id, queue.chain.frames(), &mut queue.rung);
        let bytes = queue.chain.bytes();
        if bytes > crowd.fat || crowd.fattest == id {
            (crowd.fattest, crowd.fat) = (id, bytes);
        }
    }

    /// The bytes of a queue, if it is still in this leaf.
    pub(super) fn bytes_in(&self, id: u32, leaf: u32) -> u32 {
        let queue = &self.queues[id];
        if queue.leaf == leaf { queue.chain.bytes() } else { 0 }
    }

    /// Which queue a frame joins.
    pub(super) fn queue_of(&self, care: &Care, number: u32, label: &Label) -> u32 {
        let by_flow = care.queue != Queueing::Fifo || care.sessions.is_some();
        if by_flow && label.flow.index < self.flows {
            label.flow.index
        } else {
            self.flows + number
        }
    }

    /// Lets a queue take its turns, if it has none yet. `false`: there is no place for its host.
    pub(super) fn has_turn(
        &mut self,
        now: Instant,
        id: u32,
        number: u32,
        kept: &Kept,
        label: &Label,
    ) -> bool {
        if self.queues[id].turn.place != Place::Off || self.is_ahead(now, id, kept) {
            return true;
        }
        let crowd = &mut self.crowds[number as usize];
        if !kept.care.is_by_host() {
            crowd.ring.begin(&mut self.queues, id);
            return true;
        }
        let Some(host) = self.hosts.find(number, label.host) else { return false };
        crowd.by_host = true;
        if self.hosts[host].turn().place == Place::Off {
            crowd.ring.begin(&mut self.hosts, host);
        }
        self.hosts[host].ring.begin(&mut self.queues, id);
        self.queues[id].host = host;
        true
    }

    /// The leaf is full: the fattest of its queues gives its first frame. `None`: that is the
    /// queue which is to grow, and it is alone; so the newcomer has to go.
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        id: u32,
        care: &Care,
    ) -> Option<Waiting> {
        let fattest = self.crowds[number as usize].fattest;
        let is_other =
            fattest != NONE && self.bytes_in(fattest, number) > self.queues[id].chain.bytes();
        let from = if is_other { fattest } else { id };
        care.aqm.overflow(&mut self.queues[from].aqm, now);
        if care.queue == Queueing::Fifo && care.sessions.is_none() {
            return None;
        }
        let (at, _) = self.pop_queue(now, node, from, care)?;
        self.store.take(at)
    }
}
