//! How much of what a guarantee took counts as the child's part by weight: all of it, or the child
//! would have both. Where it is ahead of its part by two frames, more would make time run ahead of
//! all others. That counts later, as soon as time comes nearer; or when the child is next by
//! weight: then it passes its turn, for it has had that already.

use weir_units::Instant;

use super::{ALONE, FRAME, Interior};
use crate::tree::heap::before;
use crate::tree::node::{Flags, Node, Share};
use crate::tree::owed::Due;
use crate::tree::pauses::Carried;

/// Bytes that a guarantee takes ahead of the child's part, and that count as that at once; a larger
/// frame does too.
const COUNTED: u64 = 2 * FRAME;
/// What is remembered to count later is no more than the child has by its weight while each of the
/// others has so many frames, of the largest. So far apart are children in the order of priorities
/// at most.
const OTHERS: u128 = 4;
/// No more bytes than these are remembered, in any case.
const MOST_UNCOUNTED: u32 = 1 << 26;
/// Frames, of the largest, that count when a child passes its turn.
const PASSED: u64 = 4;
/// Turns that children pass before one is served: a bound on the work for a frame.
pub(super) const MOST_PASSED: u32 = 4;

impl Interior {
    /// The clock of a child goes on by a frame, and what clocks may take is counted. Returns how
    /// many bytes count as the child's part by weight, what did not count before among them.
    pub(crate) fn clocks_go_on(
        &mut self,
        now: Instant,
        node: &mut Node,
        due: &mut Due,
        (bytes, line): (u32, &Carried),
    ) -> u32 {
        let Some(owed) = &mut self.owed else { return bytes };
        owed.sent(now, node, due, (u64::from(bytes), line));
        if !node.share.flags.has(Flags::IS_DUE) {
            return bytes;
        }
        node.share.flags.clear(Flags::IS_DUE);
        self.counts(&node.share, due, bytes)
    }

    #[inline(never)]
    fn counts(&self, share: &Share, due: &mut Due, frame: u32) -> u32 {
        let bytes = frame.saturating_add(due.uncounted);
        let counted = bytes.min(self.room(share, frame));
        due.uncounted = match bytes - counted {
            0 => 0,
            rest => rest.min(self.most_uncounted(share)),
        };
        counted
    }

