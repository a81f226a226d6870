//! CoDel and BLUE alternate (COBALT, of CAKE; Palmei and others 2019). For senders that listen,
//! CoDel with a difference: while nobody is late the count goes down as fast as it would have gone
//! up, instead of being dropped or kept whole. For senders that do not, BLUE (Feng and others
//! 2002): a drop probability that rises when the queue overflows and falls when it is found empty.
//! BLUE drops frames that can be marked, too. The last frame of a queue is never dropped.
//!
//! CAKE lets nobody be late who waited less than four frame times, or two for each connection that
//! sends; that is what a queue of its own may hold, and `sparing` says so in bytes. Left out: that
//! there the first late frame after a silence makes the next signal due at once.

use super::{Decision, Depth, Leaving, Random, codel::step, times_for};
use weir_units::{Instant, Rate, Span};

/// By how much BLUE's probability rises and falls, in 2^-32: 1/256 and 1/4096, as in CAKE.
const BLUE_UP: u32 = 1 << 24;
const BLUE_DOWN: u32 = 1 << 20;

/// Steps of forgetting that are computed one by one before the rest is computed at once.
const STEPS: u32 = 64;

/// The parameters of COBALT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cobalt {
    target: Span,
    interval: Span,
    spared: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// When the next signal is due, or the next one is forgotten.
    next: Instant,
    /// When BLUE last moved.
    blue_at: Instant,
    /// Signals that are not forgotten.
    count: u32,
    /// BLUE's probability in 2^-32.
    blue: u32,
    /// The last frame was late.
    late: bool,
}

impl Cobalt {
    /// As told.
    #[must_use]
    pub const fn new(target: Span, interval: Span) -> Cobalt {
        Cobalt { target, interval, spared: 0 }
    }

    /// Frames with no more bytes than these behind them are never late, however long they waited.
    #[must_use]
    pub const fn sparing(self, bytes: u32) -> Cobalt {
        Cobalt { spared: bytes, ..self }
    }

    /// As told where something was said; else as [`super::Codel::for_rate`].
    #[must_use]
    pub fn for_rate(rate: Rate, target: Option<Span>, interval: Option<Span>) -> Cobalt {
        let (target, interval) = times_for(rate, target, interval);
        Cobalt::new(target, interval)
    }

    #[inline(never)]
    pub(super) fn leave(
        &self,
        memory: &mut Memory,
        now: Instant,
        frame: Leaving,
        depth: Depth,
        random: &mut Random,
    ) -> Decision {
        let due = memory.count > 0 && now >= memory.next;
        let waited = now.since(frame.since);
        let late = waited > self.target && depth.bytes >= u64::from(self.spared);
        if late && !memory.late {
            memory.next = now + step(self.interval, memory.count);
            memory.count = memory.count.max(1);
        }
        memory.late = late;
        let mut fate = Decision::Take;
        if due && late {
            memory.count = memory.count.saturating_add(1);
            memory.next += step(self.interval, memory.count);
            fate = if frame.can_mark { Decision::Mark } else { Decision::Drop };
        } else if due {
            self.forget(memory, now);
        }
        if memory.blue > 0 && random.next_u32() < memory.blue {
            fate = Decision::Drop;
        }
        if memory.count == 0 {
            memory.next = now + self.interval;
        } else if fate != Decision::Drop {
            memory.next = memory.next.max(now);
        }
        if fate == Decision::Drop && depth.frames == 0 { Decision::Take } else { fate }
    }

    pub(super) fn overflow(&self, memory: &mut Memory, now: Instant) {
        if now.since(memory.blue_at) > self.target {
            memory.blue = memory.blue.saturating_add(BLUE_UP);
            memory.blue_at = now;
        }
        memory.late = true;
        memory.next = now;
        memory.count = memory.count.max(1);
    }

    pub(super) fn emptied(&self, memory: &mut Memory, now: Instant) {
        if memory.blue > 0 && now.since(memory.blue_at) > self.target {
            memory.blue = memory.blue.saturating_sub(BLUE_DOWN);
            memory.blue_at = now;
        }
        memory.late = false;
        if memory.count > 0 && now >= memory.next {
            self.forget_one(memory);
        }
    }

    /// Forgets a signal for every time that has passed at which one was due and nobody was late.
    fn forget(&self, memory: &mut Memory, now: Instant) {
        let mut steps = 0;
        while memory.count > 0 && now >= memory.next {
            if steps == STEPS {
                return self.forget_at_once(memory, now);
            }
            self.forget_one(memory);
            steps += 1;
        }
    }

    fn forget_at_once(&self, memory: &mut Memory, now: Instant) {
        // the steps sum up to twice the interval for each one that the root of the count loses
        let root = (u64::from(memory.count) << 32).isqrt();
        let quiet = (now.since(memory.next).ns() >> 1).min(u64::MAX >> 16) << 16;
        let left = root.saturating_sub(quiet / self.interval.ns().max(1));
        memory.count = u32::try_from((left * left) >> 32).unwrap_or(u32::MAX);
        memory.next = now + step(self.interval, memory.count);
    }

    fn forget_one(&self, memory: &mut Memory) {
        memory.count -= 1;
        memory.next += step(self.interval, memory.count);
    }
}

impl Memory {
    pub(super) fn probability(&self) -> u32 {
        self.blue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgetting_at_once_comes_to_the_same_as_step_by_step() {
        let interval = Span::from_ms(100);
        let cobalt = Cobalt::new(Span::from_ms(5), interval);
        for count in [65, 100, 1_000, 50_000] {
            for quiet_ms in [1, 50, 300, 1_000, 3_000, 20_000] {
                let now = Instant::ZERO + Span::from_ms(quiet_ms);
                let fresh = Memory { count, ..Memory::default() };
                let (mut once, mut steps) = (fresh, fresh);
                cobalt.forget(&mut once, now);
                while steps.count > 0 && now >= steps.next {
                    cobalt.forget_one(&mut steps);
                }
                // the integral is off by less than a term of the sum at each end
                let differ = once.count.abs_diff(steps.count);
                assert!(differ <= 2, "{count} {quiet_ms}: {once:?} {steps:?}");
            }
        }
    }
}
