//! Round trips, taken in passing: from the moment in which a frame leaves here towards a side to
//! the moment in which something comes back that was sent after the frame had arrived there.
//!
//! Two things are timed. Data, until they are acknowledged; unless they were sent twice, when
//! nobody can tell which of the two is answered. And acknowledgements that bring a new value of the
//! sender's clock (RFC 7323), until the other side echoes it: that times the way to a sender whose
//! data come through here, of which acknowledgements say nothing. A sender that has nothing to say
//! echoes late, so it counts only where data kept coming all the while.
//!
//! A sample of connections is timed, one in each of a few slots, so that nearly every frame costs
//! one look at who has the slot that it would have.

use weir_packet::{BySide, Flow};
use weir_units::limits::ROUND_TRIPS;
use weir_units::{ByWay, Instant, Span, Way};

use super::votes::{self, Voice};

/// How long the ways to both sides and back took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// To hosts of the LAN side.
    pub lan: RoundTrip,
    /// To hosts of the WAN side.
    pub wan: RoundTrip,
    /// Those of the latter that data from the LAN side took, until they were acknowledged: their
    /// way there is the upstream of the line.
    pub data: RoundTrip,
}

/// What was taken in the last interval of 50 ms in which anything was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrip {
    /// When the interval ended.
    pub until: Instant,
    /// How many were taken; 0: none yet.
    pub taken: u32,
    /// The shortest.
    pub shortest: Span,
    /// The mean.
    pub mean: Span,
    /// Those of connections whose shortest was known already: towards the WAN those by the clock,
    /// of data those that were not acknowledged late on purpose.
    pub compared: u32,
    /// Of how many hosts of the WAN side these were.
    pub hosts: u32,
    /// More than half of the hosts of either side say that ways are so much longer than their
    /// connection's shortest, or more. Each host has one voice, however many connections it has:
    /// the median of these.
    pub raised: Span,
    /// Or shorter than these had ever been: a queue that they had always found is going.
    pub sank: Span,
}

/// Which shortest way of a connection: by the clock, and by data until they are acknowledged.
const BY_CLOCK: usize = 0;
const BY_DATA: usize = 1;

/// Between the beginnings of two.
const PAUSE: Span = Span::from_ms(2);
/// Before another is looked for where one could not begin.
const AGAIN: Span = Span::from_us(50);
/// What is not answered until then is given up.
const PATIENCE: Span = Span::from_secs(2);
/// Nobody puts off an acknowledgement for so long, and no segment is longer.
const AT_ONCE: Span = Span::from_ms(20);
pub(super) const SEGMENT: u32 = 1_500;
/// Longer than the shortest by this much, an answer is late.
const OVERDUE: Span = Span::from_ms(5);
/// Who answers within so much more than the shortest answers at once.
const SOON: Span = Span::from_ms(2);
/// Values that are compared: those of an interval, and what hosts said that are silent in it.
pub(super) const COMPARED: usize = 64;
/// For so many intervals what a host said holds, if it says nothing new.
const HOLDS: u32 = 4;

impl RoundTrip {
    /// How long an interval is.
    pub const INTERVAL: Span = Span::from_ms(50);
}

/// What a segment says that matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// The end of what it acknowledges last, be it selectively.
    pub(super) ack: Option<u32>,
    pub(super) is_selective: bool,
    /// The sender's clock, and its echo of the receiver's.
    pub(super) stamps: Option<(u32, u32)>,
    /// Whether it has data.
    pub(super) has_data: bool,
    /// The number of its first byte.
    pub(super) seq: u32,
    /// The number behind its last byte, if it has new ones.
    pub(super) end: Option<u32>,
    /// Its hosts, of the LAN and of the WAN side.
    pub(super) hosts: BySide<u32>,
}

