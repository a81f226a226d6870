//! Sessions: what each may have, how many there may be, and what one more gets.

use weir_packet::Reason;
use weir_shape::tree::{Care, NextSession, Queueing, Sessions};
use weir_units::{Rate, Span};

use crate::world::{Pace, Sender, World};

fn world(max: u64, count: u32, next: NextSession) -> World {
    let max = if max == 0 { Rate::MAX } else { Rate::from_bps(max) };
    let sessions = Some(Sessions { max, count, next });
    // the survey's class of three transfers
    World::new(35_000, Care { queue: Queueing::Fair, sessions, ..Care::default() })
}

fn transfer(world: &mut World, flow: u32) -> usize {
    world.add(Sender { flow, host: flow, size: 496, pace: Pace::Keeps(5) })
}

fn near(sent: u64, rate: u64, seconds: u64) {
    let want = rate * seconds / 8;
    let slack = (want / 50).max(1_000);
    assert!(sent.abs_diff(want) <= slack, "{sent} bytes, not {want}");
}

#[test]
fn three_have_a_third_each_and_a_fourth_that_shares_makes_it_quarters() {
    let mut world = world(0, 3, NextSession::Share);
    (0..3).for_each(|flow| _ = transfer(&mut world, flow));
    world.run(Span::from_secs(60));
    world.sent.iter().for_each(|&sent| near(sent, 35_000 / 3, 60));
    transfer(&mut world, 3);
    world.run(Span::from_secs(60));
    world.sent.iter().for_each(|&sent| near(sent, 35_000 / 4, 60));
}

#[test]
fn a_fourth_that_waits_begins_when_one_has_ended() {
    let mut world = world(0, 3, NextSession::Wait);
    (0..3).for_each(|flow| _ = transfer(&mut world, flow));
    world.run(Span::from_secs(10));
    let fourth = transfer(&mut world, 3);
    world.run(Span::from_secs(60));
    assert_eq!(world.sent[fourth], 0);
    assert_eq!(world.waiting[fourth], 5, "its frames wait, and are not lost");
    world.sent[..3].iter().for_each(|&sent| near(sent, 35_000 / 3, 60));
    world.senders[1].pace = Pace::Silent;
    // what it has waiting leaves, and then it is silent for five seconds
    world.run(Span::from_secs(8));
    world.run(Span::from_secs(60));
    assert_eq!(world.sent[1], 0);
    [0, 2, 3].iter().for_each(|&of| near(world.sent[of], 35_000 / 3, 60));
}

#[test]
fn a_fourth_that_is_refused_gets_nothing_and_disturbs_nobody() {
    let mut world = world(0, 3, NextSession::Reject);
    (0..3).for_each(|flow| _ = transfer(&mut world, flow));
    world.run(Span::from_secs(5));
    let every = Pace::Every(Span::from_ms(100));
    let fourth = world.add(Sender { flow: 3, host: 3, size: 496, pace: every });
    world.run(Span::from_secs(60));
    assert_eq!(world.sent[fourth], 0);
    assert!(world.dropped.iter().all(|&(of, why)| (of, why) == (fourth, Reason::NoSession)));
    world.sent[..3].iter().for_each(|&sent| near(sent, 35_000 / 3, 60));
}

#[test]
fn nobody_has_more_than_the_maximum_even_alone() {
    let mut world = world(10_000, 3, NextSession::Share);
    transfer(&mut world, 0);
    world.run(Span::from_secs(60));
    near(world.sent[0], 10_000, 60);
    // three of them have it too; a fourth makes it less
    (1..4).for_each(|flow| _ = transfer(&mut world, flow));
    // whoever begins may send two frames at once
    world.run(Span::from_secs(10));
    world.run(Span::from_secs(60));
    world.sent.iter().for_each(|&sent| near(sent, 35_000 / 4, 60));
}
