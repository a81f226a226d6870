//! What is too much, who pays, and who is told to slow down.

use weir_packet::Reason;
use weir_shape::aqm::{Aqm, Cobalt, Codel, Pie, Red, Wred};
use weir_shape::tree::{Care, Queueing};
use weir_units::{Bytes, Rate, Span};

use crate::world::{Pace, Sender, World};

const RATE: u64 = 10_000_000;

fn world(care: Care) -> World {
    World::new(RATE, care)
}

fn sender(flow: u32, pace: Pace) -> Sender {
    Sender { flow, host: flow, size: 996, pace }
}

#[test]
fn the_fattest_queue_of_a_full_leaf_pays() {
    let fair = Care { queue: Queueing::Fair, ..Care::default() };
    let mut world = World::with(RATE, fair, |leaf| leaf.frames = 50);
    let flood = world.add(sender(0, Pace::Every(Span::from_us(100))));
    let modest = world.add(sender(1, Pace::Every(Span::from_ms(4))));
    world.run(Span::from_secs(1));
    assert!(!world.dropped.is_empty());
    assert!(world.dropped.iter().all(|&(of, why)| (of, why) == (flood, Reason::QueueFull)));
    assert_eq!(world.sent[modest], 250 * 1_000);
}

#[test]
fn bytes_are_a_limit_too() {
    let fair = Care { queue: Queueing::Fair, ..Care::default() };
    let mut world = World::with(RATE, fair, |leaf| leaf.bytes = Bytes::new(10_000));
    let one = world.add(sender(0, Pace::Silent));
    (0..20).for_each(|_| _ = world.send(one));
    assert_eq!(world.waiting[one], 10);
    assert_eq!(world.tree.len(), 10);
}

/// A flood of twice the line, for each kind of management that needs no limit for that.
#[test]
fn queue_management_keeps_a_flood_short() {
    let rate = Rate::from_bps(RATE);
    let kinds = [
        Aqm::Red(Red::for_rate(rate, None, None, None)),
        Aqm::Wred(Wred::for_rate(rate, None, None, None)),
        Aqm::Pie(Pie::for_rate(rate, None, None)),
    ];
    for queue in [Queueing::Fifo, Queueing::Fair] {
        for aqm in kinds {
            let mut world = world(Care { queue, aqm, ..Care::default() });
            flood(&mut world);
            let managed = world.dropped.iter().filter(|(_, why)| *why == Reason::Managed).count();
            assert_eq!(managed, world.dropped.len(), "only management drops: {aqm:?}");
            assert!(world.waited[0] < Span::from_ms(60), "{} under {aqm:?}", world.waited[0]);
        }
    }
}

/// COBALT learns from the limit that somebody does not listen, and CoDel never does.
#[test]
fn cobalt_needs_the_limit_once_and_codel_always() {
    let rate = Rate::from_bps(RATE);
    let codel = Aqm::Codel(Codel::for_rate(rate, None, None));
    let cobalt = Aqm::Cobalt(Cobalt::for_rate(rate, None, None));
    for queue in [Queueing::Fifo, Queueing::Fair] {
        let [by_codel, by_cobalt] = [codel, cobalt].map(|aqm| {
            let care = Care { queue, aqm, ..Care::default() };
            let mut world = World::with(RATE, care, |leaf| leaf.frames = 300);
            flood(&mut world);
            world.waited[0]
        });
        assert!(by_cobalt < Span::from_ms(20), "{by_cobalt} under {queue:?}");
        assert!(by_codel > Span::from_ms(100), "{by_codel} under {queue:?}");
    }
}

/// Twice what the line carries, of one who does not listen; counted once that is known.
fn flood(world: &mut World) {
    world.add(sender(0, Pace::Every(Span::from_us(400))));
    world.run(Span::from_secs(8));
    world.run(Span::from_secs(2));
    assert!(world.sent[0].abs_diff(RATE / 8 * 2) < 2_500, "the line is not full");
}

#[test]
fn codel_marks_those_that_understand_and_drops_none_of_them() {
    let codel = Aqm::Codel(Codel::for_rate(Rate::from_bps(RATE), None, None));
    for (ecn, marks) in [(1, true), (0, false)] {
        let care = Care { queue: Queueing::Fair, aqm: codel, ecn: true, sessions: None };
        let mut world = world(care);
        world.ecn = ecn;
        world.add(sender(0, Pace::Keeps(50)));
        world.run(Span::from_secs(2));
        assert_eq!((world.marked > 0, world.dropped.is_empty()), (marks, marks), "{ecn}");
    }
}

#[test]
fn the_longest_queue_of_all_leaves_pays_when_memory_is_used_up() {
    let fair = Care { queue: Queueing::Fair, ..Care::default() };
    let mut world = World::with(RATE, fair, |leaf| leaf.frames = u32::MAX);
    let fat = world.add(sender(0, Pace::Silent));
    for flow in 1..500 {
        world.add(sender(flow, Pace::Silent));
    }
    (0..15_000).for_each(|_| _ = world.send(fat));
    for of in 1..500 {
        (0..10).for_each(|_| _ = world.send(of));
    }
    assert_eq!(world.tree.len(), 19_990);
    (0..10).for_each(|_| _ = world.send(7));
    assert!(world.dropped.is_empty());
    // one more than may wait: not the one that came has to go
    let mut came = 0;
    while world.dropped.len() < 9 && came < 100 && world.pool.free() > 0 {
        assert!(world.send(1 + came % 400));
        came += 1;
    }
    assert!(world.dropped.iter().all(|&(of, why)| (of, why) == (fat, Reason::Crowded)));
}
