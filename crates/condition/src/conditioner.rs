//! TCP rate control: what happens to a segment on its way through the box. A segment brings data
//! of one half of its connection and answers those of the other.

use weir_packet::{Frame, Headers, Label, Net, Side, edit, tcp};
use weir_units::{Instant, Rate, Span};

use crate::connection::{Connection, Half, NO_SCALE, State};
use crate::holds::Holds;
use crate::lane::{CHUNK, Lane};
use crate::segment::{Opening, Segment, is_after};
use crate::told::{Edit, Loss, Memory, Told};
use crate::{pacing, window};

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
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
    /// Segments of connections that said something malformed, let through as they are.
    pub left_alone: u64,
    /// Segments that found no place among those that wait, and passed at once.
    pub no_room: u64,
    /// Segments with data that had come before.
    pub repeated: u64,
}

/// The stage.
#[derive(Debug, Default)]
pub struct Conditioner {
    told: Box<[Told]>,
    lanes: [Vec<Box<[Lane]>>; 2],
    memory: Option<Box<Memory>>,
    counters: Counters,
    /// Whether no leaf asks for anything.
    idle: bool,
}

impl Conditioner {
    /// One that does nothing until [`Conditioner::apply`] tells it more, with room for leaves of
    /// so many numbers.
    #[must_use]
    pub fn new(numbers: usize) -> Conditioner {
        let pieces = || Vec::with_capacity(numbers.div_ceil(CHUNK));
        Conditioner { lanes: [pieces(), pieces()], idle: true, ..Conditioner::default() }
    }

