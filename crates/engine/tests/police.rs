//! The words about policing and marking, from the policy to the wire.

use std::net::SocketAddr;

use weir_condition::meter::{Colour, Meter, Terms};
use weir_engine::{Config, Engine, Planner, Report};
use weir_packet::{Build, Burst, Headers, Net, Pool, Reason, Side, checksum};
use weir_policy::{Plan, Source, read};
use weir_units::{Bytes, Instant, Rate, Span};

struct World {
    engine: Engine,
    planner: Planner,
    plan: Plan,
    now: Instant,
    left: Vec<Vec<u8>>,
}

fn plan(classes: &str, line: &str) -> Plan {
    let link = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"{line}\"\nup = \"{line}\"\ncounts = \"ip\"\n"
    );
    let reading = read(Source::new("p", format!("{link}{classes}")), &mut |_| Err(String::new()));
    let reading = reading.expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.into_iter().next().expect("has a link")
}

impl World {
    fn new(classes: &str, line: &str) -> World {
        let plan = plan(classes, line);
        let mut planner = Planner::new();
        let first = planner.prepare(&plan).expect("fits");
        let config = Config { flows: 64, ..Config::default() };
        let engine = Engine::new(config, Pool::new(5_000, 1_514), first, Instant::ZERO);
        World { engine, planner, plan, now: Instant::ZERO, left: Vec::new() }
    }

    fn change(&mut self, classes: &str, line: &str) {
        self.plan = plan(classes, line);
        let mut change = self.planner.prepare(&self.plan).expect("fits");
        while !self.engine.apply(self.now, &mut change) {}
    }

    /// One frame comes in, and what may leave leaves.
    fn send(&mut self, side: Side, bytes: &[u8]) {
        let frame = self.engine.pool_mut().fill(bytes).expect("a buffer");
        let mut burst = Burst::new();
        burst.push(frame).expect("room");
        self.engine.receive(self.now, side, &mut burst);
    }

    fn leave(&mut self) {
        let mut out = Burst::new();
        for side in [Side::Lan, Side::Wan] {
            self.engine.transmit(self.now, side, &mut out);
            for frame in out.drain() {
                self.left.push(self.engine.pool().bytes(&frame).to_vec());
                self.engine.pool_mut().give(frame);
            }
        }
    }

    fn policed(&self, path: &str, side: Side) -> u64 {
        let report = Report::of(&self.engine, &self.plan);
        let row = report.rows.iter().find(|row| row.path == path).expect("the class");
        let counters = row.from(side);
        assert!(counters.balance());
        counters.dropped[Reason::Policed.index()].frames
    }
}

fn udp(side: Side, host: u8, payload: usize) -> Build {
    let lan: SocketAddr = format!("10.0.0.{host}:7").parse().expect("an address");
    let wan: SocketAddr = "192.0.2.1:53".parse().expect("an address");
    let (from, to) = if side == Side::Lan { (lan, wan) } else { (wan, lan) };
    Build::udp(from, to).payload_len(payload)
}

/// The code points of what left, each with a header that is right.
fn code_points(left: &[Vec<u8>]) -> Vec<u8> {
    let one = |bytes: &Vec<u8>| {
        let headers = Headers::parse(bytes);
        if headers.net == Net::V4 {
            assert_eq!(checksum::of(&bytes[14..34]), 0, "the checksum");
        }
        headers.dscp()
    };
    left.iter().map(one).collect()
}

#[test]
fn a_policed_class_lets_through_what_its_meter_says() {
    let class = "[class.\"/a\"]\nmatch = \"any\"\n\
        police = { rate = \"1mbit\", burst = \"5kb\", peak = \"2mbit\", peak-burst = \"9kb\", \
        excess = \"af12\" }\n";
    let mut world = World::new(class, "10gbit");
    let rate = |mbit: u64| Rate::from_bps(mbit * 1_000_000);
    let terms = Terms::two_rates(rate(1), Bytes::new(5_000), rate(2), Bytes::new(9_000));
    let mut meters = [Meter::full(&terms); 2];
    let (mut want, mut refused) = (Vec::new(), [0, 0]);
    for n in 0..2_000u64 {
        // pauses and sizes without a pattern, some 3 Mbit/s each way
        let draw = n.wrapping_mul(6_364_136_223_846_793_005) >> 33;
        world.now += Span::from_us(draw % 2_000);
        let side = if draw % 3 == 0 { Side::Wan } else { Side::Lan };
        let payload = usize::try_from(draw % 1_400).expect("is small");
        world.send(side, &udp(side, 1, payload).to_vec());
        world.leave();
        // the link counts IP packets
        let cost = Bytes::new(payload as u64 + 28);
        match meters[side as usize].colour(&terms, world.now, cost, Colour::Green) {
            Colour::Green => want.push(0),
            Colour::Yellow => want.push(12),
            Colour::Red => refused[side as usize] += 1,
        }
    }
    assert_eq!(code_points(&world.left), want);
    assert!(want.contains(&12) && refused.iter().all(|&n| n > 100), "{refused:?}");
    assert_eq!([Side::Lan, Side::Wan].map(|side| world.policed("/a", side)), refused);
}

