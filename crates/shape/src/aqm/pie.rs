//! Proportional integral controller enhanced (RFC 8033). Frames are told with a probability when
//! they come; every `interval` a controller moves it by how far the delay is from the target
//! (integral) and how fast it moves (proportional), in smaller steps while it is small.
//!
//! The delay is how long the last frame that left had waited (RFC 8033, section 4.3, lets frames
//! carry times). There is no timer: whoever comes first after a time at which the controller would
//! have looked makes up for it. Until then nothing it looks at can have changed, so this is the
//! same; except that after `CATCH_UP` times without a frame the rest is only the decay of an idle
//! queue. Frames are dropped alike whatever their size (RFC 7141).

use super::{Arriving, Decision, Depth, FULL_FRAME, Leaving, Random, target_for};
use weir_units::{Instant, Rate, Span};

/// The target and interval that the RFC's gains are for.
const USUAL: u64 = 15_000_000;
/// The RFC's 1/8 and 1 1/4 per second of delay, as 2^-64 per nanosecond.
const ALPHA: u64 = 2_305_843_009;
const BETA: u64 = 23_058_430_092;
/// How long a new burst passes untouched at the usual times.
const BURST: u64 = 150_000_000;

/// Times that are made up for one by one.
const CATCH_UP: u32 = 64;
/// An idle queue's probability is halved in so many times: (1 - 1/64)^44 = 0.5.
const HALVED: u64 = 44;

/// Delays are remembered in 2^10 ns, so that a queue's variables stay small.
const UNIT_BITS: u32 = 10;

/// Below which probability the step is how much smaller (as a shift): RFC 8033, section 4.2 with
/// appendix A.
const TUNING: [(u32, u32); 6] = [
    (part(1_000_000), 11),
    (part(100_000), 9),
    (part(10_000), 7),
    (part(1_000), 5),
    (part(100), 3),
    (part(10), 1),
];

/// The derandomiser's sums are in 2^-28; between these no, maybe, and surely a signal.
const SUM_SHIFT: u32 = 4;
const SUM_MAYBE: u32 = 228_170_138; // 0.85
const SUM_SURELY: u32 = 2_281_701_376; // 8.5

/// The parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pie {
    target: Span,
    interval: Span,
    /// Probability per nanosecond of delay above the target, and of its growth, in 2^-64.
    alpha: u64,
    beta: u64,
    /// How many times the controller looks before a new burst is touched.
    burst: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// When the controller looks next; zero before the first frame.
    due: Instant,
    /// How long the last frame had waited, in units of 1 024 ns.
    delay: u32,
    /// The delay when the controller last looked.
    delay_before: u32,
    /// In 2^-32.
    probability: u32,
    /// What frames since the last signal would have had to expect together.
    sum: u32,
    burst: u16,
}

impl Pie {
    /// As told; an interval below 1 ms is 1 ms. Above a target of 15 ms the controller gets slower
    /// with the queue that it controls: it is the RFC's with time stretched.
    #[must_use]
    pub fn new(target: Span, interval: Span) -> Pie {
        let interval = interval.max(Span::from_ms(1));
        let stretched = u128::from(target.ns().max(USUAL));
        let usual = u128::from(USUAL);
        let fit = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
        let alpha = u128::from(ALPHA) * usual * u128::from(interval.ns()) / stretched / stretched;
        let looks = (u128::from(BURST) * stretched / usual).div_ceil(u128::from(interval.ns()));
        Pie {
            target,
            interval,
            alpha: fit(alpha).min(1 << 56),
            beta: fit(u128::from(BETA) * usual / stretched),
            burst: u16::try_from(looks).unwrap_or(u16::MAX),
        }
    }

    /// As told where something was said; else 15 ms for both, and more where a full frame takes
    /// longer than that at `rate`.
    #[must_use]
    pub fn for_rate(rate: Rate, target: Option<Span>, interval: Option<Span>) -> Pie {
        let usual = Span::from_ns(USUAL);
        let target = target.unwrap_or_else(|| target_for(rate, usual));
        Pie::new(target, interval.unwrap_or_else(|| target.max(usual)))
    }

