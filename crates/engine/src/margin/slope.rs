//! What a line carries, by how fast the queue before it grows or sinks. A packet that finds a queue
//! of 10 ms leaves the line 10 ms later. So what left weir between two packets is what the line
//! carried between their ends: in the time between them, and as much longer as the queue has grown.
//!
//! Acknowledgements say the same, but in lumps, and too little while another bottleneck behind the
//! line holds data back. The slope does not depend on them while more than half of the hosts are
//! not behind that other bottleneck.

use weir_units::{Instant, Rate, Span};

use super::window::rate_of;
use crate::watch::RoundTrip;

/// The queue before a line while it stands.
#[derive(Clone, Debug)]
pub(super) struct Slope {
    /// What had left in all at some moments, as it counts on the line; the latest last.
    left: [(Instant, u64); LOOKS],
    readings: [Reading; READINGS],
    count: usize,
}

/// What found a queue so long, and what had left before it.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at: Instant,
    queue: Span,
    left: u64,
}

/// Three seconds of the live cadence.
const LOOKS: usize = 32;
const READINGS: usize = 12;
/// The fewest readings, and the shortest time, that say something.
const FEW: usize = 3;
const LEAST: Span = Span::from_ms(250);
/// A queue that is no longer than this and a frame may be none; a longer one than that is heard
/// of too late.
const SHORTEST: Span = Span::from_ms(1);
const LONGEST: Span = Span::from_ms(800);
/// Where the latest readings differ by more than this from all, the line is another one.
const SAME: u32 = 60_000;

impl Slope {
    pub(super) fn new() -> Slope {
        Slope {
            left: [(Instant::ZERO, 0); LOOKS],
            readings: [Reading::default(); READINGS],
            count: 0,
        }
    }

    /// So much has left in all until now.
    pub(super) fn leaves(&mut self, now: Instant, left: u64) {
        self.left.rotate_left(1);
        self.left[LOOKS - 1] = (now, left);
    }

    /// Somebody has said how long ways are; `frame`: the time for one.
    pub(super) fn hears(&mut self, trip: &RoundTrip, frame: Span) {
        // those that answered in the interval had left one way before its middle
        let half = Span::from_ns(RoundTrip::INTERVAL.ns() / 2);
        let at = trip.until - half - trip.mean;
        let stands = trip.raised >= SHORTEST + Span::from_ns(frame.ns() / 2);
        match self.left_at(at).filter(|_| stands && trip.raised <= LONGEST) {
            Some(left) => self.add(Reading { at, queue: trip.raised, left }),
            None => self.ends(),
        }
    }

    /// There is no queue, or it is another one.
    pub(super) fn ends(&mut self) {
        self.count = 0;
    }

    /// What the line has carried while the queue stood.
    pub(super) fn line(&self) -> Option<Rate> {
        let readings = &self.readings[..self.count];
        let lasted = readings.last()?.at.since(readings.first()?.at);
        self.from(0).filter(|_| lasted >= LEAST)
    }

    fn add(&mut self, reading: Reading) {
        let latest = self.readings[..self.count].last();
        if latest.is_some_and(|latest| latest.at >= reading.at) {
            return;
        }
        if self.count == READINGS {
            self.readings.rotate_left(1);
            self.count -= 1;
        }
        self.readings[self.count] = reading;
        self.count += 1;
        let few = self.count.saturating_sub(FEW);
        if let (Some(all), Some(latest)) = (self.from(0), self.from(few))
            && (latest < all.minus(all.part(SAME)) || latest > all.plus(all.part(SAME)))
        {
            self.readings.copy_within(few..self.count, 0);
            self.count = FEW;
        }
    }

    /// What the line has carried since one of the readings.
    fn from(&self, first: usize) -> Option<Rate> {
        let readings = &self.readings[first..self.count];
        let (first, last) = (readings.first()?, readings.last()?);
        let lasted = last.at.since(first.at);
        let carried_in = (lasted + last.queue).ns().checked_sub(first.queue.ns())?;
        // a queue that sinks faster than that was not this line's
        let is_plain = readings.len() >= FEW && carried_in >= lasted.ns() / 2;
        let left = last.left.saturating_sub(first.left);
        is_plain.then(|| rate_of(left, Span::from_ns(carried_in)))
    }

