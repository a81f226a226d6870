//! A node with children by itself, step by step. A level is what a unit of weight has, in 2^-16.

use std::cmp::Ordering::{Equal, Greater, Less};

use super::*;
use crate::scale::MOST;
use crate::weir::child::{KEPT, MET, SATISFIED, WANTING};

fn node(sums: Sums, keeps: bool) -> Inner {
    let mut flags = Flags::default();
    flags.set(Flags::KEEPS, keeps);
    let child =
        Child { parent: 0, weight: 1, floor: Packed::new(0), peak: Packed::INFINITE, flags };
    Inner { sums, hand: NONE, first: [NONE; 2], child }
}

#[test]
fn no_level_is_a_hundredth_below_the_even_split() {
    let level = |fixed| {
        // of ten that share a million, one is satisfied with so much
        let (demand, wanting, weight) = (2_000_000, 9, 10);
        let mut node = node(Sums { fixed, demand, wanting, weight, ..Sums::NONE }, false);
        node.settle(1_000_000);
        node.sums.level.get() >> POINT
    };
    assert_eq!(level(50_000), 105_555);
    // by 0.6 %, which is left as it is, and by 1.1 %
    assert_eq!(level(105_000), 99_444);
    assert_eq!(level(110_000), 100_000);
}

#[test]
fn a_level_that_turns_back_moves_less_each_time() {
    let mut node = node(Sums { demand: 4_000, wanting: 1, weight: 2, ..Sums::NONE }, true);
    let (mut steps, mut before) = (Vec::new(), 500 << POINT);
    for turn in 0..12 {
        // the level goes up to all, then too much is fixed
        node.sums.fixed = if turn % 2 == 0 { 0 } else { 2_000 };
        node.settle(1_000);
        let level = node.sums.level.get();
        steps.push(level.abs_diff(before) >> POINT);
        before = level;
    }
    assert!(steps[0] >= 200 && steps[11] <= 10, "{steps:?}");
}

/// A node without guarantees whose weight of three is split: two want more.
fn split(fixed: u64) -> Inner {
    node(Sums { fixed, demand: 5_000, wanting: 2, weight: 3, ..Sums::NONE }, false)
}

#[test]
fn nothing_is_limited_where_no_more_is_wanted_than_there_is() {
    let level = |budget| {
        let mut node = split(1_000);
        node.settle(budget);
        node.sums.level
    };
    assert!(level(5_000).is_infinite());
    // those that want more have half of the rest each: 3 999 / 2
    assert_eq!(level(4_999).get() >> POINT, 1_999);
}

#[test]
fn a_level_of_less_than_a_unit_is_exact() {
    // 2^20 units among a weight of 3 000 000 000: 22.9 in 2^16 each
    let sums =
        Sums { demand: 1 << 21, wanting: 3_000_000_000, weight: 3_000_000_000, ..Sums::NONE };
    let mut node = node(sums, false);
    node.settle(1 << 20);
    assert_eq!(node.sums.level.get(), 22);
    assert_eq!(even(1 << 20, 3_000_000_000).get(), 22);
}

#[test]
fn a_level_may_be_a_129th_below_the_even_split_and_no_more() {
    let level = |fixed, budget| {
        let (demand, wanting, weight) = (1 << 20, 1 << 15, 1 << 16);
        let mut node = node(Sums { fixed, demand, wanting, weight, ..Sums::NONE }, false);
        node.settle(budget);
        node.sums.level.get()
    };
    // a rest of 65 is a level of 130 less what rounding takes, 129, and a 128th more is 130, which
    // an even split of 130 gives as well
    assert_eq!(level(65, 130), 129);
    assert_eq!(level(66, 130), 130);
}

#[test]
fn a_step_never_goes_beyond_the_exact_level() {
    for wanting in [1, 2, 3, 5, 6, 7, 11, 13, 33, 99, 1_025, 65_537, u32::MAX] {
        for rest in [1, 3, 1_000, 3 << 20, 3 << 40, 11 << 40, (1 << 44) - 1] {
            let mut node = node(Sums { wanting, ..Sums::NONE }, false);
            let (level, exact) = (node.step(rest), (rest << 16) / u64::from(wanting));
            assert!(level <= exact, "{rest} {wanting}");
            // the inverse is right to 2^-31
            assert!(exact - level <= 2 + (exact >> 31), "{rest} {wanting}: {level} of {exact}");
        }
    }
}

