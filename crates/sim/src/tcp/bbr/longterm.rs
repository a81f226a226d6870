//! Where a fifth is lost and the rate is steady all the same, a policer is at work: its rate is
//! taken for a while instead of the largest that was ever seen.

use weir_units::{Instant, Span};

use super::{SCALE, rate};

/// Round trips of an interval, at least; at most four times that.
const ROUNDS: u32 = 4;
/// Round trips for which the rate is used.
const USED_FOR: u32 = 48;
/// Lost of 256 delivered that make an interval.
const LOST: u64 = 50;
/// Rates that differ by less than 1/8, or 4 kbit/s of full segments, are the same.
const SAME: u64 = (4_000 << SCALE) / (8 * 1_460 * 1_000_000);

#[derive(Clone, Debug, Default)]
pub(super) struct LongTerm {
    samples: bool,
    in_use: bool,
    rate: u64,
    rounds: u32,
    since: Instant,
    delivered: u64,
    lost: u64,
}

impl LongTerm {
    pub(super) fn rate(&self) -> Option<u64> {
        self.in_use.then_some(self.rate)
    }

    /// Looks at an acknowledgement. `true` when its rate has been used for long enough.
    pub(super) fn look(
        &mut self,
        now: Instant,
        round_starts: bool,
        delivered: u64,
        lost: u64,
        newly_lost: u32,
    ) -> bool {
        if self.in_use {
            self.rounds += u32::from(round_starts);
            if self.rounds >= USED_FOR {
                *self = LongTerm::default();
                return true;
            }
            return false;
        }
        if !self.samples {
            // an interval begins with a loss
            if newly_lost > 0 {
                self.begin(now, delivered, lost);
                self.samples = true;
            }
            return false;
        }
        self.rounds += u32::from(round_starts);
        if self.rounds < ROUNDS {
            return false;
        }
        if self.rounds > 4 * ROUNDS {
            *self = LongTerm::default();
            return false;
        }
        // and ends with one
        let (came, gone) = (delivered - self.delivered, lost - self.lost);
        if newly_lost == 0 || came == 0 || gone * 256 < LOST * came {
            return false;
        }
        let span = now.since(self.since);
        if span >= Span::from_ms(1) {
            self.end(now, rate(came, span), delivered, lost);
        }
        false
    }

    fn end(&mut self, now: Instant, new: u64, delivered: u64, lost: u64) {
        if self.rate > 0 {
            let off = new.abs_diff(self.rate);
            if off * 8 <= self.rate || off <= SAME {
                self.rate = u64::midpoint(new, self.rate);
                self.in_use = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = new;
        self.begin(now, delivered, lost);
    }

    fn begin(&mut self, now: Instant, delivered: u64, lost: u64) {
        (self.since, self.delivered, self.lost, self.rounds) = (now, delivered, lost, 0);
    }
}
