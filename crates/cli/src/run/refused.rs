//! Why a running link does not do what it is asked: whose fault it is, what is wrong, the cure.

use std::fmt;

use serde_json::{Value, json};
use weir_policy::Reading;
use weir_units::limits;

/// A request that is not done. Nothing has changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    pub(crate) what: String,
    pub(crate) cure: String,
    /// The problems of a policy, for programs.
    problems: Vec<Value>,
    /// The same as `weir check` shows it.
    pub(crate) text: String,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The policy's.
    Content,
    /// The request's: it is no request, or not now.
    Call,
    /// Nobody's: it cannot be done here.
    Cannot,
}

impl Fault {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Fault::Content => "content",
            Fault::Call => "call",
            Fault::Cannot => "cannot",
        }
    }
}

impl Refused {
    pub(crate) fn content(what: impl Into<String>, cure: impl Into<String>) -> Refused {
        Refused::new(Fault::Content, what, cure)
    }

    pub(crate) fn call(what: impl Into<String>, cure: impl Into<String>) -> Refused {
        Refused::new(Fault::Call, what, cure)
    }

    pub(crate) fn cannot(what: impl Into<String>, cure: impl Into<String>) -> Refused {
        Refused::new(Fault::Cannot, what, cure)
    }

    fn new(fault: Fault, what: impl Into<String>, cure: impl Into<String>) -> Refused {
        let (what, cure) = (what.into(), cure.into());
        Refused { fault, what, cure, problems: Vec::new(), text: String::new() }
    }

    /// A policy that cannot be used: all its problems.
    pub(crate) fn policy(what: String, reading: &Reading, text: String) -> Refused {
        let cure = "correct it; `weir check` shows the same";
        let problems = problems(reading);
        Refused { problems, text, ..Refused::content(what, cure) }
    }

    /// A policy of which rows are skipped, brought by someone who did not say that this is meant.
    pub(crate) fn skipped(skipped: usize, reading: &Reading, text: String) -> Refused {
        let what = format!("{skipped} rows of the table are skipped; nothing was changed");
        let cure = "correct them, or allow it with --allow-skipped (\"allow_skipped\": true)";
        let problems = problems(reading);
        Refused { problems, text, ..Refused::content(what, cure) }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({"fault": self.fault.word(), "what": self.what, "cure": self.cure});
        if !self.problems.is_empty() {
            error["problems"] = Value::Array(self.problems.clone());
            error["text"] = Value::from(self.text.as_str());
        }
        error
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.cure.is_empty() { Ok(()) } else { write!(f, ": {}", self.cure) }
    }
}

/// The problems of a policy with their places.
pub(crate) fn problems(reading: &Reading) -> Vec<Value> {
    let one = |problem: &weir_policy::Problem| {
        let source = reading.sources.get(usize::from(problem.place.file));
        let (line, column) =
            source.map_or((0, 0), |source| source.line_column(problem.place.start as usize));
        let mut said = json!({
            "severity": problem.severity.to_string(),
            "file": source.map_or("", weir_policy::Source::name),
            "line": line,
            "column": column,
            "what": problem.what,
            "cure": problem.help,
        });
        if let Some(rows) = &problem.rows {
            said["rows"] = Value::from(rows.lines.as_str());
            said["count"] = Value::from(rows.count);
            said["held"] = Value::from(rows.held);
        }
        said
    };
    reading.problems.iter().take(limits::PROBLEMS_SHOWN).map(one).collect()
}
