//! The pauses of a node that is served in a row: its siblings, or those of the nodes above it, have
//! their turns in between. How long such a pause is nobody knows before it is over; the longest of
//! the last ones is remembered, and slowly forgotten: a byte of it for each thousand of the line.
//! Pauses are counted in bytes that the line carried for others. So one in which nobody sent
//! anything is none.

use weir_units::Rate;

use super::owed::{time_for, time_per_byte};

/// Bytes of a pause that count at most: a node may be kept back for other reasons, a ceiling above
/// it for example.
const MOST: u64 = 1_024 * 1_536;
/// Of a pause, a byte is forgotten for each 2^10 that the line carries. So guarantees lose no more
/// than that by what is forgotten, however seldom such a pause comes.
const FORGOTTEN: u32 = 10;

/// What the line has carried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    bytes: u64,
    /// Sixteenths of a nanosecond per byte, 16 bits behind the point.
    per_byte: u64,
}

/// The pauses of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pauses {
    /// What the line had carried when the node was served last.
    last: u64,
    /// Whether it has had something to send since.
    waits: bool,
    /// The longest pause, in bytes that the line carried.
    longest: u64,
    /// How long the line takes for a byte.
    per_byte: u64,
}

impl Carried {
    /// The line has another rate.
    pub(crate) fn has_rate(&mut self, rate: Rate) {
        self.per_byte = time_per_byte(rate);
    }

    /// The line carries a frame.
    #[inline]
    pub(crate) const fn carries(&mut self, bytes: u64) {
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

impl Pauses {
    /// The node has something to send again: it was not waiting for others.
    pub(crate) const fn ends(&mut self) {
        self.waits = false;
    }

    /// The node was served: a frame of `bytes` is the last that the line has carried.
    pub(crate) fn sent(&mut self, bytes: u64, line: &Carried) {
        let forgotten = (line.bytes >> FORGOTTEN).wrapping_sub(self.last >> FORGOTTEN);
        self.longest = self.longest.saturating_sub(forgotten);
        if self.waits {
            let pause = line.bytes.wrapping_sub(self.last).saturating_sub(bytes);
            self.longest = self.longest.max(pause.min(MOST));
        }
        (self.last, self.waits) = (line.bytes, true);
        self.per_byte = line.per_byte;
    }

    /// How long the longest pause is, in sixteenths of a nanosecond.
    pub(crate) const fn longest(&self) -> u64 {
        time_for(self.longest, self.per_byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::owed::PARTS;

    const BYTE: u64 = 8_000 * PARTS;

    fn line() -> Carried {
        let mut line = Carried::default();
        line.has_rate(Rate::from_bps(1_000_000));
        line
    }

    /// A frame of the node, after so many bytes of others.
    fn after(pauses: &mut Pauses, line: &mut Carried, others: u64) -> u64 {
        line.carries(others);
        line.carries(1_000);
        pauses.sent(1_000, line);
        pauses.longest() / BYTE
    }

    #[test]
    fn the_longest_pause_is_remembered_and_slowly_forgotten() {
        let (mut pauses, mut line) = (Pauses::default(), line());
        // what the line carried before the first frame was no pause
        assert_eq!(after(&mut pauses, &mut line, 9_000), 0);
        assert_eq!(after(&mut pauses, &mut line, 0), 0);
        assert_eq!(after(&mut pauses, &mut line, 20_480), 20_480);
        // six bytes of it after 6 000 of the line
        assert_eq!(after(&mut pauses, &mut line, 5_000), 20_474);
        assert_eq!(after(&mut pauses, &mut line, 30_000), 30_000);
        // all but 10 000 bytes are forgotten after a thousand times as many, with small frames too
        let last = (0..20 * 1_024).map(|_| after(&mut pauses, &mut line, 0)).last();
        assert_eq!(last, Some(10_000));
        let last = (0..10 * 1_024).map(|_| after(&mut pauses, &mut line, 700)).last();
        assert_eq!(last, Some(700));
    }

    #[test]
    fn a_pause_without_anything_to_send_is_none() {
        let (mut pauses, mut line) = (Pauses::default(), line());
        after(&mut pauses, &mut line, 0);
        pauses.ends();
        assert_eq!(after(&mut pauses, &mut line, 50_000), 0);
        // but what was before is forgotten in the meantime
        assert_eq!(after(&mut pauses, &mut line, 9_000), 9_000);
        pauses.ends();
        assert_eq!(after(&mut pauses, &mut line, 1_024_000 - 1_000), 8_000);
    }

    #[test]
    fn a_pause_counts_up_to_a_thousand_frames_and_at_the_rate_of_the_line() {
        let (mut pauses, mut line) = (Pauses::default(), line());
        after(&mut pauses, &mut line, 0);
        assert_eq!(after(&mut pauses, &mut line, 9_000_000), MOST);
        line.has_rate(Rate::from_bps(500_000));
        assert_eq!(after(&mut pauses, &mut line, MOST), 2 * MOST);
        // a line that carries nothing at all
        line.has_rate(Rate::ZERO);
        assert!(after(&mut pauses, &mut line, MOST) > MOST);
    }
}
