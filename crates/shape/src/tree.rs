//! The tree of classes: who sends next, and when. A node's children share what it may have
//! (interior.rs), no node passes its ceiling (ceiling.rs), and frames wait in chains (store.rs).
//!
//! Sending walks down from the link, at each node to the child that is next, and back up to account
//! for the frame. A node that has nothing to send, or may not send yet, is no child of its parent
//! for the time being; so whoever is reached may send, and the link is never idle while anyone may.

mod calendar;
mod care;
mod ceiling;
mod edit;
mod heap;
mod hosts;
mod interior;
mod kinds;
mod longest;
mod node;
mod order;
mod owed;
mod queues;
mod ring;
mod sessions;
mod spec;
mod split;
mod store;

use weir_packet::{Frame, Label, Reason};
use weir_units::limits::{BURST_FRAMES, TREE_DEPTH};
use weir_units::{Bytes, Instant, Pace, Rate, Span};

use crate::Link;
use ceiling::{Ceiling, Clock};
use heap::{Entry, Heap};
use interior::{Interior, Next};
use node::{Flags, Kind, Node};
use order::Order;
use owed::Due;
use queues::{Came, Queues};

pub use care::{Care, Next as NextSession, Queueing, Sessions};
pub use edit::Edit;
pub use spec::{NodeSpec, Spec};
pub use store::Waiting;

/// The number of the link itself.
pub const LINK: u32 = 0;

/// The tree of one leaving port.
#[derive(Debug)]
pub struct Tree {
    /// By number, as everything here: what every frame touches.
    nodes: Vec<Node>,
    /// What nodes with children have.
    interiors: Vec<Interior>,
    /// What nodes with a ceiling of their own have.
    ceilings: Vec<(Ceiling, Clock)>,
    /// What nodes have whose guarantee is more than their weight gives.
    dues: Vec<Due>,
    /// Nodes that wait for their ceiling, by when it lets them.
    timer: Heap,
    queues: Queues,
    order: Order,
    /// The way from the link to the leaf that is next: at each step whose child that is.
    way: [Next; WAY],
    line: Pace,
    link: Link,
    waiting: usize,
    /// Frames that may wait in all leaves together.
    most: usize,
}

/// Steps that a way may have; a power of two, so that no place is outside.
const WAY: usize = (TREE_DEPTH + 2).next_power_of_two();

