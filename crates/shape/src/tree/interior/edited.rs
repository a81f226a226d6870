//! What an edit leaves of what children are ahead, lack and wait for: step by step.

use weir_packet::{Headers, Label, Pool, Side};
use weir_units::{Rate, Span};

use super::*;
use crate::FrameCost;
use crate::tree::{Edit, LINK, NodeSpec, Spec, Tree};

/// Bytes of a frame without its check sequence, so that it costs a thousand.
const LEN: usize = 996;
const START: Instant = Instant::from_ns(1_000_000_000);

struct World {
    tree: Tree,
    pool: Pool,
    spec: Spec,
    /// Children that are sorted at once.
    at_once: usize,
    now: Instant,
}

fn leaf(number: u32) -> NodeSpec {
    NodeSpec::new(number, LINK, true)
}

fn mbit(mbit: u64) -> Rate {
    Rate::from_bps(1_000_000 * mbit)
}

impl World {
    /// A line of 10 Mbit/s.
    fn new(nodes: Vec<NodeSpec>, at_once: usize) -> World {
        let spec = Spec {
            rate: mbit(10),
            link: FrameCost::default(),
            nodes,
            cares: vec![],
            ..Spec::default()
        };
        let mut tree = Tree::new(100, 100, 0, START);
        let mut edit = Edit::in_steps(&Spec::default(), &spec, at_once);
        tree.apply(START, &mut edit, |leaf| leaf, |_, _, _| {});
        World { tree, pool: Pool::new(100, 9_000), spec, at_once, now: START }
    }

    fn push(&mut self, leaf: u32, len: usize) {
        let mut frame = self.pool.take().expect("a buffer");
        assert!(self.pool.resize(&mut frame, 0, len));
        let label = Label { leaf, ..Label::new(Side::Lan, &Headers::EMPTY) };
        assert!(matches!(self.tree.push(self.now, frame, label), Ok(None)));
    }

    /// Two frames come to each.
    fn wake(&mut self, leaves: &[u32]) {
        leaves.iter().for_each(|&leaf| (0..2).for_each(|_| self.push(leaf, LEN)));
    }

    /// The leaf of the frame that leaves next.
    fn pop(&mut self) -> u32 {
        self.now = self.now.max(self.tree.next_at().expect("frames wait"));
        let waiting = self.tree.pop(self.now).expect("may leave");
        self.pool.give(waiting.frame);
        waiting.label.leaf
    }

    /// The first step of an edit.
    fn begins(&mut self, change: impl FnOnce(&mut Spec)) -> Edit {
        let mut new = self.spec.clone();
        change(&mut new);
        let mut edit = Edit::in_steps(&self.spec, &new, self.at_once);
        self.tree.apply(self.now, &mut edit, |_| 1, |_, _, _| {});
        self.spec = new;
        edit
    }

    fn edit(&mut self, change: impl FnOnce(&mut Spec)) {
        let mut edit = self.begins(change);
        while !self.tree.goes_on(self.now, &mut edit) {}
        assert_eq!(self.tree.check(true), Ok(()));
    }

    /// How far a child starts behind the time of its parent.
    fn starts_in(&self, number: usize) -> u64 {
        let node = &self.tree.nodes[number];
        node.share.s.wrapping_sub(self.tree.interiors[node.parent as usize].v)
    }

    fn link(&self) -> &Interior {
        &self.tree.interiors[LINK as usize]
    }

    fn owed(&self) -> &Owed {
        self.link().owed.as_ref().expect("has clocks")
    }
}

#[test]
fn who_is_gone_ahead_of_time_counts_after_the_edit() {
    let mut world = World::new(vec![leaf(1), leaf(2), leaf(3)], 64);
    world.wake(&[1, 2, 3]);
    assert_eq!(world.pop(), 3);
    world.edit(|spec| spec.nodes.truncate(2));
    let Interior { v, slot, count, active_weight, gone_weight, gone_bytes, .. } = *world.link();
    assert_eq!((v, slot, count), (0, 1_000, 2));
    assert_eq!((active_weight, gone_weight, gone_bytes), (3, 1, 1_000));
}

#[test]
fn who_moves_is_ahead_by_as_many_bytes() {
    let below = |number| NodeSpec::new(number, 9, true);
    let nodes = vec![leaf(1), leaf(2), leaf(3), NodeSpec::new(9, LINK, false), below(7), below(8)];
    let mut world = World::new(nodes, 64);
    world.wake(&[1, 2, 3, 8]);
    assert_eq!([world.pop(), world.pop()], [8, 3]);
    // four share the first thousand bytes
    assert_eq!(world.starts_in(3), (1_000 - 250) * (4 << UNIT));
    world.edit(|spec| (spec.nodes[2].parent, spec.nodes[2].weight) = (9, 3));
    assert_eq!(world.starts_in(3), 750 * ((5 << UNIT) / 3));
    // who comes from elsewhere without frames begins with the present
    world.edit(|spec| spec.nodes[4].parent = LINK);
    assert_eq!(world.starts_in(7), 0);
}

