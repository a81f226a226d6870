//! How the children of a node are sorted: into kinds of like weight and priority, and by whether
//! the weight alone keeps the guarantee. Done off the packet thread.

use weir_units::Rate;

use super::calendar::Calendar;
use super::interior::{FRAME, Interior, UNIT};
use super::node::{Flags, Share};
use super::owed::{Due, Owed};

/// Weights below this part of the node's (2^-26) count as this part: virtual time must stay within
/// half a turn of its circle.
const LEAST_PART: u32 = 26;

/// Weights of more than this in all lose bits that do not matter, so that a frame's bytes times all
/// of them fit into a word.
const TOTAL_BITS: u32 = 44;

/// The virtual time of a node with very many children is counted in a power of 16, so that it stays
/// as it is while a few of them change: an edit then is of those alone.
const STEADY_BITS: u32 = 4;

/// A child as it is told.
pub(crate) struct Child {
    pub(crate) weight: u64,
    pub(crate) priority: u8,
    pub(crate) rate: Rate,
}

/// A node for these children, and what it knows of each: its share, and the clock of its guarantee.
/// `rate` is what the node itself is guaranteed; `is_large`: it has very many.
pub(crate) fn sorted(
    children: &[Child],
    rate: Rate,
    is_large: bool,
) -> (Interior, Vec<(Share, Due)>) {
    let told = children.iter().map(|c| u128::from(c.weight)).sum::<u128>().max(1);
    let spare = (told.ilog2() + 1).saturating_sub(TOTAL_BITS);
    let total = u64::try_from(told >> spare).unwrap_or(u64::MAX).max(1);
    let bits = total.next_power_of_two().ilog2().next_multiple_of(STEADY_BITS);
    let total = if is_large { 1 << bits } else { total };
    let need_clocks = need_clocks(children);
    let mut kinds: Vec<(u16, u8, u64)> = Vec::new();
    let mut shares = Vec::with_capacity(children.len());
    for (child, is_above) in children.iter().zip(above_their_weight(children, rate)) {
        let needs_clock = need_clocks && child.rate > Rate::ZERO;
        let weight = (child.weight >> spare).max(total >> LEAST_PART).max(1);
        let per_byte = u64::try_from((u128::from(total) << UNIT) / u128::from(weight));
        let per_byte = per_byte.unwrap_or(u64::MAX).max(1);
        let group = u16::from(child.priority) << 8 | kind(per_byte);
        match kinds.iter_mut().find(|(kind, ..)| *kind == group) {
            Some((.., least)) => *least = per_byte.min(*least),
            None => kinds.push((group, child.priority, per_byte)),
        }
        let mut share = Share { per_byte, weight, group, ..Share::default() };
        if need_clocks {
            share.flags.set(Flags::CLOCKS);
        }
        if needs_clock {
            share.flags.set(Flags::OWED);
        }
        let due = Due::new(child.rate, !is_above);
        shares.push((share, if needs_clock { due } else { Due::default() }));
    }
    let kinds = kinds.into_iter().map(|(kind, priority, per_byte)| {
        Calendar::new(kind, priority, per_byte.saturating_mul(FRAME))
    });
    let owed = shares.iter().filter(|(share, _)| share.flags.has(Flags::OWED)).count();
    // in steps, others may have one for a while
    let room = if is_large { shares.len() } else { owed };
    let owed = (owed > 0).then(|| Box::new(Owed::with_capacity(room)));
    (Interior::new(kinds.collect(), owed, total), shares)
}

/// Whether weights alone would not keep the guarantees, whatever the node has: they do where nobody
/// is guaranteed anything, and where everyone is, in proportion to the weights.
fn need_clocks(children: &[Child]) -> bool {
    let part = |c: &Child| (u128::from(c.rate.bps()), u128::from(c.weight));
    let Some(first) = children.iter().find(|c| c.rate > Rate::ZERO).map(part) else {
        return false;
    };
    children.iter().map(part).any(|child| {
        let (here, there) = (child.0 * first.1, first.0 * child.1);
        // a part in a thousand is what rounding may cost
        here.abs_diff(there) > there / 1_000
    })
}

/// Which children's guarantees their weights would not keep if all wanted all: those that are above
/// the level at which the others share what the guarantees leave.
fn above_their_weight(children: &[Child], rate: Rate) -> Vec<bool> {
    let mut order: Vec<usize> = (0..children.len()).collect();
    let wide = |n: u64| u128::from(n);
    order.sort_by(|&a, &b| {
        let (a, b) = (&children[a], &children[b]);
        let (of_a, of_b) =
            (wide(a.rate.bps()) * wide(b.weight), wide(b.rate.bps()) * wide(a.weight));
        of_b.cmp(&of_a)
    });
    let mut left = wide(rate.bps());
    let mut weights: u128 = children.iter().map(|c| wide(c.weight)).sum();
    let mut above = vec![false; children.len()];
    for at in order {
        let (rate, weight) = (wide(children[at].rate.bps()), wide(children[at].weight));
        // a part in a thousand is what rounding may cost
        if rate * weights <= weight * left + weight * left / 1_000 {
            break;
        }
        above[at] = true;
        left = left.saturating_sub(rate);
        weights -= weight;
    }
    above
}

