//! The engine of one link: its state, and the few calls that are its contract. The path of a frame
//! through it is in turn.rs.

use std::sync::Arc;

use weir_classify::{self as classify, Classifier, Event, Owner, Seed};
use weir_condition::Conditioner;
use weir_condition::police::Policer;
use weir_packet::{Headers, Label, Pool, Side};
use weir_shape::tree::Tree;
use weir_units::limits::{BURST_FRAMES, CROWDS_TOLD, FLOWS};
use weir_units::{ByWay, Bytes, Instant, Rate, Way};

use crate::change::{Change, Layout};
use crate::enforce::Enforcer;
use crate::ledger::{Counters, Ledger};
use crate::limits::Limits;
use crate::margin::Margin;
use crate::planner::{CHUNKS, most};
use crate::watch::{RoundTrips, Uploads, Watch};

/// The number of the link itself among the nodes.
pub const LINK: u32 = 0;

/// How much a link may hold, decided once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Frames that wait for one port at most, in all its leaves; then the longest queue pays.
    pub queue_frames: usize,
    /// Connections that are remembered.
    pub flows: usize,
    /// Makes the hash of flows unpredictable; the same seed gives the same run.
    pub seed: u128,
    /// Whether TCP's numbers are watched: what comes again or late is counted, round trips are
    /// timed, and a margin can be found. 32 bytes a connection.
    pub watch: bool,
    /// Whether classes and leaves obey [`Engine::limits`], and not the link alone: 80 bytes for
    /// each of them.
    pub limits: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { queue_frames: 4_096, flows: FLOWS, seed: 0, watch: false, limits: false }
    }
}

/// One link: two ports, their queues, the flows and the books.
#[derive(Debug)]
pub struct Engine {
    pub(crate) pool: Pool,
    pub(crate) classifier: Classifier,
    pub(crate) conditioner: Conditioner,
    pub(crate) policer: Policer,
    pub(crate) trees: ByWay<Tree>,
    /// Who has no queues there.
    pub(crate) enforcers: ByWay<Enforcer>,
    pub(crate) ledger: Ledger,
    pub(crate) watch: Watch,
    /// Who finds the rate of the link, where the policy leaves that to weir.
    pub(crate) margins: ByWay<Option<Margin>>,
    pub(crate) scratch: Box<Scratch>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) limits: Limits,
    /// How many it has had.
    pub(crate) policies: u32,
    /// Every frame leaves as it came: no rate is followed.
    pub(crate) observes: bool,
    /// Frames that came before do not leave any more.
    pub(crate) stale_before: Instant,
}

/// What one burst needs for a moment.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) headers: [Headers; BURST_FRAMES],
    pub(crate) labels: [Label; BURST_FRAMES],
}

/// A slice of the books.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The leaves of this slice that ever counted a frame.
    pub leaves: Vec<LeafBooks>,
    /// The link as a whole.
    pub total: ByWay<Counters>,
    /// What leaves had counted that are gone.
    pub gone: ByWay<Counters>,
    /// How long the ways to both sides take, if they are watched.
    pub round_trips: RoundTrips,
    /// What became of TCP data from the LAN side, if they are watched.
    pub uploads: Uploads,
    /// What the link carries, where weir finds that.
    pub found: ByWay<Option<Rate>>,
    /// Those who ask for a leaf, by the asked class.
    pub askers: Vec<(u32, Owner)>,
    /// MACs with many addresses that the policy does not name routers.
    pub crowds: Vec<[u8; 6]>,
}

/// The books of one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafBooks {
    /// Its number.
    pub leaf: u32,
    /// Whom it stands for, if it was made at run time.
    pub owner: Option<Owner>,
    /// What it counted.
    pub counters: ByWay<Counters>,
}

/// Leaves that one call copies or closes at most.
pub(crate) const SLICE: u32 = 4_096;

/// Those who ask for a leaf that one call copies at most: of sixteen classes.
const ASKERS: usize = 16 * weir_units::limits::EACH_ASKERS;

