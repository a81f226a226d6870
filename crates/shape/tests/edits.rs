//! A tree that is edited all the time under load loses nothing and keeps the order of every
//! connection: adding, removing, moving, changing every word, also how the frames of a leaf wait.

use proptest::prelude::*;
use weir_packet::{Flow, Headers, Label, Pool, Side};
use weir_shape::FrameCost;
use weir_shape::aqm::{Aqm, Codel};
use weir_shape::tree::{
    Care, Edit, NextSession, NodeSpec, Queueing, Sessions, Spec, Tree, Waiting,
};
use weir_units::{Bytes, Instant, Priority, Rate, Span};

const NUMBERS: u32 = 40;
const FLOWS: usize = 64;
const BUFFERS: usize = 600;

/// SplitMix64: what a case is made of follows from one number.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    fn small(&mut self, most: u16) -> u16 {
        u16::try_from(self.below(u64::from(most))).expect("below")
    }
}

/// Any tree; leaf 1 is always there and takes what others leave.
fn spec(draw: &mut Draw) -> Spec {
    let mut nodes = vec![node(draw, 1, 0, true)];
    let mut parents = vec![(0, 0)];
    for number in 2..NUMBERS {
        let (parent, depth) = parents[usize::from(draw.small(40)) % parents.len()];
        match draw.below(4) {
            0 => {}
            1 if depth < 7 => {
                parents.push((number, depth + 1));
                nodes.push(node(draw, number, parent, false));
            }
            _ => nodes.push(node(draw, number, parent, true)),
        }
    }
    let cares = (0..6).map(|_| care(draw)).collect();
    Spec {
        rate: Rate::from_bps(50_000_000),
        link: FrameCost::default(),
        nodes,
        cares,
        ..Spec::default()
    }
}

fn node(draw: &mut Draw, number: u32, parent: u32, is_leaf: bool) -> NodeSpec {
    let mut node = NodeSpec::new(number, parent, is_leaf);
    node.weight = 1 + draw.below(100);
    node.priority = Priority(draw.small(4).to_be_bytes()[1]);
    if draw.below(2) == 0 {
        node.rate = Rate::from_bps(draw.below(1_000_000));
    }
    if draw.below(2) == 0 {
        node.ceil = Rate::from_bps(1_000_000 + draw.below(20_000_000));
    }
    node.burst = (draw.below(2) == 0).then(|| Bytes::new(3_000 + draw.below(9_000)));
    node.care = draw.small(7);
    node
}

fn care(draw: &mut Draw) -> Care {
    let queue = [Queueing::Fifo, Queueing::Fair, Queueing::FairHost][usize::from(draw.small(3))];
    let codel = Aqm::Codel(Codel::for_rate(Rate::from_bps(5_000_000), None, None));
    let aqm = if draw.below(3) == 0 { codel } else { Aqm::None };
    let next = [NextSession::Share, NextSession::Wait][usize::from(draw.small(2))];
    let sessions = (draw.below(3) == 0).then(|| Sessions {
        max: if draw.below(2) == 0 { Rate::MAX } else { Rate::from_bps(3_000_000) },
        count: 1 + u32::from(draw.small(6)),
        host: 2,
        first: 1,
        next,
    });
    Care { queue, aqm, ecn: true, sessions }
}

struct World {
    tree: Tree,
    spec: Spec,
    /// Children of a node that are sorted at once.
    at_once: usize,
    pool: Pool,
    now: Instant,
    /// Connection and number of the frame in each buffer.
    inside: Vec<(usize, u64)>,
    next: [u64; FLOWS],
    last: [u64; FLOWS],
    /// Came, left, had to go.
    counts: [usize; 3],
}

impl World {
    fn new(draw: &mut Draw) -> World {
        let spec = spec(draw);
        let at_once = [0, 1, 2, 3, 8, 1_000][usize::from(draw.small(6))];
        let mut tree = Tree::new(BUFFERS, BUFFERS, FLOWS, Instant::ZERO);
        let mut edit = Edit::in_steps(&Spec::default(), &spec, at_once);
        tree.apply(Instant::ZERO, &mut edit, |leaf| leaf, |_, _, _| {});
        World {
            tree,
            spec,
            at_once,
            pool: Pool::new(BUFFERS, 1_514),
            now: Instant::ZERO,
            inside: vec![(0, 0); BUFFERS],
            next: [1; FLOWS],
            last: [0; FLOWS],
            counts: [0; 3],
        }
    }