/// A node with guarantees at this level, which moved upwards last.
fn kept(fixed: u64, wanting: u32, weight: u32, level: u64) -> Inner {
    let level = Packed::new(level);
    let mut node =
        node(Sums { fixed, demand: 1 << 40, wanting, weight, level, ..Sums::NONE }, true);
    node.child.flags.set(Flags::ROSE, true);
    node
}

#[test]
fn where_nobody_wants_more_a_level_doubles_from_a_thousandth_of_the_even_split_on() {
    // 2^20 among a weight of 4: 2^18 each, and a 1 024th of that is 2^8
    let mut node = kept(1_000, 0, 4, 0);
    let levels = [(); 4].map(|()| {
        node.settle(1 << 20);
        node.sums.level.get()
    });
    let first = (1 << 24) + 1;
    assert_eq!(levels, [first, 2 * first, 4 * first, 8 * first]);
}

#[test]
fn a_level_that_rises_ends_where_a_weight_of_one_has_all_that_a_rate_can_be() {
    let mut node = kept(1_000, 0, 4, 1 << 30);
    (0..80).for_each(|_| node.settle(1 << 20));
    let level = node.sums.level.get();
    assert!(level >> POINT >= MOST && level <= 1 << 60, "{level}");
}

#[test]
fn a_level_falls_where_guarantees_take_just_all() {
    let mut node = kept(1_000, 0, 2, 800 << POINT);
    node.child.flags.set(Flags::ROSE, false);
    node.settle(1_000);
    assert_eq!(node.sums.level.get(), 400 << POINT);
    // with one that has no guarantee: no lower than what a weight of three has of a hundredth
    let mut node = kept(100_000, 1, 3, 500 << POINT);
    node.child.flags.set(Flags::ROSE, false);
    node.settle(100_000);
    assert_eq!(node.sums.level.get(), (1_000 << POINT) / 3);
    // also where others leave a little, of which it would have less
    let mut node = kept(99_990, 1, 3, 500 << POINT);
    node.child.flags.set(Flags::ROSE, false);
    node.settle(100_000);
    assert_eq!(node.sums.level.get(), (1_000 << POINT) / 3);
}

#[test]
fn a_level_stays_where_scaled_guarantees_take_all_but_a_thousandth() {
    // 2^20, of which scaled guarantees take half
    let (budget, old) = (1 << 20, 1 << 30);
    let moves = |taken: u64, wanting, floors| {
        let mut node = kept(taken - (1 << 19), wanting, 4, old);
        (node.sums.assured, node.sums.floors) = (node.sums.demand, floors);
        node.sums.kept = if floors > budget { 1 << 20 } else { 1 << 19 };
        node.settle(budget);
        node.sums.level.get().cmp(&old)
    };
    let twice = 1 << 21;
    assert_eq!([budget - 1_024, budget].map(|taken| moves(taken, 0, twice)), [Equal; 2]);
    // with less it rises to somebody, with more it falls
    assert_eq!(moves(budget - 1_025, 0, twice), Greater);
    assert_eq!(moves(budget + 1, 0, twice), Less);
    // one that wants more has what is left, and guarantees that fit leave it to all
    assert_eq!(moves(budget - 1_024, 4, twice), Less);
    assert_eq!(moves(budget - 1_024, 0, budget), Greater);
}

#[test]
fn steps_are_damped_by_turns_and_freed_by_steps_that_go_on() {
    let damped = |node: &Inner| node.child.flags.part(DAMPED.0, DAMPED.1);
    let mut node = kept(0, 0, 4, 1 << 30);
    let mut move_to = |fixed| {
        node.sums.fixed = fixed;
        node.settle(1 << 20);
        (damped(&node), node.sums.level.get())
    };
    // upwards as before: twice as high at once
    assert_eq!(move_to(0), (0, 1 << 31));
    // it turns: half of the way to half as high, then a quarter of the way to twice as high
    assert_eq!(move_to(1 << 20), (1, 3 << 29));
    assert_eq!(move_to(0), (2, 3 << 29 | 3 << 27));
    // and on upwards: by half of the way, then all of it
    let level = (3 << 29 | 3 << 27) + ((3 << 29 | 3 << 27) >> 1);
    let (now, is) = move_to(0);
    assert!(now == 1 && is.abs_diff(level) <= level >> 25, "{is} {level}");
    let (now, next) = move_to(0);
    assert!(now == 0 && next.abs_diff(2 * is) <= is >> 24, "{next} {is}");
    // turning again and again: five bits at most
    for turn in 0..20 {
        let fixed = if turn % 2 == 0 { 1 << 20 } else { 0 };
        assert_eq!(move_to(fixed).0, (turn + 1).min(5));
    }
}

