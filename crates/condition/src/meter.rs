//! Meters: how a frame relates to what was agreed. Green is within it, yellow beyond, red is more
//! than even that allows. RFC 2697 has one rate and lets unused time count for a second bucket;
//! RFC 2698 has two rates with a bucket each. What is done about a colour is not decided here.
//!
//! A bucket counts in nanobits: bits per second times nanoseconds. The rate brings whole ones in
//! every nanosecond and a frame takes whole ones, so a meter needs no division and no remainder.

use weir_units::limits::POLICE_BURST_BYTES;
use weir_units::{Bytes, Instant, Rate};

/// What a meter says of a frame, from good to bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Colour {
    /// Within what was agreed.
    #[default]
    Green,
    /// Beyond it, but within a second bound.
    Yellow,
    /// Beyond that as well.
    Red,
}

/// What was agreed: the law, its rates and its bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    law: Law,
    rate: u64,
    /// Of the second bucket; 0 where what the first cannot hold fills it.
    peak: u64,
    /// What the buckets hold, in nanobits.
    burst: u64,
    excess: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    SingleRate,
    TwoRates,
}

/// Nanobits of a byte.
const BYTE: u64 = 8 * 1_000_000_000;
/// A frame of more than this counts as one of this, so that products fit; no bucket holds it.
const MOST: u64 = POLICE_BURST_BYTES + 1;

// both buckets of a meter together fit an integer, whatever time brings
const _: () = assert!(POLICE_BURST_BYTES * BYTE < 1 << 63);

impl Terms {
    /// RFC 2697: green within `rate` and `burst`; yellow while there is some of the `excess` burst,
    /// which is filled by what the rate brings when the first bucket is full.
    #[must_use]
    pub fn single_rate(rate: Rate, burst: Bytes, excess: Bytes) -> Terms {
        let (burst, excess) = (nanobits(burst), nanobits(excess));
        Terms { law: Law::SingleRate, rate: rate.bps(), peak: 0, burst, excess }
    }

    /// RFC 2698: green within `rate` and `burst`, yellow within `peak` and its burst.
    #[must_use]
    pub fn two_rates(rate: Rate, burst: Bytes, peak: Rate, peak_burst: Bytes) -> Terms {
        let (burst, excess) = (nanobits(burst), nanobits(peak_burst));
        Terms { law: Law::TwoRates, rate: rate.bps(), peak: peak.bps(), burst, excess }
    }
}

/// A bucket of so many bytes, at most of the bound.
fn nanobits(bytes: Bytes) -> u64 {
    bytes.get().min(POLICE_BURST_BYTES) * BYTE
}

/// The state of one meter: 24 bytes. Its terms lie elsewhere, since many meters share them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Up to when time has filled the buckets.
    filled: Instant,
    committed: u64,
    excess: u64,
}

const _: () = assert!(size_of::<Meter>() == 24);

impl Meter {
    /// A meter with full buckets.
    #[must_use]
    pub const fn full(terms: &Terms) -> Meter {
        Meter { filled: Instant::ZERO, committed: terms.burst, excess: terms.excess }
    }

    /// The colour of a frame that costs `bytes` and came with the colour `came`; a blind meter is
    /// told that all come green. What the frame takes is gone. Never better than `came`.
    #[inline]
    pub fn colour(&mut self, terms: &Terms, now: Instant, bytes: Bytes, came: Colour) -> Colour {
        self.fill(terms, now);
        let cost = bytes.get().min(MOST) * BYTE;
        let is_within = came == Colour::Green && self.committed >= cost;
        let is_covered = came <= Colour::Yellow && self.excess >= cost;
        match terms.law {
            Law::TwoRates if !is_covered => return Colour::Red,
            Law::TwoRates => {
                self.excess -= cost;
                if !is_within {
                    return Colour::Yellow;
                }
            }
            Law::SingleRate if !is_within => {
                self.excess -= if is_covered { cost } else { 0 };
                return if is_covered { Colour::Yellow } else { Colour::Red };
            }
            Law::SingleRate => {}
        }
        self.committed -= cost;
        Colour::Green
    }

    /// What time brings up to `now`.
    #[inline]
    fn fill(&mut self, terms: &Terms, now: Instant) {
        let passed = now.since(self.filled);
        self.filled += passed;
        let ns = passed.ns();
        // a product that does not fit is more than any bucket holds
        let brought = ns.saturating_mul(terms.rate);
        let first = brought.min(terms.burst - self.committed);
        self.committed += first;
        let second = match terms.law {
            Law::SingleRate => brought - first,
            Law::TwoRates => ns.saturating_mul(terms.peak),
        };
        self.excess += second.min(terms.excess - self.excess);
    }

