//! What is sent, and when: lost segments first, then new data, then bare acknowledgements.

use weir_packet::tcp;
use weir_units::{Instant, Span};

use super::scoreboard::Sent;
use super::segment::Segment;
use super::{Forced, State, Tcp, Timer};

/// Segments at the start of a connection that no pace holds back.
const UNPACED: u64 = 10;
/// IP's two bits: capable of being told of congestion.
const ECT: u8 = 2;

impl Tcp {
    /// The next segment that leaves now.
    pub(crate) fn transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.syn_due {
            return Some(self.syn(now));
        }
        if self.state != State::Open {
            return None;
        }
        if let Some(segment) = self.forced(now) {
            return Some(segment);
        }
        if let Some(segment) = self.data(now) {
            return Some(segment);
        }
        self.receiver.ack_now.then(|| self.segment(now, self.next, 0, 0))
    }

    fn forced(&mut self, now: Instant) -> Option<Segment> {
        match std::mem::replace(&mut self.forced, Forced::None) {
            Forced::None => None,
            Forced::First => self.again(now, 0),
            Forced::Last => {
                if let Some(segment) = self.fresh(now) {
                    self.tail = Some((self.next, false));
                    return Some(segment);
                }
                let last = self.board.sent.len().checked_sub(1)?;
                self.tail = Some((self.next, true));
                self.again(now, last)
            }
            Forced::WindowProbe => {
                // what fits; or a number that is old, so that the peer must answer
                let room = (self.una + self.peer_window).saturating_sub(self.next);
                let bytes = (self.written - self.next).min(self.mss).min(room);
                if bytes > 0 { self.send_new(now, bytes) } else { Some(self.old_number(now)) }
            }
        }
    }

    fn old_number(&mut self, now: Instant) -> Segment {
        let seq = self.una.saturating_sub(1);
        self.segment(now, seq, 0, 0)
    }

    /// A lost segment again or a new one, if windows and pace let it.
    fn data(&mut self, now: Instant) -> Option<Segment> {
        self.waits_for_pace = false;
        if self.in_flight() >= self.window {
            return None;
        }
        let has_lost = self.board.lost > self.board.again && !self.holds;
        let has_more = self.next < self.written || (self.closes && !self.fin_sent);
        if !has_lost && !has_more {
            self.app_limited_until = self.delivered + u64::from(self.in_flight());
            return None;
        }
        if self.pace_at > now {
            self.waits_for_pace = true;
            return None;
        }
        if has_lost && let Some(index) = self.board.next_lost() {
            return self.again(now, index);
        }
        let fresh = self.fresh(now);
        if self.holds && fresh.is_none() && self.next <= self.high {
            // nothing new to tell a needless timeout from a real one
            self.holds = false;
            self.frto = false;
            let index = self.board.next_lost()?;
            return self.again(now, index);
        }
        fresh
    }

    /// A segment with data that was never sent, if there is any and the peer takes it.
    fn fresh(&mut self, now: Instant) -> Option<Segment> {
        let left = self.written.saturating_sub(self.next);
        let room = (self.una + self.peer_window).saturating_sub(self.next);
        if left == 0 {
            let closes = self.closes && !self.fin_sent;
            return if closes { self.send_new(now, 0) } else { None };
        }
        let bytes = left.min(room).min(self.mss);
        let is_whole = bytes == self.mss || bytes * 2 >= self.peer_window_max.max(2);
        let is_last = bytes == left && (!self.spec.nagle || self.board.is_empty() || self.closes);
        if bytes == 0 || !(is_whole || is_last) {
            if self.board.is_empty() && self.timer == Timer::None && bytes < left {
                self.timer = Timer::Shut;
                self.timer_at = self.ticked(now + self.rtt.timeout());
            }
            return None;
        }
        self.send_new(now, bytes)
    }

    fn send_new(&mut self, now: Instant, bytes: u64) -> Option<Segment> {
        let start = self.next;
        let has_fin = self.closes && !self.fin_sent && start + bytes == self.written;
        if self.board.is_empty() {
            self.flight_at = now;
            self.delivered_at = now;
        }
        let was_idle = self.board.is_empty();
        self.next = start + bytes + u64::from(has_fin);
        self.fin_sent |= has_fin;
        self.board.sent.push_back(Sent {
            start,
            end: self.next,
            has_fin,
            at: now,
            sacked: false,
            lost: false,
            again: false,
            ever_again: false,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            flight_at: self.flight_at,
            app_limited: self.app_limited_until > self.delivered,
        });
        self.counts.sent += 1;
        self.counts.sent_bytes += bytes;
        self.reduction.out += 1;
        if was_idle || matches!(self.timer, Timer::None | Timer::Tail | Timer::Shut) {
            self.set_timer(now);
        } else {
            self.probe_first(now);
        }
        self.paced(now, bytes);
        let pushes = if self.next >= self.written { tcp::PSH } else { 0 };
        let mut flags = if bytes > 0 { pushes } else { 0 };
        flags |= if has_fin { tcp::FIN } else { 0 };
        if std::mem::take(&mut self.tell_cut) {
            flags |= tcp::CWR;
        }
        let mut segment = self.segment(now, start, bytes, flags);
        segment.ecn = if self.ecn { ECT } else { 0 };
        Some(segment)
    }

    /// A segment once more.
    fn again(&mut self, now: Instant, index: usize) -> Option<Segment> {
        let sent = *self.board.sent.get(index)?;
        self.board.sent_again(index, now);
        if let Some(sent) = self.board.sent.get_mut(index) {
            sent.delivered = self.delivered;
            sent.delivered_at = self.delivered_at;
            sent.flight_at = self.flight_at;
        }
        self.undo.sent_again(self.clock(now));
        let bytes = sent.end - sent.start - u64::from(sent.has_fin);
        self.counts.sent += 1;
        self.counts.sent_bytes += bytes;
        self.counts.again += 1;
        self.reduction.out += 1;
        if index == 0 || self.timer == Timer::None {
            self.timer = Timer::Lost;
            self.timer_at = self.ticked(now + self.rtt.timeout());
        }
        self.paced(now, bytes);
        Some(self.segment(now, sent.start, bytes, if sent.has_fin { tcp::FIN } else { 0 }))
    }

    fn paced(&mut self, now: Instant, bytes: u64) {
        if self.counts.sent < UNPACED {
            return;
        }
        let Some(gap) = self.control.gap() else { return };
        let gap = gap.ns() / self.mss * bytes.max(1);
        self.pace_at = self.pace_at.max(now) + Span::from_ns(gap);
    }

    /// A segment with all that each one carries.
    fn segment(&mut self, now: Instant, start: u64, bytes: u64, flags: u8) -> Segment {
        #[expect(clippy::cast_possible_truncation, reason = "numbers wrap at 2^32")]
        let low = start as u32;
        let echoes = self.ecn && self.receiver.echo;
        let mut segment = Segment {
            seq: self.own_first.wrapping_add(low),
            ack: self.wire_ack(),
            flags: flags | tcp::ACK | if echoes { tcp::ECE } else { 0 },
            window: self.shown_window(),
            payload: u16::try_from(bytes).unwrap_or(u16::MAX),
            timestamps: self.stamps.then(|| (self.clock(now), self.receiver.stamp)),
            ..Segment::default()
        };
        let peer_first = self.peer_first;
        let sack = self.sack;
        self.receiver.acknowledge(|left, right| {
            if sack {
                #[expect(clippy::cast_possible_truncation, reason = "numbers wrap at 2^32")]
                let edges = [left as u32, right as u32].map(|at| peer_first.wrapping_add(at));
                segment.sack.push(edges.into());
            }
        });
        segment
    }

    /// Segments under way, as far as new ones may count on it.
    pub(super) fn in_flight(&self) -> u32 {
        if self.spec.limited_transmit || self.is_past_disorder() {
            self.board.in_flight()
        } else {
            self.board.out()
        }
    }
}
