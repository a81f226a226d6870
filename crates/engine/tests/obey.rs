//! An edit that sends a connection to another class holds at once, also for one that always has
//! frames waiting; its frames keep their order, and what is dropped for that is in the books.

use weir_engine::{Config, Engine, Planner, Report};
use weir_packet::{Build, Burst, Headers, Pool, Reason, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Span};

struct World {
    engine: Engine,
    planner: Planner,
    plan: Plan,
    now: Instant,
    next: u32,
    /// The number of the last frame that left.
    last: u32,
    /// Where the connection sends from.
    from: Side,
}

fn plan(classes: &str) -> Plan {
    let link = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100mbit\"\nup = \"100mbit\"\n";
    let reading = read(Source::new("p", format!("{link}{classes}")), &mut |_| Err(String::new()));
    let reading = reading.expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.into_iter().next().expect("has a link")
}

impl World {
    fn new(classes: &str) -> World {
        let mut planner = Planner::new();
        let plan = plan(classes);
        let first = planner.prepare(&plan).expect("fits");
        let config = Config { flows: 64, ..Config::default() };
        let engine = Engine::new(config, Pool::new(4_096, 1_514), first, Instant::ZERO);
        World { engine, planner, plan, now: Instant::ZERO, next: 1, last: 0, from: Side::Lan }
    }

    /// One connection sends 15 Mbit/s for this time; how many Mbit/s of it leave.
    fn run(&mut self, span: Span) -> f64 {
        let (end, mut bytes) = (self.now + span, 0);
        while self.now < end {
            self.send();
            let next = self.now + Span::from_us(667);
            while let Some(at) = self.engine.next_wakeup().filter(|at| *at < next) {
                self.now = self.now.max(at);
                bytes += self.transmit();
            }
            self.now = next;
        }
        f64::from(bytes * 8) / 1e6 / (span.ns() as f64 / 1e9)
    }

    fn send(&mut self) {
        let host = "10.0.0.1:1000".parse().expect("an address");
        let far = "192.0.2.1:53".parse().expect("an address");
        let (from, to) = if self.from == Side::Lan { (host, far) } else { (far, host) };
        let mut payload = [7; 1_204];
        payload[..4].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        let build = Build::udp(from, to);
        let mut burst = Burst::new();
        let frame = self.engine.pool_mut().fill(&build.payload(&payload).to_vec());
        burst.push(frame.expect("a buffer")).expect("room");
        self.engine.receive(self.now, self.from, &mut burst);
    }

    fn transmit(&mut self) -> u32 {
        let (mut out, mut bytes) = (Burst::new(), 0);
        self.engine.transmit(self.now, self.from.other(), &mut out);
        for frame in out.drain() {
            let left = self.engine.pool().bytes(&frame);
            let at = usize::from(Headers::parse(left).payload_at);
            let number = u32::from_be_bytes(left[at..at + 4].try_into().expect("four"));
            assert!(self.last < number, "frame {number} left behind {}", self.last);
            self.last = number;
            bytes += u32::try_from(left.len()).expect("small");
            self.engine.pool_mut().give(frame);
        }
        bytes
    }

    fn change(&mut self, classes: &str) {
        self.plan = plan(classes);
        let mut change = self.planner.prepare(&self.plan).expect("fits");
        while !self.engine.apply(self.now, &mut change) {}
    }

    /// All that waits leaves; how many bytes.
    fn drain(&mut self) -> u32 {
        let mut bytes = 0;
        for _ in 0..100_000 {
            let Some(at) = self.engine.next_wakeup() else { break };
            self.now = self.now.max(at);
            bytes += self.transmit();
        }
        let pool = self.engine.pool();
        assert_eq!(pool.free(), pool.capacity(), "some wait for ever");
        bytes
    }

    /// Frames dropped because newer ones are elsewhere. All books balance.
    fn stale(&self) -> u64 {
        let report = Report::of(&self.engine, &self.plan);
        for row in &report.rows {
            assert!(row.from(self.from).balance(), "{}", row.path);
        }
        report.rows[0].from(self.from).dropped[Reason::Stale.index()].frames
    }
}

fn class(path: &str, words: &str, matches: &str) -> String {
    format!("[class.\"{path}\"]\nmatch = \"{matches}\"\n{words}\n")
}

const QUEUES: [&str; 4] = [
    "queue = \"fifo\"",
    "queue = \"fifo\"\naqm = \"codel\"",
    "queue = \"fair\"",
    "queue = \"fair-host\"",
];

#[test]
fn a_connection_that_always_has_frames_waiting_obeys_at_once() {
    for (from, to) in QUEUES.iter().flat_map(|from| QUEUES.map(|to| (from, to))) {
        for side in [Side::Lan, Side::Wan] {
            obeys_at_once(side, from, to);
        }
    }
}