#[test]
fn a_class_marks_both_families_in_both_directions() {
    let classes = "[class.\"/a\"]\nmatch = \"lan 10.0.0.0/8\"\ndscp = \"af31\"\n\
        [class.\"/b\"]\nmatch = \"ipv6\"\ndscp = \"ef\"\n\
        [class.\"/b/keep\"]\nmatch = \"tcp\"\ndscp = \"keep\"\n";
    let mut world = World::new(classes, "10gbit");
    let v6 = |port| format!("[2001:db8::1]:{port}").parse().expect("an address");
    let arp = Build::arp([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let frames = [
        (Side::Lan, udp(Side::Lan, 1, 100).dscp(46).ecn(1)),
        (Side::Wan, udp(Side::Wan, 1, 101).vlan(5)),
        (Side::Lan, Build::udp(v6(1), v6(2)).ecn(2).payload_len(50)),
        (Side::Wan, Build::tcp(v6(1), v6(2)).dscp(10)),
        (Side::Lan, arp),
    ];
    for (side, build) in frames {
        let bytes = build.to_vec();
        world.send(side, &bytes);
        world.now += Span::from_ms(1);
        world.leave();
        let left = world.left.last().expect("it left");
        let headers = Headers::parse(&bytes);
        let same = Headers { traffic_class: headers.traffic_class, ..Headers::parse(left) };
        assert_eq!(same, headers, "nothing else is written");
        assert_eq!(Headers::parse(left).traffic_class & 3, headers.traffic_class & 3);
    }
    let classes: Vec<u8> = world.left.iter().map(|b| Headers::parse(b).dscp()).collect();
    assert_eq!(classes, [26, 26, 46, 10, 0]);
    for (bytes, at) in [(&world.left[0], 14), (&world.left[1], 18)] {
        assert_eq!(checksum::of(&bytes[at..at + 20]), 0);
    }
}

#[test]
fn wred_heeds_the_colour_of_the_policer() {
    let class = "[class.\"/a\"]\nmatch = \"any\"\nqueue = \"fifo\"\n\
        aqm = { kind = \"wred\", min = \"10kb\", max = \"60kb\", probability = \"100%\" }\n\
        police = { rate = \"700kbit\", burst = \"5kb\", peak = \"1mbit\", peak-burst = \"5kb\", \
        colours = [\"af11\", \"af12\", \"af13\"] }\n";
    let mut world = World::new(class, "1mbit");
    // 4 Mbit/s for ten seconds, all best effort
    let bytes = udp(Side::Lan, 1, 472).to_vec();
    for _ in 0..10_000 {
        world.now += Span::from_ms(1);
        world.send(Side::Lan, &bytes);
        world.leave();
    }
    let left = code_points(&world.left);
    let part = |dscp| left.iter().filter(|d| **d == dscp).count();
    // 500 bytes: 175 of 1 000 are green, 75 yellow; the line takes 250
    let (green, yellow, red) = (part(10), part(12), part(14));
    assert!(green >= 1_700, "{green} green, {yellow} yellow, {red} red");
    assert!(red * 5 < green, "{green} green, {yellow} yellow, {red} red");
    assert_eq!(green + yellow + red, left.len());
    assert_eq!(world.policed("/a", Side::Lan), 0);
}

const EACH: &str = "[class.\"/h\"]\nmatch = \"any\"\n\
    each = { by = \"lan-host\", count = 2, age = \"10s\" }\n";

#[test]
fn each_host_has_a_meter_and_those_without_a_leaf_share_one() {
    let police = "police = { rate = \"8kbit\", burst = \"3kb\" }\n";
    let mut world = World::new(&format!("{EACH}{police}"), "10gbit");
    let come = |world: &mut World, hosts: &[u8]| {
        world.left.clear();
        for &host in hosts {
            (0..10).for_each(|_| world.send(Side::Lan, &udp(Side::Lan, host, 972).to_vec()));
            world.now += Span::from_us(10);
            world.leave();
        }
        world.left.len()
    };
    assert_eq!(come(&mut world, &[1, 2]), 6);
    assert_eq!(come(&mut world, &[3, 4]), 3, "of a leaf that they share");
    // a policy that says the same of them: the meters stay as they are; a second is one frame
    world.now += Span::from_secs(1);
    let more = "[class.\"/z\"]\nmatch = \"arp\"\ndscp = \"ef\"\n";
    world.change(&format!("{more}{EACH}{police}"), "9gbit");
    assert_eq!(come(&mut world, &[1, 2, 3]), 3);
    // none is policed, then all again
    world.change(EACH, "9gbit");
    assert_eq!(come(&mut world, &[1, 2, 3]), 30);
    world.change(&format!("{EACH}{police}"), "9gbit");
    assert_eq!(come(&mut world, &[1, 2, 3]), 9);
    // the leaf of a silent host is another's: it begins anew, though so much time brings no burst
    let slow = "police = { rate = \"80bit\", burst = \"3kb\" }\n";
    world.change(&format!("{EACH}{slow}"), "9gbit");
    assert_eq!(come(&mut world, &[1, 2]), 0);
    world.now += Span::from_secs(20);
    for _ in 0..100 {
        world.engine.age(world.now);
    }
    assert_eq!(come(&mut world, &[8, 9]), 6);
}