    /// How many bytes the child may be served until it is two frames ahead of time, or one that is
    /// larger.
    fn room(&self, share: &Share, frame: u32) -> u32 {
        let ahead = u64::from(frame).max(COUNTED);
        let most = self.v.wrapping_add(ahead.wrapping_mul(share.per_byte));
        if before(most, share.s) {
            return 0;
        }
        let room = most.wrapping_sub(share.s) / share.per_byte.max(1);
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    /// Bytes that are remembered to count later. One that has its guarantee and never its part is
    /// no further ahead.
    fn most_uncounted(&self, share: &Share) -> u32 {
        let frames = u128::from(u64::from(self.count & !ALONE) * self.largest());
        let others = self.active_weight.saturating_sub(share.weight).max(1);
        let part = OTHERS * frames * u128::from(share.weight) / u128::from(others);
        let most = part.saturating_sub(COUNTED.into()).min(MOST_UNCOUNTED.into());
        u32::try_from(most).unwrap_or(MOST_UNCOUNTED)
    }

    fn largest(&self) -> u64 {
        self.owed.as_ref().map_or(FRAME, |owed| owed.largest)
    }

    /// Whether the child that is next by weight passes its turn, for what it has had by its clock.
    /// Since that was remembered an edit may have changed the weights: what counts is never more
    /// than could be remembered now.
    pub(super) fn passes(&mut self, number: u32, node: &mut Node, due: &mut Due) -> bool {
        if due.uncounted == 0 {
            return false;
        }
        let uncounted = due.uncounted.min(self.most_uncounted(&node.share));
        let most = u32::try_from(PASSED * self.largest()).unwrap_or(u32::MAX);
        let bytes = uncounted.min(most);
        due.uncounted = uncounted - bytes;
        if bytes == 0 {
            return false;
        }
        let share = &mut node.share;
        share.s = share.s.wrapping_add(u64::from(bytes).wrapping_mul(share.per_byte));
        self.slot = self.slot.wrapping_add(bytes);
        self.relists(number, node);
        true
    }

    /// Of what has not counted, the rest of a child that slept until time had gone so far beyond
    /// its place.
    #[inline]
    pub(super) fn has_slept(share: &Share, due: &mut Due, behind: u64) {
        if due.uncounted > 0 {
            let had = behind / share.per_byte.max(1);
            due.uncounted = due.uncounted.saturating_sub(u32::try_from(had).unwrap_or(u32::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::calendar::Calendar;
    use crate::tree::interior::WOKEN;
    use crate::tree::owed::Owed;
    use weir_units::Rate;

    fn share(weight: u64, per_byte: u64, s: u64) -> Share {
        Share { s, per_byte, weight, ..Share::default() }
    }

    const RATE: Rate = Rate::from_bps(8);

    /// What is ahead of time, and behind it; also around the end of the circle.
    const TIMES: [u64; 3] = [5_000, u64::MAX - 100, 1 << 63];

    #[test]
    fn what_a_guarantee_took_counts_up_to_two_frames_ahead() {
        for v in TIMES {
            let interior = Interior { v, ..Interior::default() };
            let counts = |ahead: u32, bytes| {
                let share = share(1, 10, v.wrapping_add(10 * u64::from(ahead)));
                interior.counts(&share, &mut Due::default(), bytes)
            };
            assert_eq!([counts(0, 1_000), counts(2 * 1_536 - 1_000, 1_000)], [1_000, 1_000]);
            assert_eq!([counts(2 * 1_536 - 400, 1_000), counts(2 * 1_536, 1_000)], [400, 0]);
            assert_eq!(counts(2 * 1_536 + 1, 1_000), 0);
            // or one large frame
            assert_eq!([counts(0, 9_000), counts(1_000, 9_000)], [9_000, 8_000]);
        }
    }

    /// One of a quarter of the weight, beside 39 others.
    struct Child {
        interior: Interior,
        nodes: [Node; 1],
        dues: [Due; 1],
    }

    impl Child {
        fn new(v: u64) -> Child {
            let owed = Some(Box::new(Owed::with_capacity(1)));
            let kinds = vec![Calendar::new(0, 0, 1 << 20)].into();
            let interior =
                Interior { active_weight: 4, count: 40, ..Interior::new(kinds, owed, 4) };
            let nodes = [Node { share: share(1, 40, v), ..Node::default() }];
            Child { interior: Interior { v, ..interior }, nodes, dues: [Due::new(RATE, false)] }
        }

        /// How many bytes count of a frame of 1 000, so many bytes ahead of time.
        fn sent(&mut self, is_due: bool, ahead: u64) -> u32 {
            let node = &mut self.nodes[0];
            node.share.s = self.interior.v.wrapping_add(40 * ahead);
            if is_due {
                node.share.flags.set(Flags::IS_DUE);
            }
            let frame = (1_000, &Carried::default());
            let counted = self.interior.clocks_go_on(Instant::ZERO, node, &mut self.dues[0], frame);
            assert!(!node.share.flags.has(Flags::IS_DUE));
            counted
        }

        /// How many bytes count when it is next by weight, if it passes its turn then.
        fn passes(&mut self) -> Option<u64> {
            let was = (self.nodes[0].share.s, self.interior.slot);
            let passes = self.interior.passes(0, &mut self.nodes[0], &mut self.dues[0]);
            let bytes = u64::from(self.interior.slot - was.1);
            assert_eq!(self.nodes[0].share.s, was.0.wrapping_add(40 * bytes));
            passes.then_some(bytes)
        }
    }

    #[test]
    fn what_did_not_count_counts_once_time_is_nearer_or_the_child_passes_its_turn() {
        for v in TIMES {
            let mut child = Child::new(v);
            assert_eq!([child.sent(true, 0), child.sent(false, COUNTED)], [1_000, 1_000]);
            assert_eq!(child.passes(), None);
            assert_eq!([(); 8].map(|()| child.sent(true, COUNTED)), [0; 8]);
            assert_eq!(child.sent(true, COUNTED - 1_500), 1_500);
            assert_eq!(child.sent(false, COUNTED), 1_000);
            assert_eq!([(); 3].map(|()| child.passes()), [Some(6_144), Some(1_356), None]);
        }
    }

    #[test]
    fn no_more_is_remembered_than_the_child_has_while_the_others_have_four_frames() {
        let mut child = Child::new(5_000);
        let most = 40 * 2_048 - 3_072;
        for (count, weight, most) in [(40, 4, most), (1, 4, 0), (40_000, 1, MOST_UNCOUNTED)] {
            child.interior.count = count;
            child.interior.active_weight = weight;
            (0..70_000).for_each(|_| _ = child.sent(true, COUNTED));
            assert_eq!(child.dues[0].uncounted, most, "{count}");
        }
    }

    #[test]
    fn an_edit_lowers_what_counts_late_with_the_weight() {
        let mut child = Child::new(5_000);
        (0..5_000).for_each(|_| _ = child.sent(true, COUNTED));
        (child.nodes[0].share.weight, child.interior.active_weight) = (1, 40);
        let most = u64::from(4 * 40 * 1_536_u32 / 39 - 3_072);
        assert_eq!([child.passes(), child.passes()], [Some(most), None]);
        (0..5_000).for_each(|_| _ = child.sent(true, COUNTED));
        child.interior.active_weight = 400;
        assert_eq!((child.passes(), child.dues[0].uncounted), (None, 0));
    }

    #[test]
    fn of_what_has_not_counted_a_child_had_a_part_while_it_slept() {
        for (behind, rest) in [(0, 7), (39, 7), (2 * 40, 5), (7 * 40, 0), (1 << 40, 0)] {
            let owed = Some(Box::new(Owed::with_capacity(1)));
            let mut interior = Interior { v: 1 << 50, owed, ..Interior::default() };
            let mut nodes = [Node { share: share(1, 40, (1 << 50) - behind), ..Node::default() }];
            nodes[0].share.flags.set(Flags::CLOCKS | Flags::OWED);
            let mut dues = [Due::new(RATE, false)];
            dues[0].uncounted = 7;
            interior.joins::<WOKEN>(Instant::ZERO, 0, &mut nodes, &mut dues);
            assert_eq!(dues[0].uncounted, rest);
        }
    }
}
