//! A leaf: how fast it sends, when it has fallen silent, and the credit that lets its packets pass.
//!
//! The second packet of a flow tells its rate: for two time constants the rate is all bytes by all
//! time, then an average whose time constant spans some sixteen packets. A rate that jumps up
//! is counted anew. Who is late by several of its gaps is silent; the gaps of those that
//! pause and go on, as TCP does between two windows, are learnt.

use super::child::{Child, Flags};
use crate::estimate;
use crate::scale::{CREDIT, FRACTION, LONGEST, MOST, PERIOD, bits};

/// A leaf: one line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Leaf {
    pub(super) rate: u64,
    pub(super) last: u64,
    /// What it may still send, in 2^-33 bytes; below zero where packets are marked first.
    pub(super) credit: i64,
    /// The same for bursts that may pass although others wait.
    pub(super) small: u64,
    /// Bytes of the window.
    bytes: u32,
    /// How long the window is, in ns.
    age: u32,
    /// The longest gap, slowly forgotten.
    gap_max: u32,
    pub(super) child: Child,
}

const CONSTANT: (u32, u32) = (12, 4);
const LENGTH: (u32, u32) = (16, 16);
/// Nobody is silent before this, in ns.
const SILENT_LEAST: u64 = 1 << 18;
/// Gaps above this are not learnt: whoever pauses as long is silent.
const GAP_MOST: u64 = 1 << 25;
/// Who has sent one packet is waited for as long: one a second is the slowest sender that counts.
/// Nothing is kept for it meanwhile.
const SECOND: u64 = 1 << 30;
/// Time constants: 2^21 to 2^32 ns.
const CONSTANT_MOST: u32 = 11;
/// The longest time that gives credit, in ns.
pub(super) const PAUSE: u64 = 1 << 34;
/// Of the longest packet 2^-6 is forgotten with each that is shorter.
const FORGETS: u32 = 6;
/// Packets of the small credit, and of the large one at least: where they take the link long, and
/// else.
const BURST: (i64, i64) = (4, 16);
/// What a burst may take of the link beyond the least, in ns: at 10 Mbit/s sixteen packets of each
/// of thirty leaves would be half a second of it.
const BURST_TIME: u64 = 1 << 20;

impl Leaf {
    /// One of which nothing is known, whatever was of the one that had its place.
    pub(super) fn new(mut child: Child) -> Leaf {
        child.flags.set_part(LENGTH.0, LENGTH.1, 0);
        let (rate, last, credit, small) = (0, 0, 0, 0);
        Leaf { rate, last, credit, small, bytes: 0, age: 0, gap_max: 0, child }
    }

    /// What it wants of its parent; one unit before anything is known.
    pub(super) fn demand(&self) -> u64 {
        self.wants().min(self.child.peak.get())
    }

    /// What it would want without a peak.
    pub(super) fn wants(&self) -> u64 {
        self.rate.clamp(1, MOST)
    }

    /// Counts a packet of one that was silent; its rate is to be found anew.
    pub(super) fn begin(&mut self, now: u64, len: u32, most: i64) {
        let gap = now.saturating_sub(self.last);
        if self.longest() == 0 {
            // a newcomer may say something before anything is known of it
            let burst = burst(len, most);
            (self.credit, self.small) = (burst, burst.unsigned_abs());
        } else if gap <= GAP_MOST {
            self.learn(u64::from(self.gap_max).midpoint(gap));
        }
        (self.rate, self.bytes, self.age) = (0, 0, 0);
        self.last = self.last.max(now);
        self.child.flags.set(Flags::SEEDING, true);
        self.child.flags.set_part(CONSTANT.0, CONSTANT.1, 0);
        self.remember(len);
    }

    /// Counts a packet of one that is active.
    pub(super) fn count(&mut self, now: u64, len: u32) {
        let gap = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        self.gap_max -= self.gap_max >> 8;
        self.learn(gap.min(GAP_MOST));
        self.remember(len);
        let short = u32::try_from(gap).unwrap_or(u32::MAX);
        self.age = self.age.saturating_add(short);
        if self.child.flags.has(Flags::SEEDING) {
            self.seed(len);
        } else {
            self.average(gap, len);
        }
    }

    fn seed(&mut self, len: u32) {
        self.bytes = self.bytes.saturating_add(len);
        if self.age > 0 {
            self.rate = over(self.bytes, self.age);
        }
        self.adapt();
        if u64::from(self.age) >= (2 << self.constant()).min(u64::from(u32::MAX)) {
            self.child.flags.set(Flags::SEEDING, false);
            (self.bytes, self.age) = (0, 0);
        }
    }

