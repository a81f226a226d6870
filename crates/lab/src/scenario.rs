//! A scenario: who is there, how they are connected, who says what to whom, what the box between
//! does (one profile each), what is measured and what is claimed. Read from a TOML file; everything
//! that is wrong with it is said at once, at its place.

mod claims;
mod flows;
mod links;
mod metrics;
mod nodes;
mod path;
mod profiles;
mod shared;
mod size;
mod source;
mod sweep;

use toml::de::{DeTable, DeValue};
use weir_policy::reader::{Entry, Table};
use weir_policy::{Position, Problem, Problems, Source};
use weir_sim::LinkSpec;
use weir_units::{Instant, Span};

use crate::histories::{self, Histories};
use crate::sharing;

pub use crate::sharing::{Enforce, Field, Passage, Scale, Sender, Sharing};
pub use claims::Claim;
pub use flows::Flow;
pub use links::{Wire, Words};
pub(crate) use metrics::How;
pub use metrics::{Metric, Window};
pub use nodes::{Node, NodeKind};
pub use profiles::Profile;
pub use size::Size;
pub(crate) use source::ROWS as SOURCES;

/// Everything that a run needs.
#[derive(Debug)]
pub struct Scenario {
    /// What it asks, in a sentence.
    pub about: String,
    /// How long a run takes, in virtual time.
    pub run: Span,
    /// From when and up to when what arrives counts.
    pub measure: Window,
    /// Which case of a sweep it is, as keys have it; empty without a sweep.
    pub case: String,
    /// How long a bin of a series is.
    pub bin: Span,
    /// How many runs each profile gets, each with another seed.
    pub seeds: u32,
    /// Who is there.
    pub nodes: Vec<Node>,
    /// How they are connected.
    pub links: Vec<Wire>,
    /// Who says what.
    pub flows: Vec<Flow>,
    /// What the boxes do.
    pub profiles: Vec<Profile>,
    /// What is measured, in all cases.
    pub metrics: Vec<Metric>,
    /// What is claimed.
    pub claims: Vec<Claim>,
    /// The allocators alone, without hosts: then there are no nodes, links and flows.
    pub sharing: Option<Sharing>,
    /// Lines that change, drawn from the seed, beside the first case.
    pub histories: Option<Histories>,
    /// Whether it says what it is at the paper's size; if not, it has one size.
    pub has_full: bool,
    /// The other cases of a sweep, each a scenario without metrics and claims of its own.
    pub more: Vec<Scenario>,
}

/// A scenario as far as it could be read, and what is wrong with it.
#[derive(Debug)]
pub struct Reading {
    /// Only if nothing is wrong with it.
    pub scenario: Option<Scenario>,
    /// In the order of their places.
    pub problems: Vec<Problem>,
    /// The file, for whoever shows the places.
    pub source: Source,
}

const TOP: [&str; 12] = [
    "scenario",
    "size",
    "sweep",
    "sharing",
    "histories",
    "node",
    "link",
    "flow",
    "policy",
    "profile",
    "metric",
    "claim",
];
const SCENARIO: [&str; 6] = ["about", "run", "from", "to", "bin", "seeds"];
/// How many names a message lists.
const FEW: usize = 12;
const SPAN: &str = "a time as in \"20ms\" or \"60s\"";

/// Brings a file that a scenario names: the policy of a profile.
pub type Load<'l> = dyn FnMut(&str) -> Result<String, String> + 'l;

/// Reads a scenario of the usual size.
///
/// # Errors
/// The file is not text; the offset of the first byte that is not.
pub fn read(source: Source, load: &mut Load<'_>) -> Result<Reading, usize> {
    read_sized(source, Size::Usual, load)
}

