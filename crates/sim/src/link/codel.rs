//! Controlled delay (RFC 8289): when even the shortest wait of an interval is too long, frames are
//! hit, ever more often until it is not.

use weir_units::{Instant, Span};

/// Controlled delay as plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// How long a frame may wait for ever.
    pub target: Span,
    /// How long it may wait longer than that.
    pub interval: Span,
}

impl Default for Codel {
    fn default() -> Codel {
        Codel { target: Span::from_ms(5), interval: Span::from_ms(100) }
    }
}

/// A queue this short is spared: one full frame.
const SPARED_BYTES: usize = 1_514;

#[derive(Debug)]
pub(crate) struct State {
    codel: Codel,
    /// When the wait will have been too long for an interval.
    above_until: Option<Instant>,
    dropping: bool,
    next: Instant,
    count: u32,
    last_count: u32,
}

impl State {
    pub(crate) fn new(codel: Codel) -> State {
        State {
            codel,
            above_until: None,
            dropping: false,
            next: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// Whether the frame that is to be sent now, having waited so long, is hit.
    pub(crate) fn hits(&mut self, now: Instant, waited: Span, bytes: usize) -> bool {
        let too_long = self.is_too_long(now, waited, bytes);
        if self.dropping {
            if !too_long {
                self.dropping = false;
                return false;
            }
            if now < self.next {
                return false;
            }
            self.count = self.count.saturating_add(1);
            self.next += self.step();
            return true;
        }
        if !too_long {
            return false;
        }
        self.dropping = true;
        // where dropping has just ended, it goes on nearly as fast
        let delta = self.count.saturating_sub(self.last_count);
        let soon = now.since(self.next) < Span::from_ns(16 * self.codel.interval.ns());
        self.count = if soon && delta > 1 { delta } else { 1 };
        self.last_count = self.count;
        self.next = now + self.step();
        true
    }

    fn is_too_long(&mut self, now: Instant, waited: Span, bytes: usize) -> bool {
        if waited < self.codel.target || bytes <= SPARED_BYTES {
            self.above_until = None;
            return false;
        }
        match self.above_until {
            None => {
                self.above_until = Some(now + self.codel.interval);
                false
            }
            Some(until) => now >= until,
        }
    }

    /// The interval by the square root of the count.
    fn step(&self) -> Span {
        crate::random::times(self.codel.interval, 1.0 / f64::from(self.count.max(1)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_come_ever_faster_and_end_with_the_wait() {
        let mut state = State::new(Codel::default());
        let wait = Span::from_ms(20);
        let hits: Vec<u64> = (0..500)
            .filter(|ms| state.hits(Instant::ZERO + Span::from_ms(*ms), wait, 9_999))
            .collect();
        // 100 ms above the target; then 100, 100/sqrt 2, 100/sqrt 3 ... ms apart
        assert_eq!(hits, [100, 200, 271, 329, 379, 424, 464]);
        let at = Instant::ZERO + Span::from_ms(500);
        assert!(!state.hits(at, Span::from_ms(1), 9_999));
    }
}
