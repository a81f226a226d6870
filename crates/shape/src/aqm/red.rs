//! Random early detection (Floyd and Jacobson 1993) and its kind with drop precedences. The length
//! of the queue is averaged, so that bursts pass; between `min` and `max` a frame is told with a
//! probability that rises with the average, above that more and more are dropped (gentle; Floyd
//! 2000) or all.
//!
//! Lengths are in bytes, as the policy has them: bytes are delay. The probability does not depend
//! on the size of a frame (RFC 7141 says why). WRED has one average for all colours, so that red
//! frames make room for green ones, and a count per colour: the count spaces drops evenly, and one
//! for all would be reset by the drops of red frames and never come to a green one's turn.

use super::{Arriving, Decision, Depth, FULL_FRAME, Random};
use weir_units::{Bytes, Instant, Rate, Span};

/// Bits behind the point of an average: as many as it may need to move by 2^-20 of a byte.
const POINT: u32 = 24;
/// A queue of more bytes than this counts as one of this (256 GB), so that sums fit.
const MOST: u64 = 1 << 38;
/// One, as a probability.
const ONE: u64 = 1 << 32;
/// The size of a typical frame, for how many come in a second.
const TYPICAL_FRAME: u64 = 1_000;

/// The parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    average: Average,
    curve: Curve,
}

/// The parameters of WRED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wred {
    average: Average,
    curves: [Curve; 3],
}

/// How the average follows the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Average {
    /// A frame moves the average by 2^-shift of the difference.
    shift: u32,
    /// The time of a typical frame: so many could have come while the queue was idle.
    frame_time: Span,
}

/// What a frame can expect at which average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    min: u64,
    max: u64,
    /// Where all are dropped: `max`, or twice that.
    end: u64,
    /// The probability at `max`.
    top: u64,
    /// Probability per byte from `min` to `max`, and from there to `end`, in 2^-64.
    slope: u64,
    end_slope: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    average: u64,
    /// Up to when idle time is in the average.
    idle_since: Instant,
    /// Frames since the last signal, that one included, while the average is above `min`.
    counts: [u32; 3],
}

impl Red {
    /// One curve; each frame moves the average by 2^-`shift`, and `frame_time` is that of a typical
    /// frame on this line.
    #[must_use]
    pub fn new(curve: Curve, shift: u32, frame_time: Span) -> Red {
        Red { average: Average::new(shift, frame_time), curve }
    }

    /// As told where something was said. Else signals begin at 5 ms of queue, the target of CoDel,
    /// but not below five full frames; `max` is three times that and the probability there 10 %, as
    /// Floyd advises (1997); gentle. The average remembers about a second (adaptive RED, 2001).
    #[must_use]
    pub fn for_rate(
        rate: Rate,
        min: Option<Bytes>,
        max: Option<Bytes>,
        millionths: Option<u32>,
    ) -> Red {
        let (min, max) = lengths_for(rate, min, max);
        let curve = Curve::new(min, max, millionths.unwrap_or(100_000), true);
        Red { average: Average::for_rate(rate), curve }
    }

    pub(super) fn arrive(
        &self,
        memory: &mut Memory,
        now: Instant,
        frame: Arriving,
        depth: Depth,
        random: &mut Random,
    ) -> Decision {
        self.average.follow(memory, now, depth);
        self.curve.decide(memory.average, &mut memory.counts[0], frame.can_mark, random)
    }
}

impl Wred {
    /// Curves for green, yellow and red; the rest as in [`Red::new`].
    #[must_use]
    pub fn new(curves: [Curve; 3], shift: u32, frame_time: Span) -> Wred {
        Wred { average: Average::new(shift, frame_time), curves }
    }

    /// The lengths of [`Red::for_rate`], shared out: from `min` to `max` first red frames are told,
    /// in the next third yellow ones, in the last third green ones.
    #[must_use]
    pub fn for_rate(
        rate: Rate,
        min: Option<Bytes>,
        max: Option<Bytes>,
        millionths: Option<u32>,
    ) -> Wred {
        let (min, max) = lengths_for(rate, min, max);
        let third = Bytes::new((max - min).get() / 3);
        let curve = |from, to| Curve::new(from, to, millionths.unwrap_or(100_000), true);
        let (yellow, green) = (min + third, min + third + third);
        let curves = [curve(green, max), curve(yellow, green), curve(min, yellow)];
        Wred { average: Average::for_rate(rate), curves }
    }

    pub(super) fn arrive(
        &self,
        memory: &mut Memory,
        now: Instant,
        frame: Arriving,
        depth: Depth,
        random: &mut Random,
    ) -> Decision {
        self.average.follow(memory, now, depth);
        let colour = usize::from(frame.colour.min(2));
        let (curve, count) = (&self.curves[colour], &mut memory.counts[colour]);
        curve.decide(memory.average, count, frame.can_mark, random)
    }
}

fn lengths_for(rate: Rate, min: Option<Bytes>, max: Option<Bytes>) -> (Bytes, Bytes) {
    let usual = rate.bytes_in(Span::from_ms(5)).max(Bytes::new(5 * FULL_FRAME));
    let min = min.unwrap_or_else(|| max.map_or(usual, |max| Bytes::new(max.get() / 3)));
    (min, max.unwrap_or_else(|| Bytes::new(min.get().saturating_mul(3))))
}

impl Average {
    fn new(shift: u32, frame_time: Span) -> Average {
        Average { shift: shift.min(20), frame_time }
    }

