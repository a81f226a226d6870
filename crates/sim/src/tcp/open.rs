//! How a connection opens: three segments, and what they agree upon.

use weir_packet::tcp;
use weir_units::Instant;

use super::segment::Segment;
use super::{State, Tcp, Timer};

/// The shift that Linux takes for a few megabytes.
const SHIFT_MAX: u8 = 14;
/// The least segment that everybody takes (RFC 9293).
const MSS: u16 = 536;
const TIMESTAMP_BYTES: u64 = 12;

impl Tcp {
    /// The SYN, or the answer to one.
    pub(super) fn syn(&mut self, now: Instant) -> Segment {
        self.syn_due = false;
        let answers = self.state == State::SynReceived;
        // use only the options that the peer offered
        let shift = self.own_shift_offered();
        let mut flags = tcp::SYN | if answers { tcp::ACK } else { 0 };
        let (sack, stamps, scales) = if answers {
            (self.sack, self.stamps, self.own_shift > 0 || self.peer_shift > 0)
        } else {
            (self.spec.sack, self.spec.timestamps, self.spec.window_scale)
        };
        if self.spec.ecn && !answers {
            flags |= tcp::ECE | tcp::CWR;
        } else if self.ecn {
            flags |= tcp::ECE;
        }
        if self.next == 0 {
            self.next = 1;
            self.flight_at = now;
        }
        self.timer = Timer::Lost;
        self.timer_at = self.ticked(now + self.rtt.timeout());
        let echo = if answers { self.receiver.stamp } else { 0 };
        self.receiver.window();
        Segment {
            seq: self.own_first,
            ack: if answers { self.wire_ack() } else { 0 },
            flags,
            window: u16::try_from(self.spec.window).unwrap_or(u16::MAX),
            mss: Some(self.spec.mss),
            scale: scales.then_some(shift),
            sack_permitted: sack,
            timestamps: stamps.then(|| (self.clock(now), echo)),
            ..Segment::default()
        }
    }

    /// The acknowledgement of all that arrived in order.
    pub(super) fn wire_ack(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "numbers wrap at 2^32")]
        let low = self.receiver.next as u32;
        self.peer_first.wrapping_add(low)
    }

    fn own_shift_offered(&self) -> u8 {
        let bits = 32 - self.spec.window.leading_zeros();
        u8::try_from(bits.saturating_sub(16)).unwrap_or(0).min(SHIFT_MAX)
    }

    /// A segment on the way to an open connection. `true` if it is open now and the segment may say
    /// more.
    pub(super) fn opens(&mut self, now: Instant, segment: &Segment) -> bool {
        let acks_syn = segment.has(tcp::ACK) && segment.ack == self.own_first.wrapping_add(1);
        match self.state {
            State::Listens if segment.has(tcp::SYN) => {
                self.agree(segment);
                self.state = State::SynReceived;
                self.syn_due = true;
                false
            }
            State::SynSent if segment.has(tcp::SYN) && acks_syn => {
                self.agree(segment);
                self.opened(now, segment);
                self.receiver.ack_now = true;
                false
            }
            State::SynReceived if segment.has(tcp::SYN) => {
                // the answer was lost
                self.syn_due = true;
                false
            }
            State::SynReceived if acks_syn || segment.has(tcp::ACK) => {
                self.opened(now, segment);
                true
            }
            _ => false,
        }
    }

    fn agree(&mut self, syn: &Segment) {
        self.peer_first = syn.seq;
        self.receiver.next = 1;
        let scales = self.spec.window_scale && syn.scale.is_some();
        if scales {
            self.own_shift = self.own_shift_offered();
            self.peer_shift = syn.scale.unwrap_or(0).min(SHIFT_MAX);
        }
        self.sack = self.spec.sack && syn.sack_permitted;
        self.stamps = self.spec.timestamps && syn.timestamps.is_some();
        if let Some((value, _)) = syn.timestamps {
            self.receiver.stamp = value;
        }
        self.ecn = self.spec.ecn && syn.has(tcp::ECE);
        let mss = u64::from(syn.mss.unwrap_or(MSS).min(self.spec.mss));
        self.mss = mss.saturating_sub(if self.stamps { TIMESTAMP_BYTES } else { 0 }).max(1);
    }

    fn opened(&mut self, now: Instant, segment: &Segment) {
        self.state = State::Open;
        self.una = 1;
        let shift = if segment.has(tcp::SYN) { 0 } else { self.peer_shift };
        self.peer_window = u64::from(segment.window) << shift;
        self.peer_window_max = self.peer_window;
        if self.rtt.backoff == 0 {
            // of a SYN that was sent twice nobody knows which was answered
            let rtt = now.since(self.flight_at);
            self.rtt.sample(rtt, 1, 1);
            self.samples.push(rtt);
        }
        self.rtt.backoff = 0;
        self.timer = Timer::None;
        self.timer_at = Instant::MAX;
        self.delivered_at = now;
        self.flight_at = now;
    }
}
