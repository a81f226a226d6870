//! A frame comes to a leaf with care: whose queue it joins, whether it may, and who has to make
//! room.

use weir_packet::{Frame, Label, Reason};
use weir_units::Instant;

use super::{Joins, Kept, Queue, Queues, STRAYS, Standing, calm, depth};
use crate::aqm::{Arriving, Decision};
use crate::tree::node::{NONE, Node};
use crate::tree::ring::{Member, Place};

impl Queues {
    /// Whether a frame of so many bytes may join a leaf with care, and how.
    #[inline]
    pub(crate) fn consider(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        kept: &Kept,
        bytes: usize,
        label: &Label,
    ) -> Result<Joins, Reason> {
        let care = &kept.care;
        let id = self.queue_of(kept, number, label);
        if let Some(sessions) = care.sessions
            && !self.may_speak(now, number, id, sessions, label)
        {
            return Err(Reason::NoSession);
        }
        let queue = &mut self.queues[id];
        let frame = Arriving { colour: label.colour, can_mark: care.ecn && label.ecn() != 0 };
        let behind = depth(&queue.chain);
        let fate = care.aqm.arrive(&mut queue.aqm, now, frame, behind, &mut self.random);
        if fate == Decision::Drop {
            return Err(Reason::Managed);
        }
        let (place, was_silent) = (queue.turn.place, queue.chain.is_empty());
        let may_be_calm = bytes <= calm::LARGEST && kept.by_flow && care.sessions.is_none();
        let is_calm = may_be_calm && queue.is_calm(now, bytes);
        let is_calm =
            is_calm && (kept.by_host || self.crowds[number as usize].lets_go_first(bytes));
        if place == Place::Off && !self.begins(now, id, number, kept, label, is_calm) {
            return Err(Reason::QueueFull);
        }
        if is_calm {
            self.spare(now, id, bytes, kept.link.cost(bytes, label.net_at));
        }
        if place == Place::Silent && was_silent {
            self.returns(number, id, i32::try_from(bytes).unwrap_or(i32::MAX), is_calm);
        }
        let mut lost = None;
        if node.is_full(bytes) {
            lost = Some(self.make_room(now, number, node, id, kept).ok_or(Reason::QueueFull)?);
        }
        Ok(Joins { id, mark: fate == Decision::Mark, lost })
    }

    /// Puts a frame into its queue, whatever the limits say.
    #[inline]
    pub(crate) fn join(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        joins: &Joins,
        frame: Frame,
        label: &Label,
    ) {
        let bytes = u16::try_from(frame.len()).unwrap_or(u16::MAX);
        let queue = &mut self.queues[joins.id];
        self.store.push(&mut queue.chain, now, frame, label, joins.mark);
        self.grew(number, node, joins.id, bytes);
    }

    /// A queue has one more frame, of so many bytes.
    #[inline]
    pub(super) fn grew(&mut self, number: u32, node: &mut Node, id: u32, size: u16) {
        let crowd = &mut self.crowds[number as usize];
        let queue = &mut self.queues[id];
        node.chain.count(size);
        if matches!(queue.turn.place, Place::Held | Place::Waiting) {
            crowd.away += 1;
        }
        let (host, bytes) = (queue.turns_of(), queue.chain.bytes());
        self.longest.grew(number, node);
        if host == NONE {
            crowd.fattest.notice(id, bytes);
        } else {
            self.hosts.notice(host, crowd, (id, bytes), i64::from(size));
        }
    }

    /// The bytes of a queue, if it is still in this leaf.
    pub(super) fn bytes_in(&self, id: u32, leaf: u32) -> u32 {
        let queue = &self.queues[id];
        if queue.leaf == leaf { queue.chain.bytes() } else { 0 }
    }

    /// Which queue a frame joins: that of its connection, that of its host's frames that have none,
    /// or that of the leaf.
    #[inline]
    pub(super) fn queue_of(&mut self, kept: &Kept, number: u32, label: &Label) -> u32 {
        let flow = label.flow.index;
        let is_apart = kept.by_flow && (label.is_answered() || !kept.has_places);
        let is_apart = is_apart && flow < self.strays;
        let id = if is_apart { flow } else { self.flows + number };
        let queue = &self.queues[id];
        let is_usual = queue.leaf == number
            && (is_apart || !kept.by_host)
            && queue.standing != Standing::Elsewhere
            && (queue.turns_of() == NONE || self.hosts.is(queue.turns_of(), label.turns_with()));
        if is_usual { id } else { self.queue_instead(kept, number, label, is_apart) }
    }

    /// The same where something has changed, or where there is no connection.
    #[inline(never)]
    fn queue_instead(&mut self, kept: &Kept, number: u32, label: &Label, is_apart: bool) -> u32 {
        let flow = label.flow.index;
        let stray = self.strays + label.turns_with() % STRAYS;
        let is_free =
            self.queues[stray].chain.is_empty() || !self.is_of_another(stray, number, label);
        let instead = if kept.by_host && is_free { stray } else { self.flows + number };
        let is_kept_out = is_apart && self.is_kept_out(flow, instead, label);
        let id = if is_apart && !is_kept_out { flow } else { instead };
        if is_apart {
            let queue = &mut self.queues[flow];
            match (is_kept_out, queue.standing) {
                (true, _) => queue.standing = Standing::Elsewhere,
                (false, Standing::Elsewhere) => queue.standing = Standing::Own,
                (false, _) => {}
            }
        }
        if self.is_of_another(id, number, label) {
            self.settle(id, number);
        }
        if self.queues[id].standing == Standing::WithNewHosts && !label.kind.is_of_new_host() {
            self.leaves_new_hosts(id, number, label);
        }
        id
    }

