//! The tree of classes: who sends next, and when. A node's children share what it may have
//! (interior.rs), no node passes its ceiling (ceiling.rs), and frames wait in chains (store.rs).
//!
//! Sending walks down from the link, at each node to the child that is next, and back up to account
//! for the frame. A node that has nothing to send, or may not send yet, is no child of its parent
//! for the time being; so whoever is reached may send, and the link is never idle while anyone may.

mod ahead;
mod calendar;
mod care;
mod ceiling;
mod check;
mod clocks;
mod edit;
mod heap;
mod hosts;
mod interior;
mod kinds;
mod longest;
mod node;
mod order;
mod owed;
mod parting;
mod pauses;
mod queues;
mod ring;
mod sessions;
mod spec;
mod split;
mod store;
mod timer;

use weir_packet::{Frame, Label, Reason};
use weir_units::limits::BURST_FRAMES;
use weir_units::{Bytes, Instant, Pace, Rate, Span};

use crate::FrameCost;
use clocks::Clocks;
use edit::Limit;
use interior::{FREED, Interior, WOKEN};
use node::{Flags, Kind, NONE, Node};
use order::Order;
use pauses::Carried;
use queues::{Kept, Queues};

pub use care::{Care, Next as NextSession, Queueing, Sessions};
pub use edit::Edit;
pub use spec::{NodeSpec, Spec};
use store::Chain;
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
    clocks: Clocks,
    /// By number; empty where nobody limits nodes.
    limits: Vec<Limit>,
    queues: Queues,
    /// How the frames of leaves wait, where not plainly; leaves name them by number.
    cares: Box<[Kept]>,
    order: Order,
    /// Frames of connections that have left their leaf by an edit.
    left_behind: Chain,
    line: Pace,
    /// What the line has carried, for nodes that are served with pauses.
    carried: Carried,
    link: FrameCost,
    waiting: usize,
    /// Frames that may wait in all leaves together.
    most: usize,
}