impl Snapshot {
    /// One that never needs to grow: the packet thread that fills it allocates nothing.
    #[must_use]
    pub fn with_room() -> Snapshot {
        Snapshot {
            leaves: Vec::with_capacity(SLICE as usize),
            askers: Vec::with_capacity(ASKERS),
            crowds: Vec::with_capacity(CROWDS_TOLD),
            ..Snapshot::default()
        }
    }
}

impl Engine {
    /// An engine over the buffers of `pool` with its first policy. Everything it will ever need is
    /// allocated here; `first` must come from a fresh [`Planner`](crate::Planner).
    #[must_use]
    pub fn new(config: Config, pool: Pool, mut first: Change, now: Instant) -> Engine {
        let index = first
            .index
            .take()
            .unwrap_or_else(|| classify::Index::compile(&classify::Spec::default()));
        let limits = classify::Limits { flows: config.flows, ..classify::Limits::default() };
        let buffers = pool.capacity();
        let classifier = Classifier::new(limits, Seed::new(config.seed), index);
        let flows = classifier.flow_capacity();
        let tree = || Tree::new(buffers, config.queue_frames, flows, now);
        let nothing = Label::new(Side::Lan, &Headers::EMPTY);
        let mut engine = Engine {
            pool,
            classifier,
            conditioner: Conditioner::new(most() as usize),
            policer: Policer::new(),
            trees: ByWay { down: tree(), up: tree() },
            enforcers: Default::default(),
            ledger: Ledger::new(CHUNKS),
            watch: Watch::new(if config.watch { flows } else { 0 }),
            margins: Default::default(),
            scratch: Box::new(Scratch {
                headers: [Headers::EMPTY; BURST_FRAMES],
                labels: [nothing; BURST_FRAMES],
            }),
            layout: first.layout.clone(),
            limits: Limits::new(if config.limits { CHUNKS } else { 0 }),
            policies: 0,
            observes: first.observes,
            stale_before: Instant::ZERO,
        };
        engine.ledger.grow(&mut first.chunks);
        engine.conditioner.apply(&mut first.condition);
        engine.policer.apply(now, &mut first.treatments);
        for way in Way::ALL {
            let (tree, edit) = (&mut engine.trees[way], &mut first.trees[way]);
            tree.apply(now, edit, |leaf| leaf, |_, _, _| {});
            while !tree.goes_on(now, edit) {}
            engine.enforcers[way].apply(&mut first.enforced[way]);
        }
        engine.limits.follow(&mut first);
        engine.margins_go_on(now, &mut first);
        engine
    }

    /// Frames that wait now are not to leave any more: the caller has stood still, and the kernel
    /// has carried newer ones. They are dropped when it is their turn.
    pub fn forget_waiting(&mut self, now: Instant) {
        self.stale_before = now;
    }

    /// Puts a policy into effect between two frames. The new rules and rates hold when the first
    /// call returns; frames that wait stay in their order, those of classes that are gone go to the
    /// link's default leaf, where they are few. A connection that the new rules send elsewhere goes
    /// there at once; what waits of it is dropped when its next frame comes, as
    /// [`weir_packet::Reason::Stale`].
    ///
    /// The first call writes the nodes that differ, gives the children of their parents their new
    /// places, and moves up to 64 frames of leaves that are gone, for each port; a leaf with more
    /// than is left of these loses all. Where a node has more than 64 children, those that are new
    /// have their places at once, and each later call looks at 32 others or empties as many queues
    /// of leaves that are gone. Each call drops up to 64 frames of what has to go for each port,
    /// and closes the books of 4 096 leaves. Call again until it returns `true`. What was replaced
    /// stays in `change`, to be freed off the packet thread.
    #[must_use = "call again until it is done"]
    pub fn apply(&mut self, now: Instant, change: &mut Change) -> bool {
        if let Some(index) = change.index.take() {
            let old = self.classifier.replace(index);
            change.keep_old(old);
            self.ledger.grow(&mut change.chunks);
            // what waits for its moment goes to its leaf while that still is there
            self.let_go(Instant::MAX, now);
            // what waits of a connection is elsewhere, or waits for others of its class no longer
            if change.has_new_rules || change.enforced.iter().any(|(_, edit)| edit.is_another()) {
                self.trees.values_mut().for_each(Tree::has_new_rules);
            }
            self.conditioner.apply(&mut change.condition);
            self.policer.apply(now, &mut change.treatments);
            self.edit_enforcers(change);
            self.edit_trees(now, change);
            self.policies = self.policies.wrapping_add(1);
            self.limits.follow(change);
            for way in Way::ALL {
                if change.enforced[way].is_another() {
                    self.limits_move(now, way);
                }
            }
            self.margins_go_on(now, change);
            for &(from, to) in &change.parted {
                // it may be the queue of its children now
                let ledger = &mut self.ledger;
                for tree in self.trees.values_mut() {
                    tree.relabel(from, |label, bytes| {
                        if label.leaf != from {
                            return label.leaf;
                        }
                        ledger.moved(label.way, from, to, bytes);
                        to
                    });
                }
            }
            std::mem::swap(&mut self.layout, &mut change.layout);
            if change.trees.iter().any(|(_, edit)| edit.has_steps()) {
                return false;
            }
        }
        // they are in the books of the leaf that they came to, while it has any
        let mut are_done = true;
        for way in Way::ALL {
            self.drop_left_behind(way, BURST_FRAMES);
            are_done &= self.trees[way].goes_on(now, &mut change.trees[way]);
        }
        if !are_done || self.trees.iter().any(|(_, tree)| tree.has_left_behind()) {
            return false;
        }
        for &(from, to) in &change.parted {
            self.ledger.fold(from, to);
        }
        change.parted.clear();
        self.close_gone(change)
    }

