//! The tree with its senders, in virtual time: polled exactly when it says, and told of arrivals
//! exactly when they come. An event costs the logarithm of the leaves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use weir_packet::{Headers, Label, Pool, Side};
use weir_shape::tree::{Edit, Spec, Tree};
use weir_units::{Instant, Rate, Span};

use crate::case::{Case, Demand};
use crate::dice::Dice;
use crate::solver::{solve, unsteady};

/// Bytes that wait in a leaf which offers a part, at most: enough for what its siblings and those
/// of its ancestors may delay it.
const MOST_WAITING: u64 = 14_000;
/// Frames that wait in a leaf that offers all.
const BACKLOG: u32 = 3;

/// Late enough that a burst of any ceiling lies behind.
const START: Instant = Instant::from_ns(1 << 50);

pub(crate) struct World {
    /// Children of a node that are sorted at once.
    at_once: usize,
    pub(crate) spec: Spec,
    pub(crate) tree: Tree,
    pub(crate) now: Instant,
    /// Bits that each node has sent, by number.
    pub(crate) sent: Vec<u64>,
    /// Frames and bytes that wait, by number.
    pub(crate) waiting: Vec<(u32, u64)>,
    /// Since when something waits, by number.
    pub(crate) busy_since: Vec<Instant>,
    pub(crate) demands: Vec<Demand>,
    sizes: Vec<(u16, u16)>,
    rate: f64,
    pool: Pool,
    dice: Dice,
    /// When each leaf that offers a part has its next frame, in nanoseconds.
    due: Vec<f64>,
    arrivals: BinaryHeap<Reverse<(u64, u32)>>,
    /// Which entry of the heap counts, by number.
    listed: Vec<Option<u64>>,
}

/// A frame that left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) leaf: usize,
    pub(crate) bytes: u64,
    /// When it came.
    pub(crate) since: Instant,
}

/// What had been sent when a window began.
pub(crate) struct Before {
    at: Instant,
    sent: Vec<u64>,
}

/// What comparisons have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// The largest error as a part of what it may be.
    pub(crate) worst: f64,
    /// Nodes that should have had something.
    pub(crate) compared: u64,
    /// Those of them that could have had nothing without being noticed.
    pub(crate) vacuous: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.worst = self.worst.max(other.worst);
        self.compared += other.compared;
        self.vacuous += other.vacuous;
    }
}

/// What happened in a step.
pub(crate) enum Step {
    Left(Sent),
    Other,
    /// Nothing will happen any more.
    End,
}

impl World {
    pub(crate) fn new(case: &Case) -> World {
        World::of(case, case.spec())
    }

    /// With another spec than the case's own.
    pub(crate) fn of(case: &Case, spec: Spec) -> World {
        let frames = (case.nodes.len() * 32 + 1_000).min(400_000);
        let pool = Pool::new(frames, 1_514);
        let mut tree = Tree::new(pool.capacity(), usize::MAX, 0, START);
        // some trees take four children for very many
        let at_once = [4, 64][usize::from(case.seed.is_multiple_of(2))];
        let mut edit = Edit::in_steps(&Spec::default(), &spec, at_once);
        tree.apply(START, &mut edit, |leaf| leaf, |_, _, _| {});
        let mut world = World {
            spec: Spec::default(),
            at_once,
            tree,
            now: START,
            sent: Vec::new(),
            waiting: Vec::new(),
            busy_since: Vec::new(),
            demands: Vec::new(),
            sizes: Vec::new(),
            rate: case.rate as f64,
            pool,
            dice: Dice::new(case.seed),
            due: Vec::new(),
            arrivals: BinaryHeap::new(),
            listed: Vec::new(),
        };
        world.becomes(case, spec);
        world
    }

