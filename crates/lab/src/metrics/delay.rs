//! How unsteady the way is: the interarrival jitter of RFC 3550 in both of its forms, and the delay
//! variation of RFC 5481.

use super::spread::percentile;

/// Jitter as RFC 3550 defines it, as a real number. Times are in one unit of the caller's choice,
/// and so is the jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    transit: Option<f64>,
    jitter: f64,
}

impl Jitter {
    /// A packet, by arrival; clocks of the two ends need not agree.
    pub fn add(&mut self, sent: f64, received: f64) {
        let transit = received - sent;
        if let Some(last) = self.transit.replace(transit) {
            self.jitter += ((transit - last).abs() - self.jitter) / 16.0;
        }
    }

    /// The jitter so far.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.jitter
    }
}

/// Jitter as RFC 3550 (appendix A.8) computes it: in whole units of the RTP timestamp, which may
/// wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JitterCount {
    transit: Option<u32>,
    sixteenfold: u64,
}

impl JitterCount {
    /// A packet, by arrival: the timestamp that it carries, and the local one when it came.
    pub fn add(&mut self, timestamp: u32, arrival: u32) {
        let transit = arrival.wrapping_sub(timestamp);
        if let Some(last) = self.transit.replace(transit) {
            let there = transit.wrapping_sub(last);
            let away = there.min(there.wrapping_neg());
            // never below zero: a sixteenth of it, rounded, is at most all of it
            self.sixteenfold = self.sixteenfold + u64::from(away) - ((self.sixteenfold + 8) >> 4);
        }
    }

    /// The jitter so far, in units of the timestamp.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.sixteenfold >> 4
    }
}

/// How far delays lie above the least of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// Half are not above this.
    pub p50: f64,
    /// 95 % are not.
    pub p95: f64,
    /// 99 % are not.
    pub p99: f64,
}

/// The packet delay variation of RFC 5481; none without packets.
#[must_use]
pub fn variation(delays: &[f64]) -> Option<Variation> {
    let least = percentile(delays, 0.0)?;
    let above: Vec<f64> = delays.iter().map(|delay| delay - least).collect();
    let at = |percent| percentile(&above, percent);
    Some(Variation { p50: at(50.0)?, p95: at(95.0)?, p99: at(99.0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_moves_a_sixteenth_of_the_way() {
        let mut jitter = Jitter::default();
        jitter.add(0.0, 5.0);
        jitter.add(20.0, 25.0);
        assert_eq!(jitter.get(), 0.0);
        jitter.add(40.0, 61.0);
        assert_eq!(jitter.get(), 1.0);
        jitter.add(60.0, 65.0);
        assert_eq!(jitter.get(), 1.0 + 15.0 / 16.0);
    }

    #[test]
    fn both_forms_agree_to_a_unit() {
        let (mut real, mut count) = (Jitter::default(), JitterCount::default());
        for at in 0..10_000_u32 {
            // G.729 at 8 kHz, the timestamp about to wrap, arrivals up to 99 units late
            let timestamp = (u32::MAX - 80_000).wrapping_add(at * 160);
            let late = at.wrapping_mul(7_919) % 100;
            count.add(timestamp, timestamp.wrapping_add(late));
            real.add(0.0, f64::from(late));
        }
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let away = (count.get() as f64 - real.get()).abs();
        assert!(real.get() > 20.0 && away <= 1.0, "{} and {}", real.get(), count.get());
    }

    #[test]
    fn the_count_never_falls_below_zero_and_bears_anything() {
        let mut count = JitterCount::default();
        for at in 0..1_000_u32 {
            count.add(at.wrapping_mul(2_654_435_761), at.wrapping_mul(40_503));
        }
        assert!(count.get() <= 1 << 31);
        let mut still = JitterCount::default();
        (0..100).for_each(|at| still.add(at, at));
        assert_eq!(still.get(), 0);
    }

    #[test]
    fn variation_starts_at_the_least_delay() {
        let delays: Vec<f64> = (1..=100).map(|ms| 50.0 + f64::from(ms)).collect();
        let found = variation(&delays);
        assert_eq!(found, Some(Variation { p50: 49.0, p95: 94.0, p99: 98.0 }));
        assert_eq!(variation(&[]), None);
    }
}
