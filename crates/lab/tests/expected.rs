//! What is expected of the experiments that the binary carries speaks of what is there.

use weir_lab::scenario::{self, Scenario};
use weir_lab::{Expected, library};
use weir_policy::Source;

fn read(experiment: &library::Experiment) -> (Scenario, Expected) {
    let source = Source::new(experiment.name, experiment.scenario.to_owned());
    let reading = scenario::read(source, &mut |_| Err(String::new())).expect("is text");
    let scenario = reading.scenario.expect("is right");
    (scenario, Expected::read(experiment.expected).expect("is right"))
}

#[test]
fn what_the_paper_printed_stands_beside_a_figure_of_ours() {
    for experiment in library::EXPERIMENTS {
        let (scenario, expected) = read(experiment);
        for key in expected.paper.keys() {
            let (profile, metric) = key.split_once(':').unwrap_or(("weir", key));
            let known = scenario.profiles.iter().any(|p| p.name == profile)
                && scenario.metrics.iter().any(|m| m.name == metric);
            assert!(known, "{}: there is no {key}", experiment.name);
        }
    }
}

#[test]
fn every_plot_has_something_to_show() {
    for experiment in library::EXPERIMENTS {
        let (scenario, expected) = read(experiment);
        let mut names: Vec<String> = scenario.metrics.iter().map(|m| m.name.clone()).collect();
        for case in std::iter::once(&scenario).chain(&scenario.more) {
            let leaves = case.sharing.is_some().then_some(["share.1", "shares"]);
            let flows = case.flows.iter().map(|flow| flow.name.as_str());
            let behind = if case.case.is_empty() { "" } else { &format!(".{}", case.case) };
            for name in flows.chain(leaves.into_iter().flatten()) {
                let of = |p: &scenario::Profile| format!("{}.{name}{behind}", p.name);
                names.extend(scenario.profiles.iter().map(of));
            }
        }
        for plot in &expected.plots {
            let (head, tail) = plot.of.split_once('*').unwrap_or((&plot.of, ""));
            let shown = |name: &&String| name.starts_with(head) && name.ends_with(tail);
            assert!(names.iter().any(|n| shown(&n)), "{}: no {}", experiment.name, plot.of);
            let known = |name: &String| scenario.profiles.iter().any(|p| p.name == *name);
            assert!(plot.profiles.iter().all(known), "{}: {:?}", experiment.name, plot.profiles);
        }
    }
}
