//! The scheduler against a fluid, frame by frame: bursts that come, a line that rises and falls,
//! guarantees that do not fit, a clock that jumps, frames of 60 to 9 000 bytes, and edits: weights,
//! guarantees, nodes that move, all at once or some at a time while frames leave. What each leaf
//! has sent differs from the fluid by what the order may cost, at each moment.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an oracle computes with floats, that is what makes it another implementation"
)]

mod gps;
mod slack;

use gps::{Fluid, Node};
use proptest::prelude::*;
use proptest::sample::Index;
use weir_packet::{Headers, Label, Pool, Side};
use weir_shape::tree::{Edit, NodeSpec, Spec, Tree};
use weir_units::{Instant, Rate, Span};

const BUFFERS: usize = 4_000;

/// After so many frames fluid and tree are made equal again: a leaf that runs dry does so a little
/// earlier or later than in the fluid, and what others get meanwhile adds up.
const WINDOW: u32 = 300;

/// Late enough that nothing is left of a time before.
const START: Instant = Instant::from_ns(1 << 50);

/// What happens.
#[derive(Clone, Debug)]
enum Step {
    /// So many frames come to a leaf, all of one size.
    Come { leaf: Index, frames: u8, size: u16 },
    /// So many leave.
    Leave(u8),
    /// Time passes while the tree is polled as it wishes: so many frames' times.
    Pass(u8),
    /// The line carries so many thousandths of what it did at first.
    Line(u16),
    /// Nobody polls for so many milliseconds; then frames come to a leaf before the first leaves.
    Jump { ms: u16, leaf: Index, frames: u8 },
    /// A node has another weight, and is guaranteed so many thousandths of its parent's.
    Edit { node: Index, weight: u64, rate: u64 },
    /// A node has another parent.
    Move { node: Index, parent: Index },
}

#[derive(Clone, Debug)]
struct Told {
    parent: Index,
    weight: u64,
    /// In thousandths of its parent's.
    rate: u64,
    is_inner: bool,
}

#[derive(Clone, Debug)]
struct Case {
    line: u64,
    nodes: Vec<Told>,
    steps: Vec<Step>,
    /// Where siblings are more than so many, an edit moves them some at a time.
    at_once: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![4 => 60u16..1_515, 1 => 1_515u16..9_001];
    prop_oneof![
        6 => (any::<Index>(), 1u8..40, size)
            .prop_map(|(leaf, frames, size)| Step::Come { leaf, frames, size }),
        6 => (1u8..60).prop_map(Step::Leave),
        2 => (1u8..60).prop_map(Step::Pass),
        1 => (100u16..3_000).prop_map(Step::Line),
        2 => (5u16..2_000, any::<Index>(), 0u8..100)
            .prop_map(|(ms, leaf, frames)| Step::Jump { ms, leaf, frames }),
        2 => (any::<Index>(), 1u64..50, rate())
            .prop_map(|(node, weight, rate)| Step::Edit { node, weight, rate }),
        1 => (any::<Index>(), any::<Index>())
            .prop_map(|(node, parent)| Step::Move { node, parent }),
    ]
}

/// Two of three are guaranteed nothing.
fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => 1u64..700]
}

fn case() -> impl Strategy<Value = Case> {
    let told = (any::<Index>(), 1u64..50, rate(), any::<bool>())
        .prop_map(|(parent, weight, rate, is_inner)| Told { parent, weight, rate, is_inner });
    let line = prop_oneof![100_000u64..1_000_000, 1_000_000u64..1_000_000_000];
    let steps = prop::collection::vec(step(), 1..200);
    (line, prop::collection::vec(told, 1..20), steps, 0usize..9)
        .prop_map(|(line, nodes, steps, at_once)| Case { line, nodes, steps, at_once })
}