/// Which of four kinds per doubling a weight is of: who should finish first is then right to a
/// fifth of a frame.
fn kind(per_byte: u64) -> u16 {
    let log = per_byte.ilog2();
    let quarter = if log >= 2 { (per_byte >> (log - 2)) & 3 } else { 0 };
    u16::try_from(u64::from(log) * 4 + quarter).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(rate: u64, weight: u64) -> Child {
        Child { weight, priority: 2, rate: Rate::from_bps(rate) }
    }

    fn weights(weights: &[u64], is_large: bool) -> (u64, Vec<(u64, u64)>) {
        let told: Vec<_> = weights.iter().map(|&weight| child(0, weight)).collect();
        let (interior, shares) = sorted(&told, Rate::MAX, is_large);
        let shares = shares.iter().map(|(share, _)| (share.weight, share.per_byte));
        (interior.scale(), shares.collect())
    }

    #[test]
    fn time_per_byte_is_one_over_the_part_that_a_child_has() {
        assert_eq!(weights(&[1, 3], false), (4, vec![(1, 4 << UNIT), (3, (4 << UNIT) / 3)]));
        assert_eq!(weights(&[], false), (1, vec![]));
    }

    #[test]
    fn great_weights_lose_bits_and_small_ones_count_as_a_least_part() {
        // a frame's bytes times all weights fit into a word
        let (total, shares) = weights(&[u64::MAX, u64::MAX, 1], false);
        assert_eq!(total.ilog2() + 1, 44);
        assert_eq!(shares[0], (total / 2, 2 << UNIT));
        assert_eq!(shares[2].0, total >> 26);
        let most = 1 << TOTAL_BITS;
        assert_eq!(weights(&[most - 2, 1], false).0, most - 1);
        assert_eq!(weights(&[most - 1, 1], false).0, most / 2);
    }

    #[test]
    fn where_children_are_many_time_is_counted_in_powers_of_16() {
        let scale = |all: &[u64]| weights(all, true).0;
        assert_eq!([scale(&[1]), scale(&[1, 1]), scale(&[8, 8])], [1, 16, 16]);
        assert_eq!([scale(&[8, 9]), scale(&[200, 56]), scale(&[200, 57])], [256, 256, 4096]);
    }

    #[test]
    fn four_kinds_per_doubling() {
        let kinds: Vec<u16> = [4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16].map(kind).to_vec();
        assert_eq!(kinds, [8, 9, 10, 11, 12, 12, 13, 13, 14, 15, 16]);
        assert_eq!([1, 2, 3].map(kind), [0, 4, 4]);
    }

    /// Whose guarantee has a clock, and when it is due later than it says.
    fn clocks(told: &[Child], rate: u64) -> Vec<Option<bool>> {
        let (interior, shares) = sorted(told, Rate::from_bps(rate), false);
        assert_eq!(interior.has_clocks(), shares.iter().any(|(s, _)| s.flags.has(Flags::OWED)));
        let clock = |(share, due): &(Share, Due), told: &Child| {
            assert_eq!(share.flags.has(Flags::CLOCKS), interior.has_clocks());
            share.flags.has(Flags::OWED).then(|| *due == Due::new(told.rate, true))
        };
        shares.iter().zip(told).map(|(share, told)| clock(share, told)).collect()
    }

    #[test]
    fn guarantees_have_clocks_where_weights_do_not_keep_them() {
        assert_eq!(clocks(&[child(0, 1), child(0, 2)], 10), [None, None]);
        // in proportion, to a thousandth
        assert_eq!(clocks(&[child(10_000, 1), child(30_030, 3)], 40_000), [None, None]);
        assert_eq!(clocks(&[child(10_000, 1), child(29_970, 3)], 40_000), [None, None]);
        assert_eq!(clocks(&[child(10_000, 2), child(30_000, 6)], 40_000), [None, None]);
        let both = Some(true);
        assert_eq!(clocks(&[child(10_000, 1), child(30_031, 3)], 50_000), [both, both]);
        // a sibling without one has nothing to do with them
        assert_eq!(clocks(&[child(5_000, 1), child(0, 1)], 20_000), [both, None]);
        assert_eq!(clocks(&[child(15_000, 1), child(0, 1)], 20_000), [Some(false), None]);
    }

    #[test]
    fn the_highest_guarantees_for_their_weight_are_above_the_level_of_the_others() {
        let above = |told: &[(u64, u64)], rate| {
            let told: Vec<_> = told.iter().map(|&(rate, weight)| child(rate, weight)).collect();
            above_their_weight(&told, Rate::from_bps(rate))
        };
        // 500 of 1000 is more than a third, 200 of the rest is less than half
        assert_eq!(above(&[(200, 1), (500, 1), (0, 1)], 1_000), [false, true, false]);
        // 300 of 1000 is less than a third, and more than half of what the other leaves
        assert_eq!(above(&[(500, 1), (300, 1), (0, 1)], 1_000), [true, true, false]);
        // by weight
        assert_eq!(above(&[(500, 4), (300, 1), (0, 1)], 1_000), [false, true, false]);
        // to a thousandth
        assert_eq!(above(&[(5_005, 1), (0, 1)], 10_000), [false, false]);
        assert_eq!(above(&[(5_006, 1), (0, 1)], 10_000), [true, false]);
        // nothing is left
        assert_eq!(above(&[(9_000, 1), (8_000, 1), (1, 1)], 10_000), [true, true, true]);
    }
}
