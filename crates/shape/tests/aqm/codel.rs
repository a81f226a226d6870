//! CoDel against RFC 8289, section 5, as it stands there: a loop in `dequeue`, and floats.

use std::collections::VecDeque;

use proptest::prelude::*;
use weir_shape::aqm::{Aqm, AqmState, Codel, Decision, Depth, Leaving, Random};
use weir_units::{Instant, Span};

use crate::line::{Discipline, Frame, Log, Queue, drive, traffic};

struct Rfc {
    target: f64,
    interval: f64,
    maxpacket: u64,
    first_above_time: f64,
    drop_next: f64,
    count: f64,
    lastcount: f64,
    dropping: bool,
    frames: VecDeque<Frame>,
    limit: usize,
    log: Log,
}

impl Rfc {
    fn control_law(&self, t: f64, count: f64) -> f64 {
        // time is in whole nanoseconds
        t + (self.interval / count.sqrt()).floor()
    }

    fn dodequeue(&mut self, now: f64) -> (Option<Frame>, bool) {
        let Some(frame) = self.frames.pop_front() else {
            self.first_above_time = 0.0;
            return (None, false);
        };
        let sojourn = now - frame.since.ns() as f64;
        let bytes: u64 = self.frames.iter().map(|f| u64::from(f.bytes)).sum();
        if sojourn < self.target || bytes <= self.maxpacket {
            self.first_above_time = 0.0;
        } else if self.first_above_time == 0.0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            return (Some(frame), true);
        }
        (Some(frame), false)
    }
}

impl Discipline for Rfc {
    fn arrive(&mut self, now: Instant, frame: Frame) {
        if self.frames.len() >= self.limit {
            self.log.push((frame.id, None));
        } else {
            self.frames.push_back(Frame { since: now, ..frame });
        }
    }

    fn leave(&mut self, now: Instant) -> Option<Frame> {
        let now = now.ns() as f64;
        let (mut frame, mut ok_to_drop) = self.dodequeue(now);
        let mut fate = Decision::Take;
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                let f = frame?;
                self.count += 1.0;
                if f.can_mark {
                    fate = Decision::Mark;
                    self.drop_next = self.control_law(self.drop_next, self.count);
                    break;
                }
                self.log.push((f.id, Some(Decision::Drop)));
                (frame, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let f = frame?;
            if f.can_mark {
                fate = Decision::Mark;
            } else {
                self.log.push((f.id, Some(Decision::Drop)));
                (frame, _) = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            let again = delta > 1.0 && now - self.drop_next < 16.0 * self.interval;
            self.count = if again { delta } else { 1.0 };
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        self.log.extend(frame.map(|f| (f.id, Some(fate))));
        frame
    }
}

#[test]
fn with_a_full_frame_behind_and_no_more_nobody_is_late() {
    let aqm = Aqm::Codel(Codel::new(Span::from_ms(5), Span::from_ms(100), 1_500));
    let signals = |bytes| {
        let (mut state, mut random) = (AqmState::default(), Random::new(1));
        let ask = |ms| {
            let since = Instant::ZERO + Span::from_ms(ms);
            let (now, depth) = (since + Span::from_ms(50), Depth { frames: 1, bytes });
            let leaving = Leaving { since, can_mark: false };
            aqm.leave(&mut state, now, leaving, depth, &mut random)
        };
        (0..1_000).map(ask).filter(|fate| *fate == Decision::Drop).count()
    };
    assert_eq!(signals(1_500), 0);
    assert!(signals(1_501) > 10);
}

proptest! {
    #[test]
    fn decides_as_the_rfc(
        traffic in traffic(),
        target_us in 100u64..20_000,
        interval_us in 1_000u64..200_000,
        maxpacket in 0u32..4_000,
        limit in 20usize..2_000,
    ) {
        let (target, interval) = (Span::from_us(target_us), Span::from_us(interval_us));
        let mut ours = Queue::new(Aqm::Codel(Codel::new(target, interval, maxpacket)), limit);
        let mut rfc = Rfc {
            target: target.ns() as f64,
            interval: interval.ns() as f64,
            maxpacket: u64::from(maxpacket),
            first_above_time: 0.0,
            drop_next: 0.0,
            count: 0.0,
            lastcount: 0.0,
            dropping: false,
            frames: VecDeque::new(),
            limit,
            log: Log::new(),
        };
        drive(&mut ours, &traffic);
        drive(&mut rfc, &traffic);
        prop_assert_eq!(ours.log, rfc.log);
    }
}
