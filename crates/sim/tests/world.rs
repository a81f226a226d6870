//! Frames over links, switches and boxes.

use std::sync::{Arc, Mutex};

use weir_engine::{Config, Snapshot};
use weir_packet::{Headers, show};
use weir_policy::Plan;
use weir_shape::{FrameCost, Layer};
use weir_sim::impair::{Impairments, Jitter, Limit, Shape};
use weir_sim::link::{Aqm, Codel, Red};
use weir_sim::{Chance, FlowSpec, LinkSpec, NodeId, Queue, Source, World};
use weir_units::{Instant, Rate, Span};

const IP: FrameCost = FrameCost { layer: Layer::Ip, overhead: 0 };

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

fn wire(ms: u64) -> LinkSpec {
    let path = Impairments { delay: Span::from_ms(ms), ..Impairments::default() };
    LinkSpec { path, ..LinkSpec::default() }
}

fn line(rate: &str, queue: Queue) -> LinkSpec {
    LinkSpec { rate: rate.parse().ok(), layers: IP, queue, ..wire(10) }
}

fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

fn hosts(world: &mut World) -> (NodeId, NodeId) {
    let host = |n| std::net::IpAddr::from([10, 0, 0, n]);
    (world.host(host(1)), world.host(host(2)))
}

fn until(world: &mut World, a: NodeId, b: NodeId, source: Source, ms: u64) -> usize {
    let spec = FlowSpec { stop: at(ms), samples: true, ..FlowSpec::new(a, b, source) };
    world.flow(&spec)
}

#[test]
fn a_frame_takes_its_time_on_the_line_and_its_delay_behind_it() {
    let mut world = World::new(1);
    let (a, b) = hosts(&mut world);
    world.connect(a, b, &line("80kbit", Queue::frames(9)), &wire(0));
    let cbr = Source::Cbr { rate: rate("8112bit"), bytes: 1_014 };
    let flow = until(&mut world, a, b, cbr, 10_000);
    world.run_until(at(20_000));
    let report = world.report(flow);
    // 1000 bytes of IP at 80 kbit/s are 100 ms
    assert_eq!((report.ends[0].sent, report.ends[1].received), (10, 10));
    assert_eq!(report.ends[1].delays.kept, vec![Span::from_ms(110); 10]);
    assert_eq!(report.ends[1].jitter, Span::ZERO);
}

#[test]
fn a_frame_alone_waits_for_nobody_and_the_second_of_two_for_the_first() {
    for (flows, waited) in [(1, 0), (2, 100)] {
        let mut world = World::new(1);
        let (a, b) = hosts(&mut world);
        let (there, _) = world.connect(a, b, &line("80kbit", Queue::frames(9)), &wire(0));
        for _ in 0..flows {
            until(&mut world, a, b, Source::Cbr { rate: rate("8112bit"), bytes: 1_014 }, 10_000);
        }
        world.run_until(at(20_000));
        let counts = *world.link(there);
        assert_eq!(counts.wait_ns_max, Span::from_ms(waited).ns());
        assert_eq!(counts.wait_ns_sum, 10 * counts.wait_ns_max);
    }
}

#[test]
fn bins_begin_with_the_world_however_late_the_flow() {
    let mut world = World::new(1);
    let (a, b) = hosts(&mut world);
    world.connect(a, b, &line("80kbit", Queue::frames(9)), &wire(0));
    let spec = FlowSpec {
        start: at(2_500),
        stop: at(4_500),
        bin: Some(Span::from_secs(1)),
        ..FlowSpec::new(a, b, Source::Cbr { rate: rate("8112bit"), bytes: 1_014 })
    };
    let flow = world.flow(&spec);
    world.run_until(at(10_000));
    // 972 bytes of payload leave at 2.5 and 3.5 s and are there 110 ms later
    assert_eq!(world.report(flow).ends[1].bins, [0, 0, 972, 972]);
}

#[test]
fn a_full_queue_drops_the_newest_or_the_oldest() {
    let run = |drop_head| {
        let mut world = World::new(1);
        let (a, b) = hosts(&mut world);
        let queue = Queue { drop_head, ..Queue::frames(4) };
        let (there, _) = world.connect(a, b, &line("80kbit", queue), &wire(0));
        let cbr = Source::Cbr { rate: rate("162240bit"), bytes: 1_014 };
        let flow = until(&mut world, a, b, cbr, 10_000);
        world.run_until(at(20_000));
        let counts = *world.link(there);
        assert_eq!(counts.offered, counts.sent + counts.dropped);
        assert!(counts.dropped > 90, "{counts:?}");
        let (delays, end) = (&world.report(flow).ends[1].delays, 5_000..10_000);
        (delays.kept[end.start / 100], delays.max)
    };
    // the newest wait behind three others; the oldest go, so that those that pass waited less
    assert_eq!(run(false).1, Span::from_ms(410));
    let (usual, _) = run(true);
    assert!(usual < Span::from_ms(330), "{usual}");
}