    pub(super) fn arrive(
        &self,
        memory: &mut Memory,
        now: Instant,
        frame: Arriving,
        depth: Depth,
        random: &mut Random,
    ) -> Decision {
        self.look(memory, now);
        let half = units(self.target) / 2;
        let calm = memory.delay_before < half;
        if memory.probability == 0 && memory.delay < half && calm {
            memory.burst = self.burst;
        }
        if memory.burst > 0
            || (calm && memory.probability < part(5))
            || depth.bytes <= 2 * FULL_FRAME
            || !memory.turn(random)
        {
            return Decision::Take;
        }
        memory.sum = 0;
        if frame.can_mark && memory.probability < part(10) {
            Decision::Mark
        } else {
            Decision::Drop
        }
    }

    #[inline(never)]
    pub(super) fn leave(
        &self,
        memory: &mut Memory,
        now: Instant,
        frame: Leaving,
        depth: Depth,
    ) -> Decision {
        self.look(memory, now);
        memory.delay = if depth.frames == 0 { 0 } else { units(now.since(frame.since)) };
        Decision::Take
    }

    pub(super) fn emptied(&self, memory: &mut Memory, now: Instant) {
        self.look(memory, now);
        memory.delay = 0;
    }

    /// Makes up for every time at which the controller should have looked.
    #[inline]
    fn look(&self, memory: &mut Memory, now: Instant) {
        if now >= memory.due {
            self.look_now(memory, now);
        }
    }

    fn look_now(&self, memory: &mut Memory, now: Instant) {
        if memory.due == Instant::ZERO {
            memory.due = now + self.interval;
            return;
        }
        for _ in 0..CATCH_UP {
            if now < memory.due || memory.is_calm() {
                break;
            }
            self.control(memory);
            memory.due += self.interval;
        }
        if now >= memory.due {
            let missed = now.since(memory.due).ns() / self.interval.ns() + 1;
            if memory.delay == 0 {
                let halvings = u32::try_from(missed / HALVED).unwrap_or(u32::MAX);
                memory.probability = memory.probability.checked_shr(halvings).unwrap_or(0);
            }
            memory.burst = memory.burst.saturating_sub(u16::try_from(missed).unwrap_or(u16::MAX));
            memory.due += Span::from_ns(self.interval.ns().saturating_mul(missed));
        }
    }

    /// One step of the controller.
    fn control(&self, memory: &mut Memory) {
        let ns = |units: u32| i128::from(units) << UNIT_BITS;
        let (delay, before) = (ns(memory.delay), ns(memory.delay_before));
        let mut change = i128::from(self.alpha) * (delay - i128::from(self.target.ns()))
            + i128::from(self.beta) * (delay - before);
        if let Some((_, shift)) = TUNING.iter().find(|(below, _)| memory.probability < *below) {
            change /= 1 << shift;
        }
        change /= 1 << 32;
        if memory.probability >= part(10) {
            change = change.min(i128::from(part(50)));
        }
        let probability = (i128::from(memory.probability) + change).clamp(0, u32::MAX.into());
        memory.probability = u32::try_from(probability).unwrap_or(u32::MAX);
        if memory.delay == 0 && memory.delay_before == 0 {
            memory.probability -= memory.probability.div_ceil(64);
        }
        memory.delay_before = memory.delay;
        memory.burst = memory.burst.saturating_sub(1);
    }
}

impl Memory {
    /// Whether it is this frame's turn, with a bound on how near and how far apart turns are.
    fn turn(&mut self, random: &mut Random) -> bool {
        if self.probability == 0 {
            self.sum = 0;
        }
        self.sum = self.sum.saturating_add(self.probability >> SUM_SHIFT);
        self.sum >= SUM_SURELY || (self.sum >= SUM_MAYBE && random.next_u32() < self.probability)
    }

    /// Nothing would change however often the controller looked, but for the burst.
    fn is_calm(&self) -> bool {
        self.probability == 0 && self.delay == 0 && self.delay_before == 0
    }

    pub(super) fn overflow(&mut self) {
        self.sum = 0;
    }

    pub(super) fn probability(&self) -> u32 {
        self.probability
    }
}

/// A delay as it is remembered: rounded up, since only an empty queue has none.
fn units(delay: Span) -> u32 {
    let units = delay.ns().saturating_add((1 << UNIT_BITS) - 1) >> UNIT_BITS;
    u32::try_from(units).unwrap_or(u32::MAX)
}

/// One part of so many, as a probability in 2^-32: below it is what is below this, rounded up.
const fn part(of: u32) -> u32 {
    u32::MAX / of + 1
}
