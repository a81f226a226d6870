//! Questions and answers in datagrams: names (DNS), and setting up a call (SIP, RFC 3261, as far as
//! the timers go: an INVITE is sent again until anything comes back, an OK until the ACK comes).

use std::collections::VecDeque;

use weir_packet::Headers;
use weir_units::{Instant, Span};

use super::{FlowSpec, Report, Source};
use crate::frames::{Frame, Frames};
use crate::random::Random;
use crate::wire::Route;

/// SIP's estimate of a round trip, from which its other times follow.
const T1: Span = Span::from_ms(500);
const T2: Span = Span::from_secs(4);
/// A call that is not set up by then is not.
const GIVE_UP: Span = Span::from_secs(32);
/// A resolver asks again after so long, and so often.
const DNS_AGAIN: Span = Span::from_secs(5);
const DNS_TRIES: u32 = 3;

#[derive(Debug)]
pub(crate) struct Exchange {
    routes: [Route; 2],
    source: Source,
    stop: Instant,
    out: VecDeque<(usize, Vec<u8>)>,
    /// When each end sends again, how long it waits then, and how often it has.
    again: [Again; 2],
    asked_at: Option<Instant>,
    number: u16,
    /// When the phone is picked up.
    picks_up: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Again {
    at: Instant,
    wait: Span,
    tries: u32,
}

const NOT: Again = Again { at: Instant::MAX, wait: Span::ZERO, tries: 0 };

impl Exchange {
    pub(crate) fn new(spec: &FlowSpec, routes: [Route; 2]) -> Exchange {
        Exchange {
            routes,
            source: spec.source.clone(),
            stop: spec.stop,
            out: VecDeque::new(),
            again: [Again { at: spec.start, ..NOT }, NOT],
            asked_at: None,
            number: 0,
            picks_up: Instant::MAX,
        }
    }

    pub(crate) fn wake(&mut self, now: Instant, random: &mut Random) {
        if self.picks_up <= now {
            self.picks_up = Instant::MAX;
            self.out.push_back((1, sip("SIP/2.0 200 OK", "INVITE")));
            self.again[1] = Again { at: now + T1, wait: T1, tries: 0 };
        }
        if self.again[1].at <= now {
            self.out.push_back((1, sip("SIP/2.0 200 OK", "INVITE")));
            let wait = doubled(self.again[1].wait).min(T2);
            let tries = self.again[1].tries + 1;
            self.again[1] = if tries > 10 { NOT } else { Again { at: now + wait, wait, tries } };
        }
        if self.again[0].at > now {
            return;
        }
        match self.source {
            Source::Dns { every } => self.ask(now, every, random),
            _ => self.invite(now),
        }
    }

    fn ask(&mut self, now: Instant, every: Span, random: &mut Random) {
        let open = self.asked_at.is_some() && self.again[0].tries < DNS_TRIES;
        if !open {
            if now >= self.stop {
                self.again[0] = NOT;
                return;
            }
            self.number = self.number.wrapping_add(1);
            self.asked_at = Some(now);
            self.again[0] = NOT;
        }
        self.out.push_back((0, dns(self.number, false)));
        let tries = self.again[0].tries + 1;
        let wait = if tries < DNS_TRIES { DNS_AGAIN } else { DNS_AGAIN + random.wait(every) };
        self.again[0] = Again { at: now + wait, wait, tries };
    }

    fn invite(&mut self, now: Instant) {
        let asked_at = *self.asked_at.get_or_insert(now);
        let first = self.again[0].tries == 0;
        let wait = if first { T1 } else { doubled(self.again[0].wait) };
        if now.since(asked_at) >= GIVE_UP || now >= self.stop {
            self.again[0] = NOT;
            return;
        }
        self.out.push_back((0, sip("INVITE sip:b@weir.example SIP/2.0", "INVITE")));
        self.again[0] = Again { at: now + wait, wait, tries: self.again[0].tries + 1 };
    }

