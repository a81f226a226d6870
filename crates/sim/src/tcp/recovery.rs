//! How losses are found and repaired: the phases of a sender, as Linux has them. Older systems are
//! the same machine with parts switched off.

use weir_units::Instant;

use super::acks::News;
use super::{Recovery, Tcp, Timer};

/// What a sender is doing about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Nothing is wrong.
    Open,
    /// Something arrived out of order.
    Disorder,
    /// The window was cut because of a mark.
    Marked,
    /// Lost segments are sent again.
    Recovery,
    /// A timer ran out.
    Loss,
}

/// A cut of the window that is carried out packet by packet (RFC 6937).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    prior_window: u32,
    delivered: u32,
    pub(super) out: u32,
}

/// What is needed to take a cut back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// What had been acknowledged when the cut was made.
    marker: Option<u64>,
    /// Segments sent again since, less those that proved needless.
    again: u32,
    /// The timestamp of the first segment sent again.
    stamp: Option<u32>,
    prior_window: u32,
    prior_threshold: u32,
}

impl Undo {
    pub(super) fn sent_again(&mut self, clock: u32) {
        self.again += 1;
        self.stamp.get_or_insert(clock);
    }
}

impl Tcp {
    /// Whether segments that arrived above a hole count as having left the path.
    pub(super) fn is_past_disorder(&self) -> bool {
        self.phase >= Phase::Recovery
    }

