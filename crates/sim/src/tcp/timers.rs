//! What happens when a timer runs out.

use weir_units::{Instant, Span};

use super::{Forced, Recovery, State, Tcp, Timer};

/// A tail loss probe waits so much longer where only one segment is out, for an acknowledgement
/// that is held back.
const HELD_BACK: Span = Span::from_ms(200);
const TIMER_MIN: Span = Span::from_ms(8);

impl Tcp {
    /// The time that [`Tcp::deadline`] said has come.
    pub(crate) fn wake(&mut self, now: Instant) {
        if self.receiver.ack_at <= now {
            self.receiver.ack_at = Instant::MAX;
            self.receiver.ack_now = true;
        }
        if self.waits_for_pace && self.pace_at <= now {
            self.waits_for_pace = false;
        }
        if self.timer_at > now {
            return;
        }
        self.timer_at = Instant::MAX;
        match std::mem::replace(&mut self.timer, Timer::None) {
            Timer::None => {}
            Timer::Lost => self.timed_out(now),
            Timer::Shut => {
                self.forced = Forced::WindowProbe;
                self.rtt.backoff += 1;
                self.timer = Timer::Shut;
                self.timer_at = self.ticked(now + self.rtt.timeout());
            }
            Timer::Tail => {
                self.forced = Forced::Last;
                self.timer = Timer::Lost;
                self.timer_at = self.ticked(now + self.rtt.timeout());
            }
            Timer::Overtaken => {
                self.overtaken(now);
            }
        }
    }

    fn timed_out(&mut self, now: Instant) {
        if self.state != State::Open {
            self.rtt.backoff += 1;
            self.counts.timeouts += 1;
            self.syn_due = true;
            return;
        }
        if self.board.is_empty() {
            return;
        }
        self.counts.timeouts += 1;
        self.enter_loss(now);
        self.forced = Forced::First;
        self.rtt.backoff += 1;
        self.timer = Timer::Lost;
        self.timer_at = self.ticked(now + self.rtt.timeout());
    }

    /// Waits for a loss from now on, or for the tail of what is under way.
    pub(super) fn set_timer(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timer = Timer::None;
            self.timer_at = Instant::MAX;
            return;
        }
        self.timer = Timer::Lost;
        self.timer_at = self.ticked(now + self.rtt.timeout());
        self.probe_first(now);
    }

    /// Probes the tail of what is under way before it is thought lost, where that may be.
    pub(super) fn probe_first(&mut self, now: Instant) {
        let may = self.timer == Timer::Lost
            && self.spec.recovery == Recovery::Rack
            && self.sack
            && self.is_calm()
            && self.tail.is_none()
            && self.rtt.smooth > Span::ZERO;
        if may {
            let wait = Span::from_ns(2 * self.rtt.smooth.ns());
            let slack = if self.board.out() == 1 { HELD_BACK } else { TIMER_MIN };
            self.timer = Timer::Tail;
            self.timer_at = self.timer_at.min(self.ticked(now + wait + slack));
        }
    }

    /// Waits for a loss, counted from when the first segment was sent.
    pub(super) fn arm_lost(&mut self, now: Instant) {
        let Some(first) = self.board.sent.front() else { return };
        let at = (first.at + self.rtt.timeout()).max(now + Span::from_ms(1));
        self.timer = Timer::Lost;
        self.timer_at = self.ticked(at);
    }

    /// When a timer of this host runs out that should at `at`.
    pub(super) fn ticked(&self, at: Instant) -> Instant {
        let tick = self.spec.tick.ns().max(1);
        Instant::from_ns(at.ns().div_ceil(tick).saturating_mul(tick))
    }
}