    /// Makes another tree of this one; frames of leaves that are gone go to the first leaf, or
    /// come back where they are many.
    pub(crate) fn change(&mut self, case: &Case) {
        let spec = case.spec();
        let first = spec.nodes.iter().find(|n| n.is_leaf).expect("a leaf").number;
        let mut edit = Edit::in_steps(&self.spec, &spec, self.at_once);
        let most = self.waiting.len().max(spec.nodes.len() + 1);
        self.waiting.resize(most, (0, 0));
        let (waiting, link) = (&mut self.waiting, self.spec.link);
        let before: usize = waiting.iter().map(|w| w.0 as usize).sum();
        self.tree.apply(
            self.now,
            &mut edit,
            |_| first,
            |from, label, len| {
                assert_eq!(label.leaf, first);
                let cost = link.cost(len, 0).get();
                let (old, new) = (from as usize, first as usize);
                waiting[old] = (waiting[old].0 - 1, waiting[old].1 - cost);
                waiting[new] = (waiting[new].0 + 1, waiting[new].1 + cost);
            },
        );
        let mut left_behind = 0;
        while !self.tree.goes_on(self.now, &mut edit) {}
        while let Some(left) = self.tree.take_left_behind() {
            let old = &mut waiting[left.label.leaf as usize];
            *old = (old.0 - 1, old.1 - link.cost(left.frame.len(), 0).get());
            self.pool.give(left.frame);
            left_behind += 1;
        }
        let after: usize = waiting.iter().map(|w| w.0 as usize).sum();
        assert_eq!((before, after), (self.tree.len() + left_behind, self.tree.len()));
        self.becomes(case, spec);
    }

    fn becomes(&mut self, case: &Case, spec: Spec) {
        let count = spec.nodes.len() + 1;
        self.rate = case.rate as f64;
        self.sizes = vec![(0, 0); count];
        self.waiting.resize(count, (0, 0));
        self.busy_since.resize(count, self.now);
        self.sent = vec![0; count];
        self.demands = vec![Demand::Nothing; count];
        self.due = vec![0.0; count];
        self.listed = vec![None; count];
        self.arrivals.clear();
        let is_leaf: Vec<bool> = spec.nodes.iter().map(|n| n.is_leaf).collect();
        self.spec = spec;
        for ((number, told), is_leaf) in (1..).zip(&case.nodes).zip(is_leaf) {
            self.sizes[number] = told.sizes;
            if is_leaf {
                self.demand(number, told.demand);
            }
        }
    }

    /// A leaf wants something else from now on.
    pub(crate) fn demand(&mut self, number: usize, demand: Demand) {
        self.demands[number] = demand;
        self.listed[number] = None;
        match demand {
            Demand::Nothing => {}
            Demand::All => self.refill(number),
            Demand::Part(_) => {
                // not all at the same moment
                let wait = self.dice.within(0, 1_000_000) as f64 / 1e6 * self.gap(number, 800.0);
                self.due[number] = self.now.ns() as f64 + wait;
                self.list(number);
            }
        }
    }

    /// One leaf in three wants something else from now on.
    pub(crate) fn change_minds(&mut self, dice: &mut Dice) {
        let most = (2_000_000 / self.demands.len() as u64).clamp(10, 400_000);
        for number in 1..self.demands.len() {
            if self.spec.nodes[number - 1].is_leaf && dice.one_in(3) {
                let demand = match dice.within(0, 2) {
                    0 => Demand::Nothing,
                    1 => Demand::Part(dice.within(1, most) as u32),
                    _ => Demand::All,
                };
                self.demand(number, demand);
            }
        }
    }

    /// A frame of random size comes to a leaf.
    pub(crate) fn push(&mut self, number: usize) -> u64 {
        let (least, most) = self.sizes[number];
        let size = self.dice.within(least.into(), most.into()) as usize;
        self.push_sized(number, size)
    }

    pub(crate) fn push_sized(&mut self, number: usize, size: usize) -> u64 {
        let mut frame = self.pool.take().expect("a buffer");
        assert!(self.pool.resize(&mut frame, 0, size));
        let mut label = Label::new(Side::Lan, &Headers::EMPTY);
        label.leaf = number as u32;
        let none = self.tree.push(self.now, frame, label).expect("room");
        assert!(none.is_none(), "nobody loses a frame here");
        let cost = self.spec.link.cost(size, 0).get();
        let (frames, bytes) = self.waiting[number];
        if frames == 0 {
            self.busy_since[number] = self.now;
        }
        self.waiting[number] = (frames + 1, bytes + cost);
        cost
    }

