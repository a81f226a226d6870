//! Sessions: what each may have, how many there may be, and what one more gets.

use weir_packet::Reason;
use weir_shape::tree::{Care, NextSession, Queueing, Sessions};
use weir_units::{Rate, Span};

use crate::world::{Pace, Sender, World};

fn world(max: u64, count: u32, next: NextSession) -> World {
    let max = if max == 0 { Rate::MAX } else { Rate::from_bps(max) };
    let sessions = Some(Sessions { max, count, host: count, first: 0, next });
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

/// A frame every four seconds keeps a place; the calls of the others have none then.
#[test]
fn strangers_that_nobody_answers_have_no_place() {
    for next in [NextSession::Reject, NextSession::Wait] {
        let mut world = world(0, 10, next);
        world.strangers = 0..10;
        for flow in 0..10 {
            let every = Pace::Every(Span::from_secs(4));
            world.add(Sender { flow, host: flow % 2, size: 96, pace: every });
        }
        world.run(Span::from_secs(10));
        let every = Pace::Every(Span::from_ms(100));
        let call = world.add(Sender { flow: 10, host: 10, size: 96, pace: every });
        world.run(Span::from_secs(20));
        assert_eq!(world.sent[call], 200 * 100, "{next:?}");
        assert!(world.dropped.is_empty(), "{next:?}");
    }
}

/// Nor do they send more than one session does, and nothing where all places are taken.
#[test]
fn strangers_have_one_turn_of_all_sessions() {
    let mut world = world(0, 3, NextSession::Reject);
    world.strangers = 10..40;
    let pace = Pace::Keeps(1);
    (10..40).for_each(|flow| _ = world.add(Sender { flow, host: 1, size: 496, pace }));
    let first = transfer(&mut world, 0);
    world.run(Span::from_secs(60));
    near(world.sent[first], 35_000 / 2, 60);
    let others = [transfer(&mut world, 1), transfer(&mut world, 2)];
    // the strangers' frames that wait leave by their turns
    world.run(Span::from_secs(20));
    world.run(Span::from_secs(60));
    [first, others[0], others[1]].iter().for_each(|&of| near(world.sent[of], 35_000 / 3, 60));
    assert!(world.dropped.iter().all(|&(of, why)| (of < 30, why) == (true, Reason::NoSession)));
}

/// What came before the answer leaves before what came after.
#[test]
fn an_answer_changes_no_order() {
    let mut world = world(0, 3, NextSession::Reject);
    world.strangers = 0..2;
    let [one, other] =
        [0, 1].map(|flow| world.add(Sender { flow, host: 1, size: 96, pace: Pace::Silent }));
    for _ in 0..5 {
        world.send(one);
        world.send(other);
    }
    world.strangers = 0..0;
    (0..5).for_each(|_| _ = world.send(one));
    let mut last = [0; 2];
    while !world.tree.is_empty() {
        world.now += Span::from_ms(1);
        let Some(out) = world.tree.pop(world.now) else { continue };
        let place = out.frame.index();
        let last = &mut last[out.label.flow.index as usize];
        // buffers were taken in this order
        assert!(place > *last || *last == 0, "{place} behind {last}");
        *last = place;
    }
}

#[test]
fn a_host_has_only_so_many_places() {
    for next in [NextSession::Reject, NextSession::Wait] {
        let sessions = Some(Sessions { max: Rate::MAX, count: 4, host: 3, first: 0, next });
        let mut world = World::new(40_000, Care { sessions, ..Care::default() });
        let of = |flow, host| Sender { flow, host, size: 496, pace: Pace::Keeps(5) };
        let greedy: Vec<usize> = (0..8).map(|flow| world.add(of(flow, 1))).collect();
        world.run(Span::from_secs(5));
        let other = world.add(of(8, 2));
        world.run(Span::from_secs(60));
        near(world.sent[other], 10_000, 60);
        assert_eq!(greedy.iter().filter(|&&of| world.sent[of] > 0).count(), 3, "{next:?}");
        // places that were given back are there for others of the host
        (0..3).for_each(|of| world.senders[of].pace = Pace::Silent);
        world.run(Span::from_secs(12));
        world.run(Span::from_secs(20));
        let has_some = |of: &&usize| world.sent[**of] > 0;
        assert_eq!(greedy[3..].iter().filter(has_some).count(), 3, "{next:?}");
    }
}

/// Two hosts that would have all places leave the last ones to those that have none.
#[test]
fn the_last_places_are_for_hosts_that_have_none() {
    for next in [NextSession::Reject, NextSession::Wait] {
        let sessions = Some(Sessions { max: Rate::MAX, count: 8, host: 6, first: 2, next });
        let mut world = World::new(80_000, Care { sessions, ..Care::default() });
        let of = |flow, host| Sender { flow, host, size: 496, pace: Pace::Keeps(5) };
        let one: Vec<usize> = (0..8).map(|flow| world.add(of(flow, 1))).collect();
        world.run(Span::from_secs(5));
        let other: Vec<usize> = (8..16).map(|flow| world.add(of(flow, 2))).collect();
        world.run(Span::from_secs(5));
        let third = world.add(of(16, 3));
        world.run(Span::from_secs(60));
        near(world.sent[third], 10_000, 60);
        let served =
            |world: &World, all: &[usize]| all.iter().filter(|&&of| world.sent[of] > 0).count();
        assert_eq!((served(&world, &one), served(&world, &other)), (6, 1), "{next:?}");
        // what others give back goes to whoever waits, or but for the last ones to whoever asks
        one.iter().for_each(|&of| world.senders[of].pace = Pace::Silent);
        world.run(Span::from_secs(30));
        let more = if next == NextSession::Wait { 6 } else { 5 };
        assert_eq!(served(&world, &other), more, "{next:?}");
    }
}
