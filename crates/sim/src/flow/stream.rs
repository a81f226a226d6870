//! A flow over TCP: a connection, and what its two ends say over it. A visit to web pages may make
//! a new connection for each.

use std::collections::VecDeque;

use weir_packet::Headers;
use weir_units::{Instant, Span};

use super::peer::Peer;
use super::{Files, FlowSpec, Path, Report, Source};
use crate::frames::{Frame, Frames};
use crate::random::Random;
use crate::tcp::{Counts, TcpSpec};
use crate::wire::Route;

#[derive(Debug)]
pub(crate) struct Stream {
    ends: [Peer; 2],
    specs: Box<[TcpSpec; 2]>,
    routes: [Route; 2],
    source: Source,
    stop: Instant,
    stage: Stage,
    /// When the client does something next.
    next: Instant,
    /// What earlier connections have counted.
    before: [Counts; 2],
    /// When what is not answered yet was asked.
    asked: VecDeque<Instant>,
    /// Payload of the question that has not come, and of the answer.
    question: u64,
    answer: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waits,
    Talks,
    Stopped,
}

/// What the flow around a stream has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Stays,
    /// The next connection begins, from another port.
    NewConnection,
}

impl Stream {
    pub(crate) fn new(spec: &FlowSpec, path: &Path, random: &mut Random) -> Stream {
        Stream {
            ends: connection(&spec.tcp, path, random),
            specs: spec.tcp.clone(),
            routes: path.routes(),
            source: spec.source.clone(),
            stop: spec.stop,
            stage: Stage::Waits,
            next: spec.start,
            before: [Counts::default(); 2],
            asked: VecDeque::new(),
            question: 0,
            answer: 0,
        }
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
        let tcp = &mut self.ends[end];
        let has_payload = tcp.receive(now, bytes, headers);
        report.ends[end].received += u64::from(has_payload);
        let news = tcp.take_delivered();
        tcp.take_samples(|rtt| report.ends[end].round_trips.add(rtt));
        if news > 0 {
            report.deliver(now, end, news);
            self.delivered(now, end, news, report, random);
        }
    }

    /// What an end does about payload that has come.
    fn delivered(
        &mut self,
        now: Instant,
        end: usize,
        bytes: u64,
        report: &mut Report,
        random: &mut Random,
    ) {
        match (&self.source, end) {
            (Source::Echo { .. }, 1) => self.ends[1].write(bytes),
            (Source::Echo { .. }, _) => {
                for asked in self.asked.drain(..self.asked.len().min(up_to(bytes))) {
                    report.answered(asked, now);
                }
            }
            (Source::Web { keeps, .. }, 1) => {
                let was_asked = self.question > 0;
                self.question = self.question.saturating_sub(bytes);
                if was_asked && self.question == 0 {
                    self.ends[1].write(self.answer);
                    if !keeps {
                        self.ends[1].close();
                    }
                }
            }
            (Source::Web { keeps, think, .. }, _) => {
                self.answer = self.answer.saturating_sub(bytes);
                if self.answer == 0
                    && let Some(asked) = self.asked.pop_front()
                {
                    report.answered(asked, now);
                    self.next = now + random.wait(*think);
                    if !keeps {
                        self.ends[0].close();
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn wake(&mut self, now: Instant, random: &mut Random) -> Turn {
        let mut turn = Turn::Stays;
        if self.stage != Stage::Stopped && self.next <= now && now < self.stop {
            turn = self.speak(now, random);
            self.stage = Stage::Talks;
        }
        if self.stage != Stage::Stopped && now >= self.stop {
            self.stage = Stage::Stopped;
            self.next = Instant::MAX;
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
        turn
    }

    /// The client's turn.
    fn speak(&mut self, now: Instant, random: &mut Random) -> Turn {
        self.next = Instant::MAX;
        let mut turn = Turn::Stays;
        match &self.source {
            Source::Bulk { bytes } => {
                self.ends[0].write(bytes.unwrap_or(u64::MAX));
                if bytes.is_some() {
                    self.ends[0].close();
                }
            }
            Source::Echo { every } => {
                self.ends[0].write(1);
                self.asked.push_back(now);
                self.next = now + random.wait(*every).max(Span::from_us(1));
            }
            Source::Web { keeps, .. } if self.stage == Stage::Talks && !keeps => {
                // the question goes over it when it is there
                turn = Turn::NewConnection;
            }
            Source::Web { .. } => self.ask(now, random),
            _ => {}
        }
        turn
    }

    fn ask(&mut self, now: Instant, random: &mut Random) {
        let Source::Web { files, request, .. } = &self.source else { return };
        self.answer = files.pick(random);
        self.question = u64::from((*request).max(1));
        self.asked.push_back(now);
        self.ends[0].write(self.question);
    }

    /// Begins the next connection, over a path with other ports.
    pub(super) fn begin(&mut self, now: Instant, path: &Path, random: &mut Random) {
        for (before, end) in self.before.iter_mut().zip(&self.ends) {
            *before = before.plus(&end.counts());
        }
        self.routes = path.routes();
        self.ends = connection(&self.specs, path, random);
        self.ask(now, random);
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
            let Some(frame) = tcp.transmit(now, &mut self.routes[end], frames) else { continue };
            let measured = report.counts(now);
            let (counts, to) = (self.before[end].plus(&tcp.counts()), &mut report.ends[end]);
            if measured {
                to.measured_sent += counts.sent - to.sent;
                to.measured_again += counts.again - to.retransmitted;
            }
            (to.sent, to.sent_bytes) = (counts.sent, counts.sent_bytes);
            (to.retransmitted, to.timeouts) = (counts.again, counts.timeouts);
            return Some((end, frame));
        }
        None
    }

    pub(crate) fn deadline(&self) -> Instant {
        let earliest = self.ends[0].deadline().min(self.ends[1].deadline());
        match self.stage {
            Stage::Waits => self.next,
            Stage::Talks => earliest.min(self.next).min(self.stop),
            Stage::Stopped => earliest,
        }
    }
}

fn connection(specs: &[TcpSpec; 2], path: &Path, random: &mut Random) -> [Peer; 2] {
    let [a, b] = [0, 1].map(|end| (path.addresses[end], path.ports[end]));
    [
        Peer::new(&specs[0], true, a, b, random.bits()),
        Peer::new(&specs[1], false, b, a, random.bits()),
    ]
}

fn up_to(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Files {
    /// The size of the next file.
    fn pick(&self, random: &mut Random) -> u64 {
        match self {
            Files::Fixed(bytes) => (*bytes).max(1),
            Files::Classes => {
                // of 100 requests, and the tenth of a class's largest file
                let unit = match random.below(100) {
                    0..35 => 102,
                    35..85 => 1_024,
                    85..99 => 10_240,
                    _ => 102_400,
                };
                unit * (1 + random.below(9))
            }
        }
    }
}
