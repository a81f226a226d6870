//! Whoever wakes takes nothing from those who are awake, whatever came before: pauses of its class
//! that were long, time that went half around its circle, frames that are large.

use weir_packet::{Headers, Label, Pool, Side};
use weir_shape::FrameCost;
use weir_shape::tree::{Edit, NodeSpec, Spec, Tree};
use weir_units::{Instant, Priority, Rate, Span};

/// Frames that may wait.
const FRAMES: usize = 5_000;

/// A tree, and leaves that have so many frames to send, of one size each.
struct World {
    tree: Tree,
    pool: Pool,
    spec: Spec,
    now: Instant,
    leaves: Vec<Leaf>,
}

#[derive(Clone, Copy)]
struct Leaf {
    len: usize,
    /// Frames that are still to come, and those that wait.
    left: u64,
    waiting: u32,
    /// Bytes that were sent, when the last was, and the longest time between two.
    sent: u64,
    last: Instant,
    silence: Span,
}

fn mbit(mbit: u64) -> Rate {
    Rate::from_bps(mbit * 1_000_000)
}

fn leaf(number: u32, parent: u32, weight: u64) -> NodeSpec {
    NodeSpec { weight, ..NodeSpec::new(number, parent, true) }
}

impl World {
    fn new(rate: Rate, nodes: Vec<NodeSpec>) -> World {
        let now = Instant::from_ns(10_000_000_000);
        let most = nodes.iter().map(|node| node.number as usize).max().unwrap_or(0);
        let spec =
            Spec { rate, link: FrameCost::default(), nodes, cares: vec![], ..Spec::default() };
        let mut tree = Tree::new(FRAMES, FRAMES, 0, now);
        let mut edit = Edit::between(&Spec::default(), &spec);
        tree.apply(now, &mut edit, |leaf| leaf, |_, _, _| {});
        let leaf =
            Leaf { len: 1_500, left: 0, waiting: 0, sent: 0, last: now, silence: Span::ZERO };
        let leaves = vec![leaf; most + 1];
        World { tree, pool: Pool::new(FRAMES, 65_536), spec, now, leaves }
    }

    /// So many frames are to come.
    fn comes(&mut self, number: u32, frames: u64) {
        self.leaves[number as usize].left = frames;
        self.fill(number);
    }

    fn wakes(&mut self, number: u32) {
        self.comes(number, u64::MAX);
    }

    fn sleeps(&mut self, number: u32) {
        self.leaves[number as usize].left = 0;
    }

    /// Two frames wait while there are some to come.
    fn fill(&mut self, number: u32) {
        let leaf = &mut self.leaves[number as usize];
        while leaf.left > 0 && leaf.waiting < 2 {
            let mut frame = self.pool.take().expect("a buffer");
            // the check sequence counts as well
            assert!(self.pool.resize(&mut frame, 0, leaf.len - 4));
            let label = Label { leaf: number, ..Label::new(Side::Lan, &Headers::EMPTY) };
            assert!(matches!(self.tree.push(self.now, frame, label), Ok(None)));
            (leaf.left, leaf.waiting) = (leaf.left - 1, leaf.waiting + 1);
        }
    }

    fn ms(&mut self, ms: u64) {
        let end = self.now + Span::from_ms(ms);
        while let Some(at) = self.tree.next_at().filter(|&at| at < end) {
            self.now = self.now.max(at);
            let Some(sent) = self.tree.pop(self.now) else { continue };
            let leaf = &mut self.leaves[sent.label.leaf as usize];
            leaf.waiting -= 1;
            leaf.sent += leaf.len as u64;
            leaf.silence = leaf.silence.max(self.now.since(leaf.last));
            leaf.last = self.now;
            self.pool.give(sent.frame);
            self.fill(sent.label.leaf);
        }
        self.now = end;
    }

    fn edit(&mut self, change: impl FnOnce(&mut Spec)) {
        let old = self.spec.clone();
        change(&mut self.spec);
        let mut edit = Edit::between(&old, &self.spec);
        self.tree.apply(self.now, &mut edit, |_| 1, |_, _, _| {});
        while !self.tree.goes_on(self.now, &mut edit) {}
    }

