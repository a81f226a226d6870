//! A link that only watches: what waits leaves at once, and what comes later leaves as it came. And
//! what those who watch a link are told.

use weir_engine::{Config, Demand, Engine, LINK, Planner, Snapshot};
use weir_packet::{Build, Burst, Pool, Side};
use weir_policy::{Source, read};
use weir_units::{ByWay, Instant, Span, Way};

const POLICY: &str = r#"
    [link.l]
    lan = "a"
    wan = "b"
    down = "20mbit"
    up = "1mbit"
    [class."/a"]
    match = "udp lan port 1000-1003"
    rate = "10%"
    ceil = "20%"
"#;

fn receive(engine: &mut Engine, now: Instant, frames: u16) {
    let mut burst = Burst::new();
    for flow in 0..frames {
        let source = ([10, 0, 0, 1], 1_000 + flow % 8).into();
        let build = Build::udp(source, ([192, 0, 2, 1], 53).into());
        let frame = engine.pool_mut().fill(&build.to_vec()).expect("a buffer");
        burst.push(frame).expect("room");
    }
    engine.receive(now, Side::Lan, &mut burst);
}

fn leave(engine: &mut Engine, now: Instant) -> usize {
    let mut left = 0;
    loop {
        let mut burst = Burst::new();
        engine.transmit(now, Side::Wan, &mut burst);
        if burst.is_empty() {
            return left;
        }
        left += burst.len();
        burst.drain().for_each(|frame| engine.pool_mut().give(frame));
    }
}

#[test]
fn what_waits_leaves_when_a_link_only_watches() {
    let source = Source::new("p", POLICY);
    let plan = read(source, &mut |_| Err(String::new())).unwrap().plans.remove(0);
    let config = Config { queue_frames: 500, flows: 64, seed: 1, ..Config::default() };
    let mut planner = Planner::of(&config);
    let first = planner.prepare(&plan).unwrap();
    let now = Instant::from_ns(1_000_000_000);
    let mut engine = Engine::new(config, Pool::new(1_100, 2_048), first, now);
    receive(&mut engine, now, 64);
    receive(&mut engine, now, 36);
    let left = leave(&mut engine, now);
    assert!(left < 50, "{left} left at once: nothing is held");
    for plan in [plan.observing(), plan.clone(), plan.observing()] {
        let mut change = planner.prepare(&plan).unwrap();
        while !engine.apply(now, &mut change) {}
    }
    let soon = now + Span::from_us(1);
    assert_eq!(left + leave(&mut engine, soon), 100);
    receive(&mut engine, soon, 64);
    assert_eq!((leave(&mut engine, soon + Span::from_us(1)), engine.waiting(Way::Up).0), (64, 0));
}

#[test]
fn what_waits_and_who_has_many_addresses_is_told() {
    let source = Source::new("p", POLICY);
    let plan = read(source, &mut |_| Err(String::new())).unwrap().plans.remove(0);
    let config = Config { queue_frames: 500, flows: 64, seed: 1, ..Config::default() };
    let first = Planner::of(&config).prepare(&plan).unwrap();
    let now = Instant::from_ns(1_000_000_000);
    let mut engine = Engine::new(config, Pool::new(1_100, 2_048), first, now);
    receive(&mut engine, now, 64);
    let left = leave(&mut engine, now);
    let waiting = engine.waiting(Way::Up).1.get();
    let mut demands = [Demand::of(LINK)];
    assert!(engine.demands(&mut demands));
    assert!(left < 64 && waiting > 0);
    let (up, down) = (waiting, 0);
    assert_eq!((demands[0].waiting, demands[0].offered.down), (ByWay { down, up }, 0));
    assert_eq!(demands[0].offered.up, waiting / (64 - left as u64) * 64, "all are as long");
    // five addresses of one MAC are more than a host has
    let mut snapshot = Snapshot::with_room();
    for host in 1..=5 {
        let _ = engine.snapshot(0, &mut snapshot);
        assert!(snapshot.crowds.is_empty(), "with {host}");
        let (from, to) = (([10, 0, 0, host], 2_000).into(), ([192, 0, 2, 1], 53).into());
        let build = Build::udp(from, to).macs([2, 7, 0, 0, 0, 77], [2, 8, 0, 0, 0, 1]);
        let mut burst = Burst::new();
        burst.push(engine.pool_mut().fill(&build.to_vec()).unwrap()).unwrap();
        engine.receive(now, Side::Lan, &mut burst);
    }
    for _ in 0..2 {
        let _ = engine.snapshot(0, &mut snapshot);
        assert_eq!(snapshot.crowds, [[2, 7, 0, 0, 0, 77]]);
    }
}
