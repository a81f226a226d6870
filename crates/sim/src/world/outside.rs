//! What is not of this world: a host or a box that is a real one. Whoever drives the world in real
//! time hands it the frames that came from there, and takes those that go there.

use weir_units::Instant;

use super::{Kind, NodeId, Place, World};
use crate::frames::Frame;

impl World {
    /// A node that somebody else plays, with as many ports as it is connected by.
    pub fn outside(&mut self) -> NodeId {
        self.node(Kind::Outside)
    }

    /// A frame comes from outside, now. One that is too long is lost.
    pub fn put(&mut self, node: NodeId, port: usize, bytes: &[u8]) {
        if let Some(frame) = self.frames.fill(bytes) {
            self.send(node, port, frame);
        }
    }

    /// Hands over all that has gone outside since this was called last: of which node, to which of
    /// its ports, when it came there, and its bytes.
    pub fn take_left(&mut self, mut each: impl FnMut(NodeId, usize, Instant, &[u8])) {
        for (to, at, frame) in self.left.drain(..) {
            each(to.node, to.port, at, self.frames.bytes(&frame));
            self.frames.give(frame);
        }
    }

    /// When something happens next, if nothing comes from outside.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.events.next_at()
    }

    pub(super) fn leaves(&mut self, to: Place, frame: Frame) {
        self.left.push((to, self.now, frame));
    }
}
