//! Acknowledgements that wait for their moment: in order within a connection, the earliest moment
//! of all first. A bounded table; who finds no place in it passes at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_packet::{Frame, Label};
use weir_units::Instant;

use crate::connection::Half;

/// The table.
#[derive(Debug)]
pub(crate) struct Holds {
    places: Box<[Place]>,
    free: Vec<u16>,
    /// Moments of the first ones of connections. One whose number is not that of its place any
    /// more is stale.
    dues: BinaryHeap<Reverse<(Instant, u32, u16)>>,
    number: u32,
    /// Let go before their moment, in order.
    ready: Vec<u16>,
    ready_at: usize,
}

#[derive(Debug, Default)]
struct Place {
    held: Option<(Frame, Label)>,
    due: Instant,
    number: u32,
    /// The next of the connection, counted from 1.
    next: u16,
    side: u8,
}

impl Holds {
    pub(crate) fn new(places: usize) -> Holds {
        let count = u16::try_from(places).unwrap_or(u16::MAX - 1).min(u16::MAX - 1);
        Holds {
            places: (0..count).map(|_| Place::default()).collect(),
            free: (1..=count).rev().collect(),
            dues: BinaryHeap::with_capacity(2 * usize::from(count)),
            number: 0,
            ready: Vec::with_capacity(usize::from(count)),
            ready_at: 0,
        }
    }

    fn place(&mut self, at: u16) -> &mut Place {
        &mut self.places[usize::from(at) - 1]
    }

    /// Whether one more may wait.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() && self.dues.len() < self.dues.capacity()
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
        if !self.has_room() {
            return Err(frame);
        }
        let Some(at) = self.free.pop() else { return Err(frame) };
        self.number = self.number.wrapping_add(1).max(1);
        let number = self.number;
        *self.place(at) = Place { held: Some((frame, label)), due, number, next: 0, side };
        if half.first_held == 0 {
            half.first_held = at;
            self.dues.push(Reverse((due, number, at)));
        } else {
            self.place(half.last_held).next = at;
        }
        half.last_held = at;
        Ok(())
    }

    /// Lets go all that wait for `half`, in order; [`Holds::take`] hands them out.
    pub(crate) fn flush(&mut self, half: &mut Half) {
        let mut at = half.first_held;
        while at != 0 {
            self.ready.push(at);
            at = self.place(at).next;
        }
        (half.first_held, half.last_held) = (0, 0);
    }

    /// The moment of the first one.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.dues.peek().map(|Reverse((due, ..))| *due)
    }

    /// Takes one that was let go, or whose moment has come by `now`. `first` is told whose first
    /// one has changed: the label, the side of its data, and the new first one.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        first: impl FnOnce(&Label, u8, u16),
    ) -> Option<(Frame, Label)> {
        if let Some(&at) = self.ready.get(self.ready_at) {
            self.ready_at += 1;
            return self.leave(at);
        }
        self.ready.clear();
        self.ready_at = 0;
        while let Some(&Reverse((due, number, at))) = self.dues.peek() {
            if due > now {
                return None;
            }
            self.dues.pop();
            let place = self.place(at);
            let (next, side) = (place.next, place.side);
            if place.number != number || place.held.is_none() {
                continue;
            }
            if next != 0 {
                let behind = self.place(next);
                let entry = (behind.due, behind.number, next);
                self.dues.push(Reverse(entry));
            }
            let left = self.leave(at)?;
            first(&left.1, side, next);
            return Some(left);
        }
        None
    }

    fn leave(&mut self, at: u16) -> Option<(Frame, Label)> {
        let place = self.place(at);
        place.number = 0;
        let held = place.held.take();
        self.free.push(at);
        held
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
