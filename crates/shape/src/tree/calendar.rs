//! Children of like weight and priority in the order in which they should start: 64 days of equal
//! length in virtual time, a word that says on which of them somebody is noted, and for each day a
//! chain through the children themselves. Noting, finding the first and taking it cost the same
//! however many children there are.
//!
//! A day is at most the sixteenth part of what a full frame takes: on one day order does not
//! matter (the last noted goes first). What lies further ahead than 64 days is noted on the last
//! day and looked at again then.

use super::node::{Flags, NONE, Node};

/// Days that are known at a time: one bit each in a word.
const DAYS: u32 = 64;
/// A full frame takes at least so many days.
const DAYS_PER_FRAME: u64 = 16;
/// No child starts as many days before the first: they are more than twice what anyone can be
/// ahead of time (`interior::FAR`). One that seems to was noted before time went half around.
const STALE: u64 = 1 << 14;

/// The calendar of one kind of children.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// Days on which somebody is noted: the lowest bit is the first day.
    used: u64,
    /// When the first day begins; nobody is noted before it.
    start: u64,
    /// How long a day is: a power of two, and which one.
    day: u64,
    shift: u8,
    /// The place of the first day; those of the others follow around the end.
    place: u8,
    /// 0 goes first.
    pub(crate) priority: u8,
    /// It is of before an edit: who is noted here is noted elsewhere from now on.
    pub(crate) is_closing: bool,
    /// Which kind, as children name it.
    pub(crate) kind: u16,
    /// Virtual time that a full frame takes.
    pub(crate) frame: u64,
    /// Who was noted last on each day; no node on a day on which nobody is.
    days: [u32; DAYS as usize],
}

impl Calendar {
    /// An empty one; `frame` is the virtual time that a full frame takes.
    pub(crate) fn new(kind: u16, priority: u8, frame: u64) -> Calendar {
        let longest = (frame / DAYS_PER_FRAME).max(1);
        let shift = u8::try_from(longest.ilog2().min(57)).unwrap_or(0);
        let days = [NONE; DAYS as usize];
        Calendar {
            used: 0,
            start: 0,
            day: 1 << shift,
            shift,
            place: 0,
            priority,
            is_closing: false,
            kind,
            frame,
            days,
        }
    }

    /// The place of one of before an edit.
    pub(crate) fn closing() -> Calendar {
        Calendar { is_closing: true, ..Calendar::new(0, 0, 0) }
    }

    /// Notes a child on the day of its start.
    #[inline]
    pub(crate) fn note(&mut self, number: u32, node: &mut Node) {
        let s = node.share.s;
        if self.used == 0 {
            self.start = s & !(self.day - 1);
        }
        let mut ahead = self.days_ahead(s);
        if ahead >= u64::from(DAYS) {
            ahead = self.make_room(s);
        }
        self.used |= 1 << ahead;
        let day = &mut self.days[place(u64::from(self.place) + ahead)];
        node.share.next = *day;
        node.share.flags.set(Flags::LISTED);
        *day = number;
    }

    /// The child noted first; time before it is gone.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<u32> {
        if self.used & 1 == 0 {
            if self.used == 0 {
                return None;
            }
            let skip = self.used.trailing_zeros();
            self.used >>= skip;
            self.start = self.start.wrapping_add(u64::from(skip) << self.shift);
            self.turn_to(u64::from(self.place) + u64::from(skip));
        }
        Some(self.days[usize::from(self.place) % DAYS as usize])
    }

    /// All that are noted, in no order.
    pub(crate) fn all(&self, nodes: &[Node]) -> Vec<u32> {
        let mut all = Vec::new();
        for day in (0..u64::from(DAYS)).filter(|day| self.used >> day & 1 == 1) {
            let mut number = self.days[place(u64::from(self.place) + day)];
            while number != NONE && all.len() <= nodes.len() {
                all.push(number);
                number = nodes[number as usize].share.next;
            }
        }
        all
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// When the first day begins.
    #[inline]
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// Takes out the child that [`Calendar::first`] just told.
    #[inline]
    pub(crate) const fn take_first(&mut self, node: &mut Node) {
        let next = node.share.next;
        self.days[place(self.place as u64)] = next;
        if next == NONE {
            self.used &= !1;
        }
        node.share.flags.clear(Flags::LISTED);
    }

    /// Whether a child that is noted on the first day should start on a later one.
    #[inline]
    pub(crate) const fn is_late(&self, node: &Node) -> bool {
        // on that day or a little before it
        self.days_ahead(node.share.s).wrapping_add(STALE) > STALE
    }

    /// Days from the first to that of `s`; a huge number for days before the first.
    #[inline]
    const fn days_ahead(&self, s: u64) -> u64 {
        (s.wrapping_sub(self.start).cast_signed() >> self.shift).cast_unsigned()
    }

    /// The day for a start that is not within the days known, where that can be arranged; else the
    /// nearest.
    #[cold]
    fn make_room(&mut self, s: u64) -> u64 {
        self.first();
        let ahead = self.days_ahead(s).cast_signed();
        if ahead >= 0 {
            return ahead.cast_unsigned().min(u64::from(DAYS) - 1);
        }
        let back = ahead.unsigned_abs();
        if back > STALE {
            // all that are noted have slept for so long: they are put right on their days
            self.start = s & !(self.day - 1);
        } else if back <= u64::from(self.used.leading_zeros()) {
            self.used <<= back;
            self.start = s & !(self.day - 1);
            self.turn_to(u64::from(self.place).wrapping_sub(back));
        }
        0
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "below 64")]
    const fn turn_to(&mut self, day: u64) {
        self.place = place(day) as u8;
    }
}

/// The place of a day among those known.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "only the last bits count")]
const fn place(day: u64) -> usize {
    (day as u32 % DAYS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nodes(starts: &[u64]) -> Vec<Node> {
        let mut nodes = vec![Node::default(); starts.len()];
        nodes.iter_mut().zip(starts).for_each(|(n, &s)| n.share.s = s);
        nodes
    }

    proptest! {
        /// All come out; those that are within the days known, in their order to a day.
        #[test]
        fn comes_out_in_order_to_a_day_also_around_the_end_of_the_circle(
            starts in prop::collection::vec(0u64..2_000_000, 1..200),
            is_near in any::<bool>(),
            offset in any::<u64>(),
        ) {
            let mut calendar = Calendar::new(0, 0, 30_000);
            let day = 1u64 << calendar.shift;
            let range = if is_near { 60 * day } else { u64::MAX };
            let start = |s: &u64| (s % range).wrapping_add(offset);
            let starts: Vec<u64> = starts.iter().map(start).collect();
            let mut nodes = nodes(&starts);
            for (number, node) in (0..).zip(&mut nodes) {
                calendar.note(number, node);
            }
            let mut out = Vec::new();
            while let Some(first) = calendar.first() {
                let node = &mut nodes[first as usize];
                calendar.take_first(node);
                if calendar.is_late(node) {
                    calendar.note(first, node);
                } else {
                    out.push(node.share.s.wrapping_sub(offset));
                }
            }
            prop_assert_eq!(out.len(), starts.len());
            for pair in out.windows(2).filter(|_| is_near) {
                prop_assert!(pair[0] < pair[1] + day, "{} before {}", pair[0], pair[1]);
            }
        }
    }
}
