//! The metrics, one row each: its word in a scenario, what comes out, what that means, and the
//! function that computes it, whose type says which further words the metric takes. Scenarios are
//! read, figures computed and the table in docs/lab.md written by these rows alone.

use weir_sim::link::LinkCounts;
use weir_units::Rate;

use super::ran::{Flows, Part};
use super::{goodput, links, others, packets, rates};
use crate::run::{ClassSeen, Passed, Run};

/// A kind of metric.
pub(crate) struct Row {
    /// Its word.
    pub(crate) word: &'static str,
    /// Of what comes out.
    pub(crate) unit: &'static str,
    /// What it is, as docs/lab.md says it.
    pub(crate) about: &'static str,
    /// Of what it is computed, and how.
    pub(crate) of: Of,
}

/// What a metric is computed of, and the function that does it.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    /// Some flows during a part of the run.
    Part(fn(&Part<'_>) -> Option<f64>),
    /// The same beside a rate.
    PartByRate(fn(&Part<'_>, Rate) -> Option<f64>),
    /// The same beside a percentage of a rate; without one, of this.
    PartByPercent(u32, fn(&Part<'_>, Rate, u32) -> Option<f64>),
    /// Some flows during a part of the run; the same flows during an earlier one; others then.
    PartByEarlier(fn(&Part<'_>, &Part<'_>, &Part<'_>) -> Option<f64>),
    /// Some flows in the whole run.
    Flows(fn(&Flows<'_>) -> Option<f64>),
    /// The same at a percentile; without one, at this.
    Percentile(u32, fn(&Flows<'_>, u32) -> Option<f64>),
    /// One direction of a link.
    Link(fn(&LinkCounts) -> f64),
    /// A class of a box.
    Class(fn(&ClassSeen) -> f64),
    /// What allocators or histories have shown under a name.
    Shown(fn(&Run, &str) -> Option<f64>),
    /// What came to the boxes from one side.
    Boxes(fn(&Passed) -> f64),
    /// The run as a whole.
    Run(fn(&Run) -> f64),
    /// Another metric in all runs.
    OverRuns(fn(&[f64]) -> Option<f64>),
    /// One other metric and a second one.
    Two(fn(f64, f64) -> Option<f64>),
    /// Several other metrics, all of them.
    All(fn(&[f64]) -> Option<f64>),
    /// Several other metrics, less those of the cases that a profile of allocators leaves out.
    Known(fn(&[f64]) -> Option<f64>),
}

impl Of {
    /// The words that a metric takes beside its kind.
    pub(crate) const fn words(self) -> &'static [&'static str] {
        match self {
            Of::Part(_) => &["flows", "during"],
            Of::PartByRate(_) => &["flows", "rate", "during"],
            Of::PartByPercent(..) => &["flows", "rate", "percent", "during"],
            Of::PartByEarlier(_) => &["flows", "freed", "before", "during"],
            Of::Flows(_) => &["flows"],
            Of::Percentile(..) => &["flows", "percent"],
            Of::Link(_) => &["link", "way"],
            Of::Class(_) => &["class"],
            Of::Shown(_) => &["figure"],
            Of::Boxes(_) => &["way"],
            Of::Run(_) => &[],
            Of::OverRuns(_) | Of::All(_) | Of::Known(_) => &["of"],
            Of::Two(_) => &["of", "by"],
        }
    }
}

/// The metrics by what they look at.
const THEMES: [&[Row]; 5] =
    [&goodput::ROWS, &packets::ROWS, &rates::ROWS, &links::ROWS, &others::ROWS];

/// All metrics, in the order of docs/lab.md.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    THEMES.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_stands_for_two_metrics() {
        let words: Vec<&str> = rows().map(|row| row.word).collect();
        let twice = words.iter().enumerate().find(|(at, word)| words[..*at].contains(word));
        assert_eq!(twice, None);
    }
}
