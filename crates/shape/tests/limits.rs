//! Limits on nodes while traffic flows: they hold as a ceiling of the policy would, what they take
//! others have, and a change shows at once.

use proptest::prelude::*;
use weir_packet::{Build, Flow, Headers, Label, Pool, Side};
use weir_shape::tree::{Edit, NodeSpec, Spec, Tree};
use weir_shape::{FrameCost, Layer};
use weir_units::{Instant, Rate, Span};

const LINE: u64 = 10_000_000;
/// Two classes with two leaves each, and a leaf beside them.
const LEAVES: [u32; 5] = [3, 4, 5, 6, 7];

const fn kbit(kbit: u64) -> Rate {
    Rate::from_bps(kbit * 1_000)
}

fn spec() -> Spec {
    let node = |number, parent, is_leaf| NodeSpec::new(number, parent, is_leaf);
    let nodes = vec![
        node(1, 0, false),
        node(2, 0, false),
        NodeSpec { weight: 3, ..node(3, 1, true) },
        node(4, 1, true),
        NodeSpec { rate: kbit(1_000), ..node(5, 2, true) },
        NodeSpec { rate: kbit(500), ..node(6, 2, true) },
        node(7, 0, true),
    ];
    let link = FrameCost { layer: Layer::Ip, overhead: 0 };
    Spec { rate: Rate::from_bps(LINE), link, nodes, takes_limits: true, ..Spec::default() }
}

struct World {
    tree: Tree,
    spec: Spec,
    pool: Pool,
    frame: Vec<u8>,
    now: Instant,
    sent: [u64; 8],
    /// When a frame of which leaf has left.
    left: Vec<(u64, u32)>,
}

impl World {
    fn new() -> World {
        World::of(spec())
    }

    fn of(spec: Spec) -> World {
        let now = Instant::from_ns(1_000_000_000);
        let mut tree = Tree::new(4_000, 4_000, 8, now);
        let mut edit = Edit::between(&Spec::default(), &spec);
        tree.apply(now, &mut edit, |leaf| leaf, |_, _, _| {});
        while !tree.goes_on(now, &mut edit) {}
        let (lan, wan) = (([10, 0, 0, 1], 1).into(), ([192, 0, 2, 1], 80).into());
        let frame = Build::udp(lan, wan).payload_len(958).to_vec();
        let pool = Pool::new(4_000, 1_200);
        World { tree, spec, pool, frame, now, sent: [0; 8], left: Vec::new() }
    }

    /// Another policy.
    fn edit(&mut self, change: impl FnOnce(&mut Spec)) {
        let mut new = self.spec.clone();
        change(&mut new);
        let mut edit = Edit::between(&self.spec, &new);
        self.tree.apply(self.now, &mut edit, |leaf| leaf, |_, _, _| {});
        while !self.tree.goes_on(self.now, &mut edit) {}
        self.spec = new;
    }

    fn push(&mut self, leaf: u32) {
        let Some(frame) = self.pool.fill(&self.frame) else { return };
        let label = Label::new(Side::Lan, &Headers::parse(&self.frame));
        let label = Label { leaf, flow: Flow { index: leaf, generation: 1 }, ..label };
        match self.tree.push(self.now, frame, label) {
            Ok(Some((victim, _))) => self.pool.give(victim.frame),
            Ok(None) => {}
            Err((frame, _)) => self.pool.give(frame),
        }
    }

    /// Lets time pass; what may leave leaves at its moment. These leaves always have some waiting.
    fn pass(&mut self, us: u64, full: &[u32]) {
        let end = self.now + Span::from_us(us);
        loop {
            for &leaf in full {
                while self.tree.waiting_in(leaf) < 20_000 {
                    self.push(leaf);
                }
            }
            let Some(at) = self.tree.next_at().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            let Some(waiting) = self.tree.pop(self.now) else {
                self.now += Span::from_us(1);
                continue;
            };
            self.left.push((self.now.ns(), waiting.label.leaf));
            self.sent[waiting.label.leaf as usize] += 1_000 - 14;
            self.pool.give(waiting.frame);
        }
        self.now = self.now.max(end);
    }

