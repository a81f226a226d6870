//! One node of the tree, as the packet path sees it: what its parent knows of it, its ceiling, and
//! its queue if it is a leaf.

use super::ceiling::Ceiling;
use super::interior::Share;
use super::store::Chain;

/// A node; its number is its place in the tree's table.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) share: Share,
    pub(crate) parent: u32,
    pub(crate) kind: Kind,
    /// Its ceiling does not let it send yet: it waits in the timer.
    pub(crate) is_held: bool,
    /// None where the parent's is as low.
    pub(crate) ceiling: Option<Ceiling>,
    pub(crate) leaf: Leaf,
}

/// What a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No node has this number.
    #[default]
    None,
    /// It has children.
    Interior,
    /// Frames wait here.
    Leaf,
}

/// The queue of a leaf.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaf {
    pub(crate) chain: Chain,
    pub(crate) frames: u32,
    pub(crate) bytes: u64,
}

impl Leaf {
    /// Whether one more frame is too many.
    #[inline]
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        self.chain.frames() >= self.frames || self.chain.bytes() + bytes as u64 > self.bytes
    }
}
