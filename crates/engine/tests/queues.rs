//! The words about queues, from the policy to the wire.

use weir_engine::{Config, Engine, Planner, Report};
use weir_packet::{Build, Burst, Headers, Pool, Reason, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Span};

struct World {
    engine: Engine,
    plan: Plan,
    now: Instant,
}

impl World {
    /// A link of 1 Mbit/s up with these classes.
    fn new(classes: &str) -> World {
        let link = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1mbit\"\nup = \"1mbit\"\n";
        let text = format!("{link}{classes}");
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
        assert!(!reading.is_at_fault(), "{:?}", reading.problems);
        let plan = reading.plans.into_iter().next().expect("has a link");
        let first = Planner::new().prepare(&plan).expect("fits");
        let config = Config { flows: 64, ..Config::default() };
        let engine = Engine::new(config, Pool::new(500, 1_514), first, Instant::ZERO);
        World { engine, plan, now: Instant::ZERO }
    }

    fn send(&mut self, port: u16, ecn: u8, frames: usize) {
        let from = format!("10.0.0.1:{port}").parse().expect("an address");
        let mut build = Build::udp(from, "192.0.2.1:53".parse().expect("an address"));
        build = build.ecn(ecn).payload(&[7; 900]);
        let bytes = build.to_vec();
        let mut burst = Burst::new();
        for _ in 0..frames {
            let frame = self.engine.pool_mut().fill(&bytes).expect("a buffer");
            burst.push(frame).expect("room");
        }
        self.engine.receive(self.now, Side::Lan, &mut burst);
    }

    /// Lets leave what may within this time; returns the frames.
    fn run(&mut self, span: Span) -> Vec<Vec<u8>> {
        let (end, mut left) = (self.now + span, Vec::new());
        loop {
            let mut out = Burst::new();
            self.engine.transmit(self.now, Side::Wan, &mut out);
            for frame in out.drain() {
                left.push(self.engine.pool().bytes(&frame).to_vec());
                self.engine.pool_mut().give(frame);
            }
            match self.engine.next_wakeup().filter(|at| *at < end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
        }
        self.now = end;
        left
    }
}

#[test]
fn codel_marks_on_the_wire_and_the_checksum_is_right() {
    let class = "[class.\"/a\"]\nmatch = \"any\"\naqm = \"codel\"\necn = true\n";
    let mut world = World::new(class);
    world.send(1_000, 2, 60);
    let mut left = Vec::new();
    for _ in 0..40 {
        left.extend(world.run(Span::from_ms(20)));
        world.send(1_000, 2, 2);
    }
    let marked: Vec<&Vec<u8>> = left.iter().filter(|bytes| ecn(bytes) == 3).collect();
    assert!(!marked.is_empty(), "none of {} marked", left.len());
    assert!(left.iter().all(|bytes| ecn(bytes) >= 2));
    for bytes in &marked {
        assert_eq!(sum(&bytes[14..34]), 0xffff, "the checksum of a marked frame");
    }
    let report = Report::of(&world.engine, &world.plan);
    let row = report.rows.iter().find(|r| r.path == "/a").expect("the class");
    assert_eq!(row.from(Side::Lan).marked.frames, marked.len() as u64);
    assert!(row.from(Side::Lan).balance());
}

#[test]
fn one_session_too_many_is_refused_with_its_reason() {
    let session = "session = { min = \"100kbit\", count = 2, next = \"reject\" }\n";
    let mut world =
        World::new(&format!("[class.\"/a\"]\nmatch = \"any\"\nrate = \"500kbit\"\n{session}"));
    for port in 1..=3 {
        world.send(port, 0, 2);
    }
    assert_eq!(world.run(Span::from_secs(1)).len(), 4);
    let report = Report::of(&world.engine, &world.plan);
    let row = report.rows.iter().find(|r| r.path == "/a").expect("the class");
    let counters = row.from(Side::Lan);
    assert_eq!(counters.dropped[Reason::NoSession.index()].frames, 2);
    assert!(counters.balance());
}

#[test]
fn a_leaf_that_says_nothing_keeps_a_call_apart_from_a_transfer() {
    let mut world = World::new("[class.\"/a\"]\nmatch = \"any\"\n");
    world.send(1, 0, 64);
    // the transfer has had the turn of one who begins
    world.run(Span::from_ms(20));
    world.send(2, 0, 1);
    let left = world.run(Span::from_ms(17));
    let ports: Vec<u16> = left.iter().map(|bytes| Headers::parse(bytes).source_port).collect();
    assert_eq!(ports.iter().position(|&port| port == 2), Some(0), "{ports:?}");
}

fn ecn(bytes: &[u8]) -> u8 {
    Headers::parse(bytes).traffic_class & 3
}

/// One's complement sum.
fn sum(bytes: &[u8]) -> u32 {
    let mut sum: u32 = bytes.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

#[test]
fn after_a_standstill_only_what_came_since_leaves() {
    let mut world = World::new("");
    world.send(1, 0, 20);
    world.now += Span::from_ms(500);
    world.engine.forget_waiting(world.now);
    world.send(2, 0, 5);
    let left = world.run(Span::from_secs(1));
    let from = |frame: &Vec<u8>| Headers::parse(frame).source_port;
    assert_eq!(left.iter().map(from).collect::<Vec<_>>(), [2; 5]);
    let report = Report::of(&world.engine, &world.plan);
    let counted = report.rows[0].from(Side::Lan);
    assert_eq!(counted.dropped[Reason::Stale.index()].frames, 20);
    assert_eq!((counted.sent.frames, counted.held.frames), (5, 0));
    assert_eq!(world.engine.pool().free(), world.engine.pool().capacity());
}
