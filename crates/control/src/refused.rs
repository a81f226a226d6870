//! Why a link does not do what it is asked: whose fault it is, what is wrong, the cure.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_policy::Reading;

use crate::{Problem, problems};

/// A request that is not done. Nothing has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// Whose fault it is.
    pub fault: Fault,
    /// What is wrong.
    pub what: String,
    /// What to do about it; may be empty.
    pub cure: String,
    /// The problems of a policy, for programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The same as `weir check` shows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// The policy's.
    Content,
    /// The request's: it is no request, or not now.
    Call,
    /// Nobody's: it cannot be done here.
    #[default]
    Cannot,
}

impl Refused {
    /// The policy is at fault.
    pub fn content(what: impl Into<String>, cure: impl Into<String>) -> Refused {
        Refused::new(Fault::Content, what, cure)
    }

    /// The request is at fault.
    pub fn call(what: impl Into<String>, cure: impl Into<String>) -> Refused {
        Refused::new(Fault::Call, what, cure)
    }

    /// Nobody is.
    pub fn cannot(what: impl Into<String>, cure: impl Into<String>) -> Refused {
        Refused::new(Fault::Cannot, what, cure)
    }

    fn new(fault: Fault, what: impl Into<String>, cure: impl Into<String>) -> Refused {
        Refused { fault, what: what.into(), cure: cure.into(), ..Refused::default() }
    }

    /// A policy that cannot be used, with all its problems; `text` is what `weir check` shows.
    #[must_use]
    pub fn policy(what: String, reading: &Reading, text: String) -> Refused {
        let cure = "correct it; `weir check` shows the same";
        Refused { problems: problems(reading), text, ..Refused::content(what, cure) }
    }

    /// A policy of which rows are skipped, brought by someone who did not say that this is meant.
    #[must_use]
    pub fn skipped(skipped: usize, reading: &Reading, text: String) -> Refused {
        let what = format!("{skipped} rows of the table are skipped; nothing was changed");
        let cure = "correct them, or allow it with --allow-skipped (\"allow_skipped\": true)";
        Refused { problems: problems(reading), text, ..Refused::content(what, cure) }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.cure.is_empty() { Ok(()) } else { write!(f, ": {}", self.cure) }
    }
}
