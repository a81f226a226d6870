//! The stage itself: bursts in, labels out.
//!
//! Place for L7: what recognises an application from payload would, once per connection, write
//! another leaf into the entry's answers. It does not exist yet.

mod export;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use weir_packet::{Flow, Fragment, Frame, Headers, Label, Pool, Side};
use weir_units::Instant;
use weir_units::limits::{BURST_FRAMES, FLOWS, FRAGMENTED};

use crate::ahead::{Ahead, look};
use crate::cores::Homes;
use crate::crowds::Crowds;
use crate::entry::{Kept, NO_EACH};
use crate::facts::Facts;
use crate::flows::{Flows, Newcomer, Placed, Spot};
use crate::fragments::Fragments;
use crate::hosts::{Event, Owner, Who};
use crate::index::{Goal, Index};
use crate::key::{Key, Seed};
use crate::settled::Settled;

pub use export::{Arrival, FlowState};

/// How large the tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections, rounded down to a multiple of 8, at least 8.
    pub flows: usize,
    /// Packets in pieces whose later pieces find their connection.
    pub fragmented: usize,
}

/// Says of every frame which connection it belongs to and which leaf's queue it joins.
#[derive(Debug)]
pub struct Classifier {
    index: Index,
    seed: Seed,
    /// Counts policies, so that answers of older ones are known as such; never 0.
    epoch: u32,
    flows: Flows,
    /// The frames of the burst at hand.
    ahead: Box<[Ahead]>,
    fragments: Fragments,
    events: VecDeque<Event>,
    crowds: Crowds,
    settled: Settled,
    counters: Counters,
    /// Whose leaves are looked at next for silent hosts.
    sweep: usize,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that found their connection in the table.
    pub known: u64,
    /// Connections that came into the table.
    pub new: u64,
    /// Frames of known connections for which the rules were asked again.
    pub reclassified: u64,
    /// Frames of connections that found no place; they were classified all the same.
    pub refused: u64,
    /// Connections that gave their place to another.
    pub evicted: u64,
    /// Later fragments whose connection is not known.
    pub fragments_unknown: u64,
    /// Leaves made for hosts.
    pub hosts_made: u64,
    /// Hosts that asked for a leaf and are not approved.
    pub hosts_asked: u64,
    /// Leaves taken back from silent hosts.
    pub hosts_aged: u64,
    /// Frames of hosts that found no leaf and joined the overflow leaf.
    pub hosts_overflowed: u64,
    /// Events that nobody fetched in time.
    pub events_lost: u64,
}

/// What would become of a frame, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The rule that takes it, by its place in the spec; `None`: no rule does.
    pub rule: Option<usize>,
    /// The class of that rule.
    pub class: Option<u32>,
    /// The leaf whose queue it joins; `None`: one would be made for its owner.
    pub leaf: Option<u32>,
    /// The host that has the leaf, or would have it.
    pub owner: Option<Owner>,
}

/// Events that wait to be fetched.
const EVENTS: usize = 1_024;
/// Buckets of the flow table, and leaves of hosts, that one call of `age` looks at.
const AGED_AT_ONCE: usize = 64;

impl Default for Limits {
    fn default() -> Self {
        Limits { flows: FLOWS, fragmented: FRAGMENTED }
    }
}

impl Classifier {
    /// Empty tables of these sizes, and a policy.
    #[must_use]
    pub fn new(limits: Limits, seed: Seed, index: Index) -> Self {
        Classifier {
            index,
            seed,
            epoch: 1,
            flows: Flows::new(limits.flows),
            ahead: vec![Ahead::default(); BURST_FRAMES].into(),
            fragments: Fragments::new(limits.fragmented),
            events: VecDeque::with_capacity(EVENTS),
            crowds: Crowds::new(),
            settled: Settled::new(),
            counters: Counters::default(),
            sweep: 0,
        }
    }

    /// Labels frames that came in from one side. As many as there are frames, headers and labels.
    pub fn burst(
        &mut self,
        now: Instant,
        side: Side,
        pool: &Pool,
        frames: &[Frame],
        headers: &[Headers],
        labels: &mut [Label],
    ) {
        let frames = frames.chunks(BURST_FRAMES);
        let headers = headers.chunks(BURST_FRAMES);
        let labels = labels.chunks_mut(BURST_FRAMES);
        for ((frames, headers), labels) in frames.zip(headers).zip(labels) {
            self.passes(now, side, pool, frames, headers, labels);
        }
    }

