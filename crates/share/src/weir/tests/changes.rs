//! Leaves that join and go, nodes that change, events, and the audit itself.

use super::child::SATISFIED;
use super::*;

#[test]
fn events_that_nobody_fetches_are_lost_the_oldest_first() {
    let mut weir = flat(1, Options::TCP);
    // a parent that there is not has no room
    for parent in 0..1_024 + 3 {
        assert_eq!(weir.join(at(MS), parent, false), None);
    }
    assert_eq!(weir.lost_events(), 3);
    for parent in 3..1_024 + 3 {
        assert_eq!(weir.next_event(), Some(Event::Full(parent)));
    }
    assert_eq!((weir.next_event(), weir.lost_events()), (None, 3));
}

/// A link with two places for leaves.
fn spare() -> Weir {
    made(&[Node::link(mbit(1_000)), Node::spare(0), Node::spare(0)], Options::TCP)
}

#[test]
fn a_leaf_that_has_gone_is_not_told_of_again() {
    let mut weir = spare();
    let idle = Span::from_ms(1);
    weir.age(at(9_000 * MS), idle, 2);
    assert_eq!(weir.next_event(), None);
    let leaf = weir.join(at(MS), 0, true).expect("there is room");
    assert_eq!(weir.remove(Place::Leaf(leaf)), Gone(1));
    assert_eq!(weir.next_event(), Some(Event::Asks(leaf)));
    // nobody waits any more, and nobody is there to be taken out
    weir.approve(leaf);
    weir.age(at(9_000 * MS), idle, 2);
    assert_eq!(weir.next_event(), None);
    assert_eq!(weir.remove(Place::Leaf(leaf)), Gone(0));
}

#[test]
fn the_age_of_a_leaf_counts_from_when_it_joined() {
    let mut weir = spare();
    let idle = Span::from_ms(1_000);
    let leaf = weir.join(at(1_000 * MS), 0, false).expect("there is room");
    assert_eq!(weir.next_event(), Some(Event::Joined(leaf)));
    weir.age(at(1_999 * MS), idle, 2);
    assert_eq!(weir.next_event(), None);
    weir.age(at(2_001 * MS), idle, 2);
    assert_eq!(weir.next_event(), Some(Event::Aged(leaf)));
}

#[test]
fn so_many_steps_look_at_so_many_leaves_and_at_none_twice() {
    let mut weir = spare();
    for _ in 0..2 {
        weir.join(at(MS), 0, false).expect("there is room");
        weir.next_event();
    }
    for leaf in 0..2 {
        weir.age(at(9_000 * MS), Span::from_ms(1), 1);
        assert_eq!((weir.next_event(), weir.next_event()), (Some(Event::Aged(leaf)), None));
    }
    // as many leaves as there are bound it
    weir.age(at(9_000 * MS), Span::from_ms(1), u32::MAX);
}

#[test]
fn what_was_known_of_a_leaf_is_forgotten_when_it_begins_anew() {
    let mut weir = flat(2, Options::TCP);
    send(&mut weir, MS, 5, &[(0, 10), (1, 10)]);
    weir.begin_anew(0);
    weir.audit().expect("the sums are what follows");
    assert_eq!(weir.inner[0].sums.weight, 1);
    let Leaf { rate, last, credit, small, .. } = weir.leaves[0];
    assert_eq!((rate, last, credit, small), (0, 0, 0, 0));
    // one that is not there is none
    weir.begin_anew(2);
}

#[test]
fn a_leaf_that_joins_a_full_link_has_the_burst_of_a_newcomer() {
    let link = Node::link(mbit(1_000));
    let mut weir = made(&[link, Node::leaf(0, 1), Node::spare(0)], Options::SHORT);
    let (now, _) = send(&mut weir, MS, 20, &[(0, 5)]);
    assert!((0..9).any(|_| !weir.packet(at(now), 0, 1_000).passes()));
    let leaf = weir.join(at(now), 0, false).expect("there is room");
    let passed = (0..40).filter(|_| weir.packet(at(now + 10), leaf, 1_000).passes());
    assert_eq!(passed.count(), 16);
}

#[test]
fn who_has_the_place_of_another_has_nothing_of_it() {
    let mut weir = spare();
    let leaf = weir.join(at(MS), 0, false).expect("there is room");
    let longest = |weir: &Weir| weir.leaves[leaf as usize].longest();
    weir.packet(at(2 * MS), leaf, 9_000);
    weir.packet(at(2 * MS), leaf, 9_000);
    weir.remove(Place::Leaf(leaf));
    assert_eq!(weir.join(at(3 * MS), 0, false), Some(leaf));
    let Leaf { rate, credit, small, .. } = weir.leaves[leaf as usize];
    assert_eq!((rate, credit, small, longest(&weir)), (0, 0, 0, 0));
    weir.packet(at(4 * MS), leaf, 100);
    assert_eq!(longest(&weir), 100);
    weir.begin_anew(leaf);
    weir.packet(at(5 * MS), leaf, 60);
    assert_eq!(longest(&weir), 60);
}

