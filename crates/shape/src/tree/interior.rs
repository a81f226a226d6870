//! Which child of a node is next: worst-case fair weighted fair queueing (WF2Q+, Bennett and Zhang
//! 1996) among the children that have something to send.
//!
//! Each child carries the virtual time `s` at which its next frame should start, each node the
//! virtual time `v` up to which it has served. Children with `s <= v` are within their share; of
//! them the one of the highest priority goes next, among equals the one that should finish first.
//! Children of like weight and priority share a calendar, so that finding the next looks at one
//! child per kind. A child that was served moves on by its frame's bytes over its weight: shares
//! are exact whatever the order.
//!
//! Time moves on when a frame has gone, not when it is chosen: who comes while it is on the line
//! starts where that frame began. Of all that have something to send, what some have had in advance
//! of `v` is what others lack, so that `v` is the middle of their `s`, by weight. It must stay so
//! when a child leaves. What it lacked, time skips. What it has had in advance it would be having
//! now were the line a fluid: its weight counts until the others have had their parts of that time,
//! so that one of a great weight need not wait for all siblings that have a frame and no more. Who
//! has left so is not kept one by one: their weights and their bytes are, as two sums. When one
//! comes back before time has reached its `s`, its part of them is taken back. Without this `v`
//! runs ahead of everyone as children come and go, nobody is then held back by it, and one of a
//! great weight gets a frame too much for each sibling.
//!
//! A child that is alone competes with nobody: nothing is looked up for it, and it moves on as fast
//! as time itself does, so only that is written; its `s` is kept as what it lies behind `v`.
//!
//! A child that is served leaves its calendar and is noted again. Two may stay noted where they no
//! longer belong, and are put right when their day comes: one that is alone, and one that was
//! served because its guarantee was due (owed.rs).

mod carry;
mod check;
mod choose;
mod counted;
mod steps;

pub(super) use carry::scaled;
pub(super) use choose::within;

use weir_units::{Bytes, Instant};

use super::calendar::Calendar;
use super::heap::before;
use super::node::{Flags, Node, Share};
use super::owed::{Due, Owed};

/// Virtual time per byte of a child that has all the weight of its node: 2^16.
pub(crate) const UNIT: u32 = 16;
/// No child has had 2^18 bytes in advance: that is four frames of 64 KiB, where two can be.
const FAR: u32 = 18;
/// Bytes of the frame by which it is decided who should finish first.
pub(crate) const FRAME: u64 = 1_536;

/// A node with children.
#[derive(Debug, Default)]
pub(crate) struct Interior {
    v: u64,
    /// Of those that have something to send, and of those that left ahead of time.
    active_weight: u64,
    total_weight: u64,
    /// Virtual time per byte of the node as a whole; 0: to be computed anew.
    per_byte: u64,
    /// Children that have something to send; with [`ALONE`] one is known to be alone, and these are
    /// its bytes on the line.
    count: u32,
    /// Bytes for which `v` has not moved on yet: those of the frame that is on the line, less what
    /// the others lack of one that was alone (it may be below zero). Or the child that is alone.
    slot: u32,
    kinds: Box<[Calendar]>,
    owed: Option<Box<Owed>>,
    /// The weight of those that left ahead of time, and the bytes that they had in advance.
    gone_weight: u64,
    gone_bytes: u64,
}

/// Why a child joins those that have something to send: frames came.
pub(crate) const WOKEN: u8 = 0;
/// It had some, and its ceiling, or that of a node below it, lets it send again.
pub(crate) const FREED: u8 = 1;
/// It had some, and has another parent now.
pub(crate) const MOVED: u8 = 2;

/// Tells bytes from children.
const ALONE: u32 = 1 << 31;

const _: () = assert!(size_of::<Interior>() == 80);

impl Interior {
    pub(crate) fn new(kinds: Box<[Calendar]>, owed: Option<Box<Owed>>, total: u64) -> Interior {
        Interior { kinds, owed, total_weight: total, ..Interior::default() }
    }

