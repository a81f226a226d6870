//! The Plan: a policy for one link, flat and numbered, with nothing left to look up. The engine,
//! the kernel path and the explanations all read this and nothing else.

use std::sync::Arc;

use weir_units::{By, ByWay, Bytes, Layer, Prefix, Priority, Rate, Span};

use crate::class::Enforce;
use crate::each::Known;
use crate::leaf::LeafWords;
use crate::matching::When;
use crate::problem::Position;

/// A node's number: its index in [`Plan::nodes`].
pub type NodeId = u32;

/// A policy for one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The link's name.
    pub name: String,
    /// The interface towards the LAN.
    pub lan: String,
    /// The interface towards the WAN.
    pub wan: String,
    /// What a rate counts.
    pub counts: Layer,
    /// Bytes that a frame costs beyond that.
    pub overhead: i16,
    /// Whether the link's rate is found while traffic flows, by direction; the one written is the
    /// most.
    pub finds: ByWay<bool>,
    /// Whether it only observes: no frame is held.
    pub observes: bool,
    /// MACs of the LAN side behind which hosts are told apart by their addresses, sorted. All
    /// addresses behind any other MAC are one host's.
    pub routers: Vec<[u8; 6]>,
    /// All nodes; a parent comes before its children. Node 0 is the link itself.
    pub nodes: Vec<Node>,
    /// The words of leaves, each different set once; [`Node::words`] points here.
    pub words: Vec<LeafWords>,
    /// Who is asked whether a frame is theirs, in this order.
    pub asked: Vec<Asked>,
    /// Addresses of subscribers and their leaves.
    pub subscribers: Vec<(Prefix, NodeId)>,
    /// Whose MAC address it is on the LAN side, for addresses that are nobody's; sorted.
    pub subscriber_macs: Vec<([u8; 6], NodeId)>,
    /// The leaf for frames that are nobody's.
    pub rest: NodeId,
}

/// A class, or the leaf of a subscriber, or a leaf that was not written but is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its path: `/office/backup`; `/` for the link.
    pub path: Box<str>,
    /// What people call it, when that differs.
    pub name: Option<Box<str>>,
    /// Its parent's number; its own for the link.
    pub parent: NodeId,
    /// Levels below the link.
    pub depth: u8,
    /// Leaf or not.
    pub kind: NodeKind,
    /// Whether its weight was written, and does not follow from rates.
    pub says_weight: bool,
    /// How much it may have, per direction.
    pub shares: ByWay<Shares>,
    /// Who goes first within the shares.
    pub priority: Priority,
    /// Who holds it to its rates.
    pub enforce: Enforce,
    /// Its words' index in [`Plan::words`].
    pub words: u32,
    /// Where it is written.
    pub place: Position,
    /// The path it had before.
    pub was: Option<Box<str>>,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// It has children.
    Interior,
    /// Frames wait here.
    Leaf,
    /// It makes leaves at run time. Boxed, because a plan may have a million nodes, and few of them
    /// are this.
    Each(Box<EachPlan>),
}

/// How much a node may have in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Guaranteed.
    pub rate: Rate,
    /// Borrowing up to.
    pub ceil: Rate,
    /// Its part among its siblings.
    pub weight: u64,
    /// How much may leave at once; the scheduler's own choice when not said.
    pub burst: Option<Bytes>,
}

/// How a node makes leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EachPlan {
    /// What a leaf stands for.
    pub by: By,
    /// How many at most.
    pub count: u32,
    /// How long a silent one is kept.
    pub age: Span,
    /// What each may have.
    pub shares: ByWay<Shares>,
    /// Who is approved, where others have to ask.
    pub known: Option<Vec<Known>>,
    /// The leaf for those beyond the count.
    pub others: NodeId,
}

/// A class that is asked whether a frame is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The class.
    pub node: NodeId,
    /// The class among [`Plan::asked`] that must say yes as well.
    pub within: Option<u32>,
    /// Where its frames go.
    pub target: Target,
    /// Its rules; any one is enough.
    pub rules: Vec<Rule>,
}

/// Where the frames of an asked class go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To this leaf.
    Leaf(NodeId),
    /// To a leaf that this node makes.
    Each(NodeId),
    /// To the subscriber who has the address.
    Subscriber,
}

/// One line of `match`, or the table of subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What must hold; nothing of it for the table of subscribers.
    pub when: When,
    /// The line as written; a line that is several rules is the text of each.
    pub text: Arc<str>,
    /// Where.
    pub place: Position,
}

impl Plan {
    /// Whether any host is a subscriber's.
    #[must_use]
    pub(crate) fn has_subscribers(&self) -> bool {
        !self.subscribers.is_empty() || !self.subscriber_macs.is_empty()
    }

    /// The number of the node with this path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<NodeId> {
        let at = self.nodes.iter().position(|n| &*n.path == path)?;
        NodeId::try_from(at).ok()
    }

    /// A node by its number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// The node and all above it, the link last.
    pub fn way_up(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        let mut next = Some(id);
        std::iter::from_fn(move || {
            let node = self.nodes.get(next? as usize)?;
            next = (node.parent != next?).then_some(node.parent);
            Some(node)
        })
    }

    /// The words of a leaf.
    #[must_use]
    pub fn words_of(&self, id: NodeId) -> &LeafWords {
        &self.words[self.node(id).words as usize]
    }
}
