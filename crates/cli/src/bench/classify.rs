//! Who a frame belongs to, measured: `known_ns` for frames of flows in the table, `new_ns` for the
//! first frame of a flow, `parse_ns` for reading the headers of a TCP frame. Flows are drawn
//! uniformly and independently, so that no cache line is hotter than in life.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use weir_classify::{Class, Classifier, Index, Limits, Rule, Seed, Spec, Target, When};
use weir_packet::{Build, Frame, Headers, Label, Net, Pool, Side};
use weir_units::{Instant, Prefix, Span};

use super::{Figures, Rounds, per, timed, within};
use crate::out::problem;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Match rules
    #[arg(long, default_value_t = 1_000, value_parser = within(1..=4_096))]
    rules: u32,
    /// Address blocks that the rules name together
    #[arg(long, default_value_t = 100_000, value_parser = within(1..=1_000_000))]
    prefixes: u32,
    /// Number of flows
    #[arg(long, default_value_t = 65_536, value_parser = within(1..=1_000_000))]
    flows: u32,
    /// Measure one of them only
    #[arg(long, value_enum)]
    only: Option<Only>,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    Known,
    New,
    Parse,
}

/// Frames handed over at once.
const BURST: usize = 32;
/// Frames drawn at once, few enough to stay in the second cache.
const DRAWN: usize = 2_048;

pub(crate) fn run(args: &Args) -> ExitCode {
    let wants = |only| args.only.is_none_or(|o| o == only);
    let mut figures = Figures::new(&["known_ns", "new_ns", "parse_ns"]);
    let mut bench = Bench::new(args);
    if wants(Only::Known) {
        bench.warm();
    }
    let packets = args.rounds.packets as usize;
    for _ in 0..args.rounds.count {
        if wants(Only::Known) {
            let before = bench.classifier.counters().known;
            let mut time = Duration::ZERO;
            let draws = packets.div_ceil(DRAWN);
            for _ in 0..draws {
                bench.draw_known();
                time += timed(|| bench.known(Side::Lan));
            }
            let found = bench.classifier.counters().known - before;
            if found < (draws * DRAWN) as u64 {
                return problem("flows were not in the table: the benchmark measures nothing");
            }
            figures.add("known_ns", per(time, draws * DRAWN));
        }
        if wants(Only::New) {
            // beside the others a tenth of them: they are dearer, so that it takes as long
            let count = if args.only.is_none() { packets / 10 } else { packets };
            let count = count.max(BURST);
            bench.draw_new(count);
            let time = timed(|| bench.new_flows());
            figures.add("new_ns", per(time, bench.fresh.len()));
        }
        if wants(Only::Parse) {
            let time = timed(|| bench.parse(packets));
            figures.add("parse_ns", per(time, packets));
        }
    }
    let title = format!(
        "classify: {} rules, {} blocks, {} flows, bursts of {BURST}, {} rounds",
        args.rules, args.prefixes, args.flows, args.rounds.count
    );
    figures.show(&title, &args.rounds.json)
}

struct Bench {
    classifier: Classifier,
    /// A table of its own for new flows, so that they do not push out the known ones.
    empty: Classifier,
    flows: Vec<Headers>,
    drawn: Vec<Headers>,
    fresh: Vec<Headers>,
    next_fresh: u32,
    pool: Pool,
    frames: Vec<Frame>,
    random: Random,
    now: Instant,
}

impl Bench {
    fn new(args: &Args) -> Bench {
        let limits = Limits { flows: 1 << 17, ..Limits::default() };
        let spec = spec(args.rules, args.prefixes);
        let classifier = |seed| Classifier::new(limits, Seed::new(seed), Index::compile(&spec));
        let mut random = Random(0x5eed);
        let flows = (0..args.flows).map(|n| random.flow(args.prefixes, n)).collect();
        let mut pool = Pool::new(BURST, 256);
        let bytes = Build::tcp(address(1, 1), address(2, 2)).to_vec();
        let frames = (0..BURST).filter_map(|_| pool.fill(&bytes)).collect();
        Bench {
            classifier: classifier(1),
            empty: classifier(2),
            flows,
            drawn: vec![Headers::EMPTY; DRAWN],
            fresh: Vec::new(),
            next_fresh: args.prefixes,
            pool,
            frames,
            random,
            now: Instant::ZERO,
        }
    }

    /// Every flow once from each side, so that it is alive in the table.
    fn warm(&mut self) {
        for side in [Side::Lan, Side::Wan] {
            for chunk in 0..self.flows.len().div_ceil(DRAWN) {
                let flows = self.flows.iter().skip(chunk * DRAWN);
                for (drawn, headers) in self.drawn.iter_mut().zip(flows) {
                    *drawn = *headers;
                    if side == Side::Wan {
                        std::mem::swap(&mut drawn.source, &mut drawn.target);
                        std::mem::swap(&mut drawn.source_port, &mut drawn.target_port);
                    }
                }
                self.known(side);
            }
        }
    }

