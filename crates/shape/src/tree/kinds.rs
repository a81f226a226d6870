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