    fn average(&mut self, gap: u64, len: u32) {
        self.rate = estimate::follow(self.rate, len, gap, self.constant());
        if self.age > 1 << PERIOD {
            (self.bytes, self.age) = (len, 0);
        } else {
            self.bytes = self.bytes.saturating_add(len);
        }
        let counted = u64::from(self.bytes) << FRACTION;
        if counted > 2 * self.rate + (u64::from(self.longest()) << (FRACTION + 3)) {
            // more in this window than twice the rate brings: it has jumped
            self.rate = over(self.bytes, self.age.max(1));
            self.child.flags.set_part(CONSTANT.0, CONSTANT.1, 0);
            (self.bytes, self.age) = (0, 0);
        } else {
            self.adapt();
        }
    }

    /// A time constant of about sixteen packets; shorter only when it is twice too long.
    fn adapt(&mut self) {
        let wanted =
            bits(u64::from(self.longest()) << (FRACTION + 4)).saturating_sub(bits(self.rate));
        let (wanted, is) = (wanted.min(CONSTANT_MOST), self.constant() - PERIOD);
        if wanted > is || wanted + 2 <= is {
            self.child.flags.set_part(CONSTANT.0, CONSTANT.1, wanted);
        }
    }

    fn constant(&self) -> u32 {
        PERIOD + self.child.flags.part(CONSTANT.0, CONSTANT.1)
    }

    /// Is as another leaf was, but for its terms and whether it counts.
    pub(super) fn take_over(&mut self, was: &Leaf) {
        let child = self.child;
        *self = Leaf { child, ..*was };
        let (flags, old) = (&mut self.child.flags, was.child.flags);
        flags.set(Flags::SEEDING, old.has(Flags::SEEDING));
        for (at, bits) in [CONSTANT, LENGTH] {
            flags.set_part(at, bits, old.part(at, bits));
        }
    }

    fn learn(&mut self, gap: u64) {
        self.gap_max = self.gap_max.max(u32::try_from(gap).unwrap_or(u32::MAX));
    }

    fn remember(&mut self, len: u32) {
        let known = self.longest();
        let kept = known - (known >> FORGETS);
        self.child.flags.set_part(LENGTH.0, LENGTH.1, len.max(kept).min(LONGEST));
    }

    /// The longest of its latest packets, which it is sized by.
    pub(super) fn longest(&self) -> u32 {
        self.child.flags.part(LENGTH.0, LENGTH.1)
    }

    /// A free leaf keeps the next free one where its window would be.
    pub(super) fn link(&mut self, next: u32) {
        self.age = next;
    }

    /// The free leaf behind a free one.
    pub(super) fn linked(&self) -> u32 {
        self.age
    }

    /// Whether its next packet is so late that there may be none.
    pub(super) fn is_silent(&self, now: u64) -> bool {
        let gap = now.saturating_sub(self.last);
        if self.rate == 0 {
            return gap > SECOND;
        }
        let eight = u128::from(self.longest()) << (CREDIT + 3);
        gap > SILENT_LEAST.max(2 * u64::from(self.gap_max))
            && u128::from(gap) * u128::from(self.rate) > eight
    }

    /// Gives the credit of `gap` ns at `share`; `depth` ns of it are kept at most.
    pub(super) fn earn(&mut self, gap: u64, share: u64, depth: u64, burst: i64) {
        let most = depth_of(share, depth, burst);
        let earned = share.saturating_mul(gap.min(PAUSE)).min(MOST_CREDIT.unsigned_abs());
        self.credit = self.credit.saturating_add_unsigned(earned).min(most);
        let small = self.small.saturating_add(earned);
        self.small = small.min(burst.unsigned_abs());
    }

    /// Takes what a packet costs.
    pub(super) fn pay(&mut self, cost: i64) {
        self.credit = (self.credit - cost).max(-MOST_CREDIT);
        self.small = self.small.saturating_sub(cost.unsigned_abs());
    }
}

/// No credit or debt is above this: there is room to add two.
const MOST_CREDIT: i64 = 1 << 61;

/// What a burst may take of a link of this rate.
pub(super) fn burst_of(link: u64) -> i64 {
    i64::try_from(link.saturating_mul(BURST_TIME)).unwrap_or(MOST_CREDIT)
}

/// The credit of a burst of packets of this length: sixteen of them, or what `most` has room for,
/// but four.
pub(super) fn burst(len: u32, most: i64) -> i64 {
    most.clamp(BURST.0 * cost(len), BURST.1 * cost(len))
}

/// How much credit may be saved: `depth` ns of the share, a burst at least.
pub(super) fn depth_of(share: u64, depth: u64, burst: i64) -> i64 {
    let most = share.saturating_mul(depth).min(MOST_CREDIT.unsigned_abs());
    i64::try_from(most).unwrap_or(MOST_CREDIT).max(burst)
}

/// What a packet costs.
pub(super) fn cost(len: u32) -> i64 {
    i64::from(len) << CREDIT
}

/// The rate of so many bytes in so many ns.
fn over(bytes: u32, ns: u32) -> u64 {
    // 32 + 33 bits: one too many for the most bytes
    let bytes = u64::from(bytes.min(1 << 30));
    ((bytes << CREDIT) / u64::from(ns)).min(MOST)
}

#[cfg(test)]
mod tests;