/// What is under way, and what was taken.
#[derive(Debug)]
pub(super) struct Trips {
    /// By the way that what is timed travels: one of them does not wait for the other.
    slots: Box<ByWay<[Slot; ROUND_TRIPS]>>,
    /// How many wait to leave.
    waiting: ByWay<u32>,
    /// When the next may begin.
    next_at: ByWay<Instant>,
    tallies: ByWay<Tally>,
    /// Of data from the LAN side.
    data: Tally,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    flow: Flow,
    /// What answers it: this number acknowledged, or this value echoed.
    want: u32,
    by_clock: bool,
    /// Of data: the number of their first byte.
    first: u32,
    /// When the data left that come next.
    next_left: Option<Instant>,
    /// Data before those came a second time: only a selective acknowledgement is an answer.
    is_doubtful: bool,
    /// Whose it is, of the LAN and of the WAN side, and the shortest way of its connection that is
    /// known; 0: none.
    hosts: BySide<u32>,
    known_us: u32,
    stage: Stage,
    /// The way that it travels.
    way: Way,
    /// When it came, then when it left.
    at: Instant,
    /// When data came last from where it goes.
    heard: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    /// A clock was seen, and its next value is waited for.
    Armed,
    /// What is timed came, and has not left yet.
    Waiting,
    Running,
}

#[derive(Debug)]
struct Tally {
    begun: Instant,
    taken: u32,
    sum_ns: u64,
    shortest_ns: u64,
    /// How many compare themselves with the shortest, and how many of them are of this interval.
    said: usize,
    compared: u32,
    voices: Box<[Voice; COMPARED]>,
    last: RoundTrip,
}

const NOBODY: Slot = Slot {
    flow: Flow::NONE,
    want: 0,
    by_clock: false,
    first: 0,
    next_left: None,
    is_doubtful: false,
    hosts: BySide { lan: 0, wan: 0 },
    known_us: 0,
    stage: Stage::Free,
    way: Way::Down,
    at: Instant::ZERO,
    heard: Instant::ZERO,
};

impl Trips {
    pub(super) fn new() -> Trips {
        Trips {
            slots: Box::new(ByWay::same([NOBODY; ROUND_TRIPS])),
            waiting: ByWay::default(),
            next_at: ByWay::default(),
            tallies: ByWay { down: Tally::new(), up: Tally::new() },
            data: Tally::new(),
        }
    }

    /// Whether another round trip may begin with what travels this way.
    #[inline]
    pub(super) fn may_begin(&self, now: Instant, way: Way) -> bool {
        self.next_at[way] <= now
    }

    /// Whether a connection is timed.
    #[inline]
    pub(super) const fn is_timed(&self, flow: Flow) -> bool {
        let ByWay { down, up } = &*self.slots;
        down[place(flow)].flow.index == flow.index || up[place(flow)].flow.index == flow.index
    }

    /// Whether [`Trips::left`] wants to see frames that leave on this way.
    #[inline]
    pub(super) const fn waits_for(&self, way: Way) -> bool {
        match way {
            Way::Down => self.waiting.down != 0,
            Way::Up => self.waiting.up != 0,
        }
    }

    /// A segment travels this way, of a connection that is timed or may be. `shortest_us` is
    /// that of its connection towards the WAN, if anything is remembered of it.
    #[inline(never)]
    pub(super) fn frame(
        &mut self,
        now: Instant,
        way: Way,
        flow: Flow,
        said: &Said,
        mut shortest_us: Option<&mut [u32; 2]>,
    ) {
        // it answers what travels the other way
        let answers = way.other();
        let slot = *self.slot(answers, flow);
        if slot.flow == flow && slot.stage == Stage::Running {
            if slot.is_answered(said) {
                self.free(answers, flow);
                let known = if answers == Way::Up { shortest_us.as_deref_mut() } else { None };
                self.answered(now, &slot, said, known);
            } else if said.has_data {
                self.slot(answers, flow).heard = now;
            }
        }
        let slot = *self.slot(way, flow);
        let clock = said.stamps.map(|(value, _)| value);
        match slot.stage {
            _ if slot.flow != flow => {
                self.begin(now, way, flow, said, shortest_us.as_deref());
            }
            // the first frame with a new value is the first that can be echoed
            Stage::Armed if clock.is_some_and(|now| now != slot.want) => {
                let want = clock.unwrap_or(slot.want);
                self.set(Slot { want, at: now, stage: Stage::Waiting, ..slot });
            }
            _ if now.since(slot.at) < PATIENCE => {}
            _ => self.free(way, flow),
        }
    }

