//! The problems of a policy, as programs get them.

use serde::{Deserialize, Serialize};
use weir_policy::Reading;
use weir_units::limits;

/// One problem with its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// `error`, `skipped`, `warning` or `note`.
    pub severity: String,
    /// The file.
    pub file: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The column in that, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it; may be empty.
    pub cure: String,
    /// Of rows of a table: their lines, such as `14-186, 200`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// Of rows of a table: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Of rows of a table: how many keep their last good row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<usize>,
}

/// The problems of a policy, as many as are shown.
#[must_use]
pub fn problems(reading: &Reading) -> Vec<Problem> {
    let one = |problem: &weir_policy::Problem| {
        let source = reading.sources.get(usize::from(problem.place.file));
        let (line, column) =
            source.map_or((0, 0), |source| source.line_column(problem.place.start as usize));
        let rows = problem.rows.as_ref();
        Problem {
            severity: problem.severity.to_string(),
            file: source.map_or("", weir_policy::Source::name).to_owned(),
            line,
            column,
            what: problem.what.clone(),
            cure: problem.help.clone(),
            rows: rows.map(|rows| rows.lines.clone()),
            count: rows.map(|rows| rows.count),
            held: rows.map(|rows| rows.held),
        }
    };
    reading.problems.iter().take(limits::PROBLEMS_SHOWN).map(one).collect()
}
