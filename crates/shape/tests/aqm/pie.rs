//! PIE against RFC 8033, appendices A and B, in floats, with a timer that fires. After every event
//! the model goes on from our probability, so that what is compared is each step of the controller,
//! not the sum of all roundings: a step may be off by 10^-9 (2^-32 and more for the time in units
//! of 2^10 ns, which the model has too) and 3 x 10^-5 of itself (the gains are whole numbers).

use proptest::prelude::*;
use weir_shape::aqm::{Aqm, Decision, Pie, Random};
use weir_units::{Instant, Span};

use crate::line::{Discipline, Frame, Queue, drive, traffic};

struct Rfc {
    target: f64,
    t_update: f64,
    /// How much slower than the RFC's the controller is: its target over 15 ms, at least one.
    stretch: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: f64,
    /// In whole nanoseconds: floats would miss a tick that is due just now.
    next_update: Option<u64>,
    /// What the steps since the last comparison may be off by.
    slack: f64,
    /// Steps without any event in between.
    steps: u32,
}

impl Rfc {
    fn timer(&mut self, now: Instant) {
        let t_update = (self.t_update * 1e9).round() as u64;
        let now = now.ns();
        let mut next = *self.next_update.get_or_insert(now + t_update);
        self.slack = 1e-9;
        self.steps = 0;
        while next <= now {
            self.calculate_drop_prob();
            next += t_update;
            self.steps += 1;
        }
        self.next_update = Some(next);
    }

    fn calculate_drop_prob(&mut self) {
        let alpha = 0.125 / self.stretch / self.stretch * self.t_update / 0.015;
        let beta = 1.25 / self.stretch;
        let mut p = alpha * (self.current_qdelay - self.target)
            + beta * (self.current_qdelay - self.qdelay_old);
        p /= match self.drop_prob {
            p if p < 0.000_001 => 2_048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        self.slack += 1e-9 + 3e-5 * p.abs();
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob = (self.drop_prob + p).clamp(0.0, 1.0);
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 1.0 - 1.0 / 64.0;
        }
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = (self.burst_allowance - self.t_update).max(0.0);
        if self.burst_allowance < 1e-9 {
            self.burst_allowance = 0.0;
        }
    }

    /// Whether a frame is told.
    fn enqueue(&mut self, bytes: u64, random: f64) -> bool {
        let half = self.target / 2.0;
        if self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half {
            self.burst_allowance = 0.150 * self.stretch;
        }
        if self.burst_allowance > 0.0
            || (self.qdelay_old < half && self.drop_prob < 0.2)
            || bytes <= 2 * 1_538
        {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 || (self.accu_prob < 8.5 && random >= self.drop_prob) {
            return false;
        }
        self.accu_prob = 0.0;
        true
    }
}

struct Checked {
    ours: Queue,
    rfc: Rfc,
    told: usize,
    differ: Option<String>,
    /// Ours made up for more looks at once than it does one by one; no more is compared.
    over: bool,
}

impl Checked {
    fn compare(&mut self, now: Instant) {
        self.over |= self.rfc.steps > 64;
        let ours = f64::from(self.ours.state.probability().unwrap()) / 4_294_967_296.0;
        let rfc = &mut self.rfc;
        if !self.over && self.differ.is_none() && (ours - rfc.drop_prob).abs() > rfc.slack {
            let why = format!("{now}: {ours} for {}, slack {}", rfc.drop_prob, rfc.slack);
            self.differ = Some(why);
        }
        rfc.drop_prob = ours;
    }
}

impl Discipline for Checked {
    fn arrive(&mut self, now: Instant, frame: Frame) {
        if self.ours.frames.len() >= self.ours.limit {
            self.ours.arrive(now, frame);
            self.rfc.accu_prob = 0.0;
            return;
        }
        self.ours.random = Random::new(frame.id);
        let random = f64::from(Random::new(frame.id).next_u32()) / 4_294_967_296.0;
        let (bytes, said) = (self.ours.bytes, self.ours.log.len());
        self.rfc.timer(now);
        self.ours.arrive(now, frame);
        self.compare(now);
        let rfc = self.rfc.enqueue(bytes, random);
        let sum = self.rfc.accu_prob;
        let ours = self.ours.log.get(said).map_or(Decision::Take, |(_, fate)| fate.unwrap());
        let expected = match (rfc, frame.can_mark && self.rfc.drop_prob < 0.1) {
            (false, _) => Decision::Take,
            (true, true) => Decision::Mark,
            (true, false) => Decision::Drop,
        };
        self.told += usize::from(rfc);
        // a sum of many roundings may be on the other side of its bound
        let near = (sum - 0.85).abs() < 1e-5 || (sum - 8.5).abs() < 1e-5;
        if near {
            self.over = true;
        }
        if !self.over && self.differ.is_none() && ours != expected {
            self.differ = Some(format!("{now} {frame:?}: {ours:?}, RFC {expected:?}, sum {sum}"));
        }
    }

    fn leave(&mut self, now: Instant) -> Option<Frame> {
        if !self.ours.frames.is_empty() {
            self.rfc.timer(now);
        }
        let frame = self.ours.leave(now)?;
        let units = (now.since(frame.since).ns() as f64 / 1_024.0).ceil();
        let empty = self.ours.frames.is_empty();
        self.rfc.current_qdelay = if empty { 0.0 } else { units * 1.024e-6 };
        self.compare(now);
        Some(frame)
    }
}

proptest! {
    #[test]
    fn decides_as_the_rfc(
        traffic in traffic(),
        target_us in 1_000u64..100_000,
        t_update_us in 1_000u64..60_000,
        limit in 50usize..1_000,
    ) {
        let (target, t_update) = (Span::from_us(target_us), Span::from_us(t_update_us));
        let rfc = Rfc {
            target: target.ns() as f64 / 1e9,
            t_update: t_update.ns() as f64 / 1e9,
            stretch: (target.ns() as f64 / 15e6).max(1.0),
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: 0.0,
            next_update: None,
            slack: 0.0,
            steps: 0,
        };
        let ours = Queue::new(Aqm::Pie(Pie::new(target, t_update)), limit);
        let mut both = Checked { ours, rfc, told: 0, differ: None, over: false };
        drive(&mut both, &traffic);
        prop_assert_eq!(both.differ, None);
    }
}
