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
    /// For how long there has been a queue on the way without the rate being what binds.
    stands: Span,
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
        Some(Window { lasted, came, binds, queue: self.queue(now, &look.round_trip) })
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
        self.stands = if stands { self.stands + window.lasted } else { Span::ZERO };
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
        } else if self.stands >= STANDS[0] {
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
            if self.stands >= STANDS[1] {
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::{Source, read};

    /// Rates in Mbit/s, times in steps of 10 ms, queues in bytes.
    struct World {
        margin: Margin,
        now: Instant,
        line: f64,
        /// What senders send, and the bytes under way of those who heed queues.
        sent: f64,
        window: Option<f64>,
        starts: bool,
        /// At the provider and at weir.
        far: f64,
        here: f64,
        /// Ways are this much longer for other reasons, in ms.
        longer: f64,
        arrived: f64,
        cut: u32,
        every: u32,
    }

    const STEP: f64 = 0.01;

    fn mbit(rate: Rate) -> f64 {
        rate.bps() as f64 / 1e6
    }

    fn plan(margin: &str) -> Plan {
        let text = format!(
            "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100mbit\"\nup = \"10mbit\"\n\
             margin = {margin}\n[class.\"/all\"]\nmatch = \"any\"\n"
        );
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
        assert!(!reading.is_at_fault(), "{:?}", reading.problems);
        reading.plans.into_iter().next().expect("has a link")
    }

    impl World {
        fn new(line: f64) -> World {
            let margin = Margin::of(&plan("\"auto\"")).expect("is auto");
            World {
                margin,
                now: Instant::ZERO,
                line,
                sent: 0.0,
                window: Some(50_000.0),
                starts: true,
                far: 0.0,
                here: 0.0,
                longer: 0.0,
                arrived: 0.0,
                cut: 0,
                every: 10,
            }
        }

        /// Ten milliseconds. Returns how long frames wait at the provider, in ms.
        fn tick(&mut self) -> f64 {
            let bytes = |mbit: f64| mbit * 1e6 / 8.0 * STEP;
            let came = (self.far + bytes(self.sent)).min(bytes(self.line));
            // 100 ms at the provider; what is beyond is lost
            let most = bytes(self.line) * 10.0;
            self.far = (self.far + bytes(self.sent) - came).min(most);
            self.arrived += came;
            let rate = mbit(self.margin.rate());
            self.here = (self.here + came - bytes(rate)).clamp(0.0, bytes(rate) * 10.0);
            let waits = [self.far / self.line, self.here / rate].map(|w| w * 8.0 / 1e3);
            self.heed(waits, self.far >= most);
            self.now += Span::from_ms(10);
            if self.now.ns() / 10_000_000 % u64::from(self.every) == 0 {
                self.margin.step(self.now, &self.look(waits[0]));
            }
            waits[0]
        }

        /// Twenty senders, 20 ms away, who back off by turns where queues are managed, and all at
        /// once where frames are lost.
        fn heed(&mut self, waits: [f64; 2], is_lost: bool) {
            let Some(window) = &mut self.window else { return };
            self.cut = self.cut.saturating_sub(1);
            let is_long = waits[1] > 10.0;
            self.starts &= !is_lost && !is_long;
            if (is_lost || is_long) && self.cut == 0 {
                *window *= if is_lost { 0.7 } else { 0.97 };
                self.cut = if is_lost { 10 } else { 3 };
            }
            *window *= if self.starts { 1.05 } else { 1.001 };
            self.sent = *window * 8.0 / 1e3 / (20.0 + waits[0] + waits[1]);
        }

        fn look(&self, waits: f64) -> Look {
            let frames = (self.arrived / 1_518.0) as u64;
            let round_trip = RoundTrip {
                until: self.now,
                taken: 20,
                compared: 20,
                raised: Span::from_us(((waits + self.longer) * 1e3) as u64),
                ..RoundTrip::default()
            };
            let arrived = Count { frames, bytes: frames * 1_514 };
            Look { arrived, waiting: Bytes::new(self.here as u64), round_trip }
        }

        /// So many seconds. Returns the mean wait at the provider in ms and the mean of what came.
        fn run(&mut self, seconds: u32) -> (f64, f64) {
            let (mut waits, before) = (0.0, self.arrived);
            for _ in 0..seconds * 100 {
                waits += self.tick();
            }
            let came = (self.arrived - before) * 8.0 / 1e6;
            (waits / f64::from(seconds * 100), came / f64::from(seconds))
        }
    }

    #[test]
    fn only_who_says_auto_has_one() {
        assert!(Margin::of(&plan("\"97%\"")).is_none());
        assert!(Margin::of(&plan("{ up = \"99%\" }")).is_none());
        let auto = Margin::of(&plan("{ down = \"auto\", up = \"100%\" }")).expect("is");
        assert_eq!(auto.rate(), Rate::from_bps(97_000_000));
    }

    #[test]
    fn a_line_that_carries_less_is_found() {
        for every in [10, 30, 100] {
            for line in [55.0, 80.0, 90.0] {
                let mut world = World { every, ..World::new(line) };
                world.run(10);
                let (waits, came) = world.run(60);
                assert!(waits <= 10.0, "{line} each {every}: {waits} ms");
                assert!(came >= 0.95 * line, "{line} each {every}: {came}");
            }
        }
    }

    #[test]
    fn a_line_that_carries_what_was_told_is_used() {
        let mut world = World::new(100.0);
        world.run(10);
        let (waits, came) = world.run(60);
        assert!(waits <= 10.0 && came >= 95.0, "{waits} ms, {came}");
        // one that carries more is not
        let mut world = World::new(150.0);
        world.run(60);
        assert_eq!(world.margin.rate(), Rate::from_bps(100_000_000));
    }

    #[test]
    fn a_line_that_changes_is_followed() {
        let mut world = World::new(80.0);
        world.run(20);
        for (line, needs) in [(60.0, 10), (90.0, 60)] {
            world.line = line;
            world.run(needs);
            let (waits, came) = world.run(30);
            assert!(waits <= 10.0 && came >= 0.95 * line, "{line}: {waits} ms, {came}");
        }
    }

    #[test]
    fn steady_streams_below_the_line_and_silence_change_nothing() {
        for (sent, longer) in [(0.0, 0.0), (0.0, 50.0), (30.0, 50.0), (79.0, 0.0), (60.0, 4.0)] {
            let mut world = World { sent, window: None, longer, ..World::new(80.0) };
            world.run(60);
            assert_eq!(mbit(world.margin.rate()), 97.0, "{sent} Mbit/s, {longer} ms longer");
        }
    }

    #[test]
    fn ways_that_grow_elsewhere_cost_a_tenth_and_not_for_ever() {
        let mut world = World::new(150.0);
        world.run(20);
        assert_eq!(mbit(world.margin.rate()), 100.0);
        world.longer = 40.0;
        let mut least = 100.0_f64;
        for _ in 0..40 {
            world.run(1);
            least = least.min(mbit(world.margin.rate()));
        }
        assert!((85.0..95.0).contains(&least), "{least}");
        assert!(mbit(world.margin.rate()) > 99.0, "{}", mbit(world.margin.rate()));
    }

    #[test]
    fn it_never_leaves_what_was_told() {
        let mut world = World::new(20.0);
        for second in 0..200_u32 {
            world.line = f64::from(10 + second * 37 % 140);
            world.longer = f64::from(second % 7) * 3.0;
            world.run(1);
            let rate = mbit(world.margin.rate());
            assert!((50.0..=100.0).contains(&rate), "{rate}");
        }
    }

    #[test]
    fn another_policy_keeps_what_was_found() {
        let mut world = World::new(80.0);
        world.run(20);
        let (rate, before) = (world.margin.rate(), world.margin.clone());
        let after = Margin::after(Some(before), &plan("{ down = \"auto\", up = \"90%\" }"));
        assert_eq!(after.expect("is auto").rate(), rate);
        assert!(Margin::after(Some(world.margin), &plan("\"97%\"")).is_none());
    }
}