/// Reads a scenario. One that has a single size is the same in both.
///
/// # Errors
/// The file is not text; the offset of the first byte that is not.
pub fn read_sized(source: Source, size: Size, load: &mut Load<'_>) -> Result<Reading, usize> {
    let mut problems = Problems::default();
    let text = source.text()?;
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors.iter().take(1) {
        let place = Position::of(&error.span().unwrap_or(0..0));
        problems.error(place, format!("this is not TOML: {}", error.message()), "");
    }
    let sizes = size::values(text, document.get_ref(), size, &mut problems);
    let filled = sweep::cases(text, document.get_ref(), &sizes, &mut problems);
    let scenario = all_cases(&filled, load, &mut problems);
    let has_full = !sizes.is_empty();
    let scenario = scenario.map(|scenario| Scenario { has_full, ..scenario });
    let has_errors = problems.has_errors();
    let problems = problems.into_list();
    Ok(Reading { scenario: scenario.filter(|_| !has_errors), problems, source })
}

/// A case of a scenario, and what it says of metrics and claims, which speak of all cases.
struct Case<'t> {
    scenario: Scenario,
    metrics: Vec<(&'t str, Entry<'t>)>,
    claims: Vec<Entry<'t>>,
    times: Times,
    problems: Problems,
}

fn all_cases(
    filled: &[sweep::Filled],
    load: &mut Load<'_>,
    problems: &mut Problems,
) -> Option<Scenario> {
    let documents: Vec<_> =
        filled.iter().map(|case| DeTable::parse_recoverable(&case.text).0).collect();
    let mut cases: Vec<Case<'_>> = (documents.iter().zip(filled))
        .map(|(document, filled)| words(document.get_ref(), &filled.text, load))
        .collect();
    let metrics = measured(&mut cases);
    let claims = claimed(&mut cases, &metrics);
    for (case, filled) in cases.iter_mut().zip(filled) {
        for problem in std::mem::take(&mut case.problems).into_list() {
            if filled.is_at_fault(problem.place) {
                continue;
            }
            let place = filled.place(problem.place);
            problems.add(problem.severity, place, problem.what, problem.help);
        }
    }
    let named = filled.iter().map(|filled| filled.case.clone());
    let mut scenarios =
        cases.into_iter().zip(named).map(|(read, case)| Scenario { case, ..read.scenario });
    let first = scenarios.next()?;
    let more = scenarios.map(|case| Scenario { histories: None, ..case }).collect();
    Some(Scenario { metrics, claims, more, ..first })
}

