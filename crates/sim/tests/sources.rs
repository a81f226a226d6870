//! What is said over the world: web pages, typing, names, calls, voice, games.

use weir_sim::impair::{Impairments, Loss};
use weir_sim::link::LinkSpec;
use weir_sim::{Chance, Files, FlowSpec, NodeId, Queue, Source, TcpSpec, World};
use weir_units::{Instant, Span};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

/// Two hosts, 10 ms apart.
fn world(loss: Loss) -> (World, NodeId, NodeId) {
    let mut world = World::new(1);
    let [a, b] = [1, 2].map(|n| world.host([10, 0, 0, n].into()));
    let path = Impairments { delay: Span::from_ms(10), ..Impairments::default() };
    let lossy = Impairments { loss, ..path.clone() };
    let spec = |path| LinkSpec { path, ..LinkSpec::default() };
    world.connect(a, b, &spec(lossy), &spec(path));
    (world, a, b)
}

#[test]
fn a_page_takes_its_round_trips() {
    for (keeps, first, later) in [(true, 40, 20), (false, 40, 40)] {
        let (mut world, a, b) = world(Loss::None);
        let web = Source::Web {
            files: Files::Fixed(3_000),
            request: 300,
            think: Span::from_ms(500),
            keeps,
        };
        let tcp = TcpSpec { nagle: false, ..TcpSpec::default() };
        let spec = FlowSpec {
            samples: true,
            stop: at(60_000),
            tcp: Box::new([tcp.clone(), tcp]),
            ..FlowSpec::new(a, b, web)
        };
        let flow = world.flow(&spec);
        world.run_until(at(70_000));
        let ends = &world.report(flow).ends;
        let pages = &ends[0].delays.kept;
        assert!(pages.len() > 80, "{}", pages.len());
        // one to open, one to ask
        assert!(pages[0] <= Span::from_ms(first), "{}", pages[0]);
        let slowest = pages[1..].iter().max().expect("many");
        assert!(*slowest <= Span::from_ms(later + 1), "{slowest}");
        assert_eq!(ends[0].delivered, 3_000 * pages.len() as u64);
        assert_eq!(ends[1].retransmitted, 0);
        // what is under way of one connection when the next begins is nobody's
        let (unclaimed, wrong) = world.refused(b);
        assert!(wrong == 0 && unclaimed < ends[0].delays.count / 2, "{unclaimed}");
    }
}

#[test]
fn files_are_15_kb_in_the_mean() {
    let (mut world, a, b) = world(Loss::None);
    let web = Source::Web { files: Files::Classes, request: 300, think: Span::ZERO, keeps: true };
    let flow = world.flow(&FlowSpec { stop: at(500_000), ..FlowSpec::new(a, b, web) });
    world.run_until(at(510_000));
    let end = &world.report(flow).ends[0];
    let mean = end.delivered / end.delays.count;
    assert!(end.delays.count > 8_000 && (13_000..17_000).contains(&mean), "{mean}");
}

#[test]
fn typing_comes_back_after_a_round_trip() {
    let (mut world, a, b) = world(Loss::None);
    let tcp = TcpSpec { nagle: false, ..TcpSpec::default() };
    let spec = FlowSpec {
        samples: true,
        start: at(100),
        stop: at(20_000),
        tcp: Box::new([tcp.clone(), tcp]),
        ..FlowSpec::new(a, b, Source::Echo { every: Span::from_ms(200) })
    };
    let flow = world.flow(&spec);
    world.run_until(at(30_000));
    let end = &world.report(flow).ends[0];
    assert!(end.delays.count > 70, "{}", end.delays.count);
    assert_eq!(end.delays.count, end.delivered);
    // the first one waits for the connection
    assert_eq!(end.delays.percentile(90), Some(Span::from_ms(20)));
}

#[test]
fn a_name_is_asked_for_again_when_the_question_is_lost() {
    let (mut world, a, b) = world(Loss::List(vec![2]));
    let dns = Source::Dns { every: Span::from_ms(1_000) };
    let spec = FlowSpec { samples: true, stop: at(60_000), ..FlowSpec::new(a, b, dns) };
    let flow = world.flow(&spec);
    world.run_until(at(70_000));
    let delays = &world.report(flow).ends[0].delays;
    assert!(delays.count > 30, "{}", delays.count);
    assert_eq!(delays.kept[0], Span::from_ms(20));
    assert_eq!(delays.kept[1], Span::from_ms(5_020));
}

