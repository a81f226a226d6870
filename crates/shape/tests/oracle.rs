//! The tree against an exact solver that shares nothing with it: random trees, random demands,
//! random sizes of frames. A failure prints its smallest case, and stores it beside this file.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an oracle computes with floats, that is what makes it another implementation"
)]

use proptest::prelude::*;
use weir_packet::{Headers, Label, Pool, Side};
use weir_shape::Link;
use weir_shape::tree::{Edit, NodeSpec, Spec, Tree};
use weir_units::{Bytes, Instant, Rate};

/// Nodes of one tree at most.
const MOST: usize = 24;

/// What a leaf offers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Demand {
    Nothing,
    /// So many thousandths of the link.
    Part(u32),
    All,
}

#[derive(Clone, Debug)]
struct Case {
    rate: u64,
    nodes: Vec<Told>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    /// 0: the link; else the number of a node before this one.
    parent: usize,
    weight: u64,
    /// Guarantee and ceiling in thousandths of the parent's (0: none).
    rate: u64,
    ceil: u64,
    priority: u8,
    demand: Demand,
    size: u16,
}

impl Case {
    fn is_leaf(&self, number: usize) -> bool {
        !self.nodes.iter().any(|n| n.parent == number)
    }

    /// Node `at` has number `at + 1`. Guarantees of siblings fit into their parent's.
    fn spec(&self) -> Spec {
        let mut nodes: Vec<NodeSpec> = Vec::new();
        let mut left = vec![self.rate; self.nodes.len() + 1];
        let mut rates = left.clone();
        let mut ceilings = left.clone();
        for (told, number) in self.nodes.iter().zip(1..) {
            let parent = told.parent;
            let ceil = if told.ceil == 0 { 1_000 } else { told.ceil };
            let ceil = (ceilings[parent] * ceil / 1_000).max(1_000).min(ceilings[parent]);
            let rate = (rates[parent] * told.rate / 1_000).min(left[parent]).min(ceil);
            left[parent] -= rate;
            (rates[number], left[number], ceilings[number]) = (rate, rate, ceil);
            let mut node = NodeSpec::new(number as u32, parent as u32, self.is_leaf(number));
            node.weight = told.weight;
            node.rate = Rate::from_bps(rate);
            node.ceil = Rate::from_bps(ceil);
            node.priority = told.priority;
            // a millisecond at 10 Gbit/s would be all of the run
            node.burst = Some(Bytes::new(3_076));
            nodes.push(node);
        }
        let link = Link::default();
        Spec { rate: Rate::from_bps(self.rate), link, nodes, cares: vec![] }
    }
}

fn case(most: usize) -> impl Strategy<Value = Case> {
    let rate =
        prop_oneof![20_000u64..1_000_000, 1_000_000u64..1_000_000_000, Just(10_000_000_000u64)];
    let demand = prop_oneof![
        1 => Just(Demand::Nothing),
        2 => (1u32..500).prop_map(Demand::Part),
        4 => Just(Demand::All),
    ];
    let node = (
        any::<prop::sample::Index>(),
        1u64..1_000,
        prop_oneof![Just(0u64), 0u64..600],
        prop_oneof![2 => Just(0u64), 1 => 50u64..1_000],
        0u8..4,
        demand,
        60u16..1_514,
    );
    (rate, prop::collection::vec(node, 1..most)).prop_map(|(bps, list)| {
        let mut nodes: Vec<Told> = Vec::new();
        let mut depths = vec![0];
        for (at, (index, weight, rate, ceil, priority, demand, size)) in
            list.into_iter().enumerate()
        {
            let mut parent = index.index(at + 1);
            while depths[parent] >= 7 {
                parent = nodes[parent - 1].parent;
            }
            depths.push(depths[parent] + 1);
            nodes.push(Told { parent, weight, rate, ceil, priority, demand, size });
        }
        Case { rate: bps, nodes }
    })
}

