//! A rate that carries its remainder: when the last of many frames leaves does not depend on how
//! the bytes were cut into frames.

use crate::{Bytes, Instant, Rate, Span};

/// Bit-nanoseconds of a byte.
const BYTE: u64 = 8 * 1_000_000_000;

/// When a line of a given rate is free again.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: Rate,
    free_at: Instant,
    /// Bit-nanoseconds (bits x 10^9) below one whole nanosecond at this rate.
    remainder: u64,
}

impl Pace {
    /// A line of `rate` that is free from `now` on.
    #[must_use]
    pub const fn new(rate: Rate, now: Instant) -> Self {
        Pace { rate, free_at: now, remainder: 0 }
    }

    /// The rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// From when on the next frame may leave.
    #[must_use]
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Whether a frame may leave at `now`.
    #[must_use]
    pub fn is_free(&self, now: Instant) -> bool {
        self.free_at <= now && self.rate > Rate::ZERO
    }

    /// Nothing was there to be sent until `now`: time before that is gone.
    #[inline]
    pub fn wait(&mut self, now: Instant) {
        if self.free_at < now {
            self.free_at = now;
            self.remainder = 0;
        }
    }

    /// Lets `bytes` leave, starting at `now` or when the line is free, whichever is later.
    pub fn send(&mut self, now: Instant, bytes: Bytes) {
        self.wait(now);
        let rate = self.rate.bps();
        if rate == 0 {
            self.free_at = Instant::MAX;
            return;
        }
        // 512 MiB x 8 x 10^9 is below 2^62: no burst overflows
        let bit_ns = (bytes.get().min(1 << 29) * BYTE).saturating_add(self.remainder);
        self.remainder = bit_ns % rate;
        self.free_at += Span::from_ns(bit_ns / rate);
    }

    /// How much may leave until the line is no longer free at `now`: while less than this has left,
    /// one more frame may. Frames of one moment can so be counted together and sent at once.
    #[must_use]
    pub fn room(&self, now: Instant) -> Bytes {
        if !self.is_free(now) {
            return Bytes::ZERO;
        }
        let bit_ns = now.since(self.free_at).ns().saturating_add(1).saturating_mul(self.rate.bps());
        Bytes::new((bit_ns - self.remainder.min(bit_ns)).div_ceil(BYTE))
    }

    /// Changes the rate from now on. Of what is still on the line, the rest goes at the new rate.
    pub fn set_rate(&mut self, rate: Rate, now: Instant) {
        if self.free_at == Instant::MAX {
            self.free_at = now;
        } else if rate > Rate::ZERO && self.free_at > now {
            let left = u128::from(self.free_at.since(now).ns()) * u128::from(self.rate.bps());
            let left = u64::try_from(left / u128::from(rate.bps())).unwrap_or(u64::MAX);
            self.free_at = now + Span::from_ns(left);
        }
        self.rate = rate;
        self.remainder = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cut_into_frames_does_not_matter(
            sizes in prop::collection::vec(1u64..65_536, 1..200),
            rate in 1_000u64..100_000_000_000,
        ) {
            let rate = Rate::from_bps(rate);
            let mut pace = Pace::new(rate, Instant::ZERO);
            for &size in &sizes {
                pace.send(Instant::ZERO, Bytes::new(size));
            }
            let bits = u128::from(sizes.iter().sum::<u64>()) * 8;
            let exact = bits * 1_000_000_000 / u128::from(rate.bps());
            prop_assert_eq!(u128::from(pace.free_at().ns()), exact);
        }
    }

    proptest! {
        #[test]
        fn frames_of_one_moment_may_be_counted_together(
            sizes in prop::collection::vec(1u64..2_000, 1..100),
            fit in 0usize..100,
            is_too_early in any::<bool>(),
            rate in 1_000u64..100_000_000_000,
        ) {
            let mut one = Pace::new(Rate::from_bps(rate), Instant::ZERO);
            one.send(Instant::ZERO, Bytes::new(sizes[0]));
            // the moment at which the line has just become free behind so many, or is just not
            let mut line = one;
            sizes.iter().take(fit).for_each(|&size| line.send(Instant::ZERO, Bytes::new(size)));
            let now = line.free_at() - Span::from_ns(u64::from(is_too_early && fit > 0));
            let (mut all, room) = (one, one.room(now).get());
            let mut sent = 0;
            for &size in &sizes {
                prop_assert_eq!(one.is_free(now), sent < room);
                if sent < room {
                    one.send(Instant::ZERO, Bytes::new(size));
                    sent += size;
                }
            }
            all.send(Instant::ZERO, Bytes::new(sent));
            prop_assert_eq!((one.free_at, one.remainder), (all.free_at, all.remainder));
        }
    }

    #[test]
    fn what_is_on_the_line_goes_on_at_the_new_rate() {
        let mut pace = Pace::new(Rate::from_bps(1_000), Instant::ZERO);
        pace.send(Instant::ZERO, Bytes::new(125));
        let half = Instant::ZERO + Span::from_ms(500);
        pace.set_rate(Rate::from_bps(5_000), half);
        assert_eq!(pace.free_at(), half + Span::from_ms(100));
    }

    #[test]
    fn a_rate_of_zero_never_frees_until_it_is_changed() {
        let mut pace = Pace::new(Rate::ZERO, Instant::ZERO);
        assert!(!pace.is_free(Instant::from_ns(1)));
        pace.send(Instant::ZERO, Bytes::new(1));
        assert_eq!(pace.free_at(), Instant::MAX);
        pace.set_rate(Rate::from_bps(8), Instant::from_ns(7));
        assert!(pace.is_free(Instant::from_ns(7)));
    }
}
