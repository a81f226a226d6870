//! The lists that a queue may be in: the ring of its leaf or host, those that are held, those that
//! wait for a place; one of them at a time.

use super::{Away, Queue, Queues};
use crate::tree::node::NONE;
use crate::tree::ring::Place;

impl Queues {
    /// A queue that is empty moves to another leaf, and forgets all of the old one.
    pub(super) fn settle(&mut self, id: u32, number: u32) {
        debug_assert!(self.queues[id].chain.is_empty(), "frames would change their leaf");
        self.quit(id);
        let queue = &mut self.queues[id];
        let timed = queue.timed;
        *queue = Queue { leaf: number, host: NONE, timed, ..Queue::default() };
    }

    /// A queue leaves whatever it is in, and its session is over.
    pub(super) fn quit(&mut self, id: u32) {
        self.detach(id);
        let Queue { leaf, admitted, .. } = self.queues[id];
        if admitted {
            self.end_session(leaf, id);
            self.gives_place(leaf);
        }
        self.gives_back(id);
    }

    /// A queue leaves whatever it is in.
    pub(super) fn detach(&mut self, id: u32) {
        let Queue { leaf, turn, chain, .. } = self.queues[id];
        let host = self.queues[id].turns_of();
        let crowd = &mut self.crowds[leaf as usize];
        match turn.place {
            Place::Off => return,
            Place::New | Place::Old | Place::Silent => return self.leave_ring(leaf, host, id),
            Place::Held => crowd.held.remove(&mut self.queues, id),
            Place::Waiting => crowd.waiting.remove(&mut self.queues, id),
        }
        crowd.away = crowd.away.saturating_sub(chain.frames());
        self.queues[id].turn.place = Place::Off;
    }

    pub(super) fn leave_ring(&mut self, leaf: u32, host: u32, id: u32) {
        if host == NONE {
            self.crowds[leaf as usize].ring.leave(&mut self.queues, id);
            return;
        }
        self.hosts[host].ring.leave(&mut self.queues, id);
        self.has_left_host(leaf, host, id);
    }

    /// A queue takes its turns with this host no longer; without any, the host has none either.
    pub(super) fn has_left_host(&mut self, leaf: u32, host: u32, id: u32) {
        self.queues[id].host = NONE;
        if self.hosts[host].ring.is_empty() {
            self.crowds[leaf as usize].ring.leave(&mut self.hosts, host);
            self.hosts.forget(host);
        }
    }

    /// A queue that was away takes its turns again, behind all others.
    pub(in crate::tree) fn resume(&mut self, id: u32) {
        self.detach(id);
        // sessions are queues of the leaf, not of its hosts
        let leaf = self.queues[id].leaf;
        self.crowds[leaf as usize].ring.resume(&mut self.queues, id);
    }

    /// A queue may not send for now.
    pub(in crate::tree) fn go_away(&mut self, id: u32, to: Away) {
        self.detach(id);
        let Queue { leaf, chain, .. } = self.queues[id];
        let crowd = &mut self.crowds[leaf as usize];
        let (list, place) = match to {
            Away::Held => (&mut crowd.held, Place::Held),
            Away::Waiting => (&mut crowd.waiting, Place::Waiting),
        };
        list.append(&mut self.queues, id);
        self.queues[id].turn.place = place;
        crowd.away += chain.frames();
    }
}
