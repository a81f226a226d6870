//! One node of the tree, as the packet path sees it: what its parent knows of it, its ceiling, and
//! where its own part lies.

use super::ceiling::Ceiling;
use super::interior::Share;

/// A node.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) share: Share,
    pub(crate) parent: u32,
    pub(crate) kind: Kind,
    /// Not before its ceiling lets it: it waits in the timer.
    pub(crate) is_held: bool,
    /// None where the parent's is as low.
    pub(crate) ceiling: Option<Ceiling>,
}

/// What a node is, and where its own part lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No node has this number.
    #[default]
    None,
    /// Its index among the interiors.
    Interior(u32),
    /// Its index among the leaves.
    Leaf(u32),
}
