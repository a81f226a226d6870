//! Whose turn it is by the clock, and how time waits: step by step.

use super::*;

/// A child's byte at 1 Mbit/s.
const BYTE: u64 = 8_000 * PARTS;

/// Some children, by their clock; those without one have no guarantee.
struct World {
    owed: Owed,
    nodes: Vec<Node>,
    dues: Vec<Due>,
    now: Instant,
}

impl World {
    fn new(rates: &[u64]) -> World {
        let mut nodes = vec![Node::default(); rates.len()];
        for (node, &rate) in nodes.iter_mut().zip(rates) {
            node.share.flags.set(Flags::ACTIVE | Flags::CLOCKS);
            if rate > 0 {
                node.share.flags.set(Flags::OWED);
            }
        }
        let dues = rates.iter().map(|&rate| Due::new(Rate::from_bps(rate), false)).collect();
        let mut world = World {
            owed: Owed::with_capacity(rates.len()),
            nodes,
            dues,
            now: Instant::from_ns(1_000_000_000),
        };
        for (number, at) in (0..).zip(0..rates.len()) {
            let (node, due) = (&mut world.nodes[at], &mut world.dues[at]);
            world.owed.joins::<WOKEN>(world.now, number, node, due);
        }
        world
    }

    fn due(&mut self) -> Option<u32> {
        self.owed.due(self.now, &mut self.nodes, &self.dues)
    }

    fn sent(&mut self, number: usize, bytes: u64) {
        let sent = (bytes, &Carried::default());
        self.owed.sent(self.now, &self.nodes[number], &mut self.dues[number], sent);
    }

    fn after(&mut self, us: u64) {
        self.now += weir_units::Span::from_us(us);
    }
}

#[test]
fn who_is_due_goes_by_when_its_frame_should_be_gone() {
    let mut world = World::new(&[1_000_000, 4_000_000]);
    assert_eq!(world.due(), Some(1));
    world.sent(1, 1_000);
    assert_eq!(world.due(), Some(0));
    world.sent(0, 1_000);
    assert_eq!(world.due(), None);
    // 1000 bytes take 2 ms and 8 ms
    world.after(1_999);
    assert_eq!(world.due(), None);
    world.after(1);
    assert_eq!(world.due(), Some(1));
    // one that has nothing to send is not due, and wakes without what it missed
    world.nodes[1].share.flags.clear(Flags::ACTIVE);
    assert_eq!(world.due(), None);
    world.after(6_000);
    assert_eq!(world.due(), Some(0));
    world.nodes[1].share.flags.set(Flags::ACTIVE);
    let (node, due) = (&mut world.nodes[1], &mut world.dues[1]);
    world.owed.joins::<WOKEN>(world.now, 1, node, due);
    assert_eq!(world.dues[1].at, world.owed.time(world.now));
    assert_eq!(world.due(), Some(1));
}

#[test]
fn where_virtual_time_was_is_remembered_while_it_runs_on() {
    let mut world = World::new(&[1_000_000, 0]);
    let next = |world: &mut World, was: u64| {
        let due = world.owed.next(world.now, was, &mut world.nodes, &world.dues);
        (due, world.owed.chosen_at, world.owed.ran_on_from())
    };
    assert_eq!(next(&mut world, 100), (Some(0), 100, Some(100)));
    assert_eq!(next(&mut world, 700), (Some(0), 100, Some(100)));
    // it stays on the same half of the circle
    let far = 100 + FARTHEST;
    assert_eq!(next(&mut world, far), (Some(0), 100, Some(100)));
    assert_eq!(next(&mut world, far + 7), (Some(0), 107, Some(107)));
    world.sent(0, 1_000);
    assert_eq!(next(&mut world, far + 9), (None, 109, None));
    assert_eq!(next(&mut world, far + 90), (None, far + 90, None));
    world.after(9_000);
    assert_eq!(next(&mut world, far + 91), (Some(0), far + 91, Some(far + 91)));
    world.owed.stands();
    assert_eq!(next(&mut world, far + 92).1, far + 92);
}

#[test]
fn time_waits_for_one_that_is_two_frames_late() {
    let mut world = World::new(&[1_000_000]);
    world.after(8 * 2 * 1_536);
    assert_eq!((world.due(), world.owed.behind), (Some(0), 0));
    world.after(5);
    assert_eq!((world.due(), world.owed.behind), (Some(0), 5_000 * PARTS));
    world.after(5);
    assert_eq!((world.due(), world.owed.behind), (Some(0), 10_000 * PARTS));
    // frames of its node may be larger
    world.sent(0, 9_000);
    world.after(8 * (9_000 + 2 * 9_000 - 2 * 1_536));
    assert_eq!((world.due(), world.owed.behind), (Some(0), 10_000 * PARTS));
}

