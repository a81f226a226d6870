//! What an edit carries over from one order of a node's children to the next: the bytes that each
//! child is ahead of virtual time or behind it, the clocks of guarantees, and who has something to
//! send. A child thus waits as long as it would have waited without the edit.

use weir_units::Instant;

use super::choose::{earlier, later};
use super::{FRAME, Interior, MOVED, WOKEN, ahead};
use crate::tree::node::{Flags, NONE, Node, Share};
use crate::tree::owed::{Due, Owed, PARTS};

/// What is carried over is never farther from the present than this, far below half a circle.
const FARTHEST: i128 = 1 << 61;

/// Bytes that a child may lack elsewhere and be given by the parent that it comes to: time never
/// runs further past its start than that.
const MOST_LACKED: i32 = 1_536;

const _: () = assert!(MOST_LACKED as u64 == FRAME);

/// The time of as many bytes as there are in `time`, where a byte takes `new` and not `old`.
#[expect(clippy::cast_possible_truncation, reason = "within a quarter of the circle")]
pub(crate) fn scaled(time: i64, new: u64, old: u64) -> i64 {
    if new == old {
        return time;
    }
    let wide = i128::from(time) * i128::from(new) / i128::from(old.max(1));
    wide.clamp(-FARTHEST, FARTHEST) as i64
}

impl Interior {
    /// Takes all children out of the calendars. They come back as a chain through themselves, those
    /// that would have been served last first: noted in this order, they keep it.
    pub(crate) fn unlist(&mut self, now: Instant, nodes: &mut [Node], dues: &mut [Due]) -> u32 {
        self.comes_to_order(now, nodes, dues);
        let mut chain = NONE;
        for calendar in &mut self.kinds {
            while let Some(number) = calendar.first() {
                let node = &mut nodes[number as usize];
                calendar.take_first(node);
                node.share.next = std::mem::replace(&mut chain, number);
            }
        }
        chain
    }

    /// While children go before others because they are due, time runs on; an edit finds it where
    /// it would be when the next is chosen by weight, and nobody alone.
    pub(crate) fn comes_to_order(&mut self, now: Instant, nodes: &mut [Node], dues: &mut [Due]) {
        self.has_company(now, nodes, dues);
        let Some(was) = self.owed.as_ref().and_then(|owed| owed.ran_on_from()) else { return };
        if let Some((_, least_f)) = self.bounds(nodes) {
            self.v = earlier(self.v, later(least_f, was));
        }
    }

    /// A child is another node's from now on, or is gone. The bytes that it is ahead go with it;
    /// and if it has something to send those that it lacks, so that one that moves to and fro has
    /// its turn some time.
    pub(crate) fn gives_up(&mut self, now: Instant, node: &mut Node, due: &mut Due) {
        let waits = node.share.flags.has(Flags::ACTIVE);
        due.shifts(self.time(now), 0);
        due.uncounted = 0;
        if self.is_closing() {
            self.lets_go(node);
        } else {
            self.leaves_its_order(node);
            // the heaps go with the order that ends
            node.share.flags.clear(Flags::LISTED_OWED);
        }
        let bytes = ahead(&node.share, self.v);
        let bytes = if waits { bytes.max(-MOST_LACKED) } else { bytes.max(0) };
        (node.share.s, node.share.per_byte) = (i64::from(bytes).cast_unsigned(), 0);
        if waits {
            node.share.flags.set(Flags::MOVED);
        }
    }

    /// What time it is for clocks; in a node without any, as if they had always had what they were
    /// promised.
    fn time(&self, now: Instant) -> u64 {
        self.owed.as_ref().map_or(now.ns().wrapping_mul(PARTS), |owed| owed.time(now))
    }

    /// A child that came with something to send is one of those that have, as far ahead or behind
    /// as it was elsewhere. There are others that have something.
    pub(crate) fn takes_in(
        &mut self,
        now: Instant,
        number: u32,
        nodes: &mut [Node],
        dues: &mut [Due],
    ) {
        self.joins::<MOVED>(now, number, nodes, dues);
    }

    /// A child that has moved is behind, but by no more than that: time may have gone on while it
    /// had to wait for the parent that it had.
    pub(super) fn lacks(&mut self, share: &mut Share) {
        let lacks = ahead(share, self.v).max(-MOST_LACKED);
        self.is_behind(share, lacks);
        self.moves_on_by(lacks);
    }

