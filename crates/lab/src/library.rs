//! The experiments that the binary carries.

/// An experiment: its name, its group, its scenario, and what is expected of it.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name, as the command knows it.
    pub name: &'static str,
    /// Which group runs it too.
    pub group: &'static str,
    /// The text of its scenario.
    pub scenario: &'static str,
    /// The text of what is expected of it.
    pub expected: &'static str,
}

macro_rules! experiment {
    ($group:literal, $name:literal) => {
        Experiment {
            name: $name,
            group: $group,
            scenario: include_str!(concat!("../../../experiments/", $name, "/scenario.toml")),
            expected: include_str!(concat!("../../../experiments/", $name, "/expected.toml")),
        }
    };
}

/// All of them: our own, then those of the papers in their order.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment!("demo", "home"),
    experiment!("attacks", "attacks"),
    experiment!("survey", "survey-basic"),
    experiment!("survey", "survey-delays"),
    experiment!("survey", "survey-loss"),
    experiment!("survey", "survey-os"),
    experiment!("survey", "survey-borrow-inter"),
    experiment!("survey", "survey-borrow-intra"),
    experiment!("survey", "survey-sessions"),
    experiment!("survey", "survey-voip"),
    experiment!("survey", "survey-call"),
    experiment!("survey", "survey-response"),
    experiment!("survey", "survey-tcr-today"),
    experiment!("edge", "edge-upstream"),
    experiment!("edge", "edge-classes"),
    experiment!("edge", "edge-downstream"),
    experiment!("edge", "edge-margin"),
    experiment!("edge", "edge-auto"),
    experiment!("hsdba", "hsdba-example"),
    experiment!("hsdba", "hsdba-single"),
    experiment!("hsdba", "hsdba-layers"),
    experiment!("hsdba", "hsdba-convergence"),
    experiment!("hsdba", "hsdba-limits"),
    experiment!("hsdba", "hsdba-latency"),
    experiment!("hsdba", "hsdba-scale"),
    experiment!("hsdba", "hsdba-tcp"),
    experiment!("hsdba", "hsdba-churn"),
    experiment!("hsdba", "hsdba-join"),
    experiment!("hsdba", "hsdba-guarantees"),
    experiment!("hsdba", "hsdba-random"),
];

/// The experiments of a name: one, or those of a group.
#[must_use]
pub fn named(name: &str) -> Vec<Experiment> {
    let found = EXPERIMENTS.iter().filter(|e| e.name == name || e.group == name);
    found.copied().collect()
}

/// A bandwidth manager that stands in the experiments: what its leaves do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System {
    /// Its name, as profiles know it.
    pub(crate) name: &'static str,
    /// A sentence in the first line, and words of a policy behind it.
    text: &'static str,
}

macro_rules! system {
    ($name:literal) => {
        System {
            name: $name,
            text: include_str!(concat!("../../../experiments/systems/", $name, "/words.toml")),
        }
    };
}

/// The systems of the survey, in its order.
pub(crate) const SYSTEMS: &[System] = &[
    system!("altq-cbq"),
    system!("altq-cbq-red"),
    system!("guardian"),
    system!("floodgate"),
    system!("ipolicer"),
    system!("packetshaper"),
    system!("qosworks"),
    system!("qosworks-pfq"),
    system!("qosworks-mss"),
    system!("wisewan"),
    system!("wisewan-pfq"),
    system!("weir"),
];

impl System {
    /// What it is.
    pub(crate) fn about(&self) -> &'static str {
        self.text.lines().next().map_or("", |line| line.trim_start_matches(['#', ' ']))
    }

    /// The words of a policy for all its leaves.
    pub(crate) const fn words(&self) -> &'static str {
        self.text
    }
}