    /// In what its virtual time is counted.
    pub(crate) const fn scale(&self) -> u64 {
        self.total_weight
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.kinds) + self.owed.as_ref().map_or(0, |owed| owed.bytes())
    }

    /// Whether any child has something to send.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.count > 0
    }

    /// The only child that has something to send, if it is known.
    #[inline]
    fn alone(&self) -> Option<u32> {
        (self.count & ALONE != 0).then_some(self.slot)
    }

    /// A child is one of those that have something to send: with the present if it lacks anything,
    /// or, where it has moved, with what it lacked elsewhere.
    #[inline]
    pub(crate) fn joins<const HOW: u8>(
        &mut self,
        now: Instant,
        number: u32,
        nodes: &mut [Node],
        dues: &mut [Due],
    ) {
        if self.count > 0 {
            self.has_company(now, nodes, dues);
        } else if let Some(owed) = &mut self.owed {
            owed.has_nobody();
        }
        let node = &mut nodes[number as usize];
        let share = &mut node.share;
        debug_assert!(!share.flags.has(Flags::ACTIVE), "a child that is awake was woken");
        self.active_weight += share.weight;
        self.per_byte = 0;
        let behind = self.v.wrapping_sub(share.s);
        let is_behind = before(share.s, self.v);
        if is_behind {
            if HOW == MOVED { self.lacks(share) } else { share.s = self.v }
        } else if self.count > 0 {
            self.comes_back(share);
        }
        share.flags.set(Flags::ACTIVE);
        if share.flags.has(Flags::CLOCKS)
            && let Some(owed) = &mut self.owed
        {
            let due = &mut dues[number as usize];
            if is_behind {
                Interior::has_slept(share, due, behind);
            }
            owed.joins::<HOW>(now, number, node, due);
        }
        if self.count == 0 {
            if let Some(owed) = &mut self.owed {
                owed.pauses.ends();
            }
            self.forgets_the_gone();
            self.is_left_alone(number, node, 0);
            return;
        }
        self.count += 1;
        if !node.share.flags.has(Flags::LISTED) {
            self.calendar(node.share.group).note(number, node);
        }
    }

    /// From now on nobody competes with this child, of which so many bytes are on the line. Time is
    /// where it is.
    #[inline]
    fn is_left_alone(&mut self, number: u32, node: &mut Node, bytes: u32) {
        let share = &mut node.share;
        if before(self.v, share.s) {
            self.v = share.s;
        }
        if let Some(owed) = &mut self.owed {
            owed.stands();
        }
        share.s = share.s.wrapping_sub(self.v);
        self.per_byte = share.per_byte;
        (self.count, self.slot) = (ALONE | bytes, number);
    }

    /// The child that was alone gets company: its place counts again.
    #[inline]
    fn is_joined(&mut self, number: u32, node: &mut Node) {
        let bytes = self.count & !ALONE;
        let behind = ahead(&node.share, 0);
        self.is_placed(node, u64::from(bytes));
        (self.count, self.slot) = (1, bytes);
        self.moves_on_by(behind);
        if !node.share.flags.has(Flags::LISTED) {
            self.calendar(node.share.group).note(number, node);
        }
    }

    /// The child that was alone, and of which so many bytes are on the line, is so no longer.
    #[inline]
    fn is_placed(&mut self, node: &mut Node, bytes: u64) {
        (self.count, self.slot) = (0, 0);
        self.per_byte = 0;
        let share = &mut node.share;
        let at = share.s.wrapping_add(self.v);
        share.s = at.wrapping_add(bytes.wrapping_mul(share.per_byte));
    }

    /// A frame of `bytes` of the child that was next has been sent, of which so many count as its
    /// part by weight; `stays`: it can send more now.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        number: u32,
        node: &mut Node,
        (bytes, counted): (u32, u32),
        stays: bool,
    ) {
        if self.alone().is_some() {
            let gone = u64::from(self.count & !ALONE);
            self.v = self.v.wrapping_add(gone.wrapping_mul(self.per_byte));
            self.count = ALONE | bytes;
            if !stays {
                self.is_placed(node, u64::from(bytes));
                self.sleeps(node);
                self.active_weight -= node.share.weight;
            }
            return;
        }
        if stays && self.count == 1 {
            self.forgets_the_gone();
            self.is_left_alone(number, node, bytes);
            return;
        }
        let share = &mut node.share;
        share.s = share.s.wrapping_add(u64::from(counted).wrapping_mul(share.per_byte));
        self.slot = self.slot.wrapping_add(counted);
        if stays {
            if !node.share.flags.has(Flags::LISTED) {
                self.calendar(node.share.group).note(number, node);
            }
        } else {
            self.count -= 1;
            self.leaves(&node.share);
            self.sleeps(node);
        }
    }

    /// A child leaves those that compete, its last frame accounted for. What it has had in advance
    /// goes on counting; what it lacked is the others'.
    #[inline]
    fn leaves(&mut self, share: &Share) {
        let bytes = ahead(share, self.v);
        if bytes > 0 {
            self.gone_weight += share.weight;
            self.gone_bytes += u64::from(bytes.unsigned_abs());
        } else {
            self.active_weight -= share.weight;
            self.per_byte = 0;
            self.slot = self.slot.wrapping_add(bytes.unsigned_abs());
        }
    }

    /// A child comes back ahead of time: what it had in advance counts as its own again.
    #[inline]
    fn comes_back(&mut self, share: &mut Share) {
        if share.s.wrapping_sub(self.v) >> FAR > share.per_byte {
            // time has gone half around while it slept
            share.s = self.v;
            return;
        }
        let bytes = ahead(share, self.v).unsigned_abs();
        let counted = u32::try_from(self.gone_bytes).unwrap_or(u32::MAX).min(bytes);
        self.gone_bytes -= u64::from(counted);
        self.slot = self.slot.wrapping_add(bytes - counted);
        let weight = share.weight.min(self.gone_weight);
        self.gone_weight -= weight;
        self.active_weight -= weight;
        if self.gone_bytes == 0 {
            self.forgets_the_gone();
        }
    }

    /// The others have had their parts of what those that left had in advance; or one is alone,
    /// and time goes as fast as that one.
    #[inline]
    fn forgets_the_gone(&mut self) {
        self.active_weight -= self.gone_weight;
        (self.gone_weight, self.gone_bytes) = (0, 0);
        self.per_byte = 0;
    }

    /// A child has nothing more to send.
    #[inline]
    fn sleeps(&mut self, node: &mut Node) {
        let share = &mut node.share;
        share.flags.clear(Flags::ACTIVE);
        if share.flags.has(Flags::CLOCKS)
            && let Some(owed) = &mut self.owed
        {
            owed.sleeps(node);
        }
    }

    /// The frame that was on the line has gone.
    #[inline]
    fn move_on(&mut self) {
        if self.slot.cast_signed() > 0 {
            let bytes = u64::from(std::mem::take(&mut self.slot));
            let per_byte = self.per_byte();
            self.v = self.v.wrapping_add(bytes.wrapping_mul(per_byte));
            if self.gone_weight > 0 {
                self.are_paid(bytes);
            }
        }
    }

    /// Of so many bytes those that left would have had their part, were the line a fluid.
    #[inline]
    fn are_paid(&mut self, bytes: u64) {
        let part = bytes.min(1 << 18) * self.gone_weight / self.active_weight.max(1);
        if part < self.gone_bytes {
            self.gone_bytes -= part;
        } else {
            self.forgets_the_gone();
        }
    }

    /// Time is to move on by so many bytes more.
    #[inline]
    fn moves_on_by(&mut self, bytes: i32) {
        self.slot = self.slot.wrapping_add(bytes.cast_unsigned());
    }

    /// Virtual time per byte; computed anew only when other children have something to send. While
    /// a child is alone that is its own.
    #[inline]
    fn per_byte(&mut self) -> u64 {
        if self.per_byte == 0 {
            self.per_byte = ((self.total_weight << UNIT) / self.active_weight.max(1)).max(1);
        }
        self.per_byte
    }

    /// The calendar of a kind of children.
    #[inline]
    fn calendar(&mut self, kind: u16) -> &mut Calendar {
        match &mut *self.kinds {
            [calendar] => calendar,
            kinds => {
                let at = kinds.iter().position(|c| c.kind == kind).unwrap_or(0);
                &mut kinds[at]
            }
        }
    }
}

