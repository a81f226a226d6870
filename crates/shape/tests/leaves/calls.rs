//! Small frames at a low rate go first with no rule written, and gain nothing by being many.

use weir_shape::aqm::{Aqm, Cobalt};
use weir_shape::tree::{Care, Queueing};
use weir_units::{Bytes, Rate, Span};

use crate::world::{Pace, Sender, World};

const FAIR: Care =
    Care { queue: Queueing::Fair, aqm: weir_shape::aqm::Aqm::None, ecn: false, sessions: None };
const BY_HOST: Care = Care { queue: Queueing::FairHost, ..FAIR };

/// Bulk flows on hosts of their own.
fn bulk(world: &mut World, flows: std::ops::Range<u32>) {
    for flow in flows {
        world.add(Sender { flow, host: flow, size: 1_514, pace: Pace::Keeps(10) });
    }
}

/// 50 frames of 74 bytes a second: 31.2 kbit/s with their check sequences.
fn call(world: &mut World, flow: u32, host: u32) -> usize {
    // not all at the same moment
    world.run(Span::from_us(317));
    world.add(Sender { flow, host, size: 74, pace: Pace::Every(Span::from_ms(20)) })
}

#[test]
fn a_call_of_five_times_its_even_part_waits_for_one_frame_of_another() {
    for care in [FAIR, BY_HOST] {
        // the even part is 6 kbit/s, and a full frame takes 97 ms
        let mut world = World::new(125_000, care);
        bulk(&mut world, 0..20);
        let call = call(&mut world, 20, 20);
        world.run(Span::from_secs(5));
        world.run(Span::from_secs(60));
        let frame = Rate::from_bps(125_000).time_for(Bytes::new(1_518));
        assert!(world.waited[call] <= frame, "{} under {care:?}", world.waited[call]);
        assert!(world.sent[call].abs_diff(60 * 50 * 78) <= 10 * 78, "{}", world.sent[call]);
    }
}

#[test]
fn a_flood_of_small_datagrams_has_its_part_and_a_call() {
    for care in [FAIR, BY_HOST] {
        let mut world = World::new(1_000_000, care);
        bulk(&mut world, 0..9);
        let every = Pace::Every(Span::from_us(200));
        let flood = world.add(Sender { flow: 9, host: 9, size: 74, pace: every });
        world.run(Span::from_secs(2));
        world.run(Span::from_secs(20));
        // 96 kbit/s count without check sequences; ten share the rest, to a turn
        let call = 96_000 * 78 / 74;
        let most = 20 * (call + (1_000_000 - call) / 10) + 2 * 1_538 * 8;
        let had = world.sent[flood] * 8;
        assert!(had <= most, "{had} bits, not {most}, under {care:?}");
    }
}

/// Bits of a turn of each bulk flow, by which a window may be off.
const TURN: u64 = 10 * 1_538 * 8;

/// Bits that the bulk has in three seconds beside a hundred calls, which want 3.12 Mbit/s of 2. Not
/// for long: when the leaf is full, somebody has to go.
fn bulk_beside_calls(care: Care, host: impl Fn(u32) -> u32) -> u64 {
    let mut world = World::with(2_000_000, care, |leaf| leaf.frames = 19_000);
    bulk(&mut world, 0..10);
    (10..110).for_each(|flow| _ = call(&mut world, flow, host(flow)));
    world.run(Span::from_ms(400));
    world.run(Span::from_secs(3));
    assert!(world.dropped.is_empty(), "the leaf is full");
    world.sent[..10].iter().map(|bytes| bytes * 8).sum()
}

/// What the large frames carry, small ones may carry first: B. What is left goes by turns, and ten
/// of a hundred and ten are the bulk's: B = (2 Mbit/s - B) / 11.
#[test]
fn a_hundred_calls_leave_the_bulk_its_turns_of_what_is_not_first() {
    for care in [FAIR, BY_HOST] {
        let had = bulk_beside_calls(care, |flow| flow);
        assert!(had + TURN >= 3 * 2_000_000 / 12, "{had} bits under {care:?}");
    }
}

/// One of eleven turns is its own, and what one call may have goes first.
#[test]
fn a_host_with_a_hundred_calls_has_what_a_host_has() {
    let had = bulk_beside_calls(BY_HOST, |_| 10);
    assert!(had + TURN >= 3 * (2_000_000 - 96_000) * 10 / 11, "{had} bits");
}

#[test]
fn calls_that_want_less_than_half_have_it_at_once() {
    for care in [FAIR, BY_HOST] {
        let mut world = World::new(2_000_000, care);
        bulk(&mut world, 0..10);
        // 936 kbit/s
        (10..40).for_each(|flow| _ = call(&mut world, flow, flow));
        world.run(Span::from_secs(5));
        world.run(Span::from_secs(20));
        let rate = Rate::from_bps(2_000_000);
        // the frame on the line, and one of each other call
        let most = rate.time_for(Bytes::new(1_518 + 29 * 78));
        let waited = world.waited[10..].iter().max().expect("calls");
        assert!(*waited <= most, "{waited}, not {most}, under {care:?}");
    }
}

/// How long a sparse flow of 20 frames of 64 bytes a second waits at most beside so many flows of
/// 89 kbit/s of one other host, on a line that carries half of that.
fn sparse_beside(queue: Queueing, size: usize, flows: u32, rate: u64) -> Span {
    let aqm = Aqm::Cobalt(Cobalt::for_rate(Rate::from_bps(rate), None, None));
    let mut world = World::new(rate, Care { queue, aqm, ..FAIR });
    let apart = Span::from_ns(size as u64 * 8_000_000_000 / 89_000);
    for flow in 0..flows {
        world.run(Span::from_us(173));
        world.add(Sender { flow, host: 1, size, pace: Pace::Every(apart) });
    }
    let every = Pace::Every(Span::from_ms(50));
    let sparse = world.add(Sender { flow: flows, host: 2, size: 64, pace: every });
    world.run(Span::from_secs(5));
    world.run(Span::from_secs(10));
    world.waited[sparse]
}

/// By connection it waits for a frame of each of the others at most, by host for the one that is
/// on the line.
#[test]
fn a_sparse_flow_does_not_wait_for_many_flows_of_small_frames() {
    for (flows, rate) in [(120, 5_000_000), (400, 20_000_000)] {
        for size in [64, 246, 346] {
            for (queue, frames) in [(Queueing::Fair, flows), (Queueing::FairHost, 1)] {
                let waited = sparse_beside(queue, size, flows, rate);
                let bytes = Bytes::new(u64::from(frames) * (size as u64 + 4) + 68);
                let most = Rate::from_bps(rate).time_for(bytes);
                assert!(waited <= most, "{flows} of {size}: {waited}, not {most}, by {queue:?}");
            }
        }
    }
}
