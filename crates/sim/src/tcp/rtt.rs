//! The round trip and the timeout that follows from it (RFC 6298), with the two ways in which
//! systems read "at least": of the whole, or (Linux) of what is added to the round trip.

use weir_units::Span;

use super::TcpSpec;

#[derive(Clone, Debug)]
pub(crate) struct RoundTrip {
    /// Smoothed; zero before the first sample.
    pub(crate) smooth: Span,
    /// Four times the mean deviation.
    deviation: u64,
    /// What is added to `smooth`.
    added: u64,
    /// The largest deviation of this round, and where the round ends.
    deviation_max: u64,
    round_end: u64,
    /// The least of all.
    pub(crate) least: Span,
    timeout: Span,
    /// How often the timeout was doubled.
    pub(crate) backoff: u32,
    min: Span,
    max: Span,
    tick: Span,
    min_is_added: bool,
}

impl RoundTrip {
    pub(crate) fn new(spec: &TcpSpec) -> RoundTrip {
        RoundTrip {
            smooth: Span::ZERO,
            deviation: 0,
            added: 0,
            deviation_max: 0,
            round_end: 0,
            least: Span::MAX,
            timeout: spec.rto_initial,
            backoff: 0,
            min: spec.rto_min,
            max: spec.rto_max,
            tick: spec.tick,
            min_is_added: spec.rto_min_added,
        }
    }

    /// A round trip was measured; everything up to `una` has been acknowledged, up to `next` sent.
    pub(crate) fn sample(&mut self, rtt: Span, una: u64, next: u64) {
        self.least = self.least.min(rtt);
        let floor = if self.min_is_added { self.min.ns() } else { 0 };
        if self.smooth == Span::ZERO {
            self.smooth = rtt.max(Span::from_ns(1));
            self.deviation = 2 * rtt.ns();
            self.added = self.deviation.max(floor);
            self.deviation_max = self.added;
            self.round_end = next;
        } else {
            let (old, new) = (self.smooth.ns(), rtt.ns());
            self.smooth = Span::from_ns((old - old / 8 + new / 8).max(1));
            let off = old.abs_diff(new);
            let grows = off.saturating_sub(self.deviation / 4);
            let falls = (self.deviation / 4).saturating_sub(off);
            // a fall of the round trip must not raise the timeout fast
            let grows = if new < old { grows / 8 } else { grows };
            self.deviation = self.deviation + grows - falls;
            self.deviation_max = self.deviation_max.max(self.deviation);
            self.added = self.added.max(self.deviation_max);
            if una > self.round_end {
                let above = self.added.saturating_sub(self.deviation_max);
                self.added -= above / 4;
                self.round_end = next;
                self.deviation_max = floor;
            }
        }
        let added = if self.min_is_added { self.added } else { self.deviation.max(self.tick.ns()) };
        let timeout = self.smooth + Span::from_ns(added);
        self.timeout = if self.min_is_added { timeout } else { timeout.max(self.min) };
        self.backoff = 0;
    }

    /// After how long to send again.
    pub(crate) fn timeout(&self) -> Span {
        let ns = self.timeout.ns().checked_shl(self.backoff.min(20)).unwrap_or(u64::MAX);
        Span::from_ns(ns).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(spec: &TcpSpec, ms: u64) -> Span {
        let mut rtt = RoundTrip::new(spec);
        (0..200).for_each(|n| rtt.sample(Span::from_ms(ms), n, n));
        rtt.timeout()
    }

    #[test]
    fn a_steady_round_trip_leaves_the_floor() {
        let linux = TcpSpec::preset("linux-now").unwrap();
        let ms = steady(&linux, 100).ns() / 1_000_000;
        assert!((299..=301).contains(&ms), "{ms}");
        let freebsd = TcpSpec::preset("freebsd-4").unwrap();
        assert_eq!(steady(&freebsd, 100), Span::from_secs(1));
    }

    #[test]
    fn it_doubles_up_to_its_bound_and_a_sample_takes_that_back() {
        let spec = TcpSpec::preset("linux-now").unwrap();
        let mut rtt = RoundTrip::new(&spec);
        assert_eq!(rtt.timeout(), Span::from_secs(1));
        rtt.backoff = 2;
        assert_eq!(rtt.timeout(), Span::from_secs(4));
        rtt.backoff = 60;
        assert_eq!(rtt.timeout(), Span::from_secs(120));
        rtt.sample(Span::from_ms(100), 1, 2);
        assert_eq!(rtt.timeout(), Span::from_ms(300));
    }
}
