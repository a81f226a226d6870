//! Segments that wait for their moment: in order within a connection, the earliest moment of all
//! first. A bounded table; who finds no place in it passes at once.

use weir_packet::{Frame, Label};
use weir_units::Instant;

use crate::connection::Half;

/// The table. Its places are counted from 1, so that 0 can say: none.
#[derive(Debug)]
pub(crate) struct Holds {
    places: Box<[Place]>,
    free: Vec<u16>,
    /// The first ones of connections: a heap, the earliest at its top. Each knows where it stands,
    /// so that it can be taken out of the middle.
    firsts: Vec<u16>,
    /// How many ever waited: of those with one moment, who came first goes first.
    number: u64,
    /// Let go before their moment: a chain in order, its first and its last.
    ready: (u16, u16),
}

#[derive(Debug, Default)]
struct Place {
    held: Option<(Frame, Label)>,
    due: Instant,
    number: u64,
    /// The next of the connection, or of those let go.
    next: u16,
    /// Where it stands among the first ones.
    stands: u16,
    side: u8,
}

impl Holds {
    pub(crate) fn new(places: usize) -> Holds {
        let count = u16::try_from(places).unwrap_or(u16::MAX - 1).min(u16::MAX - 1);
        Holds {
            places: (0..=count).map(|_| Place::default()).collect(),
            free: (1..=count).rev().collect(),
            firsts: Vec::with_capacity(usize::from(count)),
            number: 0,
            ready: (0, 0),
        }
    }

    /// Lets an acknowledgement of the data of `half`, which come from `side`, wait until `due`.
    ///
    /// # Errors
    /// There is no place: the frame comes back.
    pub(crate) fn hold(
        &mut self,
        frame: Frame,
        label: Label,
        due: Instant,
        half: &mut Half,
        side: u8,
    ) -> Result<(), Frame> {
        let Some(at) = self.free.pop() else { return Err(frame) };
        self.number += 1;
        let held = Some((frame, label));
        let place = Place { held, due, number: self.number, next: 0, stands: 0, side };
        self.places[usize::from(at)] = place;
        if half.first_held == 0 {
            half.first_held = at;
            self.firsts.push(at);
            self.rise(self.firsts.len() - 1);
        } else {
            self.places[usize::from(half.last_held)].next = at;
        }
        half.last_held = at;
        Ok(())
    }

    /// Lets go all that wait for `half`, in order; [`Holds::take`] hands them out.
    #[inline]
    pub(crate) fn flush(&mut self, half: &mut Half) {
        if half.first_held != 0 {
            self.let_go(half.first_held, half.last_held);
            (half.first_held, half.last_held) = (0, 0);
        }
    }

    fn let_go(&mut self, first: u16, last: u16) {
        let stands = usize::from(self.places[usize::from(first)].stands);
        self.firsts.swap_remove(stands);
        self.settle(stands);
        match self.ready {
            (0, _) => self.ready = (first, last),
            (head, tail) => {
                self.places[usize::from(tail)].next = first;
                self.ready = (head, last);
            }
        }
    }

    /// Takes one that was let go, or whose moment has come by `now`. `first` is told whose first
    /// one has changed: the label, the side of its data, and the new first one.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        first: impl FnOnce(&Label, u8, u16),
    ) -> Option<(Frame, Label)> {
        if self.ready.0 != 0 {
            let (at, last) = self.ready;
            let next = if at == last { 0 } else { self.places[usize::from(at)].next };
            self.ready = (next, if next == 0 { 0 } else { last });
            return self.leave(at);
        }
        let &at = self.firsts.first()?;
        let place = &self.places[usize::from(at)];
        if place.due > now {
            return None;
        }
        let (next, side) = (place.next, place.side);
        if next == 0 {
            self.firsts.swap_remove(0);
        } else {
            self.firsts[0] = next;
        }
        self.settle(0);
        let left = self.leave(at)?;
        first(&left.1, side, next);
        Some(left)
    }

    fn leave(&mut self, at: u16) -> Option<(Frame, Label)> {
        self.free.push(at);
        self.places[usize::from(at)].held.take()
    }

    /// Finds the right place for who was put at `at`.
    fn settle(&mut self, at: usize) {
        if at < self.firsts.len() {
            self.rise(at);
            // whoever stands there now is who was put there, or stood above and is early
            self.sink(at);
        }
    }

    fn rise(&mut self, mut at: usize) {
        self.stand(at);
        while at > 0 && self.is_before(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            let right = left + 1;
            let is_right = right < self.firsts.len() && self.is_before(right, left);
            let below = if is_right { right } else { left };
            if below >= self.firsts.len() || !self.is_before(below, at) {
                return;
            }
            self.swap(at, below);
            at = below;
        }
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        let key = |at: usize| {
            let place = &self.places[usize::from(self.firsts[at])];
            (place.due, place.number)
        };
        key(a) < key(b)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.firsts.swap(a, b);
        self.stand(a);
        self.stand(b);
    }

    fn stand(&mut self, at: usize) {
        self.places[usize::from(self.firsts[at])].stands = u16::try_from(at).unwrap_or(0);
    }

    /// The moment of the first one; long ago for one that was let go.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        if self.ready.0 != 0 {
            return Some(Instant::ZERO);
        }
        self.firsts.first().map(|&at| self.places[usize::from(at)].due)
    }

    /// Whether one more may wait.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - 1 - self.free.len()
    }
}