/// Leaves that are looked ahead.
const AHEAD: usize = 1;

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
            ceilings: Vec::new(),
            dues: Vec::new(),
            timer: Heap::default(),
            queues: Queues::new(buffers, flows),
            order: Order::new(flows),
            way: Default::default(),
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

    /// Looks at what a frame that is about to be pushed will need. Called for all frames of a burst
    /// before the first is pushed, it lets the processor fetch all of it at once.
    #[inline]
    pub fn expect(&self, label: &Label) {
        if let Some(node) = self.nodes.get(label.leaf as usize) {
            std::hint::black_box(node.kind);
        }
        self.queues.expect(label);
    }

    /// Lets a frame wait in the leaf that its label names. Where too many wait in the leaf, or in
    /// all leaves together, the first frame of its longest queue has to go and comes back.
    ///
    /// # Errors
    /// The leaf does not take it (or there is none of this number): the frame itself comes back.
    pub fn push(
        &mut self,
        now: Instant,
        frame: Frame,
        label: Label,
    ) -> Result<Option<(Waiting, Reason)>, (Frame, Reason)> {
        let has_place = self.queues.store.has_place(&frame);
        let number = label.leaf;
        let Some(node) = self.nodes.get_mut(number as usize).filter(|_| has_place) else {
            return Err((frame, Reason::QueueFull));
        };
        let (lost, was_silent) = match node.kind {
            Kind::Plain if !node.is_full(frame.len()) => {
                self.queues.push(now, number, node, Came { frame, label });
                (None, node.chain.frames() == 1)
            }
            Kind::WithCare => {
                let was_silent = self.queues.ready(number, node) == 0;
                let came = Came { frame, label };
                let lost = self.queues.push_with_care(now, number, node, came)?;
                (lost, was_silent && self.queues.ready(number, node) > 0)
            }
            _ => return Err((frame, Reason::QueueFull)),
        };
        if self.waiting == 0 {
            // the line was idle: no frame leaves before it came
            self.line.wait(now);
        }
        self.order.came(&label);
        self.waiting += 1;
        if was_silent {
            self.wake(now, number);
        }
        if lost.is_some() || self.waiting > self.most {
            return Ok(self.lose(now, &label, lost));
        }
        Ok(None)
    }

    /// Counts the frame that had to go; where there is none yet, that is one of the longest queue.
    #[cold]
    fn lose(
        &mut self,
        now: Instant,
        joined: &Label,
        lost: Option<(Waiting, Reason)>,
    ) -> Option<(Waiting, Reason)> {
        let longest = |tree: &mut Tree| {
            let waiting = tree.queues.longest_pays(now, &mut tree.nodes, joined)?;
            Some((waiting, Reason::Crowded))
        };
        let lost = lost.or_else(|| longest(self))?;
        self.order.left(lost.0.label.flow);
        self.waiting -= 1;
        Some(lost)
    }

    /// Takes the frame that is next, if the line is free at `now` and somebody may send.
    pub fn pop(&mut self, now: Instant) -> Option<Waiting> {
        let mut place = [0];
        let chosen = self.choose(now, &mut place);
        place[..chosen].first().and_then(|&at| self.take(at))
    }

    /// Takes up to `most` frames, as [`Tree::pop`] would one after the other, and hands them out.
    pub fn pop_burst(&mut self, now: Instant, most: usize, mut out: impl FnMut(Waiting)) {
        let mut places = [0; BURST_FRAMES];
        let chosen = self.choose(now, &mut places[..most.min(BURST_FRAMES)]);
        let places = &places[..chosen];
        places.iter().for_each(|&at| self.queues.store.expect(at));
        places.iter().filter_map(|&at| self.take(at)).for_each(&mut out);
    }

    /// The places of the frames that leave now, as many as `places` has room for; everyone on their
    /// ways has sent them. Returns how many.
    fn choose(&mut self, now: Instant, places: &mut [u32]) -> usize {
        if self.waiting == 0 || !self.line.is_free(now) {
            return 0;
        }
        // whoever is held from now on is held beyond now, so it is enough to look once
        self.let_go(now);
        // a caller that polls late loses no time, up to a bound that keeps the burst small
        let from = now - CATCH_UP;
        self.line.wait(from);
        let room = self.line.room(now);
        let (mut sent, mut chosen) = (Bytes::ZERO, 0);
        for place in places {
            if sent >= room {
                break;
            }
            let Some((at, cost)) = self.choose_one(now) else { break };
            *place = at;
            sent += cost;
            chosen += 1;
        }
        self.line.send(from, sent);
        chosen
    }

    /// The place of the frame that is next, and what it costs.
    #[inline]
    fn choose_one(&mut self, now: Instant) -> Option<(u32, Bytes)> {
        let link = self.link;
        loop {
            let (leaf, depth) = self.descend(now)?;
            let node = &mut self.nodes[leaf as usize];
            let parent = node.parent;
            let before = node.chain.frames();
            let (popped, is_empty) = if node.is_plain() {
                (self.queues.store.pop(&mut node.chain), node.chain.is_empty())
            } else {
                let popped = self.queues.pop(now, leaf, node, |frame| frame.cost(link).get());
                (popped, self.queues.ready(leaf, node) == 0)
            };
            self.waiting -= (before - node.chain.frames()) as usize;
            if let Some((at, known)) = popped {
                self.look_ahead(parent);
                let cost = known.cost(link);
                self.account(now, depth, cost, is_empty);
                return Some((at, cost));
            }
            // it lost its last frame to others, or to queue management
            self.account(now, depth, Bytes::ZERO, true);
        }
    }

    /// A frame that queue management dropped since the last call, to be given back.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<Waiting> {
        let waiting = self.queues.take_dropped()?;
        self.order.left(waiting.label.flow);
        Some(waiting)
    }

    fn take(&mut self, at: u32) -> Option<Waiting> {
        let waiting = self.queues.store.take(at)?;
        self.order.left(waiting.label.flow);
        Some(waiting)
    }

    /// From the link to the leaf that is next.
    #[inline]
    fn descend(&mut self, now: Instant) -> Option<(u32, usize)> {
        let (mut at, mut depth) = (LINK, 0);
        while self.nodes[at as usize].kind == Kind::Interior {
            let next = self.interiors[at as usize].next(now, &mut self.nodes, &self.dues)?;
            self.way[depth % WAY] = next;
            at = next.number;
            depth += 1;
        }
        Some((at, depth))
    }

    /// Looks at what is known of a frame that will probably be next but one, and at the leaf behind
    /// it: they are fetched while others are served.
    #[inline]
    fn look_ahead(&self, parent: u32) {
        let mut next = self.interiors[parent as usize].follower();
        for _ in 0..AHEAD {
            let Some(node) = self.nodes.get(next as usize) else { return };
            next = node.share.next;
        }
        if let Some(node) = self.nodes.get(next as usize) {
            self.queues.look_ahead(next, node);
            std::hint::black_box(self.nodes.get(node.share.next as usize).map(|n| n.kind));
        }
    }

    /// From the leaf back to the link: everyone on the way has sent.
    #[inline]
    fn account(&mut self, now: Instant, depth: usize, cost: Bytes, mut is_empty: bool) {
        for at in (0..depth).rev() {
            let next = self.way[at % WAY];
            let node = &mut self.nodes[next.number as usize];
            let mut stays = !is_empty;
            if node.has_clock() {
                stays = self.clocks_go_on(now, next.number, cost, stays);
            }
            let node = &mut self.nodes[next.number as usize];
            let interior = &mut self.interiors[node.parent as usize];
            interior.sent(next, node, cost.get(), stays);
            is_empty = !interior.is_active();
        }
    }

    /// A node with a clock, of a ceiling or of a guarantee, has sent. Returns whether it may send
    /// more now.
    fn clocks_go_on(&mut self, now: Instant, number: u32, cost: Bytes, stays: bool) -> bool {
        let flags = &mut self.nodes[number as usize].share.flags;
        if flags.has(Flags::OWED) {
            self.dues[number as usize].sent(now, cost.get());
        }
        if !flags.has(Flags::CEILING) {
            return stays;
        }
        let (ceiling, clock) = &mut self.ceilings[number as usize];
        let held = ceiling.send(clock, now, cost.get());
        // one that has nothing more to send finds out later whether it may
        let Some(until) = held.filter(|_| stays) else { return stays };
        flags.set(Flags::HELD);
        self.timer.push(Entry { key: until.ns(), node: number });
        false
    }

    /// Nodes whose ceiling lets them again are children of their parents again.
    #[inline]
    fn let_go(&mut self, now: Instant) {
        while let Some(first) = self.timer.first().filter(|first| first.key <= now.ns()) {
            self.timer.pop();
            let node = &mut self.nodes[first.node as usize];
            let was_held = node.is_held();
            node.share.flags.clear(Flags::HELD);
            // an edit may have taken away everything that waited for this moment
            if was_held && self.has_something(first.node) {
                self.wake(now, first.node);
            }
        }
        while let Some(leaf) = self.queues.let_go(now) {
            self.wake(now, leaf);
        }
    }

    /// Whether frames wait in a leaf, or below a node.
    fn has_something(&self, number: u32) -> bool {
        let node = &self.nodes[number as usize];
        match node.kind {
            Kind::None => false,
            Kind::Interior => self.interiors[number as usize].is_active(),
            Kind::Plain => !node.chain.is_empty(),
            Kind::WithCare => self.queues.ready(number, node) > 0,
        }
    }

    /// A node has something to send, and so have all above it.
    #[inline]
    fn wake(&mut self, now: Instant, number: u32) {
        let mut at = number;
        while at != LINK {
            let parent = self.nodes[at as usize].parent;
            let was_active = self.interiors[parent as usize].is_active();
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
        if node.is_held() {
            return false;
        }
        if node.has_ceiling()
            && let Some(until) = self.ceilings[number as usize].1.not_before(now)
        {
            node.share.flags.set(Flags::HELD);
            self.timer.push(Entry { key: until.ns(), node: number });
            return false;
        }
        if !node.share.flags.has(Flags::ACTIVE) {
            let parent = &mut self.interiors[node.parent as usize];
            parent.wake(now, number, &mut self.nodes, &mut self.dues);
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
        if self.interiors[LINK as usize].is_active() {
            return Some(free);
        }
        let held = self.timer.first().map(|first| Instant::from_ns(first.key));
        held.into_iter().chain(self.queues.next_at()).min().map(|at| free.max(at))
    }

    /// Bytes of memory that the nodes take, those of frames apart.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let tables = self.nodes.len() * size_of::<Node>()
            + self.interiors.len() * size_of::<Interior>()
            + self.ceilings.len() * size_of::<(Ceiling, Clock)>()
            + self.dues.len() * size_of::<Due>();
        let interiors: usize = self.interiors.iter().map(Interior::bytes).sum();
        tables + interiors + self.timer.bytes() + self.queues.bytes()
    }

    /// Bytes of memory that the queues of connections take, those of frames and hosts apart.
    #[must_use]
    pub fn bytes_of_flows(&self) -> usize {
        self.queues.bytes_of_flows() + self.order.bytes()
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
