//! The tree of classes: who sends next, and when. A node's children share what it may have
//! (interior.rs), no node passes its ceiling (ceiling.rs), and frames wait in chains (store.rs).
//!
//! Sending walks down from the link, at each node to the child that is next, and back up to account
//! for the frame. A node that has nothing to send, or may not send yet, is no child of its parent
//! for the time being; so whoever is reached may send, and the link is never idle while anyone may.

mod ceiling;
mod heap;
mod interior;
mod node;
mod spec;
mod store;

use weir_packet::{Frame, Label, Reason};
use weir_units::limits::TREE_DEPTH;
use weir_units::{Bytes, Instant, Pace, Rate};

use crate::{Link, Waiting};
use ceiling::Ceiling;
use heap::{Entry, Heap};
use interior::{Child, Interior, Next};
use node::{Kind, Node};
use store::{Chain, Store};

pub use spec::{NodeSpec, Spec};

/// The tree of one leaving port.
#[derive(Debug)]
pub struct Tree {
    /// By number.
    nodes: Vec<Node>,
    interiors: Vec<Interior>,
    leaves: Vec<Leaf>,
    /// Nodes that wait for their ceiling, by when it lets them.
    timer: Heap,
    store: Store,
    line: Pace,
    link: Link,
    waiting: usize,
}

/// A node where frames wait.
#[derive(Clone, Copy, Debug, Default)]
struct Leaf {
    chain: Chain,
    limit: u32,
}

/// The way from the link to a leaf: at each step whose child was next.
type Way = [Next; TREE_DEPTH + 2];

/// How late a caller may poll without the line losing time.
const CATCH_UP: weir_units::Span = weir_units::Span::from_ms(1);

impl Tree {
    /// A tree without frames, for frames of a pool with so many buffers.
    #[must_use]
    pub fn new(spec: &Spec, buffers: usize, now: Instant) -> Tree {
        let numbers = spec.nodes.iter().map(|n| n.number as usize + 1).max().unwrap_or(1);
        let mut tree = Tree {
            nodes: (0..numbers).map(|_| Node::default()).collect(),
            interiors: Vec::new(),
            leaves: Vec::new(),
            timer: Heap::with_capacity(spec.nodes.len()),
            store: Store::new(buffers),
            line: Pace::new(spec.rate, now),
            link: spec.link,
            waiting: 0,
        };
        tree.plant(spec);
        tree
    }

    fn plant(&mut self, spec: &Spec) {
        // children by parent, in the order of the spec
        let mut order: Vec<&NodeSpec> = spec.nodes.iter().collect();
        order.sort_by_key(|n| n.parent);
        let below = |number: u32| {
            let from = order.partition_point(|n| n.parent < number);
            let to = order.partition_point(|n| n.parent <= number);
            &order[from..to]
        };
        let mut ceilings = vec![spec.rate; self.nodes.len()];
        for told in &spec.nodes {
            ceilings[told.number as usize] = told.ceil.min(ceilings[told.parent as usize]);
        }
        self.interior(0, below(0), spec.rate);
        for told in &spec.nodes {
            let above = ceilings[told.parent as usize];
            let node = &mut self.nodes[told.number as usize];
            node.parent = told.parent;
            node.ceiling = (told.ceil < above).then(|| Ceiling::new(told.ceil, told.burst));
            if told.is_leaf {
                let at = u32::try_from(self.leaves.len()).unwrap_or(u32::MAX);
                node.kind = Kind::Leaf(at);
                self.leaves.push(Leaf { chain: Chain::default(), limit: told.limit });
            } else {
                self.interior(told.number, below(told.number), told.rate);
            }
        }
    }

    fn interior(&mut self, number: u32, children: &[&NodeSpec], rate: Rate) {
        let told: Vec<Child> = children
            .iter()
            .map(|c| Child { weight: c.weight, priority: c.priority, rate: c.rate })
            .collect();
        let (interior, shares) = Interior::new(&told, rate);
        for (child, share) in children.iter().zip(shares) {
            self.nodes[child.number as usize].share = share;
        }
        let at = u32::try_from(self.interiors.len()).unwrap_or(u32::MAX);
        self.nodes[number as usize].kind = Kind::Interior(at);
        self.interiors.push(interior);
    }

