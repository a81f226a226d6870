//! One run of a scenario: the world is built for a profile and a seed, time passes, and what
//! everyone has seen is kept. Runs do not know each other; several go side by side, and the result
//! is the same however many do.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use weir_engine::Config;
use weir_sim::flow::EndReport;
use weir_sim::link::LinkCounts;
use weir_sim::{FlowSpec, NodeId, Random, Source, World};
use weir_units::{ByWay, Instant, Span};

use crate::histories;
use crate::result::Series;
use crate::scenario::{Flow, NodeKind, Profile, Scenario};
use crate::sharing;

mod live;

pub use live::{Live, Played, is_real};

/// What one run has shown.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// By flow of the scenario, and by its number.
    pub flows: Vec<Vec<Seen>>,
    /// By link of the scenario: there and back, while what arrives counts; what is the most is of
    /// the whole run.
    pub links: Vec<[LinkCounts; 2]>,
    /// The longest that a frame waited in a box, in ms; 0 where boxes are wires.
    pub box_ms: f64,
    /// What was seen of the classes of the boxes.
    pub classes: Vec<ClassSeen>,
    /// What the boxes were given and dropped while it counts, from the LAN and from the WAN.
    pub boxes: [Passed; 2],
    /// Frames that went over any line, in all cases.
    pub frames: u64,
    /// What allocators alone have shown, by name.
    pub shares: Vec<(String, f64)>,
    /// What leaves had, by name.
    pub series: Vec<(String, Series)>,
    /// The other cases of a sweep.
    pub more: Vec<Run>,
}

/// What was seen of a class over the whole run.
#[derive(Clone, Debug)]
pub struct ClassSeen {
    /// Its path.
    pub path: String,
    /// The most bytes that ever waited, in either direction.
    pub most: u64,
    /// How long frames waited in the mean, of the direction that carried more, in ms.
    pub wait_ms: f64,
}

/// What a box did with what came from one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Bytes that came.
    pub received: u64,
    /// Bytes that it dropped.
    pub dropped: u64,
}

/// What the receiver of a flow has seen, and what its sender has done.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The end that got the most.
    pub receiver: EndReport,
    /// The other.
    pub sender: EndReport,
    /// How long answers took to come back to who asked.
    pub answers: Vec<Span>,
    /// Bytes of IP and transport headers of each of its packets.
    pub headers: u64,
}

/// Says how many of how many runs are done.
pub type Progress<'p> = dyn Fn(usize, usize) + Sync + 'p;

/// Runs the chosen profiles with each of `seeds`, side by side on `threads` threads. By profile
/// and seed.
///
/// # Errors
/// A policy is more than an engine takes; in words.
pub fn all(
    scenario: &Scenario,
    profiles: &[usize],
    seeds: RangeInclusive<u32>,
    threads: usize,
    progress: &Progress<'_>,
) -> Result<Vec<Vec<Run>>, String> {
    let mut results = side_by_side(profiles, seeds.clone(), threads, progress, |_, at, seed| {
        one(scenario, &scenario.profiles[at], u64::from(seed))
    })
    .into_iter();
    profiles.iter().map(|_| results.by_ref().take(seeds.clone().count()).collect()).collect()
}

/// Does something for each of these profiles and seeds on so many threads, and tells how far it is.
/// What came of it is in their order. Each has a number, the place in that order.
pub fn side_by_side<T: Send>(
    profiles: &[usize],
    seeds: RangeInclusive<u32>,
    threads: usize,
    progress: &Progress<'_>,
    each: impl Fn(usize, usize, u32) -> T + Sync,
) -> Vec<T> {
    let jobs: Vec<(usize, u32)> =
        profiles.iter().flat_map(|&at| seeds.clone().map(move |seed| (at, seed))).collect();
    let results: Vec<Mutex<Option<T>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(profile, seed)) = jobs.get(at) else { return };
                    let result = each(at, profile, seed);
                    *results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    let results = results.into_iter();
    results.filter_map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// One run, of all cases.
///
/// # Errors
/// The policy is more than an engine takes; in words.
pub fn one(scenario: &Scenario, profile: &Profile, seed: u64) -> Result<Run, String> {
    let mut run = match (&scenario.sharing, profile.law) {
        (Some(sharing), Some(_)) if sharing.leaves() > profile.leaves => Run::default(),
        (Some(sharing), Some(law)) => {
            let sharing::Shown { numbers, series } =
                sharing::run(&sharing.at(profile.scale), law, seed);
            Run { shares: numbers, series, ..Run::default() }
        }
        (Some(_), None) => return Err(format!("{} has no law", profile.name)),
        (None, _) => in_world(scenario, profile, seed)?,
    };
    if let (Some(histories), Some(plan)) = (scenario.histories, &profile.plan) {
        run.shares.extend(histories::run(histories, plan, seed)?);
    }
    for case in &scenario.more {
        let same = case.profiles.iter().find(|other| other.name == profile.name);
        let same = same.ok_or_else(|| format!("{} is not in all cases", profile.name))?;
        let seen = one(case, same, seed)?;
        run.frames += seen.frames;
        run.more.push(seen);
    }
    Ok(run)
}

