//! A connection that obeys other rules leaves behind what waits of it: newer frames wait elsewhere
//! now, and would arrive before. Where it has a queue of its own, that is emptied at once; else its
//! frames are dropped when they are next in their leaf, at no cost to anyone. The frames of a leaf
//! that is gone are left behind as well if they are too many to be moved while packets wait.

use weir_packet::{Flow, Label};
use weir_units::Instant;

use super::Tree;
use super::node::NONE;
use super::store::{Chain, Waiting};

impl Tree {
    /// The rules have changed: a connection of which frames wait may be another leaf's.
    pub fn has_new_rules(&mut self) {
        self.order.has_new_rules();
    }

    /// Whether frames of a connection wait, or of one that had its place in the flow table before.
    #[must_use]
    pub fn has_frames_of(&self, flow: Flow) -> bool {
        self.order.waits(flow)
    }

    /// A frame of a connection that has left for another leaf, to be given back. [`Tree::next_at`]
    /// says that there is something to do while there are any.
    #[inline]
    pub fn take_left_behind(&mut self) -> Option<Waiting> {
        if self.left_behind.is_empty() {
            return None;
        }
        let (at, _) = self.queues.store.pop(&mut self.left_behind)?;
        self.take_one(at)
    }

    /// Whether there are such frames.
    #[must_use]
    pub const fn has_left_behind(&self) -> bool {
        !self.left_behind.is_empty()
    }

    /// A connection goes to the leaf of this label from now on: its own queue is emptied.
    pub(super) fn parts(&mut self, now: Instant, label: &Label) {
        let emptied = self.queues.emptied(label.flow.index, &mut self.nodes);
        let Some((leaf, chain)) = emptied else { return };
        self.waiting -= chain.frames() as usize;
        self.queues.store.splice(&mut self.left_behind, chain);
        // a session that waited may have its place now
        self.wake_anew(now, leaf);
    }

    /// All frames of a leaf that is gone have to go: they are too many to be moved. Connections
    /// that come back obey whatever rules there are.
    pub(super) fn leave_behind(&mut self, chain: Chain) {
        self.waiting -= chain.frames() as usize;
        self.queues.store.splice(&mut self.left_behind, chain);
        self.order.has_new_rules();
    }

    /// What waits in a leaf that is gone, without frames that are to be dropped.
    pub(super) fn without_left_behind(&mut self, mut chain: Chain) -> Chain {
        if !self.order.has_parted() {
            return chain;
        }
        let mut kept = Chain::default();
        while let Some((at, _)) = self.queues.store.pop(&mut chain) {
            if !self.leaves_behind(at) {
                self.queues.store.append_one(&mut kept, at);
            }
        }
        kept
    }

    /// Whether the frame that is next is to be dropped instead of being sent.
    #[inline(never)]
    pub(super) fn leaves_behind(&mut self, at: u32) -> bool {
        if at == NONE {
            return false;
        }
        let sign = self.queues.store.sign(at);
        let Some(flow) = self.queues.store.label(at).map(|label| label.flow) else { return false };
        if !self.order.is_left_behind(flow, sign) {
            return false;
        }
        self.queues.store.append_one(&mut self.left_behind, at);
        self.waiting -= 1;
        true
    }
}
