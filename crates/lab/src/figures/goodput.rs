//! Metrics of how many bytes arrived.

use super::ran::{count, mbit, seconds};
use super::table::{Of, Row};
use crate::metrics::{cov, jain};

pub(super) const ROWS: [Row; 7] = [
    Row {
        word: "goodput",
        unit: "kbit/s",
        about: "payload received, by all flows together",
        of: Of::Part(|part| Some(part.goodput())),
    },
    Row {
        word: "rate",
        unit: "Mbit/s",
        about: "IP packets received, by all flows together",
        of: Of::Part(|part| Some(part.rate())),
    },
    Row {
        word: "mean",
        unit: "Mbit/s",
        about: "the same divided by the number of flows",
        of: Of::Part(|part| Some(part.rate() / count(part.each().len()))),
    },
    Row {
        word: "bytes",
        unit: "bytes",
        about: "payload received, by all flows together",
        of: Of::Part(|part| Some(part.goodput() * 125.0 * seconds(part.lasts()))),
    },
    Row {
        word: "accuracy",
        unit: "ratio",
        about: "`goodput` divided by the given `rate`",
        of: Of::PartByRate(|part, rate| Some(part.goodput() / (mbit(rate) * 1e3))),
    },
    Row {
        word: "cov",
        unit: "ratio",
        about: "standard deviation of the goodputs of the flows, divided by their mean",
        of: Of::Part(|part| cov(&part.each())),
    },
    Row {
        word: "jain",
        unit: "0 to 1",
        about: "Jain's fairness index of the goodputs of the flows",
        of: Of::Part(|part| jain(&part.each())),
    },
];
