//! A one-way flow of datagrams. Each carries its number and when it was sent, so that the far end
//! knows delay, jitter and loss from the bytes alone. Voice carries them inside RTP.

use weir_packet::Headers;
use weir_units::{Bytes, Instant, Pace, Span};

use super::{FlowSpec, Report, Source};
use crate::frames::{FRAME_BYTES, Frame, Frames};
use crate::random::{Random, times};
use crate::wire::Route;

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
/// Number and time.
const STAMP: usize = 12;
const RTP: usize = 12;
const RTP_G729: u8 = 18;
const G729_BYTES: usize = 20;
const GAME_BYTES: usize = 82;
const GAME_LEAST: Span = Span::from_ms(35);
const GAME_MORE: Span = Span::from_ms(10);
const G729_EVERY: Span = Span::from_ms(20);

#[derive(Debug)]
pub(crate) struct Datagrams {
    routes: [Route; 2],
    source: Source,
    payload: usize,
    next: Instant,
    /// Where the source stands in its constant rate.
    pace: Pace,
    /// When it falls silent, or speaks again.
    turns: Option<Instant>,
    stop: Instant,
    number: u32,
    due: bool,
    /// Transit of the datagram before, and 16 x the jitter.
    transit: Option<u64>,
    jitter: u64,
}

impl Datagrams {
    pub(crate) fn new(spec: &FlowSpec, routes: [Route; 2]) -> Datagrams {
        let (rate, bytes) = match spec.source {
            Source::Cbr { rate, bytes }
            | Source::Poisson { rate, bytes }
            | Source::OnOff { rate, bytes, .. } => (rate, bytes),
            Source::Game => (weir_units::Rate::ZERO, GAME_BYTES),
            _ => (weir_units::Rate::ZERO, HEADERS + RTP + G729_BYTES),
        };
        Datagrams {
            payload: bytes.min(FRAME_BYTES).saturating_sub(HEADERS),
            routes,
            source: spec.source.clone(),
            next: spec.start,
            pace: Pace::new(rate, spec.start),
            turns: None,
            stop: spec.stop,
            number: 0,
            due: false,
            transit: None,
            jitter: 0,
        }
    }

    pub(crate) fn wake(&mut self, now: Instant, random: &mut Random) {
        if now >= self.stop {
            self.next = Instant::MAX;
            return;
        }
        self.due = true;
        let bytes = Bytes::new((HEADERS + self.payload) as u64);
        self.next = match self.source {
            Source::Poisson { rate, .. } => {
                // two in the same nanosecond would stop the clock at rates beyond all sense
                now + random.wait(rate.time_for(bytes)).max(Span::from_ns(1))
            }
            Source::OnOff { on, off, .. } => {
                let turns = *self.turns.get_or_insert_with(|| now + random.wait(on));
                self.pace.send(now, bytes);
                if self.pace.free_at() < turns {
                    self.pace.free_at()
                } else {
                    let again = turns.max(now) + random.wait(off);
                    self.turns = Some(again + random.wait(on));
                    again
                }
            }
            Source::Cbr { .. } => {
                self.pace.send(now, bytes);
                self.pace.free_at()
            }
            Source::Game => now + GAME_LEAST + times(GAME_MORE, random.unit()),
            _ => now + G729_EVERY,
        };
    }

    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        frames: &mut Frames,
        report: &mut Report,
    ) -> Option<(usize, Frame)> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let number = self.number;
        self.number = number.wrapping_add(1);
        let is_voice = matches!(self.source, Source::Voice);
        let frame = self.routes[0].udp(frames, self.payload, |bytes| {
            let stamp = if is_voice { &mut bytes[RTP..] } else { &mut *bytes };
            if let Some(stamp) = stamp.first_chunk_mut::<STAMP>() {
                stamp[..4].copy_from_slice(&number.to_be_bytes());
                stamp[4..].copy_from_slice(&now.ns().to_be_bytes());
            }
            if is_voice {
                rtp(bytes, number);
            }
        })?;
        let end = &mut report.ends[0];
        end.sent += 1;
        end.sent_bytes += self.payload as u64;
        Some((0, frame))
    }

    pub(crate) fn receive(
        &mut self,
        now: Instant,
        end: usize,
        bytes: &[u8],
        headers: &Headers,
        report: &mut Report,
    ) {
        let payload =
            bytes.get(usize::from(headers.payload_at)..usize::from(headers.end)).unwrap_or(&[]);
        report.deliver(now, end, payload.len() as u64);
        report.ends[end].received += 1;
        let stamp =
            if matches!(self.source, Source::Voice) { payload.get(RTP..) } else { Some(payload) };
        let Some(stamp) = stamp.and_then(|bytes| bytes.first_chunk::<STAMP>()) else { return };
        let [_, _, _, _, at @ ..] = *stamp;
        let transit = now.ns().saturating_sub(u64::from_be_bytes(at));
        if report.counts(now) {
            report.ends[end].delays.add(Span::from_ns(transit));
        }
        if let Some(before) = self.transit.replace(transit) {
            self.jitter += transit.abs_diff(before);
            self.jitter -= (self.jitter + 8) >> 4;
            report.ends[end].jitter = Span::from_ns(self.jitter >> 4);
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.next
    }
}

/// The header of an RTP packet: version 2, G.729, 160 samples each.
fn rtp(bytes: &mut [u8], number: u32) {
    let Some(head) = bytes.first_chunk_mut::<RTP>() else { return };
    let [_, _, high, low] = number.to_be_bytes();
    head[..4].copy_from_slice(&[0x80, RTP_G729, high, low]);
    head[4..8].copy_from_slice(&number.wrapping_mul(160).to_be_bytes());
    head[8..].copy_from_slice(b"weir");
}
