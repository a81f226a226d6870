//! The margin that is found, beside a line of flowing water: rates in Mbit/s, queues in bytes. Real
//! frames and senders are in the simulation's tests.

use weir_engine::{Count, Look, Margin, RoundTrip, Uploads};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Rate, Span, Way};

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
    /// All waits of all frames that left here, in ms.
    waited: f64,
    cut: u32,
    every: u32,
}

const STEP: f64 = 0.01;

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mbit(rate: Rate) -> f64 {
    rate.bps() as f64 / 1e6
}

fn plan(margin: &str) -> Plan {
    plan_of("down = \"100mbit\"", margin)
}

fn plan_of(link: &str, margin: &str) -> Plan {
    let text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\n{link}\nup = \"10mbit\"\n\
         margin = {margin}\n[class.\"/all\"]\nmatch = \"any\"\n"
    );
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.into_iter().next().expect("has a link")
}

impl World {
    fn new(line: f64) -> World {
        let margin = Margin::of(&plan("\"auto\""), Way::Down).expect("is auto");
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
            waited: 0.0,
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
        self.waited += waits[1] * came / 1_518.0;
        self.heed(waits, self.far >= most);
        self.now += Span::from_ms(10);
        if (self.now.ns() / 10_000_000).is_multiple_of(self.every.into()) {
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

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and small")]
    fn look(&self, waits: f64) -> Look {
        let frames = (self.arrived / 1_518.0) as u64;
        let round_trip = RoundTrip {
            until: self.now,
            taken: 20,
            compared: 20,
            hosts: 4,
            raised: Span::from_us(((waits + self.longer) * 1e3) as u64),
            ..RoundTrip::default()
        };
        let arrived = Count { frames, bytes: frames * 1_514 };
        let waited = Span::from_us((self.waited * 1e3) as u64);
        Look { arrived, left: frames, waited, round_trip, ..Look::default() }
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
    assert!(Margin::of(&plan("\"97%\""), Way::Down).is_none());
    assert!(Margin::of(&plan("{ up = \"99%\" }"), Way::Down).is_none());
    let auto = Margin::of(&plan("{ down = \"auto\", up = \"100%\" }"), Way::Down).expect("is");
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
fn one_long_round_trip_is_no_queue() {
    let mut world = World { sent: 60.0, window: None, longer: 30.0, ..World::new(80.0) };
    let mut seen = RoundTrip::default();
    for tenth in 1..=200 {
        world.now += Span::from_ms(100);
        world.arrived += 60e6 / 8.0 * 0.1;
        let look = world.look(0.0);
        if tenth % 20 == 0 {
            seen = RoundTrip { compared: 2, ..look.round_trip };
        }
        world.margin.step(world.now, &Look { round_trip: seen, ..look });
    }
    assert_eq!(mbit(world.margin.rate()), 97.0);
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
        assert!((2.0..=100.0).contains(&rate), "{rate}");
    }
}

#[test]
fn another_policy_keeps_what_was_found() {
    let mut world = World::new(80.0);
    world.run(20);
    let (rate, before) = (world.margin.rate(), world.margin.clone());
    let fresh = |plan: &Plan| Margin::of(plan, Way::Down);
    let same = fresh(&plan("{ down = \"auto\", up = \"90%\" }"));
    let after = Margin::after(Some(before), same);
    assert_eq!(after.expect("is auto").rate(), rate);
    // but not if it says another rate of the line, or that frames cost more there
    let start = |link: &str| {
        let before = Some(world.margin.clone());
        Margin::after(before, fresh(&plan_of(link, "\"auto\""))).expect("is auto").rate()
    };
    assert_eq!(mbit(start("down = \"200mbit\"")), 194.0);
    assert_eq!(mbit(start("down = \"100mbit\"\noverhead = 20")), 97.0);
    assert!(Margin::after(Some(world.margin), fresh(&plan("\"97%\""))).is_none());
}

/// Looks at what is said, one after the other, a cadence apart.
struct Said {
    margin: Margin,
    now: Instant,
    look: Look,
}

impl Said {
    fn new() -> Said {
        let margin = Margin::of(&plan("\"auto\""), Way::Down).expect("is auto");
        Said { margin, now: Instant::ZERO, look: Look::default() }
    }

    /// So many Mbit/s came, frames waited here for so long, and ways were so much longer.
    fn look(&mut self, came: u64, waited_ms: u64, raised_ms: u64) -> f64 {
        self.passes(came, waited_ms);
        self.look.round_trip = RoundTrip {
            until: self.now,
            taken: 9,
            compared: 9,
            hosts: 3,
            raised: Span::from_ms(raised_ms),
            ..RoundTrip::default()
        };
        self.step()
    }

    /// The same came all the while that ways were so much longer.
    fn looks(&mut self, came: u64, raised_ms: &[u64]) -> f64 {
        raised_ms.iter().fold(0.0, |_, raised| self.look(came, 0, *raised))
    }

    /// So many Mbit/s came, and nobody said anything of the way.
    fn silence(&mut self, came: u64) -> f64 {
        self.passes(came, 0);
        self.step()
    }

    fn step(&mut self) -> f64 {
        mbit(self.margin.step(self.now, &self.look))
    }

    fn passes(&mut self, came: u64, waited_ms: u64) {
        self.now += Margin::CADENCE;
        // of 1 250 bytes with what they have more on the line: ten to the ms at 100 Mbit/s
        let frames = came * 10;
        self.look.arrived.frames += frames;
        self.look.arrived.bytes += frames * 1_250;
        self.look.left += frames;
        self.look.waited += Span::from_ms(waited_ms * frames);
    }
}

#[test]
fn what_is_found_is_below_the_line_while_the_queue_goes_and_after() {
    let mut said = Said::new();
    for _ in 0..10 {
        said.look(70, 0, 0);
    }
    said.look(70, 0, 30);
    let drains = said.look(70, 0, 30);
    let line = mbit(said.margin.line().expect("was found"));
    assert!((69.0..=73.0).contains(&line), "{line}");
    assert!((0.9..=0.965).contains(&(drains / line)), "{drains} of {line}");
    let settled = said.look(70, 5, 0);
    assert!((settled / line - 0.97).abs() < 1e-3, "{settled} of {line}");
}

#[test]
fn a_queue_that_does_not_stand_is_none() {
    let mut said = Said::new();
    for _ in 0..20 {
        assert_eq!(said.look(70, 0, 30), 97.0);
        assert_eq!(said.look(70, 0, 0), 97.0);
        assert_eq!(said.look(70, 0, 0), 97.0);
    }
}

#[test]
fn each_queue_must_stand_anew() {
    let mut said = Said::new();
    said.looks(70, &[0, 30, 30]);
    let line = mbit(said.margin.line().expect("was found"));
    // nobody says so, but what comes fits through: the queue is gone
    let settled = [60, 60, 60].map(|came| said.silence(came))[2];
    assert!((settled / line - 0.97).abs() < 1e-3, "{settled} of {line}");
    assert_eq!(said.look(60, 0, 30), settled);
    assert!(said.look(60, 0, 30) < 60.0);
    // the same after one that was somebody else's, however long that was
    let mut said = Said::new();
    said.looks(70, &[0, 6_000, 6_000]);
    (0..100).map(|_| said.look(70, 0, 6_000)).find(|rate| *rate >= 97.0).expect("comes back");
    (0..50).for_each(|_| assert_eq!(said.silence(70), 97.0));
    assert_eq!(said.look(70, 0, 6_000), 97.0);
    assert!(said.look(70, 0, 6_000) < 97.0);
}

#[test]
fn when_nobody_sends_any_more_the_queue_is_gone() {
    let mut said = Said::new();
    let drains = said.looks(70, &[0, 30, 30]);
    let after = [0; 3].map(|came| said.silence(came));
    let line = mbit(said.margin.line().expect("was found"));
    assert_eq!(after[..2], [drains; 2]);
    assert!((after[2] / line - 0.97).abs() < 1e-3, "{after:?} of {line}");
}

#[test]
fn what_was_heard_too_long_ago_is_not_known() {
    let mut said = Said::new();
    said.look(70, 0, 0);
    said.now += Span::from_secs(2);
    let raised = Span::from_ms(30);
    for _ in 0..10 {
        said.passes(70, 0);
        let until = said.now - Span::from_secs(2);
        said.look.round_trip = RoundTrip { until, raised, ..said.look.round_trip };
        assert_eq!(said.step(), 97.0);
    }
}

#[test]
fn the_more_often_a_queue_was_somebody_else_s_the_longer_that_is_believed() {
    let mut said = Said::new();
    said.look(70, 0, 0);
    // it goes below what came, in vain; then it is back for so many tenths of a second
    let believed = |said: &mut Said, rate: f64| {
        let mut looks = (0..1_000).map(|_| said.look(70, 0, 30));
        looks.find(|found| *found < rate).expect("is found");
        looks.find(|back| *back >= rate).expect("comes back");
        looks.position(|found| found < rate).expect("is found again")
    };
    said.look(70, 0, 30);
    let times = [(); 6].map(|()| believed(&mut said, 97.0));
    assert_eq!(times, [50, 100, 200, 400, 600, 600]);
    // until one was this line's
    let settled = said.look(60, 0, 0);
    assert!(settled < 70.0);
    assert_eq!(believed(&mut said, settled), 50);
}

#[test]
fn a_queue_has_two_seconds_and_its_own_length_to_get_shorter_by_more_than_a_tenth() {
    // no more comes than goes on, or somebody does not slow down: then it has a second more
    for (keeps_up, more) in [(false, 0), (true, 10)] {
        for (raised, tenths) in [(90, 21), (89, 11 + 21)] {
            let mut said = Said::new();
            let goes_on = said.looks(70, &[0, 100, 100]);
            let came = if keeps_up { 70 } else { whole(goes_on) };
            said.looks(came, &[100; 10]);
            let back = (11..100).find(|_| said.look(came, 0, raised) >= 97.0);
            assert_eq!(back, Some(tenths + more), "to {raised} ms, {came} of 70 Mbit/s came");
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small rate")]
fn whole(mbit: f64) -> u64 {
    mbit as u64
}

#[test]
fn it_goes_below_the_line_until_a_queue_goes_that_somebody_keeps_up() {
    let mut said = Said::new();
    said.looks(70, &[0, 100, 100]);
    // a second, and the length of the queue, for all to slow down
    let first = said.looks(70, &[100; 10]);
    let lower = said.looks(70, &[100; 7]);
    assert!(first > 55.0 && lower < first - 15.0, "{first}, then {lower}");
    // it goes, and then that is where it stays
    said.looks(70, &[80, 60, 40, 20]);
    let settled = said.look(70, 0, 0);
    assert!((settled - lower).abs() < 4.0, "{settled}, the queue began to go at {lower}");
}

#[test]
fn a_queue_that_is_found_while_it_grows_has_its_two_seconds_from_its_longest_on() {
    // it is found at 12 ms, grows to 200 ms by what was under way, and is not below 12 ms again
    let mut said = Said::new();
    said.looks(70, &[0, 12, 12, 80, 200, 150, 100, 50, 14]);
    let least = said.looks(70, &[14; 18]);
    assert!(least < 70.0, "it was somebody else's: {least}");
    // one that grows for longer than a second is no more ours than before
    let mut said = Said::new();
    said.looks(70, &[0, 12, 12]);
    let back = (1..100_u64).find(|n| said.look(70, 0, 12 + 10 * n) >= 97.0);
    assert_eq!(back, Some(9 + 32), "a second in which it grew, three of patience, and 102 ms");
}

#[test]
fn up_to_the_line_it_sees_within_a_fifth_of_a_second_what_going_up_does() {
    let mut said = Said::new();
    said.looks(110, &[0, 30, 30, 30, 0]);
    assert_eq!(said.margin.line().map(mbit), Some(100.0));
    (0..50).map(|_| said.look(101, 5, 0)).find(|rate| *rate >= 100.0).expect("rises");
    (0..2).for_each(|_| assert_eq!(said.look(101, 5, 0), 100.0));
    // less comes, 94.3 %, than it let through before: going up did not make this queue
    assert_eq!(said.look(94, 0, 30), 100.0);
}

#[test]
fn the_longer_the_queue_the_further_it_goes_down() {
    let deep = |raised| {
        let mut said = Said::new();
        said.look(70, 0, 0);
        said.look(70, 0, raised);
        said.look(70, 0, raised);
        said.margin.rate().bps() * 100 / said.margin.line().expect("was found").bps()
    };
    assert_eq!([deep(20), deep(125), deep(900)], [97, 77, 40]);
}

#[test]
fn where_nothing_waits_it_does_not_rise_and_where_frames_wait_it_does() {
    let mut said = Said::new();
    for raised in [0, 30, 30, 30, 0] {
        said.look(50, 0, raised);
    }
    let found = mbit(said.margin.rate());
    for _ in 0..100 {
        said.look(40, 0, 0);
    }
    assert_eq!(mbit(said.margin.rate()), found);
    // it lets through what it finds that it may
    for _ in 0..48 {
        let rate = said.margin.rate().bps() / 1_000_000;
        said.look(rate + 1, 5, 0);
    }
    assert_eq!(mbit(said.margin.rate()), 100.0);
}

#[test]
fn what_goes_up_and_makes_a_queue_comes_down_at_once() {
    let mut said = Said::new();
    for raised in [0, 30, 30, 30, 0] {
        said.look(50, 0, raised);
    }
    let line = mbit(said.margin.line().expect("was found"));
    (0..100).map(|_| said.look(51, 5, 0)).find(|rate| *rate >= line).expect("rises");
    assert!(said.look(51, 5, 20) < line);
}

#[test]
fn where_it_rose_and_no_more_comes_it_stays_a_little_above_that() {
    let mut said = Said::new();
    (0..50).map(|_| said.look(100, 5, 0)).find(|rate| *rate >= 100.0).expect("rises");
    // about the same comes, within one per cent and a half, for a fourth time
    for came in [85, 84, 85] {
        assert_eq!(said.look(came, 0, 0), 100.0);
    }
    // of 1 250 bytes; four more are their checksum
    let came = 84.0 * 1_254.0 / 1_250.0;
    let rate = said.look(84, 0, 0);
    assert!((rate / came - 1.04).abs() < 1e-3, "{rate} of {came}");
}

/// Upstream: so many Mbit/s leave, of which the other side acknowledges that much, from too far
/// away to know what had left then; ways are 30 ms longer.
fn acked(said: &mut Said, left: u64, acked: u64) -> f64 {
    said.passes(left, 0);
    let Uploads { left: before, arrived } = said.look.uploads;
    let [left, acked] = [left, acked].map(|mbit| mbit * 12_500);
    said.look.uploads = Uploads { left: before + left, arrived: arrived + acked };
    said.look.round_trip = RoundTrip {
        until: said.now,
        mean: Span::from_secs(5),
        compared: 9,
        raised: Span::from_ms(30),
        ..RoundTrip::default()
    };
    said.step();
    mbit(said.margin.line().unwrap_or(Rate::ZERO))
}

#[test]
fn upstream_much_less_is_believed_at_the_third_time_if_more_was_said_five_times() {
    for same in [4, 5] {
        let plan = plan("{ up = \"auto\" }");
        let mut said = Said {
            margin: Margin::of(&plan, Way::Up).expect("is auto"),
            now: Instant::ZERO,
            look: Look::default(),
        };
        (0..3 + same).for_each(|_| _ = acked(&mut said, 9, 7));
        // what is not data has what they have
        let lines = [3; 3].map(|mbit| acked(&mut said, 9, mbit) / 1.0032);
        let needs = if same < 5 { 0 } else { 2 };
        for (n, line) in lines.into_iter().enumerate() {
            let is = if n < needs { 7.0 } else { 3.0 };
            assert!((line - is).abs() < 0.01, "after {same}: {lines:?}");
        }
    }
}
