//! A link that only watches: what waits leaves at once, and what comes later leaves as it came.

use weir_engine::{Config, Engine, Planner};
use weir_packet::{Build, Burst, Pool, Side};
use weir_policy::{Source, read};
use weir_units::{Instant, Span};

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
    assert_eq!((leave(&mut engine, soon + Span::from_us(1)), engine.waiting(Side::Wan).0), (64, 0));
}
