//! What is claimed of an experiment, as data: a sentence, what the paper printed, and a bound on
//! the figures that decides.

mod bound;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use bound::Bound;
pub(crate) use bound::{Key, Limit, Step, matched};

use crate::number::{show, stable};
use crate::report::Drawing;
use crate::result::{Driver, Outcome};

/// What is expected of an experiment: the text of its `expected.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// What the paper printed, by key, with `profile:` in front where it is not about ours.
    #[serde(default)]
    pub paper: BTreeMap<String, Printed>,
    /// What is claimed.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// Where the paper contradicts itself: named, and not imitated.
    #[serde(default)]
    pub slips: Vec<String>,
    /// What the report draws.
    #[serde(default, rename = "plot")]
    pub plots: Vec<Drawing>,
}

impl Expected {
    /// Reads what is expected.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where.
    pub fn read(text: &str) -> Result<Expected, String> {
        let expected: Expected = toml::from_str(text).map_err(|error| error.to_string())?;
        let ids: Vec<&str> = expected.claims.iter().map(|claim| claim.id.as_str()).collect();
        match ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id)) {
            Some((_, id)) => Err(format!("two claims are called \"{id}\"")),
            None => Ok(expected),
        }
    }

    /// What the paper printed for a key of a profile.
    #[must_use]
    pub fn printed(&self, profile: &str, key: &str) -> Option<&Printed> {
        match profile {
            OURS => self.paper.get(key),
            _ => self.paper.get(&format!("{profile}:{key}")),
        }
    }
}

/// The profile that a bare key is about.
pub(crate) const OURS: &str = "weir";

/// A sentence about an experiment that can be right or wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Short and lasting.
    pub id: String,
    /// The sentence.
    pub text: String,
    /// What the paper says.
    #[serde(default)]
    pub paper: Option<Printed>,
    /// What decides in virtual time.
    pub bound: Bound,
    /// What decides over a real kernel, where that is another bound.
    #[serde(default)]
    pub live: Option<Bound>,
    /// What it waits for, if it cannot hold yet.
    #[serde(default)]
    pub pending: Option<String>,
    /// Why a model of another system is known not to be as the paper has that system.
    #[serde(default)]
    pub differs: Option<String>,
}

/// A number or words, as a paper prints them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Printed {
    /// A number.
    Number(f64),
    /// Words.
    Words(String),
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Printed::Number(number) => f.write_str(&show(*number)),
            Printed::Words(words) => f.write_str(words),
        }
    }
}

/// A claim beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// As the claim has it.
    pub id: String,
    /// As the claim has it.
    pub text: String,
    /// As the claim has it.
    pub paper: Option<Printed>,
    /// The figure, or several as they were compared; none if one is missing.
    pub measured: Option<Printed>,
    /// Whether it holds.
    pub holds: Holds,
    /// What there is to say: which case was the worst, what is missing or awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Known not to hold, of a model of another system: said, but no fault of this run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known: bool,
}

/// Whether a claim holds. In a file: `true`, `false`, `"pending"`, `"void"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// It waits for something that is not there yet.
    Pending,
    /// The run was too disturbed to say.
    Void,
}

impl Holds {
    /// As tables have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Holds::Yes => "holds",
            Holds::No => "does not hold",
            Holds::Pending => "pending",
            Holds::Void => "void",
        }
    }
}

impl Claim {
    /// The claim beside what was measured; none if it is about a profile that did not run.
    #[must_use]
    pub fn judge(&self, outcome: &Outcome, void: Option<&str>) -> Option<Judged> {
        let bound = match outcome.driver {
            Driver::Virtual => &self.bound,
            Driver::Live | Driver::Uml => self.live.as_ref().unwrap_or(&self.bound),
        };
        if !bound.profiles().all(|profile| outcome.figures(profile).is_some()) {
            return None;
        }
        let found = bound.check(&|profile| outcome.figures(profile));
        let (holds, note) = match (&self.pending, void) {
            (Some(what), _) => (Holds::Pending, Some(format!("waits for {what}"))),
            (None, Some(why)) => (Holds::Void, Some(why.to_owned())),
            (None, None) if found.holds => (Holds::Yes, found.note),
            (None, None) => (Holds::No, self.differs.clone().or(found.note)),
        };
        let stable_number = |printed| match printed {
            Printed::Number(number) => Printed::Number(stable(number)),
            words @ Printed::Words(_) => words,
        };
        Some(Judged {
            id: self.id.clone(),
            text: self.text.clone(),
            paper: self.paper.clone(),
            measured: found.measured.map(stable_number),
            holds,
            note,
            known: holds == Holds::No && self.differs.is_some(),
        })
    }
}

