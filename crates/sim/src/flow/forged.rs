//! What no honest host does: TCP data at a constant rate, whatever comes back, and an accomplice at
//! the other end who acknowledges each segment some time after it was sent, whether it has arrived
//! or not.

use weir_packet::{Headers, tcp};
use weir_units::{Bytes, Instant, Pace, Rate, Span};

use super::{FlowSpec, Report, Source};
use crate::frames::{FRAME_BYTES, Frame, Frames};
use crate::tcp::{HEADER_BYTES, Segment};
use crate::wire::Route;

/// Ethernet, IPv4, TCP and its timestamps.
const HEADERS: usize = 66;
const FIRST: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct Forged {
    routes: [Route; 2],
    payload: u16,
    pace: Pace,
    next: Instant,
    stop: Instant,
    seq: u32,
    /// When the acknowledgements begin.
    late: Span,
    begun: Instant,
    acked: u32,
    /// Each end has a segment to send.
    due: [bool; 2],
}

impl Forged {
    pub(crate) fn new(spec: &FlowSpec, routes: [Route; 2]) -> Forged {
        let (rate, bytes, late) = match spec.source {
            Source::Forged { rate, bytes, late } => (rate, bytes, late),
            _ => (Rate::ZERO, HEADERS, Span::ZERO),
        };
        let payload = bytes.min(FRAME_BYTES).saturating_sub(HEADERS);
        Forged {
            routes,
            payload: u16::try_from(payload).unwrap_or(0),
            pace: Pace::new(rate, spec.start),
            next: spec.start,
            stop: spec.stop,
            seq: FIRST,
            late,
            begun: spec.start,
            acked: FIRST,
            due: [false; 2],
        }
    }

    pub(crate) fn wake(&mut self, now: Instant) {
        if now >= self.stop {
            self.next = Instant::MAX;
            return;
        }
        self.due = [true, now.since(self.begun) >= self.late];
        self.pace.send(now, Bytes::new((HEADERS + usize::from(self.payload)) as u64));
        self.next = self.pace.free_at();
    }

    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        frames: &mut Frames,
        report: &mut Report,
    ) -> Option<(usize, Frame)> {
        let end = self.due.iter().position(|due| *due)?;
        self.due[end] = false;
        let clock = u32::try_from(now.ns() / 1_000_000).unwrap_or(0);
        let plain =
            Segment { window: u16::MAX, timestamps: Some((clock, clock)), ..Segment::default() };
        let segment = if end == 0 {
            let seq = self.seq;
            self.seq = seq.wrapping_add(u32::from(self.payload));
            report.ends[0].sent += 1;
            report.ends[0].sent_bytes += u64::from(self.payload);
            Segment { seq, ack: FIRST, flags: tcp::ACK, payload: self.payload, ..plain }
        } else {
            self.acked = self.acked.wrapping_add(u32::from(self.payload));
            Segment { seq: FIRST, ack: self.acked, flags: tcp::ACK, ..plain }
        };
        let mut header = [0; HEADER_BYTES];
        let len = segment.write(&mut header);
        let frame = self.routes[end].tcp(frames, &header[..len], segment.payload.into(), 0)?;
        Some((end, frame))
    }

    pub(crate) fn receive(now: Instant, end: usize, headers: &Headers, report: &mut Report) {
        report.deliver(now, end, headers.payload_len() as u64);
        report.ends[end].received += 1;
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.next
    }
}
