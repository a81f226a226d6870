//! Looks at what frames will need before they need it, so that the processor fetches it meanwhile.

use weir_packet::Label;

use super::Tree;
use super::node::Node;
use super::queues::Fetched;

impl Tree {
    /// Looks at what a frame that is about to be pushed will need. Called for all frames of a burst
    /// before the first is pushed, it lets the processor fetch all of it at once.
    #[inline]
    pub fn expect(&self, label: &Label) {
        if let Some(node) = self.nodes.get(label.leaf as usize) {
            self.queues.store.look_at_last(&node.chain);
        }
        if !self.cares.is_empty() {
            self.queues.expect(label);
            self.order.expect(label);
        }
    }

    /// Looks at what leaves will need that will probably be next but one and later, so that it is
    /// fetched while others are served: the nearer one is, the further on the way from the leaf to
    /// its frame. Each step looks at what an earlier one fetched. `next` is the leaf that is next,
    /// as far as can be guessed.
    #[inline]
    pub(super) fn look_ahead(&self, next: u32) {
        let behind = |node: &Node| self.nodes.get(node.share.next as usize);
        let Some((number, node)) = self.nodes.get(next as usize).and_then(|node| {
            let number = node.share.next;
            Some((number, behind(node)?))
        }) else {
            return;
        };
        if node.is_plain() {
            self.queues.store.look_at(&node.chain);
            std::hint::black_box(behind(node).map(|node| node.kind));
        } else {
            self.look_ahead_with_care(number);
        }
    }

    #[inline(never)]
    fn look_ahead_with_care(&self, mut number: u32) {
        for fetched in [Fetched::Queue, Fetched::Crowd, Fetched::Leaf] {
            let Some(node) = self.nodes.get(number as usize) else { return };
            self.queues.look_ahead(number, fetched);
            number = node.share.next;
        }
        std::hint::black_box(self.nodes.get(number as usize).map(|node| node.kind));
    }
}
