//! A flow: two ends on two hosts, what makes them talk, and what they have seen of each other.

mod datagrams;
mod exchange;
mod forged;
mod peer;
mod report;
mod spec;
mod stream;

use std::net::IpAddr;

use weir_packet::Headers;
use weir_units::Instant;

pub use report::{EndReport, Report, Samples};
pub use spec::{Files, FlowSpec, Source};

use crate::frames::{Frame, Frames};
use crate::random::Random;
use crate::wire::{Mac, Route};
use crate::world::{Key, NodeId, key};
use datagrams::Datagrams;
use exchange::Exchange;
use forged::Forged;
use stream::{Stream, Turn};

/// What a flow's frames have in common.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) nodes: [NodeId; 2],
    macs: [Mac; 2],
    addresses: [IpAddr; 2],
    pub(crate) ports: [u16; 2],
    protocol: u8,
    traffic_class: u8,
}

#[derive(Debug)]
pub(crate) struct Flow {
    path: Path,
    talk: Talk,
    report: Report,
    random: Random,
    /// The keys that it had before its ports changed.
    left: Option<[(NodeId, Key); 2]>,
}

/// What makes the ends talk.
#[derive(Debug)]
enum Talk {
    Datagrams(Box<Datagrams>),
    Exchange(Box<Exchange>),
    Forged(Box<Forged>),
    Stream(Box<Stream>),
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl Flow {
    pub(crate) fn new(
        spec: &FlowSpec,
        id: usize,
        macs: [Mac; 2],
        addresses: [IpAddr; 2],
        seed: u64,
    ) -> Flow {
        let path = Path {
            nodes: [spec.from, spec.to],
            macs,
            addresses,
            ports: spec.ports(id),
            protocol: if spec.source.is_tcp() { TCP } else { UDP },
            traffic_class: spec.traffic_class,
        };
        let routes = path.routes();
        // a stream apart from those of links, which count up from 0
        let mut random = Random::new(seed, (1 << 32) + id as u64);
        let talk = if matches!(spec.source, Source::Forged { .. }) {
            Talk::Forged(Box::new(Forged::new(spec, routes)))
        } else if spec.source.is_tcp() {
            Talk::Stream(Box::new(Stream::new(spec, &path, &mut random)))
        } else if spec.source.is_exchange() {
            Talk::Exchange(Box::new(Exchange::new(spec, routes)))
        } else {
            Talk::Datagrams(Box::new(Datagrams::new(spec, routes)))
        };
        Flow { talk, report: Report::new(spec), path, random, left: None }
    }

    /// A frame of this flow has come to one of its ends.
    pub(crate) fn receive(&mut self, now: Instant, end: usize, bytes: &[u8], headers: &Headers) {
        let (report, random) = (&mut self.report, &mut self.random);
        match &mut self.talk {
            Talk::Datagrams(talk) => talk.receive(now, end, bytes, headers, report),
            Talk::Exchange(talk) => talk.receive(now, end, bytes, headers, report, random),
            Talk::Forged(_) => Forged::receive(now, end, headers, report),
            Talk::Stream(talk) => talk.receive(now, end, bytes, headers, report, random),
        }
    }

    /// The time that [`Flow::deadline`] said has come.
    pub(crate) fn wake(&mut self, now: Instant) {
        match &mut self.talk {
            Talk::Datagrams(talk) => talk.wake(now, &mut self.random),
            Talk::Exchange(talk) => talk.wake(now, &mut self.random),
            Talk::Forged(talk) => talk.wake(now),
            Talk::Stream(talk) => {
                if talk.wake(now, &mut self.random) == Turn::NewConnection {
                    self.left = Some(self.path.keys());
                    self.path.next_port();
                    talk.begin(now, &self.path, &mut self.random);
                }
            }
        }
    }

    /// The next frame that an end sends now, and its host.
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        frames: &mut Frames,
    ) -> Option<(NodeId, Frame)> {
        let (end, frame) = match &mut self.talk {
            Talk::Datagrams(talk) => talk.transmit(now, frames, &mut self.report),
            Talk::Exchange(talk) => talk.transmit(frames, &mut self.report),
            Talk::Forged(talk) => talk.transmit(now, frames, &mut self.report),
            Talk::Stream(talk) => talk.transmit(now, frames, &mut self.report),
        }?;
        Some((self.path.nodes[end], frame))
    }

    /// When it wants to be woken.
    pub(crate) fn deadline(&self) -> Instant {
        match &self.talk {
            Talk::Datagrams(talk) => talk.deadline(),
            Talk::Exchange(talk) => talk.deadline(),
            Talk::Forged(talk) => talk.deadline(),
            Talk::Stream(talk) => talk.deadline(),
        }
    }

    /// The keys that are no longer its own, if its ports have changed since this was asked.
    pub(crate) fn take_left(&mut self) -> Option<[(NodeId, Key); 2]> {
        self.left.take()
    }

    /// For each end, its host and how the frames look that it gets.
    pub(crate) fn keys(&self) -> [(NodeId, Key); 2] {
        self.path.keys()
    }

    pub(crate) fn report(&self) -> &Report {
        &self.report
    }
}

impl Path {
    /// Another port for the one who calls.
    fn next_port(&mut self) {
        // flows have even ports that they begin with; connections after the first have odd ones,
        // so far apart that two flows between the same addresses seldom meet
        let next = (u32::from(self.ports[0]) | 1) + 2 * 4_099;
        self.ports[0] = u16::try_from(next % 65_536).unwrap_or(1).max(1_025);
    }

    fn keys(&self) -> [(NodeId, Key); 2] {
        let Path { nodes, addresses: [a, b], ports: [p, q], protocol, .. } = *self;
        [(nodes[0], key([b, a], [q, p], protocol)), (nodes[1], key([a, b], [p, q], protocol))]
    }

    /// How each end addresses the other.
    pub(crate) fn routes(&self) -> [Route; 2] {
        let turned = |[a, b]: [Mac; 2]| [b, a];
        let route = |macs, [a, b]: [IpAddr; 2], ports| {
            Route::new(macs, [a, b], ports, self.protocol, self.traffic_class)
        };
        let ([a, b], [p, q]) = (self.addresses, self.ports);
        [route(self.macs, [a, b], [p, q]), route(turned(self.macs), [b, a], [q, p])]
    }
}