/// Frames that one call drops at most because their connections are elsewhere.
const DROPS: usize = 64;

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
            clocks: Clocks::default(),
            limits: Vec::new(),
            queues: Queues::new(buffers, flows),
            cares: Box::default(),
            order: Order::new(flows),
            left_behind: Chain::default(),
            line: Pace::new(Rate::ZERO, now),
            carried: Carried::default(),
            link: FrameCost::default(),
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

    /// Whether a connection of which frames wait elsewhere obeys the rules that send it to the leaf
    /// of this label: it does after an edit of them ([`Tree::has_new_rules`]). What waits of it is
    /// dropped then, and comes back from [`Tree::take_left_behind`].
    #[cold]
    pub fn obeys(&mut self, now: Instant, label: &Label) -> bool {
        let obeys = self.order.obeys(label);
        if obeys {
            self.parts(now, label);
        }
        obeys
    }

    /// What frames cost here.
    #[inline]
    #[must_use]
    pub fn link(&self) -> FrameCost {
        self.link
    }

    /// Bytes that wait in a leaf.
    #[inline]
    #[must_use]
    pub fn waiting_in(&self, leaf: u32) -> u32 {
        self.nodes.get(leaf as usize).map_or(0, |node| node.chain.bytes())
    }

    /// Lets the labels of the frames that wait in a plain leaf name other leaves: `other` is told
    /// the label and the bytes of each, and says which.
    pub fn relabel(&mut self, number: u32, mut other: impl FnMut(&Label, usize) -> u32) {
        let Some(node) = self.nodes.get(number as usize).filter(|node| node.is_leaf()) else {
            return;
        };
        let order = &mut self.order;
        self.queues.store.each(&node.chain, |label, bytes, sign| {
            let leaf = other(label, bytes);
            if leaf != label.leaf {
                let is_left_behind = order.is_left_behind(label.flow, sign);
                label.leaf = leaf;
                if !is_left_behind {
                    order.moved(label);
                }
            }
        });
    }

    /// Lets a frame wait in the leaf that its label names. Where too many wait in the leaf, or in
    /// all leaves together, the first frame of its fattest queue, or of the fattest of the longest
    /// leaf, has to go and comes back.
    ///
    /// # Errors
    /// The leaf does not take it (or there is none of this number): the frame itself comes back.
    #[inline]
    pub fn push(
        &mut self,
        now: Instant,
        frame: Frame,
        label: Label,
    ) -> Result<Option<(Waiting, Reason)>, (Frame, Reason)> {
        self.push_into(now, label.leaf, frame, label)
    }

    /// The same for a leaf that holds the frames of others: their labels go on naming those.
    ///
    /// # Errors
    /// As [`Tree::push`].
    #[inline]
    pub fn push_into(
        &mut self,
        now: Instant,
        number: u32,
        frame: Frame,
        label: Label,
    ) -> Result<Option<(Waiting, Reason)>, (Frame, Reason)> {
        let has_place = self.queues.store.has_place(&frame);
        let Some(node) = self.nodes.get_mut(number as usize).filter(|_| has_place) else {
            return Err((frame, Reason::QueueFull));
        };
        if !node.is_plain() || node.is_full(frame.len()) {
            return self.push_with_care(now, number, frame, label);
        }
        let at = frame.index();
        self.queues.push(now, number, node, frame, &label);
        let was_silent = node.chain.frames() == 1;
        Ok(self.joined(now, number, (at, &label), was_silent, None))
    }

    /// A frame comes to a leaf that is not a plain one, or is full.
    #[inline(never)]
    fn push_with_care(
        &mut self,
        now: Instant,
        number: u32,
        frame: Frame,
        label: Label,
    ) -> Result<Option<(Waiting, Reason)>, (Frame, Reason)> {
        let node = &mut self.nodes[number as usize];
        let kept = self.cares.get(usize::from(node.care));
        let Some(kept) = kept.filter(|_| node.kind == Kind::WithCare) else {
            return Err((frame, Reason::QueueFull));
        };
        let was_silent = self.queues.ready(number, node) == 0;
        let mut joining = label;
        if kept.care.sessions.is_some_and(|sessions| sessions.has_places()) {
            // it has its own queue once what came before has left
            let is_first = !self.order.waits(label.flow) || self.queues.waits_apart(&label);
            joining.kind = label.kind.answered(label.is_answered() && is_first);
        }
        let joins = match self.queues.consider(now, number, node, kept, frame.len(), &joining) {
            Ok(joins) => joins,
            Err(reason) => return Err((frame, reason)),
        };
        let at = frame.index();
        self.queues.join(now, number, node, &joins, frame, &label);
        let was_silent = was_silent && self.queues.ready(number, node) > 0;
        Ok(self.joined(now, number, (at, &label), was_silent, joins.lost))
    }

    /// A frame waits at its place now; its leaf was silent if nothing could leave there before.
    /// `lost` is the place of one that has to go instead. Comes back what had to go.
    #[inline]
    fn joined(
        &mut self,
        now: Instant,
        number: u32,
        (at, label): (u32, &Label),
        was_silent: bool,
        lost: Option<u32>,
    ) -> Option<(Waiting, Reason)> {
        // where the line was idle, no frame leaves before it came
        self.line_waits(now);
        if self.order.came(label) {
            self.queues.store.set_sign(at);
        }
        self.waiting += 1;
        if was_silent {
            self.wake::<WOKEN>(now, number);
        }
        if lost.is_some() || self.waiting > self.most {
            return self.lose(now, lost);
        }
        None
    }

    /// Counts the frame that had to go; where there is none yet, that is one of the longest leaf.
    #[cold]
    fn lose(&mut self, now: Instant, lost: Option<u32>) -> Option<(Waiting, Reason)> {
        let (at, reason) = match lost {
            Some(at) => (at, Reason::QueueFull),
            None => {
                let at = self.queues.longest_pays(now, &mut self.nodes, &self.cares)?;
                (at, Reason::Crowded)
            }
        };
        let waiting = self.take_one(at)?;
        self.waiting -= 1;
        Some((waiting, reason))
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
        for &at in places {
            if let Some(waiting) = self.take(at) {
                out(waiting);
            }
        }
    }

    /// The places of the frames that leave now, as many as `places` has room for; everyone on their
    /// ways has sent them. Returns how many.
    fn choose(&mut self, now: Instant, places: &mut [u32]) -> usize {
        if self.waiting == 0 || !self.line.is_free(now) {
            return 0;
        }
        // whoever is held from now on is held beyond now, so it is enough to look once
        self.let_go(now);
        // who asks while all wait for their ceilings changes nothing
        if !self.interiors[LINK as usize].is_active() {
            return 0;
        }
        // a caller that polls late loses no time, up to a bound that keeps the burst small
        let from = now - CATCH_UP;
        self.line.wait(from);
        let room = self.line.room(now);
        let (mut sent, mut chosen) = (Bytes::ZERO, 0);
        let mut drops = DROPS;
        for place in places {
            if sent >= room {
                break;
            }
            let Some((at, cost)) = self.choose_one(now, &mut drops) else { break };
            *place = at;
            sent = Bytes::new(sent.get() + cost.get());
            chosen += 1;
        }
        self.line.send(from, sent);
        chosen
    }

    /// The place of the frame that is next, and what it costs.
    #[inline]
    fn choose_one(&mut self, now: Instant, drops: &mut usize) -> Option<(u32, Bytes)> {
        loop {
            let leaf = self.descend(now)?;
            let node = &mut self.nodes[leaf as usize];
            let behind = node.share.next;
            let (at, cost, is_empty) = if node.is_plain() {
                match self.queues.store.pop(&mut node.chain) {
                    Some((at, known)) => (at, known.cost(self.link), node.chain.is_empty()),
                    None => (NONE, Bytes::ZERO, true),
                }
            } else {
                self.pop_with_care(now, leaf)
            };
            self.look_ahead(behind);
            if self.order.has_parted() && self.leaves_behind(at) {
                // nobody pays for one that is dropped
                self.account(now, leaf, Bytes::ZERO, is_empty);
                *drops -= 1;
                if *drops == 0 {
                    return None;
                }
                continue;
            }
            self.account(now, leaf, cost, is_empty);
            // one that lost its last frame to others, or to queue management, sends nothing
            if at != NONE {
                self.waiting -= 1;
                return Some((at, cost));
            }
        }
    }

    /// The frame of a leaf with care that is next and what it costs, and whether nothing else may
    /// leave there.
    #[inline(never)]
    fn pop_with_care(&mut self, now: Instant, leaf: u32) -> (u32, Bytes, bool) {
        let (node, link) = (&mut self.nodes[leaf as usize], self.link);
        let Some(kept) = self.cares.get(usize::from(node.care)) else {
            return (NONE, Bytes::ZERO, true);
        };
        let before = node.chain.frames();
        let popped = self.queues.pop(now, leaf, node, kept, |frame| frame.cost(link));
        // what queue management dropped waits no longer
        self.waiting -= (before - node.chain.frames()) as usize - usize::from(popped.is_some());
        let (at, cost) = popped.unwrap_or((NONE, Bytes::ZERO));
        (at, cost, self.queues.ready(leaf, node) == 0)
    }

    /// A frame that queue management dropped since the last call, to be given back.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<Waiting> {
        let waiting = self.queues.take_dropped()?;
        let store = &self.queues.store;
        self.order.left(waiting.label.flow, || store.sign(waiting.frame.index()));
        Some(waiting)
    }

    /// The frame at this place, where that is not one of many.
    #[cold]
    fn take_one(&mut self, at: u32) -> Option<Waiting> {
        self.take(at)
    }

    #[inline]
    fn take(&mut self, at: u32) -> Option<Waiting> {
        let waiting = self.queues.store.take(at)?;
        let store = &self.queues.store;
        self.order.left(waiting.label.flow, || store.sign(at));
        Some(waiting)
    }

    /// From the link to the leaf that is next.
    #[inline]
    fn descend(&mut self, now: Instant) -> Option<u32> {
        let mut at = LINK;
        loop {
            at = self.interiors[at as usize].next(now, &mut self.nodes, &mut self.clocks.dues)?;
            if self.nodes[at as usize].kind != Kind::Interior {
                return Some(at);
            }
        }
    }

    /// From the leaf back to the link: everyone on the way has sent.
    #[inline]
    fn account(&mut self, now: Instant, leaf: u32, cost: Bytes, mut is_empty: bool) {
        let (mut number, on_the_line) = (leaf, interior::on_the_line(cost));
        self.carried.carries(cost.get());
        while number != LINK {
            let node = &mut self.nodes[number as usize];
            let mut stays = !is_empty;
            let parent = &mut self.interiors[node.parent as usize];
            let mut counted = on_the_line;
            if node.has_clock() {
                let due = &mut self.clocks.dues[number as usize];
                counted = parent.clocks_go_on(now, node, due, (on_the_line, &self.carried));
                stays = self.clocks.sent(now, number, node, cost.get(), stays);
            }
            parent.sent(number, node, (on_the_line, counted), stays);
            is_empty = !parent.is_active();
            number = node.parent;
        }
    }

    /// Nobody could send until `at`: what the line could have carried before is lost. Without this
    /// it would be taken for a caller that polls late, who may catch up.
    #[inline]
    fn line_waits(&mut self, at: Instant) {
        if !self.interiors.first().is_some_and(Interior::is_active) {
            self.line.wait(at);
        }
    }

    /// When the first of those is let go that wait for a ceiling.
    fn let_go_at(&self) -> Option<Instant> {
        self.clocks.next_at().into_iter().chain(self.queues.next_at()).min()
    }

    /// Nodes whose ceiling lets them again are children of their parents again.
    #[inline]
    fn let_go(&mut self, now: Instant) {
        if let Some(at) = self.let_go_at().filter(|&at| at <= now) {
            self.line_waits(at);
        }
        while let Some(entry) = self.clocks.let_go(now) {
            self.nodes[entry.node as usize].share.flags.clear(Flags::HELD);
            // an edit may have taken away everything that waited for this moment
            if self.has_something(entry.node) {
                self.wake::<FREED>(now, entry.node);
            }
        }
        while let Some(leaf) = self.queues.let_go(now) {
            // of a leaf that is gone what waits has to go
            self.wake_anew(now, leaf);
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
    #[inline(never)]
    fn wake<const HOW: u8>(&mut self, now: Instant, number: u32) {
        let mut at = number;
        while at != LINK {
            let parent = self.nodes[at as usize].parent;
            let was_active = self.interiors[parent as usize].is_active();
            if !self.wake_one::<HOW>(now, at) || was_active {
                return;
            }
            at = parent;
        }
    }

    /// A node that has something to send becomes a child of its parent, unless its ceiling forbids
    /// it.
    #[inline]
    fn wake_one<const HOW: u8>(&mut self, now: Instant, number: u32) -> bool {
        let node = &mut self.nodes[number as usize];
        if node.is_held() {
            return false;
        }
        if node.has_ceiling() && self.clocks.holds(now, number, node) {
            return false;
        }
        if !node.share.flags.has(Flags::ACTIVE) {
            let parent = &mut self.interiors[node.parent as usize];
            parent.joins::<HOW>(now, number, &mut self.nodes, &mut self.clocks.dues);
        }
        true
    }

    /// What the line carries now, as it was told last.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.line.rate()
    }

    /// Changes what the line carries from now on.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.line.set_rate(rate, now);
        self.carried.has_rate(rate);
    }

    /// When the next frame may leave, if none comes before; `None` while nothing waits, or the line
    /// carries nothing.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        if !self.left_behind.is_empty() {
            return Some(Instant::ZERO);
        }
        if self.waiting == 0 || self.line.rate() == Rate::ZERO {
            return None;
        }
        let free = self.line.free_at();
        if self.interiors[LINK as usize].is_active() {
            return Some(free);
        }
        self.let_go_at().map(|at| free.max(at))
    }

    /// Bytes of memory that the nodes take, those of frames apart.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let tables =
            self.nodes.len() * size_of::<Node>() + self.interiors.len() * size_of::<Interior>();
        let interiors: usize = self.interiors.iter().map(Interior::bytes).sum();
        tables
            + interiors
            + self.clocks.bytes()
            + size_of_val(&self.limits[..])
            + self.queues.bytes()
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
