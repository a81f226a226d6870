//! Controlled delay (Nichols and Jacobson 2012; RFC 8289). A queue that empties now and then is
//! harmless, however long it was; one in which every frame waited longer than `target` for a whole
//! `interval` stands, and its senders are told: once, then sooner and sooner, until it is gone.
//!
//! The RFC drops in a loop while it looks for a frame to send. Here the owner of the queue has the
//! loop and asks about each frame, so what the RFC knows by its place in the loop is remembered in
//! `dropped`. Marks are as in Linux: one per frame that goes, at the times at which another would
//! be dropped.

use super::{Decision, Depth, FULL_FRAME, Leaving, times_for};
use weir_units::{Instant, Rate, Span};

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    target: Span,
    interval: Span,
    mtu: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// When frames will have been late for an interval; zero while they are in time.
    late_at: Instant,
    /// When the next signal is due, while `signals`.
    next: Instant,
    /// Signals since the queue began to stand.
    count: u32,
    /// How many it began with.
    count_at_start: u32,
    signals: bool,
    /// The last frame was dropped: the one after it moves `next`, if that is late too.
    dropped: bool,
}

impl Codel {
    /// As told; `mtu` is the depth in bytes up to which nobody is told anything.
    #[must_use]
    pub const fn new(target: Span, interval: Span, mtu: u32) -> Codel {
        Codel { target, interval, mtu }
    }

    /// Frames with no more bytes than these behind them are never late, however long they waited.
    #[must_use]
    pub const fn sparing(self, bytes: u32) -> Codel {
        Codel { mtu: bytes, ..self }
    }

    /// As told where something was said; else 5 ms and 100 ms, and more where a full frame takes
    /// longer than that at `rate`.
    #[must_use]
    pub fn for_rate(rate: Rate, target: Option<Span>, interval: Option<Span>) -> Codel {
        let (target, interval) = times_for(rate, target, interval);
        #[expect(clippy::cast_possible_truncation, reason = "1 538")]
        Codel::new(target, interval, FULL_FRAME as u32)
    }

    #[inline]
    pub(super) fn leave(
        &self,
        memory: &mut Memory,
        now: Instant,
        frame: Leaving,
        depth: Depth,
    ) -> Decision {
        if now.since(frame.since) < self.target || depth.bytes <= u64::from(self.mtu) {
            memory.late_at = Instant::ZERO;
            (memory.signals, memory.dropped) = (false, false);
            return Decision::Take;
        }
        self.late(memory, now, frame.can_mark)
    }

    /// The frame waited too long, and others wait behind it.
    #[inline(never)]
    fn late(&self, memory: &mut Memory, now: Instant, can_mark: bool) -> Decision {
        let first = memory.late_at == Instant::ZERO;
        if first {
            memory.late_at = now + self.interval;
        }
        if first || now < memory.late_at {
            (memory.signals, memory.dropped) = (false, false);
            return Decision::Take;
        }
        if memory.dropped {
            memory.next += step(self.interval, memory.count);
        }
        memory.dropped = false;
        if !memory.signals {
            self.begin(memory, now);
        } else if now < memory.next {
            return Decision::Take;
        } else {
            memory.count = memory.count.saturating_add(1);
            if can_mark {
                memory.next += step(self.interval, memory.count);
            } else {
                memory.dropped = true;
            }
        }
        if can_mark { Decision::Mark } else { Decision::Drop }
    }

    /// The first signal. A queue that stood a short time ago begins with the pace that it had.
    fn begin(&self, memory: &mut Memory, now: Instant) {
        let recent = Span::from_ns(self.interval.ns().saturating_mul(16));
        let more = memory.count.saturating_sub(memory.count_at_start);
        let again = more > 1 && now.since(memory.next) < recent;
        memory.count = if again { more } else { 1 };
        memory.count_at_start = memory.count;
        memory.next = now + step(self.interval, memory.count);
        memory.signals = true;
    }
}

/// `interval / sqrt(count)`, rounded down: the square root of `interval² / count`, with the lowest
/// bits given up where the square would not fit. It is taken once per signal, not per frame, so
/// that nothing needs to remember an approximation of it.
pub(super) fn step(interval: Span, count: u32) -> Span {
    let shift = (u64::BITS - interval.ns().leading_zeros()).saturating_sub(32);
    let interval = interval.ns() >> shift;
    Span::from_ns((interval * interval / u64::from(count.max(1))).isqrt() << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_shrink_with_the_root_of_the_count() {
        let step = |interval, count| step(Span::from_ns(interval), count).ns();
        assert_eq!(step(100_000_000, 0), 100_000_000);
        assert_eq!(step(100_000_000, 1), 100_000_000);
        assert_eq!(step(100_000_000, 2), 70_710_678);
        assert_eq!(step(100_000_000, 4), 50_000_000);
        assert_eq!(step(100_000_000, 1_000_000), 100_000);
        assert_eq!(step(u64::MAX, 1) >> 32, u64::from(u32::MAX));
        assert_eq!(step(0, u32::MAX), 0);
    }

    #[test]
    fn slow_leaves_have_times_that_a_frame_fits_into() {
        let codel = |bps| Codel::for_rate(Rate::from_bps(bps), None, None);
        assert_eq!(codel(1_000_000_000).target, Span::from_ms(5));
        assert_eq!(codel(1_000_000_000).interval, Span::from_ms(100));
        // 1 538 bytes take 615.2 ms
        assert_eq!(codel(20_000).target, Span::from_us(922_800));
        assert_eq!(codel(20_000).interval, Span::from_us(1_845_600));
        assert_eq!(codel(0).target, Span::MAX);
    }
}
