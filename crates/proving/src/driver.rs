//! Experiments in real time: the topology of a scenario in namespaces, the kernel's TCP, this very
//! binary as the box, and the metrics of the laboratory. The wires between are the laboratory's too
//! (driver/wires.rs). A run in which the machine itself was late says nothing, and is void.

mod field;
mod flows;
mod stage;
mod wires;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use weir_control::{Counters, Row, Tree};
use weir_lab::run::{ClassSeen, Live, Passed, Played, Progress, Run};
use weir_lab::scenario::{NodeKind, Profile, Scenario};
use weir_units::{Instant, Span};

use crate::clock;
use crate::middle::{Joined, Middle, Start};
use crate::shell::Shell;
use flows::Flows;
use stage::Stage;
use wires::Wires;

/// How a scenario is played.
#[derive(Clone, Debug)]
pub struct Play {
    /// How weir's ports are opened.
    pub through: Middle,
    /// Runs side by side.
    pub threads: usize,
    /// Whether every command is shown that makes the namespaces.
    pub verbose: bool,
}

/// What came of a run: none where it was void both times.
#[derive(Debug)]
pub struct Outcome {
    /// By profile and seed.
    pub runs: Vec<Vec<Run>>,
    /// Of which runs the machine was late, and how late, in words.
    pub void: Vec<String>,
    /// The worst lateness of the wires in runs that count: what 99 of 100 frames did not exceed.
    pub late: Span,
}

/// What the wires may be late at the 99th percentile.
const LATE: Span = Span::from_ms(5);
/// Between the making of the namespaces and the start of the world.
const SOON: Span = Span::from_ms(200);

/// Why a profile of a scenario cannot be played live: all that is in the way.
#[must_use]
pub fn cannot(scenario: &Scenario, profile: &Profile) -> Vec<String> {
    if scenario.sharing.is_some() {
        return field::field(scenario, profile).err().into_iter().collect();
    }
    let mut why = Vec::new();
    if !scenario.more.is_empty() {
        why.push("it is a sweep over several cases".to_owned());
    }
    if scenario.histories.is_some() {
        why.push("it has lines whose rates change by a history".to_owned());
    }
    let boxes = scenario.nodes.iter().filter(|node| node.kind == NodeKind::Box).count();
    if boxes > 1 {
        why.push(format!("it has {boxes} boxes, and live there is one"));
    }
    let live = Live::new(scenario, profile, 1).map(|live| live.flows).unwrap_or_default();
    for (flow, specs) in scenario.flows.iter().zip(live) {
        if let Some(reason) = specs.first().and_then(flows::cannot) {
            why.push(format!("flow \"{}\": {reason}", flow.name));
        }
    }
    why
}

/// How long it takes to play so many seeds of these profiles.
#[must_use]
pub fn takes(scenario: &Scenario, profiles: &[usize], seeds: usize, play: &Play) -> Span {
    let times = |span: Span, count: usize| Span::from_ns(span.ns().saturating_mul(count as u64));
    if scenario.sharing.is_none() {
        return times(scenario.run, (profiles.len() * seeds).div_ceil(play.threads.max(1)));
    }
    let cases = 1 + scenario.more.len();
    let fields = profiles.iter().map(|&at| field::field(scenario, &scenario.profiles[at]));
    let lasts = fields.filter_map(Result::ok).fold(Span::ZERO, |sum, field| sum + field.lasts);
    times(lasts, cases * seeds)
}

/// Plays the chosen profiles with each of `seeds`, some side by side.
///
/// # Errors
/// What could not be played.
pub fn all(
    scenario: &Scenario,
    profiles: &[usize],
    seeds: std::ops::RangeInclusive<u32>,
    play: &Play,
    progress: &Progress<'_>,
) -> Result<Outcome, String> {
    crate::cannot().map_or(Ok(()), Err)?;
    let jobs: Vec<(usize, u32)> =
        profiles.iter().flat_map(|&at| seeds.clone().map(move |seed| (at, seed))).collect();
    let results: Vec<Mutex<Option<Result<Told, String>>>> =
        jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        // what is about shares fills links and processors: one at a time
        let threads = if scenario.sharing.is_some() { 1 } else { play.threads };
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(profile, seed)) = jobs.get(at) else { return };
                    let told = twice((scenario, &scenario.profiles[profile]), seed, (at, play));
                    *results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    let mut outcome = Outcome { runs: Vec::new(), void: Vec::new(), late: Span::ZERO };
    let mut results =
        results.into_iter().filter_map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner));
    for _ in profiles {
        let mut runs = Vec::new();
        for told in results.by_ref().take(seeds.clone().count()) {
            let Told { run, late, void } = told?;
            outcome.void.extend(void);
            if let Some(run) = run {
                outcome.late = outcome.late.max(late);
                runs.push(run);
            }
        }
        outcome.runs.push(runs);
    }
    Ok(outcome)
}

/// What one job has to tell.
struct Told {
    run: Option<Run>,
    late: Span,
    void: Vec<String>,
}

