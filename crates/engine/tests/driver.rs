//! The contract of the driver: what may be called when, and what that changes.

use proptest::prelude::*;
use weir_engine::{Config, Driver, Engine, Exchange, Margin, Planner, Single};
use weir_packet::{Build, Burst, Member, Pool, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Rate, Span, Way};

fn plan(up: &str) -> Plan {
    let text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10mbit\"\nup = \"{up}\"\nmargin = \"100%\"\n\
         [class.\"/a\"]\nmatch = \"udp\"\n[class.\"/b\"]\nmatch = \"tcp\"\nceil = \"1mbit\"\n"
    );
    read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text").plans.remove(0)
}

fn driver(up: &str) -> (Planner, Driver) {
    let mut planner = Planner::new();
    let config = Config { queue_frames: 200, flows: 64, seed: 1, watch: true, limits: false };
    let first = planner.prepare(&plan(up)).expect("fits");
    let engine = Engine::new(config, Pool::new(500, 2_048), first, Instant::ZERO);
    (planner, Driver::new(engine, &Member::ONE_EACH))
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Span::from_us(us)
}

/// A frame of `len` bytes from the LAN, of one of a few connections.
fn frame(len: usize, from: u16) -> Vec<u8> {
    let (lan, wan) = (([10, 0, 0, 1], from).into(), ([192, 0, 2, 1], 80).into());
    let build = if from.is_multiple_of(2) { Build::udp(lan, wan) } else { Build::tcp(lan, wan) };
    build.payload_len(len).to_vec()
}

/// Ports of which the one at the WAN side takes so many frames.
struct Narrow {
    came: Vec<Vec<u8>>,
    room: usize,
    left: Vec<Vec<u8>>,
}

impl Exchange for Narrow {
    fn receive(&mut self, port: Member, pool: &mut Pool, into: &mut Burst) -> usize {
        if port.side == Side::Wan {
            return 0;
        }
        let came = std::mem::take(&mut self.came);
        for bytes in &came {
            let frame = pool.fill(bytes).expect("there are buffers");
            into.push(frame).expect("there is room");
        }
        came.len()
    }

    fn transmit(&mut self, _: Member, pool: &mut Pool, out: &mut Burst) {
        while self.room > 0
            && let Some(frame) = out.pop()
        {
            self.left.push(pool.bytes(&frame).to_vec());
            pool.give(frame);
            self.room -= 1;
        }
    }
}

#[test]
fn what_a_port_does_not_take_waits_in_order_and_is_asked_for_again() {
    let (_, mut driver) = driver("1gbit");
    let came: Vec<Vec<u8>> = (0..10).map(|n| frame(100 + n, 2)).collect();
    let mut ports = Narrow { came: came.clone(), room: 3, left: Vec::new() };
    assert!(driver.poll(at(0), &mut ports));
    driver.poll(at(20), &mut ports);
    assert_eq!((ports.left.len(), driver.unsent()), (3, 7));
    assert!(driver.next_at(at(20)).is_some_and(|next| next <= at(70)), "soon");
    ports.room = 100;
    assert!(driver.poll(at(70), &mut ports));
    assert_eq!((ports.left, driver.unsent()), (came, 0));
    assert_eq!(driver.next_at(at(70)), None);
}

#[test]
fn after_a_standstill_nothing_old_leaves() {
    let (_, mut driver) = driver("1mbit");
    let mut ports = Narrow { came: vec![frame(1_000, 2); 20], room: 0, left: Vec::new() };
    driver.poll(at(0), &mut ports);
    let unsent = driver.unsent();
    assert!(unsent > 0);
    assert_eq!(driver.forget(at(200_000)), unsent);
    (ports.came, ports.room) = (vec![frame(70, 2)], 100);
    for n in 0..300 {
        driver.poll(at(200_001 + n * 1_000), &mut ports);
    }
    assert_eq!(ports.left, [frame(70, 2)]);
    assert_eq!(driver.engine().pool().free(), 500);
}

#[test]
fn a_change_is_done_between_frames_and_given_back() {
    let (mut planner, mut driver) = driver("1mbit");
    let mut ports = Narrow { came: vec![frame(1_000, 2); 20], room: 100, left: Vec::new() };
    driver.poll(at(0), &mut ports);
    driver.change(planner.prepare(&plan("5mbit")).expect("fits").into());
    assert!(driver.is_changing() && driver.changed().is_none());
    assert_eq!(driver.next_at(at(1)), Some(at(1)), "it goes on at once");
    driver.poll(at(1), &mut ports);
    assert!(!driver.is_changing() && driver.changed().is_some());
    assert_eq!(driver.engine().rate(Way::Up).bps(), 5_000_000);
    let engine = driver.into_engine();
    assert_eq!(engine.pool().free() + engine.waiting(Way::Up).0, 500, "no buffer is lost");
}

