//! The experiments that the binary carries.

/// An experiment: its name, its group, and its scenario.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name, as the command knows it.
    pub name: &'static str,
    /// Which group runs it too.
    pub group: &'static str,
    /// The text of its scenario.
    pub scenario: &'static str,
}

macro_rules! experiment {
    ($group:literal, $name:literal) => {
        Experiment {
            name: $name,
            group: $group,
            scenario: include_str!(concat!("../../../experiments/", $name, "/scenario.toml")),
        }
    };
}

/// All of them: our own, then those of the papers in their order.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment!("demo", "home"),
    experiment!("survey", "survey-basic"),
    experiment!("survey", "survey-delays"),
    experiment!("survey", "survey-borrow-inter"),
    experiment!("survey", "survey-borrow-intra"),
    experiment!("edge", "edge-upstream"),
    experiment!("edge", "edge-classes"),
    experiment!("edge", "edge-downstream"),
    experiment!("edge", "edge-margin"),
    experiment!("hsdba", "hsdba-example"),
    experiment!("hsdba", "hsdba-single"),
    experiment!("hsdba", "hsdba-layers"),
    experiment!("hsdba", "hsdba-convergence"),
    experiment!("hsdba", "hsdba-limits"),
    experiment!("hsdba", "hsdba-latency"),
    experiment!("hsdba", "hsdba-scale"),
    experiment!("hsdba", "hsdba-churn"),
    experiment!("hsdba", "hsdba-join"),
];

/// The experiments of a name: one, or those of a group.
#[must_use]
pub fn named(name: &str) -> Vec<Experiment> {
    let found = EXPERIMENTS.iter().filter(|e| e.name == name || e.group == name);
    found.copied().collect()
}
