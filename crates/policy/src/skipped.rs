//! Rows of the table of subscribers that were skipped: what they have in common is said once. Each
//! row keeps its place, so that all of them can be listed.

use std::collections::BTreeMap;

use weir_units::limits;

use crate::problem::{Position, Problem, Severity};

/// A row that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where the mistake is.
    pub place: Position,
    /// The line of the file that the row starts at, from 1.
    pub line: u32,
    /// Whether the subscriber keeps the row that was in effect before.
    pub held: bool,
    cause: u32,
}

/// Which rows one problem is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// How many rows.
    pub count: usize,
    /// How many of these subscribers keep the row that was in effect before.
    pub held: usize,
    /// The first of their lines, as in `14-186, 200`.
    pub lines: String,
}

/// All rows that were skipped, and why.
#[derive(Clone, Debug, Default)]
pub struct SkippedRows {
    rows: Vec<Skipped>,
    /// What comes behind "because", and the cure.
    causes: Vec<(String, String)>,
    known: BTreeMap<(String, String), u32>,
}

/// Ranges of lines that one problem lists.
const RANGES: usize = 8;

/// What stands for the causes beyond the bound.
const OTHERS: &str = "they have further mistakes, of more kinds than are listed";

impl SkippedRows {
    pub(crate) fn add(&mut self, place: Position, line: u32, cause: String, help: String) {
        let full = self.causes.len() >= limits::SKIP_CAUSES;
        let next = u32::try_from(self.causes.len()).unwrap_or(u32::MAX);
        let key = (cause, help);
        let cause = match self.known.get(&key) {
            Some(&known) => known,
            None if full => self.others(),
            None => {
                self.known.insert(key.clone(), next);
                self.causes.push(key);
                next
            }
        };
        self.rows.push(Skipped { place, line, held: false, cause });
    }

    fn others(&mut self) -> u32 {
        let key = (OTHERS.to_owned(), "correct the others first".to_owned());
        let next = u32::try_from(self.causes.len()).unwrap_or(u32::MAX);
        *self.known.entry(key.clone()).or_insert_with(|| {
            self.causes.push(key);
            next
        })
    }

    pub(crate) fn mark_held(&mut self, at: usize, held: bool) {
        self.rows[at].held = held;
    }

    /// How many rows were skipped.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// How many of these subscribers keep the row that was in effect before.
    #[must_use]
    pub fn held(&self) -> usize {
        self.rows.iter().filter(|row| row.held).count()
    }

    /// All rows with the cause and the cure of each.
    pub fn all(&self) -> impl Iterator<Item = (Skipped, &str, &str)> {
        self.rows.iter().map(|row| {
            let (cause, help) = &self.causes[row.cause as usize];
            (*row, cause.as_str(), help.as_str())
        })
    }

    /// One problem for each cause.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut groups: Vec<(Vec<u32>, usize, Option<Position>)> =
            vec![Default::default(); self.causes.len()];
        for row in &self.rows {
            let (lines, held, place) = &mut groups[row.cause as usize];
            lines.push(row.line);
            *held += usize::from(row.held);
            *place = Some(place.map_or(row.place, |first| first.min(row.place)));
        }
        let mut problems = Vec::new();
        for ((lines, held, place), (cause, help)) in groups.into_iter().zip(&self.causes) {
            let rows = Rows { count: lines.len(), held, lines: ranges(lines) };
            problems.extend(place.map(|place| Problem {
                severity: Severity::Skipped,
                place,
                what: sentence(&rows, cause),
                help: help.clone(),
                rows: Some(rows),
            }));
        }
        problems
    }
}

fn sentence(rows: &Rows, cause: &str) -> String {
    let Rows { count, held, lines } = rows;
    let (who, row) = match count {
        1 => ("1 subscriber was".to_owned(), "row"),
        _ => (format!("{count} subscribers were"), "rows"),
    };
    let kept = match held {
        0 => String::new(),
        1 if *count == 1 => "; the subscriber keeps the last good row".to_owned(),
        _ if held == count => "; all of them keep their last good row".to_owned(),
        _ => format!("; {held} of them keep their last good row"),
    };
    format!("{who} skipped because {cause} ({row} {lines}){kept}")
}

/// `14-186, 200`.
fn ranges(mut lines: Vec<u32>) -> String {
    lines.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if line <= last.saturating_add(1) => *last = line,
            _ => ranges.push((line, line)),
        }
        if ranges.len() > RANGES {
            break;
        }
    }
    let more = ranges.len() > RANGES;
    ranges.truncate(RANGES);
    let said: Vec<String> = ranges
        .iter()
        .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
        .collect();
    said.join(", ") + if more { ", ..." } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_one_cause_are_one_problem() {
        let mut skipped = SkippedRows::default();
        for line in (14..=186).chain([200]) {
            skipped.add(Position::default(), line, "it is so".to_owned(), "do".to_owned());
        }
        skipped.add(Position::default(), 3, "it is otherwise".to_owned(), String::new());
        skipped.mark_held(0, true);
        let problems = skipped.problems();
        let said: Vec<&str> = problems.iter().map(|problem| problem.what.as_str()).collect();
        assert_eq!(
            said,
            [
                "174 subscribers were skipped because it is so (rows 14-186, 200); 1 of them keep \
                 their last good row",
                "1 subscriber was skipped because it is otherwise (row 3)",
            ]
        );
        assert_eq!((skipped.count(), skipped.held()), (175, 1));
    }

    #[test]
    fn causes_have_a_bound() {
        let mut skipped = SkippedRows::default();
        for line in 0..3 * u32::try_from(limits::SKIP_CAUSES).unwrap() {
            skipped.add(Position::default(), line, format!("it is {line}"), String::new());
        }
        assert_eq!(skipped.problems().len(), limits::SKIP_CAUSES + 1);
    }
}