    /// What is timed was answered.
    fn answered(&mut self, now: Instant, slot: &Slot, said: &Said, known: Option<&mut [u32; 2]>) {
        let shortest = known.as_ref().map(|us| us[BY_CLOCK]);
        let Some(took) = slot.took(now, shortest) else { return };
        let tally = &mut self.tallies[slot.way];
        let Some(us) = known else { return tally.add(now, took, None, said.hosts) };
        let [clock, data] = us;
        tally.add(now, took, slot.by_clock.then_some(clock), said.hosts);
        if let Some(left) = slot.answered_at_once(said) {
            self.close_data(now);
            self.data.add(now, now.since(left), Some(data), said.hosts);
        }
    }

    /// Times this segment, if there is room.
    fn begin(&mut self, now: Instant, way: Way, flow: Flow, said: &Said, known: Option<&[u32; 2]>) {
        let next_at = &mut self.next_at[way];
        if *next_at > now {
            return;
        }
        *next_at = now + AGAIN;
        let slot = *self.slot(way, flow);
        if slot.stage != Stage::Free && now.since(slot.at) < PATIENCE {
            return;
        }
        let (want, stage) = match (said.end, said.stamps) {
            (Some(end), _) => (end, Stage::Waiting),
            (None, Some((value, _))) => (value, Stage::Armed),
            (None, None) => return,
        };
        self.next_at[way] = now + PAUSE;
        let by_clock = stage == Stage::Armed;
        let begun = Slot { flow, want, by_clock, stage, way, ..NOBODY };
        let known_us = known.map_or(0, |us| us[BY_DATA]);
        let hosts = said.hosts;
        let first = said.seq;
        self.set(Slot { first, hosts, known_us, at: now, heard: now, ..begun });
    }

    /// The slot of a connection for what travels this way.
    fn slot(&mut self, way: Way, flow: Flow) -> &mut Slot {
        &mut self.slots[way][place(flow)]
    }

    fn set(&mut self, slot: Slot) {
        let old = std::mem::replace(self.slot(slot.way, slot.flow), slot);
        let waiting = &mut self.waiting[slot.way];
        *waiting -= u32::from(old.waits());
        *waiting += u32::from(slot.waits());
    }

    fn free(&mut self, way: Way, flow: Flow) {
        let slot = *self.slot(way, flow);
        self.set(Slot { stage: Stage::Free, ..slot });
        self.slot(way, flow).flow = Flow::NONE;
    }

    /// A frame leaves on this way; it came at `since`, or was held until then, and
    /// its first byte has the number `seq`.
    #[inline]
    pub(super) fn left(&mut self, now: Instant, way: Way, flow: Flow, since: Instant, seq: u32) {
        let slot = *self.slot(way, flow);
        if slot.flow != flow || !slot.waits() {
            return;
        }
        let ahead = seq.wrapping_sub(slot.first).cast_signed();
        match slot.stage {
            Stage::Waiting if slot.by_clock && slot.at > since => {}
            Stage::Waiting if slot.by_clock || ahead == 0 => {
                self.set(Slot { at: now, heard: now, stage: Stage::Running, ..slot });
            }
            // those that are timed were dropped here
            Stage::Waiting if ahead > 0 => self.free(way, flow),
            Stage::Running if seq == slot.want => self.set(Slot { next_left: Some(now), ..slot }),
            _ => {}
        }
    }

    /// Data of this way came a second time, up to `end`: what is timed of them means nothing, and
    /// of data behind them only when these are acknowledged by themselves.
    pub(super) fn retransmitted(&mut self, way: Way, flow: Flow, end: u32) {
        let slot = *self.slot(way, flow);
        if slot.flow != flow || slot.by_clock {
            return;
        }
        if slot.want.wrapping_sub(end).cast_signed() > 0 {
            self.slot(way, flow).is_doubtful = true;
        } else {
            self.free(way, flow);
        }
    }