#[test]
fn bytes_and_milliseconds_bound_a_queue() {
    for limit in [Limit::Bytes(3_050), Limit::Time(Span::from_ms(200))] {
        let mut world = World::new(1);
        let (a, b) = hosts(&mut world);
        let queue = Queue { limit, ..Queue::default() };
        world.connect(a, b, &line("80kbit", queue), &wire(0));
        let cbr = Source::Cbr { rate: rate("200kbit"), bytes: 1_014 };
        let flow = until(&mut world, a, b, cbr, 10_000);
        world.run_until(at(20_000));
        // three frames at once, less what of the first had gone when the third came
        let max = world.report(flow).ends[1].delays.max;
        assert!(max > Span::from_ms(270) && max <= Span::from_ms(310), "{limit:?} {max}");
    }
}

#[test]
fn red_and_codel_keep_a_queue_short_and_mark_where_they_may() {
    let red =
        Red { least: 3_000, most: 9_000, chance: Chance::percent(10), weight: 4, gentle: true };
    for (aqm, traffic_class) in
        [(Aqm::Red(red), 0), (Aqm::Codel(Codel::default()), 0), (Aqm::Codel(Codel::default()), 2)]
    {
        let mut world = World::new(1);
        let (a, b) = hosts(&mut world);
        let queue = Queue { aqm, ecn: true, ..Queue::default() };
        let (there, _) = world.connect(a, b, &line("800kbit", queue), &wire(0));
        let poisson = Source::Poisson { rate: rate("820kbit"), bytes: 1_014 };
        let spec = FlowSpec { stop: at(60_000), traffic_class, ..FlowSpec::new(a, b, poisson) };
        let flow = world.flow(&spec);
        world.run_until(at(70_000));
        let counts = *world.link(there);
        if traffic_class == 2 {
            assert!(counts.marked > 100 && counts.dropped == 0, "{counts:?}");
        } else {
            assert!(counts.dropped > 100 && counts.marked == 0, "{counts:?}");
            let mean = world.report(flow).ends[1].delays.mean();
            assert!(mean < Span::from_ms(150), "{aqm:?} {mean}");
        }
    }
}

#[test]
fn a_switch_floods_once_and_then_knows() {
    let mut world = World::new(1);
    let switch = world.switch();
    let hosts: Vec<_> = (1..=3).map(|n| world.host([10, 0, 0, n].into())).collect();
    let ports: Vec<_> =
        hosts.iter().map(|host| world.connect(switch, *host, &wire(1), &wire(1)).0).collect();
    let cbr = Source::Cbr { rate: rate("80kbit"), bytes: 1_000 };
    let there = until(&mut world, hosts[0], hosts[1], cbr.clone(), 1_000);
    world.run_until(at(2_000));
    // host 2 never said anything, so all its frames go everywhere
    assert_eq!(world.report(there).ends[1].received, 10);
    assert_eq!(world.link(ports[2]).sent, 10);
    let spec = FlowSpec {
        start: at(2_000),
        stop: at(2_500),
        ..FlowSpec::new(hosts[1], hosts[0], cbr.clone())
    };
    world.flow(&spec);
    let spec =
        FlowSpec { start: at(3_000), stop: at(4_000), ..FlowSpec::new(hosts[0], hosts[1], cbr) };
    let again = world.flow(&spec);
    world.run_until(at(5_000));
    assert_eq!(world.report(again).ends[1].received, 10);
    assert_eq!(world.link(ports[2]).sent, 10);
}

fn plan(text: &str) -> Plan {
    let source = weir_policy::Source::new("test", text);
    let reading = weir_policy::read(source, &mut |_| Err("no files here".into()));
    let mut reading = reading.expect("small");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.remove(0)
}

const POLICY: &str = r#"
[link.test]
lan = "a"
wan = "b"
down = "10mbit"
up = "1mbit"
counts = "ip"
"#;