/// A run; where it was void, once more.
fn twice(
    (scenario, profile): (&Scenario, &Profile),
    seed: u32,
    (number, play): (usize, &Play),
) -> Result<Told, String> {
    let mut void = Vec::new();
    for _ in 0..2 {
        let (run, late) = one((scenario, profile), seed, (number, play))
            .map_err(|why| format!("{}, seed {seed}: {why}", profile.name))?;
        if late <= LATE {
            return Ok(Told { run: Some(run), late, void });
        }
        let name = &profile.name;
        void.push(format!("{name}, seed {seed}: frames came {late} late at the 99th percentile"));
    }
    Ok(Told { run: None, late: Span::ZERO, void })
}

/// One run, and how late the wires were.
fn one(
    (scenario, profile): (&Scenario, &Profile),
    seed: u32,
    (number, play): (usize, &Play),
) -> Result<(Run, Span), String> {
    if scenario.sharing.is_some() {
        return field::one(scenario, profile, play);
    }
    let shell = Shell { verbose: play.verbose };
    let live = Live::new(scenario, profile, u64::from(seed))?;
    let stage = Stage::make((scenario, profile), &live, number, &shell)?;
    let boxed = match (&profile.policy, stage.boxed(scenario)) {
        (Some(policy), Some(place)) => {
            let policy = with_routers(policy, &live);
            let start = Start::plain()?;
            let mut joined = Joined::at(place, &stage.folder, play.through, &policy, start)?;
            joined.run()?;
            Some(joined)
        }
        _ => None,
    };
    let begin = clock::now() + SOON;
    let at = |moment: Instant| begin + moment.since(Instant::ZERO);
    let (from, to) = scenario.measure;
    let flows = Flows::start(scenario, &live, &stage, begin)?;
    let wires = Wires::start(&stage.wires, live, stage.sockets.clone(), (begin, [from, to]))?;
    clock::sleep_until(at(from));
    flows.counts(true);
    let before = tree(boxed.as_ref())?;
    clock::sleep_until(at(to));
    flows.counts(false);
    let after = tree(boxed.as_ref())?;
    clock::sleep_until(begin + scenario.run);
    let end = tree(boxed.as_ref())?;
    let flows = flows.stop()?;
    let (live, lateness) = wires.stop()?;
    let late = lateness.at_most(990).unwrap_or(Span::ZERO);
    let played = Played {
        flows,
        classes: end.rows.iter().map(class).collect(),
        boxes: passed(&before, &after),
        box_ms: end.rows.first().map_or(0.0, longest),
    };
    if let Some(silent) = silent(scenario, &played) {
        return Err(format!("nothing came of flow \"{silent}\""));
    }
    Ok((live.seen(scenario, played), late))
}

/// A flow of which nothing arrived at all.
fn silent<'s>(scenario: &'s Scenario, played: &Played) -> Option<&'s str> {
    let mut flows = scenario.flows.iter().zip(&played.flows);
    let silent = flows.find(|(_, all)| !all.is_empty() && all.iter().all(|e| e[1].delivered == 0));
    silent.map(|(flow, _)| flow.name.as_str())
}

/// Each host of the scenario stands for as many as it has addresses: weir must know it as a router.
fn with_routers(policy: &str, live: &Live) -> String {
    let macs: Vec<String> =
        live.nodes.iter().map(|&node| format!("\"{}\"", stage::mac(node))).collect();
    let mut text = String::new();
    for line in policy.lines() {
        text += line;
        text.push('\n');
        if line.trim_start().starts_with("[link.") {
            text += &format!("routers = [{}]\n", macs.join(", "));
        }
    }
    text
}

/// What the classes of the box had; nothing where there is none.
fn tree(boxed: Option<&Joined<'_>>) -> Result<Tree, String> {
    boxed.map_or(Ok(Tree::default()), Joined::tree)
}

fn class(row: &Row) -> ClassSeen {
    let ways = [&row.up.counters, &row.down.counters];
    let most = ways.iter().map(|counters| counters.backlog_bytes_max).max().unwrap_or(0);
    let busy = if ways[0].sent.bytes >= ways[1].sent.bytes { ways[0] } else { ways[1] };
    let wait = Span::from_ns(busy.delay_ns_sum / busy.sent.frames.max(1));
    ClassSeen { path: row.class.clone(), most, wait_ms: weir_lab::run::ms(wait) }
}

fn longest(row: &Row) -> f64 {
    let most = row.up.counters.delay_ns_max.max(row.down.counters.delay_ns_max);
    weir_lab::run::ms(Span::from_ns(most))
}

/// What the box was given between two looks, from the LAN and from the WAN.
fn passed(before: &Tree, after: &Tree) -> [Passed; 2] {
    let of = |tree: &Tree, way: fn(&Row) -> &Counters| {
        let link = tree.rows.first().map(way);
        link.map_or((0, 0), |link| (link.received.bytes, link.dropped_in_all().bytes))
    };
    let ways: [fn(&Row) -> &Counters; 2] = [|row| &row.up.counters, |row| &row.down.counters];
    ways.map(|way| {
        let (old, new) = (of(before, way), of(after, way));
        Passed { received: new.0 - old.0, dropped: new.1 - old.1 }
    })
}