    /// From now on is counted.
    fn counts(&mut self) {
        for leaf in &mut self.leaves {
            (leaf.sent, leaf.last, leaf.silence) = (0, self.now, Span::ZERO);
        }
    }

    /// The longest time without a frame of this leaf, in us.
    fn silence(&self, number: u32) -> u64 {
        let leaf = self.leaves[number as usize];
        leaf.silence.max(self.now.since(leaf.last)).ns() / 1_000
    }

    fn sent(&self, number: u32) -> u64 {
        self.leaves[number as usize].sent
    }

    /// Of 10 000 bytes.
    fn part(&self, number: u32) -> u64 {
        let all: u64 = self.leaves.iter().map(|leaf| leaf.sent).sum();
        self.sent(number) * 10_000 / all.max(1)
    }
}

/// A class of much weight with two leaves that are guaranteed something and one that is not, beside
/// a thousand leaves that go first and send three frames each: one long pause.
fn after_a_long_pause(ceil: Rate) -> World {
    let promised = |number| NodeSpec { rate: mbit(40), ..leaf(number, 1, 1) };
    let class = NodeSpec { weight: 1_000, ceil, ..NodeSpec::new(1, 0, false) };
    let mut nodes = vec![class, promised(2), promised(3), leaf(4, 1, 100)];
    nodes.extend((5..1_005).map(|number| NodeSpec { priority: Priority(0), ..leaf(number, 0, 1) }));
    nodes.push(leaf(1_005, 0, 1_000));
    let mut world = World::new(mbit(100), nodes);
    [2, 3, 4].into_iter().for_each(|number| world.wakes(number));
    (5..1_005).for_each(|number| world.comes(number, 3));
    world.ms(3_000);
    world
}

/// One sleeps for a while and wakes: the other waits for two of its frames at most, 0.6 ms.
fn wakes_beside_another(world: &mut World) {
    world.sleeps(2);
    world.ms(200);
    world.wakes(2);
    world.counts();
    world.ms(100);
    assert!(world.silence(3) < 1_000, "{} us", world.silence(3));
}

#[test]
fn one_that_wakes_after_a_long_pause_does_not_silence_another_guarantee() {
    let mut world = after_a_long_pause(Rate::MAX);
    wakes_beside_another(&mut world);
}

#[test]
fn one_that_wakes_again_and_again_has_no_more_than_is_promised_to_others() {
    // of 40 Mbit/s in 20 times 60 ms; or of 49.5 one half
    for (ceil, promised) in [(Rate::MAX, 6_000_000), (mbit(50), 3_712_000)] {
        let mut world = after_a_long_pause(ceil);
        let mut sent = 0;
        for _ in 0..20 {
            world.sleeps(2);
            world.ms(130);
            world.counts();
            world.wakes(2);
            world.ms(60);
            sent += world.sent(3);
        }
        assert!(sent * 100 > promised * 97, "{sent} of {promised} bytes below {ceil}");
    }
}

#[test]
fn a_pause_is_forgotten_by_a_class_that_falls_silent_between_its_frames_too() {
    let mut world = after_a_long_pause(Rate::MAX);
    [2, 3, 4].into_iter().for_each(|number| world.sleeps(number));
    world.wakes(1_005);
    for _ in 0..30_000 {
        world.comes(3, 1);
        world.ms(5);
    }
    world.sleeps(1_005);
    [2, 3, 4].into_iter().for_each(|number| world.wakes(number));
    world.ms(1_000);
    wakes_beside_another(&mut world);
}

/// One is alone while virtual time goes half around its circle; another is noted where it was
/// before, since it was served for its guarantee.
#[test]
fn who_wakes_after_half_a_circle_is_noted_where_it_belongs() {
    for phase in 0..20 {
        let nodes = vec![
            NodeSpec { rate: mbit(80), ..leaf(1, 0, 100_000) },
            NodeSpec { rate: mbit(15), ..leaf(2, 0, 1) },
            leaf(3, 0, 1_000_000),
        ];
        let mut world = World::new(mbit(100), nodes);
        world.wakes(2);
        world.comes(1, 100 + phase);
        world.ms(14_000);
        world.wakes(1);
        world.ms(1_000);
        world.sleeps(1);
        world.ms(10);
        world.counts();
        world.wakes(3);
        world.ms(2_000);
        assert!(world.silence(3) < 10_000, "phase {phase}: {} us", world.silence(3));
    }
}