    /// Draws frames of known flows. Drawing is not measured: in life their headers have just been
    /// read and are in the nearest cache.
    fn draw_known(&mut self) {
        let flows = self.flows.len() as u64;
        for headers in &mut self.drawn {
            *headers = self.flows[self.random.below(flows)];
        }
    }

    fn known(&mut self, side: Side) {
        let mut labels = [Label::new(Side::Lan, &Headers::EMPTY); BURST];
        for headers in self.drawn.chunks_exact(BURST) {
            self.now += Span::from_us(1);
            let frames = &self.frames[..];
            self.classifier.burst(self.now, side, &self.pool, frames, headers, &mut labels);
            black_box(&labels);
        }
    }

    fn draw_new(&mut self, count: usize) {
        let random = &mut self.random;
        let next = &mut self.next_fresh;
        let draw = || {
            *next = next.wrapping_add(1);
            random.flow(100_000, *next)
        };
        self.fresh = std::iter::repeat_with(draw).take(count / BURST * BURST).collect();
    }

    fn new_flows(&mut self) {
        let mut labels = [Label::new(Side::Lan, &Headers::EMPTY); BURST];
        for headers in self.fresh.chunks_exact(BURST) {
            self.now += Span::from_us(10);
            let frames = &self.frames[..];
            self.empty.burst(self.now, Side::Lan, &self.pool, frames, headers, &mut labels);
            black_box(&labels);
        }
    }

    fn parse(&mut self, packets: usize) {
        let bytes: Vec<&[u8]> = self.frames.iter().map(|f| self.pool.bytes(f)).collect();
        for at in 0..packets {
            black_box(Headers::parse(black_box(bytes[at % BURST])));
        }
    }
}

/// Rules of the kinds that policies have: half by address (together they name all blocks), the
/// others by port, code point, protocol, VLAN and length.
fn spec(rules: u32, prefixes: u32) -> Spec {
    let by_address = rules.div_ceil(2);
    let mut spec = Spec { default_leaf: rules, ..Spec::default() };
    for n in 0..rules {
        let small = |n: u32| u16::try_from(n % 60_000).unwrap_or(0);
        let when = if n % 2 == 0 {
            let lan = (n / 2..prefixes).step_by(by_address as usize).map(block).collect();
            When {
                lan,
                wan_port: (n % 4 == 0).then_some((small(n), small(n) + 100)),
                ..When::default()
            }
        } else {
            match n % 10 {
                1 => When {
                    dscp: Some(((n % 63) as u8, (n % 63) as u8)),
                    lan_port: Some((small(n), small(n))),
                    ..When::default()
                },
                3 => When {
                    vlan: Some((small(n) % 4_000, 4_000)),
                    protocol: Some((17, 17)),
                    ..When::default()
                },
                5 => When {
                    length: Some((small(n), 1_500)),
                    port: Some((small(n), small(n))),
                    ..When::default()
                },
                7 => When {
                    side: Some(Side::Wan),
                    wan_port: Some((small(n), small(n))),
                    ..When::default()
                },
                _ => When {
                    protocol: Some((6, 6)),
                    wan_port: Some((small(n), small(n) + 3)),
                    ..When::default()
                },
            }
        };
        spec.rules.push(Rule { class: n, when });
        spec.classes.push(Class { parent: None, target: Target::Leaf(n) });
    }
    spec
}

/// Block number `n`: /24s of 10.0.0.0/7 and /48s of IPv6, in turn.
fn block(n: u32) -> Prefix {
    if n.is_multiple_of(4) {
        let bits = (0x2001_0db8u128 << 96) | (u128::from(n) << 80);
        Prefix::around(std::net::Ipv6Addr::from_bits(bits).into(), 48)
    } else {
        Prefix::around(Ipv4Addr::from_bits(0x0a00_0000u32.wrapping_add(n << 8)).into(), 24)
    }
}

fn address(host: u32, port: u16) -> SocketAddr {
    (Ipv4Addr::from_bits(0x0a00_0000 + host), port).into()
}

/// A small generator with a fixed seed (PCG's multiplier, high bits out).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.next() % bound.max(1)).unwrap_or(0)
    }

    /// The headers of a TCP or UDP flow between a random block's host and a random far one.
    fn flow(&mut self, prefixes: u32, n: u32) -> Headers {
        let block = block(u32::try_from(self.below(u64::from(prefixes))).unwrap_or(0)).address();
        let far = self.next() & 0xffff_ffff;
        let udp = n.is_multiple_of(3);
        let (net, source, target) = match block {
            IpAddr::V4(v4) => (Net::V4, u128::from(v4.to_bits()), u128::from(far)),
            IpAddr::V6(v6) => (Net::V6, v6.to_bits(), (0x2a00u128 << 112) | u128::from(far)),
        };
        Headers {
            net,
            source,
            target,
            ethertype: if net == Net::V4 { 0x0800 } else { 0x86dd },
            source_port: 1_024 + (n % 60_000) as u16,
            target_port: 443,
            protocol: if udp { 17 } else { 6 },
            net_at: 14,
            transport_at: if net == Net::V4 { 34 } else { 54 },
            payload_at: 54,
            end: 54,
            ..Headers::EMPTY
        }
    }
}
