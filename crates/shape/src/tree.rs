//! The tree of classes: who sends next, and when. A node's children share what it may have
//! (interior.rs), no node passes its ceiling (ceiling.rs), and frames wait in chains (store.rs).
//!
//! Sending walks down from the link, at each node to the child that is next, and back up to account
//! for the frame. A node that has nothing to send, or may not send yet, is no child of its parent
//! for the time being; so whoever is reached may send, and the link is never idle while anyone may.

mod ceiling;
mod edit;
mod heap;
mod interior;
mod longest;
mod node;
mod order;
mod spec;
mod store;

use weir_packet::{Frame, Label, Reason};
use weir_units::limits::TREE_DEPTH;
use weir_units::{Bytes, Instant, Pace, Rate, Span};

use crate::Link;
use heap::{Entry, Heap};
use interior::{Interior, Next};
use longest::Longest;
use node::{Kind, Node};
use order::Order;
use store::Store;

pub use edit::Edit;
pub use spec::{NodeSpec, Spec};
pub use store::Waiting;

/// The number of the link itself.
pub const LINK: u32 = 0;

/// The tree of one leaving port.
#[derive(Debug)]
pub struct Tree {
    /// By number.
    nodes: Vec<Node>,
    /// The nodes with children, by number.
    interiors: Vec<Option<Box<Interior>>>,
    /// Nodes that wait for their ceiling, by when it lets them.
    timer: Heap,
    store: Store,
    longest: Longest,
    order: Order,
    line: Pace,
    link: Link,
    waiting: usize,
    /// Frames that may wait in all leaves together.
    most: usize,
}

/// The way from the link to a leaf: at each step whose child was next.
type Way = [Next; TREE_DEPTH + 2];

/// How late a caller may poll without the line losing time; also the burst a late caller can make.
const CATCH_UP: Span = Span::from_ms(1);

impl Tree {
    /// A tree of nothing, for frames of a pool with so many buffers, of which at most `most` wait
    /// here, and connections of a table with so many places; [`Tree::apply`] makes it one.
    #[must_use]
    pub fn new(buffers: usize, most: usize, flows: usize, now: Instant) -> Tree {
        Tree {
            nodes: Vec::new(),
            interiors: Vec::new(),
            timer: Heap::default(),
            store: Store::new(buffers),
            longest: Longest::with_capacity(0),
            order: Order::new(flows),
            line: Pace::new(Rate::ZERO, now),
            link: Link::default(),
            waiting: 0,
            most: most.max(1),
        }
    }

    /// The leaf that a frame of this label joins: the one its label names, unless frames of its
    /// connection wait in another.
    #[inline]
    #[must_use]
    pub fn leaf_of(&self, label: &Label) -> u32 {
        self.order.leaf(label)
    }

    /// Lets a frame wait in the leaf that its label names. Where too many wait in all leaves
    /// together, the first frame of the longest queue has to go and comes back.
    ///
    /// # Errors
    /// The leaf is full (or there is none of this number): the frame itself comes back.
    pub fn push(
        &mut self,
        now: Instant,
        frame: Frame,
        label: Label,
    ) -> Result<Option<Waiting>, (Frame, Reason)> {
        let has_place = self.store.has_place(&frame);
        let Some(node) = self.nodes.get_mut(label.leaf as usize) else {
            return Err((frame, Reason::QueueFull));
        };
        if node.kind != Kind::Leaf || !has_place || node.leaf.is_full(frame.len()) {
            return Err((frame, Reason::QueueFull));
        }
        let was_empty = node.leaf.chain.is_empty();
        self.store.push(&mut node.leaf.chain, now, frame, label);
        self.order.came(&label);
        self.longest.set(label.leaf, node.leaf.chain.frames());
        self.waiting += 1;
        if was_empty {
            self.wake(now, label.leaf);
        }
        Ok(if self.waiting > self.most { self.longest_pays() } else { None })
    }

    /// The longest queue gives its first frame. A leaf that is empty thereby stays a child of its
    /// parent until its turn comes.
    fn longest_pays(&mut self) -> Option<Waiting> {
        let leaf = self.longest.leaf()?;
        let chain = &mut self.nodes[leaf as usize].leaf.chain;
        let victim = self.store.pop(chain)?;
        self.order.left(victim.label.flow);
        self.longest.set(leaf, chain.frames());
        self.waiting -= 1;
        Some(victim)
    }

