//! TCP rate control: the stage, and what was done so far. The way of one segment through it is in
//! turn.rs.

mod export;

use weir_packet::{Frame, Headers, Label};
use weir_units::{ByWay, Instant, Way};

use crate::connection::Connection;
use crate::lane::{CHUNK, Lane};
use crate::segment::Segment;
use crate::told::{Edit, Memory, Told};
use crate::turn::Turn;

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// On to its queue.
    Pass,
    /// It waits until then: hand it to [`Conditioner::hold`].
    Hold(Instant),
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Windows that were made smaller.
    pub sized: u64,
    /// Acknowledgements that had to wait.
    pub paced: u64,
    /// Answers to a SYN that had to wait.
    pub answers_held: u64,
    /// Segment sizes that were made smaller.
    pub clamped: u64,
    /// Segments of connections whose beginning was not seen, let through as they are.
    pub unknown: u64,
    /// Segments that are signed, or of connections that are or that said something malformed, let
    /// through as they are.
    pub left_alone: u64,
    /// Segments that found no place among those that wait, and passed at once.
    pub no_room: u64,
    /// Segments with data that had come before.
    pub repeated: u64,
    /// Segments of open connections that their receiver must reject, let through as they are.
    pub rejected: u64,
}

/// The stage.
#[derive(Debug, Default)]
pub struct Conditioner {
    told: Box<[Told]>,
    lanes: ByWay<Vec<Box<[Lane]>>>,
    memory: Option<Box<Memory>>,
    counters: Counters,
    /// Whether a leaf asks for anything.
    is_asked: bool,
    /// How often somebody asked after a while in which nobody did.
    watch: u16,
}

impl Conditioner {
    /// One that does nothing until [`Conditioner::apply`] tells it more, with room for leaves of
    /// so many numbers.
    #[must_use]
    pub fn new(numbers: usize) -> Conditioner {
        let pieces = || Vec::with_capacity(numbers.div_ceil(CHUNK));
        Conditioner { lanes: ByWay { down: pieces(), up: pieces() }, ..Conditioner::default() }
    }

