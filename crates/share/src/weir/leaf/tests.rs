//! A leaf by itself, packet by packet. Rates are bytes in 2^21 ns in 2^-12; amounts are bytes in
//! 2^-33.

use super::*;
use crate::scale::{Packed, rate, units};
use weir_units::Rate;

const MS: u64 = 1_000_000;

/// A leaf that has sent a thousand packets of 1 000 bytes, one every so many ns, and when.
fn steady(gap: u64) -> (Leaf, u64) {
    let none = Packed::new(0);
    let (peak, flags) = (Packed::INFINITE, Flags::default());
    let mut leaf = Leaf::new(Child { parent: 0, weight: 1, floor: none, peak, flags });
    leaf.begin(MS, 1_000, 0);
    for at in 1..1_000 {
        leaf.count(MS + at * gap, 1_000);
    }
    (leaf, MS + 999 * gap)
}

#[test]
fn a_leaf_is_silent_when_eight_of_its_packets_are_overdue() {
    let (leaf, last) = steady(MS);
    assert!(rate(leaf.rate).bps().abs_diff(8_000_000) < 8_000);
    assert!(!leaf.is_silent(last + 79 * MS / 10) && leaf.is_silent(last + 81 * MS / 10));
    // whoever is fast is waited for as well
    let (leaf, last) = steady(10_000);
    assert!(!leaf.is_silent(last + 260_000) && leaf.is_silent(last + 264_000));
}

#[test]
fn a_leaf_that_sends_a_packet_each_second_is_known() {
    let (leaf, last) = steady(1_000 * MS);
    assert!(rate(leaf.rate).bps().abs_diff(8_000) < 16, "{}", rate(leaf.rate).bps());
    let mut first = Leaf::new(leaf.child);
    first.begin(MS, 1_000, 0);
    assert!(!first.is_silent(1_001 * MS) && first.is_silent(1_100 * MS));
    assert!(!leaf.is_silent(last + 7_900 * MS) && leaf.is_silent(last + 8_100 * MS));
}

#[test]
fn a_leaf_that_pauses_is_waited_for_twice_as_long_and_that_is_forgotten_slowly() {
    let (mut leaf, last) = steady(MS / 10);
    let mut now = last + 10 * MS;
    leaf.count(now, 1_000);
    // 255/256 to the power of 64 is 0.78, of 256 it is 0.37
    for (more, waits, is_over) in [(64, 15, 16), (192, 7, 8)] {
        for _ in 0..more {
            now += MS / 10;
            leaf.count(now, 1_000);
        }
        assert!(!leaf.is_silent(now + waits * MS) && leaf.is_silent(now + is_over * MS));
    }
}

#[test]
fn the_time_constant_grows_at_once_and_shrinks_when_it_is_twice_too_long() {
    let (mut leaf, _) = steady(MS);
    let constant = leaf.constant();
    leaf.rate *= 2;
    leaf.adapt();
    assert_eq!(leaf.constant(), constant);
    leaf.rate *= 2;
    leaf.adapt();
    assert_eq!(leaf.constant(), constant - 2);
    leaf.rate /= 2;
    leaf.adapt();
    assert_eq!(leaf.constant(), constant - 1);
}

/// Bytes as an amount.
fn amount(bytes: i64) -> i64 {
    bytes << 33
}

#[test]
fn the_first_packet_of_a_newcomer_brings_a_burst() {
    let (known, last) = steady(MS);
    let mut leaf = Leaf::new(known.child);
    // it may have joined before
    leaf.last = last;
    leaf.begin(last + 20 * MS, 1_400, 0);
    assert_eq!((leaf.credit, leaf.small), (amount(5_600), 5_600 << 33));
    assert_eq!((leaf.longest(), leaf.gap_max), (1_400, 0));
}

#[test]
fn the_rate_of_one_that_was_silent_is_found_anew_and_its_credit_kept() {
    let (mut leaf, last) = steady(MS);
    assert_eq!((leaf.longest(), leaf.constant()), (1_000, 23));
    (leaf.credit, leaf.small) = (77, 78);
    leaf.begin(last + 50 * MS, 1_400, 0);
    assert_eq!((leaf.credit, leaf.small), (77, 78));
    assert_eq!((leaf.longest(), leaf.constant()), (1_400, 21));
    assert_eq!((leaf.rate, leaf.bytes, leaf.age), (0, 0, 0));
}

