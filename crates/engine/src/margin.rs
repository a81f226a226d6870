//! `margin = "auto"`: which rate a line carries, found while traffic flows. Towards the LAN weir
//! stands behind the line, so that a queue forms at the provider as soon as weir lets through more
//! than the line carries; towards the WAN, in a modem before it. And what a line carries is not
//! always what was told.
//!
//! Two things give it away. Where a queue grows there, the way to hosts of the WAN side and back
//! takes longer than it did ([`RoundTrip::raised`](crate::RoundTrip::raised)) while the link's rate
//! does not bind: the line does, so what comes through is what it carries (`window` and `slope` say
//! how that is known upstream). Then the link goes below it, further the longer the queue is, until
//! that is gone, and stays 3 % below. Where the link's rate binds and the way is as short as ever,
//! there may be more: after a rest it tries, a little at first, then more and more, up to what was
//! told. Long ways while the link binds are doubtful: it gives up to a tenth, and if that shortens
//! nothing they are somebody else's. So are ways that stay long although the link has gone well
//! below what came.
//!
//! An engine whose policy says `margin = "auto"` has a [`Margin`] for each such way, watches TCP's
//! numbers ([`Config::watch`](crate::Config::watch)), and asks it each [`Margin::CADENCE`]
//! ([`Engine::follow`](crate::Engine::follow)). What was found stays when the policy changes. Of
//! several engines on one link, add up [`Look`]s and share the answer of [`Margin::step`]. Not
//! seen: a line with less than a twentieth of what was told, and one that carries no TCP with
//! timestamps (upstream: no uploads over TCP).

mod found;
mod slope;
mod window;

use weir_policy::Plan;
use weir_shape::FrameCost;
use weir_units::{Instant, Rate, Span, Way};

use crate::ledger::Counters;
use crate::lower;
use crate::watch::Watch;
pub use found::FoundRate;
use slope::Slope;
pub use window::Look;
use window::{BINDS, Mix, Queue, Window, rate_of};

/// Finds the rate of one link towards one side.
#[derive(Clone, Debug)]
pub struct Margin {
    /// The side that the rate leads to.
    way: Way,
    mix: Mix,
    slope: Slope,
    /// What the operator says that the line carries: the rate is never higher.
    told: Rate,
    link: FrameCost,
    /// What is in use.
    rate: Rate,
    /// What the line carried when it was seen to be the limit, and how many hosts of the WAN side
    /// said so.
    line: Option<Rate>,
    witnesses: u32,
    state: State,
    /// How long it has rested below the line.
    rested: Span,
    /// By how much it rises next.
    step: u32,
    /// For how long there has been a queue on the way without the rate being what binds, and for
    /// how long although it was.
    stands: Span,
    doubt: Span,
    /// How long nobody has said anything of the way.
    silence: Span,
    steady: Steady,
    /// The end of the last interval of round trips that was looked at.
    heard: Instant,
    /// How long somebody else's queue is believed to be that.
    belief: Span,
    since: Option<(Instant, Look)>,
    /// What ever came over the line, or left for it, as it counts there.
    all: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is known to be wrong.
    Steady,
    /// It has gone up then, from this.
    Rising(Instant, Rate),
    /// The queue at the provider is to go.
    Draining(Drain),
    /// Ways are long, and not through this line: until then.
    Foreign(Instant),
}

/// What came for a while, and for how many windows.
#[derive(Clone, Copy, Debug)]
struct Steady {
    came: Rate,
    windows: u32,
}

/// How the queue at the provider goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drain {
    /// The rate before.
    from: Rate,
    begun: Instant,
    /// The shortest queue so far, and since when.
    least: Span,
    since: Instant,
    /// What came while it stood, and for how long.
    bytes: u64,
    lasted: Span,
    /// How many times in a row less came than that.
    less: u32,
    /// How many times the same came.
    same: u32,
    /// How much further below the line it goes because somebody does not slow down, in millionths
    /// of the line, and the rate at which the queue then began to go.
    deeper: u32,
    enough: Option<Rate>,
}