    /// What had left at a moment between two looks.
    fn left_at(&self, at: Instant) -> Option<u64> {
        let behind = self.left.iter().position(|(then, _)| *then >= at)?;
        let (to, after) = self.left[behind];
        let (from, before) = *self.left.get(behind.checked_sub(1)?)?;
        if from == Instant::ZERO {
            return None;
        }
        let (part, all) = (at.since(from).ns(), to.since(from).ns().max(1));
        let more = u128::from(after.saturating_sub(before)) * u128::from(part) / u128::from(all);
        Some(before + u64::try_from(more).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line before which a queue grows or sinks, looked at every 100 ms; what is heard of it came
    /// from 40 ms away.
    struct Line {
        slope: Slope,
        now: Instant,
        left: u64,
        /// The queue in bytes, now and at the last looks.
        queue: Vec<u64>,
    }

    const AWAY: Span = Span::from_ms(40);
    const FRAME: Span = Span::from_ms(1);

    impl Line {
        fn new() -> Line {
            Line { slope: Slope::new(), now: Instant::from_ns(1), left: 0, queue: vec![0] }
        }

        /// For a tenth of a second `bps` leave, and the line carries `line`.
        fn run(&mut self, bps: u64, line: u64) {
            for _ in 0..10 {
                self.now += Span::from_ms(10);
                self.left += bps / 800;
                let queue = self.queue.last().copied().unwrap_or(0);
                self.queue.push((queue + bps / 800).saturating_sub(line / 800));
            }
            self.slope.leaves(self.now, self.left);
        }

        /// What left 100 ms ago is heard of: how long it had waited.
        fn hear(&mut self, line: u64) {
            let queue = self.queue[self.queue.len() - 11];
            let raised = Span::from_ns(queue * 8_000_000_000 / line);
            let at = self.now - Span::from_ms(100);
            let half = Span::from_ns(RoundTrip::INTERVAL.ns() / 2);
            let mean = AWAY + raised;
            let trip = RoundTrip { until: at + mean + half, mean, raised, ..RoundTrip::default() };
            self.slope.hears(&trip, FRAME);
        }

        /// Whether that is said to half a per cent.
        fn is_about(&self, bps: u64) -> bool {
            self.slope.line().is_some_and(|line| line.bps().abs_diff(bps) * 200 <= bps)
        }
    }

    #[test]
    fn a_queue_that_grows_and_then_sinks_tells_the_same_line() {
        let mut line = Line::new();
        for _ in 0..8 {
            line.run(11_000_000, 10_000_000);
            line.hear(10_000_000);
        }
        assert!(line.is_about(10_000_000), "{:?}", line.slope.line());
        for _ in 0..5 {
            line.run(9_000_000, 10_000_000);
            line.hear(10_000_000);
        }
        assert!(line.is_about(10_000_000), "{:?}", line.slope.line());
    }

    #[test]
    fn another_line_is_known_after_three_readings() {
        let mut line = Line::new();
        for _ in 0..5 {
            line.run(10_500_000, 10_000_000);
            line.hear(10_000_000);
        }
        for _ in 0..5 {
            line.run(9_000_000, 8_000_000);
            line.hear(8_000_000);
        }
        // one of three may be from before; all of them together would say 8.8
        let found = line.slope.line().expect("has readings").bps();
        assert!((8_000_000..8_300_000).contains(&found), "{found}");
    }

    #[test]
    fn two_readings_or_a_short_time_say_nothing() {
        let mut line = Line::new();
        for _ in 0..5 {
            line.run(12_000_000, 10_000_000);
            line.hear(10_000_000);
        }
        // before two looks nobody knows what left, and the three others are two tenths apart
        assert_eq!(line.slope.line(), None);
        line.run(12_000_000, 10_000_000);
        line.hear(10_000_000);
        assert!(line.is_about(10_000_000), "{:?}", line.slope.line());
    }

    #[test]
    fn without_a_queue_nothing_is_said() {
        let mut line = Line::new();
        for _ in 0..8 {
            line.run(11_000_000, 10_000_000);
            line.hear(10_000_000);
        }
        line.slope.hears(&RoundTrip { until: line.now, ..RoundTrip::default() }, FRAME);
        assert_eq!(line.slope.line(), None);
    }

    #[test]
    fn of_a_queue_that_sinks_faster_than_the_line_can_carry_nothing_is_concluded() {
        let mut slope = Slope::new();
        for n in 1..=20 {
            slope.leaves(Instant::from_ns(n * 100_000_000), n * 100_000);
        }
        let half = Span::from_ns(RoundTrip::INTERVAL.ns() / 2);
        for (n, raised) in [(8, 700), (9, 620), (10, 540), (11, 460)] {
            let mean = Span::from_ms(40);
            let until = Instant::from_ns(n * 100_000_000) + half + mean;
            let raised = Span::from_ms(raised);
            slope.hears(&RoundTrip { until, mean, raised, ..RoundTrip::default() }, FRAME);
        }
        assert_eq!(slope.line(), None);
    }

    #[test]
    fn what_is_heard_twice_counts_once() {
        let mut line = Line::new();
        for _ in 0..3 {
            line.run(12_000_000, 10_000_000);
            line.hear(10_000_000);
        }
        (0..3).for_each(|_| line.run(12_000_000, 10_000_000));
        (0..2).for_each(|_| line.hear(10_000_000));
        // two readings, four tenths apart
        assert_eq!(line.slope.line(), None);
    }

    #[test]
    fn what_left_is_known_for_three_seconds() {
        for (away, knows) in [(2_900, true), (3_100, false)] {
            let mut slope = Slope::new();
            for n in 1..=60 {
                slope.leaves(Instant::from_ns(n * 100_000_000), n * 125_000);
                // 10 Mbit/s leave, and as much is carried: the queue stays
                let until = Instant::from_ns(n * 100_000_000);
                let mean = Span::from_ms(away);
                let raised = Span::from_ms(20);
                slope.hears(&RoundTrip { until, mean, raised, ..RoundTrip::default() }, FRAME);
            }
            let line = knows.then_some(Rate::from_bps(10_000_000));
            assert_eq!(slope.line(), line, "{away} ms away");
        }
    }
}