#[test]
fn a_burst_is_four_to_sixteen_packets_and_between_them_a_millisecond_of_the_link() {
    assert_eq!(burst(1_000, 0), amount(4_000));
    assert_eq!(burst(1_000, amount(4_001)), amount(4_001));
    assert_eq!(burst(1_000, i64::MAX), amount(16_000));
    // 2^20 ns of 100 Mbit/s: 13 107.2 bytes
    let link = burst_of(units(Rate::from_bps(100_000_000)));
    assert_eq!(burst(1_000, link) >> 33, 13_107);
}

#[test]
fn the_longest_packet_is_forgotten_by_a_64th_with_each_that_is_shorter() {
    let (mut leaf, last) = steady(MS);
    // 1 500 / 64 is 23, 1 477 / 64 is 23, 1 454 / 64 is 22
    let longest = [1_500, 64, 64, 64, 64].map(|len| {
        leaf.count(last, len);
        leaf.longest()
    });
    assert_eq!(longest, [1_500, 1_477, 1_454, 1_432, 1_410]);
}

#[test]
fn half_of_the_way_to_a_pause_is_learnt_and_nothing_of_one_above_33_ms() {
    let (leaf, last) = steady(10_000);
    let learnt = |gap| {
        let mut leaf = leaf;
        leaf.begin(last + gap, 1_000, 0);
        leaf.gap_max
    };
    assert_eq!(leaf.gap_max, 10_000);
    assert_eq!(learnt(20_000_000), (20_000_000 + 10_000) / 2);
    // 2^25 is 33 554 432
    assert_eq!(learnt(33_554_432), (33_554_432 + 10_000) / 2);
    assert_eq!(learnt(33_554_433), 10_000);
}

#[test]
fn a_leaf_that_goes_on_after_a_long_gap_is_waited_for_67_ms() {
    let (mut leaf, last) = steady(10_000);
    let now = last + 100 * MS;
    leaf.count(now, 1_000);
    leaf.rate = MOST;
    assert!(!leaf.is_silent(now + 67_108_864) && leaf.is_silent(now + 67_108_865));
}

#[test]
fn eight_packets_are_overdue_when_more_than_their_time_is_over() {
    let (mut leaf, last) = steady(10_000);
    // 1 000 bytes in 2^17 ns: eight take 2^20
    leaf.rate = 1_000 << 16;
    assert!(!leaf.is_silent(last + (1 << 20)) && leaf.is_silent(last + (1 << 20) + 1));
    leaf.rate = 0;
    assert!(!leaf.is_silent(last + (1 << 30)) && leaf.is_silent(last + (1 << 30) + 1));
}

#[test]
fn the_rate_is_all_bytes_by_all_time_for_two_time_constants() {
    let (mut leaf, last) = steady(MS);
    leaf.begin(last, 1_000, 0);
    // 16 Mbit/s: sixteen packets take 8 ms, so the time constant is 2^22 ns, and twice that 8.39 ms
    for at in 1..=16 {
        leaf.count(leaf.last + MS / 2, 1_000);
        assert_eq!(leaf.rate, (1_000 << 33) / (MS / 2), "{at}");
        assert!(leaf.child.flags.has(Flags::SEEDING), "{at}");
    }
    assert_eq!((leaf.bytes, leaf.age), (16_000, 8_000_000));
    leaf.count(leaf.last + MS / 2, 1_000);
    assert!(!leaf.child.flags.has(Flags::SEEDING));
    // the window in which a jump is looked for begins here
    assert_eq!((leaf.bytes, leaf.age), (0, 0));
}

/// A leaf past its first moments, with packets of 1 000 bytes.
fn known(rate: u64, constant: u32, bytes: u32, age: u32) -> Leaf {
    let (mut leaf, _) = steady(MS);
    (leaf.rate, leaf.bytes, leaf.age) = (rate, bytes, age);
    leaf.child.flags.set_part(CONSTANT.0, CONSTANT.1, constant - PERIOD);
    leaf
}

