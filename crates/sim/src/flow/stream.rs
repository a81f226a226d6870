//! A flow over TCP: a connection, and what its two ends say over it.

use weir_packet::Headers;
use weir_units::Instant;

use super::{FlowSpec, Report, Source};
use crate::frames::{Frame, Frames};
use crate::random::Random;
use crate::tcp::{HEADER_BYTES, Segment, Tcp};
use crate::wire::Route;

#[derive(Debug)]
pub(crate) struct Stream {
    ends: [Tcp; 2],
    routes: [Route; 2],
    source: Source,
    start: Instant,
    stop: Instant,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waits,
    Talks,
    Stopped,
}

impl Stream {
    pub(crate) fn new(spec: &FlowSpec, routes: [Route; 2], random: &mut Random) -> Stream {
        let [from, to] = &*spec.tcp;
        Stream {
            ends: [Tcp::connect(from, random.bits()), Tcp::listen(to, random.bits())],
            routes,
            source: spec.source.clone(),
            start: spec.start,
            stop: spec.stop,
            stage: Stage::Waits,
        }
    }

    pub(crate) fn receive(
        &mut self,
        now: Instant,
        end: usize,
        bytes: &[u8],
        headers: &Headers,
        report: &mut Report,
    ) {
        let Some(segment) = Segment::read(bytes, headers) else { return };
        let tcp = &mut self.ends[end];
        tcp.receive(now, &segment);
        report.ends[end].received += u64::from(segment.payload > 0);
        let news = tcp.take_delivered();
        if news > 0 {
            report.deliver(now, end, news);
        }
        if !tcp.samples.is_empty() {
            tcp.samples.drain(..).for_each(|rtt| report.ends[end].round_trips.add(rtt));
        }
    }

    pub(crate) fn wake(&mut self, now: Instant) {
        if self.stage == Stage::Waits && now >= self.start {
            self.stage = Stage::Talks;
            if let Source::Bulk { bytes } = self.source {
                self.ends[0].write(bytes.unwrap_or(u64::MAX));
                if bytes.is_some() {
                    self.ends[0].close();
                }
            }
        }
        if self.stage == Stage::Talks && now >= self.stop {
            self.stage = Stage::Stopped;
            for end in &mut self.ends {
                end.stop_writing();
                end.close();
            }
        }
        for end in &mut self.ends {
            if end.deadline() <= now {
                end.wake(now);
            }
        }
    }

    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        frames: &mut Frames,
        report: &mut Report,
    ) -> Option<(usize, Frame)> {
        if self.stage == Stage::Waits {
            return None;
        }
        for (end, tcp) in self.ends.iter_mut().enumerate() {
            // without a buffer the segment is lost, as on a network card without one
            if let Some(segment) = tcp.transmit(now) {
                let mut header = [0; HEADER_BYTES];
                let len = segment.write(&mut header);
                let payload = usize::from(segment.payload);
                let route = &mut self.routes[end];
                let frame = route.tcp(frames, &header[..len], payload, segment.ecn);
                let counts_now = report.counts(now);
                let (counts, to) = (tcp.counts, &mut report.ends[end]);
                if counts_now {
                    to.measured_sent += counts.sent - to.sent;
                    to.measured_again += counts.again - to.retransmitted;
                }
                (to.sent, to.sent_bytes) = (counts.sent, counts.sent_bytes);
                (to.retransmitted, to.timeouts) = (counts.again, counts.timeouts);
                if let Some(frame) = frame {
                    return Some((end, frame));
                }
            }
        }
        None
    }

    pub(crate) fn deadline(&self) -> Instant {
        match self.stage {
            Stage::Waits => self.start,
            Stage::Talks => self.earliest().min(self.stop),
            Stage::Stopped => self.earliest(),
        }
    }

    fn earliest(&self) -> Instant {
        self.ends[0].deadline().min(self.ends[1].deadline())
    }
}
