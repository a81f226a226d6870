//! A rate that must not be passed: like [`weir_units::Pace`], but with a burst and without a
//! division per frame.

use weir_units::{Bytes, Instant, Rate, Span};

/// Nanoseconds per byte with 32 bits behind the point: at 10 Gbit/s the error is below 10^-9.
const FRACTION: u32 = 32;

/// Bytes of a full frame with everything that a link may count.
const FULL_FRAME: u64 = 1_538;

/// The burst of a ceiling where none is told. A node loses what it cannot use while others' frames
/// are on the line: two frames' worth of its own time, or a millisecond, make up for that.
pub(crate) fn usual_burst(rate: Rate) -> Bytes {
    Bytes::new(2 * FULL_FRAME).max(rate.bytes_in(Span::from_ms(1)))
}

/// A rate as the packet path uses it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ceiling {
    ns_per_byte: u64,
    /// How far a clock may lag behind: what one who was silent may send at once.
    burst: Span,
}

/// When someone under a ceiling may send again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    free_at: Instant,
    /// Below one nanosecond.
    remainder: u32,
}

impl Ceiling {
    pub(crate) fn new(rate: Rate, burst: Option<Bytes>) -> Ceiling {
        // one byte at 8 bit/s takes a second; slower is as good as that
        let bits = rate.bps().max(8);
        let ns = (8_000_000_000u128 << FRACTION) / u128::from(bits);
        let burst = rate.time_for(burst.unwrap_or(usual_burst(rate)));
        Ceiling { ns_per_byte: u64::try_from(ns).unwrap_or(u64::MAX), burst }
    }

    /// Sends `bytes`; returns when the next frame may go, if that is not now.
    #[inline]
    pub(crate) fn send(&self, clock: &mut Clock, now: Instant, bytes: u64) -> Option<Instant> {
        let earliest = now - self.burst;
        if clock.free_at < earliest {
            clock.free_at = earliest;
            clock.remainder = 0;
        }
        let time = u128::from(bytes) * u128::from(self.ns_per_byte) + u128::from(clock.remainder);
        #[expect(clippy::cast_possible_truncation, reason = "the bits below the point")]
        {
            clock.remainder = time as u32;
        }
        clock.free_at += Span::from_ns(u64::try_from(time >> FRACTION).unwrap_or(u64::MAX));
        clock.not_before(now)
    }
}

impl Clock {
    /// One that goes on under another ceiling: what was sent in advance, or saved, is as many bytes
    /// as before.
    pub(crate) fn goes_on(&mut self, now: Instant, old: &Ceiling, new: &Ceiling) {
        let scale = |span: Span| {
            let wide = u128::from(span.ns()) * u128::from(new.ns_per_byte);
            Span::from_ns(
                u64::try_from(wide / u128::from(old.ns_per_byte.max(1))).unwrap_or(u64::MAX),
            )
        };
        if old.ns_per_byte == new.ns_per_byte {
            return;
        }
        if self.free_at > now {
            self.free_at = now + scale(self.free_at.since(now));
        } else {
            self.free_at = now - scale(now.since(self.free_at).min(old.burst));
        }
        self.remainder = 0;
    }

    /// One that allows nothing at once.
    pub(crate) fn from(now: Instant) -> Clock {
        Clock { free_at: now, remainder: 0 }
    }

    /// When it is free.
    pub(crate) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// When the next frame may go, if that is not now.
    #[inline]
    pub(crate) fn not_before(&self, now: Instant) -> Option<Instant> {
        (self.free_at > now).then_some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_ns(10_000_000_000);
    const SECOND: Span = Span::from_secs(1);

    fn kbit(rate: u64, burst: u64) -> Ceiling {
        Ceiling::new(Rate::from_bps(1_000 * rate), Some(Bytes::new(burst)))
    }

    #[test]
    fn the_slowest_is_a_byte_a_second() {
        let seconds = |bps| {
            let mut clock = Clock::from(NOW);
            let ceiling = Ceiling::new(Rate::from_bps(bps), None);
            ceiling.send(&mut clock, NOW, 10).expect("is slow").since(NOW).ns() / SECOND.ns()
        };
        assert_eq!([16, 8, 1].map(seconds), [5, 10, 10]);
    }

    #[test]
    fn what_was_saved_is_as_many_bytes_under_another_ceiling_and_no_more_than_the_old_burst() {
        // 1 000 bytes: a second of the old, two of the new
        let (old, new) = (kbit(8, 1_000), kbit(4, 5_000));
        let after = |saved: Span| {
            let mut clock = Clock { free_at: NOW - saved, remainder: 7 };
            clock.goes_on(NOW, &old, &new);
            assert_eq!(clock.remainder, 0);
            NOW.since(clock.free_at)
        };
        assert_eq!(after(Span::from_ms(300)), Span::from_ms(600));
        assert_eq!(after(Span::from_secs(9)), Span::from_secs(2));
        // and a debt stays one
        let mut clock = Clock { free_at: NOW + SECOND, remainder: 0 };
        clock.goes_on(NOW, &old, &new);
        assert_eq!(clock.free_at, NOW + SECOND + SECOND);
    }

    #[test]
    fn nothing_is_forgotten_under_the_same() {
        let mut clock = Clock { free_at: NOW + SECOND, remainder: 7 };
        clock.goes_on(NOW, &kbit(8, 1_000), &kbit(8, 5_000));
        assert_eq!((clock.free_at, clock.remainder), (NOW + SECOND, 7));
    }
}
