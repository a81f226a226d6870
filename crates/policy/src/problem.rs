//! Problems are data: each has a place, says what is wrong and how to cure it. Reading never stops
//! at the first one.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use weir_units::limits;

use crate::skipped::{Rows, SkippedRows};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The policy cannot be used.
    Error,
    /// Rows of the table of subscribers are wrong and were skipped; the others count.
    Skipped,
    /// It works, but probably not as meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Error => "error",
            Severity::Skipped => "skipped",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// Where in which of the policy's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Index of the file among the policy's sources; 0 is the policy itself.
    pub file: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Position {
    /// The bytes `range` of the policy file.
    #[must_use]
    pub fn of(range: &Range<usize>) -> Position {
        Position::in_file(0, range)
    }

    /// The bytes `range` of file number `file`.
    #[must_use]
    pub fn in_file(file: u16, range: &Range<usize>) -> Position {
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position { file, start: small(range.start), end: small(range.end) }
    }
}

/// A value and where it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// What was written.
    pub value: T,
    /// Where.
    pub place: Position,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub place: Position,
    /// What is wrong, in one sentence.
    pub what: String,
    /// How to cure it; may be empty.
    pub help: String,
    /// The rows of the table of subscribers that it is about.
    pub rows: Option<Rows>,
}

/// How many problems there were at a time: those that are kept, and those found.
pub(crate) type Mark = (usize, [usize; 2]);

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    pub(crate) skipped: SkippedRows,
    /// Where rows stand that do not fit below their class; held ones are among them.
    pub(crate) unfit: BTreeSet<Position>,
    /// How many errors were found, and how many others: each kind up to the bound is kept, so that
    /// notes do not hide errors.
    found: [usize; 2],
    /// Whether a part of the file could not be read: what is missing may be in there.
    pub(crate) is_torn: bool,
}

impl Problems {
    /// An error: what is read cannot be used.
    pub fn error(&mut self, at: Position, what: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Error, at, what, help);
    }

    /// An error: something is not there that must be.
    pub(crate) fn missing(
        &mut self,
        at: Position,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        if !self.is_torn {
            self.error(at, what, help);
        }
    }

    /// A warning: it works, but probably not as meant.
    pub(crate) fn warning(
        &mut self,
        at: Position,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Severity::Warning, at, what, help);
    }

    /// A problem of any severity.
    pub fn add(
        &mut self,
        severity: Severity,
        place: Position,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        let found = &mut self.found[usize::from(severity != Severity::Error)];
        *found += 1;
        if *found > limits::PROBLEMS_KEPT {
            return;
        }
        let (what, help) = (what.into(), help.into());
        self.list.push(Problem { severity, place, what, help, rows: None });
    }

    /// Whether so many errors were found that it is no use to look for more.
    pub fn is_full(&self) -> bool {
        self.found[0] >= limits::PROBLEMS_KEPT
    }

    /// How many there are now, to come back to.
    pub(crate) fn mark(&self) -> Mark {
        (self.list.len(), self.found)
    }

    /// Forgets what was found since.
    pub(crate) fn forget_since(&mut self, (kept, found): Mark) {
        self.list.truncate(kept);
        self.found = found;
    }

    /// Forgets those found since that are not to be kept.
    pub(crate) fn retain_since(&mut self, (kept, _): Mark, keeps: impl Fn(&Problem) -> bool) {
        let since = self.list.split_off(kept.min(self.list.len()));
        self.list.extend(since.into_iter().filter(keeps));
    }

    /// Whether there is an error among them.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|p| p.severity == Severity::Error)
    }

    /// All of them in the order of their places, the same one only once.
    pub fn into_list(mut self) -> Vec<Problem> {
        let kinds = [(Severity::Error, "errors"), (Severity::Note, "warnings and notes")];
        for (found, (severity, name)) in self.found.into_iter().zip(kinds) {
            let more = found.saturating_sub(limits::PROBLEMS_KEPT);
            if more > 0 {
                let what = format!("{more} more {name} were found and are not listed");
                let (place, help) = (Position::default(), "correct the others first".to_owned());
                self.list.push(Problem { severity, place, what, help, rows: None });
            }
        }
        self.list.extend(self.skipped.problems());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_notes_neither_hide_an_error_nor_become_one() {
        let place = |at: usize| Position::of(&(at..at));
        let mut problems = Problems::default();
        for at in 0..2 * limits::PROBLEMS_KEPT {
            problems.add(Severity::Note, place(at), "it is so", "");
        }
        assert!(!problems.has_errors() && !problems.is_full());
        let mark = problems.mark();
        problems.error(place(0), "it is wrong", "");
        assert!(problems.has_errors());
        problems.forget_since(mark);
        assert!(!problems.has_errors());
        let list = problems.into_list();
        assert_eq!(list.len(), limits::PROBLEMS_KEPT + 1);
        assert!(list.iter().all(|problem| problem.severity == Severity::Note));
        assert!(list.iter().any(|problem| problem.what.starts_with("10000 more warnings and")));
    }
}