    /// What each leaf gets in a while, in kbit/s.
    fn rates(&mut self, ms: u64, full: &[u32]) -> [u64; 5] {
        self.sent = [0; 8];
        self.pass(ms * 1_000, full);
        LEAVES.map(|leaf| self.sent[leaf as usize] * 8 / ms)
    }

    fn limit(&mut self, node: u32, rate: Rate) {
        assert!(self.tree.limit(self.now, node, rate), "{node}");
    }
}

fn assert_near(rates: [u64; 5], expected: [u64; 5]) {
    let is_near = |(rate, expected): (u64, u64)| rate.abs_diff(expected) <= 20 + expected / 100;
    assert!(rates.into_iter().zip(expected).all(is_near), "{rates:?}, not {expected:?}");
}

#[test]
fn what_a_limit_takes_others_have_at_once_and_give_back() {
    let mut world = World::new();
    let free = [2_500, 833, 1_667, 1_667, 3_333];
    assert_near(world.rates(2_000, &LEAVES), free);
    world.limit(1, kbit(1_000));
    let limited = world.rates(2_000, &LEAVES);
    assert_near([limited[0], limited[1], 0, 0, 0], [750, 250, 0, 0, 0]);
    assert_near([limited.iter().sum(), 0, 0, 0, 0], [10_000, 0, 0, 0, 0]);
    // guarantees below a limit that does not hold them are scaled alike
    world.limit(2, kbit(900));
    let scaled = world.rates(2_000, &LEAVES);
    assert_near([scaled[2], scaled[3], 0, 0, scaled[4]], [600, 300, 0, 0, 8_100]);
    world.limit(1, Rate::MAX);
    world.limit(2, Rate::MAX);
    assert_near(world.rates(2_000, &LEAVES), free);
}

#[test]
fn a_limit_that_rises_shows_at_once() {
    let mut world = World::new();
    world.limit(3, kbit(8));
    world.pass(500_000, &[3]);
    world.limit(3, kbit(8_000));
    // a frame of 8 kbit/s takes a second; what it is in debt is as many bytes as before
    let rates = world.rates(100, &[3]);
    assert!(rates[0] > 7_000, "{rates:?}");
}

#[test]
fn a_limit_that_comes_and_goes_leaves_no_debt() {
    for low in [0, 8, 100, 1_000, 10_000] {
        let mut world = World::new();
        world.limit(3, kbit(1_000));
        world.pass(100_000, &[3]);
        for round in 0..200 {
            world.limit(3, Rate::from_bps(low));
            world.pass(50_000, &[3]);
            world.limit(3, kbit(1_000));
            let rates = world.rates(1_000, &[3]);
            assert!(rates[0] > 950, "{low} bit/s, round {round}: {rates:?}");
        }
    }
}

/// As a ceiling of a policy that is edited would: 1 500 bytes are no more than that under any.
#[test]
fn what_a_node_owes_is_as_many_bytes_after_many_limits_and_an_edit() {
    let mut world = World::new();
    for _ in 0..100 {
        world.limit(3, Rate::from_bps(1_000));
        world.pass(50_000, &[3]);
        world.limit(3, kbit(10_000));
        world.pass(20_000, &[3]);
    }
    world.edit(|spec| spec.nodes[2].ceil = kbit(9_000));
    world.limit(3, Rate::from_bps(1_000));
    world.limit(3, kbit(5_000));
    let rates = world.rates(100, &[3]);
    assert!(rates[0] > 4_500, "{rates:?}");
}

#[test]
fn only_nodes_below_the_link_of_a_tree_that_takes_limits_have_them() {
    let mut world = World::new();
    let now = world.now;
    assert_eq!([0, 8, 9, 1_000_000].map(|n| world.tree.limit(now, n, kbit(1))), [false; 4]);
    let mut world = World::of(Spec { takes_limits: false, ..spec() });
    assert!(!world.tree.limit(now, 1, kbit(1)));
}