#[test]
fn who_is_silent_stays_ahead_and_lacks_nothing() {
    let mut world = World::new(vec![leaf(1), leaf(2), leaf(3), leaf(4)], 64);
    world.wake(&[1, 2]);
    world.push(3, LEN);
    assert_eq!([world.pop(), world.pop()], [3, 2]);
    // of its thousand bytes all three had a third
    let ahead = 1_000 * ((4 << UNIT) - (4 << UNIT) / 3);
    assert_eq!(world.starts_in(3), ahead);
    world.edit(|spec| spec.nodes[2..].iter_mut().for_each(|node| node.weight = 2));
    // a byte took four parts of its time and takes three
    assert_eq!([world.starts_in(3), world.starts_in(4)], [ahead / 4 * 3, 0]);
}

/// One has a guarantee of 9 Mbit/s, two have none; the line carries a ninth of that.
fn late() -> World {
    let mut world = World::new(vec![NodeSpec { rate: mbit(9), ..leaf(1) }, leaf(2), leaf(3)], 64);
    world.tree.set_rate(world.now, mbit(1));
    world
}

#[test]
fn the_time_of_guarantees_goes_on_after_an_edit() {
    let mut world = late();
    world.push(1, 4_996);
    for _ in 0..20 {
        world.wake(&[1, 2]);
        world.pop();
    }
    let state = |world: &World| {
        let Owed { behind, by_clock, largest, .. } = *world.owed();
        (behind, by_clock, largest)
    };
    let (behind, by_clock, largest) = state(&world);
    assert!(behind > 0 && by_clock > 0 && largest == 5_000, "{:?}", (behind, by_clock, largest));
    world.edit(|spec| spec.nodes[2].weight = 2);
    assert_eq!(state(&world), (behind, by_clock, largest));
}

#[test]
fn what_one_that_is_alone_lacks_makes_no_time_wait_after_an_edit() {
    let mut world = late();
    (0..20).for_each(|_| world.push(1, LEN));
    // 160 ms for what was promised in less than 20
    (0..19).for_each(|_| _ = world.pop());
    world.edit(|spec| spec.nodes[2].weight = 2);
    world.wake(&[2]);
    world.pop();
    // two frames late, and the time of the one on the line
    let behind = world.owed().behind / 16;
    assert!(behind <= Span::from_ms(8).ns(), "{behind} ns");
}

/// Twelve with frames, of which two take their places at once; the first has a guarantee.
fn twelve() -> World {
    let node = |number| NodeSpec { weight: 10, ..leaf(number) };
    let mut nodes: Vec<NodeSpec> = (1..=12).map(node).collect();
    nodes[0].rate = mbit(5);
    let mut world = World::new(nodes, 2);
    world.wake(&(1..=12).collect::<Vec<u32>>());
    world
}

#[test]
fn who_has_another_share_in_steps_counts_once() {
    let mut world = twelve();
    assert_eq!(world.owed().others(), 11);
    world.edit(|spec| spec.nodes[2..7].iter_mut().for_each(|node| node.weight = 9));
    assert_eq!(world.owed().others(), 11);
    let Interior { count, active_weight, gone_weight, .. } = *world.link();
    assert_eq!((count, active_weight, gone_weight), (12, 7 * 10 + 5 * 9, 0));
}

#[test]
fn time_goes_by_the_weights_of_after_the_edit() {
    let mut world = twelve();
    (0..2).for_each(|_| _ = world.pop());
    world.edit(|spec| spec.nodes[2..7].iter_mut().for_each(|node| node.weight = 9));
    let before = world.link().v;
    world.pop();
    // very many count their time in a power of 16
    assert_eq!(world.link().v - before, 1_000 * ((256 << UNIT) / (7 * 10 + 5 * 9)));
}

#[test]
fn an_edit_that_comes_before_the_last_is_over_loses_nobody() {
    let mut world = twelve();
    let unfinished = world.begins(|spec| spec.nodes[2].weight = 9);
    assert!(unfinished.has_steps());
    world.edit(|spec| spec.nodes[3].weight = 9);
    let mut left: Vec<u32> = (0..24).map(|_| world.pop()).collect();
    left.sort_unstable();
    assert!(left.into_iter().eq((1..=12).flat_map(|number| [number; 2])));
}