/// The metrics of all cases; one whose name a case before it has is the same. Those of other
/// metrics come later, as they may speak of any case.
fn measured(cases: &mut [Case<'_>]) -> Vec<Metric> {
    let mut all: Vec<Metric> = Vec::new();
    for round in metrics::ROUNDS {
        let mut names = Vec::new();
        for (number, case) in cases.iter_mut().enumerate() {
            let Scenario { flows, links, .. } = &case.scenario;
            let about = metrics::About { flows, wires: links, times: &case.times, case: number };
            for (name, entry) in &case.metrics {
                if names.iter().any(|(known, of)| known == name && *of < number) {
                    continue;
                }
                names.push((*name, number));
                let metric = metrics::read(name, *entry, &about, (round, &all), &mut case.problems);
                all.extend(metric);
            }
        }
    }
    all
}

fn claimed(cases: &mut [Case<'_>], metrics: &[Metric]) -> Vec<Claim> {
    let mut all: Vec<(usize, Claim)> = Vec::new();
    for (number, case) in cases.iter_mut().enumerate() {
        for entry in &case.claims {
            let profiles = &case.scenario.profiles;
            let Some(claim) = claims::read(*entry, metrics, profiles, &mut case.problems) else {
                continue;
            };
            match all.iter().find(|(_, other)| other.claim.id == claim.claim.id) {
                None => all.push((number, claim)),
                // a case before it said the same
                Some((other, _)) if *other < number => {}
                Some(_) => {
                    let what = format!("two claims are called \"{}\"", claim.claim.id);
                    case.problems.error(entry.place, what, "give each an id of its own");
                }
            }
        }
    }
    all.into_iter().map(|(_, claim)| claim).collect()
}

fn words<'t>(document: &'t DeTable<'t>, text: &'t str, load: &mut Load<'_>) -> Case<'t> {
    let mut all_problems = Problems::default();
    let problems = &mut all_problems;
    let mut top = Table::new("the scenario", document, text);
    // read before
    let _ = (top.take("sweep"), top.take("size"));
    let head = top.take("scenario");
    if head.is_none() {
        let help = "begin with [scenario] and about = \"...\", run = \"60s\"";
        problems.error(Position::default(), "the table [scenario] is missing", help);
    }
    let head = head.and_then(|e| e.table("[scenario]", problems));
    let times = head.map(|t| times(t, problems)).unwrap_or_default();
    let sharing = top.take("sharing").map(|e| sharing::read(e, times.run, problems));
    let histories = top.take("histories").and_then(|e| histories::read(e, problems));
    let (nodes, boxes) = nodes(top.take("node"), problems);
    let mut links = Vec::new();
    for (name, entry) in entries(top.take("link"), "[link.NAME]", problems) {
        links.extend(links::read(name, entry, &nodes, load, problems));
    }
    sides(&boxes, &links, problems);
    let mut flows = Vec::new();
    for (name, entry) in entries(top.take("flow"), "[flow.NAME]", problems) {
        flows.extend(flows::read(name, entry, &nodes, problems));
    }
    let shared = top.take("policy").and_then(|e| shared::read(e, problems));
    let about = profiles::About { shared, wires: &links, flows: &flows };
    let mut profiles = Vec::new();
    for (name, entry) in entries(top.take("profile"), "[profile.NAME]", problems) {
        profiles.extend(profiles::read(name, entry, &about, load, problems));
    }
    let metrics = entries(top.take("metric"), "[metric.NAME]", problems);
    let claims = top.take("claim").map_or_else(Vec::new, |list| list.list());
    top.finish(&TOP, problems);
    let missing = [
        (
            "profile",
            profiles.is_empty(),
            "add [profile.none] (the box forwards unshaped), or [profile.weir]",
        ),
        ("node", nodes.is_empty() && sharing.is_none(), "add [node.NAME]"),
        ("flow", flows.is_empty() && sharing.is_none(), "add [flow.NAME]"),
    ];
    for (what, _, help) in missing.into_iter().filter(|(_, is_missing, _)| *is_missing) {
        problems.error(Position::default(), format!("the scenario has no {what}"), help);
    }
    let Times { about, run, measure, bin, seeds } = times.clone();
    let scenario = Scenario {
        about,
        run,
        measure,
        case: String::new(),
        bin,
        seeds,
        nodes,
        links,
        flows,
        profiles,
        metrics: Vec::new(),
        claims: Vec::new(),
        sharing: sharing.flatten(),
        histories,
        has_full: false,
        more: Vec::new(),
    };
    Case { scenario, metrics, claims, times, problems: all_problems }
}

/// The nodes, and those of them that are boxes with where they are written.
fn nodes<'t>(
    entry: Option<Entry<'t>>,
    problems: &mut Problems,
) -> (Vec<Node>, Vec<(usize, Entry<'t>)>) {
    let (mut nodes, mut boxes) = (Vec::new(), Vec::new());
    for (name, entry) in entries(entry, "[node.NAME]", problems) {
        let node = nodes::read(name, entry, problems);
        boxes.extend(
            node.as_ref().filter(|n| n.kind == NodeKind::Box).map(|_| (nodes.len(), entry)),
        );
        nodes.extend(node);
    }
    (nodes, boxes)
}

/// Says which boxes have not a LAN and a WAN.
fn sides(boxes: &[(usize, Entry<'_>)], links: &[Wire], problems: &mut Problems) {
    for (at, entry) in boxes {
        let ends = links.iter().flat_map(|link| [link.between.0, link.between.1]);
        let sides = ends.filter(|end| end == at).count();
        if sides != 2 {
            let what = format!("a box has two links, and this one {sides}");
            problems.error(entry.key, what, "the first is its LAN, the second its WAN");
        }
    }
}

/// What the table [scenario] says.
#[derive(Clone, Debug, Default)]
struct Times {
    about: String,
    run: Span,
    measure: Window,
    bin: Span,
    seeds: u32,
}

fn times(mut table: Table<'_>, problems: &mut Problems) -> Times {
    let about = table.take("about").and_then(|e| e.text("about", "a sentence", problems));
    let mut span = |name: &str, table: &mut Table<'_>| {
        table.take(name).and_then(|e| Some((e.read::<Span>(name, SPAN, problems)?, e.place)))
    };
    let run = span("run", &mut table);
    let (from, to) = (span("from", &mut table), span("to", &mut table));
    let bin = span("bin", &mut table).map_or(Span::from_secs(1), |(bin, _)| bin);
    let length = run.map_or(Span::from_secs(60), |(run, _)| run);
    let begin = from.map_or(Span::ZERO, |(from, _)| from);
    let end = to.map_or(length, |(to, _)| to);
    if begin >= end || end > length {
        let place = to.or(from).or(run).map_or(Position::default(), |(_, place)| place);
        let what = format!("what counts is from {begin} to {end} of a run of {length}");
        problems.error(place, what, "let \"from\" be before \"to\", and \"to\" within the run");
    }
    let seeds = table.take("seeds").and_then(|e| e.number("seeds", 1..=1_000, problems));
    table.finish(&SCENARIO, problems);
    let at = |span| Instant::ZERO + span;
    let seeds = u32::try_from(seeds.unwrap_or(5)).unwrap_or(5);
    let about = about.unwrap_or_default().to_owned();
    Times { about, run: length, measure: (at(begin), at(end)), bin, seeds }
}

/// The entries of a table of tables, by name.
fn entries<'t>(
    entry: Option<Entry<'t>>,
    what: &str,
    problems: &mut Problems,
) -> Vec<(&'t str, Entry<'t>)> {
    entry.and_then(|e| e.table(what, problems)).map_or_else(Vec::new, |t| t.all().collect())
}

/// A number, with or without a point; in quotes where a word is filled in.
pub(crate) fn figure(entry: Entry<'_>, name: &str, problems: &mut Problems) -> Option<f64> {
    let text = match entry.value {
        DeValue::Integer(number) => Some(number.as_str()),
        DeValue::Float(number) => Some(number.as_str()),
        DeValue::String(text) => Some(&**text),
        _ => None,
    };
    let figure = text.and_then(|t| t.replace('_', "").parse::<f64>().ok());
    let what = match figure {
        Some(number) if number.is_finite() => return figure,
        Some(endless) => format!("\"{name}\" cannot be {endless}"),
        None => format!("\"{name}\" is {}, not a number", entry.kind()),
    };
    problems.error(entry.place, what, "write a number as in 0.97");
    None
}

/// The place of a name among others; says so if there is none.
fn find<'n>(
    entry: Entry<'_>,
    word: &str,
    what: &str,
    names: impl Iterator<Item = &'n str> + Clone,
    problems: &mut Problems,
) -> Option<usize> {
    let text = entry.text(word, &format!("the name of a {what}"), problems)?;
    let at = names.clone().position(|name| name == text);
    if at.is_none() {
        let known: Vec<&str> = names.collect();
        let help = match known.len() {
            0 => format!("there is no {what}: add [{what}.NAME]"),
            1..=FEW => format!("there are {}", known.join(", ")),
            more => format!("there are {} and {} others", known[..FEW].join(", "), more - FEW),
        };
        problems.error(entry.place, format!("there is no {what} \"{text}\""), help);
    }
    at
}

impl Scenario {
    /// A case of the sweep; the first is this one.
    #[must_use]
    pub fn case(&self, number: usize) -> &Scenario {
        number.checked_sub(1).and_then(|at| self.more.get(at)).unwrap_or(self)
    }

    /// The link as this profile has it, both ways.
    #[must_use]
    pub fn link(&self, at: usize, profile: &Profile) -> (LinkSpec, LinkSpec) {
        let wire = &self.links[at];
        let change = profile.links.iter().find(|(link, _)| *link == at).map(|(_, words)| words);
        (wire.spec(true, change), wire.spec(false, change))
    }
}
