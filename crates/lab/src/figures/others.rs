//! Metrics of other metrics.

use super::ran::{greatest, least};
use super::table::{Of, Row};
use crate::metrics::{cov, deviation, mean};

pub(super) const ROWS: [Row; 6] = [
    Row {
        word: "stability",
        unit: "ratio",
        about: "standard deviation of another metric over the runs, divided by its mean",
        of: Of::OverRuns(cov),
    },
    Row {
        word: "spread",
        unit: "that of `of`",
        about: "standard deviation of another metric over the runs",
        of: Of::OverRuns(deviation),
    },
    Row {
        word: "ratio",
        unit: "ratio",
        about: "one metric (`of`) divided by another (`by`)",
        of: Of::Two(|of, by| (by != 0.0).then(|| of / by)),
    },
    Row {
        word: "apart",
        unit: "ratio",
        about: "the greatest of several metrics minus the least, divided by their mean",
        of: Of::All(|values| {
            let (least, most) = (least(values.to_vec())?, greatest(values.to_vec())?);
            mean(values).filter(|mean| *mean != 0.0).map(|mean| (most - least) / mean)
        }),
    },
    Row {
        word: "lowest",
        unit: "that of `of`",
        about: "the least of several metrics",
        of: Of::Known(|values| least(values.to_vec())),
    },
    Row {
        word: "highest",
        unit: "that of `of`",
        about: "the greatest of several metrics",
        of: Of::Known(|values| greatest(values.to_vec())),
    },
];
