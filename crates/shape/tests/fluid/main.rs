//! The scheduler against a fluid, frame by frame: bursts that come, a line that rises and falls,
//! guarantees that do not fit, a clock that jumps, frames of 60 to 9 000 bytes. What each leaf has
//! sent differs from the fluid by what the order may cost, at each moment.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an oracle computes with floats, that is what makes it another implementation"
)]

mod gps;

use gps::{Fluid, Node};
use proptest::prelude::*;
use proptest::sample::Index;
use weir_packet::{Headers, Label, Pool, Side};
use weir_shape::Link;
use weir_shape::tree::{Edit, NodeSpec, Spec, Tree};
use weir_units::{Instant, Rate, Span};

const BUFFERS: usize = 4_000;

/// Frames that a frame may be out of order by: itself, the day of its calendar to which its place
/// is known, and half of the quarter to which it is known who should finish first.
const ORDER: f64 = 1.0 + 1.0 / 16.0 + 1.0 / 8.0;

/// Bits of a full frame. The clock of a guarantee may be off by two of these, however small the
/// frames are that it is for, or by two of the largest that any sibling has.
const FULL: f64 = 1_536.0 * 8.0;

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
    /// Nobody polls for so many milliseconds.
    Jump(u16),
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
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![4 => 60u16..1_515, 1 => 1_515u16..9_001];
    prop_oneof![
        6 => (any::<Index>(), 1u8..40, size)
            .prop_map(|(leaf, frames, size)| Step::Come { leaf, frames, size }),
        6 => (1u8..60).prop_map(Step::Leave),
        2 => (1u8..60).prop_map(Step::Pass),
        1 => (100u16..3_000).prop_map(Step::Line),
        1 => (5u16..2_000).prop_map(Step::Jump),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let rate = prop_oneof![2 => Just(0), 1 => 1u64..700];
    let told = (any::<Index>(), 1u64..50, rate, any::<bool>())
        .prop_map(|(parent, weight, rate, is_inner)| Told { parent, weight, rate, is_inner });
    let line = prop_oneof![100_000u64..1_000_000, 1_000_000u64..1_000_000_000];
    (line, prop::collection::vec(told, 1..20), prop::collection::vec(step(), 1..200))
        .prop_map(|(line, nodes, steps)| Case { line, nodes, steps })
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
        if parent != 0 {
            nodes[parent - 1].is_leaf = false;
        }
        nodes.push(node);
        if told.is_inner {
            inner.push(number);
        }
    }
    Spec { rate: Rate::from_bps(case.line), link: Link::default(), nodes, cares: vec![] }
}

struct World {
    spec: Spec,
    tree: Tree,
    pool: Pool,
    now: Instant,
    line: u64,
    leaves: Vec<usize>,
    /// Bits of the largest frame that has come to each node.
    largest: Vec<f64>,
    /// Bits that wait and that have left, by number.
    waiting: Vec<f64>,
    sent: Vec<f64>,
    /// Frames that have left since fluid and tree were made equal.
    left: u32,
    fluid: Fluid,
}

impl World {
    fn of(spec: Spec) -> World {
        let mut tree = Tree::new(BUFFERS, usize::MAX, 0, START);
        let mut edit = Edit::between(&Spec::default(), &spec);
        tree.apply(START, &mut edit, |leaf| leaf, |_, _, _| {});
        let count = spec.nodes.len() + 1;
        let leaves = spec.nodes.iter().filter(|n| n.is_leaf).map(|n| n.number as usize).collect();
        let mut world = World {
            tree,
            pool: Pool::new(BUFFERS, 9_000),
            now: START,
            line: spec.rate.bps(),
            leaves,
            largest: vec![0.0; count],
            waiting: vec![0.0; count],
            sent: vec![0.0; count],
            left: 0,
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
            self.fluid.goes_on(self.seconds());
            self.compare()?;
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
            let off = self.sent[number] - self.fluid.served(number);
            let most = 2.0 * slack + 1.0;
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

    /// [`ORDER`] of a frame of its own and of one of each above it; what its clock may be off
    /// where it is guaranteed something; and its part by weight of the same of those beside it, and
    /// beside those above it. What clocks are off, those bear that have none, if there are any.
    fn slack(&self) -> Vec<f64> {
        let came = || self.spec.nodes.iter().filter(|n| self.largest[n.number as usize] > 0.0);
        let clock = |parent: u32| 2.0 * self.largest[parent as usize].max(FULL);
        let none = vec![0.0; self.largest.len()];
        let (mut weights, mut others, mut clocks) = (none.clone(), none.clone(), none.clone());
        for node in came() {
            let parent = node.parent as usize;
            weights[parent] += node.weight as f64;
            if node.rate > Rate::ZERO {
                clocks[parent] += clock(node.parent);
            } else {
                others[parent] += node.weight as f64;
            }
        }
        let (mut own, mut taken) = (self.largest.clone(), none);
        for node in &self.spec.nodes {
            let (number, parent) = (node.number as usize, node.parent as usize);
            own[number] += own[parent];
            let mut bear = weights[parent];
            if node.rate > Rate::ZERO {
                taken[number] += clock(node.parent);
            } else {
                bear = others[parent];
            }
            if bear > 0.0 {
                let part = (node.weight as f64 / bear).min(1.0);
                taken[number] += (taken[parent] + clocks[parent]) * part;
            }
        }
        own.iter().zip(taken).map(|(own, taken)| ORDER * own + taken).collect()
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
                self.line = self.spec.rate.bps() * u64::from(*thousandths) / 1_000;
                self.tree.set_rate(self.now, Rate::from_bps(self.line));
                self.begin_anew();
            }
            Step::Jump(ms) => {
                self.now += Span::from_ms(u64::from(*ms));
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
        let mut world = World::of(spec(&case));
        for step in &case.steps {
            world.step(step)?;
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
    let mut world =
        World::of(Spec { rate, link: Link::default(), nodes: nodes.collect(), cares: vec![] });
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
    let mut world = World::of(Spec { rate, link: Link::default(), nodes, cares: vec![] });
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
