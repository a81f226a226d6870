//! A scenario: who is there, how they are connected, who says what to whom, what the box between
//! does (one profile each), what is measured and what is claimed. Read from a TOML file; everything
//! that is wrong with it is said at once, at its place.

mod flows;
mod links;
mod metrics;
mod nodes;
mod profiles;

use toml::de::{DeTable, DeValue};
use weir_policy::reader::{Entry, Table};
use weir_policy::{Place, Problem, Problems, Source};
use weir_sim::LinkSpec;
use weir_units::{Instant, Span};

pub use flows::Flow;
pub use links::{Wire, Words};
pub use metrics::{Bound, Claim, Kind, Metric, PLAY_OUT, Side};
pub use nodes::{Node, NodeKind};
pub use profiles::Profile;

/// Everything that a run needs.
#[derive(Debug)]
pub struct Scenario {
    /// What it asks, in a sentence.
    pub about: String,
    /// How long a run takes, in virtual time.
    pub run: Span,
    /// From when and up to when what arrives counts.
    pub measure: (Instant, Instant),
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
    /// What is measured.
    pub metrics: Vec<Metric>,
    /// What is claimed.
    pub claims: Vec<Claim>,
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

const TOP: [&str; 8] =
    ["scenario", "node", "link", "flow", "profile", "metric", "claim", "measure"];
const SCENARIO: [&str; 6] = ["about", "run", "from", "to", "bin", "seeds"];
const SPAN: &str = "a time as in \"20ms\" or \"60s\"";

/// Brings a file that a scenario names: the policy of a profile.
pub type Load<'l> = dyn FnMut(&str) -> Result<String, String> + 'l;

/// Reads a scenario.
///
/// # Errors
/// The file is not text; the offset of the first byte that is not.
pub fn read(source: Source, load: &mut Load<'_>) -> Result<Reading, usize> {
    let mut problems = Problems::default();
    let scenario = {
        let text = source.text()?;
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in errors.iter().take(1) {
            let place = Place::of(&error.span().unwrap_or(0..0));
            problems.error(place, format!("this is not TOML: {}", error.message()), "");
        }
        words(document.get_ref(), text, load, &mut problems)
    };
    let has_errors = problems.has_errors();
    let problems = problems.into_list();
    Ok(Reading { scenario: scenario.filter(|_| !has_errors), problems, source })
}

fn words(
    document: &DeTable<'_>,
    text: &str,
    load: &mut Load<'_>,
    problems: &mut Problems,
) -> Option<Scenario> {
    let mut top = Table::new("the scenario", document, text);
    let head = top.take("scenario");
    if head.is_none() {
        let help = "begin with [scenario] and about = \"...\", run = \"60s\"";
        problems.error(Place::default(), "the table [scenario] is missing", help);
    }
    let head = head.and_then(|e| e.table("[scenario]", problems));
    let (about, run, measure, bin, seeds) = head.map(|t| times(t, problems)).unwrap_or_default();
    let nodes = named(top.take("node"), "[node.NAME]", problems, nodes::read);
    let mut wires = Vec::new();
    for (name, entry) in entries(top.take("link"), "[link.NAME]", problems) {
        wires.extend(links::read(name, entry, &nodes, problems));
    }
    let mut said = Vec::new();
    for (name, entry) in entries(top.take("flow"), "[flow.NAME]", problems) {
        said.extend(flows::read(name, entry, &nodes, problems));
    }
    let mut all = Vec::new();
    for (name, entry) in entries(top.take("profile"), "[profile.NAME]", problems) {
        all.extend(profiles::read(name, entry, &wires, load, problems));
    }
    let mut measured: Vec<Metric> = Vec::new();
    for (name, entry) in entries(top.take("metric"), "[metric.NAME]", problems) {
        let metric = metrics::metric(name, entry, &said, &wires, &measured, problems);
        measured.extend(metric);
    }
    let mut claims = Vec::new();
    if let Some(list) = top.take("claim") {
        for entry in list.list() {
            claims.extend(metrics::claim(entry, &measured, &all, problems));
        }
    }
    top.finish(&TOP, problems);
    let here = Place::default();
    if all.is_empty() {
        let help = "add [profile.none] (the box is a wire) or [profile.weir] with its policy";
        problems.error(here, "the scenario has no profile", help);
    }
    for (what, is_empty) in [("node", nodes.is_empty()), ("flow", said.is_empty())] {
        if is_empty {
            problems.error(
                here,
                format!("the scenario has no {what}"),
                format!("add [{what}.NAME]"),
            );
        }
    }
    Some(Scenario {
        about,
        run,
        measure,
        bin,
        seeds,
        nodes,
        links: wires,
        flows: said,
        profiles: all,
        metrics: measured,
        claims,
    })
}

type Times = (String, Span, (Instant, Instant), Span, u32);

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
        let place = to.or(from).or(run).map_or(Place::default(), |(_, place)| place);
        let what = format!("what counts is from {begin} to {end} of a run of {length}");
        problems.error(place, what, "let \"from\" be before \"to\", and \"to\" within the run");
    }
    let seeds = table.take("seeds").and_then(|e| e.number("seeds", 1..=1_000, problems));
    table.finish(&SCENARIO, problems);
    let at = |span| Instant::ZERO + span;
    let seeds = u32::try_from(seeds.unwrap_or(5)).unwrap_or(5);
    (about.unwrap_or_default().to_owned(), length, (at(begin), at(end)), bin, seeds)
}

/// The entries of a table of tables, by name.
fn entries<'t>(
    entry: Option<Entry<'t>>,
    what: &str,
    problems: &mut Problems,
) -> Vec<(&'t str, Entry<'t>)> {
    entry.and_then(|e| e.table(what, problems)).map_or_else(Vec::new, |t| t.all().collect())
}

fn named<T>(
    entry: Option<Entry<'_>>,
    what: &str,
    problems: &mut Problems,
    read: impl Fn(&str, Entry<'_>, &mut Problems) -> Option<T>,
) -> Vec<T> {
    let entries = entries(entry, what, problems);
    entries.into_iter().filter_map(|(name, entry)| read(name, entry, problems)).collect()
}

/// A number, with or without a point.
fn figure(entry: Entry<'_>, name: &str, problems: &mut Problems) -> Option<f64> {
    let text = match entry.value {
        DeValue::Integer(number) => Some(number.as_str()),
        DeValue::Float(number) => Some(number.as_str()),
        _ => None,
    };
    let figure = text.and_then(|t| t.replace('_', "").parse::<f64>().ok());
    if figure.is_none() {
        let what = format!("\"{name}\" is {}, not a number", entry.kind());
        problems.error(entry.place, what, "write a number as in 0.97");
    }
    figure
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
            0 => format!("there is no {what} yet: add [{what}.NAME] before it"),
            _ => format!("there are {}", known.join(", ")),
        };
        problems.error(entry.place, format!("there is no {what} \"{text}\""), help);
    }
    at
}

impl Scenario {
    /// The link as this profile has it, both ways.
    #[must_use]
    pub fn link(&self, at: usize, profile: &Profile) -> (LinkSpec, LinkSpec) {
        let wire = &self.links[at];
        let change = profile.links.iter().find(|(link, _)| *link == at).map(|(_, words)| words);
        (wire.spec(true, change), wire.spec(false, change))
    }
}
