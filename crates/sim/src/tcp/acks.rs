//! What an acknowledgement says: what has arrived, in order or above a hole, how long it took, and
//! how fast it came.

use weir_packet::tcp;
use weir_units::{Instant, Span};

use super::bbr::Sample;
use super::control::Congestion;
use super::scoreboard::Sent;
use super::segment::Segment;
use super::{Tcp, Timer};

/// What one acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    pub(super) prior_in_flight: u32,
    /// Segments that are off the books.
    pub(super) acked: u32,
    pub(super) advanced: bool,
    pub(super) sacked: bool,
    pub(super) is_dup: bool,
    /// A segment that was sent once has arrived, of those before the phase began.
    pub(super) original: bool,
    pub(super) twice: bool,
    /// Congestion was marked.
    pub(super) told: bool,
    pub(super) delivered: u32,
    pub(super) newly_lost: u32,
    rtt: Option<Span>,
    /// When the oldest segment was sent that is newly known to have arrived above a hole.
    oldest: Option<Instant>,
    /// The newest segment that has arrived.
    newest: Option<Sent>,
}

impl Tcp {
    /// Takes the acknowledgement that a segment carries.
    pub(super) fn acknowledged(&mut self, now: Instant, segment: &Segment) {
        let ack = super::near(self.una, segment.ack.wrapping_sub(self.own_first));
        if ack < self.una || ack > self.next {
            return;
        }
        let was_lost = self.lost_in_all;
        let mut news = News {
            prior_in_flight: self.in_flight(),
            told: self.ecn && segment.has(tcp::ECE),
            ..News::default()
        };
        let window = u64::from(segment.window) << self.peer_shift;
        let moved_window = window != self.peer_window;
        self.peer_window = window;
        self.peer_window_max = self.peer_window_max.max(window);
        self.holds = false;
        let before = self.delivered;
        if self.sack && !segment.sack.all().is_empty() {
            self.read_sack(now, ack, segment, &mut news);
        }
        self.take_off(now, ack, &mut news);
        let bare = segment.payload == 0 && !segment.has(tcp::FIN);
        news.is_dup = bare && !news.advanced && !moved_window && !self.board.is_empty();
        self.count_dups(now, &news);
        news.delivered = u32::try_from(self.delivered - before).unwrap_or(u32::MAX);

        if news.rtt.is_none()
            && news.advanced
            && self.stamps
            && let Some((_, echo)) = segment.timestamps
        {
            let ms = u64::from(self.clock(now).wrapping_sub(echo));
            news.rtt = Some(Span::from_ms(ms).max(Span::from_us(1)));
        }
        if let Some(rtt) = news.rtt {
            self.rtt.sample(rtt, self.una, self.next);
            self.samples.push(rtt);
        }
        let echo = segment.timestamps.filter(|_| self.stamps).map(|(_, echo)| echo);
        self.end_probe(now, &news);
        self.recovers(now, &mut news, echo);
        news.newly_lost = u32::try_from(self.lost_in_all - was_lost).unwrap_or(u32::MAX);
        self.adapt(now, &news);
        self.rearm(now, &news);
    }

    fn rearm(&mut self, now: Instant, news: &News) {
        if news.advanced || self.timer == Timer::Shut {
            if self.timer == Timer::Shut && self.peer_window > 0 {
                self.timer = Timer::None;
                self.rtt.backoff = 0;
            }
            if self.timer == Timer::Overtaken && !self.board.is_empty() {
                return;
            }
            if self.timer != Timer::Shut {
                self.set_timer(now);
            }
        } else if let (Some(oldest), Some(first)) = (news.oldest, self.board.sent.front())
            && oldest < first.at
            && self.timer != Timer::Overtaken
        {
            // what was sent before the first segment went out again still comes: there is hope
            self.set_timer(now);
        }
    }

    fn read_sack(&mut self, now: Instant, ack: u64, segment: &Segment, news: &mut News) {
        let offset = |edge: u32| super::near(ack, edge.wrapping_sub(self.own_first));
        let mut blocks = [(0, 0); 4];
        let all = segment.sack.all();
        for (block, (left, right)) in blocks.iter_mut().zip(all) {
            *block = (offset(*left), offset(*right));
        }
        let blocks = &blocks[..all.len()];
        for (n, &(left, right)) in blocks.iter().enumerate() {
            let inside = blocks.get(1).is_some_and(|(l, r)| *l <= left && right <= *r);
            if n == 0 && (right <= ack || inside) {
                news.twice = true;
                self.arrived_twice(right);
                continue;
            }
            if left >= right || right > self.next {
                continue;
            }
            let mut index = self.board.at(left);
            while let Some(sent) = self.board.sent.get(index)
                && sent.end <= right
            {
                if sent.start >= left {
                    let highest = self.board.highest;
                    if let Some(sent) = self.board.mark_sacked(index) {
                        news.sacked = true;
                        if !sent.ever_again {
                            news.oldest = Some(news.oldest.unwrap_or(sent.at).min(sent.at));
                        }
                        self.arrived(now, &sent, highest, news);
                    }
                }
                index += 1;
            }
        }
    }

