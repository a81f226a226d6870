//! What happens to a segment on its way through the box. It brings data of one half of its
//! connection and answers those of the other.

use weir_packet::tcp::{self, Tcp};
use weir_packet::{Headers, Label, Net, edit};
use weir_units::{ByWay, Instant, Span, Way};

use crate::conditioner::{Counters, Pacing};
use crate::connection::{Connection, Half, NO_SCALE, State};
use crate::holds::Holds;
use crate::lane::{CHUNK, Lane};
use crate::segment::{Opening, Segment, is_after};
use crate::told::{Loss, Told};
use crate::{pacing, window};

/// Microseconds that windows are let go after a loss.
const RELEASED: u32 = 2_000_000;

/// One segment and what it concerns.
pub(crate) struct Turn<'m> {
    pub(crate) at: u32,
    pub(crate) now: Instant,
    /// The way that it takes, and its data.
    pub(crate) way: Way,
    pub(crate) bytes: &'m mut [u8],
    pub(crate) headers: &'m Headers,
    pub(crate) label: &'m Label,
    pub(crate) segment: Segment,
    pub(crate) told: &'m [Told],
    pub(crate) lanes: &'m mut ByWay<Vec<Box<[Lane]>>>,
    pub(crate) connection: &'m mut Connection,
    pub(crate) holds: &'m mut Holds,
    pub(crate) counters: &'m mut Counters,
}