#[test]
fn a_limit_holds_through_edits_as_far_as_the_policy_allows_until_its_node_goes() {
    let mut world = World::new();
    world.limit(1, kbit(1_000));
    world.edit(|spec| spec.nodes[0].weight = 2);
    let of_class = |world: &mut World| {
        let rates = world.rates(1_000, &LEAVES);
        rates[0] + rates[1]
    };
    assert_near([of_class(&mut world), 0, 0, 0, 0], [1_000, 0, 0, 0, 0]);
    world.edit(|spec| spec.nodes[0].ceil = kbit(600));
    assert_near([of_class(&mut world), 0, 0, 0, 0], [600, 0, 0, 0, 0]);
    world.limit(1, kbit(2_000));
    assert_near([of_class(&mut world), 0, 0, 0, 0], [600, 0, 0, 0, 0]);
    world.edit(|spec| spec.nodes[0].ceil = Rate::MAX);
    assert_near([of_class(&mut world), 0, 0, 0, 0], [2_000, 0, 0, 0, 0]);
    // one that goes and comes again begins without
    world.edit(|spec| _ = spec.nodes.remove(6));
    world.limit(6, kbit(100));
    world.edit(|spec| _ = spec.nodes.remove(5));
    world.edit(|spec| spec.nodes.push(NodeSpec::new(6, 2, true)));
    let rates = world.rates(1_000, &[6]);
    // beside what still waited in the others
    assert!(rates[3] > 9_000, "{rates:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Push { leaf: usize, frames: u8 },
    Pass { us: u32 },
    Limit { node: u32, kbit: Option<u16> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0usize..5, 1u8..30).prop_map(|(leaf, frames)| Step::Push { leaf, frames }),
        4 => (0u32..60_000).prop_map(|us| Step::Pass { us }),
        3 => (1u32..8, prop::option::weighted(0.8, 8u16..9_900))
            .prop_map(|(node, kbit)| Step::Limit { node, kbit }),
    ];
    prop::collection::vec(step, 1..120)
}

/// What leaves when, where limits are set or written into the policy as ceilings. Those of classes
/// or those of leaves, so that none is needless for one above.
fn run(steps: &[Step], of_classes: bool, as_policy: bool) -> Vec<(u64, u32)> {
    let mut world = World::new();
    for step in steps {
        match *step {
            Step::Push { leaf, frames } => (0..frames).for_each(|_| world.push(LEAVES[leaf])),
            Step::Pass { us } => world.pass(u64::from(us), &[]),
            Step::Limit { node, kbit: rate } if (node < 3) == of_classes => {
                let rate = rate.map_or(Rate::MAX, |rate| kbit(u64::from(rate)));
                match as_policy {
                    true => world.edit(|spec| spec.nodes[node as usize - 1].ceil = rate),
                    false => world.limit(node, rate),
                }
            }
            Step::Limit { .. } => {}
        }
    }
    world.pass(5_000_000, &[]);
    world.left
}

proptest! {
    #[test]
    fn a_limit_is_a_ceiling_that_needs_no_edit(steps in steps(), of_classes: bool) {
        prop_assert_eq!(run(&steps, of_classes, false), run(&steps, of_classes, true));
    }

    /// Nothing grows and nobody is forgotten, however often limits change.
    #[test]
    fn limits_that_change_all_the_time_lose_nobody(
        limits in prop::collection::vec((1u32..8, 8u16..2_000), 200..400),
    ) {
        let mut world = World::new();
        for (node, rate) in limits {
            world.limit(node, kbit(u64::from(rate)));
            world.pass(300, &LEAVES);
        }
        (1..8).for_each(|node| world.limit(node, Rate::MAX));
        world.pass(200_000, &LEAVES);
        let rates = world.rates(1_000, &LEAVES);
        prop_assert!(rates.iter().all(|rate| *rate > 500), "{rates:?}");
        prop_assert!(rates.iter().sum::<u64>() > 9_800, "{rates:?}");
    }
}
