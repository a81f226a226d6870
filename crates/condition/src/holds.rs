//! Segments that wait for their moment: in order within a connection, the earliest moment of all
//! first. A bounded table; who finds no place in it passes at once.

use weir_packet::{Frame, Label};
use weir_units::{Instant, Way};

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
    way: Way,
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

    /// Lets an acknowledgement of the data of `half`, which travel this way, wait until `due`.
    ///
    /// # Errors
    /// There is no place: the frame comes back.
    pub(crate) fn hold(
        &mut self,
        frame: Frame,
        label: Label,
        due: Instant,
        half: &mut Half,
        way: Way,
    ) -> Result<(), Frame> {
        let Some(at) = self.free.pop() else { return Err(frame) };
        self.number += 1;
        let held = Some((frame, label));
        let place = Place { held, due, number: self.number, next: 0, stands: 0, way };
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
    /// one has changed: the label, the way of its data, and the new first one.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        first: impl FnOnce(&Label, Way, u16),
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
        let (next, way) = (place.next, place.way);
        if next == 0 {
            self.firsts.swap_remove(0);
        } else {
            self.firsts[0] = next;
        }
        self.settle(0);
        let left = self.leave(at)?;
        first(&left.1, way, next);
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

#[cfg(test)]
mod tests {
    use weir_packet::{Headers, Pool, Side};

    use super::*;

    struct World {
        holds: Holds,
        pool: Pool,
        halves: Vec<Half>,
    }

    impl World {
        fn new(places: usize, halves: usize) -> World {
            let pool = Pool::new(places + 1, 64);
            World { holds: Holds::new(places), pool, halves: vec![Half::default(); halves] }
        }

        /// Buffer `frame` of `half` waits until `ms`; returns the number of its buffer.
        fn hold(&mut self, half: usize, ms: u64) -> Option<u32> {
            let frame = self.pool.take()?;
            let (index, label) = (frame.index(), Label::new(Side::Lan, &Headers::EMPTY));
            let label = Label { host: u32::try_from(half).unwrap_or(0), ..label };
            let due = Instant::from_ns(ms * 1_000_000);
            match self.holds.hold(frame, label, due, &mut self.halves[half], Way::Up) {
                Ok(()) => Some(index),
                Err(frame) => {
                    self.pool.give(frame);
                    None
                }
            }
        }

        fn take(&mut self, ms: u64) -> Option<u32> {
            let (now, halves) = (Instant::from_ns(ms * 1_000_000), &mut self.halves);
            let (frame, _) = self.holds.take(now, |label, _, next| {
                let half = &mut halves[label.host as usize];
                half.first_held = next;
                half.last_held = if next == 0 { 0 } else { half.last_held };
            })?;
            let index = frame.index();
            self.pool.give(frame);
            Some(index)
        }
    }

    #[test]
    fn the_earliest_moment_goes_first_and_who_came_first_among_equals() {
        let mut world = World::new(8, 4);
        let [d, a, b, c] = [(0, 9), (1, 3), (2, 3), (3, 5)].map(|(h, ms)| world.hold(h, ms));
        assert_eq!(world.holds.next_at(), Some(Instant::from_ns(3_000_000)));
        assert_eq!(world.take(2), None);
        assert_eq!([world.take(9), world.take(9), world.take(9), world.take(9)], [a, b, c, d]);
        assert_eq!((world.holds.next_at(), world.holds.len()), (None, 0));
        let equals = [0, 1, 2, 3].map(|half| world.hold(half, 20));
        assert_eq!([0; 4].map(|_| world.take(20)), equals);
    }

    #[test]
    fn within_a_connection_nobody_overtakes_although_due_before() {
        let mut world = World::new(8, 2);
        let [a, b] = [5, 1].map(|ms| world.hold(0, ms));
        let c = world.hold(1, 3);
        assert_eq!(world.take(4), c);
        assert_eq!([world.take(4), world.take(5), world.take(5)], [None, a, b]);
    }

    #[test]
    fn what_is_let_go_early_leaves_in_order_and_wakes_nobody_later() {
        let mut world = World::new(8, 3);
        let [a, b] = [5, 6].map(|ms| world.hold(0, ms));
        let [c, d] = [7, 8].map(|ms| world.hold(1, ms));
        let e = world.hold(2, 9);
        world.holds.flush(&mut world.halves[1]);
        world.holds.flush(&mut world.halves[0]);
        let left = [0; 4].map(|now| world.take(now));
        assert_eq!(left, [c, d, a, b]);
        assert_eq!(world.holds.next_at(), Some(Instant::from_ns(9_000_000)));
        assert_eq!([world.take(8), world.take(9)], [None, e]);
    }

    #[test]
    fn a_full_table_says_so_and_has_room_again() {
        let mut world = World::new(2, 1);
        assert!(world.hold(0, 1).is_some() && world.hold(0, 2).is_some());
        assert!(!world.holds.has_room() && world.hold(0, 3).is_none());
        assert!(world.take(1).is_some() && world.holds.has_room());
        assert!(world.hold(0, 3).is_some());
    }

    /// Against a list that is searched: many connections, let go early now and then.
    #[test]
    fn whatever_happens_it_leaves_as_from_a_sorted_list() {
        let mut world = World::new(64, 16);
        let (mut model, mut random, mut now) = (Vec::<(u64, u32, usize)>::new(), 7u64, 0);
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let half = usize::try_from(random >> 60).unwrap_or(0);
            let ms = now + (random >> 50) % 40;
            match (random >> 40) % 8 {
                0..=4 => {
                    // as the stage does it: not before the one in front of it
                    let front = model.iter().filter(|m| m.2 == half).map(|m| m.0).max();
                    let ms = ms.max(front.unwrap_or(0));
                    model.extend(world.hold(half, ms).map(|index| (ms, index, half)));
                }
                5 => {
                    world.holds.flush(&mut world.halves[half]);
                    let early: Vec<_> = model.extract_if(.., |m| m.2 == half).collect();
                    for (_, index, _) in early {
                        assert_eq!(world.take(now), Some(index));
                    }
                }
                _ => {
                    now += 1;
                    while let Some(index) = world.take(now) {
                        let earliest = model.iter().map(|m| m.0).min().expect("one waited");
                        let at = model.iter().position(|m| m.1 == index).expect("it waited");
                        assert!(model[at].0 == earliest && earliest <= now);
                        model.remove(at);
                    }
                    assert!(model.iter().all(|m| m.0 > now), "somebody should have left");
                }
            }
            assert_eq!(world.holds.len(), model.len());
        }
    }
}