    /// Takes the frame that is next, if the line is free at `now` and somebody may send.
    pub fn pop(&mut self, now: Instant) -> Option<Waiting> {
        if self.waiting == 0 || !self.line.is_free(now) {
            return None;
        }
        self.let_go(now);
        let mut way = Way::default();
        let (waiting, depth, is_empty) = loop {
            let (leaf, depth) = self.descend(now, &mut way)?;
            let queue = &mut self.nodes[leaf as usize].leaf.chain;
            if let Some(waiting) = self.store.pop(queue) {
                self.longest.set(leaf, queue.frames());
                break (waiting, depth, queue.is_empty());
            }
            // it lost its last frame to others
            self.account(now, &way[..depth], Bytes::ZERO, true);
        };
        self.waiting -= 1;
        self.order.left(waiting.label.flow);
        let cost = self.link.cost(waiting.frame.len(), waiting.label.net_at);
        // a caller that polls late loses no time, up to a bound that keeps the burst small; and no
        // frame leaves before it came
        let start = self.line.free_at().max(waiting.since).max(now - CATCH_UP);
        self.line.send(start, cost);
        self.account(now, &way[..depth], cost, is_empty);
        Some(waiting)
    }

    /// From the link to the leaf that is next.
    #[inline]
    fn descend(&mut self, now: Instant, way: &mut Way) -> Option<(u32, usize)> {
        let mut at = LINK;
        for (depth, step) in way.iter_mut().enumerate() {
            match self.interiors[at as usize].as_mut() {
                None => return Some((at, depth)),
                Some(interior) => *step = interior.next(now, &mut self.nodes)?,
            }
            at = step.node;
        }
        None
    }

    /// From the leaf back to the link: everyone on the way has sent.
    #[inline]
    fn account(&mut self, now: Instant, way: &[Next], cost: Bytes, mut is_empty: bool) {
        for next in way.iter().rev() {
            let node = &mut self.nodes[next.node as usize];
            let Some(interior) = self.interiors[node.parent as usize].as_mut() else { return };
            let held = node.ceiling.as_mut().and_then(|c| c.send(now, cost.get()));
            // one that has nothing more to send finds out later whether it may
            if let Some(until) = held.filter(|_| !is_empty) {
                node.is_held = true;
                self.timer.push(Entry { key: until.ns(), node: next.node });
            }
            let stays = !is_empty && held.is_none();
            interior.sent(now, *next, &mut node.share, cost.get(), stays);
            is_empty = !interior.is_active();
        }
    }

    /// Nodes whose ceiling lets them again are children of their parents again.
    #[inline]
    fn let_go(&mut self, now: Instant) {
        while let Some(first) = self.timer.first().filter(|first| first.key <= now.ns()) {
            self.timer.pop();
            let was_held = std::mem::take(&mut self.nodes[first.node as usize].is_held);
            // an edit may have taken away everything that waited for this moment
            if was_held && self.has_something(first.node) {
                self.wake(now, first.node);
            }
        }
    }

    /// Whether frames wait in a leaf, or below a node.
    fn has_something(&self, number: u32) -> bool {
        match &self.interiors[number as usize] {
            Some(interior) => interior.is_active(),
            None => !self.nodes[number as usize].leaf.chain.is_empty(),
        }
    }

    /// A node has something to send, and so have all above it.
    #[inline]
    fn wake(&mut self, now: Instant, number: u32) {
        let mut at = number;
        while at != LINK {
            let parent = self.nodes[at as usize].parent;
            let was_active =
                self.interiors[parent as usize].as_ref().is_some_and(|i| i.is_active());
            if !self.wake_one(now, at) || was_active {
                return;
            }
            at = parent;
        }
    }

    /// A node that has something to send becomes a child of its parent, unless its ceiling forbids
    /// it.
    #[inline]
    fn wake_one(&mut self, now: Instant, number: u32) -> bool {
        let node = &mut self.nodes[number as usize];
        if node.is_held {
            return false;
        }
        if let Some(until) = node.ceiling.as_ref().and_then(|c| c.not_before(now)) {
            node.is_held = true;
            self.timer.push(Entry { key: until.ns(), node: number });
            return false;
        }
        if let Some(interior) = self.interiors[node.parent as usize].as_mut()
            && !node.share.is_active()
        {
            interior.wake(now, number, &mut node.share);
        }
        true
    }

    /// Changes what the line carries from now on.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.line.set_rate(rate, now);
    }

    /// When the next frame may leave, if none comes before; `None` while nothing waits, or the line
    /// carries nothing.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        if self.waiting == 0 || self.line.rate() == Rate::ZERO {
            return None;
        }
        let free = self.line.free_at();
        if self.interiors[LINK as usize].as_ref().is_some_and(|i| i.is_active()) {
            return Some(free);
        }
        self.timer.first().map(|first| free.max(Instant::from_ns(first.key)))
    }

    /// Bytes of memory that the nodes take, those of frames apart.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let nodes = self.nodes.len() * size_of::<Node>();
        let places = self.interiors.len() * size_of::<Option<Box<Interior>>>();
        let interiors = self.interiors.iter().flatten().map(|i| i.bytes());
        nodes + places + interiors.sum::<usize>() + self.timer.bytes() + self.longest.bytes()
    }

    /// How many frames wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.waiting
    }

    /// Whether nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}
