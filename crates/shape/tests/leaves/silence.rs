//! Who falls silent again and again has no more than its part: what is left of a turn may be used
//! when it comes back, the next turn may not.

use weir_shape::tree::{Care, Queueing};
use weir_units::Span;

use crate::world::{Pace, Sender, World, jain};

const RATE: u64 = 10_000_000;
/// Nine that always have something to send.
const BULK: u32 = 9;

/// What the one that pauses has of an even part, in a second.
fn part(queue: Queueing, size: usize, pace: Pace) -> f64 {
    let mut world = World::new(RATE, Care { queue, ..Care::default() });
    for flow in 0..BULK {
        world.add(Sender { flow, host: flow, size: 1_514, pace: Pace::Keeps(10) });
    }
    let one = world.add(Sender { flow: BULK, host: BULK, size, pace });
    world.run(Span::from_ms(200));
    world.run(Span::from_secs(2));
    let index = jain(&world.sent[..BULK as usize]);
    assert!(index >= 0.999, "the others: Jain {index} of {:?}", world.sent);
    let all: u64 = world.sent.iter().sum();
    world.sent[one] as f64 / (all as f64 / f64::from(BULK + 1))
}

/// An even part, two turns for where the windows end; and for small frames what a call may have,
/// of which all ten bear their part.
fn most(size: usize) -> f64 {
    let even = RATE as f64 / f64::from(BULK + 1);
    let call = if size <= 300 { 96_000.0 * f64::from(BULK) / f64::from(BULK + 1) } else { 0.0 };
    1.0 + (call + 2.0 * 1_538.0 * 8.0 / 2.0) / even
}

#[test]
fn one_frame_at_a_time_is_no_way_to_have_more() {
    for queue in [Queueing::Fair, Queueing::FairHost] {
        for size in [60, 300, 301, 700, 996, 1_514] {
            for us in [0, 100, 1_300, 2_500, 5_000] {
                let pace = Pace::After(Span::from_us(us));
                let part = part(queue, size, pace);
                assert!(part <= most(size), "{size} bytes, {us} us: {part} under {queue:?}");
            }
        }
    }
}

#[test]
fn nor_is_a_pace() {
    for queue in [Queueing::Fair, Queueing::FairHost] {
        for size in [60, 300, 301, 700, 996, 1_514] {
            for percent in [15, 40, 90] {
                let every = (size as u64 + 4) * 8 * 100_000_000_000 / RATE / percent;
                let part = part(queue, size, Pace::Every(Span::from_ns(every)));
                assert!(part <= most(size), "{size} bytes, {percent} %: {part} under {queue:?}");
            }
        }
    }
}

#[test]
fn who_comes_back_with_more_than_is_left_of_its_turn_waits_for_the_next() {
    let mut world = World::new(RATE, Care { queue: Queueing::Fair, ..Care::default() });
    let sender = |flow, size| Sender { flow, host: flow, size, pace: Pace::Silent };
    let (bulk, one) = (world.add(sender(0, 996)), world.add(sender(1, 996)));
    let pop = |world: &mut World| {
        world.now = world.now.max(world.tree.next_at().expect("frames wait"));
        let out = world.tree.pop(world.now).expect("may leave");
        world.pool.give(out.frame);
        out.label.flow.index
    };
    let send = |world: &mut World, sizes: &[usize]| {
        for &size in sizes {
            world.senders[one].size = size;
            assert!(world.send(one));
        }
    };
    send(&mut world, &[996, 996, 400]);
    (0..10).for_each(|_| assert!(world.send(bulk)));
    // in its second turn it sends its last frame and has 672 bytes left; the other begins its own
    assert_eq!([(); 6].map(|()| pop(&mut world)), [1, 1, 0, 0, 1, 0]);
    send(&mut world, &[1_496, 496]);
    // a frame that would fit is no reason to go first: a larger one is before it
    assert_eq!([(); 2].map(|()| pop(&mut world)), [0, 1]);
}