    fn push(&mut self, draw: &mut Draw) {
        let Some(mut frame) = self.pool.take() else { return };
        let leaves: Vec<u32> =
            self.spec.nodes.iter().filter(|n| n.is_leaf).map(|n| n.number).collect();
        // some are of no known connection
        let flow = usize::from(draw.small(68));
        let size = usize::from(60 + draw.small(1_400));
        assert!(self.pool.resize(&mut frame, 0, size));
        let mut label = Label::new(Side::Lan, &Headers::EMPTY);
        // mostly its own leaf, now and then another: rules may look at every frame
        let at = if draw.below(10) == 0 { usize::from(draw.small(64)) } else { flow * 7 };
        label.leaf = leaves[at % leaves.len()];
        let index = u32::try_from(flow).expect("small");
        label.host = index / 5;
        if draw.below(3) == 0 {
            label.kind = label.kind.of_new_host();
        }
        label.traffic_class = draw.small(2).to_be_bytes()[1];
        if flow < FLOWS {
            label.flow = Flow { index, generation: 0 };
            let waits = self.tree.leaf_of(&label);
            if waits != label.leaf && !self.tree.obeys(self.now, &label) {
                label.leaf = waits;
            }
            self.inside[frame.index() as usize] = (flow, self.next[flow]);
            self.next[flow] += 1;
        } else {
            self.inside[frame.index() as usize] = (usize::MAX, 0);
        }
        self.counts[0] += 1;
        match self.tree.push(self.now, frame, label) {
            Ok(Some((lost, _))) => self.lost(lost),
            Ok(None) => {}
            Err((frame, _)) => {
                self.counts[2] += 1;
                self.pool.give(frame);
            }
        }
        self.drop_left_behind();
    }

    fn drop_left_behind(&mut self) {
        while let Some(left) = self.tree.take_left_behind() {
            self.lost(left);
        }
    }

    fn lost(&mut self, lost: Waiting) {
        self.counts[2] += 1;
        self.pool.give(lost.frame);
    }

    fn pop(&mut self) -> bool {
        let popped = self.tree.pop(self.now);
        let left = popped.is_some();
        if let Some(waiting) = popped {
            self.counts[1] += 1;
            let (flow, number) = self.inside[waiting.frame.index() as usize];
            if flow != usize::MAX {
                assert!(self.last[flow] < number, "connection {flow}: {number} came too late");
                self.last[flow] = number;
            }
            self.pool.give(waiting.frame);
        }
        while let Some(dropped) = self.tree.take_dropped() {
            self.lost(dropped);
        }
        self.drop_left_behind();
        left
    }

    /// An edit may be made in steps, with traffic between them.
    fn change(&mut self, spec: Spec, draw: &mut Draw) {
        let before = self.tree.len();
        let mut edit = Edit::in_steps(&self.spec, &spec, self.at_once);
        self.tree.apply(self.now, &mut edit, |_| 1, |_, label, _| assert_eq!(label.leaf, 1));
        let lost = self.counts[2];
        self.drop_left_behind();
        let left_behind = self.counts[2] - lost;
        assert_eq!(self.tree.len() + left_behind, before, "an edit lost frames");
        // every other edit is one of the rules as well: connections obey then
        if self.counts[0].is_multiple_of(2) {
            self.tree.has_new_rules();
        }
        self.spec = spec;
        let mut calls = 0;
        while !self.tree.goes_on(self.now, &mut edit) {
            calls += 1;
            assert!(calls < 10_000, "an edit has no end: {edit:?}");
            for _ in 0..draw.below(3) {
                self.push(draw);
                self.now += Span::from_us(draw.below(400));
                self.pop();
            }
            self.drop_left_behind();
            self.tree.check(false).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
        self.drop_left_behind();
    }

    fn check(&self) {
        self.tree.check(true).unwrap_or_else(|wrong| panic!("{wrong}"));
        let [came, left, lost] = self.counts;
        assert_eq!(came, left + lost + self.tree.len());
        assert_eq!(self.pool.free(), BUFFERS - self.tree.len());
    }

    fn drain(&mut self) {
        let mut idle = 0;
        while !self.tree.is_empty() {
            let next = self.tree.next_at().expect("frames wait and none will ever leave");
            self.now = self.now.max(next);
            idle = if self.pop() { 0 } else { idle + 1 };
            assert!(idle < 2_000, "{} frames wait and none leaves", self.tree.len());
        }
        self.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn a_thousand_edits_under_load_lose_and_reorder_nothing(seed in any::<u64>()) {
        let mut draw = Draw(seed);
        let mut world = World::new(&mut draw);
        for _ in 0..1_000 {
            for _ in 0..draw.below(20) {
                world.push(&mut draw);
            }
            for _ in 0..draw.below(20) {
                world.now += Span::from_us(draw.below(400));
                world.pop();
            }
            world.check();
            let next = spec(&mut draw);
            world.change(next, &mut draw);
        }
        world.drain();
    }
}