    /// The next arrival, or what leaves next, whichever is first.
    pub(crate) fn step(&mut self) -> Step {
        let next = self.tree.next_at();
        let arrival = self.arrivals.peek().map(|Reverse(first)| *first);
        if let Some((at, number)) = arrival
            && next.is_none_or(|next| at <= next.ns())
        {
            self.arrivals.pop();
            if self.listed[number as usize] == Some(at) {
                self.now = self.now.max(Instant::from_ns(at));
                self.arrive(number as usize);
            }
            return Step::Other;
        }
        let Some(next) = next else { return Step::End };
        self.now = self.now.max(next);
        self.leave().map_or(Step::Other, Step::Left)
    }

    /// Until a moment; `false` if so many frames have left before.
    pub(crate) fn run(
        &mut self,
        until: Instant,
        frames: u64,
        mut seen: impl FnMut(&World, Sent),
    ) -> bool {
        let mut left = 0;
        while left < frames {
            let next = self.tree.next_at().into_iter();
            let next =
                next.chain(self.arrivals.peek().map(|Reverse((at, _))| Instant::from_ns(*at)));
            if next.min().is_none_or(|next| next >= until) {
                self.now = self.now.max(until);
                return true;
            }
            if let Step::Left(sent) = self.step() {
                left += 1;
                seen(self, sent);
            }
        }
        false
    }

    /// Nobody sends any more until everything has left.
    pub(crate) fn drain(&mut self) {
        self.arrivals.clear();
        let demands = std::mem::take(&mut self.demands);
        self.demands = vec![Demand::Nothing; demands.len()];
        let mut idle = 0;
        while let Some(at) = self.tree.next_at() {
            self.now = self.now.max(at);
            idle = if self.leave().is_some() { 0 } else { idle + 1 };
            assert!(idle < 1_000, "the tree says that something can leave, and nothing does");
        }
        assert_eq!((0, 0), (self.tree.len(), self.waiting.iter().map(|w| w.0 as usize).sum()));
        self.listed.fill(None);
        for (number, demand) in demands.into_iter().enumerate() {
            self.demand(number, demand);
        }
    }

    fn leave(&mut self) -> Option<Sent> {
        let out = self.tree.pop(self.now)?;
        let leaf = out.label.leaf as usize;
        let bytes = self.spec.link.cost(out.frame.len(), 0).get();
        let mut number = leaf;
        self.sent[0] += bytes * 8;
        while number != 0 {
            self.sent[number] += bytes * 8;
            number = self.parent(number);
        }
        let (frames, before) = self.waiting[leaf];
        self.waiting[leaf] = (frames - 1, before - bytes);
        self.pool.give(out.frame);
        match self.demands[leaf] {
            Demand::Nothing => {}
            Demand::All => self.refill(leaf),
            Demand::Part(_) if self.listed[leaf].is_none() => {
                // it had to wait for room
                self.due[leaf] = self.due[leaf].max(self.now.ns() as f64);
                self.list(leaf);
            }
            Demand::Part(_) => {}
        }
        Some(Sent { leaf, bytes, since: out.since })
    }

    fn refill(&mut self, number: usize) {
        while self.waiting[number].0 < BACKLOG {
            self.push(number);
        }
    }

    fn arrive(&mut self, number: usize) {
        self.listed[number] = None;
        if !matches!(self.demands[number], Demand::Part(_)) {
            return;
        }
        if self.waiting[number].1 < MOST_WAITING {
            let bytes = self.push(number);
            self.due[number] += self.gap(number, bytes as f64);
            self.list(number);
        }
    }

    fn list(&mut self, number: usize) {
        let at = self.due[number].ceil() as u64;
        if self.listed[number].replace(at) != Some(at) {
            self.arrivals.push(Reverse((at, number as u32)));
        }
    }

    /// Nanoseconds that so many bytes of a leaf's demand are apart.
    fn gap(&self, number: usize, bytes: f64) -> f64 {
        let Demand::Part(part) = self.demands[number] else { return 0.0 };
        bytes * 8e9 / (self.rate * f64::from(part) / 1e6)
    }