#[test]
fn a_rate_that_weir_finds_is_in_effect_from_the_first_frame_and_through_edits() {
    let text = |class: &str| {
        format!(
            "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10mbit\"\nup = \"20mbit\"\n\
             margin = {{ down = \"auto\", up = \"auto\" }}\n[class.\"/{class}\"]\nmatch = \"udp\"\n"
        )
    };
    let plan = |class: &str| {
        read(Source::new("p", text(class)), &mut |_| Err(String::new())).unwrap().plans.remove(0)
    };
    let mut planner = Planner::new();
    let config = Config { queue_frames: 20, flows: 64, seed: 1, watch: true, limits: false };
    let first = planner.prepare(&plan("a")).expect("fits");
    let engine = Engine::new(config, Pool::new(100, 2_048), first, Instant::ZERO);
    let mut driver = Driver::new(engine, &Member::ONE_EACH);
    let rates = |driver: &Driver| Way::ALL.map(|way| driver.engine().rate(way).bps());
    assert_eq!(rates(&driver), [9_700_000, 19_400_000]);
    driver.change(planner.prepare(&plan("b")).expect("fits").into());
    driver.poll(at(1), &mut Single { came: None, left: |_, _: &[u8]| {} });
    assert!(driver.changed().is_some());
    assert_eq!(rates(&driver), [9_700_000, 19_400_000]);
}

#[test]
fn a_rate_that_is_found_is_kept_while_a_link_only_observes_and_is_not_looked_for_unwatched() {
    let text = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10mbit\"\nup = \"20mbit\"\n\
                margin = { down = \"auto\", up = \"auto\" }\n";
    let source = Source::new("p", text.to_owned());
    let plan = read(source, &mut |_| Err(String::new())).unwrap().plans.remove(0);
    let driver = |watch| {
        let mut planner = Planner::new();
        let config = Config { queue_frames: 200, flows: 64, seed: 1, watch, limits: false };
        let first = planner.prepare(&plan).expect("fits");
        let engine = Engine::new(config, Pool::new(500, 2_048), first, at(0));
        (planner, Driver::new(engine, &Member::ONE_EACH))
    };
    let (_, unwatched) = driver(false);
    assert_eq!(unwatched.engine().rate(Way::Up).bps(), 20_000_000);
    let (mut planner, mut driver) = driver(true);
    // a mark that the rate is the one that was found and not one that begins anew
    let mut now = at(0);
    let mut pass = |driver: &mut Driver, ms: u64| {
        for _ in 0..ms {
            now += Span::from_ms(1);
            let frame = frame(1_200, 2);
            driver
                .poll(now, &mut Single { came: Some((Side::Lan, &frame)), left: |_, _: &[u8]| {} });
        }
        driver.engine().margin(Way::Up).map(Margin::rate)
    };
    let found = pass(&mut driver, 3_000);
    driver.change(planner.prepare(&plan.observing()).expect("fits").into());
    assert_eq!(pass(&mut driver, 3_000), None);
    assert_eq!(driver.engine().rate(Way::Up), Rate::MAX);
    driver.change(planner.prepare(&plan).expect("fits").into());
    assert_eq!(pass(&mut driver, 1), found);
    assert_eq!(Some(driver.engine().rate(Way::Up)), found);
}

/// When frames leave that come after pauses of so many microseconds, where the link is polled at
/// other moments too.
fn leave(frames: &[(u64, usize, u16)], others: &[u64]) -> Vec<(Instant, Vec<u8>)> {
    let (_, mut driver) = driver("2mbit");
    let mut left = Vec::new();
    let (mut now, mut next_frame, mut frames) = (at(0), at(0), frames.iter());
    let mut coming = frames.next();
    next_frame += Span::from_us(coming.map_or(0, |(pause, ..)| *pause));
    let mut others = others.iter().map(|us| at(*us)).peekable();
    loop {
        let due = driver.next_at(now);
        let other = others.peek().copied();
        let frame_at = coming.map(|_| next_frame);
        let Some(next) = [due, other, frame_at].into_iter().flatten().min() else { break };
        now = next.max(now);
        while others.next_if(|at| *at <= now).is_some() {}
        let bytes = coming.filter(|_| next_frame <= now).map(|(_, len, from)| frame(*len, *from));
        if bytes.is_some() {
            coming = frames.next();
            next_frame += Span::from_us(coming.map_or(0, |(pause, ..)| *pause));
        }
        let came = bytes.as_deref().map(|bytes| (Side::Lan, bytes));
        driver.poll(
            now,
            &mut Single { came, left: |_, bytes: &[u8]| left.push((now, bytes.to_vec())) },
        );
    }
    left
}

proptest! {
    #[test]
    fn calls_that_come_early_or_twice_change_nothing(
        frames in prop::collection::vec((0u64..8_000, 20usize..1_400, 1u16..6), 1..80),
        mut others in prop::collection::vec(0u64..400_000, 0..80),
    ) {
        others.sort_unstable();
        prop_assert_eq!(leave(&frames, &[]), leave(&frames, &others));
    }
}
