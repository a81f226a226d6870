//! An outcome as a person reads it.

use weir_lab::{Expected, Grid, Outcome, summary, systems};

use super::Named;
use crate::out::Out;

/// What is to be seen before the experiments of a group: of the survey, what its systems are.
pub(super) fn opening(group: &str, found: &[Named]) -> Result<Vec<(String, Grid)>, String> {
    match group {
        "survey" => systems::tables(found.iter().map(|named| &named.scenario)),
        _ => Ok(Vec::new()),
    }
}

/// Tables under their titles.
pub(super) fn tables(out: &mut Out, tables: &[(String, Grid)]) {
    for (title, grid) in tables {
        out.line(title);
        out.line("");
        grid.lines().iter().for_each(|line| out.line(line));
        out.line("");
    }
}

pub(super) fn outcome(out: &mut Out, outcome: &Outcome, expected: &Expected) {
    summary(outcome, expected).iter().for_each(|line| out.line(line));
    out.line("");
}