/// What each node gets, exactly: demands go up capped by ceilings, grants come down.
fn solve(case: &Case, spec: &Spec) -> Vec<f64> {
    let count = spec.nodes.len() + 1;
    let mut want = vec![0.0; count];
    for number in (1..count).rev() {
        let node = &spec.nodes[number - 1];
        if node.is_leaf {
            want[number] = match case.nodes[number - 1].demand {
                Demand::Nothing => 0.0,
                Demand::Part(part) => case.rate as f64 * f64::from(part) / 1e3,
                Demand::All => f64::INFINITY,
            };
        }
        want[number] = f64::min(want[number], node.ceil.bps() as f64);
        want[node.parent as usize] += want[number];
    }
    let mut grant = vec![0.0; count];
    grant[0] = f64::min(want[0], case.rate as f64);
    for parent in 0..count {
        let children: Vec<usize> =
            (1..count).filter(|&n| spec.nodes[n - 1].parent as usize == parent).collect();
        let get = |number: usize, level: f64| {
            let node = &spec.nodes[number - 1];
            let floor = f64::min(node.rate.bps() as f64, want[number]);
            f64::min(want[number], floor.max(node.weight as f64 * level))
        };
        let (mut low, mut high) = (0.0, 1e12);
        for _ in 0..200 {
            let level = (low + high) / 2.0;
            let sum: f64 = children.iter().map(|&n| get(n, level)).sum();
            if sum > grant[parent] { high = level } else { low = level }
        }
        for number in children {
            grant[number] = get(number, low);
        }
    }
    grant
}

/// The tree with its senders, in virtual time.
struct World {
    case: Case,
    spec: Spec,
    tree: Tree,
    pool: Pool,
    waiting: Vec<usize>,
    /// The next arrival of each node with a demand, in nanoseconds.
    arrivals: Vec<f64>,
    now: Instant,
    sent: Vec<u64>,
}

impl World {
    fn new(case: &Case) -> World {
        let spec = case.spec();
        let count = MOST + 1;
        let pool = Pool::new(count * 64, 1_514);
        let mut tree = Tree::new(pool.capacity(), usize::MAX, 0, Instant::ZERO);
        let mut edit = Edit::between(&Spec::default(), &spec);
        tree.apply(Instant::ZERO, &mut edit, |leaf| leaf, |_, _, _| {});
        let (waiting, sent) = (vec![0; count], vec![0; count]);
        let arrivals = (0..count).map(|at| at as f64).collect();
        let case = case.clone();
        World { case, spec, tree, pool, waiting, arrivals, now: Instant::ZERO, sent }
    }

    /// Makes another tree of this one; frames of leaves that are gone go to the first leaf.
    fn change(&mut self, case: &Case) {
        let spec = case.spec();
        let first = spec.nodes.iter().find(|n| n.is_leaf).expect("a leaf").number;
        let mut edit = Edit::between(&self.spec, &spec);
        let waiting = &mut self.waiting;
        let before: usize = waiting.iter().sum();
        self.tree.apply(
            self.now,
            &mut edit,
            |_| first,
            |from, label, _| {
                assert_eq!(label.leaf, first);
                waiting[from as usize] -= 1;
                waiting[first as usize] += 1;
            },
        );
        assert_eq!((before, before), (self.tree.len(), self.waiting.iter().sum()));
        (self.case, self.spec) = (case.clone(), spec);
        let now = self.now.ns() as f64;
        self.arrivals.fill(now);
    }

    /// Runs for so many steps and compares what everyone sent in the second half with the solver.
    fn compare(&mut self, steps: usize) -> Result<(), TestCaseError> {
        let want = solve(&self.case, &self.spec);
        (0..steps).for_each(|_| _ = self.step());
        let start = self.now;
        self.sent.fill(0);
        (0..steps).for_each(|_| _ = self.step());
        let seconds = self.now.since(start).ns() as f64 / 1e9;
        let frame = 1_518.0 * 8.0;
        for (number, want) in want.iter().enumerate() {
            let want = want * seconds;
            // one frame of the leaf and one per ancestor, at both ends of the window
            let frames = 2.0 * frame * (1.0 + depth(&self.spec, number) as f64);
            let slack = f64::max(want * 0.01, frames);
            let off = self.sent[number] as f64 - want;
            prop_assert!(
                off.abs() <= slack,
                "node {number}: {} bits, not {want:.0}, in {seconds} s (slack {slack:.0})\n{:#?}",
                self.sent[number],
                self.spec.nodes
            );
        }
        Ok(())
    }