    fn passes(
        &mut self,
        now: Instant,
        side: Side,
        pool: &Pool,
        frames: &[Frame],
        headers: &[Headers],
        labels: &mut [Label],
    ) {
        let mut all = std::mem::take(&mut self.ahead);
        look(&self.flows, &self.index, self.seed, side, headers, &mut all);
        let frames = frames.iter().zip(headers).zip(labels).zip(&all);
        for (((frame, headers), label), ahead) in frames {
            let facts = Facts::new(side, headers, pool.bytes(frame));
            // a frame of this burst may have given the place to another connection
            let place = ahead.place.filter(|&place| self.flows.is_at(place, &ahead.key));
            if headers.fragment != Fragment::None {
                *label = self.fragment(&facts, now);
                continue;
            }
            let host = self.host(&facts);
            let (leaf, flow) = match place {
                Some(place) if self.flows.takes(place, side, host, now) => {
                    self.counters.known += 1;
                    self.at(place, &facts, now)
                }
                Some(_) => self.of_other(&facts, host, now),
                None => self.found_or_new(&facts, host, ahead.spot, now),
            };
            *label = Label { leaf, flow, host, ..Label::new(side, headers) };
            self.knows(label, now);
        }
        self.ahead = all;
    }

    /// Labels one frame.
    pub fn one(&mut self, now: Instant, side: Side, headers: &Headers, bytes: &[u8]) -> Label {
        let facts = Facts::new(side, headers, bytes);
        if headers.fragment != Fragment::None {
            return self.fragment(&facts, now);
        }
        let host = self.host(&facts);
        let (leaf, flow) = self.anywhere(&facts, host, now);
        let mut label = Label { leaf, flow, host, ..Label::new(side, headers) };
        self.knows(&mut label, now);
        label
    }

    /// Puts another policy in force and returns the old one, to be dropped off the packet thread.
    /// Leaves of hosts live on where the class with `each` has the same leaves.
    #[must_use = "dropping an old policy takes its time: do it off the packet thread"]
    pub fn replace(&mut self, mut index: Index) -> Index {
        index.inherit(&mut self.index);
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        self.sweep = 0;
        std::mem::replace(&mut self.index, index)
    }

    /// Forgets connections and hosts that were silent for long, a bounded number per call. A leaf
    /// is taken from its host only if `may_reuse` says that its queue is empty.
    pub fn age(&mut self, now: Instant, mut may_reuse: impl FnMut(u32) -> bool) {
        self.flows.age(now, AGED_AT_ONCE);
        for _ in 0..AGED_AT_ONCE {
            let Some(hosts) = self.index.hosts.get_mut(self.sweep) else {
                self.sweep = 0;
                return;
            };
            let aged = hosts.age(self.seed, now, &mut may_reuse);
            if hosts.at_end() {
                self.sweep += 1;
            }
            if let Some(event) = aged {
                self.counters.hosts_aged += 1;
                self.note(event);
            }
        }
    }

    /// The oldest event that was not fetched yet.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Says what would become of a frame, and changes nothing. A later fragment is explained
    /// without the ports of its connection.
    #[must_use]
    pub fn explain(&self, side: Side, headers: &Headers, bytes: &[u8]) -> Explained {
        let facts = Facts::new(side, headers, bytes);
        let answer = self.index.answer(&facts);
        let (leaf, owner) = match answer.goal {
            Goal::Each(each) => self.explain_host(each, &facts),
            Goal::Leaf(leaf) | Goal::Subscriber(leaf) => (Some(leaf), None),
        };
        let class = answer.rule.and_then(|rule| self.index.class_of(rule));
        Explained { rule: answer.rule.map(|rule| rule as usize), class, leaf, owner }
    }

    fn explain_host(&self, each: u32, facts: &Facts) -> (Option<u32>, Option<Owner>) {
        let hosts = &self.index.hosts[each as usize];
        let overflow = (Some(hosts.each().overflow_leaf), None);
        let by = hosts.each().by;
        let Some(who) = Who::of(by, facts) else { return overflow };
        if !hosts.knows(who) {
            return overflow;
        }
        let owner = Some(who.owner(by));
        match hosts.find(self.seed, who.or_host(by, facts, &self.index.routers)) {
            Some(leaf) => (Some(leaf), hosts.owner(leaf)),
            None if facts.side == Side::Wan && hosts.each().by.is_of_lan() => overflow,
            None if hosts.has_room() => (None, owner),
            None => overflow,
        }
    }

    /// Whom a leaf stands for that was made for a host.
    #[must_use]
    pub fn owner(&self, leaf: u32) -> Option<Owner> {
        self.index.owner(leaf)
    }

    /// Who asks for a leaf and is not approved: the class, and who it is.
    pub fn askers(&self) -> impl Iterator<Item = (u32, Owner)> {
        let hosts = self.index.hosts.iter();
        hosts.flat_map(|hosts| hosts.askers().map(|owner| (hosts.class(), owner)))
    }