/// A child that wants `demand`, has a guarantee and a peak, and stands so.
fn child(floor: u64, peak: u64, standing: u32) -> Child {
    let flags = Flags(standing | Flags::ACTIVE);
    Child { parent: 0, weight: 2, floor: Packed::new(floor), peak: Packed::new(peak), flags }
}

#[test]
fn what_limits_a_child_is_the_level_only_where_that_gives_less_than_all_else() {
    // a weight of two has 200
    let of = |keeps, floor, peak, budget| {
        let mut node = node(
            Sums { fixed: 0, wanting: 4, level: Packed::new(100 << POINT), ..Sums::NONE },
            keeps,
        );
        node.sums.demand = 1 << 20;
        node.entitle(&child(floor, peak, WANTING), budget)
    };
    assert_eq!(of(false, 0, 1_000, 10_000), (200, true));
    assert_eq!(of(false, 0, 201, 10_000), (200, true));
    assert_eq!(of(false, 0, 200, 10_000), (200, false));
    assert_eq!(of(false, 0, 150, 10_000), (150, false));
    assert_eq!(of(false, 0, 1_000, 150), (150, false));
    // with a guarantee above its part
    assert_eq!(of(true, 300, 1_000, 10_000), (300, true));
    assert_eq!(of(true, 300, 300, 10_000), (300, false));
    assert_eq!(of(true, 300, 250, 10_000), (250, false));
    // one without a guarantee beside others that have some
    assert_eq!(of(true, 0, 1_000, 10_000), (200, true));
}

/// Of 100 000: so much is wanted by those who have all by their guarantee, and so much is
/// guaranteed to others; one without a guarantee may want 5 000.
fn scale(met: u64, floors: u64, has_other: bool, scale: u32) -> u32 {
    let (demand, assured) = (305_000, if has_other { 300_000 } else { 305_000 });
    let sums = Sums { met, kept: floors, floors, demand, assured, scale, weight: 9, ..Sums::NONE };
    let mut node = node(sums, true);
    node.settle(100_000);
    node.sums.scale
}

#[test]
fn guarantees_are_scaled_where_they_are_more_than_there_is() {
    let near = |is: u32, part: f64| (f64::from(is) / f64::from(WHOLE) - part).abs() < 1e-9;
    // what just fits is not scaled, a little more is
    assert_eq!(scale(30_000, 70_000, false, WHOLE), WHOLE);
    assert_eq!(scale(30_000, 69_000, true, WHOLE), WHOLE);
    assert!(near(scale(30_000, 69_001, true, WHOLE), 69_000.0 / 69_001.0));
    // who is met keeps what it wants, the others share the rest alike
    assert!(near(scale(20_000, 160_000, false, WHOLE), 0.5));
    assert!(near(scale(19_000, 160_000, true, WHOLE / 4), 0.5));
    // the met have more than there is: fewer of them are, half as high
    assert_eq!(scale(100_000, 50_000, false, WHOLE), WHOLE / 2);
    assert_eq!(scale(120_000, 0, false, WHOLE / 2), WHOLE / 4);
    // those that are met have just what is promised, and nobody else is promised anything
    assert_eq!(scale(99_000, 0, true, WHOLE / 2), WHOLE);
    // and whole again when there is enough for all that is wanted
    let sums = Sums { demand: 1_000, scale: WHOLE / 2, weight: 1, ..Sums::NONE };
    let mut node = node(sums, true);
    node.settle(1_000);
    assert_eq!(node.sums.scale, WHOLE);
}

#[test]
fn a_child_is_entitled_to_its_scaled_guarantee_whatever_it_wants_of_it() {
    let of = |scale, standing| {
        let sums = Sums { level: Packed::new(1_000 << POINT), scale, ..Sums::NONE };
        node(sums, true).entitle(&child(60_000, 1 << 30, standing), 100_000).0
    };
    for standing in [KEPT, MET, SATISFIED, WANTING] {
        assert_eq!(of(WHOLE, standing), 60_000);
        assert_eq!(of(WHOLE / 4, standing), 15_000);
        // by weight it has 2 000
        assert_eq!(of(WHOLE / 60, standing), 2_000);
    }
}