    /// Other terms hold from `now` on. What was saved up stays, as far as the buckets have room for
    /// it; where the law is another, the buckets begin full.
    pub fn change(&mut self, old: &Terms, new: &Terms, now: Instant) {
        if old.law != new.law {
            *self = Meter::full(new);
            return;
        }
        self.fill(old, now);
        self.committed = self.committed.min(new.burst);
        self.excess = self.excess.min(new.excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colours(terms: &Terms, frames: &[(u64, u64)]) -> Vec<Colour> {
        let mut meter = Meter::full(terms);
        let mut one = |&(ms, bytes): &(u64, u64)| {
            let now = Instant::from_ns(ms * 1_000_000);
            meter.colour(terms, now, Bytes::new(bytes), Colour::Green)
        };
        frames.iter().map(&mut one).collect()
    }

    #[test]
    fn one_rate_saves_unused_time_for_the_second_bucket() {
        use Colour::{Green, Red, Yellow};
        // a byte each millisecond
        let terms = Terms::single_rate(Rate::from_bps(8_000), Bytes::new(1_000), Bytes::new(500));
        let frames =
            [(0, 1_000), (0, 500), (0, 1), (100, 100), (100, 1), (2_000, 1_000), (2_000, 500)];
        assert_eq!(colours(&terms, &frames), [Green, Yellow, Red, Green, Red, Green, Yellow]);
        // 100 ms fill the first bucket with 100 bytes, and nothing is left for the second
        let frames = [(0, 100), (0, 1_000), (0, 500), (200, 1), (200, 1_000)];
        assert_eq!(colours(&terms, &frames), [Green, Red, Green, Green, Red]);
    }

    #[test]
    fn two_rates_take_from_both_buckets() {
        use Colour::{Green, Red, Yellow};
        let bytes = Bytes::new;
        let rate = Rate::from_bps;
        let terms = Terms::two_rates(rate(8_000), bytes(1_000), rate(16_000), bytes(1_500));
        let frames = [(0, 1_000), (0, 500), (0, 1), (100, 200), (100, 1), (200, 200), (200, 1)];
        // 100 ms later: 100 and 200 bytes; the frame of 200 is yellow, and at 200 ms green
        assert_eq!(colours(&terms, &frames), [Green, Yellow, Red, Yellow, Red, Green, Red]);
    }

    #[test]
    fn a_frame_above_the_burst_is_never_green() {
        let most = Bytes::new(u64::MAX);
        let terms = Terms::single_rate(Rate::MAX, most, Bytes::ZERO);
        assert_eq!(colours(&terms, &[(0, POLICE_BURST_BYTES + 1)]), [Colour::Red]);
        assert_eq!(colours(&terms, &[(0, POLICE_BURST_BYTES)]), [Colour::Green]);
        assert_eq!(colours(&terms, &[(u64::MAX / 1_000_000, u64::MAX)]), [Colour::Red]);
    }

    #[test]
    fn time_that_went_backwards_is_not_counted_twice() {
        let terms = Terms::single_rate(Rate::from_bps(8_000), Bytes::new(100), Bytes::ZERO);
        let frames = [(1_000, 100), (950, 1), (1_000, 1), (1_001, 1), (900, 1), (1_001, 1)];
        use Colour::{Green, Red};
        assert_eq!(colours(&terms, &frames), [Green, Red, Red, Green, Red, Red]);
    }

    #[test]
    fn other_terms_keep_what_was_saved_up() {
        let terms =
            |rate, burst| Terms::single_rate(Rate::from_bps(rate), Bytes::new(burst), Bytes::ZERO);
        let (slow, fast) = (terms(8_000, 1_000), terms(80_000, 500));
        let mut meter = Meter::full(&slow);
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        assert_eq!(meter.colour(&slow, at(0), Bytes::new(1_000), Colour::Green), Colour::Green);
        // 100 ms at the old rate
        meter.change(&slow, &fast, at(100));
        assert_eq!(meter.colour(&fast, at(100), Bytes::new(101), Colour::Green), Colour::Red);
        assert_eq!(meter.colour(&fast, at(100), Bytes::new(100), Colour::Green), Colour::Green);
    }
}