/// The tree: nodes that have no children are leaves.
fn spec(case: &Case) -> Spec {
    let mut nodes: Vec<NodeSpec> = Vec::new();
    let mut inner = vec![0usize];
    let mut rates = vec![case.line];
    for (told, number) in case.nodes.iter().zip(1usize..) {
        let parent = inner[told.parent.index(inner.len())];
        let mut rate = rates[parent] * told.rate / 1_000;
        if rate < 1_000 {
            rate = 0;
        }
        rates.push(rate);
        let mut node = NodeSpec::new(number as u32, parent as u32, true);
        (node.weight, node.rate) = (told.weight, Rate::from_bps(rate));
        // nobody loses a frame: the pool ends first
        node.frames = BUFFERS as u32;
        if parent != 0 {
            nodes[parent - 1].is_leaf = false;
        }
        nodes.push(node);
        if told.is_inner {
            inner.push(number);
        }
    }
    Spec { rate: Rate::from_bps(case.line), nodes, ..Spec::default() }
}

struct World {
    spec: Spec,
    tree: Tree,
    pool: Pool,
    now: Instant,
    /// What the line carried at first, and what it carries.
    first: u64,
    line: u64,
    leaves: Vec<usize>,
    at_once: usize,
    /// Bits of the largest frame that has come to each node.
    largest: Vec<f64>,
    /// Bits that wait and that have left, by number.
    waiting: Vec<f64>,
    sent: Vec<f64>,
    /// Frames that have left since fluid and tree were made equal.
    left: u32,
    /// What the order may cost each: the most since then, and the most of the time before, with
    /// the weights that it had then.
    slack: Vec<f64>,
    before: Vec<f64>,
    /// A node is on its way to another parent: it sends nothing, and the fluid knows nothing of it.
    moves: bool,
    fluid: Fluid,
}

impl World {
    fn of(spec: Spec) -> World {
        World::with(spec, 64)
    }

    fn with(spec: Spec, at_once: usize) -> World {
        let mut tree = Tree::new(BUFFERS, usize::MAX, 0, START);
        let mut edit = Edit::in_steps(&Spec::default(), &spec, at_once);
        tree.apply(START, &mut edit, |leaf| leaf, |_, _, _| {});
        let count = spec.nodes.len() + 1;
        let leaves = spec.nodes.iter().filter(|n| n.is_leaf).map(|n| n.number as usize).collect();
        let mut world = World {
            tree,
            pool: Pool::new(BUFFERS, 9_000),
            now: START,
            first: spec.rate.bps(),
            line: spec.rate.bps(),
            leaves,
            at_once,
            largest: vec![0.0; count],
            waiting: vec![0.0; count],
            sent: vec![0.0; count],
            left: 0,
            slack: vec![0.0; count],
            before: vec![0.0; count],
            moves: false,
            fluid: Fluid::new(vec![Node::default()], 0.0, 0.0),
            spec,
        };
        world.begin_anew();
        world
    }

    /// The fluid has what waits here, and nothing is counted yet.
    fn begin_anew(&mut self) {
        let told = self.spec.nodes.iter().map(|node| Node {
            parent: node.parent as usize,
            weight: node.weight as f64,
            guarantee: node.rate.bps() as f64,
            queue: self.waiting[node.number as usize],
            served: 0.0,
        });
        let nodes = std::iter::once(Node::default()).chain(told).collect();
        self.fluid = Fluid::new(nodes, self.line as f64, self.seconds());
        self.sent.fill(0.0);
        // in a short window nobody makes up for what came before it
        let is_short = self.left <= WINDOW;
        for (before, slack) in self.before.iter_mut().zip(&self.slack) {
            *before = if is_short { slack.max(*before) } else { *slack };
        }
        self.slack.fill(0.0);
        self.left = 0;
    }

    fn seconds(&self) -> f64 {
        self.now.since(START).ns() as f64 / 1e9
    }

