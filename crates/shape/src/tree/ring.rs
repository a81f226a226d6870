//! Turns: members of a ring are served one after the other, each until its credit of bytes is used
//! up (deficit round robin, Shreedhar and Varghese 1995). A member that just began to send goes
//! before those that have been sending for longer, for one credit (as in FQ-CoDel, RFC 8290). One
//! that fell silent with credit left stays for a round, and is again among those that just began
//! when its next frame comes, if what is left of the credit covers that; once the others have had
//! their next turns it has a new credit, as they have. So whoever sends less than its part in a
//! round waits for others that began or came back, a credit each at most, and not for those that
//! have been sending all along. A frame that is not covered waits for the round, as the credit of
//! the next one is not touched before that has come; else one that always has a single frame
//! waiting would go first for ever.
//!
//! Used for the connections of a leaf, and for its hosts and the connections of each.

use std::ops::IndexMut;

use super::node::NONE;

/// What a member may send in its turn: a full frame on any link.
pub(crate) const QUANTUM: i32 = 1_538;

/// What a member knows of its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    before: u32,
    behind: u32,
    /// Bytes that it may still send.
    pub(crate) credit: i32,
    pub(crate) place: Place,
    /// The round that its credit is of.
    round: u16,
}

/// Where a member is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: it has nothing to send, and the last turn is over.
    #[default]
    Off,
    /// Among those that just began.
    New,
    /// Among those that have sent in their turn.
    Old,
    /// There as well, but it fell silent with credit left.
    Silent,
    /// It has reached what it may have, and waits for a moment.
    Held,
    /// It waits for another to end.
    Waiting,
}

impl Default for Turn {
    fn default() -> Self {
        Turn { before: NONE, behind: NONE, credit: 0, place: Place::Off, round: 0 }
    }
}

/// Whoever takes turns.
pub(crate) trait Member {
    fn turn(&mut self) -> &mut Turn;
}

/// The members of rings, by number.
pub(crate) trait Members: IndexMut<u32, Output: Member> {}

impl<T: IndexMut<u32, Output: Member>> Members for T {}

/// Members in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        List { first: NONE, last: NONE }
    }
}

impl List {
    #[inline]
    pub(crate) const fn first(&self) -> Option<u32> {
        if self.first == NONE { None } else { Some(self.first) }
    }

    #[inline]
    pub(crate) fn append<T: Members>(&mut self, members: &mut T, id: u32) {
        let turn = members[id].turn();
        (turn.before, turn.behind) = (self.last, NONE);
        match self.last {
            NONE => self.first = id,
            last => members[last].turn().behind = id,
        }
        self.last = id;
    }

    /// In front of all others.
    #[inline]
    pub(crate) fn prepend<T: Members>(&mut self, members: &mut T, id: u32) {
        let turn = members[id].turn();
        (turn.before, turn.behind) = (NONE, self.first);
        match self.first {
            NONE => self.last = id,
            first => members[first].turn().before = id,
        }
        self.first = id;
    }

    #[inline]
    pub(crate) fn remove<T: Members>(&mut self, members: &mut T, id: u32) {
        let turn = members[id].turn();
        let (before, behind) = (turn.before, turn.behind);
        match before {
            NONE => self.first = behind,
            before => members[before].turn().behind = behind,
        }
        match behind {
            NONE => self.last = before,
            behind => members[behind].turn().before = before,
        }
    }
}

/// Members that take turns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ring {
    new: List,
    old: List,
    /// Rounds that those who have been sending for longer have had.
    round: u16,
}

impl Ring {
    pub(crate) const fn is_empty(&self) -> bool {
        self.new.first().is_none() && self.old.first().is_none()
    }

    /// Whether there is one member only.
    pub(crate) const fn is_single(&self) -> bool {
        match (self.new.first(), self.old.first()) {
            (Some(first), None) => first == self.new.last,
            (None, Some(first)) => first == self.old.last,
            _ => false,
        }
    }

    /// Anyone.
    pub(crate) fn any(&self) -> Option<u32> {
        self.new.first().or_else(|| self.old.first())
    }

    /// Those whose turn is next: of those that just began, and of the others.
    pub(crate) const fn next_ones(&self) -> [Option<u32>; 2] {
        [self.new.first(), self.old.first()]
    }

    /// Whose turn comes behind that of this one.
    pub(crate) fn behind<T: Members>(members: &mut T, id: u32) -> Option<u32> {
        let behind = members[id].turn().behind;
        (behind != NONE).then_some(behind)
    }

