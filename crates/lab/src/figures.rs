//! From what runs have shown to the figures that a scenario asks for: each per run, then its mean
//! and deviation over the runs. What a metric is, its row in the table says.
#![deny(dead_code, reason = "rows that are in no table are forgotten metrics")]

mod goodput;
mod links;
mod others;
mod packets;
mod ran;
mod rates;
mod table;

pub(crate) use ran::{Part, Ran};
pub(crate) use table::{Of, Row, rows};

use crate::metrics::{deviation, mean};
use crate::result::{Figure, Figures};
use crate::run::Run;
use crate::scenario::{How, Metric, Scenario};

/// What a metric gave in each run; none where nothing can be said.
type ByRun = Vec<Option<f64>>;

/// The figures of one profile in the order of the metrics; those that nothing can be said about
/// are left out.
#[must_use]
pub fn figures(scenario: &Scenario, runs: &[Run]) -> Figures {
    let mut before: Vec<ByRun> = Vec::new();
    let mut figures = Figures::default();
    for metric in &scenario.metrics {
        let values = values(scenario, runs, metric, &before);
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        if let Some(mean) = mean(&known) {
            figures.set(&metric.name, Figure { mean, sd: deviation(&known) });
        }
        before.push(values);
    }
    figures
}

/// Goodput at the IP layer in each bin of the time that counts, in Mbit/s, of all flows together.
#[must_use]
pub fn bins(scenario: &Scenario, run: &Run, flows: &[usize]) -> Vec<f64> {
    Ran { scenario, run }.flows(flows).during(None).bins()
}

/// What a metric gives in each run; those over all runs give one value.
fn values(scenario: &Scenario, runs: &[Run], metric: &Metric, before: &[ByRun]) -> ByRun {
    match &metric.how {
        How::OfRun(one) => {
            let scenario = scenario.case(metric.case);
            runs.iter().map(|run| one(Ran { scenario, run: run.case(metric.case) })).collect()
        }
        How::OverRuns(of, all) => {
            let known: Vec<f64> = before[*of].iter().copied().flatten().collect();
            vec![all(&known)]
        }
        How::Two(of, by, one) => {
            let pairs = before[*of].iter().zip(&before[*by]);
            pairs.map(|(of, by)| one((*of)?, (*by)?)).collect()
        }
        How::All(of, one) => in_each(before, of, *one),
        How::Known(of, one) => {
            // what a profile of allocators does not run is missing from all of its runs
            let is_run = |of: &usize| before[*of].iter().any(Option::is_some);
            let counts = |of: &usize| scenario.sharing.is_none() || is_run(of);
            let known: Vec<usize> = of.iter().copied().filter(counts).collect();
            in_each(before, &known, *one)
        }
    }
}

/// Of each run, something of the values of several metrics; none if one of them has none.
fn in_each(before: &[ByRun], of: &[usize], one: fn(&[f64]) -> Option<f64>) -> ByRun {
    let runs = of.iter().map(|&of| before[of].len()).min().unwrap_or(0);
    let each = |run: usize| of.iter().map(|&of| before[of][run]).collect::<Option<Vec<f64>>>();
    (0..runs).map(|run| one(&each(run)?)).collect()
}
