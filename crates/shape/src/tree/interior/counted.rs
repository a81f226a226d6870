//! How much of what a guarantee took counts as the child's part by weight: all of it, or the child
//! would have both. Where it is ahead of its part by some frames, more would hold it back for long,
//! and time would run ahead of all others; so that counts later, once the child goes by weight.

use weir_units::Instant;

use super::{ALONE, FRAME, Interior};
use crate::tree::heap::before;
use crate::tree::node::{Flags, Node, Share};
use crate::tree::owed::Due;
use crate::tree::pauses::Carried;

/// Bytes that a guarantee takes ahead of the child's part, and that count as that at once; a larger
/// frame does too.
const COUNTED: u64 = 2 * FRAME;
/// No more bytes than these are remembered to count later.
const MOST_UNCOUNTED: u32 = 1 << 17;

impl Interior {
    /// The clock of a child goes on by a frame, and what clocks may take is counted. Returns how
    /// many bytes count as the child's part by weight: what a guarantee took and did not count then
    /// does once the child goes by weight.
    pub(crate) fn clocks_go_on(
        &mut self,
        now: Instant,
        node: &mut Node,
        due: &mut Due,
        (bytes, line): (u32, &Carried),
    ) -> u32 {
        let Some(owed) = &mut self.owed else { return bytes };
        owed.sent(now, node, due, (u64::from(bytes), line));
        let share = &mut node.share;
        if share.flags.has(Flags::IS_DUE) {
            let counted = self.counts(share, bytes);
            if counted < bytes {
                due.uncounted = (due.uncounted + (bytes - counted)).min(self.most_uncounted(share));
            }
            return counted;
        }
        let late = due.uncounted.min(bytes);
        due.uncounted -= late;
        bytes + late
    }

    /// Bytes that are remembered to count later: what the child has by its weight while all have a
    /// frame, for so far apart may children be in the order of priorities, less what counts at
    /// once. One that has its guarantee and never its part is no further ahead.
    fn most_uncounted(&mut self, share: &Share) -> u32 {
        let frames = u64::from(self.count & !ALONE) * FRAME;
        let part = frames.saturating_mul(self.per_byte()) / share.per_byte.max(1);
        let most = part.saturating_sub(COUNTED).min(MOST_UNCOUNTED.into());
        u32::try_from(most).unwrap_or(MOST_UNCOUNTED)
    }

    /// How many of the bytes that a guarantee took count as the child's part by weight: never so
    /// many that the child would be held back for long.
    #[inline(never)]
    fn counts(&self, share: &mut Share, bytes: u32) -> u32 {
        share.flags.clear(Flags::IS_DUE);
        let ahead = u64::from(bytes).max(COUNTED);
        let most = self.v.wrapping_add(ahead.wrapping_mul(share.per_byte));
        if before(most, share.s) {
            return 0;
        }
        let room = most.wrapping_sub(share.s) / share.per_byte.max(1);
        u32::try_from(room).unwrap_or(bytes).min(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::interior::WOKEN;
    use crate::tree::owed::Owed;
    use weir_units::Rate;

    fn share(weight: u64, per_byte: u64, s: u64) -> Share {
        Share { s, per_byte, weight, ..Share::default() }
    }

    /// What is ahead of time, and behind it; also around the end of the circle.
    const TIMES: [u64; 3] = [5_000, u64::MAX - 100, 1 << 63];

    #[test]
    fn what_a_guarantee_took_counts_up_to_two_frames_ahead() {
        for v in TIMES {
            let interior = Interior { v, ..Interior::default() };
            let counts = |ahead: u32, bytes| {
                let mut share = share(1, 10, v.wrapping_add(10 * u64::from(ahead)));
                share.flags.set(Flags::IS_DUE | Flags::OWED);
                let counted = interior.counts(&mut share, bytes);
                assert!(share.flags.has(Flags::OWED) && !share.flags.has(Flags::IS_DUE));
                counted
            };
            assert_eq!([counts(0, 1_000), counts(2 * 1_536 - 1_000, 1_000)], [1_000, 1_000]);
            assert_eq!([counts(2 * 1_536 - 400, 1_000), counts(2 * 1_536, 1_000)], [400, 0]);
            assert_eq!(counts(2 * 1_536 + 1, 1_000), 0);
            // or one large frame
            assert_eq!([counts(0, 9_000), counts(1_000, 9_000)], [9_000, 8_000]);
        }
    }

    #[test]
    fn what_a_guarantee_took_counts_later_up_to_a_frame_of_each_sibling() {
        for v in TIMES {
            let owed = Some(Box::new(Owed::with_capacity(1)));
            // its weight is a quarter, and 40 have something to send
            let mut interior = Interior { v, per_byte: 10, owed, ..Interior::default() };
            (interior.active_weight, interior.count) = (4, 40);
            let mut node = Node { share: share(1, 40, v), ..Node::default() };
            let mut due = Due::new(Rate::from_bps(8), false);
            let mut sent = |is_due: bool, count| {
                interior.count = count;
                node.share.s = if is_due { v.wrapping_add(40 * COUNTED) } else { v };
                if is_due {
                    node.share.flags.set(Flags::IS_DUE);
                }
                let line = Carried::default();
                interior.clocks_go_on(Instant::ZERO, &mut node, &mut due, (1_000, &line))
            };
            assert_eq!(sent(false, 40), 1_000);
            assert_eq!([sent(true, 40), sent(true, 40)], [0, 0]);
            // twice as much as it has by weight, until all has counted
            assert_eq!([(); 3].map(|()| sent(false, 40)), [2_000, 2_000, 1_000]);
            for (count, most) in [(40, 8 * 1_536), (8, 0), (4_000, MOST_UNCOUNTED)] {
                (0..200).for_each(|_| _ = sent(true, count));
                let later = (0..200).map(|_| sent(false, count) - 1_000).sum::<u32>();
                assert_eq!(later, most, "{count}");
            }
        }
    }

    #[test]
    fn what_has_not_counted_is_forgotten_once_time_has_passed_the_child() {
        for (s, is_kept) in [(100, true), (99, false)] {
            let owed = Some(Box::new(Owed::with_capacity(1)));
            let mut interior = Interior { v: 100, owed, ..Interior::default() };
            let mut nodes = [Node { share: share(1, 40, s), ..Node::default() }];
            nodes[0].share.flags.set(Flags::CLOCKS | Flags::OWED);
            let mut dues = [Due::new(Rate::from_bps(8), false)];
            dues[0].uncounted = 7;
            interior.joins::<WOKEN>(Instant::ZERO, 0, &mut nodes, &mut dues);
            assert_eq!(dues[0].uncounted, if is_kept { 7 } else { 0 });
        }
    }
}
