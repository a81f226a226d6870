//! The tree as the caller says it, a flat list, and as the allocators keep it: nodes that have
//! children, and leaves, each kind numbered level by level, so that the children of a node lie side
//! by side.

use std::fmt;

use weir_units::{Rate, limits};

/// The place of the link in the list.
pub const LINK: u32 = 0;

/// A node of the tree as the caller says it. The first is the link, and its peak the rate that is
/// shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where its parent stands in the list: before it.
    pub parent: u32,
    /// Its part beside its siblings, from 1 to `limits::SHARE_WEIGHT`.
    pub weight: u32,
    /// What it has in any case, if it wants as much.
    pub floor: Rate,
    /// What it has at most.
    pub peak: Rate,
    /// Whether packets are of it: it has no children then.
    pub is_leaf: bool,
    /// Whether it is only room for a leaf that may join.
    pub is_spare: bool,
}

impl Node {
    /// The link: what is shared.
    #[must_use]
    pub const fn link(rate: Rate) -> Node {
        Node { peak: rate, ..Node::inner(LINK, 1) }
    }

    /// A node with children.
    #[must_use]
    pub const fn inner(parent: u32, weight: u32) -> Node {
        Node { is_leaf: false, ..Node::leaf(parent, weight) }
    }

    /// A leaf.
    #[must_use]
    pub const fn leaf(parent: u32, weight: u32) -> Node {
        let (floor, peak) = (Rate::ZERO, Rate::MAX);
        Node { parent, weight, floor, peak, is_leaf: true, is_spare: false }
    }

    /// Room for a leaf that joins later.
    #[must_use]
    pub const fn spare(parent: u32) -> Node {
        Node { is_spare: true, ..Node::leaf(parent, 1) }
    }
}

/// Where a node has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The so-manieth node with children; 0 is the link.
    Inner(u32),
    /// The so-manieth leaf.
    Leaf(u32),
}

/// Where each node of the list has gone.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<Place>);

impl Places {
    /// Where the nodes of this list go, whoever shares among them.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn new(nodes: &[Node]) -> Result<Places, Unfit> {
        Ok(Layout::new(nodes)?.places)
    }

    /// The place of a node of the list; the link's for one that is not in it.
    #[must_use]
    pub fn of(&self, node: u32) -> Place {
        self.0.get(node as usize).copied().unwrap_or(Place::Inner(0))
    }

    /// The number of a leaf of the list; none for a node with children.
    #[must_use]
    pub fn leaf(&self, node: u32) -> Option<u32> {
        match self.0.get(node as usize)? {
            Place::Leaf(leaf) => Some(*leaf),
            Place::Inner(_) => None,
        }
    }

    /// All of them, in the order of the list.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Place> + '_ {
        self.0.iter().copied()
    }
}

/// Why a list is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is no link.
    Empty,
    /// The parent of this node does not stand before it, or is a leaf.
    Parent(u32),
    /// This node is too far below the link.
    Deep(u32),
    /// There are too many nodes.
    Many,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Empty => write!(f, "the tree has no link"),
            Unfit::Parent(node) => {
                write!(f, "the parent of node {node} is no node with children before it")
            }
            Unfit::Deep(node) => {
                let most = limits::TREE_DEPTH;
                write!(f, "node {node} is below the {most} levels that a tree has")
            }
            Unfit::Many => write!(f, "the tree has more than {} nodes", limits::SHARE_NODES),
        }
    }
}

impl std::error::Error for Unfit {}

/// The order in which the allocators keep a tree.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Nodes with children, as places in the list; the link first, children side by side.
    pub(crate) inner: Vec<u32>,
    /// Leaves, children side by side, in the order of their parents.
    pub(crate) leaves: Vec<u32>,
    pub(crate) places: Places,
}

impl Layout {
    /// # Errors
    /// The list is no tree.
    pub(crate) fn new(nodes: &[Node]) -> Result<Layout, Unfit> {
        if nodes.is_empty() || nodes[0].is_leaf {
            return Err(Unfit::Empty);
        }
        let Some(count) = u32::try_from(nodes.len()).ok().filter(|&n| n <= limits::SHARE_NODES)
        else {
            return Err(Unfit::Many);
        };
        let mut depth = vec![0_u8; nodes.len()];
        for number in 1..count {
            let parent = nodes[number as usize].parent;
            if parent >= number || nodes[parent as usize].is_leaf {
                return Err(Unfit::Parent(number));
            }
            depth[number as usize] = depth[parent as usize] + 1;
            // a class on the last level may have leaves of its own
            let most = limits::TREE_DEPTH + usize::from(nodes[number as usize].is_leaf);
            if usize::from(depth[number as usize]) > most {
                return Err(Unfit::Deep(number));
            }
        }
        let mut places = vec![Place::Inner(0); nodes.len()];
        let mut inner = vec![LINK];
        // level by level; within a level in the order of the parents
        for level in 1..=limits::TREE_DEPTH {
            let here = |at: &u32| usize::from(depth[*at as usize]) == level;
            let mut level: Vec<u32> =
                (1..count).filter(here).filter(|&at| !nodes[at as usize].is_leaf).collect();
            level.sort_by_key(|&at| places[nodes[at as usize].parent as usize]);
            for at in level {
                places[at as usize] = Place::Inner(number(inner.len()));
                inner.push(at);
            }
        }
        let mut leaves: Vec<u32> = (1..count).filter(|&at| nodes[at as usize].is_leaf).collect();
        leaves.sort_by_key(|&at| places[nodes[at as usize].parent as usize]);
        for (to, &at) in leaves.iter().enumerate() {
            places[at as usize] = Place::Leaf(number(to));
        }
        Ok(Layout { inner, leaves, places: Places(places) })
    }

    /// The place of a node's parent among the nodes with children.
    pub(crate) fn parent(&self, nodes: &[Node], at: u32) -> u32 {
        match self.places.of(nodes[at as usize].parent) {
            Place::Inner(parent) => parent,
            Place::Leaf(_) => 0,
        }
    }
}

/// A place in a table that has fewer than 2^32.
pub(crate) fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_lie_side_by_side() {
        // link: a (a1, a2), l, b (b1); written depth first
        let (a, b) = (1, 5);
        let nodes = [
            Node::link(Rate::from_bps(1_000)),
            Node::inner(LINK, 1),
            Node::leaf(a, 1),
            Node::leaf(a, 1),
            Node::leaf(LINK, 1),
            Node::inner(LINK, 1),
            Node::leaf(b, 1),
        ];
        let layout = Layout::new(&nodes).unwrap();
        assert_eq!(layout.inner, [LINK, a, b]);
        assert_eq!(layout.leaves, [4, 2, 3, 6]);
        assert_eq!(layout.places.of(3), Place::Leaf(2));
        assert!(Places::new(&nodes).unwrap().iter().eq(layout.places.iter()));
        assert_eq!(layout.places.leaf(a), None);
    }

    #[test]
    fn what_is_no_tree_is_named() {
        let link = Node::link(Rate::MAX);
        assert_eq!(Layout::new(&[]).err(), Some(Unfit::Empty));
        assert_eq!(Layout::new(&[link, Node::leaf(1, 1)]).err(), Some(Unfit::Parent(1)));
        let leaf = Node::leaf(LINK, 1);
        assert_eq!(Layout::new(&[link, leaf, Node::leaf(1, 1)]).err(), Some(Unfit::Parent(2)));
        let chain: Vec<Node> =
            [link].into_iter().chain((0..9).map(|parent| Node::inner(parent, 1))).collect();
        assert_eq!(Layout::new(&chain).err(), Some(Unfit::Deep(9)));
    }
}