    /// Whether no connection is treated and none waits: nothing needs to be asked then.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.is_asked
    }

    /// Looks at what frames that are about to come need. Called for all frames of a burst before
    /// the first of them comes, it lets the processor fetch all of it at once.
    #[inline]
    pub fn expect(&self, way: Way, labels: &[Label]) {
        let Some(memory) = self.memory.as_deref() else { return };
        let (mine, theirs) = (&self.lanes[way], &self.lanes[way.other()]);
        let known = |label: &Label| memory.connections.get(label.flow.index as usize);
        let mut touched = 0;
        for label in labels {
            // both lines of it
            touched ^= known(label).map_or(0, |c| c.generation ^ c.halves.up.next);
            touched ^= lane(mine, label.leaf).map_or(0, Lane::peek);
        }
        for label in labels {
            let leaf = known(label).map_or(0, |c| c.halves[way.other()].leaf);
            touched ^= lane(theirs, leaf).map_or(0, Lane::peek);
        }
        // keeps the looks into the tables from being optimised away
        std::hint::black_box(touched);
    }

    /// What a segment becomes, which may be changed: its window and its segment size. `waiting`
    /// are the bytes in front of it in its leaf. Afterwards [`Conditioner::take`] may have frames
    /// that must go before it.
    ///
    /// Whatever is not a whole TCP segment of a known connection passes as it is.
    #[inline]
    pub fn frame(
        &mut self,
        now: Instant,
        bytes: &mut [u8],
        headers: &Headers,
        label: &Label,
        waiting: u32,
    ) -> Pacing {
        let Some(memory) = self.memory.as_deref_mut() else { return Pacing::Pass };
        let place = memory.connections.get_mut(label.flow.index as usize);
        let Some(connection) = place.filter(|_| label.kind.is_tcp()) else { return Pacing::Pass };
        if (connection.generation, connection.watch) != (label.flow.generation, self.watch) {
            connection.halves.values_mut().for_each(|half| memory.holds.flush(half));
            *connection = Connection::new(label.flow.generation, self.watch);
        }
        let Some(segment) = Segment::read(bytes, headers) else {
            if let Some(end) = Segment::end_of_piece(bytes, headers) {
                connection.halves[label.way].came_in_pieces(end);
            }
            // it must not overtake those before it
            memory.holds.flush(&mut connection.halves[label.way.other()]);
            return Pacing::Pass;
        };
        let at = micros(now);
        let mut turn = Turn {
            at,
            now,
            way: label.way,
            bytes,
            headers,
            label,
            segment,
            told: &self.told,
            lanes: &mut self.lanes,
            connection,
            holds: &mut memory.holds,
            counters: &mut self.counters,
        };
        if turn.segment.says_more && turn.is_signed() {
            return turn.stays_as_it_is();
        }
        turn.take(waiting)
    }

    /// Lets a segment wait as [`Conditioner::frame`] said.
    ///
    /// # Errors
    /// There is no place: it comes back and passes now.
    pub fn hold(&mut self, frame: Frame, label: Label, due: Instant) -> Result<(), Frame> {
        let Some(memory) = self.memory.as_deref_mut() else { return Err(frame) };
        // it answers data that travel the other way
        let way = label.way.other();
        let place = memory.connections.get_mut(label.flow.index as usize);
        let place = place.filter(|place| place.generation == label.flow.generation);
        let Some(connection) = place else { return Err(frame) };
        let half = &mut connection.halves[way];
        memory.holds.hold(frame, label, due, half, way)
    }

    /// Takes a segment that may go on at `now`, if there is one.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<(Frame, Label)> {
        let memory = self.memory.as_deref_mut()?;
        let Memory { connections, holds } = memory;
        holds.take(now, |label, way, next| {
            let connection = connections.get_mut(label.flow.index as usize);
            let connection = connection.filter(|c| c.generation == label.flow.generation);
            if let Some(connection) = connection {
                let half = &mut connection.halves[way];
                half.first_held = next;
                if next == 0 {
                    half.last_held = 0;
                }
            }
        })
    }

    /// When the first of those that wait may go on.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.memory.as_ref()?.holds.next_at()
    }

    /// Does from now on as `edit` says; what was replaced stays in it, to be freed elsewhere. Cost:
    /// a step for each leaf that differs.
    pub fn apply(&mut self, edit: &mut Edit) {
        std::mem::swap(&mut self.told, &mut edit.told);
        if edit.memory.is_some() && self.memory.is_none() {
            self.memory = edit.memory.take();
        }
        let was_asked = std::mem::replace(&mut self.is_asked, self.told.len() > 1);
        if self.is_asked && !was_asked {
            // what connections said meanwhile nobody heard
            self.watch = self.watch.wrapping_add(1);
        }
        for way in Way::ALL {
            let lanes = &mut self.lanes[way];
            while lanes.len() < edit.chunks[way].min(lanes.capacity())
                && let Some(piece) = edit.lanes[way].pop()
            {
                lanes.push(piece);
            }
            for leaf in &edit.leaves[way] {
                let piece = lanes.get_mut(leaf.number as usize / CHUNK);
                if let Some(piece) = piece {
                    piece[leaf.number as usize % CHUNK].tell(leaf);
                }
            }
        }
    }

    /// What a leaf gives its connections whose data travel this way.
    pub(crate) fn lane(&self, way: Way, leaf: u32) -> Option<&Lane> {
        lane(&self.lanes[way], leaf).filter(|lane| lane.told != 0)
    }

    /// Bytes of memory that the connections take; those that wait have a table of their own, whose
    /// size is the same for any number of connections.
    #[must_use]
    pub fn bytes_of_connections(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| size_of_val(&*memory.connections))
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many segments wait.
    #[must_use]
    pub fn held(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.holds.len())
    }
}

#[inline]
fn lane(lanes: &[Box<[Lane]>], leaf: u32) -> Option<&Lane> {
    lanes.get(leaf as usize / CHUNK)?.get(leaf as usize % CHUNK)
}

/// Time in microseconds, which comes around every 71 minutes: only differences are looked at.
#[expect(clippy::cast_possible_truncation, reason = "differences are what counts")]
const fn micros(now: Instant) -> u32 {
    (now.ns() / 1_000) as u32
}

#[cfg(test)]
mod tests {
    use weir_packet::{Build, Flow, Pool, Side, tcp};
    use weir_units::limits::HELD_ACKS;
    use weir_units::{Rate, Span};

    use super::*;
    use crate::told::{Leaf, Spec};

    fn spec(numbers: &[u32]) -> Spec {
        let rate = Rate::from_bps(64_000);
        let leaf = |&number: &u32| Leaf { number, told: 1, rate, fixed: false };
        let leaves = ByWay { up: numbers.iter().map(leaf).collect(), down: vec![] };
        Spec { told: vec![Told::default(), Told { window: true, ..Told::default() }], leaves }
    }

    fn treated(conditioner: &Conditioner) -> Vec<u32> {
        let numbers = 0..10_000;
        numbers.filter(|&number| conditioner.lane(Way::Up, number).is_some()).collect()
    }