impl Serialize for Holds {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Holds::Yes => to.serialize_bool(true),
            Holds::No => to.serialize_bool(false),
            other => to.serialize_str(other.word()),
        }
    }
}

impl<'de> Deserialize<'de> for Holds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Holds, D::Error> {
        match serde_json::Value::deserialize(from)? {
            serde_json::Value::Bool(true) => Ok(Holds::Yes),
            serde_json::Value::Bool(false) => Ok(Holds::No),
            serde_json::Value::String(word) if word == Holds::Pending.word() => Ok(Holds::Pending),
            serde_json::Value::String(word) if word == Holds::Void.word() => Ok(Holds::Void),
            other => {
                let expected = "expected true, false, \"pending\" or \"void\"";
                Err(serde::de::Error::custom(format!("holds is {other}, {expected}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::over_seeds;

    fn claim(lines: &str) -> Claim {
        let text = format!("[[claim]]\nid = \"1\"\ntext = \"t\"\n{lines}\n");
        Expected::read(&text).unwrap().claims.remove(0)
    }

    fn outcome(driver: Driver) -> Outcome {
        let mut outcome = Outcome::new("x", driver, 1, "weir");
        outcome.set("weir", over_seeds(&[vec![("loss", 0.02)]]));
        outcome
    }

    #[test]
    fn a_live_run_has_its_own_bound() {
        let claim = claim("bound = \"loss <= 0.01\"\nlive = \"loss <= 0.03\"");
        let holds = |driver| claim.judge(&outcome(driver), None).unwrap().holds;
        assert_eq!([Driver::Virtual, Driver::Live].map(holds), [Holds::No, Holds::Yes]);
        let void = claim.judge(&outcome(Driver::Live), Some("p99 lateness 9 ms")).unwrap();
        assert_eq!((void.holds, void.note.unwrap().as_str()), (Holds::Void, "p99 lateness 9 ms"));
    }

    #[test]
    fn what_waits_does_not_fail_and_is_still_measured() {
        let claim = claim("bound = \"loss <= 0.01\"\npending = \"TCP rate control\"");
        let judged = claim.judge(&outcome(Driver::Virtual), None).unwrap();
        assert_eq!(judged.holds, Holds::Pending);
        assert_eq!(judged.measured, Some(Printed::Number(0.02)));
    }

    #[test]
    fn what_is_known_to_differ_is_said_and_is_no_fault() {
        let claim = claim("bound = \"loss <= 0.01\"\ndiffers = \"it has no timer\"");
        let judged = claim.judge(&outcome(Driver::Virtual), None).unwrap();
        assert_eq!((judged.holds, judged.known), (Holds::No, true));
        assert_eq!(judged.note.as_deref(), Some("it has no timer"));
    }

    #[test]
    fn a_claim_about_a_profile_that_did_not_run_is_left_out() {
        let claim = claim("bound = \"loss <= none:loss\"");
        assert_eq!(claim.judge(&outcome(Driver::Virtual), None), None);
        let mut both = outcome(Driver::Virtual);
        both.set("none", over_seeds(&[vec![("loss", 0.02)]]));
        assert_eq!(claim.judge(&both, None).unwrap().holds, Holds::Yes);
        let mut other = Outcome::new("x", Driver::Virtual, 1, "none");
        other.set("none", over_seeds(&[vec![("loss", 0.02)]]));
        assert_eq!(claim.judge(&other, None), None);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Expected::read(text).unwrap_err();
        let twice = "[[claim]]\nid = \"1\"\ntext = \"\"\nbound = \"a > 1\"\n".repeat(2);
        assert!(error(&twice).contains("two claims are called \"1\""));
        let wrong = "[[claim]]\nid = \"1\"\ntext = \"\"\nbound = \"a >> 1\"\n";
        let error = error(wrong);
        assert!(error.contains("line 4") && error.contains(">>"), "{error}");
    }
}
