//! What the two ends of a flow have seen.

use weir_units::limits::{SIM_BINS, SIM_SAMPLES};
use weir_units::{Instant, Span};

use super::FlowSpec;

/// What a flow has done. End 0 is the one that started it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What each end has sent and got.
    pub ends: [EndReport; 2],
    measure: (Instant, Instant),
    bin: Option<Span>,
}

/// What one end has sent and got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndReport {
    /// Packets with payload that it sent, again or not.
    pub sent: u64,
    /// Their payload, in bytes.
    pub sent_bytes: u64,
    /// Packets with payload that it sent again.
    pub retransmitted: u64,
    /// How many of `sent` left within the time that counts.
    pub measured_sent: u64,
    /// How many of `retransmitted` did.
    pub measured_again: u64,
    /// How often its retransmission timer ran out.
    pub timeouts: u64,
    /// Packets with payload that it got.
    pub received: u64,
    /// Payload that it got, in order and once, in bytes.
    pub delivered: u64,
    /// When the first of it came.
    pub first: Option<Instant>,
    /// The same within the time that counts.
    pub measured: u64,
    /// The same by bins of time, from the start of the world on, so that those of
    /// several flows can be added.
    pub bins: Vec<u64>,
    /// How long packets took to come here, or answers to come back.
    pub delays: Samples,
    /// Round trips that its TCP saw.
    pub round_trips: Samples,
    /// Interarrival jitter of its datagrams, as RFC 3550 has it.
    pub jitter: Span,
}

/// Many spans of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// How many.
    pub count: u64,
    /// All together.
    pub sum: Span,
    /// The longest.
    pub max: Span,
    /// One by one, in order, where the flow asks for it.
    pub kept: Vec<Span>,
    keeps: bool,
}

impl Report {
    /// An empty one.
    #[must_use]
    pub fn new(spec: &FlowSpec) -> Report {
        let mut report = Report { measure: spec.measure, bin: spec.bin, ..Report::default() };
        for end in &mut report.ends {
            end.delays.keeps = spec.samples;
            end.round_trips.keeps = spec.samples;
        }
        report
    }

    /// Counts payload that has come to an end in order.
    pub fn deliver(&mut self, now: Instant, end: usize, bytes: u64) {
        let (from, until) = self.measure;
        let end = &mut self.ends[end];
        end.delivered += bytes;
        end.first.get_or_insert(now);
        if now >= from && now < until {
            end.measured += bytes;
        }
        let Some(bin) = self.bin else { return };
        let at = now.since(Instant::ZERO).ns() / bin.ns().max(1);
        let Some(at) = usize::try_from(at).ok().filter(|at| *at < SIM_BINS) else { return };
        if at >= end.bins.len() {
            end.bins.resize(at + 1, 0);
        }
        end.bins[at] += bytes;
    }

    /// Who started the flow has the answer to what was asked then, if that counts.
    pub(crate) fn answered(&mut self, asked: Instant, now: Instant) {
        if self.counts(asked) {
            self.ends[0].delays.add(now.since(asked));
        }
    }

    /// Whether what happens at `now` counts.
    #[must_use]
    pub fn counts(&self, now: Instant) -> bool {
        now >= self.measure.0 && now < self.measure.1
    }
}

impl Samples {
    /// One more.
    pub fn add(&mut self, sample: Span) {
        self.count += 1;
        self.sum += sample;
        self.max = self.max.max(sample);
        if self.keeps && self.kept.len() < SIM_SAMPLES {
            self.kept.push(sample);
        }
    }

    /// The mean; zero of none.
    #[must_use]
    pub fn mean(&self) -> Span {
        Span::from_ns(self.sum.ns() / self.count.max(1))
    }

    /// The sample below which `percent` of those that were kept lie (nearest rank).
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Option<Span> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let mut samples = Samples { keeps: true, ..Samples::default() };
        assert_eq!(samples.percentile(50), None);
        (1..=200).rev().for_each(|ms| samples.add(Span::from_ms(ms)));
        assert_eq!(samples.percentile(99), Some(Span::from_ms(198)));
        assert_eq!(samples.percentile(0), Some(Span::from_ms(1)));
        assert_eq!(samples.percentile(100), Some(samples.max));
    }
}
