//! Flows inside one leaf without queues: TCP of two kinds, a flood and a call, each of which has
//! what it would have with a queue per flow.

#![allow(clippy::cast_precision_loss, reason = "numbers are far below 2^52")]

use std::net::IpAddr;

use weir_engine::Config;
use weir_policy::{Source as Text, read};
use weir_sim::impair::Impairments;
use weir_sim::tcp::TcpSpec;
use weir_sim::{FlowSpec, LinkSpec, Source, World};
use weir_units::{Instant, Rate, Span};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Tcp(&'static str),
    /// So many Mbit/s in frames of 1 400 bytes.
    Flood(u64),
    Call,
}

const CUBIC: Kind = Kind::Tcp("linux-now");
const BBR: Kind = Kind::Tcp("bbr");

fn wire(half_us: u64) -> LinkSpec {
    let path = Impairments { delay: Span::from_us(half_us), ..Impairments::default() };
    LinkSpec { path, ..LinkSpec::default() }
}

/// What a flow had: payload in the last two thirds of the run.
struct Had {
    mbit: f64,
    /// The part of its frames that never came.
    lost: f64,
    /// What 99 of 100 of its frames took at most.
    late_ms: f64,
}

fn run(words: &str, rtt_ms: u64, seconds: u64, flows: &[(u8, Kind)]) -> Vec<Had> {
    let text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100mbit\"\nup = \"100mbit\"\n\
         [class.\"/all\"]\nmatch = \"any\"\nceil = \"50mbit\"\n{words}\n"
    );
    let reading = read(Text::new("p", text), &mut |_| Err(String::new())).expect("is text");
    let plan = reading.plans.into_iter().next().expect("has a link");
    let mut world = World::new(1);
    let hosts = [1, 2].map(|n| world.host(IpAddr::from([10, 0, 0, n])));
    let server = world.host(IpAddr::from([192, 0, 2, 1]));
    let inner = world.engine(&plan, Config::default()).expect("fits");
    let (lan, isp) = (world.switch(), world.switch());
    hosts.iter().for_each(|host| {
        world.connect(*host, lan, &wire(0), &wire(0));
    });
    world.connect(lan, inner, &wire(0), &wire(0));
    world.connect(inner, isp, &wire(0), &wire(0));
    world.connect(isp, server, &wire(rtt_ms * 500), &wire(rtt_ms * 500));
    let at = |ms: u64| Instant::ZERO + Span::from_ms(ms);
    let measure = (at(seconds * 333), at(seconds * 1_000));
    let mut ids = Vec::new();
    for (n, &(host, kind)) in flows.iter().enumerate() {
        let source = match kind {
            Kind::Tcp(_) => Source::Bulk { bytes: None },
            Kind::Flood(mbit) => {
                Source::Cbr { rate: Rate::from_bps(mbit * 1_000_000), bytes: 1_400 }
            }
            Kind::Call => Source::Voice,
        };
        let mut spec = FlowSpec::new(server, hosts[usize::from(host)], source);
        spec.samples = true;
        (spec.start, spec.measure) = (at(n as u64 * 170), measure);
        if let Kind::Tcp(name) = kind {
            let tcp = TcpSpec::preset(name).expect("is known");
            *spec.tcp = [tcp.clone(), tcp];
        }
        // what is sent last has time to come
        if kind == Kind::Call {
            spec.stop = at(seconds * 1_000 - 500);
        }
        ids.push(world.flow(&spec));
    }
    world.run_until(at(seconds * 1_000));
    let span = (seconds * 667) as f64 / 1e3;
    ids.iter()
        .map(|id| {
            let ends = &world.report(*id).ends;
            let mbit = ends[1].measured as f64 * 8e-6 / span;
            let lost = 1.0 - ends[1].received as f64 / ends[0].sent.max(1) as f64;
            let late_ms = ends[1].delays.percentile(99).unwrap_or_default().ns() as f64 / 1e6;
            Had { mbit, lost, late_ms }
        })
        .collect()
}

fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(a, b), r| (a + r, b + r * r));
    sum * sum / (squares * rates.len() as f64)
}

const WEIR: &str = "enforce = \"weir\"";

/// Each flow has the same, and together what queues would let through.
fn even(words: &str, rtt_ms: u64, flows: &[(u8, Kind)]) {
    let had = run(words, rtt_ms, 30, flows);
    let bulk = flows.iter().zip(&had).filter(|((_, kind), _)| *kind != Kind::Call);
    let rates: Vec<f64> = bulk.map(|(_, had)| had.mbit).collect();
    let sum: f64 = rates.iter().sum();
    assert!(jain(&rates) >= 0.95, "{rtt_ms} ms: {rates:?}");
    // of 50 Mbit/s, 47.9 are payload
    assert!(sum >= 0.93 * 50.0, "{rtt_ms} ms: {rates:?}");
    for ((_, kind), had) in flows.iter().zip(&had) {
        if *kind == Kind::Call {
            assert!(had.lost <= 0.001, "{rtt_ms} ms: {} of the call is lost", had.lost);
            let most = rtt_ms as f64 / 2.0 + 8.0;
            assert!(had.late_ms <= most, "{rtt_ms} ms: the call is {} ms late", had.late_ms);
        }
    }
}

fn all(rtt_ms: u64) {
    let by_flow = &format!("{WEIR}\nqueue = \"fair\"");
    even(by_flow, rtt_ms, &[(0, CUBIC), (0, CUBIC), (0, BBR), (0, BBR)]);
    even(by_flow, rtt_ms, &[(0, CUBIC), (0, CUBIC), (1, Kind::Flood(60))]);
    even(by_flow, rtt_ms, &[(0, CUBIC), (0, CUBIC), (0, BBR), (0, BBR), (1, Kind::Call)]);
    let two_and_four = [0, 0, 1, 1, 1, 1].map(|host| (host, CUBIC));
    even(by_flow, rtt_ms, &two_and_four);
    let had = run(WEIR, rtt_ms, 30, &two_and_four);
    let hosts = [&had[..2], &had[2..]].map(|had| had.iter().map(|had| had.mbit).sum::<f64>());
    assert!(jain(&hosts) >= 0.995, "{rtt_ms} ms: {hosts:?}");
}

#[test]
fn flows_in_a_leaf_without_queues_have_the_same_from_18_ms_away() {
    all(18);
}

#[test]
fn flows_in_a_leaf_without_queues_have_the_same_from_60_ms_away() {
    all(60);
}