#[test]
fn a_call_is_set_up_and_a_lost_invitation_costs_half_a_second() {
    for (lost, setup) in [(vec![], 2_020), (vec![1], 2_520), (vec![1, 2], 3_520)] {
        let (mut world, a, b) = world(Loss::List(lost));
        let call = Source::Call { rings: Span::from_secs(2) };
        let flow = world.flow(&FlowSpec { samples: true, ..FlowSpec::new(a, b, call) });
        world.run_until(at(60_000));
        let ends = &world.report(flow).ends;
        assert_eq!(ends[0].delays.kept, [Span::from_ms(setup)]);
        // trying, ringing, OK
        assert_eq!(ends[1].sent, 3);
    }
    let never = Loss::Random { chance: Chance::ALWAYS, correlation: Chance::NEVER };
    let (mut world, a, b) = world(never);
    let flow = world.flow(&FlowSpec::new(a, b, Source::Call { rings: Span::ZERO }));
    world.run_until(at(100_000));
    let ends = &world.report(flow).ends;
    // at 0, 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s
    assert_eq!((ends[0].sent, ends[0].delays.count), (7, 0));
}

#[test]
fn voice_is_fifty_frames_of_74_bytes_and_a_game_25_of_82() {
    for (source, frames, bytes) in [(Source::Voice, 500..501, 74), (Source::Game, 240..261, 82)] {
        let (mut world, a, b) = world(Loss::None);
        let flow = world.flow(&FlowSpec { stop: at(10_000), ..FlowSpec::new(a, b, source) });
        world.run_until(at(11_000));
        let ends = &world.report(flow).ends;
        assert!(frames.contains(&ends[0].sent), "{}", ends[0].sent);
        assert_eq!(world.link(0).sent_bytes, bytes * ends[0].sent);
        assert_eq!(ends[1].delays.mean(), Span::from_ms(10));
    }
}

#[test]
fn a_file_arrives_whole_and_the_connection_ends() {
    let (mut world, a, b) = world(Loss::Periodic { every: 20, phase: 0 });
    let flow = world.flow(&FlowSpec::new(a, b, Source::Bulk { bytes: Some(1_000_000) }));
    world.run_until(at(60_000));
    let events = world.events();
    world.run_until(at(600_000));
    assert_eq!(world.report(flow).ends[1].delivered, 1_000_000);
    assert_eq!(world.events(), events, "something goes on after the end");
}

#[test]
fn our_tcp_and_another_understand_each_other() {
    for (from, to) in [("linux-now", "smoltcp-reno"), ("smoltcp-cubic", "linux-now")] {
        let tcp = [from, to].map(|name| TcpSpec::preset(name).expect("a preset"));
        let (mut world, a, b) = world(Loss::Periodic { every: 20, phase: 0 });
        let bulk = Source::Bulk { bytes: Some(300_000) };
        let spec = FlowSpec { tcp: Box::new(tcp.clone()), ..FlowSpec::new(a, b, bulk) };
        let file = world.flow(&spec);
        let think = Span::from_ms(100);
        let web = Source::Web { files: Files::Fixed(9_000), request: 300, think, keeps: false };
        let spec = FlowSpec { stop: at(30_000), tcp: Box::new(tcp), ..FlowSpec::new(a, b, web) };
        let pages = world.flow(&spec);
        world.run_until(at(120_000));
        assert_eq!(world.report(file).ends[1].delivered, 300_000, "{from} to {to}");
        let pages = &world.report(pages).ends[0];
        // a loss costs smoltcp a second
        assert!(pages.delays.count > 10, "{from} to {to}: {}", pages.delays.count);
        assert_eq!(pages.delivered, 9_000 * pages.delays.count);
    }
}

#[test]
fn the_same_seed_gives_the_same_connections() {
    let run = |seed| {
        let mut world = World::new(seed);
        let [a, b] = [1, 2].map(|n| world.host([10, 0, 0, n].into()));
        let path = Impairments { delay: Span::from_ms(10), ..Impairments::default() };
        let rate = "1mbit".parse().ok();
        let wire = LinkSpec { rate, queue: Queue::frames(30), path, ..LinkSpec::default() };
        world.connect(a, b, &wire, &wire);
        let think = Span::from_ms(300);
        let web = Source::Web { files: Files::Classes, request: 300, think, keeps: false };
        let flows: Vec<_> = TcpSpec::presets()
            .iter()
            .map(|name| {
                let tcp = TcpSpec::preset(name).expect("a preset");
                let tcp = Box::new([tcp.clone(), tcp]);
                world.flow(&FlowSpec { tcp, ..FlowSpec::new(a, b, web.clone()) })
            })
            .collect();
        world.run_until(at(30_000));
        let reports: Vec<_> = flows.iter().map(|flow| world.report(*flow).clone()).collect();
        (reports, world.events())
    };
    let first = run(1);
    // side by side with another
    let (again, other) = std::thread::scope(|scope| {
        let [again, other] = [1, 2].map(|seed| scope.spawn(move || run(seed)));
        (again.join().expect("it runs"), other.join().expect("it runs"))
    });
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
}