    #[test]
    fn leaves_of_every_number_are_told_and_those_beyond_the_room_are_not() {
        let mut conditioner = Conditioner::new(5 * CHUNK);
        let policies: [&[u32]; 5] = [
            &[7, 1_023, 1_024, 3_500],
            &[7],
            &[7, 2_047, 2_048],
            &[4_096, 5_119, 5_120, 9_999],
            &[0, 5_000],
        ];
        let mut old = Spec::default();
        for numbers in policies {
            let new = spec(numbers);
            conditioner.apply(&mut Edit::between(&old, &new, 8));
            let fit: Vec<u32> = numbers.iter().copied().filter(|n| *n < 5_120).collect();
            assert_eq!(treated(&conditioner), fit);
            old = new;
        }
        assert!(!conditioner.is_idle());
        conditioner.apply(&mut Edit::between(&old, &Spec::default(), 8));
        assert!(conditioner.is_idle() && treated(&conditioner).is_empty());
    }

    #[test]
    fn what_is_not_there_is_left_alone() {
        let mut conditioner = Conditioner::default();
        let headers = Headers::EMPTY;
        let label = Label::new(Side::Lan, &headers);
        assert!(conditioner.is_idle());
        assert_eq!(conditioner.frame(Instant::ZERO, &mut [], &headers, &label, 0), Pacing::Pass);
        assert!(conditioner.take(Instant::ZERO).is_none() && conditioner.next_at().is_none());
        conditioner.apply(&mut Edit::default());
    }

    #[test]
    fn a_connection_that_goes_through_another_leaf_is_counted_there() {
        let told = vec![Told::default(), Told { window: true, ..Told::default() }];
        let mut conditioner = Conditioner::new(CHUNK);
        let spec = Spec { told, leaves: spec(&[3, 4]).leaves };
        conditioner.apply(&mut Edit::between(&Spec::default(), &spec, 8));
        let (lan, wan) = (([10, 0, 0, 1], 1_000).into(), ([192, 0, 2, 1], 80).into());
        let mut bytes = Build::tcp(lan, wan).tcp_flags(tcp::ACK).payload_len(9).to_vec();
        let headers = Headers::parse(&bytes);
        for (index, leaf) in [(0, 3), (1, 4), (0, 4)] {
            let flow = Flow { index, generation: 1 };
            let label = Label { flow, leaf, ..Label::new(Side::Lan, &headers) };
            conditioner.frame(Instant::from_ns(1 << 42), &mut bytes, &headers, &label, 0);
        }
        assert_eq!(conditioner.lane(Way::Up, 4).unwrap().sessions(), 2);
    }

    #[test]
    fn an_answer_that_finds_no_room_to_wait_passes_and_is_counted() {
        let told = vec![Told::default(), Told { pace_acks: true, ..Told::default() }];
        let leaves = spec(&[3]).leaves;
        let mut conditioner = Conditioner::new(CHUNK);
        let edit = &mut Edit::between(&Spec::default(), &Spec { told, leaves }, HELD_ACKS + 2);
        conditioner.apply(edit);
        let mut pool = Pool::new(HELD_ACKS, 64);
        let (lan, wan) = (([10, 0, 0, 1], 1_000).into(), ([192, 0, 2, 1], 80).into());
        let syn = Build::tcp(lan, wan).tcp_flags(tcp::SYN).to_vec();
        let answer = Build::tcp(wan, lan).tcp_flags(tcp::SYN | tcp::ACK).tcp_ack(1).to_vec();
        let mut come = |side, index, ms, bytes: &[u8]| {
            let headers = Headers::parse(bytes);
            let flow = Flow { index, generation: 1 };
            let label = Label { flow, leaf: 3, ..Label::new(side, &headers) };
            let now = Instant::ZERO + Span::from_ms(ms);
            let fate = conditioner.frame(now, &mut bytes.to_vec(), &headers, &label, 0);
            if let Pacing::Hold(due) = fate {
                conditioner.hold(pool.fill(bytes).unwrap(), label, due).unwrap();
            }
            (fate, conditioner.counters().answers_held, conditioner.counters().no_room)
        };
        for index in 0..u32::try_from(HELD_ACKS).unwrap() {
            come(Side::Lan, index, 0, &syn);
            let (fate, held, no_room) = come(Side::Wan, index, 40, &answer);
            assert!(fate != Pacing::Pass && held == u64::from(index) + 1 && no_room == 0);
        }
        for (more, index) in (1..).zip([HELD_ACKS, HELD_ACKS + 1]) {
            let index = u32::try_from(index).unwrap();
            come(Side::Lan, index, 0, &syn);
            let counted = (Pacing::Pass, HELD_ACKS as u64, more);
            assert_eq!(come(Side::Wan, index, 40, &answer), counted);
        }
        while let Some((frame, _)) = conditioner.take(Instant::MAX) {
            pool.give(frame);
        }
    }
}
