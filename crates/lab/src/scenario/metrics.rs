//! What is measured: a figure of each run, in words. Which words there are and what is computed of
//! them, the table of metrics says; here they are read.

use std::fmt;
use std::sync::Arc;

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};
use weir_units::{Instant, Rate, Span};

use super::flows::Flow;
use super::links::Wire;
use super::{SPAN, Times, find};
use crate::figures::{Of, Part, Ran, Row, rows};

/// A figure of each run.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its key in the results.
    pub name: String,
    /// How it is computed.
    pub(crate) how: How,
    /// Of which case of a sweep; without one, the first.
    pub(crate) case: usize,
}

/// From when, and up to when.
pub type Window = (Instant, Instant);

/// How a metric is computed, with all that the scenario says of it. Other metrics are named by
/// their places.
#[derive(Clone)]
pub(crate) enum How {
    /// Of each run by itself.
    OfRun(Arc<dyn Fn(Ran<'_>) -> Option<f64> + Send + Sync>),
    /// Of another metric in all runs.
    OverRuns(usize, fn(&[f64]) -> Option<f64>),
    /// Of two others.
    Two(usize, usize, fn(f64, f64) -> Option<f64>),
    /// Of several others.
    All(Vec<usize>, fn(&[f64]) -> Option<f64>),
    /// Of those among several others that a profile runs.
    Known(Vec<usize>, fn(&[f64]) -> Option<f64>),
}

impl fmt::Debug for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::OfRun(_) => f.write_str("OfRun"),
            How::OverRuns(of, _) => write!(f, "OverRuns({of})"),
            How::Two(of, by, _) => write!(f, "Two({of}, {by})"),
            How::All(of, _) => write!(f, "All({of:?})"),
            How::Known(of, _) => write!(f, "Known({of:?})"),
        }
    }
}

/// The directions of a link: from its first node to its second, and back.
const WAYS: [(&str, usize); 2] = [("there", 0), ("back", 1)];

/// What a metric may speak of.
pub(super) struct About<'a> {
    pub(super) flows: &'a [Flow],
    pub(super) wires: &'a [Wire],
    pub(super) times: &'a Times,
    pub(super) case: usize,
}

/// Metrics are read in rounds: those of what runs have shown, those of one or two of these, and
/// those of several, which may be any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Plain,
    OfOthers,
    OfSeveral,
}

pub(super) const ROUNDS: [Round; 3] = [Round::Plain, Round::OfOthers, Round::OfSeveral];

impl Round {
    fn of(row: &Row) -> Round {
        match row.of {
            Of::Part(_)
            | Of::PartByRate(_)
            | Of::PartByPercent(..)
            | Of::PartByEarlier(_)
            | Of::Flows(_)
            | Of::Percentile(..)
            | Of::Link(_)
            | Of::Class(_)
            | Of::Shown(_)
            | Of::Boxes(_)
            | Of::Run(_) => Round::Plain,
            Of::OverRuns(_) | Of::Two(_) => Round::OfOthers,
            Of::All(_) | Of::Known(_) => Round::OfSeveral,
        }
    }
}

/// A metric, if this is its round; what is wrong with its kind is said in the first.
pub(super) fn read(
    name: &str,
    entry: Entry<'_>,
    about: &About<'_>,
    (round, before): (Round, &[Metric]),
    problems: &mut Problems,
) -> Option<Metric> {
    let mut quiet = Problems::default();
    let said = if round == Round::Plain { &mut *problems } else { &mut quiet };
    let mut table = entry.table(&format!("metric \"{name}\""), said)?;
    let Some(word) = table.take("kind") else {
        said.error(entry.key, "the metric does not say its kind", "write kind = \"goodput\"");
        return None;
    };
    let kinds: Vec<(&'static str, &'static Row)> = rows().map(|row| (row.word, row)).collect();
    let row = word.word("kind", &kinds, said)?;
    if Round::of(row) != round {
        return None;
    }
    let mut read = Reader { table, metric: entry, about, before, problems };
    let how = read.how(row.of);
    let words: Vec<&str> = ["kind"].into_iter().chain(row.of.words().iter().copied()).collect();
    read.table.finish(&words, problems);
    Some(Metric { name: name.to_owned(), how: how?, case: about.case })
}

