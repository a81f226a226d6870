//! Metrics of a rate over time, and beside a rate that a scenario names.

use super::ran::{count, greatest, least, mbit};
use super::table::{Of, Row};
use crate::metrics::{cov, mean};
use crate::run::ms;

pub(super) const ROWS: [Row; 9] = [
    Row {
        word: "least",
        unit: "Mbit/s",
        about: "the lowest rate of all flows together in any bin",
        of: Of::Part(|part| least(part.bins())),
    },
    Row {
        word: "most",
        unit: "Mbit/s",
        about: "the highest rate of all flows together in any bin",
        of: Of::Part(|part| greatest(part.bins())),
    },
    Row {
        word: "bin-cov",
        unit: "ratio",
        about: "standard deviation of that rate over the bins, divided by its mean",
        of: Of::Part(|part| cov(&part.bins())),
    },
    Row {
        word: "session-cov",
        unit: "ratio",
        about: "`bin-cov` of each flow by itself; the flow with the most",
        of: Of::Part(|part| {
            let covs: Option<Vec<f64>> = part.bins_of_each().map(|bins| cov(&bins)).collect();
            greatest(covs?)
        }),
    },
    Row {
        word: "dent",
        unit: "ms",
        about: "time that all flows together spent below `percent` of the given `rate`",
        of: Of::PartByPercent(95, |part, rate, percent| {
            let least = mbit(rate) * f64::from(percent) / 100.0;
            let below = part.bins().into_iter().filter(|bin| *bin < least).count();
            Some(count(below) * ms(part.bin()))
        }),
    },
    Row {
        word: "taken",
        unit: "ratio",
        about: "rate gained since the time `before`, divided by what the flows `freed` had then",
        of: Of::PartByEarlier(|part, then, freed| {
            let (was, is) = (mean(&then.bins())?, mean(&part.bins())?);
            Some((is - was) / mean(&freed.bins()).filter(|freed| *freed > 0.0)?)
        }),
    },
    Row {
        word: "excess",
        unit: "Mbit/s",
        about: "what all flows together get beyond the given `rate`; 0 below it",
        of: Of::PartByRate(|part, beyond| Some((part.rate() - mbit(beyond)).max(0.0))),
    },
    Row {
        word: "unused",
        unit: "share",
        about: "the part of the given `rate` that all flows together leave",
        of: Of::PartByRate(|part, of| Some(1.0 - part.rate() / mbit(of))),
    },
    Row {
        word: "used",
        unit: "share",
        about: "the part of the given `rate` that all flows together get",
        of: Of::PartByRate(|part, of| Some(part.rate() / mbit(of))),
    },
];
