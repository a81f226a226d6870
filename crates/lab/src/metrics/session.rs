//! The survey's own three: how much of its rate a class gets, how evenly its sessions share it, and
//! how much was sent twice. Each run is looked at by itself, then the runs are averaged.

use weir_units::Span;

use super::spread::{cov, deviation, mean};

/// New payload over a time, in kbit/s; none of no time.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "below 2^53 bytes and nanoseconds")]
pub fn goodput_kbit(payload_bytes: u64, over: Span) -> Option<f64> {
    (over > Span::ZERO).then(|| payload_bytes as f64 * 8e6 / over.ns() as f64)
}

/// A class in all runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Goodput as a share of the rate given, mean over the runs; 1 is best.
    pub accuracy: f64,
    /// The coefficient of variation of the runs' goodput; 0 is best.
    pub accuracy_stability: f64,
    /// The coefficient of variation among the sessions of a run, mean over the runs; 0 is best.
    pub fairness: f64,
    /// The deviation of the runs' fairness; 0 is best.
    pub fairness_stability: f64,
}

impl Class {
    /// From the goodput of each session in each run, in the unit of `given`. None without runs, or
    /// if the class got nothing in one of them.
    #[must_use]
    pub fn of(given: f64, runs: &[Vec<f64>]) -> Option<Class> {
        let goodputs: Vec<f64> = runs.iter().map(|sessions| sessions.iter().sum()).collect();
        let unevenness: Option<Vec<f64>> = runs.iter().map(|sessions| cov(sessions)).collect();
        let unevenness = unevenness?;
        Some(Class {
            accuracy: mean(&goodputs).filter(|_| given > 0.0)? / given,
            accuracy_stability: cov(&goodputs)?,
            fairness: mean(&unevenness)?,
            fairness_stability: deviation(&unevenness)?,
        })
    }
}

/// Packets sent again over packets sent, mean over the runs (the survey prints a sum; with its
/// own figures only the mean makes sense). None if nothing was sent in one of them.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "below 2^53 packets")]
pub fn retransmission(runs: &[(u64, u64)]) -> Option<f64> {
    let ratio = |(again, sent): &(u64, u64)| (*sent > 0).then(|| *again as f64 / *sent as f64);
    let ratios: Option<Vec<f64>> = runs.iter().map(ratio).collect();
    mean(&ratios?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_counts_bits_of_payload() {
        // 200 s of full frames at 1.1 Mbit/s: 1 460 of each 1 500 bytes
        let frames = 1_100_000 * 200 / 8 / 1_500;
        let goodput = goodput_kbit(frames * 1_460, Span::from_secs(200)).unwrap();
        assert_eq!(format!("{:.3}", goodput / 1_100.0), "0.973");
        assert_eq!(goodput_kbit(1, Span::ZERO), None);
    }

    #[test]
    fn a_class_is_judged_run_by_run() {
        // one session starves in each run: the mean of all runs would hide that
        let runs = [vec![8.0, 0.0], vec![0.0, 12.0]];
        let class = Class::of(10.0, &runs).unwrap();
        assert_eq!(class.accuracy, 1.0);
        assert!((class.accuracy_stability - 0.2).abs() < 1e-12);
        assert_eq!((class.fairness, class.fairness_stability), (1.0, 0.0));
        assert_eq!(Class::of(10.0, &[vec![1.0], vec![0.0]]), None);
        assert_eq!(Class::of(10.0, &[]), None);
    }

    #[test]
    fn retransmission_is_the_mean_of_ratios() {
        let ratio = retransmission(&[(1, 10), (0, 1_000)]).unwrap();
        assert!((ratio - 0.05).abs() < 1e-12);
        assert_eq!(retransmission(&[(0, 0)]), None);
    }
}