    pub(crate) fn parent(&self, number: usize) -> usize {
        self.spec.nodes[number - 1].parent as usize
    }

    /// What each node should have had in a window, in bits per second. Who does not want all has
    /// wanted what it has sent and what waits now, and all if it had no room for more. Also who is
    /// at its ceiling, and by how much one may be off (`unsteady`).
    fn solution(&self, before: &Before) -> (Vec<f64>, Vec<bool>, Vec<f64>) {
        let want = |number: usize| match (self.demands[number], self.waiting[number].1) {
            (Demand::All, _) | (Demand::Part(_), MOST_WAITING..) => f64::INFINITY,
            (_, bytes) => {
                let sent = self.sent[number] - before.sent[number];
                (sent + bytes * 8) as f64 / self.seconds(before)
            }
        };
        let wants: Vec<f64> = (0..self.demands.len()).map(want).collect();
        let ceilings = self.ceilings();
        let mut solution = solve(&self.spec, &wants, &ceilings);
        // nodes at their ceilings may be some frames off, which others get or lack: those have the
        // right to what is left
        let mut had = ceilings.clone();
        let rates = solution.iter().skip(1).zip(&ceilings);
        let at_ceiling: Vec<bool> = rates.map(|(rate, ceil)| *rate >= ceil * 0.999_999).collect();
        for (at, had) in had.iter_mut().enumerate().filter(|(at, _)| at_ceiling[*at]) {
            *had = (self.sent[at + 1] - before.sent[at + 1]) as f64 / self.seconds(before);
        }
        let left = solve(&self.spec, &wants, &had);
        for (at, is_at_ceiling) in at_ceiling.iter().enumerate() {
            if !is_at_ceiling {
                solution[at + 1] = left[at + 1];
            }
        }
        (solution, at_ceiling, unsteady(&self.spec, &wants, &had))
    }

    fn ceilings(&self) -> Vec<f64> {
        self.spec.nodes.iter().map(|node| node.ceil.bps() as f64).collect()
    }

    /// Bits of the largest frame of each node's leaves.
    pub(crate) fn largest(&self) -> Vec<u64> {
        let mut largest: Vec<u64> = self
            .sizes
            .iter()
            .map(|&(_, most)| self.spec.link.cost(most.into(), 0).get() * 8)
            .collect();
        for node in self.spec.nodes.iter().filter(|node| !node.is_leaf) {
            largest[node.number as usize] = 0;
        }
        for node in self.spec.nodes.iter().rev() {
            let (number, parent) = (node.number as usize, node.parent as usize);
            largest[parent] = largest[parent].max(largest[number]);
        }
        largest
    }

    /// What the order may cost a node in bits, at each end of a window: a frame of its own and one
    /// of each above it, as WF2Q+ has it; and its part of what others may take ahead of it. Those
    /// are its siblings of a higher priority, a frame each, which all bear that are not above them;
    /// those that are guaranteed something, whose clocks may be two frames off, which all bear; and
    /// the same of each above it. `want` is the solution, by which the parts are.
    pub(crate) fn slack(&self, want: &[f64]) -> Vec<f64> {
        let largest: Vec<f64> = self.largest().into_iter().map(|bits| bits as f64).collect();
        // by parent and priority: the frames of those children that want anything, and what they
        // want
        let mut frames = vec![[0.0; 8]; want.len()];
        let mut wants = vec![[0.0; 8]; want.len()];
        let mut clocks = vec![0.0; want.len()];
        let wanting = self.spec.nodes.iter().filter(|node| want[node.number as usize] > 0.0);
        for node in wanting {
            let (number, parent) = (node.number as usize, node.parent as usize);
            frames[parent][usize::from(node.priority.0)] += largest[number];
            wants[parent][usize::from(node.priority.0)] += want[number];
            if node.rate > Rate::ZERO {
                clocks[parent] += 2.0 * largest[number];
            }
        }
        let part = |of: f64, all: f64| if all > 0.0 { of / all } else { 0.0 };
        let mut own = vec![largest[0]; want.len()];
        let mut taken = vec![0.0; want.len()];
        for node in &self.spec.nodes {
            let (number, parent) = (node.number as usize, node.parent as usize);
            let priority = usize::from(node.priority.0);
            let higher: f64 = frames[parent][..priority].iter().sum();
            let bear: f64 = wants[parent][priority..].iter().sum();
            taken[number] = (taken[parent] + clocks[parent])
                * part(want[number], wants[parent].iter().sum())
                + higher * part(want[number], bear);
            own[number] = own[parent] + largest[number];
        }
        own.iter().zip(taken).map(|(own, taken)| own + taken).collect()
    }