    fn comes(&mut self, leaf: usize, size: usize) {
        let Some(mut frame) = self.pool.take() else { return };
        assert!(self.pool.resize(&mut frame, 0, size));
        let mut label = Label::new(Side::Lan, &Headers::EMPTY);
        label.leaf = leaf as u32;
        let lost = self.tree.push(self.now, frame, label).expect("room");
        assert!(lost.is_none(), "nobody loses a frame here");
        let bits = (self.spec.link.cost(size, 0).get() * 8) as f64;
        self.waiting[leaf] += bits;
        self.fluid.comes(leaf, bits);
        let mut at = leaf;
        loop {
            self.largest[at] = self.largest[at].max(bits);
            if at == 0 {
                return;
            }
            at = self.spec.nodes[at - 1].parent as usize;
        }
    }

    /// A frame leaves as soon as one may, but not after `until`. It has gone when the next one may
    /// leave.
    fn leaves(&mut self, until: Instant) -> Result<bool, TestCaseError> {
        let Some(at) = self.tree.next_at().filter(|&at| at <= until) else { return Ok(false) };
        if at > self.now {
            // now all that left before have gone
            self.now = at;
            if !self.moves {
                self.fluid.goes_on(self.seconds());
                self.compare()?;
            }
        }
        let out = self.tree.pop(self.now);
        let Some(out) = out else {
            return Err(TestCaseError::fail("the tree says that a frame may leave, and none does"));
        };
        let bits = (self.spec.link.cost(out.frame.len(), 0).get() * 8) as f64;
        let leaf = out.label.leaf as usize;
        self.waiting[leaf] -= bits;
        self.pool.give(out.frame);
        self.left += 1;
        let mut at = leaf;
        while at != 0 {
            self.sent[at] += bits;
            at = self.spec.nodes[at - 1].parent as usize;
        }
        Ok(true)
    }

