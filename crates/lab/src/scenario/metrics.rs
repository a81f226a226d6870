//! What is measured, and what is claimed of it.

use weir_policy::reader::{Entry, Table};
use weir_policy::{Place, Problems};
use weir_units::{Rate, Span};

use super::flows::Flow;
use super::links::Wire;
use super::profiles::{self, Profile};
use super::{figure, find};

/// A figure of each run.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its key in the results.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// What a metric is. Flows and links are named by their places.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Payload that arrived of all these flows together, in kbit/s.
    Goodput(Vec<usize>),
    /// The same at the IP layer, in Mbit/s.
    Rate(Vec<usize>),
    /// Goodput by a rate.
    Accuracy(Vec<usize>, Rate),
    /// Deviation by mean of the goodputs of each flow.
    Cov(Vec<usize>),
    /// Jain's index of the goodputs of each flow.
    Jain(Vec<usize>),
    /// Retransmitted packets by sent ones.
    Retransmission(Vec<usize>),
    /// Delay at this percentile (100: the longest; 0: the mean), in ms.
    Delay(Vec<usize>, u32),
    /// RFC 3550 jitter, the worst of the flows, in ms.
    Jitter(Vec<usize>),
    /// Packets that did not arrive, by those sent.
    Loss(Vec<usize>),
    /// Mean opinion score of G.729A calls with a play-out buffer of 60 ms; the worst.
    Mos(Vec<usize>),
    /// R of the same; the worst.
    RFactor(Vec<usize>),
    /// Least and most goodput of bins of a second, in Mbit/s at the IP layer.
    Extreme(Vec<usize>, Side),
    /// Deviation by mean of the bins of all these flows together.
    BinCov(Vec<usize>),
    /// Most bytes that waited before a link, from its first node to its second or back.
    QueueBytes(usize, Side),
    /// Mean wait before a link, beyond the frame's own time, in ms.
    QueueMs(usize, Side),
    /// Bytes that the path behind a link lost or dropped, by bytes sent over it.
    Dropped(usize, Side),
    /// The worst wait that the box itself added, in ms.
    BoxMs,
    /// Deviation by mean, over the runs, of another metric.
    Stability(usize),
    /// Deviation, over the runs, of another metric.
    Spread(usize),
    /// One metric by another.
    Ratio(usize, usize),
}

/// Which of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From the first to the second; the least.
    There,
    /// From the second to the first; the most.
    Back,
}

/// Something that should be so.
#[derive(Clone, Debug)]
pub struct Claim {
    /// A short name.
    pub id: String,
    /// In a sentence.
    pub text: String,
    /// What the paper has, in its words.
    pub paper: String,
    /// Of which metric.
    pub metric: usize,
    /// Of which profile.
    pub profile: usize,
    /// How it should be.
    pub bound: Bound,
    /// What it waits for, if it cannot be judged yet.
    pub pending: Option<String>,
}

/// How a metric should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// So far from this at most.
    Near(f64, f64),
    /// No more than in another profile, times this.
    AtMostOf(usize, f64),
    /// No less than in another profile, times this.
    AtLeastOf(usize, f64),
}

const KINDS: [(&str, &str); 21] = [
    ("goodput", "flows"),
    ("rate", "flows"),
    ("accuracy", "flows"),
    ("cov", "flows"),
    ("jain", "flows"),
    ("retransmission", "flows"),
    ("delay", "flows"),
    ("jitter", "flows"),
    ("loss", "flows"),
    ("mos", "flows"),
    ("r", "flows"),
    ("least", "flows"),
    ("most", "flows"),
    ("bin-cov", "flows"),
    ("queue-bytes", "link"),
    ("queue-ms", "link"),
    ("dropped", "link"),
    ("box-ms", ""),
    ("stability", "of"),
    ("spread", "of"),
    ("ratio", "of"),
];
const WORDS: [&str; 8] = ["kind", "flows", "rate", "percent", "link", "way", "of", "by"];
const WAYS: [(&str, Side); 2] = [("there", Side::There), ("back", Side::Back)];

pub(super) fn metric(
    name: &str,
    entry: Entry<'_>,
    flows: &[Flow],
    wires: &[Wire],
    before: &[Metric],
    problems: &mut Problems,
) -> Option<Metric> {
    let mut table = entry.table(&format!("metric \"{name}\""), problems)?;
    let Some(word) = table.take("kind") else {
        problems.error(entry.key, "the metric does not say its kind", "write kind = \"goodput\"");
        return None;
    };
    let names: Vec<(&'static str, &'static str)> =
        KINDS.iter().map(|(name, _)| (*name, *name)).collect();
    let kind = word.word("kind", &names, problems)?;
    let needs = KINDS.iter().find(|(name, _)| *name == kind).map_or("", |(_, needs)| needs);
    let of = |word: &str, table: &mut Table<'_>, problems: &mut Problems| {
        let entry = needed(word, table, entry, problems)?;
        find(entry, word, "metric", before.iter().map(|m| m.name.as_str()), problems)
    };
    let kind = match needs {
        "flows" => of_flows(kind, &mut table, entry, flows, problems)?,
        "link" => {
            let entry = needed("link", &mut table, entry, problems)?;
            let at = find(entry, "link", "link", wires.iter().map(|w| w.name.as_str()), problems)?;
            let way = table.take("way").and_then(|e| e.word("way", &WAYS, problems));
            let way = way.unwrap_or(Side::There);
            match kind {
                "queue-bytes" => Kind::QueueBytes(at, way),
                "queue-ms" => Kind::QueueMs(at, way),
                _ => Kind::Dropped(at, way),
            }
        }
        "of" => match kind {
            "stability" => Kind::Stability(of("of", &mut table, problems)?),
            "spread" => Kind::Spread(of("of", &mut table, problems)?),
            _ => Kind::Ratio(of("of", &mut table, problems)?, of("by", &mut table, problems)?),
        },
        _ => Kind::BoxMs,
    };
    table.finish(&WORDS, problems);
    Some(Metric { name: name.to_owned(), kind })
}