/// Of the line it stays below it, in millionths.
const BELOW: u32 = 970_000;
/// While a queue drains, the most and the least of the line: less by as much of it as the queue,
/// beyond a small one, is of this.
const DRAINING: [u32; 2] = [BELOW, 400_000];
const DRAINED: Span = Span::from_ms(500);
const SMALL: Span = Span::from_ms(25);
/// Of what was told, the least; and the least that must come before anything is concluded.
const LEAST: u32 = 20_000;
const ENOUGH: u32 = 45_000;
/// How long a queue stands before it is the line's.
const STANDS: Span = Span::from_ms(150);
/// After so much silence, and a round trip, a queue was seen once and not twice.
const SILENCE: Span = Span::from_ms(500);
/// Less of the line than this has come if the queue is gone, or the line another one; the first, if
/// it is so near to what the link let through.
const LESS: u32 = 970_000;
const LESS_UP: u32 = 850_000;
const NEAR: u32 = 50_000;
/// Upstream: what acknowledgements say may be wrong by this, and the slope of the queue right; one
/// that is as long as both agree to this is made by what leaves here.
const FAR: u32 = 300_000;
const OURS: u32 = 100_000;
/// Where less than this of the rate comes, the line is another one than that before.
const FELL: u32 = 800_000;
/// A queue at the provider grows shorter within this, or is none of ours.
const PATIENCE: Span = Span::from_secs(2);
/// Where more arrives all the while than goes on, the queue would be gone if all slowed down. If it
/// is no shorter after that, it goes deeper by so much at a time, down to the last; and is patient
/// for as long again.
const STUBBORN: Span = Span::from_secs(1);
const DEEPER: u32 = 35_000;
const DEEPEST: u32 = 200_000;
/// So long after it was found a queue may still grow by what was under way.
const GROWS: Span = Span::from_secs(1);
/// How long doubt waits, how fast it then goes down each second.
const DOUBT: Span = Span::from_secs(1);
const DOUBT_PACE: u32 = 20_000;
const DOUBT_END: Span = Span::from_secs(6);
/// How long somebody else's queue is believed to be that, at first and at most.
const BELIEF: [Span; 2] = [Span::from_secs(5), Span::from_secs(60)];
/// How long it rests before it tries for more; and where one host alone said what the line
/// carries, but others have come.
const REST: Span = Span::from_ms(800);
const SHORT_REST: Span = Span::from_ms(200);
/// The same comes if it differs by this at most; how far above that it stays if no more comes.
const SAME: u32 = 15_000;
const AHEAD: u32 = 40_000;
/// It rises by this part, and once it is so far beyond the line that it knew by twice as much each
/// time, up to that; and waits so long to see what that does.
const STEPS: [u32; 2] = [20_000, 400_000];
const BEYOND: u32 = 30_000;
const TRIES: Span = Span::from_ms(190);

impl Margin {
    /// How often a link asks for its rate.
    pub const CADENCE: Span = Span::from_ms(100);

    /// For a link whose plan says `margin = "auto"` of the way to this side.
    #[must_use]
    pub fn of(plan: &Plan, way: Way) -> Option<Margin> {
        let shares = plan.nodes.first()?.shares;
        let (told, finds) = match way {
            Way::Down => (shares.down.rate, plan.finds.down),
            Way::Up => (shares.up.rate, plan.finds.up),
        };
        finds.then(|| Margin {
            way,
            mix: Mix::default(),
            slope: Slope::new(),
            all: 0,
            told,
            link: lower::link(plan),
            rate: told.part(BELOW),
            line: None,
            witnesses: 0,
            state: State::Steady,
            rested: Span::ZERO,
            step: STEPS[0],
            stands: Span::ZERO,
            doubt: Span::ZERO,
            silence: Span::ZERO,
            steady: Steady { came: Rate::ZERO, windows: 0 },
            heard: Instant::ZERO,
            belief: BELIEF[0],
            since: None,
        })
    }

    /// For a link whose policy has changed: what was found stays where the new policy says the same
    /// of the link.
    #[must_use]
    pub fn after(before: Option<Margin>, fresh: Option<Margin>) -> Option<Margin> {
        let fresh = fresh?;
        let same = before.filter(|old| (old.told, old.link) == (fresh.told, fresh.link));
        Some(same.unwrap_or(fresh))
    }

    /// Nobody was held back until now: what was counted says nothing.
    pub(crate) fn looks_anew(&mut self) {
        self.since = None;
    }

