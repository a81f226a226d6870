//! Quality of Outcome, as draft-ietf-ippm-qoo has it: where what was measured lies between what an
//! application needs to be perfect and what makes it useless.

/// A percentile of latency in milliseconds: perfect up to here, useless from there on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Which percentile.
    pub percentile: f64,
    /// Perfect up to this.
    pub perfect_ms: f64,
    /// Useless from this on.
    pub useless_ms: f64,
}

/// What an application requires.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// Of latency, by percentile.
    pub latency: Vec<Latency>,
    /// Of mean loss, as shares: perfect, useless.
    pub loss: (f64, f64),
    /// Throughput in Mbit/s below which it does not work.
    pub mbit: f64,
}

/// How good each part is, from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// By the worst percentile of latency.
    pub latency: f64,
    /// By loss.
    pub loss: f64,
    /// All or nothing.
    pub throughput: f64,
}

impl Quality {
    /// The whole is as good as its worst part.
    #[must_use]
    pub fn overall(&self) -> f64 {
        self.latency.min(self.loss).min(self.throughput)
    }
}

/// What measured latency (one per percentile asked for, in that order), loss and throughput are
/// worth; none if a percentile is missing.
#[must_use]
pub fn quality(need: &Requirement, latency_ms: &[f64], loss: f64, mbit: f64) -> Option<Quality> {
    let worth = |measured: f64, perfect: f64, useless: f64| {
        100.0 * (1.0 - (measured - perfect) / (useless - perfect)).clamp(0.0, 1.0)
    };
    let each = need.latency.iter().zip(latency_ms);
    let each = each.map(|(need, ms)| worth(*ms, need.perfect_ms, need.useless_ms));
    (latency_ms.len() == need.latency.len()).then(|| Quality {
        latency: each.fold(100.0, f64::min),
        loss: worth(loss, need.loss.0, need.loss.1),
        throughput: if mbit >= need.mbit { 100.0 } else { 0.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drafts_example() {
        let latency =
            |percentile, perfect_ms, useless_ms| Latency { percentile, perfect_ms, useless_ms };
        let need = Requirement {
            latency: vec![latency(99.0, 200.0, 500.0), latency(99.9, 300.0, 600.0)],
            loss: (0.01, 0.05),
            mbit: 4.0,
        };
        let found = quality(&need, &[350.0, 375.0], 0.02, 28.0).unwrap();
        let rounded = (found.latency.round(), found.loss.round(), found.throughput);
        assert_eq!(rounded, (50.0, 75.0, 100.0));
        assert!((found.overall() - 50.0).abs() < 1e-9);
        assert_eq!(quality(&need, &[350.0, 375.0], 0.02, 3.9).unwrap().overall(), 0.0);
        assert_eq!(quality(&need, &[9_000.0, 375.0], 0.02, 28.0).unwrap().latency, 0.0);
        assert_eq!(quality(&need, &[350.0], 0.02, 28.0), None);
    }
}
