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

use weir_packet::{Flow, Side};
use weir_units::limits::ROUND_TRIPS;
use weir_units::{Instant, Span};

/// How long the ways to both sides and back took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// To hosts of the LAN side.
    pub lan: RoundTrip,
    /// To hosts of the WAN side.
    pub wan: RoundTrip,
}

/// What was taken in the last interval of 200 ms in which anything was.
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
    /// Those by the clocks of connections whose shortest was known already (only towards the WAN).
    pub compared: u32,
    /// The median of how much longer these were than their connection's shortest.
    pub raised: Span,
}

/// Between the beginnings of two.
const PAUSE: Span = Span::from_ms(1);
/// Before another is looked for where one could not begin.
const AGAIN: Span = Span::from_us(50);
/// What is not answered until then is given up.
const PATIENCE: Span = Span::from_secs(2);
/// Values of one interval that are compared.
const COMPARED: usize = 128;

impl RoundTrip {
    /// How long an interval is.
    pub const INTERVAL: Span = Span::from_ms(200);
}

/// What a segment says that matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// What it acknowledges.
    pub(super) ack: Option<u32>,
    /// The sender's clock, and its echo of the receiver's.
    pub(super) stamps: Option<(u32, u32)>,
    /// Whether it has data.
    pub(super) has_data: bool,
    /// The number behind its last byte, if it has new ones.
    pub(super) end: Option<u32>,
}

/// What is under way, and what was taken.
#[derive(Debug)]
pub(super) struct Trips {
    slots: Box<[Slot; ROUND_TRIPS]>,
    /// How many wait to leave, by the side that they go to.
    waiting: [u32; 2],
    /// When the next may begin, by the side that it goes to.
    next_at: [Instant; 2],
    /// By the side that was timed.
    tallies: [Tally; 2],
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    flow: Flow,
    /// What answers it: this number acknowledged, or this value echoed.
    want: u32,
    by_clock: bool,
    stage: Stage,
    /// The side that it goes to.
    towards: Side,
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
    compared: usize,
    raised_us: Box<[u32; COMPARED]>,
    last: RoundTrip,
}

const NOBODY: Slot = Slot {
    flow: Flow::NONE,
    want: 0,
    by_clock: false,
    stage: Stage::Free,
    towards: Side::Lan,
    at: Instant::ZERO,
    heard: Instant::ZERO,
};

impl Trips {
    pub(super) fn new() -> Trips {
        Trips {
            slots: Box::new([NOBODY; ROUND_TRIPS]),
            waiting: [0; 2],
            next_at: [Instant::ZERO; 2],
            tallies: [Tally::new(), Tally::new()],
        }
    }

    /// Whether another round trip may begin with what comes in from `side`.
    #[inline]
    pub(super) fn may_begin(&self, now: Instant, side: Side) -> bool {
        self.next_at[side.other() as usize] <= now
    }

    /// Whether a connection is timed.
    #[inline]
    pub(super) const fn is_timed(&self, flow: Flow) -> bool {
        self.slots[place(flow)].flow.index == flow.index
    }

    /// Whether [`Trips::left`] wants to see what leaves through the port of `side`.
    #[inline]
    pub(super) const fn waits_for(&self, side: Side) -> bool {
        self.waiting[side as usize] != 0
    }

    /// A segment came in from `side`, of a connection that is timed or may be. `shortest_us` is
    /// that of its connection towards the WAN, if anything is remembered of it.
    #[inline(never)]
    pub(super) fn frame(
        &mut self,
        now: Instant,
        side: Side,
        flow: Flow,
        said: &Said,
        shortest_us: Option<&mut u32>,
    ) {
        let slot = self.slots[place(flow)];
        if slot.flow != flow || slot.stage == Stage::Free {
            return self.begin(now, side.other(), flow, said);
        }
        let clock = said.stamps.map(|(value, _)| value);
        match slot.stage {
            Stage::Running if slot.towards == side && slot.is_answered(said) => {
                self.free(flow);
                if let Some(took) = slot.took(now) {
                    let known = if side == Side::Wan { shortest_us } else { None };
                    self.tallies[side as usize].add(now, took, known, slot.by_clock);
                }
            }
            Stage::Running if slot.towards == side && said.has_data => {
                self.slots[place(flow)].heard = now;
            }
            // the first frame with a new value is the first that can be echoed
            Stage::Armed if slot.towards != side && clock.is_some_and(|now| now != slot.want) => {
                let want = clock.unwrap_or(slot.want);
                self.set(Slot { want, at: now, stage: Stage::Waiting, ..slot });
            }
            _ if now.since(slot.at) < PATIENCE => {}
            _ => self.free(flow),
        }
    }

