//! What is claimed of what is measured.

use weir_policy::reader::{Entry, Table};
use weir_policy::{Position, Problems};

use super::metrics::Metric;
use super::profiles::{self, Profile};
use super::{figure, find};

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
    /// Why a model of another system is known not to be as the paper has that system.
    pub differs: Option<String>,
    /// With fewer seeds than these it is not judged: one run of something chaotic says nothing.
    pub seeds: u32,
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

const CLAIM: [&str; 14] = [
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
    "differs",
    "seeds",
];

pub(super) fn read(
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
    let differs = text("differs", &mut table);
    let seeds = table.take("seeds").and_then(|e| e.number("seeds", 1..=1_000, problems));
    let seeds = seeds.and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
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
    let ours = profile.and_then(|at: usize| all.get(at)).is_none_or(|p| p.name == "weir");
    if differs.is_some() && ours {
        let help = "\"differs\" is for models of other systems: say which in \"profile\"";
        problems.error(entry.place, "a claim about weir cannot be excused", help);
    }
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
        differs,
        seeds,
    })
}

fn bound(
    table: &mut Table<'_>,
    place: Position,
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
