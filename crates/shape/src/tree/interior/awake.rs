//! What time is, and who counts, as children wake and leave: step by step.

use super::*;

/// Children of one kind, of the same weight, one time for a byte.
struct World {
    interior: Interior,
    nodes: Vec<Node>,
    now: Instant,
}

/// Virtual time for a byte of one child.
const BYTE: u64 = 4 << UNIT;

impl World {
    fn new() -> World {
        let mut node = Node::default();
        (node.share.weight, node.share.per_byte) = (1, BYTE);
        let kinds = [Calendar::new(0, 0, FRAME * BYTE)].into();
        World { interior: Interior::new(kinds, None, 4), nodes: vec![node; 4], now: Instant::ZERO }
    }

    fn wake(&mut self, number: u32) {
        self.interior.wake(self.now, number, &mut self.nodes, &mut []);
    }

    /// Sends a frame of whoever is next, and tells who that was.
    fn send(&mut self, bytes: u64, stays: bool) -> u32 {
        let number = self.interior.next(self.now, &mut self.nodes, &[]).expect("has frames");
        self.interior.sent(number, &mut self.nodes[number as usize], bytes, stays);
        number
    }

    /// Bytes up to which a child has been served.
    fn served(&self, number: usize) -> u64 {
        self.nodes[number].share.s / BYTE
    }

    fn gone(&self) -> (u64, u64, u64) {
        (self.interior.active_weight, self.interior.gone_weight, self.interior.gone_bytes)
    }
}

#[test]
fn time_goes_slower_the_more_there_are() {
    let mut world = World::new();
    world.wake(0);
    assert_eq!(world.send(1_000, true), 0);
    world.wake(1);
    assert_eq!((world.served(0), world.served(1), world.interior.v), (1_000, 0, 0));
    // what was on the line is half a part for each of two
    assert_eq!(world.send(1_000, true), 1);
    assert_eq!((world.interior.v, world.served(1)), (500 * BYTE, 1_000));
    world.wake(2);
    assert_eq!(world.served(2), 500);
    // and a third for each of three
    assert_eq!(world.send(1_000, true), 2);
    assert_eq!(world.interior.v, 500 * BYTE + 1_000 * ((4 << UNIT) / 3));
}

#[test]
fn time_goes_with_one_that_is_alone() {
    let mut world = World::new();
    world.wake(0);
    for bytes in [1_000, 300, 200] {
        assert_eq!(world.send(bytes, true), 0);
    }
    // the last of its frames is on the line
    assert_eq!(world.interior.v, 1_300 * BYTE);
    world.wake(1);
    assert_eq!((world.served(0), world.served(1)), (1_500, 1_300));
    assert_eq!(world.gone(), (2, 0, 0));
}

#[test]
fn one_that_was_alone_and_leaves_keeps_what_it_has_had() {
    let mut world = World::new();
    world.wake(0);
    world.send(1_000, true);
    world.send(500, false);
    assert!(!world.interior.is_active());
    assert_eq!((world.served(0), world.interior.v, world.gone()), (1_500, 1_000 * BYTE, (0, 0, 0)));
    world.wake(1);
    // alone, it is where time is
    assert_eq!((world.served(1), world.gone()), (0, (1, 0, 0)));
}

#[test]
fn who_comes_back_ahead_of_time_counts_once() {
    let mut world = World::new();
    (0..3).for_each(|number| world.wake(number));
    let left = world.send(900, false);
    assert_eq!(world.gone(), (3, 1, 900));
    world.wake(left);
    assert_eq!((world.gone(), world.interior.count), ((3, 0, 0), 3));
}

#[test]
fn who_left_is_forgotten_when_nobody_is_left() {
    let mut world = World::new();
    (0..2).for_each(|number| world.wake(number));
    world.send(900, false);
    let last = world.send(700, false);
    assert!(!world.interior.is_active() && world.interior.gone_weight > 0);
    world.wake(last);
    assert_eq!(world.gone(), (1, 0, 0));
    // and when one is left
    let mut world = World::new();
    (0..2).for_each(|number| world.wake(number));
    world.send(900, false);
    world.send(700, true);
    assert_eq!(world.gone(), (1, 0, 0));
    assert!(world.interior.alone().is_some());
}

#[test]
fn who_left_is_paid_as_time_moves_on() {
    let mut world = World::new();
    (0..4).for_each(|number| world.wake(number));
    world.send(800, false);
    world.send(400, true);
    // a quarter of what was on the line
    assert_eq!((world.gone(), world.interior.v), ((4, 1, 600), 200 * BYTE));
    world.send(600, true);
    assert_eq!((world.gone(), world.interior.v), ((4, 1, 500), 300 * BYTE));
}

#[test]
fn what_one_that_was_alone_lacks_holds_time_back() {
    let mut world = World::new();
    (0..2).for_each(|number| world.wake(number));
    world.send(1_000, false);
    let alone = world.send(300, true);
    // 500 bytes behind
    assert_eq!((world.interior.v, world.gone()), (500 * BYTE, (1, 0, 0)));
    world.wake(2);
    assert_eq!((world.served(alone as usize), world.served(2)), (300, 500));
    assert_eq!(world.interior.slot.cast_signed(), 300 - 500);
}

#[test]
fn time_is_where_one_is_that_wakes_alone() {
    let mut world = World::new();
    world.wake(0);
    world.send(1_000, true);
    world.send(500, false);
    world.wake(0);
    assert_eq!((world.interior.v, world.served(0)), (1_500 * BYTE, 0));
}