#[test]
fn another_weight_moves_the_shares() {
    let mut weir = flat(3, Options::SHORT);
    let both = [(0, 5), (1, 5)];
    let (now, _) = send(&mut weir, MS, 20, &both);
    assert!(is_near(shares(&weir, [0, 1]), [500, 500]));
    weir.set_weight(Place::Leaf(0), 4);
    weir.audit().expect("the sums are what follows");
    assert_eq!(weir.inner[0].sums.weight, 5);
    // of one that is silent as well
    weir.set_weight(Place::Leaf(2), 5);
    assert_eq!((weir.inner[0].sums.weight, weir.leaves[2].child.weight), (5, 5));
    let (now, _) = send(&mut weir, now, 20, &both);
    assert!(is_near(shares(&weir, [0, 1]), [800, 200]));
    send(&mut weir, now, 20, &[(0, 5), (1, 5), (2, 5)]);
    assert!(is_near(shares(&weir, [0, 1, 2]), [400, 100, 500]));
}

#[test]
fn another_guarantee_holds_where_there_was_none() {
    let mut weir = flat(2, Options::SHORT);
    let both = [(0, 5), (1, 5)];
    let keeps = |weir: &Weir| weir.inner[0].child.flags.has(Flags::KEEPS);
    let (now, _) = send(&mut weir, MS, 20, &both);
    weir.set_floor(Place::Leaf(0), Rate::ZERO);
    assert!(!keeps(&weir));
    weir.set_floor(Place::Leaf(0), mbit(700));
    assert!(keeps(&weir));
    weir.audit().expect("the sums are what follows");
    send(&mut weir, now, 20, &both);
    assert!(is_near(shares(&weir, [0, 1]), [700, 300]));
}

#[test]
fn another_peak_holds_and_another_rate_of_the_link_sizes_what_depends_on_it() {
    let mut weir = flat(2, Options::SHORT);
    let both = [(0, 5), (1, 5)];
    let (now, _) = send(&mut weir, MS, 20, &both);
    weir.set_peak(Place::Leaf(0), mbit(100));
    weir.audit().expect("the sums are what follows");
    let (now, _) = send(&mut weir, now, 20, &both);
    assert!(is_near(shares(&weir, [0, 1]), [100, 900]));
    // 10 Gbit/s: 250 000 bytes in 200 us
    weir.set_peak(Place::Inner(0), mbit(10_000));
    assert_eq!(bytes(weir.gate.long), 250_000);
    assert_eq!(weir.burst, leaf::burst_of(10 * GBIT));
    send(&mut weir, now, 1, &both);
    assert!(is_near(shares(&weir, [0]), [100]) && weir.share(1) >= mbit(10_000));
}

#[test]
fn who_is_satisfied_before_a_change_and_after_it_stands_so_at_once() {
    let mut weir = flat(2, Options::SHORT);
    send(&mut weir, MS, 20, &[(0, 100), (1, 5)]);
    let standing = |weir: &Weir| weir.leaves[0].child.flags.standing();
    assert_eq!(standing(&weir), SATISFIED);
    let (fixed, wanting) = (weir.inner[0].sums.fixed, weir.inner[0].sums.wanting);
    weir.set_weight(Place::Leaf(0), 2);
    assert_eq!(standing(&weir), SATISFIED);
    assert_eq!((weir.inner[0].sums.fixed, weir.inner[0].sums.wanting), (fixed, wanting));
    weir.audit().expect("the sums are what follows");
}

#[test]
fn the_audit_finds_each_sum_that_is_off() {
    let mut weir = made(&branches(), Options::SHORT);
    send(&mut weir, MS, 5, &[(0, 10), (1, 10), (2, 10)]);
    let mut is_found = |change: fn(&mut Sums)| {
        let before = weir.inner[1].sums;
        change(&mut weir.inner[1].sums);
        let is_found = weir.audit().is_err();
        weir.inner[1].sums = before;
        is_found && weir.audit().is_ok()
    };
    assert!(is_found(|sums| sums.fixed += 1));
    assert!(is_found(|sums| sums.demand += 1));
    assert!(is_found(|sums| sums.wanting += 1));
    assert!(is_found(|sums| sums.weight += 1));
    assert!(is_found(|sums| sums.met += 1));
    assert!(is_found(|sums| sums.kept += 1));
    assert!(is_found(|sums| sums.floors += 1));
    assert!(is_found(|sums| sums.assured += 1));
    weir.inner[2].child.flags.set(Flags::ACTIVE, false);
    assert!(weir.audit().is_err());
}