#[test]
fn a_rate_has_jumped_when_a_window_has_twice_of_it_and_eight_packets() {
    // rates are bytes in 2^21 ns, in 2^-12; the packet adds a quarter of its bytes, since the time
    // constant is 2^23, so the window may have 2 x 2 000 + 8 x 1 000 bytes
    let rate = 1_750 << 12;
    let mut just = known(rate, 23, 11_000, 500_000);
    just.count(just.last, 1_000);
    assert_eq!((just.rate, just.bytes, just.age), (2_000 << 12, 12_000, 500_000));
    // sixteen packets at 2 000 bytes in 2^21 ns take 2^24: the time constant follows
    assert_eq!(just.constant(), 24);
    let mut above = known(rate, 23, 11_001, 500_000);
    above.count(above.last, 1_000);
    assert_eq!(above.rate, (12_001_u64 << 33) / 500_000);
    assert_eq!((above.bytes, above.age, above.constant()), (0, 0, 21));
    // packets that come at once are as fast as anything can be
    let mut at_once = known(rate, 23, 11_001, 0);
    at_once.count(at_once.last, 1_000);
    assert_eq!(at_once.rate, MOST);
}

#[test]
fn a_window_for_jumps_lasts_2_ms() {
    let mut leaf = known(1_000 << 12, 21, 3_000, (1 << 21) - 1_000);
    leaf.count(leaf.last + 1_000, 700);
    assert_eq!((leaf.bytes, leaf.age), (3_700, 1 << 21));
    leaf.count(leaf.last + 1, 700);
    assert_eq!((leaf.bytes, leaf.age), (700, 0));
}

#[test]
fn a_leaf_that_takes_over_has_its_own_terms_and_all_that_is_known() {
    let (mut was, _) = steady(MS);
    was.child.flags.set(Flags::SEEDING, true);
    (was.credit, was.small) = (77, 78);
    let flags = Flags(Flags::LAST);
    let own = Child { parent: 3, weight: 5, flags, ..was.child };
    let mut leaf = Leaf::new(own);
    leaf.take_over(&was);
    assert_eq!((leaf.rate, leaf.last, leaf.gap_max), (was.rate, was.last, was.gap_max));
    assert_eq!((leaf.credit, leaf.small), (77, 78));
    assert_eq!((leaf.bytes, leaf.age), (was.bytes, was.age));
    assert_eq!((leaf.longest(), leaf.constant()), (1_000, 23));
    assert_eq!((leaf.child.parent, leaf.child.weight), (3, 5));
    let has = |flag| leaf.child.flags.has(flag);
    assert!(has(Flags::SEEDING) && has(Flags::LAST) && !has(Flags::ACTIVE));
}

#[test]
fn credit_is_earned_at_the_share_up_to_its_depth_and_small_credit_up_to_a_burst() {
    let (mut leaf, _) = steady(MS);
    let burst = amount(4_000);
    // 100 bytes a us, 2 ms of them at most: 200 000 bytes
    let share = u64::try_from(amount(100) / 1_000).unwrap();
    (leaf.credit, leaf.small) = (-amount(1_000), 1_000 << 33);
    leaf.earn(20_000, share, 2 * MS, burst);
    assert!((amount(1_000) - leaf.credit) >> 20 == 0, "{}", leaf.credit >> 33);
    assert_eq!((leaf.small + (1 << 20)) >> 33, 3_000);
    leaf.earn(50 * MS, share, 2 * MS, burst);
    assert_eq!(leaf.credit, i64::try_from(share * 2 * MS).unwrap());
    assert_eq!(leaf.small, 4_000 << 33);
    // however small the share: a burst
    leaf.earn(50 * MS, 1, 2 * MS, burst);
    assert_eq!(leaf.credit, burst);
}

#[test]
fn a_pause_of_more_than_17_s_counts_as_that() {
    let (mut leaf, _) = steady(MS);
    (leaf.credit, leaf.small) = (0, 0);
    leaf.earn(60_000 * MS, 3, u64::MAX, amount(4_000));
    assert_eq!(leaf.credit, 3 << 34);
}

#[test]
fn two_credits_or_debts_can_be_added() {
    let most = depth_of(u64::MAX, u64::MAX, 0);
    assert!(most.checked_add(most).is_some());
    let (mut leaf, _) = steady(MS);
    (leaf.credit, leaf.small) = (0, 0);
    for _ in 0..4 {
        leaf.earn(u64::MAX, u64::MAX, u64::MAX, 0);
    }
    assert_eq!(leaf.credit, most);
    (0..1 << 14).for_each(|_| leaf.pay(amount(65_535)));
    assert_eq!(leaf.credit, -most);
}