fn obeys_at_once(side: Side, from: &str, to: &str) {
    let wide = format!("ceil = \"10mbit\"\n{from}");
    let narrow = format!("ceil = \"1mbit\"\n{to}");
    let classes = |wide_for, narrow_for| {
        class("/wide", &wide, wide_for) + &class("/narrow", &narrow, narrow_for)
    };
    let mut world = World::new(&classes("udp", "tcp"));
    world.from = side;
    let before = world.run(Span::from_secs(2));
    assert!((9.0..10.1).contains(&before), "{before} Mbit/s by 10 in {from}");
    world.change(&classes("tcp", "udp"));
    let after = world.run(Span::from_secs(2));
    assert!((0.9..1.1).contains(&after), "{after} Mbit/s by 1, from {from} to {to}");
    assert!(world.stale() > 0, "from {from} to {to}");
    // and back
    world.change(&classes("udp", "tcp"));
    let back = world.run(Span::from_secs(2));
    assert!((9.0..10.1).contains(&back), "{back} Mbit/s by 10 again, from {to} to {from}");
    world.stale();
}

#[test]
fn what_a_class_that_is_gone_leaves_keeps_to_the_ceiling_of_the_class_it_falls_to() {
    for queue in QUEUES {
        let site = "[class.\"/site\"]\nmatch = \"any\"\nceil = \"2mbit\"\n";
        let wide = class("/wide", &format!("ceil = \"10mbit\"\n{queue}"), "udp");
        let mut world = World::new(&format!("{wide}{site}"));
        world.run(Span::from_secs(1));
        world.change(site);
        let after = world.run(Span::from_secs(2));
        assert!((1.8..2.1).contains(&after), "{after} Mbit/s by 2, from {queue}");
        world.stale();
    }
}

/// Where the rules stay what they were, nothing is dropped.
#[test]
fn an_edit_of_a_rate_drops_nothing() {
    let classes = |ceil| class("/a", &format!("ceil = \"{ceil}\"\nqueue = \"fifo\""), "udp");
    let mut world = World::new(&classes("10mbit"));
    world.run(Span::from_secs(1));
    world.change(&classes("5mbit"));
    let after = world.run(Span::from_secs(1));
    assert!((4.9..5.1).contains(&after), "{after} Mbit/s by 5");
    assert_eq!(world.stale(), 0);
}

/// One that sends no more after the edit goes on as it was, and nothing of it is dropped.
#[test]
fn a_connection_that_falls_silent_before_an_edit_loses_nothing() {
    for queue in QUEUES {
        let wide = format!("ceil = \"10mbit\"\n{queue}");
        let classes =
            |for_wide, other| class("/wide", &wide, for_wide) + &class("/other", "", other);
        let mut world = World::new(&classes("udp", "tcp"));
        (0..20).for_each(|_| world.send());
        world.change(&classes("tcp", "udp"));
        assert!(world.drain() > 19 * 1_200, "in {queue}");
        assert_eq!(world.stale(), 0, "in {queue}");
    }
}

/// What a connection has left behind in a class never leaves, also if the class goes and another
/// has its number; the books balance all the while.
#[test]
fn what_was_left_behind_is_dropped_also_if_another_class_has_its_place() {
    for queue in QUEUES {
        let wide = format!("ceil = \"100kbit\"\n{queue}");
        let narrow = class("/narrow", &wide, "udp");
        let classes = |path, matches| class(path, &wide, matches) + &narrow;
        let mut world = World::new(&class("/wide", &wide, "udp"));
        (0..20).for_each(|_| world.send());
        world.change(&classes("/wide", "tcp"));
        // what waited is behind this frame from now on
        world.send();
        for path in ["/second", "/third", "/third"] {
            world.change(&classes(path, "tcp"));
            world.stale();
        }
        world.drain();
        // the first frame may have gone before the edit
        assert!((19..=20).contains(&world.stale()), "{} in {queue}", world.stale());
        assert_eq!(world.last, 21, "in {queue}");
    }
}

/// A class that goes with more frames than can be moved at once loses them, some at each call; they
/// stay in its books until all have gone, and none leaves behind a newer one.
#[test]
fn a_class_that_goes_with_many_frames_loses_them_some_at_a_time() {
    for queue in QUEUES {
        let words = format!("ceil = \"100kbit\"\nlimit = \"3000 frames\"\n{queue}");
        let other = class("/other", "", "tcp");
        let mut world = World::new(&(class("/wide", &words, "udp") + &other));
        (0..2_000).for_each(|_| world.send());
        world.plan = plan(&other);
        let mut change = world.planner.prepare(&world.plan).expect("fits");
        let (mut calls, mut free) = (0, world.engine.pool().free());
        loop {
            let is_done = world.engine.apply(world.now, &mut change);
            let now_free = world.engine.pool().free();
            // frames come all the while
            assert!(now_free <= free + 2 * 64, "{} at once in {queue}", now_free - free);
            calls += 1;
            if is_done {
                break;
            }
            world.send();
            world.now += Span::from_us(100);
            world.transmit();
            free = world.engine.pool().free();
        }
        assert!(calls > 10, "{calls} calls in {queue}");
        world.drain();
        assert!(world.stale() >= 1_900, "{} in {queue}", world.stale());
        assert!(world.last + 2 >= world.next, "{} of {} in {queue}", world.last, world.next);
    }
}