    pub(super) fn age(&mut self, now: Instant) {
        self.tallies.values_mut().for_each(|tally| tally.close(now));
        self.close_data(now);
    }

    /// Ends the interval of data from the LAN side if it is over. Those under way that were not
    /// answered for longer than anybody has said have something to say already.
    fn close_data(&mut self, now: Instant) {
        if now.since(self.data.begun) < RoundTrip::INTERVAL {
            return;
        }
        for slot in &self.slots.up {
            // one segment alone may be acknowledged late
            let Some(left) = slot.next_left else { continue };
            if slot.stage == Stage::Running && !slot.is_doubtful && slot.known_us != 0 {
                let longer = now.since(left).ns() / 1_000;
                let longer = longer.saturating_sub(u64::from(slot.known_us));
                self.data.is_under_way(Span::from_us(longer), slot.hosts);
            }
        }
        self.data.close(now);
    }

    pub(super) const fn read(&self) -> RoundTrips {
        let ByWay { down, up } = &self.tallies;
        RoundTrips { lan: down.last, wan: up.last, data: self.data.last }
    }
}

/// The slot of a connection.
const fn place(flow: Flow) -> usize {
    flow.index as usize % ROUND_TRIPS
}

impl Slot {
    fn is_answered(&self, said: &Said) -> bool {
        let answer = if self.by_clock { said.stamps.map(|(_, echo)| echo) } else { said.ack };
        answer.is_some_and(|answer| answer.wrapping_sub(self.want).cast_signed() >= 0)
    }

    /// Whether what leaves of its connection matters.
    fn waits(&self) -> bool {
        self.stage == Stage::Waiting || self.waits_for_next()
    }

    fn waits_for_next(&self) -> bool {
        self.stage == Stage::Running
            && !self.by_clock
            && self.way == Way::Up
            && self.next_left.is_none()
    }

    /// When the data left that made the other side acknowledge these at once, if it did: a single
    /// segment is acknowledged with the next one, or late (RFC 9293, 3.8.6.3).
    fn answered_at_once(&self, said: &Said) -> Option<Instant> {
        if self.by_clock || (self.is_doubtful && !said.is_selective) {
            return None;
        }
        let beyond = said.ack?.wrapping_sub(self.want);
        let next = self.next_left;
        let is_soon = next.is_some_and(|next| next.since(self.at) <= AT_ONCE);
        match beyond {
            0 => (said.is_selective || is_soon).then_some(self.at),
            1..=SEGMENT => next,
            // so many at a time that the first is as good as the last
            _ => next.filter(|next| next.since(self.at) <= SOON).map(|_| self.at),
        }
    }

    /// How long it took, if that is how long the way is: nobody answers too soon, but who has
    /// nothing to say answers late.
    fn took(&self, now: Instant, shortest_us: Option<u32>) -> Option<Span> {
        let took = now.since(self.at);
        let silent = now.since(self.heard);
        let known = shortest_us.map_or(Span::ZERO, |us| Span::from_us(u64::from(us)));
        let is_short = known > Span::ZERO && took <= known + SOON;
        let is_way = !self.by_clock || is_short || silent.ns() <= took.ns() / 2;
        (is_way && took < PATIENCE).then_some(took)
    }
}

impl Tally {
    fn new() -> Tally {
        Tally {
            begun: Instant::ZERO,
            taken: 0,
            sum_ns: 0,
            shortest_ns: u64::MAX,
            said: 0,
            compared: 0,
            voices: Box::new([Voice::default(); COMPARED]),
            last: RoundTrip::default(),
        }
    }

