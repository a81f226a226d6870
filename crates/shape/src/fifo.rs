//! One queue at one rate: frames leave in the order they came, the next one when the line is free.

use weir_packet::{Frame, Label, Reason};
use weir_units::{Instant, Pace, Rate, Span};

use crate::Link;

/// How late a caller may poll without the line losing time; also the burst a late caller can make.
const CATCH_UP: Span = Span::from_ms(1);

/// A frame that waits.
#[derive(Debug)]
pub struct Waiting {
    /// The frame.
    pub frame: Frame,
    /// What is known about it.
    pub label: Label,
    /// When it came.
    pub since: Instant,
}

/// A queue of fixed size in front of a line.
#[derive(Debug)]
pub struct Fifo {
    ring: Box<[Option<Waiting>]>,
    first: usize,
    waiting: usize,
    pace: Pace,
    link: Link,
}

impl Fifo {
    /// A queue of at most `frames` frames (at least one) in front of a line of `rate`.
    #[must_use]
    pub fn new(frames: usize, rate: Rate, link: Link, now: Instant) -> Self {
        let ring = (0..frames.max(1)).map(|_| None).collect();
        Fifo { ring, first: 0, waiting: 0, pace: Pace::new(rate, now), link }
    }

    /// Puts a frame behind the others.
    ///
    /// # Errors
    /// The queue is full: the frame comes back.
    pub fn push(
        &mut self,
        now: Instant,
        frame: Frame,
        label: Label,
    ) -> Result<(), (Frame, Reason)> {
        if self.waiting == self.ring.len() {
            return Err((frame, Reason::QueueFull));
        }
        let mut at = self.first + self.waiting;
        if at >= self.ring.len() {
            at -= self.ring.len();
        }
        self.ring[at] = Some(Waiting { frame, label, since: now });
        self.waiting += 1;
        Ok(())
    }

    /// Takes the first frame if the line is free at `now`.
    pub fn pop(&mut self, now: Instant) -> Option<Waiting> {
        if self.waiting == 0 || !self.pace.is_free(now) {
            return None;
        }
        let first = self.take()?;
        // a caller that polls late loses no time, up to a bound that keeps the burst small; and no
        // frame leaves before it came
        let start = self.pace.free_at().max(first.since).max(now - CATCH_UP);
        self.pace.send(start, self.link.cost(first.frame.len(), first.label.net_at));
        Some(first)
    }

    /// Takes the first frame whatever the line does, to empty the queue.
    pub fn take(&mut self) -> Option<Waiting> {
        let first = self.ring[self.first].take()?;
        self.first = if self.first + 1 == self.ring.len() { 0 } else { self.first + 1 };
        self.waiting -= 1;
        Some(first)
    }

    /// Changes the line from now on.
    pub fn set_line(&mut self, now: Instant, rate: Rate, link: Link) {
        self.set_rate(now, rate);
        self.link = link;
    }

    /// Changes the rate from now on.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.pace.set_rate(rate, now);
    }

    /// Everything that waits, first to last, to be given another label.
    pub fn labels_mut(&mut self) -> impl Iterator<Item = (usize, &mut Label)> {
        self.ring.iter_mut().flatten().map(|w| (w.frame.len(), &mut w.label))
    }

    /// When the next frame may leave; `None` while nothing waits or the line carries nothing.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        (self.waiting > 0 && self.pace.rate() > Rate::ZERO).then(|| self.pace.free_at())
    }

    /// How many frames wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.waiting
    }

    /// Whether nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The rate of the line.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.pace.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_packet::{Headers, Pool, Side};

    fn label() -> Label {
        Label::new(Side::Lan, &Headers::EMPTY)
    }

    #[test]
    fn a_full_queue_gives_the_frame_back() {
        let mut pool = Pool::new(4, 100);
        let line = Link::default();
        let mut fifo = Fifo::new(2, Rate::from_bps(8_000), line, Instant::ZERO);
        for _ in 0..2 {
            fifo.push(Instant::ZERO, pool.fill(&[0; 96]).unwrap(), label()).unwrap();
        }
        let third = pool.fill(&[0; 96]).unwrap();
        let (third, why) = fifo.push(Instant::ZERO, third, label()).unwrap_err();
        assert_eq!(why, Reason::QueueFull);
        pool.give(third);
        // 100 bytes at 8 kbit/s take 100 ms
        assert!(fifo.pop(Instant::ZERO).is_some());
        assert!(fifo.pop(Instant::ZERO + Span::from_ms(99)).is_none());
        assert_eq!(fifo.next_at(), Some(Instant::ZERO + Span::from_ms(100)));
        assert!(fifo.pop(Instant::ZERO + Span::from_ms(100)).is_some());
        assert_eq!(fifo.next_at(), None);
    }

    #[test]
    fn a_caller_that_slept_makes_no_burst_beyond_the_bound() {
        let mut pool = Pool::new(64, 1514);
        // 64 bytes at 512 kbit/s take 1 ms
        let mut fifo = Fifo::new(64, Rate::from_bps(512_000), Link::default(), Instant::ZERO);
        for _ in 0..20 {
            fifo.push(Instant::ZERO, pool.fill(&[0; 60]).unwrap(), label()).unwrap();
        }
        let late = Instant::ZERO + Span::from_ms(10);
        let burst = std::iter::from_fn(|| fifo.pop(late)).count();
        assert_eq!(burst, 2, "1 ms of catching up and the frame that is due");
    }

    proptest! {
        /// However the caller polls, no window carries more than the rate and one frame, and a
        /// caller that polls at `next_at` loses no time.
        #[test]
        fn the_rate_is_kept_and_used(
            sizes in prop::collection::vec(60usize..1514, 1..60),
            rate in 10_000u64..10_000_000_000,
        ) {
            let mut pool = Pool::new(64, 1514);
            let line = Link::default();
            let rate = Rate::from_bps(rate);
            let mut fifo = Fifo::new(64, rate, line, Instant::ZERO);
            for &size in &sizes {
                let frame = pool.take().unwrap();
                let mut frame = frame;
                prop_assert!(pool.resize(&mut frame, 0, size));
                prop_assert!(fifo.push(Instant::ZERO, frame, label()).is_ok());
            }
            let mut now = Instant::ZERO;
            let mut bytes = 0u128;
            let mut order = Vec::new();
            while let Some(at) = fifo.next_at() {
                now = now.max(at);
                // whole nanoseconds: the frame may leave up to one before its exact moment
                let exact = bytes * 8 * 1_000_000_000 / u128::from(rate.bps());
                prop_assert_eq!(u128::from(now.ns()), exact);
                let waiting = fifo.pop(now).unwrap();
                bytes += u128::from(line.cost(waiting.frame.len(), 0).get());
                order.push(waiting.frame.len());
                pool.give(waiting.frame);
            }
            prop_assert_eq!(order, sizes);
            prop_assert_eq!(pool.free(), 64);
        }
    }
}
