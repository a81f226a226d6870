//! What is claimed of what is measured: read into the form in which it is judged.

use weir_policy::reader::{Entry, Table};
use weir_policy::{Position, Problems};

use super::metrics::Metric;
use super::profiles::{self, Profile};
use super::{figure, find};
use crate::claim::{Key, Limit, OURS};
use crate::{Bound, Printed};

/// A claim about one metric of one profile.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What is judged. What the paper has may be missing here: a key of `expected.toml` says it.
    pub claim: crate::Claim,
    /// Of which metric.
    pub metric: usize,
    /// Of which profile.
    pub profile: usize,
    /// With fewer seeds than these it is not judged: one run of something chaotic says nothing.
    pub seeds: u32,
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
        table.take(word).and_then(|e| e.text(word, "a string", problems)).map(str::to_owned)
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
        None => Some(all.iter().position(|p| p.name == OURS).unwrap_or(0)),
    };
    let ours = profile.and_then(|at: usize| all.get(at)).is_none_or(|p| p.name == OURS);
    if differs.is_some() && ours {
        let help = "\"differs\" is for models of other systems: say which in \"profile\"";
        problems.error(entry.place, "a claim about weir cannot be excused", help);
    }
    let order = order(&mut table, entry.place, all, problems);
    table.finish(&CLAIM, problems);
    let (metric, profile, order) = (metric?, profile?, order?);
    let name = &metrics[metric].name;
    let key = |profile: usize| Key::new(&all[profile].name, name);
    let claim = crate::Claim {
        id: id.unwrap_or_else(|| name.clone()),
        text: said.unwrap_or_else(|| name.clone()),
        paper: paper.filter(|paper| !paper.is_empty()).map(Printed::Words),
        bound: order.bound(key(profile), key),
        live: None,
        pending,
        differs,
    };
    Some(Claim { claim, metric, profile, seeds })
}

/// How the metric should be; other profiles are named by their places.
enum Order {
    AtMost(f64),
    AtLeast(f64),
    /// So far from this at most.
    Near(f64, f64),
    /// As another profile has it, times this.
    AtMostOf(usize, f64),
    AtLeastOf(usize, f64),
}

impl Order {
    fn bound(self, figure: Key, of: impl Fn(usize) -> Key) -> Bound {
        match self {
            Order::AtMost(most) => Bound::at_most(figure, Limit::of_number(most)),
            Order::AtLeast(least) => Bound::at_least(figure, Limit::of_number(least)),
            Order::Near(near, within) => Bound::near(figure, within, Limit::of_number(near)),
            Order::AtMostOf(other, part) => Bound::at_most(figure, Limit::part_of(part, of(other))),
            Order::AtLeastOf(other, part) => {
                Bound::at_least(figure, Limit::part_of(part, of(other)))
            }
        }
    }
}

fn order(
    table: &mut Table<'_>,
    place: Position,
    all: &[Profile],
    problems: &mut Problems,
) -> Option<Order> {
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
        most.map(Order::AtMost),
        least.map(Order::AtLeast),
        near.map(|near| Order::Near(near, within.unwrap_or(near.abs() * 0.01))),
        most_of.map(|at| Order::AtMostOf(at, within.unwrap_or(1.0))),
        least_of.map(|at| Order::AtLeastOf(at, within.unwrap_or(1.0))),
    ];
    let mut found = found.into_iter().flatten();
    let (first, second) = (found.next(), found.next());
    if first.is_none() || second.is_some() {
        let help = "write one of at-most, at-least, near (and within), at-most-of, at-least-of";
        problems.error(place, "a claim has one bound", help);
    }
    first
}