    /// Lets a frame wait in the leaf that its label names.
    ///
    /// # Errors
    /// The leaf is full (or there is none of this number): the frame comes back.
    pub fn push(
        &mut self,
        now: Instant,
        frame: Frame,
        label: Label,
    ) -> Result<(), (Frame, Reason)> {
        let kind = self.nodes.get(label.leaf as usize).map_or(Kind::None, |n| n.kind);
        let Kind::Leaf(at) = kind else { return Err((frame, Reason::QueueFull)) };
        let leaf = &mut self.leaves[at as usize];
        if leaf.chain.len() >= leaf.limit || !self.store.has_place(&frame) {
            return Err((frame, Reason::QueueFull));
        }
        let was_empty = leaf.chain.is_empty();
        self.store.push(&mut leaf.chain, now, frame, label);
        self.waiting += 1;
        if was_empty {
            self.wake(now, label.leaf);
        }
        Ok(())
    }

    /// Takes the frame that is next, if the line is free at `now` and somebody may send.
    pub fn pop(&mut self, now: Instant) -> Option<Waiting> {
        if self.waiting == 0 || !self.line.is_free(now) {
            return None;
        }
        self.let_go(now);
        let mut way = Way::default();
        let (leaf, depth) = self.descend(now, &mut way)?;
        let waiting = self.store.pop(&mut self.leaves[leaf as usize].chain)?;
        self.waiting -= 1;
        let cost = self.link.cost(waiting.frame.len(), waiting.label.net_at);
        let start = self.line.free_at().max(waiting.since).max(now - CATCH_UP);
        self.line.send(start, cost);
        let is_empty = self.leaves[leaf as usize].chain.is_empty();
        self.account(now, &way[..depth], cost, is_empty);
        Some(waiting)
    }

    /// From the link to the leaf that is next.
    #[inline]
    fn descend(&mut self, now: Instant, way: &mut Way) -> Option<(u32, usize)> {
        let mut at = 0;
        for (depth, step) in way.iter_mut().enumerate() {
            match self.nodes[at as usize].kind {
                Kind::Leaf(leaf) => return Some((leaf, depth)),
                Kind::Interior(interior) => {
                    *step = self.interiors[interior as usize].next(now, &mut self.nodes)?;
                    at = step.node;
                }
                Kind::None => return None,
            }
        }
        None
    }

    /// From the leaf back to the link: everyone on the way has sent.
    #[inline]
    fn account(&mut self, now: Instant, way: &[Next], cost: Bytes, mut is_empty: bool) {
        for next in way.iter().rev() {
            let parent = self.nodes[next.node as usize].parent;
            let Kind::Interior(above) = self.nodes[parent as usize].kind else { return };
            let interior = &mut self.interiors[above as usize];
            let node = &mut self.nodes[next.node as usize];
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
            self.nodes[first.node as usize].is_held = false;
            self.wake(now, first.node);
        }
    }

    /// A node has something to send, and so have all above it.
    #[inline]
    fn wake(&mut self, now: Instant, number: u32) {
        let mut at = number;
        while at != 0 {
            let node = &mut self.nodes[at as usize];
            if node.is_held {
                return;
            }
            if let Some(until) = node.ceiling.as_ref().and_then(|c| c.not_before(now)) {
                node.is_held = true;
                self.timer.push(Entry { key: until.ns(), node: at });
                return;
            }
            let parent = node.parent;
            let Kind::Interior(above) = self.nodes[parent as usize].kind else { return };
            let interior = &mut self.interiors[above as usize];
            let was_active = interior.is_active();
            interior.wake(now, at, &mut self.nodes[at as usize].share);
            if was_active {
                return;
            }
            at = parent;
        }
    }

    /// When the next frame may leave, if none comes before; `None` while nothing waits.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        if self.waiting == 0 {
            return None;
        }
        let free = self.line.free_at();
        if self.interiors[0].is_active() {
            return Some(free);
        }
        self.timer.first().map(|first| free.max(Instant::from_ns(first.key)))
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