    /// What was found of the line stays where the new policy says the same of it; while a policy
    /// only observes, it is kept.
    fn margins_go_on(&mut self, now: Instant, change: &mut Change) {
        let has_observed = std::mem::replace(&mut self.observes, change.observes);
        if self.observes {
            return;
        }
        for way in Way::ALL {
            let fresh = change.margins[way].take().filter(|_| !self.watch.is_idle());
            let Some(mut margin) = Margin::after(self.margins[way].take(), fresh) else { continue };
            if has_observed {
                margin.looks_anew();
            }
            self.set_rate(now, way, margin.rate());
            self.margins[way] = Some(margin);
        }
    }

    fn edit_trees(&mut self, now: Instant, change: &mut Change) {
        let mut edits = std::mem::take(&mut change.trees);
        let ledger = &mut self.ledger;
        for way in Way::ALL {
            let (tree, enforcer) = (&mut self.trees[way], &self.enforcers[way]);
            let edit = &mut edits[way];
            let heir = |leaf| enforcer.queue_of(change.successor(leaf).unwrap_or(change.rest));
            tree.apply(now, edit, heir, |from, label, bytes| {
                ledger.moved(label.way, from, label.leaf, bytes);
            });
        }
        // with all that was replaced
        change.trees = edits;
    }

    /// Frames that wait in the queue of a branch are of leaves that may go, or that wait elsewhere
    /// from now on: these are the frames of that queue's own leaf then.
    fn edit_enforcers(&mut self, change: &mut Change) {
        let mut edits = std::mem::take(&mut change.enforced);
        for way in Way::ALL {
            let (tree, enforcer) = (&mut self.trees[way], &mut self.enforcers[way]);
            let edit = &mut edits[way];
            for &queue in enforcer.queues() {
                let ledger = &mut self.ledger;
                tree.relabel(queue, |label, bytes| {
                    if label.leaf == queue || edit.queue_of(enforcer, label.leaf) == queue {
                        return label.leaf;
                    }
                    ledger.moved(label.way, label.leaf, queue, bytes);
                    queue
                });
            }
            enforcer.apply(edit);
        }
        change.enforced = edits;
    }

    /// Closes the books of leaves that are gone, a bounded number per call.
    fn close_gone(&mut self, change: &mut Change) -> bool {
        let mut budget = SLICE;
        while let Some(range) = change.gone.get(change.closed.0) {
            let from = change.closed.1.max(range.start);
            let to = range.end.min(from.saturating_add(budget));
            for leaf in from..to {
                self.ledger.close(leaf);
            }
            budget -= to - from;
            change.closed.1 = to;
            if to == range.end {
                change.closed.0 += 1;
            }
            if budget == 0 {
                break;
            }
        }
        change.closed.0 == change.gone.len()
    }