    /// A member that was nowhere begins to send; in a hurry, before the others that do.
    #[inline]
    pub(crate) fn begin<T: Members>(&mut self, members: &mut T, id: u32, in_a_hurry: bool) {
        let turn = members[id].turn();
        (turn.credit, turn.round) = (QUANTUM, self.round);
        self.join_new(members, id, in_a_hurry);
    }

    #[inline]
    fn join_new<T: Members>(&mut self, members: &mut T, id: u32, in_a_hurry: bool) {
        members[id].turn().place = Place::New;
        if in_a_hurry {
            self.new.prepend(members, id);
        } else {
            self.new.append(members, id);
        }
    }

    /// A member has so many bytes to send again: if it fell silent in its turn and what is left of
    /// its credit covers them, it goes first.
    #[inline]
    pub(crate) fn returns<T: Members>(
        &mut self,
        members: &mut T,
        id: u32,
        bytes: i32,
        in_a_hurry: bool,
    ) {
        let turn = members[id].turn();
        if turn.place != Place::Silent {
            return;
        }
        if turn.round != self.round {
            // the others have had their next turns since
            (turn.credit, turn.round) = (turn.credit.max(QUANTUM), self.round);
        }
        if turn.credit >= bytes {
            self.leave(members, id);
            self.join_new(members, id, in_a_hurry);
        }
    }

    /// A member comes back that was kept away for a while: behind all others.
    pub(crate) fn resume<T: Members>(&mut self, members: &mut T, id: u32) {
        let turn = members[id].turn();
        (turn.place, turn.credit) = (Place::Old, turn.credit.max(1));
        turn.round = self.round.wrapping_add(1);
        self.old.append(members, id);
    }

    /// Whose turn it is.
    #[inline]
    pub(crate) fn next<T: Members>(&mut self, members: &mut T) -> Option<u32> {
        loop {
            let id = self.any()?;
            let turn = members[id].turn();
            if turn.place == Place::Old {
                // whoever has its turn is of the round that all are in
                self.round = turn.round;
            }
            if turn.credit > 0 {
                return Some(id);
            }
            // a frame longer than a quantum takes several turns
            self.next_turn(members, id);
        }
    }

    /// The member whose turn it is has sent so much.
    #[inline]
    pub(crate) fn sent<T: Members>(&mut self, members: &mut T, id: u32, bytes: i32) {
        let turn = members[id].turn();
        turn.credit = turn.credit.saturating_sub(bytes);
        if turn.credit <= 0 {
            self.next_turn(members, id);
        }
    }

    /// The turn of a member is over, and the credit of the next is its own.
    #[inline(never)]
    fn next_turn<T: Members>(&mut self, members: &mut T, id: u32) {
        let turn = members[id].turn();
        turn.credit = turn.credit.saturating_add(QUANTUM);
        turn.round = self.round.wrapping_add(1);
        self.rotate(members, id);
    }

    /// The member whose turn it is has nothing to send; returns whether it goes out of the ring.
    #[inline]
    pub(crate) fn has_nothing<T: Members>(&mut self, members: &mut T, id: u32) -> bool {
        let leaves = !self.pauses(members, id);
        if leaves {
            self.leave(members, id);
        }
        leaves
    }

    /// The member whose turn it is has nothing to send. It stays for a round, so that it cannot
    /// begin anew at once. Returns whether it stays.
    #[inline]
    pub(crate) fn pauses<T: Members>(&mut self, members: &mut T, id: u32) -> bool {
        let stays = members[id].turn().place != Place::Silent && !self.is_single();
        if stays {
            self.falls_silent(members, id);
        }
        stays
    }

    /// A member that has credit left goes behind all others.
    #[inline]
    pub(crate) fn falls_silent<T: Members>(&mut self, members: &mut T, id: u32) {
        self.rotate(members, id);
        members[id].turn().place = Place::Silent;
    }

    /// A member goes out of the ring.
    pub(crate) fn leave<T: Members>(&mut self, members: &mut T, id: u32) {
        match std::mem::take(&mut members[id].turn().place) {
            Place::New => self.new.remove(members, id),
            Place::Old | Place::Silent => self.old.remove(members, id),
            Place::Off | Place::Held | Place::Waiting => {}
        }
    }

    /// To the end of those that have sent in their turn.
    #[inline]
    fn rotate<T: Members>(&mut self, members: &mut T, id: u32) {
        self.leave(members, id);
        members[id].turn().place = Place::Old;
        self.old.append(members, id);
    }
}