    fn push(&mut self, number: usize) {
        let mut frame = self.pool.take().expect("a buffer");
        let size = usize::from(self.case.nodes[number - 1].size);
        assert!(self.pool.resize(&mut frame, 0, size));
        let mut label = Label::new(Side::Lan, &Headers::EMPTY);
        label.leaf = number as u32;
        self.tree.push(self.now, frame, label).expect("room");
        self.waiting[number] += 1;
    }

    /// Lets everyone send what it has by now; returns when the next arrival is.
    fn arrive(&mut self) -> Option<u64> {
        let mut next: Option<u64> = None;
        for number in 1..=self.case.nodes.len() {
            if !self.spec.nodes[number - 1].is_leaf {
                continue;
            }
            match self.case.nodes[number - 1].demand {
                Demand::Nothing => {}
                Demand::All => {
                    while self.waiting[number] < 4 {
                        self.push(number);
                    }
                }
                Demand::Part(part) => {
                    let rate = self.case.rate as f64 * f64::from(part) / 1e3;
                    let size = usize::from(self.case.nodes[number - 1].size);
                    let bits = self.spec.link.cost(size, 0).get() as f64 * 8.0;
                    while self.arrivals[number] <= self.now.ns() as f64 {
                        self.arrivals[number] += bits / rate * 1e9;
                        if self.waiting[number] < 60 {
                            self.push(number);
                        }
                    }
                    let arrival = self.arrivals[number] as u64 + 1;
                    next = Some(next.map_or(arrival, |n| n.min(arrival)));
                }
            }
        }
        next
    }

    fn step(&mut self) -> bool {
        let arrival = self.arrive();
        let next = match (self.tree.next_at().map(Instant::ns), arrival) {
            (Some(at), Some(arrival)) => at.min(arrival),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return false,
        };
        self.now = self.now.max(Instant::from_ns(next));
        self.leave();
        true
    }

    /// Nobody sends any more until everything has left.
    fn drain(&mut self) {
        let mut idle = 0;
        while let Some(at) = self.tree.next_at() {
            let before = self.tree.len();
            self.now = self.now.max(at);
            self.leave();
            idle = if self.tree.len() < before { 0 } else { idle + 1 };
            assert!(idle < 1_000, "the tree says that something can leave, and nothing does");
        }
        assert_eq!((0, 0), (self.tree.len(), self.waiting.iter().sum()));
        let now = self.now.ns() as f64;
        self.arrivals.fill(now);
    }

    fn leave(&mut self) {
        if let Some(out) = self.tree.pop(self.now) {
            let mut number = out.label.leaf as usize;
            self.waiting[number] -= 1;
            let bits = self.spec.link.cost(out.frame.len(), 0).get() * 8;
            self.sent[0] += bits;
            while number != 0 {
                self.sent[number] += bits;
                number = self.spec.nodes[number - 1].parent as usize;
            }
            self.pool.give(out.frame);
        }
    }
}

fn depth(spec: &Spec, mut number: usize) -> usize {
    let mut depth = 0;
    while number != 0 {
        number = spec.nodes[number - 1].parent as usize;
        depth += 1;
    }
    depth
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn everyone_gets_what_the_exact_solver_says(case in case(MOST)) {
        World::new(&case).compare(12_000)?;
    }

    /// No frame is lost when the tree becomes another one under load, and it is as exact as one
    /// that was always so.
    #[test]
    fn a_tree_that_was_changed_is_as_good_as_a_new_one(
        cases in prop::collection::vec(case(MOST), 2..5),
        steps in 1usize..300,
    ) {
        let mut world = World::new(&cases[0]);
        for case in &cases[1..] {
            (0..steps).for_each(|_| _ = world.step());
            world.change(case);
        }
        (0..steps).for_each(|_| _ = world.step());
        world.drain();
        world.compare(12_000)?;
    }
}