    /// `known` is the shortest way of its connection, where this one may be compared with it.
    fn add(&mut self, now: Instant, took: Span, known: Option<&mut u32>, hosts: BySide<u32>) {
        self.close(now);
        self.taken += 1;
        self.sum_ns += took.ns();
        self.shortest_ns = self.shortest_ns.min(took.ns());
        let Some(shortest) = known else { return };
        let took_us = u32::try_from(took.ns() / 1_000).unwrap_or(u32::MAX).max(1);
        if *shortest != 0
            && let Some(place) = self.voices.get_mut(self.said)
        {
            let raised = i64::from(took_us) - i64::from(*shortest);
            *place = Voice { raised, hosts, ..Voice::default() };
            self.said += 1;
            self.compared += 1;
        }
        *shortest = if *shortest == 0 { took_us } else { took_us.min(*shortest) };
    }

    /// Some are not answered yet, and take so much longer than the shortest already.
    fn is_under_way(&mut self, longer: Span, hosts: BySide<u32>) {
        if longer > self.last.raised.max(OVERDUE)
            && let Some(place) = self.voices.get_mut(self.said)
        {
            let raised = i64::try_from(longer.ns() / 1_000).unwrap_or(i64::MAX);
            *place = Voice { raised, hosts, ..Voice::default() };
            self.said += 1;
            self.compared += 1;
        }
    }

    /// Ends the interval if it is over.
    fn close(&mut self, now: Instant) {
        if now.since(self.begun) < RoundTrip::INTERVAL {
            return;
        }
        if self.taken > 0 || self.compared > 0 {
            let BySide { lan: (_, lan), wan: (hosts, wan) } = self.agreed();
            self.last = RoundTrip {
                until: now,
                taken: self.taken,
                shortest: Span::from_ns(if self.taken > 0 { self.shortest_ns } else { 0 }),
                mean: Span::from_ns(self.sum_ns / u64::from(self.taken.max(1))),
                compared: self.compared,
                hosts,
                raised: Span::from_us(u64::try_from(lan.min(wan)).unwrap_or(0)),
                sank: Span::from_us(u64::try_from(-lan.max(wan)).unwrap_or(0)),
            };
        }
        self.begun = now;
        self.taken = 0;
        self.sum_ns = 0;
        self.shortest_ns = u64::MAX;
        self.compared = 0;
        self.forget();
    }

    /// How many hosts of each side there are, and what more than half of them say.
    fn agreed(&mut self) -> BySide<(u32, i64)> {
        self.only_news();
        let voices = &mut self.voices[..self.said];
        votes::split(voices);
        BySide::SIDES.map(|side| votes::agreed(voices, side))
    }

    /// What a host said before does not count once it says something new.
    fn only_news(&mut self) {
        let mut kept = 0;
        for at in 0..self.said {
            let voice = self.voices[at];
            let is_said_anew = || {
                let mut all = self.voices[..self.said].iter();
                all.any(|new| new.age == 0 && new.hosts.wan == voice.hosts.wan)
            };
            if voice.age == 0 || !is_said_anew() {
                self.voices[kept] = voice;
                kept += 1;
            }
        }
        self.said = kept;
    }

    /// Keeps one voice of each host for the next interval, and room for news.
    fn forget(&mut self) {
        let mut kept = 0;
        for at in 0..self.said {
            let voice = Voice { age: self.voices[at].age + 1, ..self.voices[at] };
            if voice.age < HOLDS && kept < COMPARED / 2 {
                self.voices[kept] = voice;
                kept += 1;
            }
        }
        self.said = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_begin_two_milliseconds_apart() {
        let mut trips = Trips::new();
        let start = Instant::from_ns(1_000_000_000);
        let (ack, stamps, end, hosts) = (None, None, Some(1_000), BySide { lan: 1, wan: 2 });
        let said = Said { ack, is_selective: false, stamps, has_data: true, seq: 0, end, hosts };
        for index in 0..10 {
            let now = start + Span::from_us(400 * u64::from(index));
            let flow = Flow { index, generation: 0 };
            trips.frame(now, Way::Up, flow, &said, None);
            assert_eq!(trips.is_timed(flow), index % 5 == 0, "{index}");
            assert!(!trips.may_begin(now, Way::Up));
        }
        assert_eq!(trips.waiting, ByWay { down: 0, up: 2 });
        assert!(trips.may_begin(start + Span::from_ms(4), Way::Up));
    }
}