#[test]
fn a_clock_that_begins_after_a_pause_is_not_ahead() {
    let mut world = World::new(&[1_000_000, 1_000_000]);
    world.sent(1, 1_000);
    world.nodes[1].share.flags.clear(Flags::ACTIVE);
    // a thousand frames' time, of which the first child is late for all but two
    world.after(8 * 1_536 * 1_000);
    world.owed.waits(world.now, &mut world.nodes, &world.dues);
    assert_eq!(world.owed.behind, 998 * FRAME * BYTE);
    world.nodes[1].share.flags.set(Flags::ACTIVE);
    let (node, due) = (&mut world.nodes[1], &mut world.dues[1]);
    world.owed.joins::<WOKEN>(world.now, 1, node, due);
    assert_eq!(world.dues[1].at, world.dues[0].at + 2 * FRAME * BYTE);
    assert_eq!(world.due(), Some(0));
    assert_eq!(world.owed.behind, 998 * FRAME * BYTE);
}

#[test]
fn who_is_noted_later_than_it_is_due_would_be_missed() {
    for is_due in [false, true] {
        let mut world = World::new(&[1_000_000, 2_000_000]);
        if is_due {
            assert_eq!(world.due(), Some(1));
        }
        assert!(!world.owed.misses(0, &world.dues) && !world.owed.misses(1, &world.dues));
        world.dues[0].at += 1;
        assert!(!world.owed.misses(0, &world.dues));
        world.dues[0].at -= 2;
        assert!(world.owed.misses(0, &world.dues) && !world.owed.misses(1, &world.dues));
    }
}

#[test]
fn who_gets_company_lacks_no_more_than_two_frames() {
    let mut world = World::new(&[1_000_000]);
    let at = world.dues[0].at;
    world.after(8 * 2 * 1_536);
    world.owed.is_joined(world.now, &mut world.dues[0]);
    assert_eq!(world.dues[0].at, at);
    world.after(8);
    world.owed.is_joined(world.now, &mut world.dues[0]);
    assert_eq!(world.dues[0].at, at + BYTE);
}

#[test]
fn a_child_without_a_guarantee_keeps_a_hundredth() {
    // more than any line carries: it is due all the time
    let mut world = World::new(&[1_000_000_000_000, 0]);
    let mut by_clock = 0;
    for _ in 0..10_000 {
        world.after(12);
        if world.due() == Some(0) {
            world.sent(0, 1_536);
            by_clock += 1;
        } else {
            world.sent(1, 1_536);
        }
    }
    assert!((9_898..=9_902).contains(&by_clock), "{by_clock}");
    // nor is anything kept for one that has nothing to send
    world.nodes[1].share.flags.clear(Flags::ACTIVE);
    world.owed.sleeps(&world.nodes[1]);
    for _ in 0..1_000 {
        world.after(12);
        assert_eq!(world.due(), Some(0));
        world.sent(0, 1_536);
    }
    assert_eq!(world.owed.by_clock, 0);
}

#[test]
fn clocks_take_99_of_a_hundred_frames_and_then_one_goes_by_weight() {
    let mut world = World::new(&[1_000_000_000_000, 0]);
    for _ in 0..3 {
        for _ in 0..99 {
            world.after(12);
            assert_eq!(world.due(), Some(0));
            world.sent(0, 1_536);
        }
        world.after(12);
        assert_eq!(world.due(), None);
        world.sent(1, 1_536);
    }
    for _ in 0..99 {
        world.after(12);
        world.sent(0, 1_536);
    }
    world.after(12);
    assert_eq!(world.due(), None);
    // and none once nobody is left for whom it would be kept
    world.owed.sleeps(&world.nodes[1]);
    assert_eq!(world.due(), Some(0));
}

/// The clocks of all are noted anew, so many at a time.
fn reviews(world: &mut World, memory: &mut Owed, mut budget: usize) -> (bool, usize) {
    let tables = (&mut world.nodes[..], &world.dues[..]);
    let is_over = world.owed.reviews(&mut budget, tables, memory);
    (is_over, budget)
}

fn noted(world: &World) -> Vec<u32> {
    let mut noted: Vec<u32> = world.owed.noted().collect();
    noted.sort_unstable();
    noted
}

#[test]
fn clocks_that_are_due_are_noted_anew_as_well() {
    let mut world = World::new(&[4_000_000, 1_000_000, 2_000_000]);
    // all are due, the first soonest
    assert_eq!(world.due(), Some(0));
    let mut memory = Owed::with_capacity(3);
    world.owed.begins_anew(&mut memory);
    world.nodes[1].share.flags.clear(Flags::OWED);
    assert_eq!(reviews(&mut world, &mut memory, 2), (false, 0));
    assert_eq!(reviews(&mut world, &mut memory, 2), (true, 1));
    assert_eq!(noted(&world), [0, 2]);
    assert!(!world.nodes[1].share.flags.has(Flags::LISTED_OWED));
    // their memory is there again
    assert_eq!((memory.coming.capacity(), memory.due.capacity()), (3, 3));
}

#[test]
fn clocks_that_were_lost_meanwhile_go_some_at_a_time() {
    for (budget, is_over, left) in [(2, false, 3), (4, false, 1), (5, true, 0), (6, true, 0)] {
        let mut world = World::new(&[1_000_000; 5]);
        world.nodes.iter_mut().for_each(|node| node.share.flags.clear(Flags::OWED));
        let mut memory = Owed::with_capacity(5);
        let spent = budget.min(5);
        assert_eq!(reviews(&mut world, &mut memory, budget), (is_over, budget - spent));
        assert_eq!(noted(&world).len(), left, "{budget}");
    }
}