    fn for_rate(rate: Rate) -> Average {
        let frames = rate.bytes_in(Span::from_secs(1)).get() / TYPICAL_FRAME;
        let shift = frames.max(2).ilog2();
        Average::new(shift, rate.time_for(Bytes::new(TYPICAL_FRAME)))
    }

    fn follow(self, memory: &mut Memory, now: Instant, depth: Depth) {
        if depth.frames > 0 {
            let length = depth.bytes.min(MOST) << POINT;
            memory.average =
                memory.average - (memory.average >> self.shift) + (length >> self.shift);
        } else if memory.average > 0 {
            let frame_time = self.frame_time.ns().max(1);
            let frames = now.since(memory.idle_since).ns() / frame_time;
            // what is left of a frame's time counts next time: drops alone must not stop the clock
            memory.idle_since += Span::from_ns(frames * frame_time);
            memory.average = self.decayed(memory.average, frames);
        }
    }

    /// The average after so many frames would have found the queue empty.
    fn decayed(self, average: u64, frames: u64) -> u64 {
        let times = |a: u64, b: u64| {
            #[expect(clippy::cast_possible_truncation, reason = "both are at most 2^63")]
            let product = ((u128::from(a) * u128::from(b)) >> 63) as u64;
            product
        };
        if frames >> self.shift > u64::from(u64::BITS) {
            return 0;
        }
        let (mut average, mut frames) = (average, frames);
        let mut factor = (1 << 63) - ((1 << 63) >> self.shift);
        while frames > 0 {
            if frames & 1 == 1 {
                average = times(average, factor);
            }
            factor = times(factor, factor);
            frames >>= 1;
        }
        average
    }
}

impl Curve {
    /// No signal below an average of `min`, a probability of `millionths` at `max`, and above that
    /// all are dropped; with `gentle` the probability rises to one at twice `max` first.
    #[must_use]
    pub fn new(min: Bytes, max: Bytes, millionths: u32, gentle: bool) -> Curve {
        let min = min.get().min(MOST / 4);
        let max = max.get().clamp(min + 1, MOST / 2);
        let top = u64::from(millionths.min(1_000_000)) * ONE / 1_000_000;
        let slope = |rise: u64, run: u64| (u128::from(rise) << 32) / u128::from(run);
        let fit = |slope: u128| u64::try_from(slope).unwrap_or(u64::MAX);
        Curve {
            min: min << POINT,
            max: max << POINT,
            end: (max << POINT) << u32::from(gentle),
            top,
            slope: fit(slope(top, max - min)),
            end_slope: fit(slope(ONE - top, max)),
        }
    }

    fn decide(
        &self,
        average: u64,
        count: &mut u32,
        can_mark: bool,
        random: &mut Random,
    ) -> Decision {
        if average < self.min {
            *count = 0;
            return Decision::Take;
        }
        if average < self.end && !self.turn(average, count, random) {
            return Decision::Take;
        }
        *count = 1;
        if can_mark && average < self.max { Decision::Mark } else { Decision::Drop }
    }

    /// Whether it is this frame's turn. With a probability of p / (1 - count x p), signals are
    /// evenly 1 to 1/p frames apart, instead of sometimes in a row and sometimes long absent.
    fn turn(&self, average: u64, count: &mut u32, random: &mut Random) -> bool {
        let probability = if average < self.max {
            rise(average - self.min, self.slope)
        } else {
            self.top + rise(average - self.max, self.end_slope)
        };
        let probability = probability.min(ONE - 1);
        let waited = u64::from(*count) * probability;
        *count = count.saturating_add(1);
        waited >= ONE || u64::from(random.next_u32()) * (ONE - waited) < probability << 32
    }
}

fn rise(run: u64, slope: u64) -> u64 {
    let rise = (u128::from(run) * u128::from(slope)) >> (32 + POINT);
    u64::try_from(rise).unwrap_or(ONE).min(ONE)
}

impl Memory {
    pub(super) fn emptied(&mut self, now: Instant) {
        self.idle_since = now;
    }

    pub(super) fn average(&self) -> Bytes {
        Bytes::new(self.average >> POINT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_begin_at_5_ms_of_queue_and_not_below_five_full_frames() {
        let lengths = |mbit: u64, min: Option<u64>, max: Option<u64>| {
            let rate = Rate::from_bps(mbit * 1_000_000);
            let (min, max) = lengths_for(rate, min.map(Bytes::new), max.map(Bytes::new));
            (min.get(), max.get())
        };
        assert_eq!(lengths(100, None, None), (62_500, 187_500));
        // 5 ms of 1 Mbit/s are 625 bytes
        assert_eq!(lengths(1, None, None), (5 * 1_538, 15 * 1_538));
        // what is said counts
        assert_eq!(lengths(100, Some(2_000), None), (2_000, 6_000));
        assert_eq!(lengths(100, None, Some(6_000)), (2_000, 6_000));
        assert_eq!(lengths(100, Some(2_000), Some(3_000)), (2_000, 3_000));
    }

    #[test]
    fn an_average_follows_a_single_byte_on_any_line() {
        // its point has room for no more than 2^-20 of a byte
        for mbit in [1, 10_000, 1_000_000, 10_000_000] {
            let average = Average::for_rate(Rate::from_bps(mbit * 1_000_000));
            let mut memory = Memory::default();
            average.follow(&mut memory, Instant::ZERO, Depth { frames: 1, bytes: 1 });
            assert!(memory.average > 0, "{mbit} Mbit/s");
        }
        assert_eq!(Average::new(40, Span::ZERO), Average::new(20, Span::ZERO));
    }
}
