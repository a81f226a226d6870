//! Which child is next, and how far virtual time has come then.

use weir_units::Instant;

use super::counted::MOST_PASSED;
use super::{FRAME, Interior};
use crate::tree::calendar::Calendar;
use crate::tree::heap::before;
use crate::tree::node::{Flags, Node};
use crate::tree::owed::Due;

impl Interior {
    /// Which child goes next; `None` when none has anything to send. If it is looked up in a
    /// calendar, it is taken out of it.
    #[inline]
    pub(crate) fn next(
        &mut self,
        now: Instant,
        nodes: &mut [Node],
        dues: &mut [Due],
    ) -> Option<u32> {
        if let Some(number) = self.alone() {
            return Some(number);
        }
        let mut was = self.v;
        self.move_on();
        if let Some(owed) = &mut self.owed {
            if let Some(number) = owed.next(now, was, nodes, dues) {
                nodes[number as usize].share.flags.set(Flags::IS_DUE);
                return Some(number);
            }
            was = owed.chosen_at;
        }
        let number = self.by_weight(was, nodes)?;
        if self.owed.is_none() || dues[number as usize].uncounted == 0 {
            return Some(number);
        }
        self.after_who_passes(number, was, nodes, dues)
    }

    /// Which child goes next by its weight.
    #[inline]
    fn by_weight(&mut self, was: u64, nodes: &mut [Node]) -> Option<u32> {
        if let [calendar] = &mut *self.kinds {
            let number = first(calendar, nodes)?;
            if self.v.wrapping_sub(calendar.start()) > calendar.frame {
                // time is before the day of the first, or behind when that should have finished
                let (least, most) =
                    (calendar.start(), calendar.start().wrapping_add(calendar.frame));
                calendar.take_first(&mut nodes[number as usize]);
                self.stays_within(least, later(most, was));
                return Some(number);
            }
            calendar.take_first(&mut nodes[number as usize]);
            return Some(number);
        }
        self.next_of_kinds(was, nodes)
    }

    /// Time moves on to the first that will be within its share, where nobody is; and it never runs
    /// past the moment by which somebody should have finished.
    #[inline]
    fn stays_within(&mut self, least: u64, most: u64) {
        if before(self.v, least) {
            // nobody lacks anything
            self.slot = 0;
            self.forgets_the_gone();
        }
        self.v = within(self.v, least, most);
    }

    /// The child that goes next by weight after `number` and others that pass their turns.
    #[inline(never)]
    fn after_who_passes(
        &mut self,
        mut number: u32,
        was: u64,
        nodes: &mut [Node],
        dues: &mut [Due],
    ) -> Option<u32> {
        for _ in 0..MOST_PASSED {
            let (node, due) = (&mut nodes[number as usize], &mut dues[number as usize]);
            if !self.passes(number, node, due) {
                break;
            }
            self.move_on();
            number = self.next_of_kinds(was, nodes)?;
        }
        Some(number)
    }

    #[inline(never)]
    fn next_of_kinds(&mut self, was: u64, nodes: &mut [Node]) -> Option<u32> {
        let (least_s, least_f) = self.bounds(nodes)?;
        self.stays_within(least_s, later(least_f, was));
        let mut best: Option<(u8, u64, usize)> = None;
        for (at, calendar) in self.kinds.iter_mut().enumerate() {
            let starts = starts(calendar, nodes).filter(|(s, _)| !before(self.v, *s));
            let Some((_, f)) = starts else { continue };
            let priority = calendar.priority;
            let is_better = best
                .is_none_or(|(p, least, _)| priority < p || (priority == p && before(f, least)));
            if is_better {
                best = Some((priority, f, at));
            }
        }
        let calendar = &mut self.kinds[best?.2];
        let number = calendar.first()?;
        calendar.take_first(&mut nodes[number as usize]);
        Some(number)
    }

    /// When the first of all may start, and when the first should have finished.
    #[inline]
    pub(super) fn bounds(&mut self, nodes: &mut [Node]) -> Option<(u64, u64)> {
        let mut bounds: Option<(u64, u64)> = None;
        for calendar in &mut self.kinds {
            let Some((s, f)) = starts(calendar, nodes) else { continue };
            bounds = Some(match bounds {
                Some((least_s, least_f)) => (earlier(s, least_s), earlier(f, least_f)),
                None => (s, f),
            });
        }
        bounds
    }
}

/// The first child of a calendar that has something to send and is noted where it belongs. Who is
/// not is put right on the way.
#[inline]
pub(super) fn first(calendar: &mut Calendar, nodes: &mut [Node]) -> Option<u32> {
    loop {
        let number = calendar.first()?;
        let node = &mut nodes[number as usize];
        if node.share.flags.has(Flags::ACTIVE) && !calendar.is_late(node) {
            return Some(number);
        }
        put_right(calendar, number, node);
    }
}

/// When the first child of a calendar may start and should have finished: from the first day on; or
/// as it says itself, where an edit may have given it another place and another weight after it was
/// noted.
#[inline]
pub(super) fn starts(calendar: &mut Calendar, nodes: &mut [Node]) -> Option<(u64, u64)> {
    let number = first(calendar, nodes)?;
    if calendar.is_closing {
        let share = &nodes[number as usize].share;
        return Some((share.s, share.s.wrapping_add(FRAME.wrapping_mul(share.per_byte))));
    }
    let day = calendar.start();
    Some((day, day.wrapping_add(calendar.frame)))
}

#[cold]
fn put_right(calendar: &mut Calendar, number: u32, node: &mut Node) {
    calendar.take_first(node);
    if node.share.flags.has(Flags::ACTIVE) {
        calendar.note(number, node);
    }
}

/// The earlier of two.
#[inline]
pub(super) const fn earlier(a: u64, b: u64) -> u64 {
    if before(a, b) { a } else { b }
}

/// The later of two.
#[inline]
pub(super) const fn later(a: u64, b: u64) -> u64 {
    if before(a, b) { b } else { a }
}

/// `v`, but not before `least` nor behind `most`.
#[inline]
pub(in crate::tree) const fn within(v: u64, least: u64, most: u64) -> u64 {
    if before(v, least) {
        least
    } else if before(most, v) {
        most
    } else {
        v
    }
}