    /// Whether no connection is treated and none waits: nothing needs to be asked then.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.idle
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
    ) -> Fate {
        let Some(memory) = self.memory.as_deref_mut() else { return Fate::Pass };
        let place = memory.connections.get_mut(label.flow.index as usize);
        let Some(connection) = place.filter(|_| label.kind.is_tcp()) else { return Fate::Pass };
        if connection.generation != label.flow.generation {
            memory.holds.flush(&mut connection.halves[0]);
            memory.holds.flush(&mut connection.halves[1]);
            *connection = Connection::new(label.flow.generation);
        }
        let Some(segment) = Segment::read(bytes, headers) else { return Fate::Pass };
        let at = micros(now);
        let turn = Turn {
            at,
            now,
            side: label.side as usize,
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
        turn.take(waiting)
    }

    /// Lets a segment wait as [`Conditioner::frame`] said.
    ///
    /// # Errors
    /// There is no place: it comes back and passes now.
    pub fn hold(&mut self, frame: Frame, label: Label, due: Instant) -> Result<(), Frame> {
        let Some(memory) = self.memory.as_deref_mut() else { return Err(frame) };
        // it answers data from the other side
        let side = label.side.other();
        let place = memory.connections.get_mut(label.flow.index as usize);
        let Some(connection) = place else { return Err(frame) };
        let half = &mut connection.halves[side as usize];
        let held = memory.holds.hold(frame, label, due, half, side as u8);
        self.counters.no_room += u64::from(held.is_err());
        held
    }

    /// Takes a segment that may go on at `now`, if there is one.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<(Frame, Label)> {
        let memory = self.memory.as_deref_mut()?;
        let Memory { connections, holds } = memory;
        holds.take(now, |label, side, next| {
            let connection = connections.get_mut(label.flow.index as usize);
            let connection = connection.filter(|c| c.generation == label.flow.generation);
            if let Some(connection) = connection {
                let half = &mut connection.halves[usize::from(side)];
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
        self.idle = true;
        for (side, lanes) in self.lanes.iter_mut().enumerate() {
            while lanes.len() < lanes.capacity()
                && lanes.len() < edit.lanes[side].len()
                && let Some(piece) = edit.lanes[side].pop()
            {
                lanes.push(piece);
            }
            for leaf in &edit.leaves[side] {
                let piece = lanes.get_mut(leaf.number as usize / CHUNK);
                if let Some(piece) = piece {
                    piece[leaf.number as usize % CHUNK].tell(leaf);
                }
            }
        }
        self.idle = self.told.len() <= 1;
    }

    /// What a leaf gives its connections whose data come in from `side`.
    #[must_use]
    pub fn lane(&self, side: Side, leaf: u32) -> Option<&Lane> {
        let piece = self.lanes[side as usize].get(leaf as usize / CHUNK)?;
        piece.get(leaf as usize % CHUNK).filter(|lane| lane.told != 0)
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

/// Microseconds that windows are let go after a loss.
const RELEASED: u32 = 2_000_000;

/// Time in microseconds, which comes around every 71 minutes: only differences are looked at.
#[expect(clippy::cast_possible_truncation, reason = "differences are what counts")]
const fn micros(now: Instant) -> u32 {
    (now.ns() / 1_000) as u32
}

/// One segment and what it concerns.
struct Turn<'m> {
    at: u32,
    now: Instant,
    /// Where it came in.
    side: usize,
    bytes: &'m mut [u8],
    headers: &'m Headers,
    label: &'m Label,
    segment: Segment,
    told: &'m [Told],
    lanes: &'m mut [Vec<Box<[Lane]>>; 2],
    connection: &'m mut Connection,
    holds: &'m mut Holds,
    counters: &'m mut Counters,
}

impl Turn<'_> {
    fn take(mut self, waiting: u32) -> Fate {
        if self.segment.has(tcp::RST) {
            self.broken_off();
            return Fate::Pass;
        }
        if self.segment.has(tcp::SYN) {
            return self.opens();
        }
        match self.connection.state {
            State::LeftAlone => {
                self.counters.left_alone += 1;
                return Fate::Pass;
            }
            State::Unknown => self.counters.unknown += 1,
            State::Opening | State::Open => {}
        }
        if self.segment.data > 0 || self.segment.has(tcp::FIN) {
            self.brings_data(waiting);
        }
        match self.segment.has(tcp::ACK) {
            true => self.answers(),
            false => Fate::Pass,
        }
    }

    fn broken_off(&mut self) {
        for side in [0, 1] {
            self.ends(side);
            let half = &mut self.connection.halves[side];
            self.holds.flush(half);
        }
    }

    /// The sender of `side` has no more to send.
    fn ends(&mut self, side: usize) {
        let half = &mut self.connection.halves[side];
        if let Some(lane) = lane(&mut self.lanes[side], half.leaf) {
            lane.ended(&mut half.counted);
        }
    }

    /// A SYN, or the answer to one.
    fn opens(&mut self) -> Fate {
        let connection = &mut *self.connection;
        for half in &mut connection.halves {
            self.holds.flush(half);
        }
        let Some(opening) = Opening::read(self.bytes, self.headers) else {
            *connection = Connection::new(connection.generation);
            connection.state = State::LeftAlone;
            self.counters.left_alone += 1;
            return Fate::Pass;
        };
        let (mine, theirs) = (self.side, self.side ^ 1);
        let is_answer = self.segment.has(tcp::ACK);
        let again = connection.halves[mine].next == self.segment.end();
        let goes_on = is_answer || again && connection.state == State::Opening;
        if !goes_on {
            *connection = Connection::new(connection.generation);
            connection.state = State::Opening;
        }
        connection.halves[mine].leaf = self.label.leaf;
        connection.halves[mine].sent(self.at, &self.segment);
        let mss = self.clamp(opening);
        let connection = &mut *self.connection;
        let half = &mut connection.halves[theirs];
        half.mss = mss;
        if connection.state != State::Open {
            half.scale = opening.scale.unwrap_or(NO_SCALE);
        }
        if !is_answer || connection.state == State::Unknown {
            return Fate::Pass;
        }
        if connection.state == State::Opening {
            // shifting counts if both sides said so
            let scales = [0, 1].map(|side| connection.halves[side].scale);
            let both = scales.iter().all(|&scale| scale != NO_SCALE);
            for (half, scale) in connection.halves.iter_mut().zip(scales) {
                half.scale = if both { scale } else { 0 };
            }
            connection.state = State::Open;
        }
        connection.halves[theirs].answered(self.at, &self.segment);
        // the window of a SYN is never shifted
        self.size(0);
        self.wait_for_a_turn()
    }

    /// Makes the segments smaller that the other side may send; returns how large they are.
    fn clamp(&mut self, opening: Opening) -> u16 {
        let theirs = self.side ^ 1;
        let known = self.connection.halves[theirs].next != 0;
        let leaf = match known {
            true => self.connection.halves[theirs].leaf,
            // its frames have not come yet, but those of a class have one number both ways
            false => self.label.leaf,
        };
        let most = told(self.told, &self.lanes[theirs], leaf).mss;
        let most = match self.headers.net {
            Net::V6 => most.saturating_sub(20),
            _ => most,
        };
        let asked = opening.mss.unwrap_or(0);
        if most != 0 && edit::clamp_mss(self.bytes, self.headers, most) {
            self.counters.clamped += 1;
            return most;
        }
        asked
    }

    /// Where a turn takes long, the answer to a SYN waits a part of it: from the round trip that
    /// they see, both sides learn how long their first segment may take.
    fn wait_for_a_turn(&mut self) -> Fate {
        let connection = &self.connection;
        let mut turn = 0;
        for side in [0, 1] {
            let leaf = connection.halves[side].leaf;
            if told(self.told, &self.lanes[side], leaf).pace_acks
                && let Some(lane) = lane(&mut self.lanes[side], leaf)
            {
                turn = turn.max(lane.turn_of_a_new_one());
            }
        }
        let since = self.at.wrapping_sub(connection.halves[self.side ^ 1].timed_at());
        let wait = pacing::syn_answer(turn).saturating_sub(since);
        if wait == 0 || since > 1_000_000 || !self.holds.has_room() {
            return Fate::Pass;
        }
        self.counters.answers_held += 1;
        // what it waits here is no part of the way to the host and back
        self.connection.halves[self.side].begins_at(self.at.wrapping_add(wait));
        Fate::Hold(self.now + Span::from_us(u64::from(wait)))
    }

    /// Data, or the end of them.
    fn brings_data(&mut self, waiting: u32) {
        let side = self.side;
        let half = &mut self.connection.halves[side];
        half.leaf = self.label.leaf;
        self.counters.repeated += u64::from(half.sent(self.at, &self.segment));
        let length = u32::from(self.headers.end.saturating_sub(self.headers.net_at));
        if self.segment.data > 0
            && let Some(lane) = lane(&mut self.lanes[side], self.label.leaf)
        {
            lane.came(self.at, length, waiting, &mut half.counted);
        }
        if self.segment.has(tcp::FIN) {
            self.ends(side);
        }
    }

    /// The acknowledgement of a segment.
    fn answers(&mut self) -> Fate {
        let side = self.side ^ 1;
        let half = &mut self.connection.halves[side];
        let had = half.acked;
        let fresh = half.answered(self.at, &self.segment);
        let treated = told(self.told, &self.lanes[side], half.leaf);
        if treated.loss == Loss::Release {
            note_loss(half, &self.segment, had, self.at);
        }
        let shift = half.scale;
        if treated.window && self.connection.state == State::Open {
            self.size(shift);
        }
        if treated.pace_acks && fresh > 0 && self.segment.is_plain_ack() {
            return self.pace(fresh);
        }
        // what is not a plain acknowledgement must not overtake those before it
        self.holds.flush(&mut self.connection.halves[side]);
        Fate::Pass
    }

    fn size(&mut self, shift: u8) {
        let side = self.side ^ 1;
        let connection = &mut *self.connection;
        let leaf = connection.halves[side].leaf;
        let treated = told(self.told, &self.lanes[side], leaf);
        if !treated.window || connection.halves[side].is_released() {
            return;
        }
        let round_trip = connection.round_trip(side, treated.round_trip);
        let last = connection.last_round_trip(side);
        let rate = lane(&mut self.lanes[side], leaf).map_or(0, |lane| lane.each());
        let half = &mut connection.halves[side];
        let target = window::target(rate, round_trip, last, half.mss, treated.least);
        let sized = window::size(self.bytes, self.headers, half, &self.segment, shift, target);
        self.counters.sized += u64::from(sized);
    }

    fn pace(&mut self, fresh: u32) -> Fate {
        let side = self.side ^ 1;
        let round_trip = self.connection.last_round_trip(side);
        let half = &mut self.connection.halves[side];
        let Some(lane) = lane(&mut self.lanes[side], half.leaf) else { return Fate::Pass };
        let (wait, next) = pacing::wait(self.at, half.paced, fresh, lane.each(), round_trip);
        half.paced = next;
        let behind_others = half.first_held != 0;
        if wait == 0 && !behind_others || !self.holds.has_room() {
            self.holds.flush(half);
            return Fate::Pass;
        }
        self.counters.paced += 1;
        Fate::Hold(self.now + Span::from_us(u64::from(wait)))
    }
}

/// With [`Loss::Release`], the third duplicate acknowledgement lets the window go for a while.
fn note_loss(half: &mut Half, segment: &Segment, had: u32, at: u32) {
    if half.is_released() && is_after(at, half.released_until) {
        half.release(false);
    }
    let repeats = segment.ack == had && segment.data == 0 && half.under_way();
    half.duplicates = if repeats { half.duplicates.saturating_add(1) } else { 0 };
    if half.duplicates == 3 {
        half.release(true);
        half.released_until = at.wrapping_add(RELEASED);
    }
}

#[inline]
fn lane(lanes: &mut [Box<[Lane]>], leaf: u32) -> Option<&mut Lane> {
    let piece = lanes.get_mut(leaf as usize / CHUNK)?;
    piece.get_mut(leaf as usize % CHUNK).filter(|lane| lane.told != 0)
}

#[inline]
fn told(told: &[Told], lanes: &[Box<[Lane]>], leaf: u32) -> Told {
    let piece = lanes.get(leaf as usize / CHUNK);
    let number = piece.map_or(0, |piece| piece[leaf as usize % CHUNK].told);
    told.get(usize::from(number)).copied().unwrap_or_default()
}

/// What one connection of a leaf has, for tests and for who explains.
impl Lane {
    /// What one of its connections has.
    #[must_use]
    pub const fn share(&self) -> Rate {
        Rate::from_bps(self.each())
    }
}