    /// A child lacks so many bytes, a number below zero.
    fn is_behind(&self, share: &mut Share, lacks: i32) {
        let behind = u64::from(lacks.unsigned_abs()).wrapping_mul(share.per_byte);
        share.s = self.v.wrapping_sub(behind);
    }

    /// A child may lack a frame, as without edits; what it lacks more is the others'.
    #[cold]
    fn lacks_no_more(&mut self, share: &mut Share) {
        let lacks = ahead(share, self.v);
        if lacks < -MOST_LACKED {
            self.is_behind(share, -MOST_LACKED);
            self.moves_on_by(-MOST_LACKED - lacks);
        }
    }

    /// A child leaves an order that ends. Who leaves it ahead of time counts in the next one.
    fn leaves_its_order(&mut self, node: &mut Node) {
        if node.share.flags.has(Flags::ACTIVE) {
            // its parent may be gone already and count nobody
            self.active_weight += node.share.weight;
            self.leaves(&node.share);
            node.share.flags.clear(Flags::ACTIVE);
        }
    }

    /// An edit took away all there was below a child.
    pub(crate) fn ends(&mut self, now: Instant, number: u32, nodes: &mut [Node], dues: &mut [Due]) {
        self.has_company(now, nodes, dues);
        self.lets_go(&mut nodes[number as usize]);
    }

    fn lets_go(&mut self, node: &mut Node) {
        if node.share.flags.has(Flags::ACTIVE) {
            self.count -= 1;
            self.leaves(&node.share);
            self.sleeps(node);
        }
    }

    /// Nobody is alone any more, as far as is known; and the time of the clocks is what it would be
    /// for the next frame, for whoever's clock begins now.
    #[inline]
    pub(super) fn has_company(&mut self, now: Instant, nodes: &mut [Node], dues: &mut [Due]) {
        let alone = self.alone();
        if let Some(alone) = alone {
            self.is_joined(alone, &mut nodes[alone as usize]);
        }
        match (&mut self.owed, alone) {
            (Some(owed), Some(alone)) => {
                let (node, due) = (&nodes[alone as usize], &mut dues[alone as usize]);
                // while it was alone nobody lacked anything
                due.uncounted = 0;
                owed.is_joined(now, due);
                owed.has_only(now, node, due);
            }
            (Some(owed), None) => owed.waits(now, nodes, dues),
            (None, _) => {}
        }
    }

    /// Goes on where the order before it ends.
    pub(crate) fn continues(&mut self, before: &Interior) {
        self.v = before.v;
        if before.is_active() {
            self.slot = before.slot;
            (self.gone_weight, self.gone_bytes) = (before.gone_weight, before.gone_bytes);
            self.active_weight += self.gone_weight;
        }
        if let (Some(owed), Some(before)) = (&mut self.owed, &before.owed) {
            owed.continues(before);
        }
    }

    /// A child gets its new share, and the clock of its guarantee. One that is new here begins with
    /// the present, or ahead of it as it was elsewhere.
    pub(crate) fn adopts(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        told: (&Share, &Due),
        due: &mut Due,
    ) {
        let was = node.share;
        node.share = Share { s: self.v, next: was.next, ..*told.0 };
        node.share.flags.set(was.flags.of_its_own());
        if self.is_closing() {
            node.share.flags.set(was.flags.noted());
        }
        let had_clock = was.flags.has(Flags::OWED);
        if was.per_byte == 0 {
            due.shifts(0, self.time(now));
        }
        let is_new = was.per_byte == 0 && !was.flags.has(Flags::MOVED);
        *due = match &self.owed {
            // it has none, and may have one again: then it is not due at once
            _ if !is_new && !node.share.flags.has(Flags::OWED) => *due,
            Some(owed) if had_clock => owed.goes_on(now, told.1, due),
            Some(owed) if !is_new => told.1.given_back(due, owed.time(now)),
            _ => *told.1,
        };
        if !node.share.flags.has(Flags::OWED) {
            due.uncounted = 0;
        }
        if was.per_byte == 0 {
            node.share.s = self.v.wrapping_add(was.s.wrapping_mul(node.share.per_byte));
            return;
        }
        let ahead = was.s.wrapping_sub(self.v).cast_signed();
        if !was.flags.has(Flags::ACTIVE) {
            self.comes_back_at(&mut node.share, &was, ahead.max(0));
            return;
        }
        self.comes_back_at(&mut node.share, &was, ahead);
        self.lacks_no_more(&mut node.share);
        node.share.flags.set(Flags::ACTIVE);
        self.count += 1;
        self.active_weight += node.share.weight;
        if node.share.flags.has(Flags::CLOCKS)
            && let Some(owed) = &mut self.owed
        {
            owed.adopts(now, number, node, due, had_clock);
        }
    }

