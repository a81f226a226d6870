//! The clock of one guarantee.

use weir_units::Rate;

use super::{FRACTION, FRAME, time_for, time_per_byte};
use crate::tree::heap::before;
use crate::tree::interior::scaled;

/// Full frames that a child may have had in advance, or one frame of its own.
const AHEAD: u64 = 2;
/// Full frames by which a guarantee is due later that the weight keeps as well.
const GRACE: u64 = 2;

/// When a guarantee is due, and what its bytes take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// When the guarantee is due, in sixteenths of a nanosecond of the parent's time.
    pub(super) at: u64,
    /// Sixteenths of a nanosecond per byte, 16 bits behind the point.
    per_byte: u64,
    /// How much later than the guarantee says it is due. That is where the weight keeps it as well
    /// while the line carries what was told: the order is then that of priorities and weights.
    grace: u64,
    /// Bytes that the clock took and that are yet to count as the child's part by weight.
    pub(in crate::tree) uncounted: u32,
}

impl Due {
    pub(crate) fn new(rate: Rate, by_weight: bool) -> Due {
        let due = Due { at: 0, per_byte: time_per_byte(rate), ..Due::default() };
        Due { grace: if by_weight { due.time_for(GRACE * FRAME) } else { 0 }, ..due }
    }

    /// The clock of another guarantee, as many bytes ahead or late as `before` is.
    pub(super) fn after(&self, before: &Due, time: u64) -> Due {
        let ahead = before.at.wrapping_sub(before.grace).wrapping_sub(time).cast_signed();
        let ahead = scaled(ahead, self.per_byte, before.per_byte);
        let at = time.wrapping_add(self.grace).wrapping_add(ahead.cast_unsigned());
        Due { at, uncounted: before.uncounted, ..*self }
    }

    /// The clock of a guarantee that was taken away and is given back: with what it was ahead when
    /// `before` stood. Due at once it would gain a frame by each edit that does so.
    pub(in crate::tree) fn given_back(&self, before: &Due, time: u64) -> Due {
        if before.per_byte == 0 { *self } else { self.after(before, time) }
    }

    /// What it is ahead or late by one time it is by another one.
    pub(in crate::tree) fn shifts(&mut self, from: u64, to: u64) {
        self.at = self.at.wrapping_sub(from).wrapping_add(to);
    }

    /// The child has sent; its clock goes on, but never far beyond the present, and never back: it
    /// may be noted for when it is due now. Returns how many of the bytes were more than its
    /// guarantee.
    pub(super) fn sent(&mut self, time: u64, bytes: u64) -> u64 {
        let ahead = self.grace + self.time_for(bytes.max(AHEAD * FRAME));
        let (was, most) = (self.at, time.wrapping_add(ahead));
        self.at = was.wrapping_add(self.time_for(bytes));
        if !before(most, self.at) {
            return 0;
        }
        let more = u128::from(self.at.wrapping_sub(most)) << FRACTION;
        self.at = if before(most, was) { was } else { most };
        u64::try_from(more / u128::from(self.per_byte.max(1))).unwrap_or(bytes).min(bytes)
    }

    /// What it missed is forgotten.
    pub(in crate::tree) fn begins(&mut self, time: u64) {
        let at = time.wrapping_add(self.grace);
        if before(self.at, at) {
            self.at = at;
        }
    }

    /// When a frame should be gone that starts when the guarantee is due.
    pub(in crate::tree) fn end(&self) -> u64 {
        self.at.wrapping_add(self.time_for(FRAME))
    }

    pub(super) fn time_for(&self, bytes: u64) -> u64 {
        time_for(bytes, self.per_byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::owed::PARTS;

    /// A byte in 8 microseconds.
    const RATE: Rate = Rate::from_bps(1_000_000);
    const BYTE: u64 = 8_000 * PARTS;

    #[test]
    fn a_clock_is_due_by_its_rate() {
        let due = Due::new(RATE, false);
        assert_eq!((due.time_for(1_000), due.end(), due.grace), (1_000 * BYTE, FRAME * BYTE, 0));
        let late = Due::new(RATE, true);
        assert_eq!(late.grace, 2 * 1_536 * BYTE);
        // a rate of nothing is one of next to nothing: a byte a second
        assert_eq!(Due::new(Rate::ZERO, false), Due::new(Rate::from_bps(8), false));
        assert_eq!(Due::new(Rate::ZERO, false).time_for(3), 3_000_000_000 * PARTS);
    }

    #[test]
    fn a_clock_is_right_to_a_part_in_a_hundred_thousand_also_at_100_gbit_s() {
        for bps in [1_000_000, 10_000_000_000, 100_000_000_000] {
            let due = Due::new(Rate::from_bps(bps), false);
            let exact = 8 * 1_000_000_000 * 1_000_000_000 / u128::from(bps) * u128::from(PARTS);
            let off = exact.abs_diff(u128::from(due.time_for(1_000_000_000)));
            assert!(off <= exact / 100_000, "{off} of {exact} at {bps} bit/s");
        }
    }

    #[test]
    fn a_clock_goes_on_to_two_frames_beyond_the_present() {
        for by_weight in [false, true] {
            let (time, mut due) = (77_000_000, Due::new(RATE, by_weight));
            due.begins(time);
            assert_eq!(due.at, time + due.grace);
            // the present does not lie before what it has sent
            due.begins(time - 1);
            assert_eq!(due.at, time + due.grace);
            assert_eq!([due.sent(time, 2_000), due.sent(time, 3_072 - 2_000)], [0, 0]);
            assert_eq!(due.at, time + due.grace + 3_072 * BYTE);
            // the rest is more than the guarantee
            assert_eq!(due.sent(time, 700), 700);
            assert_eq!(due.sent(time + 300 * BYTE, 700), 400);
            // and one large frame of its own
            assert_eq!(due.sent(time + 300 * BYTE, 9_000), 3_072);
            assert_eq!(due.at, time + due.grace + 9_300 * BYTE);
            // which a small one after it takes nothing from
            assert_eq!(due.sent(time + 400 * BYTE, 100), 100);
            assert_eq!(due.at, time + due.grace + 9_300 * BYTE);
        }
    }

    #[test]
    fn another_guarantee_is_as_many_bytes_ahead_or_late() {
        let time = 1_000_000_000;
        for by_weight in [false, true] {
            let mut before = Due::new(RATE, by_weight);
            let new = Due::new(Rate::from_bps(2_000_000), true);
            before.at = time + before.grace + 1_000 * BYTE;
            assert_eq!(new.after(&before, time).at, time + new.grace + 500 * BYTE);
            before.at = time + before.grace - 1_000 * BYTE;
            assert_eq!(new.after(&before, time).at, time + new.grace - 500 * BYTE);
            let at = before.at;
            before.shifts(time, time + 7);
            assert_eq!(before.at, at + 7);
        }
    }

    #[test]
    fn a_guarantee_that_is_given_back_is_ahead_as_it_was() {
        let (time, new) = (1_000_000_000, Due::new(Rate::from_bps(2_000_000), false));
        // one that it never had is due at once
        assert_eq!(new.given_back(&Due::default(), time), new);
        let before = Due { at: time + 1_000 * BYTE, ..Due::new(RATE, false) };
        assert_eq!(new.given_back(&before, time).at, time + 500 * BYTE);
    }
}