#[test]
fn a_box_is_the_engine_and_holds_its_link_to_its_rate() {
    let mut world = World::new(1);
    let (a, b) = hosts(&mut world);
    let boxed = world.engine(&plan(POLICY), Config::default()).expect("a small policy");
    world.connect(a, boxed, &wire(0), &wire(0));
    world.connect(boxed, b, &wire(10), &wire(0));
    let cbr = Source::Cbr { rate: rate("2mbit"), bytes: 1_014 };
    let spec =
        FlowSpec { measure: (at(1_000), at(9_000)), stop: at(10_000), ..FlowSpec::new(a, b, cbr) };
    let flow = world.flow(&spec);
    world.run_until(at(10_000));
    // 1 Mbit/s of IP packets of 1000 bytes, of which 972 are payload, for 8 s
    let measured = world.report(flow).ends[1].measured;
    assert!(measured.abs_diff(972_000) <= 972, "{measured}");
    let mut books = Snapshot::default();
    world.engine_of(boxed).expect("a box").snapshot(0, &mut books);
    assert!(books.total.iter().all(|(_, way)| way.balance()));
}

#[test]
fn wrong_bits_do_not_get_past_a_host() {
    let mut world = World::new(1);
    let (a, b) = hosts(&mut world);
    let path = Impairments { corrupt: Chance::percent(30), ..Impairments::default() };
    let spec = LinkSpec { path, ..LinkSpec::default() };
    world.connect(a, b, &spec, &wire(0));
    let flow = until(&mut world, a, b, Source::Voice, 20_000);
    world.run_until(at(30_000));
    let ends = &world.report(flow).ends;
    assert_eq!(ends[0].sent, 1_000);
    // a wrong bit in the Ethernet header makes a frame somebody else's, or no IP
    assert!((650..750).contains(&ends[1].received), "{}", ends[1].received);
    assert!(world.refused(b).1 > 150, "{:?}", world.refused(b));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let run = |seed| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut world = World::new(seed);
        let (a, b) = hosts(&mut world);
        let jitter = Jitter { shape: Shape::Normal(Span::from_ms(2)), correlation: Chance::NEVER };
        let mut spec = line("1mbit", Queue::frames(20));
        spec.path.jitter = Some(jitter);
        let (there, _) = world.connect(a, b, &spec, &wire(0));
        for source in [
            Source::Poisson { rate: rate("700kbit"), bytes: 500 },
            Source::Voice,
            Source::OnOff {
                rate: rate("500kbit"),
                bytes: 1_000,
                on: Span::from_ms(300),
                off: Span::from_ms(200),
            },
        ] {
            until(&mut world, a, b, source, 5_000);
        }
        let log = seen.clone();
        world.tap(
            &[there],
            Box::new(move |_, at, bytes| {
                log.lock().expect("one thread").push((at, bytes.to_vec()));
            }),
        );
        world.run_until(at(6_000));
        drop(world);
        Arc::into_inner(seen).expect("the world is gone").into_inner().expect("one thread")
    };
    let first = run(1);
    assert!(first.len() > 1_000);
    assert!(first.is_sorted_by_key(|(at, _)| *at));
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
    let (_, bytes) = &first[0];
    assert!(show(bytes).to_string().contains("10.0.0.1"), "{}", show(bytes));
    assert!(first.iter().all(|(_, bytes)| Headers::parse(bytes).fault.is_none()));
}

#[test]
fn what_is_outside_is_played_by_somebody_else() {
    let mut world = World::new(1);
    let (a, b) = (world.outside(), world.outside());
    let switch = world.switch();
    world.connect(a, switch, &line("80kbit", Queue::frames(2)), &wire(0));
    world.connect(switch, b, &wire(7), &wire(0));
    world.run_until(at(5));
    let frame = |n: u8| {
        let mut frame = vec![n; 1_014];
        (frame[0], frame[6]) = (2, 4);
        frame
    };
    // three at once into a queue of two
    (0..3).for_each(|n| world.put(a, 0, &frame(n)));
    assert_eq!(world.next_at(), Some(at(105)));
    let mut came = Vec::new();
    world.run_until(at(1_000));
    world.take_left(|node, port, at, bytes| came.push((node, port, at, bytes[20])));
    assert_eq!(came, [(b, 0, at(122), 0), (b, 0, at(222), 1)]);
    assert_eq!(world.next_at(), None);
    world.take_left(|_, _, _, _| panic!("nothing came"));
}
