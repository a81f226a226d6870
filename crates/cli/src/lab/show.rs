//! An outcome as a person reads it.

use weir_lab::{Expected, Outcome, summary};

use crate::out::Out;

pub(super) fn outcome(out: &mut Out, outcome: &Outcome, expected: &Expected) {
    summary(outcome, expected).iter().for_each(|line| out.line(line));
    out.line("");
}
