//! Who pays where too many frames wait: the host that has the most, whatever it is cut into.

use weir_packet::Reason;
use weir_shape::tree::{Care, Queueing};
use weir_units::Span;

use crate::world::{Pace, Sender, World};

const RATE: u64 = 10_000_000;

fn by_host() -> Care {
    Care { queue: Queueing::FairHost, ..Care::default() }
}

/// A host with one connection that has frames waiting, beside one that has sent a frame on each of
/// so many: what the first loses. `first` tells who came first.
fn lost_by_the_honest(frames: u32, connections: u32, first: bool) -> (usize, usize) {
    let mut world = World::with(RATE, by_host(), |leaf| leaf.frames = frames);
    let honest = world.add(Sender { flow: 0, host: 1, size: 1_514, pace: Pace::Silent });
    let spray: Vec<usize> = (1..=connections)
        .map(|flow| world.add(Sender { flow, host: 2, size: 1_514, pace: Pace::Silent }))
        .collect();
    if first {
        (0..20).for_each(|_| _ = world.send(honest));
    }
    spray.iter().for_each(|&of| _ = world.send(of));
    if !first {
        (0..20).for_each(|_| _ = world.send(honest));
    }
    let lost = world.dropped.iter().filter(|(of, _)| *of == honest).count();
    (lost, world.dropped.len())
}

#[test]
fn a_host_of_many_connections_pays_in_a_leaf_that_is_full() {
    for first in [true, false] {
        assert_eq!(lost_by_the_honest(100, 300, first), (0, 220), "first: {first}");
    }
}

/// The same where the leaf has room and the memory has none.
#[test]
fn and_where_the_memory_is() {
    for first in [true, false] {
        let mut world = World::with(RATE, by_host(), |leaf| leaf.frames = u32::MAX);
        let honest = world.add(Sender { flow: 0, host: 1, size: 1_514, pace: Pace::Silent });
        let spray: Vec<usize> = (1..1_000)
            .map(|flow| world.add(Sender { flow, host: 2, size: 60, pace: Pace::Silent }))
            .collect();
        // a frame of the honest is 25 of the others'
        let frames = 700;
        let honest_sends = |world: &mut World| (0..frames).for_each(|_| _ = world.send(honest));
        if first {
            honest_sends(&mut world);
        }
        for n in 0..20_000 - frames {
            world.send(spray[n % spray.len()]);
        }
        if !first {
            honest_sends(&mut world);
        }
        assert!(world.dropped.is_empty() && world.tree.len() == 20_000);
        for &of in &spray[..50] {
            world.send(of);
            world.send(honest);
        }
        let lost = world.dropped.iter().filter(|(of, _)| *of == honest).count();
        assert_eq!((lost, world.dropped.len()), (0, 100), "first: {first}");
    }
}

/// Frames go out between, so that what was noticed is no longer true.
#[test]
fn nor_does_it_help_to_come_and_go() {
    let mut world = World::with(RATE, by_host(), |leaf| leaf.frames = 64);
    let honest = world.add(Sender { flow: 0, host: 1, size: 1_514, pace: Pace::Keeps(20) });
    for flow in 1..200 {
        let every = Pace::Every(Span::from_us(60_000 + 131 * u64::from(flow)));
        world.add(Sender { flow, host: 2, size: 1_514, pace: every });
    }
    world.run(Span::from_secs(2));
    let lost = world.dropped.iter().filter(|(of, _)| *of == honest).count();
    assert!(world.dropped.len() > 1_000, "{}", world.dropped.len());
    assert_eq!(lost, 0);
    let all: u64 = world.sent.iter().sum();
    assert!(world.sent[honest] * 1_000 >= all * 495, "{} of {all}", world.sent[honest]);
}

/// Of a host's connections the one with the most bytes pays, also if another has more frames.
#[test]
fn bytes_count_and_not_frames() {
    for care in [by_host(), Care { queue: Queueing::Fair, ..Care::default() }] {
        let mut world = World::with(RATE, care, |leaf| leaf.frames = 40);
        let small = world.add(Sender { flow: 0, host: 1, size: 60, pace: Pace::Silent });
        let large = world.add(Sender { flow: 1, host: 1, size: 1_514, pace: Pace::Silent });
        (0..10).for_each(|_| _ = world.send(large));
        (0..60).for_each(|_| _ = world.send(small));
        let paid = |of| world.dropped.iter().filter(|(by, _)| *by == of).count();
        // until the large one has no more than the small one
        assert!(paid(large) >= 8, "{} under {care:?}", paid(large));
        assert!(world.dropped.iter().all(|(_, why)| *why == Reason::QueueFull));
    }
}