    /// The rate to use from now on, from what the link has counted on its way and from TCP's
    /// numbers.
    pub(crate) fn follow(&mut self, now: Instant, counted: &Counters, watch: &Watch) -> Rate {
        let trips = watch.round_trips();
        let (arrived, round_trip) = match self.way {
            Way::Down => (counted.received, trips.wan),
            Way::Up => (counted.sent, trips.data),
        };
        let look = Look {
            arrived,
            left: counted.sent.frames,
            waited: Span::from_ns(counted.delay.sum_ns),
            round_trip,
            uploads: watch.uploads(),
        };
        self.step(now, &look)
    }

    /// The rate to use from now on. To be asked each [`Margin::CADENCE`]; more often is harmless.
    pub fn step(&mut self, now: Instant, look: &Look) -> Rate {
        if let Some(window) = self.measure(now, look) {
            self.judge(now, &window);
            self.rate = self.rate.clamp(self.told.part(LEAST), self.told);
        }
        self.rate
    }

    /// What is in use.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// What the line carried when it was last seen to be the limit.
    #[must_use]
    pub const fn line(&self) -> Option<Rate> {
        self.line
    }

    fn judge(&mut self, now: Instant, window: &Window) {
        self.steady.same(window.came);
        self.silence = match window.queue {
            Queue::Unknown => self.silence + window.lasted,
            _ => Span::ZERO,
        };
        match (window.queue, window.binds) {
            (Queue::Long, false) => self.stands += window.lasted,
            (Queue::Unknown, false) if self.silence < SILENCE + window.raised => {}
            _ => self.stands = Span::ZERO,
        }
        match (window.queue, window.binds) {
            (Queue::Long, true) => self.doubt += window.lasted,
            (Queue::Short, _) => self.doubt = Span::ZERO,
            _ => {}
        }
        match self.state {
            State::Draining(drain) => self.drain(now, window, drain),
            State::Foreign(until) if now < until && window.queue != Queue::Short => {
                if window.binds {
                    self.rise(now, window);
                }
            }
            State::Foreign(_) => self.state = State::Steady,
            State::Steady | State::Rising(..) => match window.queue {
                // it has gone up, and that made a queue
                Queue::Long if self.is_too_much(window) => self.found(now, window),
                Queue::Long => self.is_long(now, window),
                Queue::Short => self.rise(now, window),
                Queue::Unknown | Queue::Sinking => {}
            },
        }
    }

    /// It has gone up, all that it let through before still comes, and there is a queue.
    fn is_too_much(&self, window: &Window) -> bool {
        matches!(self.state, State::Rising(_, before) if window.came >= before.part(BINDS))
    }

    /// There is a queue somewhere on the way: at the provider, if the link's rate does not bind.
    fn is_long(&mut self, now: Instant, window: &Window) {
        self.rested = Span::ZERO;
        self.step = STEPS[0];
        if window.binds && self.line.is_some_and(|line| self.rate < line) {
            // it was not gone
            let line = self.line.unwrap_or(self.told);
            let lasted = Margin::CADENCE;
            let bytes = line.bytes_in(lasted).get();
            self.empty(window, Drain { from: self.rate, bytes, lasted, ..Drain::new(now, window) });
        } else if window.binds {
            if self.doubt >= DOUBT {
                self.rate = self.rate.minus(over(self.rate, DOUBT_PACE, window.lasted));
            }
            if self.doubt >= DOUBT_END {
                self.is_foreign(now);
            }
        } else if self.stands >= STANDS && window.came >= self.told.part(ENOUGH) {
            self.found(now, window);
        }
    }

    /// The line carries what came, and there is a queue.
    fn found(&mut self, now: Instant, window: &Window) {
        let drain = Drain { from: self.rate, ..Drain::new(now, window) };
        // before it went up there was none: the line carries that at least
        let least = match self.state {
            State::Rising(_, before) => before,
            _ => Rate::ZERO,
        };
        let came = match self.way {
            Way::Down => window.came,
            Way::Up => {
                if window.came < self.rate.part(FELL) {
                    self.slope.ends();
                }
                self.by_slope(window.came, FAR).unwrap_or(window.came)
            }
        };
        self.learn(came.max(least).min(self.rate), window.hosts);
        self.empty(window, drain);
    }

    /// What the line carries by how its queue grows, unless that is far from what came.
    fn by_slope(&self, came: Rate, far: u32) -> Option<Rate> {
        let far = came.part(far);
        self.slope.line().filter(|line| *line >= came.minus(far) && *line <= came.plus(far))
    }

