//! `margin = "auto"`: how far below the line to shape downstream, found while traffic flows. weir
//! stands behind the line there, so that a queue forms at the provider as soon as weir lets
//! through more than the line carries; and what the line carries is not always what was told.
//!
//! Two things give it away. Where the provider's queue grows, the way to hosts of the WAN side and
//! back takes longer than it did ([`RoundTrip::raised`]) while the link's rate does not bind: the
//! line does, so what arrives is what it carries. Then the link goes below it, further the longer
//! the queue is, until that is gone, and stays 3 % below. Where the link's rate binds and the way
//! is as short as ever, there may be more: after a rest it tries, a little at first, then more and
//! more, up to what was told. Long ways while the link binds are doubtful: it gives up to a tenth,
//! and if that shortens nothing they are somebody else's. So are ways that stay long although the
//! link has gone well below what came.
//!
//! Whoever runs a link makes a [`Margin`] of its plan, once, watches TCP's numbers
//! ([`Config::watch`](crate::Config::watch)), and then, each [`Margin::CADENCE`]:
//!
//! ```ignore
//! let end = engine.snapshot(u32::MAX, &mut books); // the totals alone
//! engine.limits(now, &[margin.follow(now, &books)]);
//! ```
//!
//! A limit holds until a policy is applied, so it is given each time. Of several engines on one
//! link, add up [`Look`]s and share the answer of [`Margin::step`]. After a change of policy
//! [`Margin::after`] keeps what was found. Not seen: a line with less than a twentieth of what was
//! told, and one that carries no TCP with timestamps.

use weir_packet::Side;
use weir_policy::Plan;
use weir_shape::Link;
use weir_units::{Bytes, Instant, Rate, Span};

use crate::compile;
use crate::engine::{LINK, Snapshot};
use crate::ledger::Count;
use crate::watch::RoundTrip;

/// What a link has seen of its line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// All that ever arrived from the WAN side.
    pub arrived: Count,
    /// All frames that ever left for the LAN side.
    pub left: u64,
    /// How long these had waited here, together.
    pub waited: Span,
    /// The way to the WAN side and back.
    pub round_trip: RoundTrip,
}

/// Finds the rate of one link towards the LAN side.
#[derive(Clone, Debug)]
pub struct Margin {
    /// What the operator says that the line carries: the rate is never higher.
    told: Rate,
    link: Link,
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
    /// The shortest queue so far, and since when.
    least: Span,
    since: Instant,
    /// What came while it stood, and for how long.
    bytes: u64,
    lasted: Span,
    /// How many times in a row less came than that.
    less: u32,
}

/// What a while of traffic says.
#[derive(Clone, Copy, Debug)]
struct Window {
    lasted: Span,
    /// What came, as it counts on the line.
    bytes: u64,
    came: Rate,
    /// More could come if the rate were higher.
    binds: bool,
    queue: Queue,
    /// How much longer ways are, if that is known.
    raised: Span,
    /// Hosts of the WAN side whose ways were measured.
    hosts: u32,
}

/// The queue at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Unknown,
    Short,
    Long,
    /// It was there all the while that anybody knew the way, and gets shorter.
    Sinking,
}