    /// Times this segment, if there is room.
    fn begin(&mut self, now: Instant, towards: Side, flow: Flow, said: &Said) {
        let next_at = &mut self.next_at[towards as usize];
        if *next_at > now {
            return;
        }
        *next_at = now + AGAIN;
        let slot = self.slots[place(flow)];
        if slot.stage != Stage::Free && now.since(slot.at) < PATIENCE {
            return;
        }
        let (want, stage) = match (said.end, said.stamps) {
            (Some(end), _) => (end, Stage::Waiting),
            (None, Some((value, _))) => (value, Stage::Armed),
            (None, None) => return,
        };
        *next_at = now + PAUSE;
        let by_clock = stage == Stage::Armed;
        self.set(Slot { flow, want, by_clock, stage, towards, at: now, heard: now });
    }

    fn set(&mut self, slot: Slot) {
        let place = &mut self.slots[place(slot.flow)];
        let old = std::mem::replace(place, slot);
        self.waiting[old.towards as usize] -= u32::from(old.stage == Stage::Waiting);
        self.waiting[slot.towards as usize] += u32::from(slot.stage == Stage::Waiting);
    }

    fn free(&mut self, flow: Flow) {
        self.set(Slot { stage: Stage::Free, ..self.slots[place(flow)] });
        self.slots[place(flow)].flow = Flow::NONE;
    }

    /// A frame leaves through the port of `side`; it came at `since`, or was held until then.
    #[inline]
    pub(super) fn left(&mut self, now: Instant, side: Side, flow: Flow, since: Instant) {
        let slot = self.slots[place(flow)];
        let is_it = slot.flow == flow && slot.towards == side && slot.at <= since;
        if is_it && slot.stage == Stage::Waiting {
            self.set(Slot { at: now, heard: now, stage: Stage::Running, ..slot });
        }
    }

    /// Data from `side` came a second time: what is timed of them means nothing.
    pub(super) fn came_again(&mut self, side: Side, flow: Flow) {
        let slot = self.slots[place(flow)];
        if slot.flow == flow && slot.towards != side && !slot.by_clock {
            self.free(flow);
        }
    }

    pub(super) fn age(&mut self, now: Instant) {
        self.tallies.iter_mut().for_each(|tally| tally.close(now));
    }

    pub(super) const fn read(&self) -> RoundTrips {
        let [lan, wan] = &self.tallies;
        RoundTrips { lan: lan.last, wan: wan.last }
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

    /// How long it took, if that is how long the way is.
    fn took(&self, now: Instant) -> Option<Span> {
        let took = now.since(self.at);
        let silent = now.since(self.heard);
        let is_way = !self.by_clock || silent.ns() <= took.ns() / 2;
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
            compared: 0,
            raised_us: Box::new([0; COMPARED]),
            last: RoundTrip::default(),
        }
    }

    /// Only those by clock are compared: the other side may put off an acknowledgement of data.
    fn add(&mut self, now: Instant, took: Span, known: Option<&mut u32>, by_clock: bool) {
        self.close(now);
        self.taken += 1;
        self.sum_ns += took.ns();
        self.shortest_ns = self.shortest_ns.min(took.ns());
        let Some(shortest) = known else { return };
        let took_us = u32::try_from(took.ns() / 1_000).unwrap_or(u32::MAX).max(1);
        if by_clock
            && *shortest != 0
            && let Some(place) = self.raised_us.get_mut(self.compared)
        {
            *place = took_us.saturating_sub(*shortest);
            self.compared += 1;
        }
        *shortest = if *shortest == 0 { took_us } else { took_us.min(*shortest) };
    }

    /// Ends the interval if it is over.
    fn close(&mut self, now: Instant) {
        if now.since(self.begun) < RoundTrip::INTERVAL {
            return;
        }
        if self.taken > 0 {
            let raised = &mut self.raised_us[..self.compared];
            let median = match raised.len() {
                0 => 0,
                some => *raised.select_nth_unstable(some / 2).1,
            };
            self.last = RoundTrip {
                until: now,
                taken: self.taken,
                shortest: Span::from_ns(self.shortest_ns),
                mean: Span::from_ns(self.sum_ns / u64::from(self.taken)),
                compared: u32::try_from(self.compared).unwrap_or(u32::MAX),
                raised: Span::from_us(median.into()),
            };
        }
        self.begun = now;
        self.taken = 0;
        self.sum_ns = 0;
        self.shortest_ns = u64::MAX;
        self.compared = 0;
    }
}
