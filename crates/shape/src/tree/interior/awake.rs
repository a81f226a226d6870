//! What time is, and who counts, as children wake and leave: step by step.

use super::choose::starts;
use super::*;
use crate::tree::kinds::{Child, sorted};
use crate::tree::pauses::Carried;
use weir_units::{Rate, Span};

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
        World::with(4, 1)
    }

    /// So many children, in turn of so many kinds.
    fn with(children: u16, kinds: u16) -> World {
        let node = |number: u16| {
            let mut node = Node::default();
            (node.share.weight, node.share.per_byte) = (1, BYTE);
            node.share.group = number % kinds;
            node
        };
        let calendars = (0..kinds).map(|kind| Calendar::new(kind, 0, FRAME * BYTE));
        let interior = Interior::new(calendars.collect(), None, 4);
        World { interior, nodes: (0..children).map(node).collect(), now: Instant::ZERO }
    }

    fn wake(&mut self, number: u32) {
        self.interior.joins::<WOKEN>(self.now, number, &mut self.nodes, &mut []);
    }

    /// Sends a frame of whoever is next, and tells who that was.
    fn send(&mut self, bytes: u32, stays: bool) -> u32 {
        let number = self.interior.next(self.now, &mut self.nodes, &mut []).expect("has frames");
        self.interior.sent(number, &mut self.nodes[number as usize], (bytes, bytes), stays);
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

/// Two that start 2 000 and 3 000 bytes behind `base`; one has left ahead of time, and others lack
/// something. It is `v` bytes behind `base`.
fn two(kinds: u16, base: u64, v: u64) -> World {
    let mut world = World::with(2, kinds);
    world.interior.v = base;
    for (number, s) in [(0, 2_000), (1, 3_000)] {
        world.nodes[number as usize].share.s = base.wrapping_add(s * BYTE);
        world.wake(number);
    }
    world.interior.v = base.wrapping_add(v * BYTE);
    world.interior.moves_on_by(-1_200);
    (world.interior.active_weight, world.interior.gone_weight) = (3, 1);
    world.interior.gone_bytes = 10;
    world
}

/// A day is 64 bytes; the first who starts does so on one that begins at 1 984.
#[test]
fn time_is_never_before_who_starts_first_nor_behind_who_should_have_finished() {
    let around_the_end = 0u64.wrapping_sub(1_536 * BYTE);
    let bases = [1 << 40, around_the_end, 1 << 63];
    for (kinds, base) in [1, 2].into_iter().flat_map(|kinds| bases.map(|base| (kinds, base))) {
        let after = |v| {
            let mut world = two(kinds, base, v);
            assert_eq!(world.interior.next(world.now, &mut world.nodes, &mut []), Some(0));
            let Interior { v, slot, .. } = world.interior;
            (v.wrapping_sub(base) / BYTE, slot.cast_signed(), world.gone())
        };
        // nobody is within its share, so nobody lacks anything
        for v in [1_200, 1_983] {
            assert_eq!(after(v), (1_984, 0, (2, 0, 0)), "{kinds} from {base} on");
        }
        // and it never goes back
        for v in [1_984, 2_500, 3_520, 9_000] {
            assert_eq!(after(v), (v, -200, (3, 1, 10)), "{kinds} from {base} on");
        }
        let goes_on = |v, by| {
            let mut world = two(kinds, base, v);
            // what the others lack, and three for each of three (rounded down)
            world.interior.moves_on_by(200 + 3 * by);
            assert_eq!(world.interior.next(world.now, &mut world.nodes, &mut []), Some(0));
            world.interior.v.wrapping_sub(base) / BYTE
        };
        for (v, by, is) in [(2_000, 1_000, 2_999), (3_000, 9_000, 3_520), (9_000, 400, 9_000)] {
            assert_eq!(goes_on(v, by), is, "{kinds} from {base} on");
        }
    }
}

#[test]
fn forty_thousand_children_each_have_their_turn() {
    let mut world = World::with(40_000, 1);
    (0..40_000).for_each(|number| world.wake(number));
    assert_eq!((world.interior.count, world.gone()), (40_000, (40_000, 0, 0)));
    let mut turns: Vec<u32> = (0..40_000).map(|_| world.send(1_000, true)).collect();
    turns.sort_unstable();
    assert!(turns.into_iter().eq(0..40_000));
}

/// Virtual time is a circle: even one of the least weight goes less than half of it at once.
#[test]
fn who_has_the_least_weight_and_sends_a_large_frame_is_ahead() {
    let child = |weight| Child { weight, priority: 0, rate: Rate::ZERO };
    let told = [child(1), child(1 << 30)];
    let (interior, shares) = sorted(&told, Rate::MAX, false);
    let nodes = shares.iter().map(|(share, _)| Node { share: *share, ..Node::default() });
    let mut world = World { interior, nodes: nodes.collect(), now: Instant::ZERO };
    (0..2).for_each(|number| world.wake(number));
    let mut turns: Vec<u32> = (0..1_000).map(|_| world.send(9_000, true)).collect();
    turns.retain(|&number| number == 0);
    assert_eq!(turns.len(), 1);
}

#[test]
fn who_is_noted_in_a_calendar_of_before_an_edit_starts_and_ends_as_it_says_itself() {
    for is_closing in [false, true] {
        let mut calendar = Calendar::new(0, 0, FRAME * BYTE);
        calendar.is_closing = is_closing;
        let mut nodes = [Node::default()];
        nodes[0].share.flags.set(Flags::ACTIVE);
        (nodes[0].share.s, nodes[0].share.per_byte) = (1_000 * BYTE, BYTE);
        calendar.note(0, &mut nodes[0]);
        let mut starts = |nodes: &mut [Node]| {
            let (start, end) = starts(&mut calendar, nodes).expect("is noted");
            (start / BYTE, (end - start) / BYTE)
        };
        let noted = starts(&mut nodes);
        (nodes[0].share.s, nodes[0].share.per_byte) = (500 * BYTE, 3 * BYTE);
        if is_closing {
            assert_eq!([noted, starts(&mut nodes)], [(1_000, FRAME), (500, 3 * FRAME)]);
        } else {
            assert_eq!([noted, starts(&mut nodes)], [(960, FRAME); 2]);
        }
    }
}

/// One has a guarantee, one has none.
fn with_clocks() -> (World, Vec<Due>) {
    let child = |rate| Child { weight: 1, priority: 0, rate: Rate::from_bps(rate) };
    let rate = Rate::from_bps(10_000_000);
    let (interior, shares) = sorted(&[child(9_000_000), child(0)], rate, false);
    let nodes = shares.iter().map(|(share, _)| Node { share: *share, ..Node::default() });
    let dues = shares.iter().map(|(_, due)| *due).collect();
    let now = Instant::from_ns(1_000_000_000);
    (World { interior, nodes: nodes.collect(), now }, dues)
}

#[test]
fn who_is_served_for_its_guarantee_and_is_then_alone_is_no_longer_due() {
    let (mut world, mut dues) = with_clocks();
    (0..2).for_each(|n| world.interior.joins::<WOKEN>(world.now, n, &mut world.nodes, &mut dues));
    let others = |world: &World| world.interior.owed.as_ref().map(|owed| owed.others());
    assert_eq!(others(&world), Some(1));
    let mut send = |world: &mut World, stays: [bool; 2]| {
        let number =
            world.interior.next(world.now, &mut world.nodes, &mut dues).expect("has frames");
        let (node, due) = (&mut world.nodes[number as usize], &mut dues[number as usize]);
        let is_due = node.share.flags.has(Flags::IS_DUE);
        let counted =
            world.interior.clocks_go_on(world.now, node, due, (1_000, &Carried::default()));
        world.interior.sent(number, node, (1_000, counted), stays[number as usize]);
        (number, is_due)
    };
    // it is not due any more, and the other sends all it has
    while send(&mut world, [true, false]) != (1, false) {}
    assert_eq!(others(&world), Some(0));
    world.now += Span::from_secs(1);
    assert_eq!(send(&mut world, [true, false]), (0, true));
    assert_eq!(world.interior.alone(), Some(0));
    assert!(!world.nodes[0].share.flags.has(Flags::IS_DUE));
}

#[test]
fn a_node_that_had_nothing_to_send_was_not_waiting_for_others() {
    for sleeps in [false, true] {
        let (mut world, mut dues) = with_clocks();
        let mut line = Carried::default();
        line.has_rate(Rate::from_bps(10_000_000));
        (0..2)
            .for_each(|n| world.interior.joins::<WOKEN>(world.now, n, &mut world.nodes, &mut dues));
        let mut send = |world: &mut World, dues: &mut [Due], stays: bool, others: u64| {
            let next = world.interior.next(world.now, &mut world.nodes, dues);
            let number = next.expect("has frames");
            let (node, due) = (&mut world.nodes[number as usize], &mut dues[number as usize]);
            line.carries(1_000);
            let counted = world.interior.clocks_go_on(world.now, node, due, (1_000, &line));
            world.interior.sent(number, node, (1_000, counted), stays);
            // and then others of the line
            line.carries(others);
            number
        };
        let first = send(&mut world, &mut dues, !sleeps, 50_000);
        send(&mut world, &mut dues, !sleeps, 90_000);
        if sleeps {
            // one wakes
            world.interior.joins::<WOKEN>(world.now, first, &mut world.nodes, &mut dues);
        }
        let pauses = |world: &World| world.interior.owed.as_ref().map(|owed| owed.pauses.longest());
        let before = pauses(&world);
        send(&mut world, &mut dues, true, 0);
        assert_eq!(before < pauses(&world), !sleeps, "{before:?}");
    }
}

/// The first has a guarantee that is not due, and has had so many bytes that did not count yet; the
/// other is so many bytes ahead.
fn with_uncounted(uncounted: u32, ahead: u64) -> (World, Vec<Due>) {
    let (mut world, mut dues) = with_clocks();
    dues[0].shifts(0, 1 << 50);
    world.interior.joins::<WOKEN>(world.now, 0, &mut world.nodes, &mut dues);
    let share = &mut world.nodes[1].share;
    share.s = world.interior.v + ahead * share.per_byte;
    world.interior.joins::<WOKEN>(world.now, 1, &mut world.nodes, &mut dues);
    dues[0].uncounted = uncounted;
    // as much is remembered as beside many others
    world.interior.count = 40;
    (world, dues)
}

#[test]
fn who_has_had_more_by_its_clock_passes_until_the_other_has_had_as_much() {
    let (mut world, mut dues) = with_uncounted(73_000, 0);
    let mut turns = Vec::new();
    while turns.last() != Some(&0) {
        let number =
            world.interior.next(world.now, &mut world.nodes, &mut dues).expect("has frames");
        world.interior.sent(number, &mut world.nodes[number as usize], (1_000, 1_000), true);
        turns.push(number);
    }
    assert!((72..=75).contains(&turns.len()), "{} turns", turns.len());
    assert_eq!(dues[0].uncounted, 0);
}

#[test]
fn time_moves_on_by_the_turns_that_are_passed() {
    let (mut world, mut dues) = with_uncounted(6_144, 960);
    let was = world.interior.v;
    assert_eq!(world.interior.next(world.now, &mut world.nodes, &mut dues), Some(1));
    // by half of the bytes, but not beyond the moment by which the other should have finished
    assert_eq!((world.interior.v - was) / world.nodes[1].share.per_byte, 960 + FRAME);
}

#[test]
fn no_more_than_four_turns_are_passed_for_a_frame() {
    let (mut world, mut dues) = with_uncounted(100_000, 150_000);
    for passed in [4, 8] {
        assert_eq!(world.interior.next(world.now, &mut world.nodes, &mut dues), Some(0));
        assert_eq!(dues[0].uncounted, 100_000 - passed * 4 * 1_536);
        world.interior.sent(0, &mut world.nodes[0], (1_000, 1_000), true);
    }
}

/// The node had a pause of 80 ms.
fn pauses(world: &mut World) {
    let mut line = Carried::default();
    line.has_rate(Rate::from_bps(10_000_000));
    let owed = world.interior.owed.as_mut().expect("has clocks");
    owed.pauses.sent(1_000, &line);
    line.carries(101_000);
    owed.pauses.sent(1_000, &line);
}

/// Both have something to send, and the first may be late by a pause of its node.
fn late() -> (World, Vec<Due>) {
    let (mut world, mut dues) = with_clocks();
    for n in 0..2 {
        world.interior.joins::<WOKEN>(world.now, n, &mut world.nodes, &mut dues);
    }
    pauses(&mut world);
    world.now += Span::from_ms(50);
    (world, dues)
}

#[test]
fn whoever_wakes_when_nobody_is_awake_begins_now() {
    let (mut world, mut dues) = late();
    assert_eq!(world.interior.next(world.now, &mut world.nodes, &mut dues), Some(0));
    for n in 0..2 {
        let node = &mut world.nodes[n as usize];
        world.interior.sent(n, node, (1_000, 1_000), false);
    }
    world.interior.joins::<WOKEN>(world.now, 0, &mut world.nodes, &mut dues);
    let owed = world.interior.owed.as_ref().expect("has clocks");
    let mut new = Due::new(Rate::from_bps(9_000_000), false);
    new.begins(owed.time(world.now));
    assert_eq!(dues[0].end(), new.end());
}

#[test]
fn whoever_wakes_beside_one_that_is_late_and_alone_begins_with_it() {
    for is_late in [false, true] {
        let child = |rate| Child { weight: 1, priority: 0, rate: Rate::from_bps(rate) };
        let told = [child(4_000_000), child(4_000_000), child(0)];
        let (interior, shares) = sorted(&told, Rate::from_bps(10_000_000), false);
        let nodes = shares.iter().map(|(share, _)| Node { share: *share, ..Node::default() });
        let mut dues: Vec<Due> = shares.iter().map(|(_, due)| *due).collect();
        let now = Instant::from_ns(1_000_000_000);
        let mut world = World { interior, nodes: nodes.collect(), now };
        world.interior.joins::<WOKEN>(world.now, 0, &mut world.nodes, &mut dues);
        pauses(&mut world);
        if is_late {
            world.now += Span::from_ms(50);
        }
        world.interior.joins::<WOKEN>(world.now, 1, &mut world.nodes, &mut dues);
        assert_eq!(dues[1].end(), dues[0].end(), "{is_late}");
    }
}

#[test]
fn time_that_ran_on_stands_when_one_is_left_alone() {
    let (mut world, mut dues) = late();
    assert_eq!(world.interior.next(world.now, &mut world.nodes, &mut dues), Some(0));
    let ran_on = |world: &World| world.interior.owed.as_ref().and_then(|o| o.ran_on_from());
    assert_eq!(ran_on(&world), Some(world.interior.v));
    world.interior.sent(0, &mut world.nodes[0], (1_000, 1_000), false);
    world.interior.sent(1, &mut world.nodes[1], (1_000, 1_000), true);
    assert!(world.interior.alone().is_some());
    assert_eq!(ran_on(&world), None);
}

#[test]
fn time_that_ran_on_goes_back_for_the_next_that_is_chosen_by_weight() {
    let (mut world, mut dues) = late();
    let was = world.interior.v;
    assert_eq!(world.interior.next(world.now, &mut world.nodes, &mut dues), Some(0));
    world.interior.v = was.wrapping_add(9_000 * BYTE);
    // nobody is due any more
    dues[0].shifts(0, 1 << 40);
    let most = world.interior.bounds(&mut world.nodes).map(|(_, least_f)| least_f);
    assert!(world.interior.next(world.now, &mut world.nodes, &mut dues).is_some());
    assert_eq!(Some(world.interior.v), most);
}

#[test]
fn an_edit_finds_time_where_the_next_would_be_chosen_by_weight() {
    let (mut world, mut dues) = late();
    let was = world.interior.v;
    assert_eq!(world.interior.next(world.now, &mut world.nodes, &mut dues), Some(0));
    // it runs on while others are served because they are due
    world.interior.v = was.wrapping_add(9_000 * BYTE);
    world.interior.comes_to_order(world.now, &mut world.nodes, &mut dues);
    // by then the first should have finished
    let most = world.interior.bounds(&mut world.nodes).map(|(_, least_f)| least_f);
    assert_eq!(Some(world.interior.v), most);
}

/// Who should finish first is known to a fifth of a frame of the one with the most weight.
#[test]
fn a_kind_has_the_frame_of_its_heaviest_child() {
    for weights in [[17u64, 16, 967], [16, 17, 967]] {
        let child = |weight| Child { weight, priority: 0, rate: Rate::ZERO };
        let (interior, _) = sorted(&weights.map(child), Rate::MAX, false);
        let frames: Vec<u64> = interior.kinds.iter().map(|kind| kind.frame).collect();
        let frame = |weight: u64| FRAME * ((1_000 << UNIT) / weight);
        assert_eq!(frames, [frame(17), frame(967)]);
    }
}

#[test]
fn one_that_comes_from_elsewhere_lacks_a_frame_at_most_and_counts() {
    let mut world = World::new();
    world.wake(0);
    world.wake(1);
    for _ in 0..20 {
        world.send(1_000, true);
    }
    let before = world.interior.v;
    // it was 5 000 bytes behind before it had to wait for the parent that it had
    world.nodes[2].share.s = before.wrapping_sub(5_000 * BYTE);
    world.interior.takes_in(world.now, 2, &mut world.nodes, &mut [Due::default(); 4]);
    assert_eq!(world.served(2), before / BYTE - FRAME);
    assert_eq!(world.gone(), (3, 0, 0));
    assert_eq!([world.send(1_000, true), world.send(1_000, true)], [2, 2]);
    // what it lacked is paid; time goes by a third for each of three again
    for _ in 0..3 {
        world.send(1_000, true);
    }
    let paid = world.interior.v;
    world.send(1_000, true);
    assert_eq!(world.interior.v - paid, 1_000 * ((4 << UNIT) / 3));
}