    pub(super) fn is_calm(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Marked)
    }

    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Marked | Phase::Recovery)
    }

    /// Goes from phase to phase with the news.
    pub(super) fn recovers(&mut self, now: Instant, news: &mut News, echo: Option<u32>) {
        if news.told {
            self.undo.prior_threshold = 0;
        }
        let is_dubious = news.is_dup || news.sacked || news.told || self.phase != Phase::Open;
        if !is_dubious {
            return;
        }
        if self.phase != Phase::Open && self.una >= self.high && self.leaves(echo) {
            return;
        }
        match self.phase {
            Phase::Recovery => self.in_recovery(now, news, echo),
            Phase::Loss => self.in_loss(now, news, echo),
            Phase::Open | Phase::Disorder | Phase::Marked => {
                if self.should_recover(now) {
                    self.enter_recovery(now);
                } else {
                    self.try_to_open(now, news);
                }
            }
        }
    }

    /// All that was out when the phase began has arrived. `true` if nothing is left to do.
    fn leaves(&mut self, echo: Option<u32>) -> bool {
        match self.phase {
            Phase::Marked if self.una > self.high => {
                self.end_reduction();
                self.phase = Phase::Open;
            }
            Phase::Recovery => {
                if !self.sack {
                    self.board.sacked = 0;
                }
                if self.may_undo(echo) {
                    self.take_back(false);
                }
                self.end_reduction();
                self.phase = Phase::Open;
                self.undo.marker = None;
            }
            _ => {}
        }
        false
    }

    fn in_recovery(&mut self, now: Instant, news: &mut News, echo: Option<u32>) {
        if news.advanced {
            if self.spec.recovery == Recovery::Reno {
                self.end_reduction();
                self.phase = Phase::Open;
                self.board.forgive();
                self.board.sacked = 0;
                return;
            }
            if !self.sack {
                // a partial acknowledgement: the next one is lost as well
                self.lose(0);
            }
            if self.undo.marker.is_some() && self.spec.undo && self.is_delayed(echo) {
                self.take_back(true);
                self.phase = Phase::Open;
                return;
            }
        }
        if news.twice && self.may_undo(None) {
            self.take_back(true);
            self.phase = Phase::Open;
            return;
        }
        self.find_lost(now);
    }

    fn in_loss(&mut self, now: Instant, news: &mut News, echo: Option<u32>) {
        let recovered = self.una >= self.high;
        if news.advanced && self.spec.undo && self.may_undo(echo) {
            self.take_back(true);
            self.phase = Phase::Open;
            return;
        }
        if self.frto {
            if news.original && (news.advanced || news.sacked) {
                self.take_back(true);
                self.phase = Phase::Open;
                self.frto = false;
                return;
            }
            if self.next > self.high {
                if news.sacked || news.is_dup {
                    self.frto = false;
                }
            } else if news.advanced && !recovered {
                self.high = self.next;
                self.holds = true;
                return;
            }
        }
        if recovered {
            if !self.sack {
                self.board.sacked = 0;
            }
            self.phase = Phase::Open;
            self.undo.marker = None;
            self.frto = false;
            return;
        }
        if !self.sack && news.advanced && self.next <= self.high {
            self.board.sacked = 0;
        }
        self.find_lost(now);
    }

    fn try_to_open(&mut self, now: Instant, news: &News) {
        if news.told && self.phase != Phase::Marked {
            self.cut_for_mark(now);
        }
        if self.phase == Phase::Marked {
            return;
        }
        if self.board.sacked > 0 || news.is_dup {
            if self.phase == Phase::Open {
                self.high = self.next;
            }
            self.phase = Phase::Disorder;
        } else {
            self.phase = Phase::Open;
        }
        if !self.sack && news.advanced {
            self.board.sacked = 0;
            self.phase = Phase::Open;
        }
    }

    /// Whether something is lost for sure.
    fn should_recover(&mut self, now: Instant) -> bool {
        if !self.sack {
            // duplicates of what was sent again must not start it again (RFC 6582, section 4)
            let is_new = self.una > self.recover || self.recover == 0;
            return self.board.sacked >= self.spec.dup_threshold && is_new;
        }
        self.find_lost(now);
        self.board.lost > 0
    }

    fn find_lost(&mut self, now: Instant) {
        if !self.sack {
            return;
        }
        match self.spec.recovery {
            Recovery::Rack => self.overtaken_by_time(now),
            _ => self.overtaken_by_count(),
        }
    }

    /// Segments with enough others arrived above them are lost (RFC 6675).
    fn overtaken_by_count(&mut self) {
        let mut above = 0;
        for index in (0..self.board.sent.len()).rev() {
            let sent = self.board.sent[index];
            if sent.sacked {
                above += 1;
            } else if above >= self.spec.dup_threshold && !sent.lost {
                self.lose(index);
            }
        }
    }

    pub(super) fn lose(&mut self, index: usize) {
        if self.board.mark_lost(index) {
            self.lost_in_all += 1;
        }
    }

    pub(super) fn enter_recovery(&mut self, now: Instant) {
        self.counts.recoveries += 1;
        if self.phase < Phase::Marked {
            self.begin_reduction();
        }
        self.phase = Phase::Recovery;
        self.high = self.next;
        self.recover = self.next;
        if !self.sack {
            self.lose(0);
        }
        if self.timer == Timer::Tail {
            self.arm_lost(now);
        }
    }

    fn cut_for_mark(&mut self, now: Instant) {
        self.begin_reduction();
        self.undo.marker = None;
        self.phase = Phase::Marked;
        self.high = self.next;
        self.tell_cut = true;
        if self.timer == Timer::Tail {
            self.arm_lost(now);
        }
    }

    /// A tail loss probe found a loss and repaired it: the window is cut all the same.
    pub(super) fn cut_for_probe(&mut self, now: Instant) {
        if self.phase < Phase::Marked {
            self.cut_for_mark(now);
            self.tell_cut = false;
            self.end_reduction();
            self.phase = Phase::Open;
        }
    }

    fn begin_reduction(&mut self) {
        self.undo = Undo {
            marker: Some(self.una),
            again: 0,
            stamp: None,
            prior_window: self.window,
            prior_threshold: self.threshold,
        };
        self.reduction = Reduction { prior_window: self.window, delivered: 0, out: 0 };
        self.credit = 0;
        self.threshold = self.control.after_loss(self.window, self.threshold);
        if !self.spec.prr && !self.control.is_bbr() {
            self.window = self.threshold;
        }
    }

    /// The window while it is reduced.
    pub(super) fn reduce(&mut self, news: &News) {
        if !self.spec.prr || news.delivered == 0 || self.reduction.prior_window == 0 {
            return;
        }
        let in_flight = self.board.in_flight();
        let cut = &mut self.reduction;
        cut.delivered += news.delivered;
        let room = if in_flight > self.threshold {
            let due = u64::from(self.threshold) * u64::from(cut.delivered);
            let due = due.div_ceil(u64::from(cut.prior_window));
            u32::try_from(due).unwrap_or(u32::MAX).saturating_sub(cut.out)
        } else {
            let mut room = cut.delivered.saturating_sub(cut.out).max(news.delivered);
            if news.advanced && news.newly_lost == 0 {
                room += 1;
            }
            room.min(self.threshold - in_flight)
        };
        // the first segment goes out at once
        let room = room.max(u32::from(cut.out == 0));
        self.window = in_flight + room;
    }

    fn end_reduction(&mut self) {
        if !self.control.is_bbr() && self.threshold < u32::MAX {
            self.window = self.threshold.max(1);
        }
    }

    /// The retransmission timer ran out.
    pub(super) fn enter_loss(&mut self, now: Instant) {
        let is_new = self.phase < Phase::Recovery;
        let again = self.phase == Phase::Loss && self.rtt.backoff > 0;
        if self.phase <= Phase::Disorder || self.high <= self.una || !again && !is_new {
            let before = (self.window, self.threshold);
            self.begin_reduction();
            self.undo.prior_window = before.0;
            self.undo.prior_threshold = before.1;
            self.control.timed_out();
        }
        if !self.sack {
            self.board.sacked = 0;
        }
        for index in 0..self.board.sent.len() {
            if index == 0 || !self.is_too_young(now, index) {
                self.lose(index);
            }
        }
        self.window = self.board.in_flight() + 1;
        self.credit = 0;
        self.phase = Phase::Loss;
        self.high = self.next;
        self.recover = self.next;
        self.tail = None;
        self.tell_cut = self.ecn;
        self.frto = self.spec.frto && (is_new || self.rtt.backoff > 0);
        self.holds = false;
    }

    /// A segment arrived that had arrived before.
    pub(super) fn arrived_twice(&mut self, end: u64) {
        if self.undo.marker.is_some_and(|marker| end > marker) {
            self.undo.again = self.undo.again.saturating_sub(1);
        }
        self.rack.needless();
    }

    fn may_undo(&self, echo: Option<u32>) -> bool {
        let sent_none = self.undo.again == 0 && self.undo.stamp.is_some();
        self.spec.undo && self.undo.marker.is_some() && (sent_none || self.is_delayed(echo))
    }

    /// Whether what is acknowledged was sent before anything was sent again.
    fn is_delayed(&self, echo: Option<u32>) -> bool {
        let (Some(echo), Some(stamp)) = (echo, self.undo.stamp) else { return false };
        echo != 0 && echo != stamp && stamp.wrapping_sub(echo) < 1 << 31
    }

    /// The cut was needless.
    fn take_back(&mut self, forgives: bool) {
        self.counts.undone += 1;
        if forgives {
            self.board.forgive();
        }
        if self.undo.prior_threshold > 0 {
            self.window = self.window.max(self.undo.prior_window);
            self.threshold = self.threshold.max(self.undo.prior_threshold);
            self.control.undone();
        }
        self.undo.marker = None;
    }
}
