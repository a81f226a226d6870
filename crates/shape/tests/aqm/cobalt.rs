//! COBALT against a plain model: the rules of CAKE in floats, forgetting step by step however many.
//! Ours computes more than 64 steps at once from the sum's integral; from there on the two may
//! differ, and are compared no more. How far they differ has a test of its own.

use std::collections::VecDeque;

use proptest::prelude::*;
use weir_shape::aqm::{Aqm, Cobalt, Decision, Random};
use weir_units::{Instant, Span};

use crate::line::{Discipline, Frame, Log, Queue, drive, traffic};

struct Model {
    target: f64,
    interval: f64,
    next: f64,
    blue_timer: f64,
    count: f64,
    blue: f64,
    dropping: bool,
    random: Random,
    frames: VecDeque<Frame>,
    limit: usize,
    log: Log,
    /// How much of the log comes before ours may approximate.
    exact_until: Option<usize>,
}

impl Model {
    fn law(&self, t: f64) -> f64 {
        t + (self.interval / self.count.max(1.0).sqrt()).floor()
    }

    fn forget(&mut self) {
        self.count -= 1.0;
        self.next = self.law(self.next);
    }

    fn fate(&mut self, now: f64, frame: Frame) -> Decision {
        let due = self.count > 0.0 && now >= self.next;
        if now - frame.since.ns() as f64 > self.target {
            if !self.dropping {
                self.dropping = true;
                self.next = self.law(now);
            }
            self.count = self.count.max(1.0);
        } else {
            self.dropping = false;
        }
        let (mut mark, mut drop) = (false, false);
        if due && self.dropping {
            (mark, drop) = (frame.can_mark, !frame.can_mark);
            self.count += 1.0;
            self.next = self.law(self.next);
        } else if due {
            let before = self.count;
            while self.count > 0.0 && now >= self.next {
                self.forget();
            }
            if before - self.count > 64.0 {
                self.exact_until.get_or_insert(self.log.len());
            }
        }
        if self.blue > 0.0 {
            drop |= f64::from(self.random.next_u32()) / 4_294_967_296.0 < self.blue;
        }
        if self.count == 0.0 {
            self.next = now + self.interval;
        } else if now > self.next && !drop {
            self.next = now;
        }
        match (drop, mark) {
            (true, _) if !self.frames.is_empty() => Decision::Drop,
            (false, true) => Decision::Mark,
            _ => Decision::Take,
        }
    }
}

impl Discipline for Model {
    fn arrive(&mut self, now: Instant, frame: Frame) {
        if self.frames.len() < self.limit {
            self.frames.push_back(Frame { since: now, ..frame });
            return;
        }
        self.log.push((frame.id, None));
        let now = now.ns() as f64;
        if now - self.blue_timer > self.target {
            self.blue = (self.blue + 1.0 / 256.0).min(1.0);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.next = now;
        self.count = self.count.max(1.0);
    }

    fn leave(&mut self, now: Instant) -> Option<Frame> {
        loop {
            let frame = self.frames.pop_front()?;
            let now = now.ns() as f64;
            let fate = self.fate(now, frame);
            self.log.push((frame.id, Some(fate)));
            if self.frames.is_empty() {
                if self.blue > 0.0 && now - self.blue_timer > self.target {
                    self.blue = (self.blue - 1.0 / 4_096.0).max(0.0);
                    self.blue_timer = now;
                }
                self.dropping = false;
                if self.count > 0.0 && now >= self.next {
                    self.forget();
                }
            }
            if fate != Decision::Drop {
                return Some(frame);
            }
        }
    }
}

proptest! {
    #[test]
    fn decides_as_the_model(
        traffic in traffic(),
        target_us in 100u64..20_000,
        interval_us in 1_000u64..200_000,
        limit in 5usize..1_000,
    ) {
        let (target, interval) = (Span::from_us(target_us), Span::from_us(interval_us));
        let mut ours = Queue::new(Aqm::Cobalt(Cobalt::new(target, interval)), limit);
        let mut model = Model {
            target: target.ns() as f64,
            interval: interval.ns() as f64,
            next: 0.0,
            blue_timer: 0.0,
            count: 0.0,
            blue: 0.0,
            dropping: false,
            random: Random::new(1),
            frames: VecDeque::new(),
            limit,
            log: Log::new(),
            exact_until: None,
        };
        drive(&mut ours, &traffic);
        drive(&mut model, &traffic);
        let same = model.exact_until.unwrap_or(ours.log.len());
        prop_assert_eq!(&ours.log[..same], &model.log[..same]);
        if same == ours.log.len() {
            prop_assert_eq!(ours.log.len(), model.log.len());
        }
    }
}