    /// Whether a connection has to do without its own queue: frames of another host wait there,
    /// whose connection had this place in the flow table before, and it would wait for the turns of
    /// that host; or frames of its own still wait where it went meanwhile.
    fn is_kept_out(&self, flow: u32, meanwhile: u32, label: &Label) -> bool {
        let queue = &self.queues[flow];
        let is_out =
            queue.standing == Standing::Elsewhere && !self.queues[meanwhile].chain.is_empty();
        is_out || !queue.chain.is_empty() && self.is_of_other_host(queue, label)
    }

    /// Whether a queue has its turns with another host. One that has them with the new hosts goes
    /// along when its host is new no longer, and one of a host that is new again stays with it.
    fn is_of_other_host(&self, queue: &Queue, label: &Label) -> bool {
        let host = queue.turns_of();
        host != NONE
            && queue.standing != Standing::WithNewHosts
            && ![label.turns_with(), label.host].iter().any(|&address| self.hosts.is(host, address))
    }

    /// Whether a queue is in another leaf, or has its turns with another host.
    fn is_of_another(&self, id: u32, number: u32, label: &Label) -> bool {
        let queue = &self.queues[id];
        queue.leaf != number || id < self.flows && self.is_of_other_host(queue, label)
    }

    /// Whether frames of a connection wait in a queue of its own.
    pub(crate) fn waits_apart(&self, label: &Label) -> bool {
        self.queues.get(label.flow.index).is_some_and(|queue| !queue.chain.is_empty())
    }

    /// A queue that has no turns begins to take them. `false`: there is no place for its host.
    #[inline(never)]
    pub(super) fn begins(
        &mut self,
        now: Instant,
        id: u32,
        number: u32,
        kept: &Kept,
        label: &Label,
        in_a_hurry: bool,
    ) -> bool {
        if self.is_ahead(now, id, kept) {
            return true;
        }
        let crowd = &mut self.crowds[number as usize];
        if !kept.by_host {
            crowd.ring.begin(&mut self.queues, id, in_a_hurry);
            return true;
        }
        // frames of no known connection that wait in the leaf's own queue are no host's
        let address = if id < self.flows { label.turns_with() } else { 0 };
        let Some(host) = self.hosts.find(number, address) else { return false };
        crowd.by_host = true;
        match self.hosts[host].turn().place {
            Place::Off => crowd.ring.begin(&mut self.hosts, host, in_a_hurry),
            // a small frame fits into whatever is left of a turn
            _ if in_a_hurry => crowd.ring.returns(&mut self.hosts, host, 1, true),
            _ => {}
        }
        self.hosts[host].ring.begin(&mut self.queues, id, in_a_hurry);
        let queue = &mut self.queues[id];
        queue.host = host;
        let is_with_new_hosts = id < self.strays && label.kind.is_of_new_host();
        queue.standing = if is_with_new_hosts { Standing::WithNewHosts } else { Standing::Own };
        true
    }

    /// The host of a queue that took turns with the new ones has turns of its own from now on. The
    /// queue keeps its frames and goes behind the others of its host; one without begins anew.
    #[inline(never)]
    fn leaves_new_hosts(&mut self, id: u32, number: u32, label: &Label) {
        let (old, bytes) = (self.queues[id].turns_of(), self.queues[id].chain.bytes());
        if old == NONE || self.hosts.is(old, label.host) {
            self.queues[id].standing = Standing::Own;
            return;
        }
        if bytes == 0 {
            self.detach(id);
            return;
        }
        let Some(host) = self.hosts.find(number, label.host) else { return };
        self.hosts.notice(old, &mut self.crowds[number as usize], (id, 0), -i64::from(bytes));
        self.detach(id);
        let crowd = &mut self.crowds[number as usize];
        if self.hosts[host].turn().place == Place::Off {
            crowd.ring.begin(&mut self.hosts, host, false);
        }
        self.hosts[host].ring.resume(&mut self.queues, id);
        self.hosts.notice(host, crowd, (id, bytes), i64::from(bytes));
        let queue = &mut self.queues[id];
        (queue.host, queue.standing) = (host, Standing::Own);
    }

    /// A queue that fell silent is to send again.
    #[inline(never)]
    fn returns(&mut self, number: u32, id: u32, bytes: i32, in_a_hurry: bool) {
        let ring = match self.queues[id].turns_of() {
            NONE => &mut self.crowds[number as usize].ring,
            host => {
                let ring = &mut self.crowds[number as usize].ring;
                ring.returns(&mut self.hosts, host, bytes, in_a_hurry);
                &mut self.hosts[host].ring
            }
        };
        ring.returns(&mut self.queues, id, bytes, in_a_hurry);
    }
}