/// Bytes of a frame, where they are told from children.
#[inline]
pub(crate) fn on_the_line(cost: Bytes) -> u32 {
    u32::try_from(cost.get()).unwrap_or(u32::MAX) & !ALONE
}

/// How many bytes a child has had in advance, at `v`; below zero what it lacks. That is never more
/// than some frames; if it were, time would be put right by the children themselves.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "some frames")]
fn ahead(share: &Share, v: u64) -> i32 {
    (share.s.wrapping_sub(v).cast_signed() / share.per_byte.cast_signed().max(1)) as i32
}

#[cfg(test)]
mod awake;

#[cfg(test)]
mod edited;

#[cfg(test)]
mod tests {
    use super::choose::within;
    use super::*;

    fn share(weight: u64, per_byte: u64, s: u64) -> Share {
        Share { s, per_byte, weight, ..Share::default() }
    }

    /// What is ahead of time, and behind it; also around the end of the circle.
    const TIMES: [u64; 3] = [5_000, u64::MAX - 100, 1 << 63];

    #[test]
    fn bytes_ahead_of_time_and_behind_it() {
        for v in TIMES {
            assert_eq!(ahead(&share(1, 3, v.wrapping_add(900)), v), 300);
            assert_eq!(ahead(&share(1, 3, v.wrapping_sub(900)), v), -300);
            // a share that is of no order yet
            assert_eq!(ahead(&share(1, 0, v.wrapping_add(7)), v), 7);
            let later = v.wrapping_add(200);
            assert_eq!([within(v, later, later.wrapping_add(9)), within(later, v, v)], [later, v]);
            assert_eq!(within(later, v, later.wrapping_add(9)), later);
        }
    }

