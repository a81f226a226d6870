//! One end of a stream: our own TCP, or the second opinion.

use std::net::IpAddr;

use weir_packet::Headers;
use weir_units::{Instant, Span};

use crate::frames::{Frame, Frames};
use crate::second::Second;
use crate::tcp::{Counts, HEADER_BYTES, Segment, Stack, Tcp, TcpSpec};
use crate::wire::{ETHERNET, Route};

#[derive(Debug)]
pub(super) enum Peer {
    Own(Box<Tcp>),
    Second(Box<Second>),
}

impl Peer {
    /// An end at `own` that talks with `peer`, and begins if `calls`.
    pub(super) fn new(
        spec: &TcpSpec,
        calls: bool,
        own: (IpAddr, u16),
        peer: (IpAddr, u16),
        luck: u64,
    ) -> Peer {
        match spec.stack {
            Stack::Own if calls => Peer::Own(Box::new(Tcp::connect(spec, luck))),
            Stack::Own => Peer::Own(Box::new(Tcp::listen(spec, luck))),
            Stack::Smoltcp => Peer::Second(Box::new(Second::new(spec, calls, own, peer, luck))),
        }
    }

    /// Takes a frame; says whether it had payload.
    pub(super) fn receive(&mut self, now: Instant, bytes: &[u8], headers: &Headers) -> bool {
        match self {
            Peer::Own(tcp) => {
                let Some(segment) = Segment::read(bytes, headers) else { return false };
                tcp.receive(now, &segment);
                segment.payload > 0
            }
            Peer::Second(second) => {
                second.receive(now, bytes.get(ETHERNET..).unwrap_or(&[]));
                headers.payload_len() > 0
            }
        }
    }

    /// The next frame that leaves now.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        route: &mut Route,
        frames: &mut Frames,
    ) -> Option<Frame> {
        // without a buffer a segment is lost, as on a network card without one
        loop {
            let frame = match self {
                Peer::Own(tcp) => {
                    let segment = tcp.transmit(now)?;
                    let mut header = [0; HEADER_BYTES];
                    let len = segment.write(&mut header);
                    let payload = usize::from(segment.payload);
                    route.tcp(frames, &header[..len], payload, segment.ecn)
                }
                Peer::Second(second) => {
                    let packet = second.transmit(now)?;
                    let frame = route.packet(frames, &packet);
                    if let Some(frame) = &frame {
                        let bytes = frames.bytes(frame);
                        if let Some(segment) = Segment::read(bytes, &Headers::parse(bytes)) {
                            second.count(&segment);
                        }
                    }
                    frame
                }
            };
            if frame.is_some() {
                return frame;
            }
        }
    }

    pub(super) fn write(&mut self, bytes: u64) {
        match self {
            Peer::Own(tcp) => tcp.write(bytes),
            Peer::Second(second) => second.write(bytes),
        }
    }

    pub(super) fn stop_writing(&mut self) {
        match self {
            Peer::Own(tcp) => tcp.stop_writing(),
            Peer::Second(second) => second.stop_writing(),
        }
    }

    pub(super) fn close(&mut self) {
        match self {
            Peer::Own(tcp) => tcp.close(),
            Peer::Second(second) => second.close(),
        }
    }

    pub(super) fn wake(&mut self, now: Instant) {
        match self {
            Peer::Own(tcp) => tcp.wake(now),
            Peer::Second(second) => second.wake(now),
        }
    }

    pub(super) fn take_delivered(&mut self) -> u64 {
        match self {
            Peer::Own(tcp) => tcp.take_delivered(),
            Peer::Second(second) => second.take_delivered(),
        }
    }

    /// Hands over the round trips that were measured.
    pub(super) fn take_samples(&mut self, each: impl FnMut(Span)) {
        if let Peer::Own(tcp) = self
            && !tcp.samples.is_empty()
        {
            tcp.samples.drain(..).for_each(each);
        }
    }

    pub(super) fn counts(&self) -> Counts {
        match self {
            Peer::Own(tcp) => tcp.counts,
            Peer::Second(second) => second.counts,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        match self {
            Peer::Own(tcp) => tcp.deadline(),
            Peer::Second(second) => second.deadline(),
        }
    }
}
