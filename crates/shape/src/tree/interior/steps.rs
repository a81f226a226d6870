//! A node with very many children gets another order of theirs some at a time, while frames come
//! and go: virtual time and its scale stay, whoever has another share gets it, and all who are
//! noted in the calendars and heaps of before are noted anew. Until that is over the next child is
//! looked for in both.

use weir_units::Instant;

use super::Interior;
use crate::tree::calendar::Calendar;
use crate::tree::node::{Flags, Node, Share};
use crate::tree::owed::{Due, Owed};

impl Interior {
    /// Makes room for the calendars of the order before. Comes back as many calendars as there are
    /// in this one, for [`Interior::closes`].
    pub(crate) fn makes_room_for(&mut self, before: &Interior) -> Box<[Calendar]> {
        let places = |count| std::iter::repeat_with(Calendar::closing).take(count);
        let after = places(self.kinds.len()).collect();
        let own = std::mem::take(&mut self.kinds);
        self.kinds = own.into_iter().chain(places(before.kinds.len())).collect();
        if let (None, Some(owed)) = (&self.owed, &before.owed) {
            self.owed = Some(Box::new(Owed::with_capacity(owed.capacity())));
        }
        after
    }

    /// Whether any child's guarantee has a clock.
    pub(crate) const fn has_clocks(&self) -> bool {
        self.owed.is_some()
    }

    /// Whether some are still noted where they were before an edit.
    pub(crate) fn is_closing(&self) -> bool {
        let is_closing = |calendar: Option<&Calendar>| calendar.is_some_and(|c| c.is_closing);
        is_closing(self.kinds.first()) || is_closing(self.kinds.last())
    }

    /// Children are noted in the calendars of before while some have their shares of before, where
    /// there is one of their kind; then in those of `new`.
    pub(crate) fn opens(
        &mut self,
        now: Instant,
        new: &mut Interior,
        nodes: &mut [Node],
        dues: &mut [Due],
    ) {
        self.has_company(now, nodes, dues);
        // none are left, unless somebody did not wait for the end of the edit before
        let mut all = usize::MAX;
        self.reviews(&mut all, (nodes, dues), &mut Interior::default());
        let room = new.kinds.iter_mut().filter(|calendar| calendar.is_closing);
        let old = self.kinds.iter_mut().filter(|calendar| !calendar.is_closing);
        for (room, old) in room.zip(old) {
            std::mem::swap(room, old);
            room.is_closing = true;
        }
        std::mem::swap(&mut self.kinds, &mut new.kinds);
        // they come first until everyone has the share that is new
        self.swaps_calendars();
        match (&mut self.owed, &mut new.owed) {
            (Some(owed), Some(new)) => owed.begins_anew(new),
            (owed @ None, new) => std::mem::swap(owed, new),
            (Some(_), None) => {}
        }
    }

    /// The calendars that are looked at first come last from now on: those of an edit, or those of
    /// before it.
    fn swaps_calendars(&mut self) {
        let Some(first) = self.kinds.first().map(|calendar| calendar.is_closing) else { return };
        let count = self.kinds.iter().filter(|calendar| calendar.is_closing == first).count();
        self.kinds.rotate_left(count);
    }

    /// A child has another share from now on, or is new here. Time has come to order.
    pub(crate) fn changes(
        &mut self,
        now: Instant,
        number: u32,
        (nodes, dues): (&mut [Node], &mut [Due]),
        told: (&Share, &Due),
    ) {
        let (node, due) = (&mut nodes[number as usize], &mut dues[number as usize]);
        let was = node.share;
        if was.flags.has(Flags::ACTIVE) {
            // it is counted anew
            self.count -= 1;
            self.active_weight -= was.weight;
            self.sleeps(node);
            node.share.flags.set(Flags::ACTIVE);
        }
        self.per_byte = 0;
        self.adopts(now, number, node, told, due);
    }

    /// Notes as many anew as `budget` says. Whether all are; what was taken from `memory` is there
    /// again then.
    pub(crate) fn reviews(
        &mut self,
        budget: &mut usize,
        (nodes, dues): (&mut [Node], &[Due]),
        memory: &mut Interior,
    ) -> bool {
        if self.kinds.first().is_some_and(|calendar| calendar.is_closing) {
            self.swaps_calendars();
        }
        let alone = self.alone();
        for at in 0..self.kinds.len() {
            while *budget > 0 && self.kinds[at].is_closing {
                let Some(number) = self.kinds[at].first() else { break };
                let node = &mut nodes[number as usize];
                self.kinds[at].take_first(node);
                *budget -= 1;
                if node.share.flags.has(Flags::ACTIVE) && alone != Some(number) {
                    self.calendar(node.share.group).note(number, node);
                }
            }
        }
        let is_closed = |calendar: &Calendar| calendar.is_empty() || !calendar.is_closing;
        if !self.kinds.iter().all(is_closed) {
            return false;
        }
        match (&mut self.owed, &mut memory.owed) {
            (Some(owed), Some(memory)) => owed.reviews(budget, (nodes, dues), memory),
            _ => true,
        }
    }

    /// Everyone is noted anew: the calendars of before are left in `after`, and in `clocks` the
    /// clocks, if nobody has one any more.
    pub(crate) fn closes(
        &mut self,
        after: &mut Box<[Calendar]>,
        has_clocks: bool,
        clocks: &mut Option<Box<Owed>>,
    ) {
        after.swap_with_slice(&mut self.kinds[..after.len()]);
        std::mem::swap(&mut self.kinds, after);
        if !has_clocks {
            std::mem::swap(&mut self.owed, clocks);
        }
    }
}
