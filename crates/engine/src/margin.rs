//! `margin = "auto"`: how far below the line to shape downstream, found while traffic flows. weir
//! stands behind the line there, so that a queue forms at the provider as soon as weir lets
//! through more than the line carries; and what the line carries is not always what was told.
//!
//! Two things give it away. Where the provider's queue grows, the way to hosts of the WAN side and
//! back takes longer than it did ([`RoundTrip::raised`]) while the link's rate does not bind: the
//! line does, so what arrives is what it carries. Then the link goes well below it until the queue
//! there is gone, and stays 3 % below. Where the link's rate binds and the way is as short as
//! ever, there may be more: after a rest it rises, slowly first, up to what was told. Long ways
//! while the link binds are doubtful: it gives up to a tenth, and if that shortens nothing they
//! are somebody else's.
//!
//! Whoever runs a link makes a [`Margin`] of its plan, once, watches TCP's numbers
//! ([`Config::watch`](crate::Config::watch)), and then, every tenth of a second to every second:
//!
//! ```ignore
//! let end = engine.snapshot(u32::MAX, &mut books); // the totals alone
//! engine.limits(now, &[margin.follow(now, &books)]);
//! ```
//!
//! A limit holds until a policy is applied, so it is given each time. Of several engines on one
//! link, add up [`Look`]s and share the answer of [`Margin::step`]. After a change of policy
//! [`Margin::after`] keeps what was found. Not seen: a line with less than half of what was told,
//! and one that carries no TCP.

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
    /// What waits for the LAN side now.
    pub waiting: Bytes,
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
    /// What the line carried when it was seen to be the limit.
    line: Option<Rate>,
    state: State,
    /// How long it rests below the line before it tries for more, and how long it has.
    rest: Span,
    rested: Span,
    /// How long it has been rising.
    rising: Span,
    /// When it last went down.
    lowered: Instant,
    /// For how long there has been a queue on the way without the rate being what binds, and how
    /// many round trips say so.
    stands: Span,
    evidence: u32,
    /// The end of the last interval of round trips that was looked at.
    heard: Instant,
    /// What came in the window before.
    before: Rate,
    since: Option<(Instant, Count)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is known to be wrong.
    Steady,
    /// The queue at the provider is to go.
    Draining(Instant),
    /// Ways are long, but the link's rate binds: it goes down from what it was.
    Doubt(Instant, Rate),
    /// Ways are long, and not through this line.
    Foreign(Instant),
}

/// What a while of traffic says.
#[derive(Clone, Copy, Debug)]
struct Window {
    lasted: Span,
    came: Rate,
    /// More could come if the rate were higher.
    binds: bool,
    queue: Queue,
    /// Round trips that were not looked at before.
    fresh: u32,
}

/// The queue at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Unknown,
    Short,
    Long,
}

/// Parts of a rate, in millionths: below the line it stays, and goes while a queue drains.
const BELOW: u32 = 970_000;
const DRAINING: u32 = 850_000;
/// Of what was told, the least; and the least that must come before anything is concluded.
const LEAST: u32 = 500_000;
const ENOUGH: u32 = 450_000;
/// Of the rate, what must come for it to bind, if something waits longer than this as well.
const BINDS: u32 = 950_000;
const WAITS: Span = Span::from_ms(1);
/// Ways this much longer, and by two frames, mean a queue.
const LONG: Span = Span::from_ms(5);
const FRAMES: Bytes = Bytes::new(2 * 1_514);
/// A window is at least so long, and has so much in it if that comes within the longest.
const SHORTEST: Span = Span::from_ms(100);
const LONGEST: Span = Span::from_secs(1);
const SAMPLE: Bytes = Bytes::new(150_000);
/// How long a queue stands before it is the line's, the second where the rate has just been what
/// binds, and how steady that must be which comes.
const STANDS: [Span; 2] = [Span::from_ms(200), Span::from_secs(1)];
const STEADY: u32 = 930_000;
/// Round trips that must say so: of one alone nobody knows what it waited for.
const EVIDENCE: u32 = 6;
/// What was measured longer ago is not known any more.
const STALE: Span = Span::from_ms(1_500);
/// A queue at the provider is gone by then, or does not go.
const DRAINED: Span = Span::from_secs(2);
/// How long doubt waits, how fast it then goes down each second, and how far.
const DOUBT: Span = Span::from_secs(1);
const DOUBT_PACE: u32 = 10_000;
const DOUBT_END: u32 = 900_000;
/// After this somebody else's queue may be ours after all.
const FOREIGN: Span = Span::from_secs(60);
/// Rests between two tries.
const RESTS: [Span; 2] = [Span::from_secs(10), Span::from_secs(40)];
/// It rises by this part a second, and every second faster by as much, up to that.
const PACES: [u32; 2] = [10_000, 100_000];
/// A line is another one if it differs by more than this.
const SAME: u32 = 30_000;

