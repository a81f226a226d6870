//! Problems are data: each has a place, says what is wrong and how to cure it. Reading never stops
//! at the first one.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The policy cannot be used.
    Error,
    /// One entry is wrong and was set aside; the others count.
    Aside,
    /// It works, but probably not as meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Error => "error",
            Severity::Aside => "set aside",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// Where in which of the policy's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index of the file among the policy's sources; 0 is the policy itself.
    pub file: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Place {
    /// The bytes `range` of the policy file.
    #[must_use]
    pub fn of(range: &Range<usize>) -> Place {
        Place::in_file(0, range)
    }

    /// The bytes `range` of file number `file`.
    #[must_use]
    pub fn in_file(file: u16, range: &Range<usize>) -> Place {
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place { file, start: small(range.start), end: small(range.end) }
    }
}

/// A value and where it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// What was written.
    pub value: T,
    /// Where.
    pub place: Place,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub place: Place,
    /// What is wrong, in one sentence.
    pub what: String,
    /// How to cure it; may be empty.
    pub help: String,
}

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// An error: what is read cannot be used.
    pub fn error(&mut self, at: Place, what: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Error, at, what, help);
    }

    /// A warning: it works, but probably not as meant.
    pub fn warning(&mut self, at: Place, what: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Warning, at, what, help);
    }

    /// A problem of any severity.
    pub fn add(
        &mut self,
        severity: Severity,
        place: Place,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.list.push(Problem { severity, place, what: what.into(), help: help.into() });
    }

    /// Whether there is an error among them.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|p| p.severity == Severity::Error)
    }

    /// The places of what was set aside.
    pub fn set_aside(&self) -> BTreeSet<Place> {
        let aside = self.list.iter().filter(|p| p.severity == Severity::Aside);
        aside.map(|p| p.place).collect()
    }

    /// All of them in the order of their places, the same one only once.
    pub fn into_list(mut self) -> Vec<Problem> {
        self.list.sort_by(|a, b| {
            (a.place.file, a.place.start, a.severity, &a.what).cmp(&(
                b.place.file,
                b.place.start,
                b.severity,
                &b.what,
            ))
        });
        self.list.dedup();
        self.list
    }
}