/// One run of one case, with hosts and frames.
fn in_world(scenario: &Scenario, profile: &Profile, seed: u64) -> Result<Run, String> {
    let mut built = build(scenario, profile, seed)?;
    built.world.run_until(scenario.measure.0);
    let before = built.counts();
    built.world.run_until(scenario.measure.1);
    let mut counts = built.counts();
    counts.less(&before);
    built.world.run_until(Instant::ZERO + scenario.run);
    Ok(built.seen(scenario, profile, counts))
}

/// A world that is ready to run.
pub struct Built {
    /// The world.
    pub world: World,
    /// By node of the scenario.
    pub nodes: Vec<NodeId>,
    /// By link of the scenario: there and back.
    pub links: Vec<(usize, usize)>,
    flows: Vec<Vec<usize>>,
}

/// Builds the world of a scenario.
///
/// # Errors
/// The policy is more than an engine takes; in words.
pub fn build(scenario: &Scenario, profile: &Profile, seed: u64) -> Result<Built, String> {
    let mut built = wired(scenario, profile, seed, |world, number, kind| match kind {
        NodeKind::Host(address) => {
            let usual = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number));
            Ok(world.host(address.unwrap_or(usual)))
        }
        NodeKind::Switch => Ok(world.switch()),
        NodeKind::Box => match &profile.plan {
            None => Ok(world.switch()),
            Some(plan) => {
                let config = Config { seed: u128::from(seed), ..Config::default() };
                world.engine(plan, config).map_err(|e| format!("{}: {e:?}", profile.name))
            }
        },
    })?;
    let specs = specs(scenario, profile, seed, &built.nodes);
    for flow in specs {
        built.flows.push(flow.iter().map(|spec| built.world.flow(spec)).collect());
    }
    Ok(built)
}

/// The wires of a scenario between such nodes; the first has number 1.
fn wired<E>(
    scenario: &Scenario,
    profile: &Profile,
    seed: u64,
    mut make: impl FnMut(&mut World, u32, NodeKind) -> Result<NodeId, E>,
) -> Result<Built, E> {
    let mut world = World::new(seed);
    let mut nodes = Vec::new();
    for (node, number) in scenario.nodes.iter().zip(1u32..) {
        nodes.push(make(&mut world, number, node.kind)?);
    }
    let mut links = Vec::new();
    for (at, wire) in scenario.links.iter().enumerate() {
        let (there, back) = scenario.link(at, profile);
        let (a, b) = wire.between;
        links.push(world.connect(nodes[a], nodes[b], &there, &back));
    }
    Ok(Built { world, nodes, links, flows: Vec::new() })
}

/// What is said, by flow of the scenario.
fn specs(
    scenario: &Scenario,
    profile: &Profile,
    seed: u64,
    nodes: &[NodeId],
) -> Vec<Vec<FlowSpec>> {
    // the luck of when each flow begins
    let mut random = Random::new(seed, u64::MAX);
    // and of how far away it is: where nobody says so, all else is as it was
    let mut ways = Random::new(seed, u64::MAX - 1);
    let all = scenario.flows.iter().enumerate().map(|(at, flow)| {
        // the luck of the others is the same with it and without
        let stays_away = profile.without.contains(&at);
        let each = (0..flow.count).map(|n| {
            let late = Span::from_ns(random.below(flow.spread.ns().max(1)));
            let away = Span::from_ns(ways.below(flow.away.ns().max(1)));
            let spec = FlowSpec { away, ..spec(scenario, flow, nodes, n, late) };
            (!stays_away).then_some(spec)
        });
        each.flatten().collect()
    });
    all.collect()
}

fn spec(scenario: &Scenario, flow: &Flow, nodes: &[NodeId], n: u32, late: Span) -> FlowSpec {
    let (from, to) = flow.between;
    let mut spec = FlowSpec::new(nodes[from], nodes[to], flow.source.clone());
    spec.from_address = flow.addresses[0].map(|first| later(first, n));
    spec.to_address = flow.addresses[1].map(|first| later(first, n));
    spec.to_port = flow.port;
    spec.traffic_class = flow.traffic_class;
    spec.start = Instant::ZERO + flow.start + late;
    spec.stop = flow.stop.map_or(Instant::MAX, |stop| Instant::ZERO + stop);
    spec.measure = scenario.measure;
    spec.bin = Some(scenario.bin);
    spec.samples = true;
    spec.tcp = Box::new(flow.tcp.clone());
    if matches!(flow.source, Source::Echo { .. }) {
        // who types does not wait for the last letter: ssh and telnet say so to their systems
        spec.tcp.iter_mut().for_each(|tcp| tcp.nagle = false);
    }
    spec
}