struct Reader<'r, 't> {
    table: Table<'t>,
    metric: Entry<'t>,
    about: &'r About<'r>,
    before: &'r [Metric],
    problems: &'r mut Problems,
}

impl<'t> Reader<'_, 't> {
    /// Reads what the metric is of, all of it before it gives up: so all that is wrong is said.
    fn how(&mut self, of: Of) -> Option<How> {
        Some(match of {
            Of::Part(f) => {
                let part = self.part()?;
                one(move |ran| f(&part.of(ran)))
            }
            Of::PartByRate(f) => {
                let (part, rate) = self.part().zip(self.rate())?;
                one(move |ran| f(&part.of(ran), rate))
            }
            Of::PartByPercent(usual, f) => {
                let (part, rate) = (self.part(), self.rate());
                let (part, (rate, percent)) = part.zip(rate.zip(self.percent(usual)))?;
                one(move |ran| f(&part.of(ran), rate, percent))
            }
            Of::PartByEarlier(f) => {
                let (part, freed) = (self.part(), self.flows("freed"));
                let (part, (flows, before)) = part.zip(freed.zip(self.earlier()))?;
                let then = PartSaid { flows: part.flows.clone(), during: Some(before) };
                let freed = PartSaid { flows, during: Some(before) };
                one(move |ran| f(&part.of(ran), &then.of(ran), &freed.of(ran)))
            }
            Of::Flows(f) => {
                let flows = self.flows("flows")?;
                one(move |ran| f(&ran.flows(&flows)))
            }
            Of::Percentile(usual, f) => {
                let (flows, percent) = self.flows("flows").zip(self.percent(usual))?;
                one(move |ran| f(&ran.flows(&flows), percent))
            }
            Of::Link(f) => {
                let (link, way) = (self.link(), self.way());
                let link = link?;
                one(move |ran| Some(f(&ran.run.links[link][way])))
            }
            Of::Class(f) => {
                let path = self.text("class", "/office", "the path of a class")?;
                one(move |ran| ran.run.classes.iter().find(|seen| seen.path == path).map(f))
            }
            Of::Shown(f) => {
                let name = self.text("figure", "dev_mean", "the name of a figure")?;
                one(move |ran| f(ran.run, &name))
            }
            Of::Boxes(f) => {
                let way = self.way();
                one(move |ran| Some(f(&ran.run.boxes[way])))
            }
            Of::Run(f) => one(move |ran| Some(f(ran.run))),
            Of::OverRuns(f) => How::OverRuns(self.other("of")?, f),
            Of::Two(f) => {
                let (of, by) = self.other("of").zip(self.other("by"))?;
                How::Two(of, by, f)
            }
            Of::All(f) => How::All(self.others()?, f),
            Of::Known(f) => How::Known(self.others()?, f),
        })
    }

    fn needed(&mut self, word: &str, help: &str) -> Option<Entry<'t>> {
        let entry = self.table.take(word);
        if entry.is_none() {
            let what = format!("the metric does not say \"{word}\"");
            self.problems.error(self.metric.key, what, help);
        }
        entry
    }

    fn part(&mut self) -> Option<PartSaid> {
        let during = self.window("during");
        Some(PartSaid { flows: self.flows("flows")?, during })
    }

    fn flows(&mut self, word: &str) -> Option<Vec<usize>> {
        let entry = self.needed(word, &format!("write {word} = [\"NAME\"]"))?;
        let names = self.about.flows.iter().map(|f| f.name.as_str());
        let each = entry.list().into_iter();
        let found: Vec<Option<usize>> =
            each.map(|e| find(e, word, "flow", names.clone(), self.problems)).collect();
        found.into_iter().collect()
    }

    fn rate(&mut self) -> Option<Rate> {
        let entry = self.needed("rate", "write rate = \"20kbit\"")?;
        entry.read::<Rate>("rate", "a rate as in \"20kbit\"", self.problems)
    }

    fn percent(&mut self, usual: u32) -> Option<u32> {
        let Some(entry) = self.table.take("percent") else { return Some(usual) };
        let percent = entry.number("percent", 0..=100, self.problems)?;
        u32::try_from(percent).ok()
    }

    fn link(&mut self) -> Option<usize> {
        let entry = self.needed("link", "write link = \"wan\"")?;
        let names = self.about.wires.iter().map(|w| w.name.as_str());
        find(entry, "link", "link", names, self.problems)
    }

    fn way(&mut self) -> usize {
        let way = self.table.take("way").and_then(|e| e.word("way", &WAYS, self.problems));
        way.unwrap_or(WAYS[0].1)
    }

    fn text(&mut self, word: &str, such_as: &str, expected: &str) -> Option<String> {
        let entry = self.needed(word, &format!("write {word} = \"{such_as}\""))?;
        entry.text(word, expected, self.problems).map(str::to_owned)
    }

    fn other(&mut self, word: &str) -> Option<usize> {
        let entry = self.needed(word, "write the name of a metric")?;
        self.metric(entry, word)
    }

    fn others(&mut self) -> Option<Vec<usize>> {
        let entry = self.needed("of", "write the name of a metric")?;
        let found: Vec<Option<usize>> =
            entry.list().into_iter().map(|e| self.metric(e, "of")).collect();
        found.into_iter().collect()
    }

    fn metric(&mut self, entry: Entry<'_>, word: &str) -> Option<usize> {
        let names = self.before.iter().map(|m| m.name.as_str());
        find(entry, word, "metric", names, self.problems)
    }

    fn earlier(&mut self) -> Option<Window> {
        let before = self.window("before");
        if before.is_none() {
            self.needed("before", "write before = [\"10s\", \"15s\"]");
        }
        before
    }

    /// A part of the run, in whole bins.
    fn window(&mut self, word: &str) -> Option<Window> {
        let entry = self.table.take(word)?;
        let help = format!("write {word} = [\"10s\", \"15s\"]");
        let ends = entry.list();
        let [from, to] = ends[..] else {
            let what = format!("\"{word}\" has {} ends", ends.len());
            self.problems.error(entry.place, what, help);
            return None;
        };
        let mut read = |e: Entry<'_>| e.read::<Span>(word, SPAN, self.problems);
        let (from, to) = (read(from), read(to));
        let (from, to) = (from?, to?);
        let Times { run, bin, .. } = *self.about.times;
        if from >= to || to > run {
            let what = format!("\"{word}\" is from {from} to {to} of a run of {run}");
            self.problems.error(entry.place, what, help);
            return None;
        }
        if [from, to].iter().any(|at| at.ns() % bin.ns().max(1) != 0) {
            let what = format!("\"{word}\" does not begin and end with a bin of {bin}");
            self.problems.error(entry.place, what, "bins begin with the run, one after the other");
            return None;
        }
        Some((Instant::ZERO + from, Instant::ZERO + to))
    }
}

