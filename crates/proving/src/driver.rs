//! Experiments in real time: the topology of a scenario in namespaces, the kernel's TCP, this very
//! binary as the box, and the metrics of the laboratory. The wires between are the laboratory's too
//! (driver/wires.rs). A run in which the machine itself was late says nothing, and is void.

mod field;
mod flows;
mod stage;
mod wires;

use std::ops::RangeInclusive;

use weir_control::{Counters, Row, Tree};
use weir_lab::run::{ClassSeen, Live, Passed, Played, Progress, Run, ms, side_by_side};
use weir_lab::scenario::{NodeKind, Profile, Scenario};
use weir_units::{Instant, Span};

use crate::clock;
use crate::middle::{Joined, Middle, Start};
use crate::shell::Shell;
use flows::Flows;
use stage::Stage;
use wires::{Over, Wires};

/// What came of all runs.
#[derive(Debug)]
pub struct Outcome {
    /// By profile and seed, without those that are void.
    pub runs: Vec<Vec<Run>>,
    /// Which runs are void, and why.
    pub void: Vec<String>,
    /// The worst lateness in runs that count: what 99 of 100 frames did not exceed.
    pub late: Span,
}

/// How weir's ports are opened: by what every interface has.
const MIDDLE: Middle = Middle::Packet;
const SHELL: Shell = Shell { verbose: false };
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
    if profile.plan.as_ref().is_some_and(|plan| !plan.routers.is_empty()) {
        why.push("its policy names routers, and live the hosts are".to_owned());
    }
    why.extend(flows::cannot(scenario, &Live::new(scenario, profile, 1).flows));
    why
}

/// How long it takes to play so many seeds of these profiles.
#[must_use]
pub fn takes(scenario: &Scenario, profiles: &[usize], seeds: usize, threads: usize) -> Span {
    let times = |span: Span, count: usize| Span::from_ns(span.ns().saturating_mul(count as u64));
    if scenario.sharing.is_none() {
        return times(scenario.run, (profiles.len() * seeds).div_ceil(threads.max(1)));
    }
    let cases = 1 + scenario.more.len();
    let fields = profiles.iter().map(|&at| field::field(scenario, &scenario.profiles[at]));
    let lasts = fields.filter_map(Result::ok).fold(Span::ZERO, |sum, field| sum + field.lasts);
    times(lasts, cases * seeds)
}

/// Plays the chosen profiles with each of `seeds`, some side by side.
///
/// # Errors
/// What must be there is not, for none of them.
pub fn all(
    scenario: &Scenario,
    profiles: &[usize],
    seeds: RangeInclusive<u32>,
    threads: usize,
    progress: &Progress<'_>,
) -> Result<Outcome, String> {
    crate::cannot().map_or(Ok(()), Err)?;
    // what is about shares fills links and processors: one at a time
    let threads = if scenario.sharing.is_some() { 1 } else { threads };
    let told = side_by_side(profiles, seeds.clone(), threads, progress, |number, at, seed| {
        twice((scenario, &scenario.profiles[at]), seed, number)
    });
    let mut outcome = Outcome { runs: Vec::new(), void: Vec::new(), late: Span::ZERO };
    for told in told.chunks_exact(seeds.count().max(1)) {
        let counts = told.iter().filter_map(|(run, _)| run.clone());
        outcome.runs.push(counts.clone().map(|(run, _)| run).collect());
        outcome.late = counts.map(|(_, late)| late).fold(outcome.late, Span::max);
        outcome.void.extend(told.iter().flat_map(|(_, void)| void.iter().cloned()));
    }
    Ok(outcome)
}

/// A run and how late it was, if it is not void; where it was, once more. And why it was.
fn twice(
    (scenario, profile): (&Scenario, &Profile),
    seed: u32,
    number: usize,
) -> (Option<(Run, Span)>, Vec<String>) {
    let mut void = Vec::new();
    for _ in 0..2 {
        let why = match one((scenario, profile), seed, number) {
            Ok((run, late)) if late <= LATE => return (Some((run, late)), void),
            Ok((_, late)) => format!("one of 100 frames came {:.1} ms late or more", ms(late)),
            Err(why) => why,
        };
        void.push(format!("{}, seed {seed}: {why}", profile.name));
    }
    (None, void)
}

/// One run, and how late the wires were.
fn one(
    (scenario, profile): (&Scenario, &Profile),
    seed: u32,
    number: usize,
) -> Result<(Run, Span), String> {
    if scenario.sharing.is_some() {
        return field::one(scenario, profile);
    }
    let live = Live::new(scenario, profile, u64::from(seed));
    let stage = Stage::make((scenario, profile), &live, number)?;
    let boxed = match (&profile.policy, stage.boxed(scenario)) {
        (Some(policy), Some(place)) => {
            let policy = with_routers(policy, &live);
            let start = Start::plain()?;
            let mut joined = Joined::at(place, &stage.folder, MIDDLE, &policy, start)?;
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
    let Over { live, lateness, lost } = wires.stop()?;
    if lost > 0 {
        return Err(format!("{lost} frames were lost that no link should have lost"));
    }
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
    ClassSeen { path: row.class.clone(), most, wait_ms: ms(wait) }
}

fn longest(row: &Row) -> f64 {
    let most = row.up.counters.delay_ns_max.max(row.down.counters.delay_ns_max);
    ms(Span::from_ns(most))
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