fn needed<'t>(
    word: &str,
    table: &mut Table<'t>,
    of: Entry<'_>,
    problems: &mut Problems,
) -> Option<Entry<'t>> {
    let entry = table.take(word);
    if entry.is_none() {
        problems.error(of.key, format!("the metric does not say \"{word}\""), "");
    }
    entry
}

fn of_flows(
    kind: &str,
    table: &mut Table<'_>,
    metric: Entry<'_>,
    flows: &[Flow],
    problems: &mut Problems,
) -> Option<Kind> {
    let entry = needed("flows", table, metric, problems)?;
    let names = flows.iter().map(|f| f.name.as_str());
    let found = entry.list().into_iter().map(|e| find(e, "flows", "flow", names.clone(), problems));
    let found: Option<Vec<usize>> = found.collect();
    let found = found?;
    Some(match kind {
        "goodput" => Kind::Goodput(found),
        "rate" => Kind::Rate(found),
        "accuracy" => {
            let entry = needed("rate", table, metric, problems)?;
            Kind::Accuracy(found, entry.read("rate", "a rate as in \"20kbit\"", problems)?)
        }
        "cov" => Kind::Cov(found),
        "jain" => Kind::Jain(found),
        "retransmission" => Kind::Retransmission(found),
        "delay" => {
            let percent = table.take("percent").map(|e| e.number("percent", 0..=100, problems));
            let percent = percent.map_or(Some(99), |read| read)?;
            Kind::Delay(found, u32::try_from(percent).unwrap_or(99))
        }
        "jitter" => Kind::Jitter(found),
        "loss" => Kind::Loss(found),
        "mos" => Kind::Mos(found),
        "r" => Kind::RFactor(found),
        "least" => Kind::Extreme(found, Side::There),
        "most" => Kind::Extreme(found, Side::Back),
        _ => Kind::BinCov(found),
    })
}

const CLAIM: [&str; 12] = [
    "id",
    "text",
    "paper",
    "metric",
    "profile",
    "at-most",
    "at-least",
    "near",
    "within",
    "at-most-of",
    "at-least-of",
    "pending",
];

pub(super) fn claim(
    entry: Entry<'_>,
    metrics: &[Metric],
    all: &[Profile],
    problems: &mut Problems,
) -> Option<Claim> {
    let mut table = entry.table("a claim", problems)?;
    let mut text = |word: &str, table: &mut Table<'_>| {
        table.take(word).and_then(|e| e.text(word, "a text", problems)).map(str::to_owned)
    };
    let id = text("id", &mut table);
    let (said, paper) = (text("text", &mut table), text("paper", &mut table));
    let pending = text("pending", &mut table);
    let names = metrics.iter().map(|m| m.name.as_str());
    let metric = match table.take("metric") {
        Some(entry) => find(entry, "metric", "metric", names, problems),
        None => {
            problems.error(entry.place, "the claim does not say of which metric it is", "");
            None
        }
    };
    let profile = match table.take("profile") {
        Some(entry) => profiles::named(entry, all, problems),
        None => Some(all.iter().position(|p| p.name == "weir").unwrap_or(0)),
    };
    let bound = bound(&mut table, entry.place, all, problems);
    table.finish(&CLAIM, problems);
    let (metric, bound) = (metric?, bound?);
    let text = said.unwrap_or_else(|| metrics[metric].name.clone());
    let id = id.unwrap_or_else(|| metrics[metric].name.clone());
    Some(Claim {
        id,
        text,
        paper: paper.unwrap_or_default(),
        metric,
        profile: profile?,
        bound,
        pending,
    })
}

fn bound(
    table: &mut Table<'_>,
    place: Place,
    all: &[Profile],
    problems: &mut Problems,
) -> Option<Bound> {
    let number = |word: &str, table: &mut Table<'_>, problems: &mut Problems| {
        table.take(word).and_then(|e| figure(e, word, problems))
    };
    let most = number("at-most", table, problems);
    let least = number("at-least", table, problems);
    let near = number("near", table, problems);
    let within = number("within", table, problems);
    let other = |word: &str, table: &mut Table<'_>, problems: &mut Problems| {
        let entry = table.take(word)?;
        profiles::named(entry, all, problems)
    };
    let most_of = other("at-most-of", table, problems);
    let least_of = other("at-least-of", table, problems);
    let found = [
        most.map(Bound::AtMost),
        least.map(Bound::AtLeast),
        near.map(|near| Bound::Near(near, within.unwrap_or(near.abs() * 0.01))),
        most_of.map(|at| Bound::AtMostOf(at, within.unwrap_or(1.0))),
        least_of.map(|at| Bound::AtLeastOf(at, within.unwrap_or(1.0))),
    ];
    let mut found = found.into_iter().flatten();
    let (first, second) = (found.next(), found.next());
    if first.is_none() || second.is_some() {
        let help = "write one of at-most, at-least, near (and within), at-most-of, at-least-of";
        problems.error(place, "a claim has one bound", help);
    }
    first
}

/// How long a call may be delayed by its play-out buffer.
pub const PLAY_OUT: Span = Span::from_ms(60);
