//! One history: the world it is run in, and what is seen of it every ten milliseconds.

use std::net::IpAddr;

use weir_engine::Config;
use weir_packet::Side;
use weir_policy::Plan;
use weir_shape::{FrameCost, Layer};
use weir_sim::impair::{Impairments, Jitter, Limit, Shape};
use weir_sim::tcp::TcpSpec;
use weir_sim::{Chance, FlowSpec, LinkId, LinkSpec, NodeId, Queue, Source, World};
use weir_units::{Instant, Rate, Span};

use super::draw::{History, STAGE, Server};
use super::told;
use crate::sharing::whole;

/// What one history has shown: the worst of its stages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// How long the rate was above the line after a fall, by what is allowed.
    pub(super) over: f64,
    /// How far from the line the rate was, as a part of it, from 5 s after each change on.
    pub(super) off: f64,
    /// The same, but below the line only from 300 ms after the line was full first.
    pub(super) off_full: f64,
    /// How long frames waited at the provider: the 99th percentile, in ms.
    pub(super) queue_ms: f64,
    /// The part of the line that was used, from 5 s after each change on: the least.
    pub(super) used: f64,
}

/// How often it is looked at.
const STEP: Span = Span::from_ms(10);
const FOUND: Span = Span::from_secs(5);
/// Per cent of the line that are all of it.
const FILLED: u64 = 98;
/// A line that has been full for so long was seen to carry what it does.
const FULL: Span = Span::from_ms(300);
const IP: FrameCost = FrameCost { layer: Layer::Ip, overhead: 0 };

/// Runs it, with all data going to the side `towards`.
pub(super) fn run(
    history: &History,
    plan: &Plan,
    towards: Side,
    seed: u64,
) -> Result<Seen, String> {
    let mut world = World::new(seed);
    let (inner, line) = build(&mut world, history, plan, towards)?;
    let mut all = Seen { used: 1.0, ..Seen::default() };
    let mut now = Instant::ZERO;
    let mut before = told(plan, towards);
    for (number, &rate) in history.lines.iter().enumerate() {
        world.set_rate(line, rate);
        let mut stage = Stage::new(before, rate, number == 0);
        let (begun, ends) = (now, now + STAGE);
        while now < ends {
            let old = *world.link(line);
            now += STEP;
            world.run_until(now);
            let new = world.link(line);
            let frames = new.sent - old.sent;
            let bits = (new.sent_bytes - old.sent_bytes) * 8;
            let wait_ms = whole(new.wait_ns_sum - old.wait_ns_sum) / 1e6 / whole(frames.max(1));
            let margin = world.engine_of(inner).and_then(|engine| engine.margin(towards.way_out()));
            let rate = margin.map_or(Rate::MAX, weir_engine::Margin::rate);
            stage.step(now.since(begun), rate, wait_ms, bits);
        }
        stage.end(&mut all);
        before = rate;
    }
    Ok(all)
}

/// From one change to the next.
struct Stage {
    line: Rate,
    /// How long the rate may be above the line, if it fell; how long the queue may be long.
    allowed: Option<Span>,
    settles: Span,
    over: Span,
    is_over: bool,
    off: f64,
    /// When the line was full first.
    full_at: Option<Span>,
    /// The same, but below the line only from a little after that.
    off_full: f64,
    waits: Vec<f64>,
    bits: u64,
}

impl Stage {
    fn new(before: Rate, line: Rate, is_start: bool) -> Stage {
        let part = line.bps() * 1_000 / before.bps().max(1);
        let (allowed, settles) = match part {
            0..500 => (Span::from_secs(3), Span::from_secs(8)),
            500..800 => (Span::from_secs(1), Span::from_secs(5)),
            _ => (Span::from_ms(500), Span::from_secs(3)),
        };
        let fell = part < 1_000 && !is_start;
        Stage {
            line,
            allowed: fell.then_some(allowed),
            settles,
            over: Span::ZERO,
            is_over: fell,
            off: 0.0,
            full_at: None,
            off_full: 0.0,
            waits: Vec::new(),
            bits: 0,
        }
    }