    /// Of ten parts four leave.
    fn left(by: i64) -> Interior {
        let v = 1 << 40;
        let mut interior = Interior { v, active_weight: 10, per_byte: 77, ..Interior::default() };
        interior.leaves(&share(4, 2, v.wrapping_add_signed(2 * by)));
        interior
    }

    #[test]
    fn who_leaves_ahead_of_time_counts_until_the_others_have_had_their_part() {
        let mut interior = left(300);
        let gone = |i: &Interior| (i.active_weight, i.gone_weight, i.gone_bytes);
        assert_eq!((gone(&interior), interior.slot), ((10, 4, 300), 0));
        interior.leaves(&share(1, 8, interior.v + 8 * 50));
        assert_eq!(gone(&interior), (10, 5, 350));
        // of 500 bytes their part is a half
        interior.are_paid(500);
        assert_eq!(gone(&interior), (10, 5, 100));
        interior.are_paid(198);
        assert_eq!(gone(&interior), (10, 5, 1));
        interior.are_paid(2);
        assert_eq!((gone(&interior), interior.per_byte), ((5, 0, 0), 0));
        // whatever is said to have gone
        let mut interior = Interior { gone_bytes: u64::MAX, ..left(300) };
        interior.are_paid(u64::MAX);
        assert_eq!(gone(&interior), (10, 4, u64::MAX - (1 << 18) * 4 / 10));
        let mut none = Interior { gone_weight: 1, gone_bytes: 9, ..Interior::default() };
        none.active_weight = 1;
        none.are_paid(3);
        assert_eq!(gone(&none), (1, 1, 6));
    }

    #[test]
    fn what_who_leaves_lacked_is_the_others() {
        let interior = left(-300);
        assert_eq!((interior.active_weight, interior.gone_weight, interior.slot), (6, 0, 300));
        assert_eq!(interior.per_byte, 0);
        assert_eq!(left(0).active_weight, 6);
    }

    #[test]
    fn who_comes_back_takes_its_part_back() {
        let comes_back = |mut interior: Interior, ahead: u64| {
            // the weight is counted when it wakes
            interior.active_weight += 4;
            interior.comes_back(&mut share(4, 2, interior.v + 2 * ahead));
            let Interior { active_weight, gone_weight, gone_bytes, slot, .. } = interior;
            (active_weight, gone_weight, gone_bytes, slot)
        };
        assert_eq!(comes_back(left(300), 300), (10, 0, 0, 0));
        // some time has gone since; of those that have left all were forgotten
        assert_eq!(comes_back(left(-300), 0), (10, 0, 0, 300));
        // others have left as well
        let two = || {
            let mut interior = left(300);
            interior.leaves(&share(1, 8, interior.v + 8 * 50));
            interior
        };
        assert_eq!(comes_back(two(), 300), (10, 1, 50, 0));
        // it has more in advance than is counted: time moves on by that
        assert_eq!(comes_back(two(), 400), (9, 0, 0, 50));
    }

    #[test]
    fn who_slept_while_time_went_half_around_was_not_ahead() {
        for v in TIMES {
            let back = |ahead: u64| {
                let mut interior = Interior { v, ..left(300) };
                let mut share = share(4, 2, v.wrapping_add(ahead));
                interior.comes_back(&mut share);
                (share.s.wrapping_sub(v), interior.gone_bytes)
            };
            let most = (2 << FAR) + (1 << FAR) - 1;
            assert_eq!([back(most), back(most + 1)], [(most, 0), (0, 300)]);
            assert_eq!(back(1 << 63), (0, 300));
        }
    }

    #[test]
    fn time_goes_by_the_weight_of_those_who_send() {
        let mut interior = Interior { total_weight: 12, active_weight: 4, ..Interior::default() };
        (interior.v, interior.slot) = (1_000, 100);
        interior.move_on();
        assert_eq!((interior.v, interior.slot), (1_000 + 100 * (3 << UNIT), 0));
        // below zero: those who are left lack something, and time waits
        interior.moves_on_by(-30);
        interior.move_on();
        assert_eq!(interior.v, 1_000 + 100 * (3 << UNIT));
        interior.moves_on_by(40);
        interior.move_on();
        assert_eq!(interior.v, 1_000 + 110 * (3 << UNIT));
        let mut least = Interior { total_weight: 0, ..Interior::default() };
        assert_eq!(least.per_byte(), 1);
        least = Interior { total_weight: 5, ..Interior::default() };
        assert_eq!(least.per_byte(), 5 << UNIT);
    }
}