    /// As many bytes ahead as before, which take another time with another weight.
    fn comes_back_at(&self, share: &mut Share, was: &Share, ahead: i64) {
        let ahead = scaled(ahead, share.per_byte, was.per_byte);
        share.s = self.v.wrapping_add(ahead.cast_unsigned());
    }

    /// Notes a child that has something to send, if it is noted nowhere.
    pub(crate) fn relists(&mut self, number: u32, node: &mut Node) {
        if node.share.flags.has(Flags::ACTIVE) && !node.share.flags.has(Flags::LISTED) {
            self.calendar(node.share.group).note(number, node);
        }
    }
}

impl Owed {
    /// Goes on where the clocks before it are.
    fn continues(&mut self, before: &Owed) {
        self.behind = before.behind;
        self.by_clock = before.by_clock;
        self.largest = before.largest;
        self.pauses = before.pauses;
    }

    /// A child that has something to send has its clock here, if it has one.
    #[inline]
    fn adopts(&mut self, now: Instant, number: u32, node: &mut Node, due: &mut Due, had: bool) {
        if had && node.share.flags.has(Flags::OWED) {
            // what it lacks is not forgotten, as it would be if it woke
            self.comes(number, node, due);
        } else {
            self.joins::<WOKEN>(now, number, node, due);
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Rate;

    use super::*;
    use crate::tree::pauses::Carried;

    #[test]
    fn what_a_child_lacks_more_than_a_frame_is_the_others() {
        for (lacks, left, others) in [(1_000, 1_000, 0), (1_536, 1_536, 0), (2_000, 1_536, 464)] {
            let mut interior = Interior { v: 1_000_000, ..Interior::default() };
            let mut share = Share { s: 1_000_000 - lacks * 3, per_byte: 3, ..Share::default() };
            interior.lacks_no_more(&mut share);
            assert_eq!((1_000_000 - share.s, interior.slot), (left * 3, others));
        }
    }

    #[test]
    fn one_that_gets_another_share_lacks_a_frame_at_most() {
        let mut interior = Interior { v: 1_000_000, ..Interior::default() };
        for (lacks, left) in [(1_000, 2_000), (5_000, 2 * FRAME)] {
            let mut node = Node::default();
            (node.share.s, node.share.per_byte) = (1_000_000 - lacks * 4, 4);
            node.share.flags.set(Flags::ACTIVE);
            // twice the weight
            let told = Share { per_byte: 2, ..Share::default() };
            let told = (&told, &Due::default());
            interior.adopts(Instant::ZERO, 0, &mut node, told, &mut Due::default());
            assert_eq!(1_000_000 - node.share.s, left, "{lacks}");
        }
    }

    #[test]
    fn pauses_stay_what_they_are_in_the_next_order() {
        let with_pauses = |bytes: u64| {
            let (mut owed, mut line) = (Owed::with_capacity(1), Carried::default());
            line.has_rate(Rate::from_bps(1_000_000));
            owed.pauses.sent(1_000, &line);
            line.carries(bytes + 1_000);
            owed.pauses.sent(1_000, &line);
            owed
        };
        let mut next = with_pauses(0);
        next.continues(&with_pauses(7_000));
        assert_eq!(next.pauses.longest(), with_pauses(7_000).pauses.longest());
        assert!(next.pauses.longest() > 0);
    }

    #[test]
    fn as_many_bytes_take_another_time_and_never_half_a_circle() {
        assert_eq!([scaled(600, 2, 3), scaled(-600, 3, 2), scaled(7, 5, 5)], [400, -900, 7]);
        assert_eq!(scaled(600, 2, 0), 1_200);
        let farthest = 1 << 61;
        assert_eq!(scaled(i64::MAX, u64::MAX, 1), farthest);
        assert_eq!(scaled(i64::MIN, u64::MAX, 1), -farthest);
        // what stays as it is may be anything
        assert_eq!(scaled(i64::MIN, 4, 4), i64::MIN);
    }
}
