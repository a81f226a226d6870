//! TCP of two kinds, and floods, in leaves without queues beside each other: each leaf has its
//! half, and all of the link is used.

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
    /// A flood in frames of 1 400 bytes, each of twice its part.
    Flood,
}

const CUBIC: Kind = Kind::Tcp("linux-now");
const BBR: Kind = Kind::Tcp("bbr");

/// Flows of each leaf.
const FLOWS: u8 = 5;

/// What two leaves have of what two of queues have: Jain's index of their rates, and the sum.
#[derive(Debug)]
struct Shared {
    jain: f64,
    used: f64,
}

fn wire(half_us: u64) -> LinkSpec {
    let path = Impairments { delay: Span::from_us(half_us), ..Impairments::default() };
    LinkSpec { path, ..LinkSpec::default() }
}

/// Two leaves of five flows each over a link of so many Mbit/s, in the last two thirds of a run.
fn run(mbit: u64, rtt_us: u64, kinds: [Kind; 2], seed: u64) -> Shared {
    let rate = format!("{mbit}mbit");
    let text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"{rate}\"\nup = \"{rate}\"\n\
         enforce = \"weir\"\n\
         [class.\"/one\"]\nmatch = \"host 10.0.0.0/24\"\n\
         [class.\"/two\"]\nmatch = \"host 10.0.1.0/24\"\n"
    );
    let reading = read(Text::new("p", text), &mut |_| Err(String::new())).expect("is text");
    let plan = reading.plans.into_iter().next().expect("has a link");
    let mut world = World::new(seed);
    let server = world.host(IpAddr::from([192, 0, 2, 1]));
    let inner = world.engine(&plan, Config::default()).expect("fits");
    let (lan, isp) = (world.switch(), world.switch());
    world.connect(lan, inner, &wire(0), &wire(0));
    world.connect(inner, isp, &wire(0), &wire(0));
    world.connect(isp, server, &wire(rtt_us / 2), &wire(rtt_us / 2));
    let at = |ms: u64| Instant::ZERO + Span::from_ms(ms);
    // at 1 Gbit/s CUBIC from 30 ms away takes this long until it has found its part
    let seconds = match mbit * rtt_us {
        10_000_000.. => 40,
        _ if mbit == 1_000 => 10,
        _ => 20,
    };
    let mut ids = Vec::new();
    for n in 0..2 * FLOWS {
        let host = world.host(IpAddr::from([10, 0, n / FLOWS, n + 1]));
        world.connect(host, lan, &wire(0), &wire(0));
        let kind = kinds[usize::from(n / FLOWS)];
        let flood = Rate::from_bps(mbit * 200_000);
        let source = match kind {
            Kind::Tcp(_) => Source::Bulk { bytes: None },
            Kind::Flood => Source::Cbr { rate: flood, bytes: 1_400 },
        };
        let mut spec = FlowSpec::new(server, host, source);
        spec.start = at(u64::from(n) * 170);
        spec.measure = (at(seconds * 333), at(seconds * 1_000));
        if let Kind::Tcp(name) = kind {
            let tcp = TcpSpec::preset(name).expect("is known");
            *spec.tcp = [tcp.clone(), tcp];
        }
        ids.push(world.flow(&spec));
    }
    world.run_until(at(seconds * 1_000));
    let bytes = |id| world.report(id).ends[1].measured as f64;
    let had: Vec<f64> = ids
        .chunks(usize::from(FLOWS))
        .map(|ids| ids.iter().map(|id| bytes(*id)).sum::<f64>() * 8e-6 / (seconds as f64 * 0.667))
        .collect();
    // the link is used to 97 % downstream; of a full frame's 1 518 bytes 1 448 are TCP's payload
    let payload = 0.97 * 1_448.0 / 1_518.0;
    Shared { jain: jain(&had), used: had.iter().sum::<f64>() / (mbit as f64 * payload) }
}

fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(a, b), r| (a + r, b + r * r));
    sum * sum / (squares * rates.len() as f64)
}

/// The bars hold for every kind at a rate. Only BBR draws anything: three draws of it.
fn all(mbit: u64, rtts_us: &[u64], with: &[Kind]) {
    for &rtt in rtts_us {
        for &kind in with {
            for seed in 1..=if kind == BBR { 3 } else { 1 } {
                let shared = run(mbit, rtt, [CUBIC, kind], seed);
                let of = format!("{mbit} Mbit/s, {rtt} us, {kind:?}, seed {seed}: {shared:?}");
                assert!(shared.jain >= 0.99 && shared.used >= 0.97, "{of}");
            }
        }
    }
}

const EVERYONE: [Kind; 3] = [CUBIC, BBR, Kind::Flood];

#[test]
fn leaves_of_20_mbit_share_alike_and_use_the_link() {
    all(20, &[300, 3_000, 30_000], &EVERYONE);
}

#[test]
fn leaves_of_100_mbit_share_alike_and_use_the_link() {
    all(100, &[300, 3_000, 30_000], &EVERYONE);
}

#[test]
fn leaves_of_a_gigabit_share_alike_and_use_the_link_from_a_millisecond_on() {
    all(1_000, &[1_000, 3_000], &EVERYONE);
    all(1_000, &[300], &[CUBIC, Kind::Flood]);
}

#[test]
fn leaves_of_a_gigabit_share_alike_and_use_the_link_from_30_ms_away() {
    all(1_000, &[30_000], &EVERYONE);
}

/// The queue of the branch may stand for two milliseconds, and BBR sends two of its shortest round
/// trips at most: beside CUBIC five flows 0.3 ms away leave some of their half.
#[test]
fn bbr_from_a_third_of_a_millisecond_has_less_beside_cubic() {
    let shared = run(1_000, 300, [CUBIC, BBR], 1);
    assert!(shared.jain >= 0.9 && shared.used >= 0.97, "{shared:?}");
}

/// A flow may have 33 ms of its part ahead. CUBIC, which falls to 0.7 of its window, needs 0.43 of
/// a round trip: that is enough up to 77 ms. Beyond, it leaves some, and BBR takes it.
#[test]
fn from_farther_away_cubic_leaves_some_of_its_half() {
    for (rtt, kind, jain, used) in [
        (60_000, CUBIC, 0.99, 0.97),
        (60_000, BBR, 0.96, 0.97),
        (60_000, Kind::Flood, 0.99, 0.97),
        (100_000, CUBIC, 0.99, 0.95),
        (100_000, BBR, 0.9, 0.97),
        (100_000, Kind::Flood, 0.99, 0.97),
    ] {
        let shared = run(100, rtt, [CUBIC, kind], 1);
        assert!(shared.jain >= jain && shared.used >= used, "{rtt} us, {kind:?}: {shared:?}");
    }
}
