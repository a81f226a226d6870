//! Losses found by time (RFC 8985): a segment is lost when one that was sent long enough after it
//! has arrived. And the probe for the last segments, above which nothing can arrive.

use weir_units::{Instant, Span};

use super::acks::News;
use super::recovery::Phase;
use super::scoreboard::Sent;
use super::{Recovery, Tcp, Timer};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// When the newest segment that has arrived was sent, and where it ends.
    at: Instant,
    end: u64,
    rtt: Span,
    /// Segments have been seen out of order.
    pub(super) reordering: bool,
    /// How many quarters of a round trip they may be, less one.
    steps: u32,
}

impl Rack {
    pub(super) fn arrived(&mut self, now: Instant, sent: &Sent, least: Span) {
        let rtt = now.since(sent.at);
        if sent.ever_again && rtt < least {
            // that was the first one of the two
            return;
        }
        if (sent.at, sent.end) > (self.at, self.end) {
            (self.at, self.end, self.rtt) = (sent.at, sent.end, rtt);
        }
    }

    /// Something was sent again in vain: wait longer.
    pub(super) fn needless(&mut self) {
        self.steps = (self.steps + 1).min(64);
    }
}

impl Tcp {
    /// Marks what is lost by time, and waits for what may be.
    pub(super) fn overtaken_by_time(&mut self, now: Instant) {
        let slack = self.slack();
        let Rack { at, end, rtt, .. } = self.rack;
        let mut wait = Span::ZERO;
        for index in 0..self.board.sent.len() {
            let sent = self.board.sent[index];
            if sent.start >= end && !sent.ever_again {
                break;
            }
            if sent.sacked || (sent.lost && !sent.again) || (sent.at, sent.end) >= (at, end) {
                continue;
            }
            let lost_at = sent.at + rtt + slack;
            if lost_at <= now {
                self.lose(index);
            } else {
                wait = wait.max(lost_at.since(now));
            }
        }
        if wait > Span::ZERO {
            self.timer = Timer::Overtaken;
            self.timer_at = now + wait + Span::from_ms(2);
        } else if self.timer == Timer::Overtaken {
            self.arm_lost(now);
        }
    }

    /// Whether a segment was sent less than a round trip ago.
    pub(super) fn is_too_young(&self, now: Instant, index: usize) -> bool {
        let Some(sent) = self.board.sent.get(index) else { return false };
        self.sack && self.spec.recovery == Recovery::Rack && sent.at + self.rack.rtt > now
    }

    fn slack(&self) -> Span {
        if !self.rack.reordering
            && (self.phase >= Phase::Recovery || self.board.sacked >= self.spec.dup_threshold)
        {
            return Span::ZERO;
        }
        let least = if self.rtt.least == Span::MAX { Span::ZERO } else { self.rtt.least };
        let quarters = u64::from(self.rack.steps) + 1;
        Span::from_ns(least.ns() / 4 * quarters).min(self.rtt.smooth)
    }

    /// The time for what may have been overtaken has come.
    pub(super) fn overtaken(&mut self, now: Instant) {
        self.overtaken_by_time(now);
        if self.board.lost > self.board.again && self.phase < Phase::Recovery {
            self.enter_recovery(now);
            self.reduce(&News::default());
            if self.spec.prr && !self.control.is_bbr() {
                self.window = self.board.in_flight() + 1;
            }
        }
        if self.timer == Timer::None {
            self.arm_lost(now);
        }
    }

    /// An acknowledgement of a tail loss probe.
    pub(super) fn end_probe(&mut self, now: Instant, news: &News) {
        let Some((high, again)) = self.tail else { return };
        if self.una < high {
            return;
        }
        if !again || news.twice {
            self.tail = None;
        } else if self.una > high {
            // the probe closed a hole that nobody had seen
            self.tail = None;
            self.cut_for_probe(now);
        } else if !news.advanced && !news.sacked {
            // both copies arrived
            self.tail = None;
        }
    }
}