    /// Goes below the line, further the longer the queue is.
    fn empty(&mut self, window: &Window, drain: Drain) {
        let line = self.line.unwrap_or(self.told);
        let deep = window.raised.ns().saturating_sub(SMALL.ns()).saturating_mul(1_000_000);
        let part = u64::from(DRAINING[0]).saturating_sub(deep / DRAINED.ns());
        let part = u32::try_from(part).unwrap_or(0).max(DRAINING[1]);
        let part = part.saturating_sub(drain.deeper).max(DEEPEST);
        self.rate = line.part(part);
        self.state = State::Draining(drain);
    }

    /// The line carries this.
    fn learn(&mut self, line: Rate, hosts: u32) {
        self.line = Some(line);
        self.witnesses = hosts;
        self.rested = Span::ZERO;
        self.step = STEPS[0];
        self.stands = Span::ZERO;
    }

    fn drain(&mut self, now: Instant, window: &Window, mut drain: Drain) {
        match window.queue {
            Queue::Short => {
                self.belief = BELIEF[0];
                if let (Way::Up, Some(line)) = (self.way, self.line) {
                    self.line = Some(self.by_slope(line, FAR).unwrap_or(line));
                }
                self.settle();
                self.rate = self.rate.min(drain.enough.unwrap_or(self.rate));
            }
            Queue::Unknown if window.sinks => {
                drain.since = now;
                self.state = State::Draining(drain);
            }
            Queue::Unknown if now.since(drain.since) >= PATIENCE + drain.least => self.settle(),
            Queue::Unknown => {
                // nobody says so, but no more comes than goes on
                let is_gone = window.came <= self.rate.plus(self.rate.part(NEAR));
                drain.less = if is_gone { drain.less + 1 } else { 0 };
                self.state = State::Draining(drain);
                if drain.less >= 3 {
                    self.settle();
                }
            }
            Queue::Sinking => {
                drain.since = now;
                if let (Way::Up, true, Some(line)) = (self.way, window.sinks, self.line) {
                    self.line = Some(drain.said(window, Some(line)).max(line).min(drain.from));
                }
                self.state = State::Draining(drain);
            }
            Queue::Long => {
                // it stood all the while: what came is what the line carries
                let line = match self.way {
                    Way::Down => drain.heard(now, window, self.rate),
                    Way::Up => {
                        let said = drain.said(window, self.line);
                        self.by_slope(said, FAR).unwrap_or(said).min(drain.from)
                    }
                };
                self.line = Some(line.min(self.told));
                if window.raised > drain.least && now.since(drain.begun) < GROWS {
                    // it was found before it was as long as it gets
                    drain.least = window.raised;
                    drain.since = now;
                } else if window.raised.ns() < drain.least.ns() / 10 * 9 {
                    drain.least = window.raised;
                    drain.since = now;
                    if drain.deeper > 0 && drain.enough.is_none() {
                        drain.enough = Some(self.rate);
                    }
                } else if self.is_crowded(window)
                    && now.since(drain.since) < STUBBORN + PATIENCE + drain.least
                {
                    if now.since(drain.since) >= STUBBORN + drain.least {
                        drain.deeper = (drain.deeper + DEEPER).min(DRAINING[0]);
                        drain.enough = None;
                    }
                } else if window.sinks || self.by_slope(window.came, OURS).is_some() {
                    drain.since = now;
                } else if now.since(drain.since) >= PATIENCE + drain.least {
                    self.rate = drain.from;
                    self.line = None;
                    return self.is_foreign(now);
                }
                self.empty(window, drain);
            }
        }
    }

    /// As much comes as the line carries, and more than goes on: whose queue it is shows when less
    /// comes.
    fn is_crowded(&self, window: &Window) -> bool {
        let full = self.line.map_or(Rate::MAX, |line| line.part(LESS));
        self.way == Way::Down
            && window.came >= full
            && window.came > self.rate.plus(self.rate.part(NEAR))
    }

    /// The queue at the provider is gone.
    fn settle(&mut self) {
        self.rate = self.line.unwrap_or(self.told).part(BELOW);
        self.state = State::Steady;
    }

    fn is_foreign(&mut self, now: Instant) {
        self.state = State::Foreign(now + self.belief);
        self.belief = (self.belief + self.belief).min(BELIEF[1]);
        self.stands = Span::ZERO;
        self.doubt = Span::ZERO;
    }

