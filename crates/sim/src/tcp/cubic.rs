//! CUBIC (RFC 9438) in integers: windows in segments, time in 1/1024 s, C = 0.4, beta = 0.7. Slow
//! start ends early when the round trip rises (the delay half of HyStart).

use weir_units::{Instant, Span};

/// beta = 0.7, in parts of 1024.
const BETA: u64 = 717;
/// C = 0.4, in parts of 1024.
const C: u64 = 410;
/// HyStart watches windows of at least so many segments.
const HYSTART_WINDOW: u32 = 16;
const HYSTART_SAMPLES: u32 = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// The window before the last loss, less what faster flows should get.
    last_max: u64,
    origin: u64,
    /// How long the curve takes to the origin, in 1/1024 s.
    k: u64,
    epoch: Option<Instant>,
    acks: u64,
    /// The window that Reno would have.
    reno: u64,
    last: Option<(Instant, u32)>,
    count: u64,
    delay_min: Option<Span>,
    /// The round of HyStart: its end, the least round trip in it, and how many were seen.
    round: (u64, Span, u32),
}

impl Cubic {
    /// The window to go on with after a loss.
    pub(crate) fn after_loss(&mut self, window: u32) -> u32 {
        self.epoch = None;
        let window = u64::from(window);
        self.last_max =
            if window < self.last_max { window * (1_024 + BETA) / 2_048 } else { window };
        u32::try_from(window * BETA / 1_024).unwrap_or(u32::MAX).max(2)
    }

    /// After a timeout nothing is known any more.
    pub(crate) fn forget(&mut self) {
        *self = Cubic::default();
    }

    /// How many acknowledged segments raise the window by one.
    pub(crate) fn step(&mut self, now: Instant, window: u32, acked: u32) -> u32 {
        self.acks += u64::from(acked);
        let same = self
            .last
            .is_some_and(|(at, then)| then == window && now.since(at) <= Span::from_us(31_250));
        if !same {
            self.last = Some((now, window));
            self.curve(now, u64::from(window), u64::from(acked));
        }
        let count = self.as_fast_as_reno(u64::from(window));
        u32::try_from(count.max(2)).unwrap_or(u32::MAX)
    }

    fn curve(&mut self, now: Instant, window: u64, acked: u64) {
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.acks = acked;
            self.reno = window;
            self.origin = self.last_max.max(window);
            self.k = cube_root(((self.origin - window) << 40) / C);
            now
        });
        let t = ticks(now.since(epoch) + self.delay_min.unwrap_or_default());
        let off = u128::from(t.abs_diff(self.k).min(1 << 24));
        let delta = u64::try_from((u128::from(C) * off * off * off) >> 40).unwrap_or(u64::MAX);
        let target = if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.count = if target > window { window / (target - window) } else { 100 * window };
        if self.last_max == 0 {
            self.count = self.count.min(20);
        }
    }

    fn as_fast_as_reno(&mut self, window: u64) -> u64 {
        // 3 (1 - beta) / (1 + beta) per round trip
        let per_step = ((window * 15) >> 3).max(1);
        self.reno += self.acks / per_step;
        self.acks %= per_step;
        if self.reno > window { self.count.min(window / (self.reno - window)) } else { self.count }
    }

    /// A round trip in slow start; says whether to end it.
    pub(crate) fn slow_start_ends(&mut self, rtt: Span, window: u32, una: u64, next: u64) -> bool {
        let least = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(least);
        if una > self.round.0 || self.round.2 == 0 {
            self.round = (next, rtt, 1);
        } else if self.round.2 < HYSTART_SAMPLES {
            self.round = (self.round.0, self.round.1.min(rtt), self.round.2 + 1);
        }
        let slack = (least.ns() / 8).clamp(4_000_000, 16_000_000);
        window >= HYSTART_WINDOW
            && self.round.2 >= HYSTART_SAMPLES
            && self.round.1.ns() > least.ns() + slack
    }
}

/// In 1/1024 s.
fn ticks(span: Span) -> u64 {
    u64::try_from(u128::from(span.ns()) * 1_024 / 1_000_000_000).unwrap_or(u64::MAX)
}

/// The largest number whose cube is not above `x`.
fn cube_root(x: u64) -> u64 {
    let mut root = 0_u64;
    for bit in (0..22).rev() {
        let next = root | (1 << bit);
        if u128::from(next).pow(3) <= u128::from(x) {
            root = next;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_exact() {
        for x in [0, 1, 7, 8, 26, 27, 1_000_000, 999_999] {
            let root = cube_root(x);
            assert!(root.pow(3) <= x && (root + 1).pow(3) > x, "{x}");
        }
    }

    #[test]
    fn it_is_back_at_its_old_window_after_k() {
        let mut cubic = Cubic::default();
        let mut window = cubic.after_loss(100);
        assert_eq!(window, 70);
        // K = cbrt(30 / 0.4) = 4.2 s; round trips of 200 ms, so that Reno's share is behind
        let (mut now, mut credit) = (Instant::ZERO, 0);
        let mut at_k = 0;
        for round in 0..40 {
            let acks = window;
            for _ in 0..acks {
                credit += 1;
                let step = cubic.step(now, window, 1);
                if credit >= step {
                    credit = 0;
                    window += 1;
                }
                now += Span::from_ns(200_000_000 / u64::from(acks));
            }
            if round == 20 {
                at_k = window;
            }
        }
        assert!((96..=102).contains(&at_k), "{at_k}");
        assert!(window > 115, "{window}");
    }
}