#[test]
fn a_guarantee_is_whole_beside_one_by_weight_that_sends_large_frames() {
    for (rate, len) in [(97, 1_500), (97, 9_000), (90, 65_000)] {
        let promised = NodeSpec { rate: mbit(rate), ..leaf(1, 0, 1) };
        for own in [1_500, len] {
            let mut world = World::new(mbit(100), vec![promised, leaf(2, 0, 1)]);
            (world.leaves[1].len, world.leaves[2].len) = (own, len);
            world.wakes(1);
            world.wakes(2);
            world.ms(20_000);
            let had = world.part(1);
            assert!(had + 40 > rate * 100, "{had} of 10 000 in frames of {own} beside {len}");
            // and who goes by weight has the rest, a hundredth at least
            assert!(world.part(2) > 95, "{} of 10 000 in frames of {len}", world.part(2));
        }
    }
}

#[test]
fn a_large_frame_of_a_guarantee_long_ago_silences_nobody_by_weight() {
    let promised = NodeSpec { rate: mbit(200), ..leaf(1, 0, 1) };
    let mut world = World::new(mbit(100), vec![promised, leaf(2, 0, 1)]);
    world.leaves[1].len = 9_000;
    world.wakes(1);
    world.wakes(2);
    world.ms(100);
    world.leaves[1].len = 1_500;
    world.ms(1_000);
    world.sleeps(1);
    world.ms(1_000);
    world.wakes(1);
    world.counts();
    world.ms(1_000);
    // 99 of a hundred frames take 12 ms
    assert!(world.silence(2) < 20_000, "{} us", world.silence(2));
}

#[test]
fn a_ceiling_is_kept_while_edits_put_the_line_below_it_and_above() {
    let nodes = vec![NodeSpec { ceil: mbit(2), ..leaf(1, 0, 1) }, leaf(2, 0, 1)];
    let mut world = World::new(mbit(100), nodes);
    world.wakes(1);
    world.wakes(2);
    for _ in 0..2_000 {
        world.edit(|spec| spec.rate = mbit(1));
        world.edit(|spec| spec.rate = mbit(100));
        world.ms(1);
    }
    // 2 s of 2 Mbit/s
    let had = world.sent(1);
    assert!(had < 510_000, "{had} bytes in 2 s");
}

#[test]
#[ignore = "not held: pauses count up to 1.5 MB: 0.75 and 0.59 of the guarantee"]
fn a_guarantee_below_a_class_in_very_long_rows_is_whole() {
    let parts = [(2_000, 1_500), (1_000, 9_000)].map(|(siblings, len)| {
        let class = NodeSpec { weight: siblings.into(), ..NodeSpec::new(1, 0, false) };
        let promised = NodeSpec { rate: mbit(25), ..leaf(2, 1, 1) };
        let mut nodes = vec![class, promised, leaf(3, 1, 100)];
        let row = |number| NodeSpec { priority: Priority(0), ..leaf(number, 0, 1) };
        nodes.extend((4..4 + siblings).map(row));
        let mut world = World::new(mbit(100), nodes);
        world.leaves.iter_mut().for_each(|leaf| leaf.len = len);
        (2..4 + siblings).for_each(|number| world.wakes(number));
        world.ms(20_000 * len as u64 / 1_000);
        world.part(2)
    });
    assert!(parts.iter().all(|&part| part > 2_450), "{parts:?} of 10 000, 2 500 are promised");
}

#[test]
#[ignore = "not held: they share alike"]
fn small_weights_beside_great_ones_that_sleep_are_what_they_say() {
    let mut nodes: Vec<NodeSpec> = (1..=64).map(|number| leaf(number, 0, 1_000_000)).collect();
    nodes.extend([leaf(65, 0, 1), leaf(66, 0, 4)]);
    let mut world = World::new(mbit(100), nodes);
    world.wakes(65);
    world.wakes(66);
    world.ms(5_000);
    assert!(world.part(65) < 2_100, "{} of 10 000, not 2 000", world.part(65));
}