impl Margin {
    /// For a link whose plan says `margin = "auto"`.
    #[must_use]
    pub fn of(plan: &Plan) -> Option<Margin> {
        let told = plan.nodes.first()?.shares.down.rate;
        plan.finds_down.then(|| Margin {
            told,
            link: compile::link(plan),
            rate: told.part(BELOW),
            line: None,
            state: State::Steady,
            rest: RESTS[0],
            rested: Span::ZERO,
            rising: Span::ZERO,
            lowered: Instant::ZERO,
            stands: Span::ZERO,
            evidence: 0,
            heard: Instant::ZERO,
            before: Rate::ZERO,
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
        let waiting = Bytes::new(down.held.bytes);
        let round_trip = books.round_trips.wan;
        let look = Look { arrived: down.received, waiting, round_trip };
        (LINK, Side::Lan, self.step(now, &look))
    }

    /// The rate to use from now on. To be asked every tenth of a second to every second; more often
    /// is harmless.
    pub fn step(&mut self, now: Instant, look: &Look) -> Rate {
        if let Some(window) = self.measure(now, look) {
            self.judge(now, window);
            self.rate = self.rate.clamp(self.told.part(LEAST), self.told);
            self.before = window.came;
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
        let Some((since, count)) = self.since else {
            self.since = Some((now, look.arrived));
            return None;
        };
        let lasted = now.since(since);
        if lasted < self.rate.time_for(SAMPLE).clamp(SHORTEST, LONGEST) {
            return None;
        }
        self.since = Some((now, look.arrived));
        let frames = look.arrived.frames.saturating_sub(count.frames);
        let bytes = look.arrived.bytes.saturating_sub(count.bytes);
        let came = rate_of(self.cost(frames, bytes), lasted);
        let waits = self.rate.time_for(look.waiting) > WAITS;
        let binds = waits && came >= self.rate.part(BINDS);
        let trip = &look.round_trip;
        let fresh = if trip.until > self.heard { trip.compared } else { 0 };
        self.heard = trip.until;
        Some(Window { lasted, came, binds, queue: self.queue(now, trip), fresh })
    }

    /// What frames cost on the line that have so many bytes together.
    fn cost(&self, frames: u64, bytes: u64) -> u64 {
        let mean = usize::try_from(bytes / frames.max(1)).unwrap_or(0);
        frames.saturating_mul(self.link.cost(mean, 14).get())
    }

    fn queue(&self, now: Instant, trip: &RoundTrip) -> Queue {
        // what was measured before it went down says nothing of what is now
        let is_new = trip.until >= self.lowered + RoundTrip::INTERVAL;
        if trip.compared == 0 || !is_new || now.since(trip.until) > STALE {
            return Queue::Unknown;
        }
        let long = LONG + self.rate.time_for(FRAMES);
        if trip.raised >= long { Queue::Long } else { Queue::Short }
    }

    fn judge(&mut self, now: Instant, window: Window) {
        let is_plateau = window.came >= self.before.part(STEADY)
            && self.before >= window.came.part(STEADY)
            && window.came >= self.told.part(ENOUGH);
        let stands = window.queue == Queue::Long && !window.binds && is_plateau;
        if stands {
            self.stands += window.lasted;
            self.evidence = self.evidence.saturating_add(window.fresh);
        } else {
            self.stands = Span::ZERO;
            self.evidence = 0;
        }
        match (self.state, window.queue) {
            (State::Steady, Queue::Long) => self.is_long(now, window),
            (State::Steady, Queue::Short) => self.rise(window),
            (State::Steady | State::Doubt(..), Queue::Unknown) => {}
            (State::Draining(_), Queue::Short) => self.settle(),
            (State::Draining(since), _) if now.since(since) < DRAINED => {}
            (State::Draining(_), Queue::Long) => self.is_long(now, window),
            (State::Draining(_), Queue::Unknown) => self.settle(),
            (State::Doubt(_, from), Queue::Short) => {
                self.state = State::Steady;
                // it went down, and that helped
                if self.rate < from {
                    self.learn(from);
                }
            }
            (State::Doubt(since, from), Queue::Long) => self.doubt(now, window, since, from),
            (State::Foreign(since), queue) => {
                if queue == Queue::Short || now.since(since) >= FOREIGN {
                    self.state = State::Steady;
                }
                self.rise(window);
            }
        }
    }

    /// There is a queue somewhere on the way: at the provider, if the link's rate does not bind.
    fn is_long(&mut self, now: Instant, window: Window) {
        if window.binds {
            self.state = State::Doubt(now, self.rate);
        } else if self.stands >= STANDS[0] && self.evidence >= EVIDENCE {
            self.found(now, window.came.max(self.before).min(self.told));
        }
    }

    /// The line carries this, and there is a queue.
    fn found(&mut self, now: Instant, line: Rate) {
        self.learn(line);
        self.rate = line.part(DRAINING);
        self.state = State::Draining(now);
        self.lowered = now;
        self.stands = Span::ZERO;
        self.evidence = 0;
    }

    /// The line carries this.
    fn learn(&mut self, line: Rate) {
        let is_same = self.line.is_some_and(|old| {
            let most = old.part(SAME);
            line <= old.plus(most) && line.plus(most) >= old
        });
        self.rest = if is_same { (self.rest + self.rest).min(RESTS[1]) } else { RESTS[0] };
        self.line = Some(line);
        self.rested = Span::ZERO;
        self.rising = Span::ZERO;
    }

    /// The queue at the provider is gone.
    fn settle(&mut self) {
        self.rate = self.line.unwrap_or(self.told).part(BELOW);
        self.state = State::Steady;
    }

    fn doubt(&mut self, now: Instant, window: Window, since: Instant, from: Rate) {
        if !window.binds {
            // senders take breath, or the line has changed
            if self.stands >= STANDS[1] && self.evidence >= EVIDENCE {
                self.found(now, window.came.max(self.before).min(self.told));
            }
            return;
        }
        self.rising = Span::ZERO;
        if now.since(since) < DOUBT {
            return;
        }
        self.rate = self.rate.minus(over(self.rate, DOUBT_PACE, window.lasted));
        if self.rate <= from.part(DOUBT_END) || self.rate <= self.told.part(LEAST) {
            self.line = None;
            self.state = State::Foreign(now);
        }
    }

    /// Nothing is in the way: there may be more.
    fn rise(&mut self, window: Window) {
        if !window.binds {
            return;
        }
        let aim = self.line.map_or(self.told, |line| line.part(BELOW));
        if self.rate >= aim {
            if self.rested < self.rest {
                self.rested += window.lasted;
                self.rising = Span::ZERO;
                return;
            }
            // it is beyond what it knew
            if self.line.is_some_and(|line| self.rate > line.plus(line.part(SAME))) {
                self.line = None;
            }
        }
        let seconds = u32::try_from(self.rising.ns() / 1_000_000_000).unwrap_or(u32::MAX);
        let pace = PACES[0].saturating_mul(seconds.saturating_add(1)).min(PACES[1]);
        self.rising += window.lasted;
        let higher = self.rate.plus(over(self.rate, pace, window.lasted));
        self.rate = if self.rate < aim { higher.min(aim) } else { higher };
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