/// The address so many behind the first.
fn later(first: IpAddr, n: u32) -> IpAddr {
    match first {
        IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits().wrapping_add(n))),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits().wrapping_add(u128::from(n))).into()),
    }
}

/// What lines and boxes have counted.
struct Counts {
    links: Vec<[LinkCounts; 2]>,
    boxes: [Passed; 2],
}

impl Counts {
    /// Takes away what was counted before; the most and the longest stay.
    fn less(&mut self, before: &Counts) {
        let links = self.links.iter_mut().flatten().zip(before.links.iter().flatten());
        for (link, before) in links {
            link.offered -= before.offered;
            link.sent -= before.sent;
            link.sent_bytes -= before.sent_bytes;
            link.dropped -= before.dropped;
            link.marked -= before.marked;
            link.lost -= before.lost;
            link.wait_ns_sum -= before.wait_ns_sum;
        }
        for (passed, before) in self.boxes.iter_mut().zip(before.boxes) {
            passed.received -= before.received;
            passed.dropped -= before.dropped;
        }
    }
}

impl Built {
    fn counts(&self) -> Counts {
        let links = self.links.iter().map(|&(a, b)| [a, b].map(|id| *self.world.link(id)));
        let mut boxes = [Passed::default(); 2];
        for total in self.totals() {
            for (side, passed) in [&total.up, &total.down].into_iter().zip(&mut boxes) {
                passed.received += side.received.bytes;
                passed.dropped += side.dropped_in_all().bytes;
            }
        }
        Counts { links: links.collect(), boxes }
    }

    /// What each engine has counted.
    fn totals(&self) -> impl Iterator<Item = ByWay<weir_engine::Counters>> {
        self.nodes.iter().filter_map(|&node| {
            let mut snapshot = weir_engine::Snapshot::default();
            let _ = self.world.engine_of(node)?.snapshot(0, &mut snapshot);
            Some(snapshot.total)
        })
    }

    fn seen(&self, scenario: &Scenario, profile: &Profile, Counts { links, boxes }: Counts) -> Run {
        let flows = self.flows.iter().zip(&scenario.flows).map(|(ids, flow)| {
            ids.iter().map(|&id| seen(self.world.report(id).ends.clone(), flow)).collect()
        });
        let box_ns =
            self.totals().flat_map(|total| total.named().map(|(_, way)| way.delay.max_ns)).max();
        let box_ns = box_ns.unwrap_or(0);
        let all = self.links.iter().flat_map(|&(a, b)| [a, b]);
        let frames = all.map(|id| self.world.link(id).sent).sum();
        let box_ms = ms(Span::from_ns(box_ns));
        let engines = self.nodes.iter().filter_map(|&node| self.world.engine_of(node));
        let rows = engines.zip(&profile.plan).flat_map(|(engine, plan)| {
            let rows = weir_engine::Report::of(engine, plan).rows;
            rows.into_iter().map(|row| {
                let ways = [&row.counters.up, &row.counters.down];
                let most = ways.iter().map(|counters| counters.held_max).max();
                let busy = ways.iter().max_by_key(|counters| counters.sent.bytes);
                let wait = busy.map(|busy| busy.delay.mean(busy.sent.frames));
                let wait_ms = ms(wait.unwrap_or_default());
                ClassSeen { path: row.path, most: most.unwrap_or(0), wait_ms }
            })
        });
        let classes = rows.collect();
        Run { flows: flows.collect(), box_ms, classes, boxes, frames, links, ..Run::default() }
    }
}

fn seen([a, b]: [EndReport; 2], flow: &Flow) -> Seen {
    let answers = a.delays.kept.clone();
    let (receiver, sender) = if a.delivered > b.delivered { (a, b) } else { (b, a) };
    let headers = match flow.source.is_tcp() {
        // timestamps are twelve bytes with their padding
        true if flow.tcp.iter().all(|tcp| tcp.timestamps) => 52,
        true => 40,
        false => 28,
    };
    Seen { receiver, sender, answers, headers }
}

/// Milliseconds, to be read.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
pub fn ms(span: Span) -> f64 {
    span.ns() as f64 / 1e6
}

impl Run {
    /// A case of the sweep; the first is this one.
    #[must_use]
    pub fn case(&self, number: usize) -> &Run {
        number.checked_sub(1).and_then(|at| self.more.get(at)).unwrap_or(self)
    }
}