    /// When [`Engine::transmit`] has something to do next, if nothing comes before: `None` while
    /// nothing waits. Stale after every call that takes `&mut self`.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let trees = self.trees.iter().filter_map(|(_, tree)| tree.next_at());
        trees.chain(self.conditioner.next_at()).min()
    }

    /// Copies the counters of up to 4 096 leaves from number `cursor` on into `into`, and the
    /// totals. Returns the next cursor; `None` at the end.
    pub fn snapshot(&self, cursor: u32, into: &mut Snapshot) -> Option<u32> {
        into.leaves.clear();
        into.total = *self.ledger.total();
        into.gone = *self.ledger.gone();
        into.round_trips = self.watch.round_trips();
        into.uploads = self.watch.uploads();
        into.found = ByWay::WAYS.map(|way| self.margin(way).map(Margin::rate));
        into.askers.clear();
        into.askers.extend(self.classifier.askers().take(ASKERS));
        into.crowds.clear();
        into.crowds.extend(self.classifier.crowds().take(CROWDS_TOLD));
        let end = self.ledger.leaves().min(cursor.saturating_add(SLICE));
        for leaf in cursor..end {
            if let Some(slot) = self.ledger.leaf(leaf)
                && *slot != ByWay::default()
            {
                let owner = self.classifier.owner(leaf);
                into.leaves.push(LeafBooks { leaf, owner, counters: *slot });
            }
        }
        (end < self.ledger.leaves()).then_some(end)
    }

    pub(crate) fn set_rate(&mut self, now: Instant, way: Way, rate: Rate) {
        self.trees[way].set_rate(now, rate);
        self.enforcers[way].set_rate(rate);
    }

    /// Lets the rate of the link follow what it carries, where the policy leaves that to weir. To
    /// be called each [`Margin::CADENCE`]; more often is harmless.
    pub fn follow(&mut self, now: Instant) {
        if self.observes {
            return;
        }
        for way in Way::ALL {
            if let Some(margin) = &mut self.margins[way] {
                let rate = margin.follow(now, &self.ledger.total()[way], &self.watch);
                self.set_rate(now, way, rate);
            }
        }
    }

    /// Who finds what the link carries on this way, where the policy leaves that to weir.
    #[must_use]
    pub fn margin(&self, way: Way) -> Option<&Margin> {
        self.margins[way].as_ref().filter(|_| !self.observes)
    }

    /// Forgets flows and made leaves that have been silent for long; bounded work per call. To be
    /// called now and then: once a millisecond is plenty.
    pub fn age(&mut self, now: Instant) {
        self.watch.age(now);
        let ledger = &self.ledger;
        self.classifier.age(now, |leaf| ledger.is_empty(leaf));
        while let Some(event) = self.classifier.event() {
            // the next host starts with clean books; the last one's stay with the class
            if let Event::Aged { class, leaf, .. } = event
                && let Some(&class) = self.layout.asked.get(class as usize)
            {
                self.ledger.fold(leaf, class);
                self.policer.begin_anew(leaf);
                self.enforcers.values_mut().for_each(|enforcer| enforcer.begin_anew(leaf));
                self.forget_limits(now, leaf);
            }
        }
    }

    /// The buffers, for whoever receives and sends.
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The buffers.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Which node of the plan has which number.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Who belongs to whom: flows, rules, made leaves.
    #[must_use]
    pub fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    /// What is done to TCP connections.
    #[must_use]
    pub fn conditioner(&self) -> &Conditioner {
        &self.conditioner
    }

    /// What the link carries now on this way.
    #[must_use]
    pub fn rate(&self, way: Way) -> Rate {
        self.trees[way].rate()
    }

    /// What the link as a whole has counted on this way.
    #[must_use]
    pub fn total(&self, way: Way) -> &Counters {
        &self.ledger.total()[way]
    }

    /// Frames and bytes that wait on this way.
    #[must_use]
    pub fn waiting(&self, way: Way) -> (usize, Bytes) {
        let held = self.ledger.total()[way].held;
        (self.trees[way].len(), Bytes::new(held.bytes))
    }
}
