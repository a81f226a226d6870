//! What the tree is told, as plain data: the engine fills it from a plan, tests by hand.

use weir_units::{Bytes, Priority, Rate};

use super::care::Care;
use crate::FrameCost;

/// A whole tree for one leaving port.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// What the line carries, and what a frame costs on it.
    pub rate: Rate,
    /// What a frame costs.
    pub link: FrameCost,
    /// The nodes below the link; a parent comes before its children.
    pub nodes: Vec<NodeSpec>,
    /// How the frames of leaves wait, by the numbers that nodes name. A number that is not here
    /// stands for a plain queue.
    pub cares: Vec<Care>,
    /// Whether [`super::Tree::limit`] may narrow nodes while traffic flows: that takes 32 bytes a
    /// node.
    pub takes_limits: bool,
}

/// One node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its number, by which labels name leaves; 0 is the link.
    pub number: u32,
    /// Its parent's number.
    pub parent: u32,
    /// Whether frames wait here; else it has children, now or later.
    pub is_leaf: bool,
    /// Guaranteed.
    pub rate: Rate,
    /// At most.
    pub ceil: Rate,
    /// Its part among its siblings, above zero.
    pub weight: u64,
    /// Among those within their shares.
    pub priority: Priority,
    /// How much may leave at once above the ceiling; `None`: two frames or a millisecond.
    pub burst: Option<Bytes>,
    /// Frames that may wait in a leaf.
    pub frames: u32,
    /// Bytes that may wait in a leaf.
    pub bytes: Bytes,
    /// How they wait, by its place among the cares of the tree.
    pub care: u16,
}

impl NodeSpec {
    /// A node that may have everything, to be narrowed.
    #[must_use]
    pub const fn new(number: u32, parent: u32, is_leaf: bool) -> NodeSpec {
        NodeSpec {
            number,
            parent,
            is_leaf,
            rate: Rate::ZERO,
            ceil: Rate::MAX,
            weight: 1,
            priority: Priority::NORMAL,
            burst: None,
            frames: 1_000,
            bytes: Bytes::new(u64::MAX >> 1),
            care: 0,
        }
    }
}

impl Spec {
    pub(crate) fn care(&self, node: &NodeSpec) -> Care {
        self.cares.get(usize::from(node.care)).copied().unwrap_or_default()
    }
}