/// Some flows, and a part of the run.
struct PartSaid {
    flows: Vec<usize>,
    during: Option<Window>,
}

impl PartSaid {
    fn of<'r>(&'r self, ran: Ran<'r>) -> Part<'r> {
        ran.flows(&self.flows).during(self.during)
    }
}

fn one(of: impl Fn(Ran<'_>) -> Option<f64> + Send + Sync + 'static) -> How {
    How::OfRun(Arc::new(of))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_policy::Source;

    use super::*;

    /// What docs/lab.md says of a metric and what a scenario may say of it cannot differ.
    #[test]
    fn a_metric_takes_the_words_of_its_row_and_no_others() {
        let all: BTreeSet<&str> = rows().flat_map(|row| row.of.words()).copied().collect();
        let said: String = all.iter().map(|word| format!("{word} = true\n")).collect();
        for row in rows() {
            let text = format!("[metric.m]\nkind = \"{}\"\n{said}", row.word);
            let source = Source::new("scenario.toml", text);
            let reading = super::super::read(source, &mut |_| Err(String::new())).expect("text");
            let refused = reading
                .problems
                .iter()
                .filter_map(|problem| problem.what.strip_prefix("metric \"m\" has no word "));
            let refused: BTreeSet<&str> = refused.map(|word| word.trim_matches('"')).collect();
            let taken: BTreeSet<&str> = all.difference(&refused).copied().collect();
            assert_eq!(taken, row.of.words().iter().copied().collect(), "{}", row.word);
        }
    }
}
