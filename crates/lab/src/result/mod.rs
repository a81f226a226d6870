//! What an experiment found, and its form as JSON.

mod figures;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter};

#[cfg(test)]
pub(crate) use figures::over_seeds;
pub use figures::{Figure, Figures};

use crate::claim::{Claim, Holds, Judged};
use crate::named::Named;
use crate::number::stable;

/// What drove an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// One process under a virtual clock.
    Virtual,
    /// Namespaces, the kernel's TCP, real time.
    Live,
    /// The same in a kernel under virtual time.
    Uml,
}

impl Driver {
    /// As the command and the file call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Driver::Virtual => "virtual",
            Driver::Live => "live",
            Driver::Uml => "uml",
        }
    }
}

/// What an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name.
    pub experiment: String,
    /// What drove it.
    pub driver: Driver,
    /// Whose figures `metrics` are.
    pub profile: String,
    /// Over how many seeds they are means.
    pub seeds: u32,
    /// Whether it ran at the size of its paper, and is smaller as usual.
    #[serde(default, rename = "full", skip_serializing_if = "is_not")]
    pub is_full: bool,
    /// The figures of that profile.
    pub metrics: Figures,
    /// What was claimed, and whether it holds.
    pub claims: Vec<Judged>,
    /// What is drawn, of one seed.
    pub series: Named<Series>,
    /// The figures of all other profiles.
    pub profiles: Named<Profile>,
}

/// The figures of one profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// By key.
    pub metrics: Figures,
}

/// A line to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What x is, with its unit: `time (s)`.
    pub x: String,
    /// What y is.
    pub y: String,
    /// In order.
    #[serde(serialize_with = "stable_points")]
    pub points: Vec<(f64, f64)>,
}

fn is_not(yes: &bool) -> bool {
    !yes
}

impl Outcome {
    /// Without claims and series yet.
    #[must_use]
    pub fn new(experiment: &str, driver: Driver, seeds: u32, profile: &str) -> Outcome {
        Outcome {
            experiment: experiment.to_owned(),
            driver,
            profile: profile.to_owned(),
            seeds,
            is_full: false,
            metrics: Figures::default(),
            claims: Vec::new(),
            series: Named::default(),
            profiles: Named::default(),
        }
    }

    /// Sets the figures of one profile.
    pub fn set(&mut self, profile: &str, metrics: Figures) {
        if profile == self.profile {
            self.metrics = metrics;
        } else {
            self.profiles.set(profile, Profile { metrics });
        }
    }

    /// Judges the claims about the profiles that are here and leaves out the others. `void` says
    /// why the run cannot be judged at all.
    pub fn judge(&mut self, claims: &[Claim], void: Option<&str>) {
        let judged = claims.iter().filter_map(|claim| claim.judge(self, void));
        self.claims = judged.collect();
    }

    /// The figures of one profile.
    #[must_use]
    pub fn figures(&self, profile: &str) -> Option<&Figures> {
        if profile == self.profile {
            return Some(&self.metrics);
        }
        self.profiles.get(profile).map(|profile| &profile.metrics)
    }

    /// All profiles, that of `metrics` first.
    pub fn each_profile(&self) -> impl Iterator<Item = (&str, &Figures)> {
        let others = self.profiles.iter().map(|(name, profile)| (name, &profile.metrics));
        std::iter::once((self.profile.as_str(), &self.metrics)).chain(others)
    }

    /// How many claims do not hold; those that wait or are void are not counted.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.claims.iter().filter(|claim| claim.holds == Holds::No && !claim.known).count()
    }
}

/// Several outcomes in one file.
#[derive(Serialize, Deserialize)]
struct Group<T> {
    experiments: T,
}

/// The text of an outcome, with its line end.
#[must_use]
pub fn write(outcome: &Outcome) -> String {
    text(outcome)
}

/// The text of a group of outcomes.
#[must_use]
pub fn write_group(outcomes: &[Outcome]) -> String {
    text(&Group { experiments: outcomes })
}

fn text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut to = serde_json::Serializer::with_formatter(&mut bytes, Form::default());
    // it has only names as keys and only finite numbers
    match value.serialize(&mut to) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned() + "\n",
        Err(error) => error.to_string(),
    }
}

/// A line for each name; lists of points in one line.
#[derive(Default)]
struct Form(PrettyFormatter<'static>);

impl Formatter for Form {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        to.write_all(if first { b"" } else { b", " })
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object_value(to)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}

/// Reads what was written of one experiment or of a group.
///
/// # Errors
///
/// What is wrong with the text, and where.
pub fn read(text: &str) -> Result<Vec<Outcome>, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if value.get("experiments").is_some() {
        let group: Result<Group<Vec<Outcome>>, _> = serde_json::from_str(text);
        return group.map(|group| group.experiments).map_err(|e| e.to_string());
    }
    serde_json::from_str(text).map(|outcome| vec![outcome]).map_err(|e| e.to_string())
}

fn stable_points<S: serde::Serializer>(points: &[(f64, f64)], to: S) -> Result<S::Ok, S::Error> {
    // a point without a number is not a point
    let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    to.collect_seq(finite.map(|(x, y)| (stable(*x), stable(*y))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        let mut outcome = Outcome::new("edge-upstream", Driver::Virtual, 2, "weir");
        let runs = [[("sum", 0.25), ("mean.ep1", 0.1)], [("sum", 0.27), ("mean.ep1", 0.1)]];
        outcome.set("weir", over_seeds(&runs.map(Vec::from)));
        outcome.set("none", over_seeds(&[vec![("sum", 1.0 / 3.0)]]));
        let points = vec![(0.0, 0.1 + 0.2), (1.0, f64::NAN), (2.0, 1.0)];
        let series = Series { x: "time (s)".into(), y: "rate (Mbit/s)".into(), points };
        outcome.series.set("ep1", series);
        let claims = "[[claim]]\nid = \"a\"\ntext = \"x\"\npaper = 0.242\nbound = \"sum >= 0.2\"\n\
            [[claim]]\nid = \"b\"\ntext = \"y\"\nbound = \"sum > none:sum\"\npending = \"z\"\n";
        outcome.judge(&crate::Expected::read(claims).unwrap().claims, None);
        outcome
    }

    #[test]
    fn the_form_of_the_file() {
        insta::assert_snapshot!(write(&outcome()));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut first = outcome();
        let text = write(&first);
        let again = read(&text).unwrap();
        assert_eq!(write(&again[0]), text);
        first.series = again[0].series.clone();
        first.profiles = again[0].profiles.clone();
        assert_eq!(again, [first.clone()]);
        assert_eq!(read(&write_group(&[first.clone(), first])).unwrap().len(), 2);
        assert!(read("{").unwrap_err().contains("line 1"));
        assert!(read("{}").unwrap_err().contains("experiment"));
    }
}