    /// Everyone has what the fluid has, to what the order may cost now and when it was begun.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        for (number, slack) in self.slack().into_iter().enumerate().skip(1) {
            self.slack[number] = slack.max(self.slack[number]);
            let off = self.sent[number] - self.fluid.served(number);
            let most = self.slack[number] + self.slack[number].max(self.before[number]) + 1.0;
            prop_assert!(
                off.abs() <= most,
                "node {number} has sent {} bits, the fluid {:.0} (slack {most}), at {}",
                self.sent[number],
                self.fluid.served(number),
                self.seconds()
            );
        }
        Ok(())
    }

    /// Another weight and another guarantee count from now on, for the fluid too; what anyone has
    /// had too much or too little stays.
    fn tell(&mut self, node: &Index, weight: u64, rate: u64) -> Result<(), TestCaseError> {
        let at = node.index(self.spec.nodes.len());
        let mut new = self.spec.clone();
        let parent = new.nodes[at].parent as usize;
        let above = parent.checked_sub(1).map_or(self.line, |at| new.nodes[at].rate.bps());
        let rate = Rate::from_bps(above * rate / 1_000);
        let rate = if rate.bps() < 1_000 { Rate::ZERO } else { rate };
        (new.nodes[at].weight, new.nodes[at].rate) = (weight, rate);
        self.fluid.goes_on(self.seconds());
        self.compare()?;
        self.fluid.tell(at + 1, weight as f64, rate.bps() as f64);
        self.becomes(new)
    }

    /// A node and all below it are another's children from now on, with the frames that wait.
    fn moves(&mut self, node: &Index, parent: &Index) -> Result<(), TestCaseError> {
        let at = node.index(self.spec.nodes.len());
        // a parent comes before its children
        let before = self.spec.nodes[..at].iter().filter(|node| !node.is_leaf);
        let parents: Vec<u32> = std::iter::once(0).chain(before.map(|node| node.number)).collect();
        let mut new = self.spec.clone();
        new.nodes[at].parent = parents[parent.index(parents.len())];
        self.moves = true;
        self.becomes(new)?;
        self.moves = false;
        let mut at = at + 1;
        while at != 0 {
            let parent = self.spec.nodes[at - 1].parent as usize;
            self.largest[parent] = self.largest[parent].max(self.largest[at]);
            at = parent;
        }
        self.begin_anew();
        Ok(())
    }

    /// An edit takes some calls; frames leave meanwhile.
    fn becomes(&mut self, new: Spec) -> Result<(), TestCaseError> {
        let new = Spec { rate: Rate::from_bps(self.line), ..new };
        let mut edit = Edit::in_steps(&self.spec, &new, self.at_once);
        self.spec = new;
        self.tree.apply(self.now, &mut edit, |leaf| leaf, |_, _, _| {});
        let mut calls = 0;
        while !self.tree.goes_on(self.now, &mut edit) {
            self.agrees(false)?;
            self.leaves(Instant::MAX)?;
            calls += 1;
            prop_assert!(calls < 100, "an edit has no end");
        }
        self.agrees(true)
    }

    /// The tree agrees with itself.
    fn agrees(&self, is_done: bool) -> Result<(), TestCaseError> {
        self.tree.check(is_done).map_err(TestCaseError::fail)
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        if self.left > WINDOW {
            self.begin_anew();
        }
        match step {
            Step::Come { leaf, frames, size } => {
                self.fluid.goes_on(self.seconds());
                let leaf = self.leaves[leaf.index(self.leaves.len())];
                (0..*frames).for_each(|_| self.comes(leaf, usize::from(*size)));
            }
            Step::Leave(frames) => {
                for _ in 0..*frames {
                    if !self.leaves(Instant::MAX)? {
                        break;
                    }
                }
            }
            Step::Pass(frames) => {
                let frame = Rate::from_bps(self.line).time_for(weir_units::Bytes::new(1_518));
                let until = self.now + Span::from_ns(frame.ns() * u64::from(*frames));
                while self.leaves(until)? {}
                self.now = self.now.max(until);
            }
            Step::Line(thousandths) => {
                self.line = self.first * u64::from(*thousandths) / 1_000;
                self.tree.set_rate(self.now, Rate::from_bps(self.line));
                self.begin_anew();
            }
            Step::Edit { node, weight, rate } => self.tell(node, *weight, *rate)?,
            Step::Move { node, parent } => self.moves(node, parent)?,
            Step::Jump { ms, leaf, frames } => {
                self.now += Span::from_ms(u64::from(*ms));
                let leaf = self.leaves[leaf.index(self.leaves.len())];
                (0..*frames).for_each(|_| self.comes(leaf, 1_000));
                // the line makes up for a millisecond at once, which a fluid cannot
                while self.leaves(self.now)? {}
                self.begin_anew();
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]
    #[test]
    fn every_leaf_has_what_the_fluid_has(case in case()) {
        let mut world = World::with(spec(&case), case.at_once);
        for step in &case.steps {
            world.step(step)?;
            world.agrees(true)?;
        }
    }
}

/// What each has, in bits a second, of a line that falls to so many bits a second, and how many of
/// its frames' times it waits at most. All want all.
fn on_a_lower_line(told: &[(u64, u64)], line: u64, low: u64) -> Vec<(f64, f64)> {
    let nodes = (1..).zip(told).map(|(number, &(weight, rate))| {
        let rate = Rate::from_bps(rate);
        NodeSpec { weight, rate, ..NodeSpec::new(number, 0, true) }
    });
    let rate = Rate::from_bps(line);
    let mut world = World::of(Spec { rate, nodes: nodes.collect(), ..Spec::default() });
    let (mut last, mut longest) = (vec![START; told.len() + 1], vec![Span::ZERO; told.len() + 1]);
    let mut sent = world.sent.clone();
    for phase in 0..3 {
        if phase == 1 {
            // it falls in the midst of things, and then has some seconds
            world.tree.set_rate(world.now, Rate::from_bps(low));
        }
        if phase == 2 {
            sent.clone_from(&world.sent);
            last.fill(world.now);
        }
        let until = world.now + Span::from_ns(120_000 * 12_000 * 1_000_000_000 / line);
        while world.now < until {
            (1..=told.len()).for_each(|leaf| {
                if world.waiting[leaf] < 24_000.0 {
                    world.comes(leaf, 1_476);
                }
            });
            world.now = world.now.max(world.tree.next_at().expect("somebody may send"));
            let out = world.tree.pop(world.now).expect("a frame");
            let leaf = out.label.leaf as usize;
            let bits = (world.spec.link.cost(out.frame.len(), 0).get() * 8) as f64;
            world.pool.give(out.frame);
            world.waiting[leaf] -= bits;
            world.sent[leaf] += bits;
            if phase == 2 {
                longest[leaf] = longest[leaf].max(world.now.since(last[leaf]));
                last[leaf] = world.now;
            }
        }
    }
    let seconds = 120_000.0 * 12_000.0 / line as f64;
    let had = (1..=told.len()).map(|leaf| {
        let rate = (world.sent[leaf] - sent[leaf]) / seconds;
        (rate, longest[leaf].ns() as f64 / 1e9 * rate / 12_000.0)
    });
    had.collect()
}

/// Guarantees and weights in bits a second, of a line of 100 Mbit/s that falls to so many per cent:
/// what each has then, in kbit/s. Nobody waits longer than three of its frames take.
#[test]
fn guarantees_are_scaled_alike_on_every_line() {
    const M: u64 = 1_000_000;
    let f1 = [(1, 70 * M), (1, 29 * M), (1, M)];
    let with_other = [(1, 70 * M), (1, 30 * M), (1, 0)];
    let default = [(50 * M, 50 * M), (30 * M, 30 * M), (10 * M, 10 * M), (10 * M, 0)];
    let small = [(1, 45 * M), (1, 45 * M), (1, 64_000)];
    type Row<'a> = (&'a [(u64, u64)], u64, &'a [f64]);
    let rows: [Row<'_>; 11] = [
        (&f1, 97, &[67_900.0, 28_130.0, 970.0]),
        (&f1, 50, &[35_000.0, 14_500.0, 500.0]),
        (&f1, 3, &[2_100.0, 870.0, 30.0]),
        (&small, 90, &[44_968.0, 44_968.0, 63.95]),
        (&small, 20, &[9_993.0, 9_993.0, 14.2]),
        (&with_other, 100, &[69_300.0, 29_700.0, 1_000.0]),
        (&with_other, 60, &[41_580.0, 17_820.0, 600.0]),
        (&default, 100, &[50_000.0, 30_000.0, 10_000.0, 10_000.0]),
        (&default, 95, &[50_000.0, 30_000.0, 10_000.0, 5_000.0]),
        (&default, 50, &[27_500.0, 16_500.0, 5_500.0, 500.0]),
        (&default, 1, &[550.0, 330.0, 110.0, 10.0]),
    ];
    for (told, percent, law) in rows {
        let had = on_a_lower_line(told, 100 * M, percent * M);
        for ((rate, wait), law) in had.iter().zip(law) {
            let kbps = rate / 1_000.0;
            // a frame at each end
            let slack = law * 0.005 + 2.0 * 12.0 / 14.4;
            assert!((kbps - law).abs() < slack, "{told:?} at {percent} %: {had:?}, not {law}");
            assert!(*wait < 3.0, "{told:?} at {percent} %: waited for {wait} of its frames");
        }
    }
}

/// Half of the weight is one leaf's: it has every other frame, however many begin with it and have
/// no more than that one.
#[test]
fn one_of_great_weight_does_not_wait_for_all_who_have_a_frame() {
    const MANY: u32 = 200;
    let leaf = |number: u32, weight| NodeSpec { weight, ..NodeSpec::new(number, 0, true) };
    let mut nodes = vec![leaf(1, u64::from(MANY))];
    nodes.extend((2..2 + MANY).map(|number| leaf(number, 1)));
    let rate = Rate::from_bps(10_000_000);
    let mut world = World::of(Spec { rate, nodes, ..Spec::default() });
    (0..600).for_each(|_| world.comes(1, 1_000));
    for _ in 0..10 {
        world.leaves(Instant::MAX).expect("a frame");
    }
    (2..2 + MANY as usize).for_each(|leaf| world.comes(leaf, 1_000));
    let is_its = |world: &mut World| {
        world.now = world.tree.next_at().expect("a frame");
        world.tree.pop(world.now).expect("a frame").label.leaf == 1
    };
    let had = (0..100).filter(|_| is_its(&mut world)).count();
    assert!(had > 45, "{had} of a hundred frames");
}

/// Two leaves of a line of 100 kbit/s, of which at most so many take their places at once.
fn two(weights: [u64; 2], at_once: usize) -> World {
    let leaf = |number, weight| NodeSpec { weight, ..NodeSpec::new(number, 0, true) };
    let nodes = vec![leaf(1, weights[0]), leaf(2, weights[1])];
    let rate = Rate::from_bps(100_000);
    World::with(Spec { rate, nodes, ..Spec::default() }, at_once)
}

/// How many of the next 20 frames are the second leaf's.
fn of_the_second(world: &mut World) -> usize {
    let mut is_its = || {
        world.now = world.now.max(world.tree.next_at().expect("a frame"));
        let out = world.tree.pop(world.now).expect("a frame");
        world.pool.give(out.frame);
        out.label.leaf == 2
    };
    (0..20).filter(|_| is_its()).count()
}

#[test]
fn who_was_alone_and_gets_more_weight_is_not_behind() {
    for at_once in [0, 64] {
        let mut world = two([1, 20], at_once);
        (0..60).for_each(|_| world.comes(1, 1_000));
        world.leaves(Instant::MAX).expect("a frame");
        let mut new = world.spec.clone();
        new.nodes[0].weight = 20;
        world.becomes(new).expect("is an edit");
        (0..60).for_each(|_| world.comes(2, 1_000));
        let had = of_the_second(&mut world);
        assert!((9..=11).contains(&had), "{had} of 20 frames, {at_once} at once");
    }
}

#[test]
fn a_guarantee_that_goes_and_comes_back_has_its_clock() {
    for at_once in [0, 64] {
        let mut world = two([31, 1], at_once);
        for rate in [50_000, 0] {
            let mut new = world.spec.clone();
            new.nodes[1].rate = Rate::from_bps(rate);
            world.becomes(new).expect("is an edit");
            (0..2).for_each(|_| world.comes(2, 3_000));
            world.now += Span::from_ms(200);
            while world.leaves(world.now).expect("in order") {}
            world.begin_anew();
        }
        while world.leaves(Instant::MAX).expect("in order") {}
        (0..60).for_each(|_| world.comes(1, 4_000));
        let mut new = world.spec.clone();
        new.nodes[1].rate = Rate::from_bps(80_000);
        world.becomes(new).expect("is an edit");
        (0..60).for_each(|_| world.comes(2, 4_000));
        let had = of_the_second(&mut world);
        assert!(had >= 15, "{had} of 20 frames, {at_once} at once");
    }
}

/// A small guarantee that the weight keeps may be late for long; once the weight does not, it is
/// late no longer, and the clocks of others do not wait for it.
#[test]
fn a_guarantee_that_its_weight_keeps_no_more_stops_no_other() {
    for at_once in [0, 64] {
        let leaf = |number, weight, rate| {
            let rate = Rate::from_bps(rate);
            NodeSpec { weight, rate, ..NodeSpec::new(number, 0, true) }
        };
        let nodes = vec![leaf(1, 1, 29_000), leaf(2, 1, 503_000), leaf(3, 1, 0)];
        let rate = Rate::from_bps(1_000_000);
        let mut world = World::with(Spec { rate, nodes, ..Spec::default() }, at_once);
        world.comes(1, 60);
        world.now += Span::from_ms(1_300);
        (0..40).for_each(|_| world.comes(2, 860));
        (0..40).for_each(|_| world.comes(3, 860));
        let mut new = world.spec.clone();
        new.nodes[2].weight = 50;
        world.becomes(new).expect("is an edit");
        let had = of_the_second(&mut world);
        assert!(had >= 9, "{had} of 20 frames, {at_once} at once");
    }
}
