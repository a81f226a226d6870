//! From runs to what is written, shown and judged: the figures of each profile, the claims beside
//! them, and a few series to look at.

use crate::figures::{bins, figures};
use crate::result::{Driver, Outcome, Series};
use crate::run::Run;
use crate::scenario::Scenario;
use crate::{Claim, Drawing, Expected, PlotKind};

/// What `runs` (by profile and seed) of the named profiles have shown, beside what is expected.
#[must_use]
pub fn outcome(
    (name, driver): (&str, Driver),
    (scenario, expected): (&Scenario, &Expected),
    profiles: &[usize],
    runs: &[Vec<Run>],
    seeds: u32,
) -> Outcome {
    // a run of one profile is about that one; a run of several is about ours
    let names: Vec<&str> = profiles.iter().map(|&p| scenario.profiles[p].name.as_str()).collect();
    let main = if names.len() == 1 || !names.contains(&"weir") { names[0] } else { "weir" };
    let mut outcome = Outcome::new(name, driver, seeds, main);
    for (profile, runs) in names.iter().zip(runs) {
        outcome.set(profile, figures(scenario, runs));
    }
    for (profile, runs) in names.iter().zip(runs) {
        let Some(first) = runs.first() else { continue };
        let cases = std::iter::once(scenario).chain(&scenario.more);
        for (run, case) in (0..).map(|number| first.case(number)).zip(cases) {
            for (name, series) in over(case, run) {
                let case = if case.case.is_empty() { "" } else { &format!(".{}", case.case) };
                outcome.series.set(format!("{profile}.{name}{case}"), series);
            }
        }
    }
    let claims = claims(scenario, expected, seeds);
    outcome.judge(&claims, None);
    outcome
}

/// What is claimed of a scenario; of what needs more seeds than these, that it waits for them.
#[must_use]
pub fn claims(scenario: &Scenario, expected: &Expected, seeds: u32) -> Vec<Claim> {
    let of_scenario = scenario.claims.iter().map(|said| {
        let profile = &scenario.profiles[said.profile].name;
        let printed = expected.printed(profile, &scenario.metrics[said.metric].name);
        let few = format!("{} seeds: one run says nothing", said.seeds);
        let claim = said.claim.clone();
        Claim {
            paper: claim.paper.or_else(|| printed.cloned()),
            pending: claim.pending.or_else(|| (seeds < said.seeds).then_some(few)),
            ..claim
        }
    });
    of_scenario.chain(expected.claims.iter().cloned()).collect()
}

/// What each flow or leaf had over time, by its name.
fn over(scenario: &Scenario, run: &Run) -> Vec<(String, Series)> {
    let flows = scenario.flows.iter().enumerate().filter(|_| !run.flows.is_empty());
    let of_flows = flows.map(|(at, flow)| {
        let points = bins(scenario, run, &[at]).into_iter().enumerate();
        let points = points.map(|(n, rate)| (time(scenario, n), rate)).collect();
        let (x, y) = ("time (s)".to_owned(), "rate (Mbit/s)".to_owned());
        (flow.name.clone(), Series { x, y, points })
    });
    of_flows.chain(run.series.iter().cloned()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a point of a plot")]
fn time(scenario: &Scenario, bin: usize) -> f64 {
    let from = scenario.measure.0.ns() as f64;
    (from + scenario.bin.ns() as f64 * (bin as f64 + 0.5)) / 1e9
}

/// What is drawn of an outcome where nobody says otherwise: bars for figures that there are several
/// cases of, and what each profile gave to whom over time.
#[must_use]
pub fn drawn(outcome: &Outcome, expected: &Expected) -> Expected {
    if !expected.plots.is_empty() {
        return expected.clone();
    }
    let mut families: Vec<&str> = Vec::new();
    let keys = outcome.each_profile().flat_map(|(_, figures)| figures.iter().map(|(key, _)| key));
    for family in keys.filter_map(|key| key.split_once('.').map(|(family, _)| family)) {
        if !families.contains(&family) {
            families.push(family);
        }
    }
    let drawing = |kind, title: String, of: String, y: &str| Drawing {
        kind,
        title,
        of,
        x: String::new(),
        y: y.to_owned(),
        log: None,
        profiles: Vec::new(),
    };
    let bars = families.iter().map(|family| {
        let title = format!("{}, by case and profile", family.replace('_', " "));
        drawing(PlotKind::Bars, title, format!("{family}.*"), family)
    });
    let lines = outcome.each_profile().map(|(profile, _)| {
        let title = format!("Who has how much over time: {profile}, the first seed");
        drawing(PlotKind::Lines, title, format!("{profile}.*"), "")
    });
    Expected { plots: bars.chain(lines).collect(), ..expected.clone() }
}