    pub(crate) fn receive(
        &mut self,
        now: Instant,
        end: usize,
        bytes: &[u8],
        headers: &Headers,
        report: &mut Report,
        random: &mut Random,
    ) {
        let payload =
            bytes.get(usize::from(headers.payload_at)..usize::from(headers.end)).unwrap_or(&[]);
        report.deliver(now, end, payload.len() as u64);
        report.ends[end].received += 1;
        match self.source {
            Source::Dns { every } => {
                if end == 1 {
                    let number = payload.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
                    self.out.push_back((1, dns(number, true)));
                } else if payload.get(..2) == Some(&self.number.to_be_bytes())
                    && let Some(asked_at) = self.asked_at.take()
                {
                    report.ends[0].delays.add(now.since(asked_at));
                    self.again[0] = Again { at: now + random.wait(every), ..NOT };
                }
            }
            Source::Call { rings } => self.signalled(now, end, payload, rings, report),
            _ => {}
        }
    }

    fn signalled(
        &mut self,
        now: Instant,
        end: usize,
        text: &[u8],
        rings: Span,
        report: &mut Report,
    ) {
        if end == 1 {
            if text.starts_with(b"ACK") {
                self.again[1] = NOT;
            } else if text.starts_with(b"INVITE") {
                if self.number == 0 {
                    self.number = 1;
                    self.picks_up = now + rings;
                    self.out.push_back((1, sip("SIP/2.0 100 Trying", "INVITE")));
                }
                self.out.push_back((1, sip("SIP/2.0 180 Ringing", "INVITE")));
            }
        } else if text.starts_with(b"SIP/2.0 1") {
            self.again[0].at = Instant::MAX;
        } else if text.starts_with(b"SIP/2.0 200") {
            self.again[0].at = Instant::MAX;
            self.out.push_back((0, sip("ACK sip:b@weir.example SIP/2.0", "ACK")));
            if report.ends[0].delays.count == 0
                && let Some(asked_at) = self.asked_at
            {
                report.ends[0].delays.add(now.since(asked_at));
            }
        }
    }

    pub(crate) fn transmit(
        &mut self,
        frames: &mut Frames,
        report: &mut Report,
    ) -> Option<(usize, Frame)> {
        let (end, message) = self.out.pop_front()?;
        report.ends[end].sent += 1;
        report.ends[end].sent_bytes += message.len() as u64;
        let write = |bytes: &mut [u8]| bytes.copy_from_slice(&message);
        let frame = self.routes[end].udp(frames, message.len(), write)?;
        Some((end, frame))
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.again[0].at.min(self.again[1].at).min(self.picks_up)
    }
}

fn doubled(span: Span) -> Span {
    Span::from_ns(span.ns().saturating_mul(2))
}

/// A question for the address of weir.example, or its answer.
fn dns(number: u16, answers: bool) -> Vec<u8> {
    let mut message = number.to_be_bytes().to_vec();
    let flags = if answers { [0x81, 0x80] } else { [0x01, 0x00] };
    message.extend(flags);
    message.extend([0, 1, 0, u8::from(answers), 0, 0, 0, 0]);
    message.extend(b"\x04weir\x07example\x00\x00\x01\x00\x01");
    if answers {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    }
    message
}

/// A message with the headers that every SIP message has.
fn sip(first: &str, method: &str) -> Vec<u8> {
    let mut text = format!(
        "{first}\r\nVia: SIP/2.0/UDP a.weir.example:5060;branch=z9hG4bKweir{}\r\n\
         Max-Forwards: 70\r\nFrom: <sip:a@weir.example>;tag=a1\r\nTo: <sip:b@weir.example>{}\r\n\
         Call-ID: 1@weir.example\r\nCSeq: 1 {method}\r\nContact: <sip:a@weir.example>\r\n",
        if method == "ACK" { "2" } else { "1" },
        if first.starts_with("INVITE") { "" } else { ";tag=b1" },
    );
    let speaks = first.starts_with("INVITE") || first.contains("200");
    let body = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
                m=audio 16384 RTP/AVP 18\r\na=rtpmap:18 G729/8000\r\n";
    if speaks {
        text += &format!("Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n", body.len());
        text += body;
    } else {
        text += "Content-Length: 0\r\n\r\n";
    }
    text.into_bytes()
}