    /// It went up, and no more comes: either that is the line, whose queue has yet to grow, or that
    /// is all that anybody sends. In both cases a little more than that is enough.
    fn come_down(&mut self, window: &Window) {
        let known = self.line.map_or(Rate::ZERO, |line| line.part(BELOW));
        let enough = window.came.plus(window.came.part(AHEAD)).max(known);
        if matches!(self.state, State::Rising(..)) && self.steady.windows >= 3 && enough < self.rate
        {
            self.rate = enough;
            self.step = STEPS[0];
        }
    }

    /// How long it waits to see what going up has done: longer where that is beyond the line that
    /// it knew.
    fn tries(&self) -> Span {
        let is_beyond = self.line.is_some_and(|line| self.rate > line);
        if is_beyond { TRIES + TRIES } else { TRIES }
    }

    /// Nothing is in the way: there may be more.
    fn rise(&mut self, now: Instant, window: &Window) {
        if !window.binds {
            return self.come_down(window);
        }
        self.rested += window.lasted;
        let rest = match self.state {
            State::Rising(since, _) if now.since(since) < self.tries() => return,
            State::Rising(..) => Span::ZERO,
            _ if self.witnesses == 1 && window.hosts > 1 => SHORT_REST,
            _ => REST,
        };
        let is_foreign = matches!(self.state, State::Foreign(_));
        if self.rested < rest || (window.begins && !is_foreign) {
            return;
        }
        let before = self.rate;
        self.rate = self.rate.plus(self.rate.part(self.step));
        if self.line.is_none() {
            self.step = (self.step * 2).min(STEPS[1]);
        }
        if !is_foreign {
            self.state = State::Rising(now, before);
        }
        // it is beyond what it knew
        if self.line.is_some_and(|line| self.rate > line.plus(line.part(BEYOND))) {
            self.line = None;
        }
    }
}

impl Steady {
    /// For how many windows in a row the same came.
    fn same(&mut self, came: Rate) -> u32 {
        let is_same =
            came.plus(came.part(SAME)) >= self.came && self.came.plus(self.came.part(SAME)) >= came;
        if is_same {
            self.windows = self.windows.saturating_add(1);
        } else {
            *self = Steady { came, windows: 0 };
        }
        self.windows
    }
}

impl Drain {
    fn new(now: Instant, window: &Window) -> Drain {
        let (bytes, lasted) = (window.bytes, window.lasted);
        Drain {
            from: Rate::ZERO,
            begun: now,
            least: window.raised,
            since: now,
            bytes,
            lasted,
            less: 0,
            same: 0,
            deeper: 0,
            enough: None,
        }
    }

    /// The line as what came says while a queue stands before it. Where no more came than the link
    /// let through, the queue was gone before anybody could say so; less for a second time, and the
    /// line carries less.
    fn heard(&mut self, now: Instant, window: &Window, rate: Rate) -> Rate {
        let line = rate_of(self.bytes, self.lasted);
        let is_less = window.came < line.part(LESS);
        if is_less
            && window.came.plus(rate.part(NEAR)) >= rate
            && window.came <= rate.plus(rate.part(NEAR))
        {
            return line;
        }
        self.less = if is_less { self.less + 1 } else { 0 };
        if self.less >= 2 {
            (self.bytes, self.lasted, self.less) = (0, Span::ZERO, 0);
            (self.least, self.since) = (window.raised, now);
        }
        if self.less == 0 {
            self.bytes += window.bytes;
            self.lasted += window.lasted;
        }
        rate_of(self.bytes, self.lasted)
    }
}

impl Drain {
    /// The line as acknowledgements say. While those of lost data are missing they say too little:
    /// once they have said the same five times, much less counts when it is said a third time.
    fn said(&mut self, window: &Window, line: Option<Rate>) -> Rate {
        let known = line.filter(|line| window.came < line.part(LESS_UP));
        match known {
            None => (self.same, self.less) = (self.same + 1, 0),
            Some(_) => self.less += 1,
        }
        if let Some(line) = known.filter(|_| self.same >= 5 && self.less < 3) {
            return line;
        }
        if known.is_some() {
            self.same = 0;
        }
        window.came
    }
}

/// A part of a rate, so much a second, over a while.
fn over(rate: Rate, millionths: u32, lasted: Span) -> Rate {
    let part = u128::from(rate.part(millionths).bps()) * u128::from(lasted.ns()) / 1_000_000_000;
    Rate::from_bps(u64::try_from(part).unwrap_or(u64::MAX).max(1))
}