    /// How long a window must be so that half of the leaves that want anything get so many frames,
    /// and nine in ten an eighth of them.
    pub(crate) fn window(&self, frames: u64) -> Span {
        let want = |demand: &Demand| match demand {
            Demand::All => f64::INFINITY,
            Demand::Part(part) => self.rate * f64::from(*part) / 1e6,
            Demand::Nothing => 0.0,
        };
        let wants: Vec<f64> = self.demands.iter().map(want).collect();
        let ceilings = self.ceilings();
        let solution = solve(&self.spec, &wants, &ceilings);
        let largest = self.largest();
        let leaves = self.spec.nodes.iter().filter(|node| node.is_leaf);
        // seconds for one frame, the fastest first
        let mut seconds: Vec<f64> = leaves
            .map(|leaf| leaf.number as usize)
            .filter(|&leaf| solution[leaf] > 0.0)
            .map(|leaf| largest[leaf] as f64 / solution[leaf])
            .collect();
        seconds.sort_unstable_by(f64::total_cmp);
        let at = |tenths: usize| seconds.get(seconds.len() * tenths / 10).copied().unwrap_or(1.0);
        let seconds = (frames as f64 * at(5)).max(frames as f64 / 8.0 * at(9));
        Span::from_ns((seconds * 1e9) as u64)
    }

    pub(crate) fn before(&self) -> Before {
        Before { at: self.now, sent: self.sent.clone() }
    }

    pub(crate) fn sent_since(&self, before: &Before, number: usize) -> f64 {
        (self.sent[number] - before.sent[number]) as f64
    }

    pub(crate) fn seconds(&self, before: &Before) -> f64 {
        self.now.since(before.at).ns() as f64 / 1e9
    }

    /// What the leaves, and nodes at their ceilings, have sent in a window against the solver.
    /// `part` of it may be wrong, or what the order costs at each end of the window.
    pub(crate) fn compare(&self, before: &Before, part: f64) -> Result<Seen, TestCaseError> {
        let (want, at_ceiling, unsteady) = self.solution(before);
        let slacks = self.slack(&want);
        let seconds = self.seconds(before);
        let mut seen = Seen::default();
        for node in &self.spec.nodes {
            let number = node.number as usize;
            if !node.is_leaf && !at_ceiling[number - 1] {
                continue;
            }
            let want = want[number] * seconds;
            let got = (self.sent[number] - before.sent[number]) as f64;
            // a burst may have been left over when the window began
            let burst = node.burst.filter(|_| at_ceiling[number - 1]);
            let burst = burst.map_or(0.0, |bytes| (bytes.get() * 8) as f64);
            let slack =
                f64::max(want * part, 2.0 * slacks[number] + burst) + unsteady[number] * seconds;
            let off = (got - want).abs();
            seen.worst = seen.worst.max(off / slack);
            if want > 0.0 {
                seen.compared += 1;
                seen.vacuous += u64::from(slack >= want);
            }
            prop_assert!(
                off <= slack,
                "node {number}: {got} bits, not {want:.0}, in {seconds} s (slack {slack:.0}){}",
                self.describe(number)
            );
        }
        Ok(seen)
    }

    /// The way to a node, for a failure.
    fn describe(&self, mut number: usize) -> String {
        let mut text = format!(", of {} nodes", self.spec.nodes.len());
        while number != 0 {
            let node = &self.spec.nodes[number - 1];
            let siblings = self.spec.nodes.iter().filter(|n| n.parent == node.parent).count() - 1;
            text += &format!("\n{node:?} with {siblings} siblings");
            number = self.parent(number);
        }
        text
    }
}
