//! From runs to what is written, shown and judged: the figures of each profile, the claims beside
//! them, and a few series to look at.

use crate::figures::{bins, figures};
use crate::result::{Driver, Figure, Outcome, Series};
use crate::run::Run;
use crate::scenario::{self, Scenario};
use crate::{Bound, Claim, Drawing, Expected, Figures, Kind, Printed};

/// What `runs` (by profile and seed) of the named profiles have shown, beside what is expected.
///
/// # Errors
/// A claim's bound cannot be read; in words.
pub fn outcome(
    (name, driver): (&str, Driver),
    (scenario, expected): (&Scenario, &Expected),
    profiles: &[usize],
    runs: &[Vec<Run>],
    seeds: u32,
) -> Result<Outcome, String> {
    // a run of one profile is about that one; a run of several is about ours
    let names: Vec<&str> = profiles.iter().map(|&p| scenario.profiles[p].name.as_str()).collect();
    let main = if names.len() == 1 || !names.contains(&"weir") { names[0] } else { "weir" };
    let mut outcome = Outcome::new(name, driver, seeds, main);
    for (profile, runs) in names.iter().zip(runs) {
        let mut all = Figures::default();
        for (key, figure) in figures(scenario, runs) {
            all.set(&key, Figure { mean: figure.mean, sd: Some(figure.sd) });
        }
        outcome.set(profile, all);
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
    let claims: Result<Vec<Claim>, String> =
        scenario.claims.iter().map(|claim| judgeable(scenario, claim, seeds)).collect();
    let mut claims = claims?;
    for (claim, said) in claims.iter_mut().zip(&scenario.claims) {
        let profile = &scenario.profiles[said.profile].name;
        let printed = || expected.printed(profile, &scenario.metrics[said.metric].name).cloned();
        claim.paper = claim.paper.take().or_else(printed);
    }
    claims.extend(expected.claims.iter().cloned());
    outcome.judge(&claims, None);
    Ok(outcome)
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

/// A claim of the scenario in the words of claims.
fn judgeable(scenario: &Scenario, claim: &scenario::Claim, seeds: u32) -> Result<Claim, String> {
    use crate::scenario::Bound as B;
    let key = |profile: usize| {
        let profile = &scenario.profiles[profile].name;
        let metric = &scenario.metrics[claim.metric].name;
        if profile == "weir" { metric.clone() } else { format!("{profile}:{metric}") }
    };
    let ours = key(claim.profile);
    let text = match &claim.bound {
        B::AtMost(most) => format!("{ours} <= {most}"),
        B::AtLeast(least) => format!("{ours} >= {least}"),
        B::Near(near, within) => format!("{ours} within {within} of {near}"),
        B::AtMostOf(other, part) => format!("{ours} <= {part} * {}", key(*other)),
        B::AtLeastOf(other, part) => format!("{ours} >= {part} * {}", key(*other)),
    };
    let bound: Bound = text.parse()?;
    let few = (seeds < claim.seeds).then(|| format!("{} seeds: one run says nothing", claim.seeds));
    let paper = (!claim.paper.is_empty()).then(|| Printed::Words(claim.paper.clone()));
    Ok(Claim {
        id: claim.id.clone(),
        text: claim.text.clone(),
        paper,
        bound,
        live: None,
        pending: claim.pending.clone().or(few),
        differs: claim.differs.clone(),
    })
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
        drawing(Kind::Bars, title, format!("{family}.*"), family)
    });
    let lines = outcome.each_profile().map(|(profile, _)| {
        let title = format!("Who has how much over time: {profile}, the first seed");
        drawing(Kind::Lines, title, format!("{profile}.*"), "")
    });
    Expected { plots: bars.chain(lines).collect(), ..expected.clone() }
}