impl Turn<'_> {
    pub(crate) fn take(&mut self, waiting: u32) -> Pacing {
        if self.segment.has(tcp::RST) {
            return self.breaks_off();
        }
        if self.segment.has(tcp::SYN) {
            return self.opens();
        }
        if self.connection.state == State::Open
            && !self.connection.accepts(self.way, &self.segment)
            && !self.connection.confirms(self.way, &self.segment)
        {
            return self.is_rejected();
        }
        if self.segment.data > 0 || self.segment.has(tcp::FIN) {
            self.brings_data(waiting);
        }
        match self.connection.state {
            State::LeftAlone => self.counters.left_alone += 1,
            State::Unknown | State::Opening => self.counters.unknown += 1,
            State::Open => return self.answers(),
        }
        self.goes_on()
    }

    /// It must not overtake those before it.
    fn goes_on(&mut self) -> Pacing {
        self.holds.flush(&mut self.connection.halves[self.way.other()]);
        Pacing::Pass
    }

    /// Whether it is signed, in a connection where it could be changed.
    #[cold]
    pub(crate) fn is_signed(&self) -> bool {
        let could = self.connection.state == State::Open || self.segment.has(tcp::SYN);
        could && Tcp::of(self.bytes, self.headers).is_some_and(|tcp| tcp.is_signed())
    }

    /// Its receiver rejects a signed segment that was changed, and one that is signed although the
    /// connection is not: so it stays as it is, and what it says changes nothing here. Either all
    /// segments of a connection are signed, from the SYN on, or none.
    #[cold]
    pub(crate) fn stays_as_it_is(&mut self) -> Pacing {
        self.counters.left_alone += 1;
        let fate = self.goes_on();
        let is_first = self.segment.has(tcp::SYN) && !self.segment.has(tcp::ACK);
        if is_first && matches!(self.connection.state, State::Unknown | State::LeftAlone) {
            self.holds.flush(&mut self.connection.halves[self.way]);
            self.connection.begins_anew(State::LeftAlone);
        }
        fate
    }

    /// Its receiver rejects it by its numbers: what it says changes nothing here either.
    #[cold]
    fn is_rejected(&mut self) -> Pacing {
        self.counters.rejected += 1;
        self.goes_on()
    }

    fn breaks_off(&mut self) -> Pacing {
        let half = &self.connection.halves[self.way];
        if self.connection.state == State::Open && !half.expects(self.segment.end()) {
            return self.is_rejected();
        }
        for way in Way::ALL {
            self.ends(way);
            self.holds.flush(&mut self.connection.halves[way]);
        }
        Pacing::Pass
    }

    /// The sender of the data that travel this way has no more to send.
    fn ends(&mut self, way: Way) {
        let half = &mut self.connection.halves[way];
        if let Some(lane) = lane(&mut self.lanes[way], half.leaf) {
            lane.ended(&mut half.counted);
        }
    }

    /// A SYN, or the answer to one.
    fn opens(&mut self) -> Pacing {
        let opening = Opening::read(self.bytes, self.headers);
        let is_answer = self.segment.has(tcp::ACK);
        if self.connection.state == State::Open {
            let Some(opening) = opening else { return self.is_rejected() };
            if !is_answer || !self.connection.is_another(self.way, &self.segment) {
                return self.opens_again(opening);
            }
        }
        let connection = &mut *self.connection;
        for half in connection.halves.values_mut() {
            self.holds.flush(half);
        }
        if connection.state == State::Open {
            connection.becomes_another(self.way, &self.segment);
        }
        let Some(opening) = opening else {
            connection.begins_anew(State::LeftAlone);
            self.counters.left_alone += 1;
            return Pacing::Pass;
        };
        match (is_answer, connection.state) {
            (true, State::LeftAlone) => {
                self.counters.left_alone += 1;
                return Pacing::Pass;
            }
            (true, State::Opening) => return self.answers_syn(opening),
            _ => {}
        }
        // the same again, or both sides open at once
        let half = &connection.halves[self.way];
        let fits = !half.has_begun() || half.acked == self.segment.seq;
        let goes_on = connection.state == State::Opening && fits;
        if !is_answer && !goes_on {
            connection.begins_anew(State::Opening);
        }
        self.notes(opening);
        self.counters.unknown += u64::from(is_answer);
        Pacing::Pass
    }

    /// Notes what a side says when a connection begins; returns whether it said it before.
    fn notes(&mut self, opening: Opening) -> bool {
        let half = &mut self.connection.halves[self.way];
        half.goes_through(self.label.leaf);
        let is_repeated = half.sent(self.at, &self.segment);
        let mss = self.clamp(opening);
        let half = &mut self.connection.halves[self.way.other()];
        (half.mss, half.scale) = (mss, opening.scale.unwrap_or(NO_SCALE));
        is_repeated
    }

    /// A SYN in an open connection, or the answer to one again. Its receiver keeps the connection
    /// as it is (RFC 5961, section 4), unless it knows of none, and answers.
    #[cold]
    fn opens_again(&mut self, opening: Opening) -> Pacing {
        let (way, segment) = (self.way, self.segment);
        let mss = self.clamp(opening);
        if !segment.has(tcp::ACK) {
            let scale = opening.scale.unwrap_or(NO_SCALE);
            self.connection.claims(way, segment.seq, mss, scale);
        } else if self.connection.accepts(way, &segment) {
            self.connection.halves[way].sent(self.at, &segment);
            self.is_answer();
        } else {
            self.counters.rejected += 1;
        }
        self.goes_on()
    }

    /// A SYN-ACK while a SYN waits for one.
    fn answers_syn(&mut self, opening: Opening) -> Pacing {
        let (mine, theirs) = (self.way, self.way.other());
        if !self.connection.is_answered(mine, &self.segment) {
            self.clamp(opening);
            return self.is_rejected();
        }
        let half = &mut self.connection.halves[mine];
        if half.has_begun() && half.acked != self.segment.seq {
            // that was another SYN
            half.is_forgotten();
        }
        let is_repeated = self.notes(opening);
        // shifting counts if both sides said so
        let connection = &mut *self.connection;
        let both = connection.halves.iter().all(|(_, half)| half.scale != NO_SCALE);
        for half in connection.halves.values_mut() {
            half.scale = if both { half.scale } else { 0 };
            half.paced = pacing::long_before(self.at);
        }
        connection.state = State::Open;
        let is_timed = connection.halves[theirs].is_timed();
        self.is_answer();
        match is_repeated || !is_timed {
            // the other side may have the first one already and go on
            true => Pacing::Pass,
            false => self.wait_for_a_turn(),
        }
    }

    /// A SYN-ACK answers a SYN.
    fn is_answer(&mut self) {
        let theirs = self.way.other();
        self.connection.halves[theirs].answered(self.at, &self.segment);
        let leaf = self.connection.halves[theirs].leaf;
        let (treated, rate) = told(self.told, &self.lanes[theirs], leaf);
        // the window of a SYN is never shifted
        self.size(0, &treated, rate);
    }

    /// Makes the segments smaller that the other side may send; returns how large they are.
    fn clamp(&mut self, opening: Opening) -> u16 {
        let theirs = self.way.other();
        let leaf = match self.connection.halves[theirs].has_begun() {
            true => self.connection.halves[theirs].leaf,
            // its frames have not come yet, but those of a class have one number both ways
            false => self.label.leaf,
        };
        let most = told(self.told, &self.lanes[theirs], leaf).0.mss;
        let most = match self.headers.net {
            Net::V6 => most.saturating_sub(20),
            _ => most,
        };
        if most != 0 && edit::clamp_mss(self.bytes, self.headers, most) {
            self.counters.clamped += 1;
            return most;
        }
        window::segment_size(opening.mss, self.headers.net)
    }

    /// Where a turn takes long, the answer to a SYN waits a part of it: from the round trip that
    /// they see, both sides learn how long their first segment may take.
    fn wait_for_a_turn(&mut self) -> Pacing {
        let connection = &self.connection;
        let mut turn = 0;
        for way in Way::ALL {
            let leaf = connection.halves[way].leaf;
            if told(self.told, &self.lanes[way], leaf).0.pace_acks
                && let Some(lane) = lane(&mut self.lanes[way], leaf)
            {
                turn = turn.max(lane.turn_of_a_new_one());
            }
        }
        let since = self.at.wrapping_sub(connection.halves[self.way.other()].timed_at());
        let wait = pacing::syn_answer(turn).saturating_sub(since);
        if wait == 0 || since > 1_000_000 {
            return Pacing::Pass;
        }
        if !self.holds.has_room() {
            self.counters.no_room += 1;
            return Pacing::Pass;
        }
        self.counters.answers_held += 1;
        // what it waits here is no part of the way to the host and back
        self.connection.halves[self.way].begins_at(self.at.wrapping_add(wait));
        Pacing::Hold(self.now + Span::from_us(u64::from(wait)))
    }

    /// Data, or the end of them.
    fn brings_data(&mut self, waiting: u32) {
        let way = self.way;
        let half = &mut self.connection.halves[way];
        half.goes_through(self.label.leaf);
        self.counters.repeated += u64::from(half.sent(self.at, &self.segment));
        let length = u32::from(self.headers.end.saturating_sub(self.headers.net_at));
        if self.segment.data > 0
            && let Some(lane) = lane(&mut self.lanes[way], self.label.leaf)
        {
            lane.came(self.at, length, waiting, &mut half.counted);
        }
        if self.segment.has(tcp::FIN) {
            self.ends(way);
        }
    }

    /// The acknowledgement of a segment.
    fn answers(&mut self) -> Pacing {
        let way = self.way.other();
        let half = &mut self.connection.halves[way];
        let is_duplicate = half.is_duplicate(&self.segment);
        let fresh = half.answered(self.at, &self.segment);
        half.said(&self.segment);
        let (treated, rate) = told(self.told, &self.lanes[way], half.leaf);
        if treated.loss == Loss::Release {
            note_loss(half, is_duplicate, self.at);
        }
        let shift = half.scale;
        if is_duplicate {
            // with another window than the last one it would be none
            self.sized(shift, 0);
            return self.goes_on();
        }
        self.size(shift, &treated, rate);
        if treated.pace_acks && fresh > 0 && self.segment.is_plain_ack() {
            return self.pace(fresh, rate);
        }
        self.goes_on()
    }

    fn size(&mut self, shift: u8, treated: &Told, rate: u64) {
        let way = self.way.other();
        let connection = &mut *self.connection;
        if !treated.window || connection.halves[way].is_released() {
            return window::pass(&mut connection.halves[way], &self.segment, shift);
        }
        let round_trip = connection.round_trip(way, treated.round_trip);
        let last = connection.last_round_trip(way);
        let mss = connection.halves[way].mss;
        let target = window::target(rate, round_trip, last, mss, treated.least);
        self.sized(shift, target);
    }

    fn sized(&mut self, shift: u8, target: u32) {
        let half = &mut self.connection.halves[self.way.other()];
        let sized = window::size(self.bytes, self.headers, half, &self.segment, shift, target);
        self.counters.sized += u64::from(sized);
    }

    fn pace(&mut self, fresh: u32, rate: u64) -> Pacing {
        let way = self.way.other();
        let round_trip = self.connection.last_round_trip(way);
        let half = &mut self.connection.halves[way];
        let (wait, next) = pacing::wait(self.at, half.paced, fresh, rate, round_trip);
        half.paced = next;
        if wait == 0 && half.first_held == 0 {
            return Pacing::Pass;
        }
        if !self.holds.has_room() {
            self.counters.no_room += 1;
            return self.goes_on();
        }
        self.counters.paced += 1;
        Pacing::Hold(self.now + Span::from_us(u64::from(wait)))
    }
}

/// With [`Loss::Release`], the third duplicate acknowledgement lets the window go for a while.
fn note_loss(half: &mut Half, is_duplicate: bool, at: u32) {
    if half.is_released() && is_after(at, half.released_until) {
        half.release(false);
    }
    half.duplicates =
        if is_duplicate && half.under_way() { half.duplicates.saturating_add(1) } else { 0 };
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

/// What is done in a leaf, and what each of its connections has, in bits per second.
#[inline]
fn told(told: &[Told], lanes: &[Box<[Lane]>], leaf: u32) -> (Told, u64) {
    let piece = lanes.get(leaf as usize / CHUNK);
    let (number, each) = piece.map_or((0, 0), |piece| {
        let lane = &piece[leaf as usize % CHUNK];
        (lane.told, lane.each())
    });
    (told.get(usize::from(number)).copied().unwrap_or_default(), each)
}