/// Of the line it stays below it, in millionths.
const BELOW: u32 = 970_000;
/// While a queue drains, the most and the least of the line: less by as much of it as the queue,
/// beyond a small one, is of this.
const DRAINING: [u32; 2] = [962_000, 400_000];
const DRAINED: Span = Span::from_ms(500);
const SMALL: Span = Span::from_ms(25);
/// Of what was told, the least; and the least that must come before anything is concluded.
const LEAST: u32 = 20_000;
const ENOUGH: u32 = 45_000;
/// Of the rate, what must come for it to bind, if frames wait longer than this as well.
const BINDS: u32 = 950_000;
const WAITS: Span = Span::from_ms(1);
/// Ways this much longer, and by two frames, mean a queue.
const LONG: Span = Span::from_ms(5);
/// Ways this much shorter than ever mean that there was one.
const SINKS: Span = Span::from_ms(2);
const FRAMES: Bytes = Bytes::new(2 * 1_514);
/// A window has so much in it, if that comes within the longest.
const LONGEST: Span = Span::from_secs(1);
const SAMPLE: Bytes = Bytes::new(15_000);
/// How long a queue stands before it is the line's.
const STANDS: Span = Span::from_ms(150);
/// After so much silence, and a round trip, a queue was seen once and not twice.
const SILENCE: Span = Span::from_ms(500);
/// Less of the line than this has come if the queue is gone, or the line another one; the first, if
/// it is so near to what the link let through.
const LESS: u32 = 970_000;
const NEAR: u32 = 50_000;
/// What was measured longer ago is not known any more.
const STALE: Span = Span::from_ms(1_500);
/// A queue at the provider grows shorter within this, or is none of ours.
const PATIENCE: Span = Span::from_secs(2);
/// How long doubt waits, how fast it then goes down each second.
const DOUBT: Span = Span::from_secs(1);
const DOUBT_PACE: u32 = 20_000;
const DOUBT_END: Span = Span::from_secs(6);
/// How long somebody else's queue is believed to be that, at first and at most.
const BELIEF: [Span; 2] = [Span::from_secs(5), Span::from_secs(60)];
/// How long it rests before it tries for more; and where one host alone said what the line
/// carries, but others have come.
const REST: Span = Span::from_ms(1_200);
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

    /// For a link whose plan says `margin = "auto"`.
    #[must_use]
    pub fn of(plan: &Plan) -> Option<Margin> {
        let told = plan.nodes.first()?.shares.down.rate;
        plan.finds_down.then(|| Margin {
            told,
            link: compile::link(plan),
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

    /// For a link whose policy has changed: what was found stays, as far as it is possible.
    #[must_use]
    pub fn after(before: Option<Margin>, plan: &Plan) -> Option<Margin> {
        let fresh = Margin::of(plan)?;
        Some(match before {
            Some(old) if old.told == fresh.told && old.link == fresh.link => old,
            _ => fresh,
        })
    }

    /// What to tell [`Engine::limits`](crate::Engine::limits) now, from the books of the link.
    pub fn follow(&mut self, now: Instant, books: &Snapshot) -> (u32, Side, Rate) {
        let down = &books.total[Side::Wan as usize];
        let look = Look {
            arrived: down.received,
            left: down.sent.frames,
            waited: Span::from_ns(down.delay.sum_ns),
            round_trip: books.round_trips.wan,
        };
        (LINK, Side::Lan, self.step(now, &look))
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

    /// What came since the last window, if that was long enough ago.
    fn measure(&mut self, now: Instant, look: &Look) -> Option<Window> {
        let Some((since, before)) = self.since else {
            self.since = Some((now, *look));
            return None;
        };
        let lasted = now.since(since);
        // a tick that comes a little early is one
        let least = Span::from_ns(Margin::CADENCE.ns() / 4 * 3);
        if lasted < self.rate.time_for(SAMPLE).clamp(least, LONGEST) {
            return None;
        }
        self.since = Some((now, *look));
        let frames = look.arrived.frames.saturating_sub(before.arrived.frames);
        let bytes = look.arrived.bytes.saturating_sub(before.arrived.bytes);
        let bytes = self.cost(frames, bytes);
        let came = rate_of(bytes, lasted);
        let left = look.left.saturating_sub(before.left);
        let waited = look.waited.ns().saturating_sub(before.waited.ns()) / left.max(1);
        let waits = waited > (WAITS + self.rate.time_for(FRAMES)).ns();
        let binds = waits && came >= self.rate.part(BINDS);
        let trip = &look.round_trip;
        let is_fresh = trip.until > self.heard;
        let is_known = trip.compared > 0 && now.since(trip.until) <= STALE;
        let long = LONG + self.rate.time_for(FRAMES);
        let queue = match (trip.raised >= long, trip.sank >= SINKS) {
            _ if !is_known || !is_fresh => Queue::Unknown,
            (true, _) => Queue::Long,
            (false, true) => Queue::Sinking,
            (false, false) => Queue::Short,
        };
        self.heard = trip.until;
        let (raised, hosts) = (trip.raised, trip.hosts);
        Some(Window { lasted, bytes, came, binds, queue, raised, hosts })
    }

    /// What frames cost on the line that have so many bytes together.
    fn cost(&self, frames: u64, bytes: u64) -> u64 {
        let mean = usize::try_from(bytes / frames.max(1)).unwrap_or(0);
        frames.saturating_mul(self.link.cost(mean, 14).get())
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
        self.learn(window.came.max(least).min(self.told), window.hosts);
        self.empty(window, drain);
    }

    /// Goes below the line, further the longer the queue is.
    fn empty(&mut self, window: &Window, drain: Drain) {
        let line = self.line.unwrap_or(self.told);
        let deep = window.raised.ns().saturating_sub(SMALL.ns()).saturating_mul(1_000_000);
        let part = u64::from(DRAINING[0]).saturating_sub(deep / DRAINED.ns());
        let part = u32::try_from(part).unwrap_or(0).max(DRAINING[1]);
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
                self.settle();
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
                self.state = State::Draining(drain);
            }
            Queue::Long => {
                // it stood all the while: what came is what the line carries
                self.line = Some(drain.heard(window, self.rate).min(self.told));
                if window.raised.ns() < drain.least.ns() / 10 * 9 {
                    drain.least = window.raised;
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
        let enough = window.came.plus(window.came.part(AHEAD));
        if matches!(self.state, State::Rising(..)) && self.steady.windows >= 3 && enough < self.rate
        {
            self.rate = enough;
            self.step = STEPS[0];
        }
    }

    /// Nothing is in the way: there may be more.
    fn rise(&mut self, now: Instant, window: &Window) {
        if !window.binds {
            return self.come_down(window);
        }
        self.rested += window.lasted;
        let rest = match self.state {
            State::Rising(since, _) if now.since(since) < TRIES => return,
            State::Rising(..) => Span::ZERO,
            _ if self.witnesses == 1 && window.hosts > 1 => SHORT_REST,
            _ => REST,
        };
        if self.rested < rest {
            return;
        }
        let before = self.rate;
        self.rate = self.rate.plus(self.rate.part(self.step));
        if self.line.is_none() {
            self.step = (self.step * 2).min(STEPS[1]);
        }
        if !matches!(self.state, State::Foreign(_)) {
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
            self.windows += 1;
        } else {
            *self = Steady { came, windows: 0 };
        }
        self.windows
    }
}

impl Drain {
    fn new(now: Instant, window: &Window) -> Drain {
        let (bytes, lasted) = (window.bytes, window.lasted);
        Drain { from: Rate::ZERO, least: window.raised, since: now, bytes, lasted, less: 0 }
    }

    /// The line as what came says while a queue stands before it. Where no more came than the link
    /// let through, the queue was gone before anybody could say so; less for a second time, and the
    /// line carries less.
    fn heard(&mut self, window: &Window, rate: Rate) -> Rate {
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
        }
        if self.less == 0 {
            self.bytes += window.bytes;
            self.lasted += window.lasted;
        }
        rate_of(self.bytes, self.lasted)
    }
}

/// A part of a rate, so much a second, over a while.
fn over(rate: Rate, millionths: u32, lasted: Span) -> Rate {
    let part = u128::from(rate.part(millionths).bps()) * u128::from(lasted.ns()) / 1_000_000_000;
    Rate::from_bps(u64::try_from(part).unwrap_or(u64::MAX).max(1))
}

/// The rate at which so many bytes come in a while.
fn rate_of(bytes: u64, lasted: Span) -> Rate {
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(lasted.ns().max(1));
    Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX))
}
