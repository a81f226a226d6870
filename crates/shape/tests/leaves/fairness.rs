//! Everyone his turn.

use weir_shape::aqm::{Aqm, Cobalt};
use weir_shape::tree::{Care, Queueing};
use weir_units::{Rate, Span};

use crate::world::{Pace, Sender, World, jain};

const FAIR: Care = Care { queue: Queueing::Fair, aqm: Aqm::None, ecn: false, sessions: None };
const BY_HOST: Care = Care { queue: Queueing::FairHost, ..FAIR };

fn sender(flow: u32, host: u32, size: usize, pace: Pace) -> Sender {
    Sender { flow, host, size, pace }
}

/// One sends small frames, one large ones, one floods.
fn three(world: &mut World) {
    world.add(sender(1, 1, 60, Pace::Keeps(20)));
    world.add(sender(2, 2, 1_514, Pace::Keeps(20)));
    world.add(sender(3, 3, 500, Pace::Every(Span::from_us(10))));
}

#[test]
fn small_frames_large_frames_and_a_flood_have_the_same() {
    for care in [FAIR, BY_HOST] {
        let mut world = World::new(100_000_000, care);
        three(&mut world);
        world.run(Span::from_secs(1));
        let index = jain(&world.sent);
        assert!(index >= 0.999, "Jain {index} of {:?} under {care:?}", world.sent);
        // and the line was full
        let all: u64 = world.sent.iter().sum();
        assert!(all.abs_diff(12_500_000) <= 1_600, "{all} bytes");
    }
}

#[test]
fn in_one_queue_they_have_not() {
    let fifo = Care { queue: Queueing::Fifo, ..FAIR };
    let mut world = World::new(100_000_000, fifo);
    three(&mut world);
    world.run(Span::from_secs(1));
    assert!(jain(&world.sent) < 0.7, "{:?}", world.sent);
}

#[test]
fn a_host_with_a_hundred_connections_has_as_much_as_one_with_one() {
    let mut world = World::new(100_000_000, BY_HOST);
    world.add(sender(0, 1, 1_514, Pace::Keeps(10)));
    for flow in 1..=100 {
        world.add(sender(flow, 2, 1_514, Pace::Keeps(10)));
    }
    world.run(Span::from_secs(1));
    let (one, many) = (world.sent[0], &world.sent[1..]);
    let index = jain(&[one, many.iter().sum()]);
    assert!(index >= 0.999, "hosts: Jain {index}");
    let index = jain(many);
    assert!(index >= 0.999, "connections of the second: Jain {index} of {many:?}");
}

#[test]
fn hosts_that_are_new_share_one_part_until_they_have_settled() {
    let mut world = World::new(100_000_000, BY_HOST);
    world.new_hosts = 1..11;
    for flow in 0..=10 {
        world.add(sender(flow, 100 + flow, 1_514, Pace::Keeps(10)));
    }
    let of_one_second = |world: &mut World| {
        world.sent.fill(0);
        world.run(Span::from_secs(1));
        world.sent.clone()
    };
    let sent = of_one_second(&mut world);
    let index = jain(&[sent[0], sent[1..].iter().sum()]);
    assert!(index >= 0.999, "Jain {index} of one and all that are new: {sent:?}");
    // they always have frames waiting, and have a part each all the same once they have settled
    world.new_hosts = 1..1;
    let sent = of_one_second(&mut world);
    assert!(jain(&sent) >= 0.999, "{sent:?}");
    // what is left of the others is where it belongs
    world.new_hosts = 6..11;
    let sent = of_one_second(&mut world);
    assert!(jain(&sent) >= 0.999, "whoever sends goes on with its own host: {sent:?}");
}

#[test]
fn a_place_in_the_flow_table_that_was_another_hosts_has_no_turns_of_that_host() {
    let mut world = World::new(100_000_000, BY_HOST);
    for flow in 0..1_000 {
        world.add(sender(flow, 2, 1_514, Pace::Keeps(4)));
    }
    world.run(Span::from_ms(100));
    // the table is full: a connection of another host takes the place of one of those
    world.senders[500].pace = Pace::Silent;
    world.senders[500].host = 1;
    let frames = world.waiting[500];
    assert!(frames > 0, "some wait in the queue of the place");
    world.senders[500].pace = Pace::Keeps(frames + 10);
    world.run(Span::from_secs(1));
    let one = world.sent[500];
    let index = jain(&[one, world.sent.iter().sum::<u64>() - one]);
    assert!(index >= 0.99, "hosts: Jain {index}, {one} bytes");
}

#[test]
fn a_connection_that_waited_for_its_queue_never_overtakes_itself() {
    let mut world = World::new(20_000_000, BY_HOST);
    for flow in 0..20 {
        world.add(sender(flow, 2, 1_514, Pace::Keeps(4)));
    }
    world.run(Span::from_ms(50));
    world.senders[10].host = 1;
    for sender in &mut world.senders {
        sender.pace = Pace::Silent;
    }
    let (mut last, mut came, mut sent) = (world.now, 0, 0);
    // more than the line carries, until what waits of the others has gone, and on
    for ms in 0..200 {
        world.now += Span::from_ms(1);
        for _ in 0..1 + ms % 4 {
            came += u32::from(world.send(10));
        }
        while let Some(out) = world.tree.pop(world.now) {
            if out.label.host == 1 {
                assert!(out.since >= last, "{sent} of {came} have left");
                (last, sent) = (out.since, sent + 1);
            }
            world.pool.give(out.frame);
        }
    }
    assert!(sent > 200, "{sent} of {came}");
}

#[test]
fn by_connection_the_host_with_many_has_more() {
    let mut world = World::new(100_000_000, FAIR);
    world.add(sender(0, 1, 1_514, Pace::Keeps(10)));
    for flow in 1..=9 {
        world.add(sender(flow, 2, 1_514, Pace::Keeps(10)));
    }
    world.run(Span::from_secs(1));
    assert!(jain(&world.sent) >= 0.999);
}

#[test]
fn who_sends_little_never_waits_for_those_who_send_much() {
    // a call among ten that fill the line at 10 Mbit/s: a full frame takes 1.2 ms
    for care in [FAIR, BY_HOST, Care { aqm: cobalt(10_000_000), ..FAIR }] {
        let mut world = World::new(10_000_000, care);
        let call = world.add(sender(0, 1, 74, Pace::Every(Span::from_ms(20))));
        for flow in 1..=10 {
            world.add(sender(flow, 1 + flow, 1_514, Pace::Keeps(30)));
        }
        // at the very first, all of them are new
        world.run(Span::from_ms(100));
        world.run(Span::from_secs(1));
        let frame = Rate::from_bps(10_000_000).time_for(weir_units::Bytes::new(1_518));
        assert!(world.waited[call] <= frame, "{} under {care:?}", world.waited[call]);
        assert!(world.waited[1] > Span::from_ms(10), "the others do wait");
    }
}

#[test]
fn frames_of_no_known_connection_share_one_queue() {
    let mut world = World::new(10_000_000, FAIR);
    world.add(sender(0, 1, 1_000, Pace::Keeps(10)));
    // both beyond the flow table
    world.add(sender(u32::MAX, 2, 1_000, Pace::Keeps(10)));
    world.run(Span::from_secs(1));
    assert!(jain(&world.sent) >= 0.999, "{:?}", world.sent);
}

fn cobalt(rate: u64) -> Aqm {
    Aqm::Cobalt(Cobalt::for_rate(Rate::from_bps(rate), None, None))
}