    fn step(&mut self, at: Span, rate: Rate, wait_ms: f64, bits: u64) {
        if self.full_at.is_none() && bits * 100 >= self.line.bytes_in(STEP).get() * 8 * FILLED {
            self.full_at = Some(at);
        }
        self.is_over &= rate > self.line;
        if self.is_over {
            self.over = at;
        }
        if at >= FOUND {
            let off = (whole(rate.bps()) / whole(self.line.bps()) - 1.0).abs();
            self.off = self.off.max(off);
            let is_filled = self.full_at.is_some_and(|full| full + FULL <= at);
            if is_filled || rate > self.line {
                self.off_full = self.off_full.max(off);
            }
            self.bits += bits;
        }
        if at >= self.settles {
            self.waits.push(wait_ms);
        }
    }

    fn end(mut self, all: &mut Seen) {
        if let Some(allowed) = self.allowed {
            all.over = all.over.max(whole(self.over.ns()) / whole(allowed.ns()));
        }
        all.off = all.off.max(self.off);
        all.off_full = all.off_full.max(self.off_full);
        self.waits.sort_by(f64::total_cmp);
        let at = self.waits.len() * 99 / 100;
        all.queue_ms = all.queue_ms.max(self.waits.get(at).copied().unwrap_or(0.0));
        let lasted = whole(STAGE.ns() - FOUND.ns()) / 1e9;
        all.used = all.used.min(whole(self.bits) / lasted / whole(self.line.bps()));
    }
}

/// A box between a LAN and a provider with servers behind; the box and the line towards it.
fn build(
    world: &mut World,
    history: &History,
    plan: &Plan,
    towards: Side,
) -> Result<(NodeId, LinkId), String> {
    let lan = world.host(IpAddr::from([10, 0, 0, 1]));
    let servers: Vec<NodeId> = (0..history.servers.len())
        .map(|n| world.host(IpAddr::from([198, 51, 100, u8::try_from(n).unwrap_or(0) + 1])))
        .collect();
    let inner = world.engine(plan, Config::default()).map_err(|e| format!("{e:?}"))?;
    let isp = world.switch();
    world.connect(lan, inner, &LinkSpec::default(), &LinkSpec::default());
    let queue = Queue { limit: Limit::Bytes(history.queue_bytes), ..Queue::default() };
    let line = |rate| LinkSpec { rate: Some(rate), layers: IP, queue, ..LinkSpec::default() };
    let other = line(told(plan, towards.other()));
    let changing = line(history.lines[0]);
    let line = match towards {
        Side::Lan => world.connect(inner, isp, &other, &changing).1,
        Side::Wan => world.connect(inner, isp, &changing, &other).0,
    };
    for (&node, server) in servers.iter().zip(&history.servers) {
        let [there, back] = server.way(towards);
        world.connect(isp, node, &there, &back);
    }
    for (flow, n) in history.flows.iter().zip(0_u16..) {
        let server = history.servers[flow.server];
        let tcp = TcpSpec::preset("linux-now").unwrap_or_default();
        let far = TcpSpec { stale_echo: server.lies, ..tcp.clone() };
        let near = Some(IpAddr::from([10, 0, 0, 1 + flow.host]));
        let bulk = Source::Bulk { bytes: None };
        let spec = match towards {
            Side::Lan => FlowSpec {
                to_address: near,
                tcp: Box::new([far, tcp]),
                ..FlowSpec::new(servers[flow.server], lan, bulk)
            },
            Side::Wan => FlowSpec {
                from_address: near,
                tcp: Box::new([tcp, far]),
                ..FlowSpec::new(lan, servers[flow.server], bulk)
            },
        };
        let start = Instant::ZERO + flow.start;
        world.flow(&FlowSpec { to_port: 5_000 + n, start, ..spec });
    }
    Ok((inner, line))
}

impl Server {
    /// From the provider and back to it; data go towards this side.
    fn way(self, towards: Side) -> [LinkSpec; 2] {
        let delay = Span::from_ns(self.away.ns() / 2);
        let pauses = self.pauses > Span::ZERO;
        let shape = Shape::Exponential(self.pauses);
        let jitter = pauses.then_some(Jitter { shape, correlation: Chance::percent(90) });
        let plain = Impairments { delay, ..Impairments::default() };
        let path = Impairments { jitter, ..plain.clone() };
        let there = LinkSpec { path: plain, ..LinkSpec::default() };
        let back = LinkSpec { path, ..LinkSpec::default() };
        match towards {
            Side::Lan => [there, LinkSpec { rate: self.behind, ..back }],
            Side::Wan => [LinkSpec { rate: self.behind, ..there }, back],
        }
    }
}