    /// MACs that have more addresses than a host does, and that the policy names no routers: all
    /// behind them share one host's part.
    pub fn crowds(&self) -> impl Iterator<Item = [u8; 6]> {
        self.crowds.macs(&self.index.routers)
    }

    /// Which of so many cores has which host, by what this classifier takes for a host. For who
    /// receives frames and hands them on: it allocates, and stands for the policy of now.
    #[must_use]
    pub fn homes(&self, cores: NonZeroU32) -> Homes {
        Homes::new(self.seed, self.index.routers.clone(), cores)
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections in the table.
    #[must_use]
    pub const fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Connections that fit into the table: `Flow::index` is always below.
    #[must_use]
    pub const fn flow_capacity(&self) -> usize {
        self.flows.capacity()
    }

    /// Whether a flow is still the one that the table holds at its place.
    #[must_use]
    pub fn is_current(&self, flow: Flow) -> bool {
        self.flows.place_of(flow).is_some()
    }

    /// What stands for the host on the LAN side.
    #[inline]
    fn host(&self, facts: &Facts) -> u32 {
        facts.host_number(self.seed, &self.index.routers)
    }

    /// Writes on a label whether the LAN has answered, and whether the host is new. Of a connection
    /// whose host has settled nobody asks again.
    #[inline]
    fn knows(&mut self, label: &mut Label, now: Instant) {
        let entry = self.flows.found(label.flow);
        let is_answered = entry.as_ref().is_some_and(|entry| entry.is_answered());
        label.kind = label.kind.answered(is_answered);
        if entry.as_ref().is_some_and(|entry| entry.is_settled(label.host)) {
            return;
        }
        if !self.settled.is_there(label.side(), label.host, now) {
            label.kind = label.kind.of_new_host();
        } else if let Some(entry) = entry {
            entry.settle(label.host);
        }
    }

    fn without_flow(&mut self, facts: &Facts, now: Instant) -> (u32, Flow) {
        let goal = self.index.answer(facts).goal;
        let (leaf, _) = self.leaf(goal, facts, now);
        (leaf, Flow::NONE)
    }

    /// Leaf and flow of a frame whose connection is anywhere in the table, or not yet.
    fn found_or_new(&mut self, facts: &Facts, host: u32, spot: Spot, now: Instant) -> (u32, Flow) {
        let Some(key) = Key::of(facts) else { return self.without_flow(facts, now) };
        match self.flows.find(spot, &key) {
            Some(place) if self.flows.takes(place, facts.side, host, now) => {
                self.counters.known += 1;
                self.at(place, facts, now)
            }
            Some(_) => self.of_other(facts, host, now),
            None => self.new_flow(facts, (key, spot), host, now),
        }
    }

    /// Leaf and flow of a frame with the addresses and ports of another host's connection.
    #[inline(never)]
    fn of_other(&mut self, facts: &Facts, host: u32, now: Instant) -> (u32, Flow) {
        let key = Key::of_ip(facts).of_other(host);
        let spot = self.flows.spot(key.hash(self.seed));
        match self.flows.find(spot, &key) {
            Some(place) => {
                self.counters.known += 1;
                self.at(place, facts, now)
            }
            None => self.new_flow(facts, (key, spot), host, now),
        }
    }

    fn new_flow(
        &mut self,
        facts: &Facts,
        (key, spot): (Key, Spot),
        host: u32,
        now: Instant,
    ) -> (u32, Flow) {
        if facts.side == Side::Lan
            && let Some(mac) = facts.host_mac(&self.index.routers)
        {
            self.crowds.note(mac, self.seed.host(facts.address_behind()), now);
        }
        let new = Newcomer::of(facts.side, host);
        match self.flows.place(spot, key, new, now) {
            Placed::Free(place) => {
                self.counters.new += 1;
                self.at(place, facts, now)
            }
            Placed::Instead(place) => {
                self.counters.new += 1;
                self.counters.evicted += 1;
                self.at(place, facts, now)
            }
            Placed::Refused => {
                self.counters.refused += 1;
                self.without_flow(facts, now)
            }
        }
    }

    /// The label of a piece of a packet: the first leaves behind what the later ones do not say.
    #[inline(never)]
    fn fragment(&mut self, facts: &Facts, now: Instant) -> Label {
        let mut label = self.piece(facts, now);
        self.knows(&mut label, now);
        label
    }

    fn piece(&mut self, facts: &Facts, now: Instant) -> Label {
        let (side, headers) = (facts.side, facts.headers);
        let mut label = Label::new(side, headers);
        label.host = self.host(facts);
        if headers.fragment == Fragment::First {
            let rest = Key::of_ip(facts).rest();
            self.fragments.note(self.seed, (label.host, headers), rest, now);
            (label.leaf, label.flow) = self.anywhere(facts, label.host, now);
            return label;
        }
        if let Some(rest) = self.fragments.find(self.seed, headers, now) {
            let headers = rest.fill_in(side, headers);
            let whole = facts.with(&headers, rest.has_ports());
            // same packet by its number, but perhaps in another VLAN
            if Key::of_ip(&whole).rest() == rest {
                (label.leaf, label.flow) = self.anywhere(&whole, label.host, now);
                return label;
            }
        }
        self.counters.fragments_unknown += 1;
        if self.index.asks_behind(headers.net) {
            // a receiver waits for the first piece, so this one must not go before it is known
            label.leaf = self.without_flow(facts, now).0;
            label.kind = label.kind.stray();
        } else {
            (label.leaf, label.flow) = self.anywhere(facts, label.host, now);
        }
        label
    }

    /// Leaf and flow of a frame of which nobody has looked where its connection is.
    fn anywhere(&mut self, facts: &Facts, host: u32, now: Instant) -> (u32, Flow) {
        let spot = Key::of(facts).map(|key| self.flows.spot(key.hash(self.seed)));
        self.found_or_new(facts, host, spot.unwrap_or_default(), now)
    }

    /// Leaf and flow of a frame whose connection lies at `place`: with the answer that is kept
    /// there, or with a new one if that was of another policy or depended on what has changed.
    #[inline(always)]
    fn at(&mut self, place: u32, facts: &Facts, now: Instant) -> (u32, Flow) {
        let variant = self.index.variant(facts);
        let entry = self.flows.entry(place);
        entry.touch(facts, now);
        let kept = entry.answers[facts.side];
        let flow = Flow { index: place, generation: entry.generation };
        let holds = kept.epoch == self.epoch && kept.variant == variant;
        if holds && kept.each == NO_EACH {
            return (kept.leaf, flow);
        }
        let goal = if holds {
            if self.is_owner(kept.each, kept.leaf, facts, now) {
                return (kept.leaf, flow);
            }
            Goal::Each(kept.each)
        } else {
            self.counters.reclassified += u64::from(kept.epoch != 0);
            self.index.answer(facts).goal
        };
        let (leaf, each) = self.leaf(goal, facts, now);
        let kept = Kept { variant, leaf, each, epoch: self.epoch };
        self.flows.entry(place).answers[facts.side] = kept;
        (leaf, flow)
    }

    #[inline]
    fn is_owner(&mut self, each: u32, leaf: u32, facts: &Facts, now: Instant) -> bool {
        let Some(hosts) = self.index.hosts.get_mut(each as usize) else { return false };
        let by = hosts.each().by;
        Who::of(by, facts).is_some_and(|who| {
            let host = who.or_host(by, facts, &self.index.routers);
            hosts.touch(leaf, host, facts.side, now)
        })
    }

    /// The leaf that a goal means for a frame, made if need be, and which `each` it is of.
    fn leaf(&mut self, goal: Goal, facts: &Facts, now: Instant) -> (u32, u32) {
        let each = match goal {
            Goal::Leaf(leaf) | Goal::Subscriber(leaf) => return (leaf, NO_EACH),
            Goal::Each(each) => each,
        };
        let hosts = &mut self.index.hosts[each as usize];
        let overflow = hosts.each().overflow_leaf;
        let by = hosts.each().by;
        let Some(who) = Who::of(by, facts) else { return (overflow, each) };
        if !hosts.knows(who) {
            // as long as this policy is in force, nothing else becomes of its connection
            if hosts.ask(who) {
                let class = hosts.class();
                self.counters.hosts_asked += 1;
                self.note(Event::Asked { class, owner: who.owner(by) });
            }
            return (overflow, NO_EACH);
        }
        let host = who.or_host(by, facts, &self.index.routers);
        if let Some(leaf) = hosts.find(self.seed, host) {
            hosts.touch(leaf, host, facts.side, now);
            return (leaf, each);
        }
        if facts.side == Side::Wan && by.is_of_lan() {
            // anyone outside can send to addresses that nobody has
            return (overflow, each);
        }
        let Some(leaf) = hosts.make(self.seed, host, who, now) else {
            self.counters.hosts_overflowed += 1;
            return (overflow, each);
        };
        let class = hosts.class();
        self.counters.hosts_made += 1;
        self.note(Event::Made { class, leaf, owner: who.owner(by) });
        (leaf, each)
    }

    fn note(&mut self, event: Event) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
            self.counters.events_lost += 1;
        }
        self.events.push_back(event);
    }
}