    fn take_off(&mut self, now: Instant, ack: u64, news: &mut News) {
        news.advanced = ack > self.una;
        let dups = self.board.sacked;
        let before = self.delivered;
        let told_above = news.rtt;
        let mut had_again = false;
        while let Some(gone) = self.board.acknowledge(ack, self.sack) {
            news.acked += 1;
            had_again |= gone.ever_again;
            if !gone.sacked {
                let highest = self.board.highest;
                self.arrived(now, &gone, highest, news);
            }
        }
        self.una = ack;
        if had_again {
            // what came after a hole was acknowledged when the hole was filled, not when it came
            news.rtt = told_above;
        }
        if !self.sack && news.acked > 0 {
            // duplicates have counted some of these
            let counted = u64::from(dups.min(news.acked - 1));
            self.delivered = (self.delivered - counted).max(before + 1);
            self.board.sacked = dups.saturating_sub(news.acked - 1).min(self.board.out());
        }
    }

    /// A segment is known to have arrived that was not before.
    fn arrived(&mut self, now: Instant, sent: &Sent, highest: u64, news: &mut News) {
        self.delivered += 1;
        self.delivered_at = now;
        if news.newest.is_none_or(|newest| sent.delivered >= newest.delivered) {
            news.newest = Some(*sent);
            self.flight_at = sent.at;
        }
        if !sent.ever_again {
            let rtt = now.since(sent.at);
            // the longest of this acknowledgement, as what came first waited for what came last
            news.rtt = news.rtt.max(Some(rtt));
            if sent.end <= self.high {
                news.original = true;
            }
            if sent.start < highest && self.sack {
                self.rack.reordering = true;
            }
        }
        self.rack.arrived(now, sent, self.rtt.least);
    }

    /// Without SACK, a duplicate stands for a segment that arrived above a hole.
    fn count_dups(&mut self, now: Instant, news: &News) {
        if self.sack || !news.is_dup {
            return;
        }
        let holes = self.board.lost.max(1);
        if self.board.sacked + holes < self.board.out() {
            self.board.sacked += 1;
            self.delivered += 1;
            self.delivered_at = now;
        }
    }

    /// The window after an acknowledgement.
    fn adapt(&mut self, now: Instant, news: &News) {
        if self.control.is_bbr() {
            self.adapt_bbr(now, news);
            return;
        }
        if let (Congestion::Cubic(cubic), Some(rtt)) = (&mut self.control, news.rtt)
            && cubic.slow_start_ends(rtt, self.window, self.una, self.next)
            && self.window < self.threshold
        {
            self.threshold = self.window;
        }
        if self.is_reducing() {
            self.reduce(news);
            return;
        }
        if news.acked == 0 {
            return;
        }
        // what duplicates had already told does not count twice
        let acked = if self.spec.byte_counting { news.delivered } else { 1 };
        let in_slow_start = self.window < self.threshold;
        // a window that is not used does not grow
        let used = news.prior_in_flight;
        let is_used =
            if in_slow_start { self.window < 2 * used.max(1) } else { used >= self.window };
        if !is_used {
            return;
        }
        let mut left = acked;
        if in_slow_start {
            let rise = left.min(self.threshold - self.window);
            self.window += rise;
            left -= rise;
        }
        if left > 0 {
            let step = self.control.step(now, self.window, left).max(1);
            if self.credit >= step {
                // saved up while steps were large: worth one, not many
                self.credit = 0;
                self.window += 1;
            }
            self.credit += left;
            if self.credit >= step {
                self.window += self.credit / step;
                self.credit %= step;
            }
        }
    }

    fn adapt_bbr(&mut self, now: Instant, news: &News) {
        let delivered = self.delivered;
        let (in_flight, in_recovery) = (self.board.in_flight(), self.is_past_disorder());
        let least = self.rtt.least;
        let Congestion::Bbr(bbr) = &mut self.control else { return };
        let newest = news.newest;
        let interval = newest.and_then(|sent| {
            let sending = sent.at.since(sent.flight_at);
            let arriving = now.since(sent.delivered_at);
            let interval = sending.max(arriving);
            (interval >= least || least == Span::MAX).then_some(interval)
        });
        let sample = Sample {
            now,
            delivered,
            delivered_then: newest.map_or(0, |sent| sent.delivered),
            interval,
            rtt: news.rtt,
            acked: news.delivered,
            newly_lost: news.newly_lost,
            in_flight,
            prior_in_flight: news.prior_in_flight,
            app_limited: newest.is_some_and(|sent| sent.app_limited),
            in_recovery,
        };
        self.window = bbr.acked(&sample, self.window);
    }
}
