//! How fast packets pass: not limited, at a rate that counts what its link layer counts, or at the
//! moments of a recorded trace. Packets wait in order; those that find no room are lost. As nothing
//! overtakes here, the moment of leaving is known on arrival.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_shape::FrameCost;
use weir_units::{Bytes, Instant, Pace, Rate, Span};

/// How fast packets pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// At once.
    #[default]
    Free,
    /// At a rate.
    Rate {
        /// How fast.
        rate: Rate,
        /// What a frame costs: which layer the rate counts (in cells, with overhead).
        link: FrameCost,
        /// How much may wait, with what is on its way out.
        limit: Limit,
    },
    /// At the moments that a trace says.
    Trace {
        /// The trace.
        trace: Trace,
        /// How much may wait.
        limit: Limit,
    },
}

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many frames.
    Frames(usize),
    /// So many bytes of frames.
    Bytes(usize),
    /// What leaves within so much time.
    Time(Span),
}

/// When packets may leave, as mahimahi writes it: a line for each 1500 bytes, with the millisecond
/// at which they may. It starts anew after its last line. Bytes that nobody waits for are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    moments_ms: Arc<[u64]>,
}

/// Bytes that one line of a trace lets pass.
const OPPORTUNITY: usize = 1_500;
const ETHERNET_HEADER: usize = 14;

impl Trace {
    /// Reads a mahimahi trace.
    ///
    /// # Errors
    /// What is wrong in which line, in words.
    pub fn read(text: &str) -> Result<Trace, String> {
        let mut moments = Vec::new();
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let ms: u64 = line
                .trim()
                .parse()
                .map_err(|_| format!("line {}: \"{line}\" is no number of milliseconds", n + 1))?;
            if moments.last().is_some_and(|last| *last > ms) {
                return Err(format!("line {}: {ms} is before the line above it", n + 1));
            }
            moments.push(ms);
        }
        match moments.last() {
            None => Err("the trace is empty".to_owned()),
            Some(0) => Err("the trace must last longer than 0 milliseconds".to_owned()),
            Some(_) => Ok(Trace { moments_ms: moments.into() }),
        }
    }

    /// When opportunity number `n` is, over all repetitions.
    fn moment(&self, n: u64) -> Instant {
        let lines = self.moments_ms.len() as u64;
        let place = usize::try_from(n % lines).unwrap_or(0);
        let ms = (n / lines).saturating_mul(self.period_ms()) + self.moments_ms[place];
        Instant::ZERO + Span::from_ms(ms)
    }

    fn period_ms(&self) -> u64 {
        self.moments_ms.last().copied().unwrap_or(1)
    }

    /// The first opportunity from number `from` on that is not before `now`.
    fn first_at(&self, from: u64, now: Instant) -> u64 {
        let lines = self.moments_ms.len() as u64;
        let whole = now.ns() / 1_000_000 / self.period_ms();
        // a repetition before this one has no moment left that counts
        let mut n = from.max(whole.saturating_sub(1).saturating_mul(lines));
        while self.moment(n) < now {
            n += 1;
        }
        n
    }
}

/// A service with its queue.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    line: Line,
    limit: Limit,
    /// When those that wait leave, and how many bytes they have.
    waiting: VecDeque<(Instant, usize)>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Line {
    Free,
    Paced(Pace, FrameCost),
    Traced { trace: Trace, next: u64, left: usize },
}

impl Server {
    pub(crate) fn new(service: &Service) -> Server {
        let (line, limit) = match service {
            Service::Free => (Line::Free, Limit::Frames(0)),
            Service::Rate { rate, link, limit } => {
                (Line::Paced(Pace::new(*rate, Instant::ZERO), *link), *limit)
            }
            Service::Trace { trace, limit } => {
                let line = Line::Traced { trace: trace.clone(), next: 0, left: OPPORTUNITY };
                (line, *limit)
            }
        };
        Server { line, limit, waiting: VecDeque::new(), bytes: 0 }
    }

    /// When a frame leaves that comes at `now`; `None` if there is no room.
    pub(crate) fn leaves(&mut self, now: Instant, bytes: usize) -> Option<Instant> {
        if matches!(self.line, Line::Free) {
            return Some(now);
        }
        while let Some((_, gone)) = self.waiting.pop_front_if(|(at, _)| *at <= now) {
            self.bytes -= gone;
        }
        let room = match self.limit {
            Limit::Frames(frames) => self.waiting.len() < frames,
            Limit::Bytes(most) => self.bytes + bytes <= most,
            Limit::Time(span) => self.waiting.back().is_none_or(|(at, _)| at.since(now) <= span),
        };
        if !room {
            return None;
        }
        let at = self.line.send(now, bytes);
        self.waiting.push_back((at, bytes));
        self.bytes += bytes;
        Some(at)
    }
}

impl Line {
    fn send(&mut self, now: Instant, bytes: usize) -> Instant {
        match self {
            Line::Free => now,
            Line::Paced(pace, link) => {
                let cost = link.cost(bytes, 14);
                pace.send(now, Bytes::new(cost.get()));
                pace.free_at()
            }
            Line::Traced { trace, next, left } => {
                if trace.moment(*next) < now {
                    *next = trace.first_at(*next, now);
                    *left = OPPORTUNITY;
                }
                let mut need = bytes.saturating_sub(ETHERNET_HEADER);
                while need > *left {
                    need -= *left;
                    *next += 1;
                    *left = OPPORTUNITY;
                }
                *left -= need;
                trace.moment(*next)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_shape::Layer;

    fn ms(at: Option<Instant>) -> Option<u64> {
        at.map(|at| at.ns() / 1_000_000)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn a_rate_counts_cells_and_has_a_bound() {
        let link = FrameCost { layer: Layer::Atm, overhead: 0 };
        let rate = Rate::from_bps(8 * 53 * 1_000);
        let service = Service::Rate { rate, link, limit: Limit::Frames(2) };
        let mut server = Server::new(&service);
        // one cell per millisecond: 40 bytes of IP take one, 1500 take 32
        assert_eq!(ms(server.leaves(at(0), 54)), Some(1));
        assert_eq!(ms(server.leaves(at(0), 1_514)), Some(33));
        assert_eq!(server.leaves(at(0), 54), None);
        assert_eq!(ms(server.leaves(at(1), 54)), Some(34));
    }

    #[test]
    fn bytes_and_time_are_bounds_too() {
        let rate = Rate::from_bps(8_000);
        let link = FrameCost { layer: Layer::Ip, overhead: 14 };
        let mut server = Server::new(&Service::Rate { rate, link, limit: Limit::Bytes(150) });
        assert_eq!(ms(server.leaves(at(0), 100)), Some(100));
        assert_eq!(server.leaves(at(0), 100), None);
        assert_eq!(ms(server.leaves(at(0), 50)), Some(150));
        let limit = Limit::Time(Span::from_ms(120));
        let mut server = Server::new(&Service::Rate { rate, link, limit });
        assert_eq!(ms(server.leaves(at(0), 100)), Some(100));
        assert_eq!(ms(server.leaves(at(0), 100)), Some(200));
        assert_eq!(server.leaves(at(0), 100), None);
    }

    #[test]
    fn a_trace_lets_1500_bytes_pass_per_line_and_repeats() {
        let trace = Trace::read("2\n5\n5\n10\n").unwrap();
        let service = Service::Trace { trace, limit: Limit::Frames(100) };
        let mut server = Server::new(&service);
        // two small ones share an opportunity, then a large one takes the rest of it and a new one
        assert_eq!(ms(server.leaves(at(0), 514)), Some(2));
        assert_eq!(ms(server.leaves(at(1), 514)), Some(2));
        assert_eq!(ms(server.leaves(at(1), 1_514)), Some(5));
        // what nobody used at 2 and 5 is lost; the next is at 10, then 12 of the repetition
        assert_eq!(ms(server.leaves(at(6), 1_514)), Some(10));
        assert_eq!(ms(server.leaves(at(6), 1_514)), Some(12));
        assert_eq!(ms(server.leaves(at(1_000_001), 1_514)), Some(1_000_002));
    }

    #[test]
    fn a_broken_trace_is_named() {
        assert!(Trace::read("1\nx").unwrap_err().contains("line 2"));
        assert!(Trace::read("5\n4").unwrap_err().contains("line 2"));
        assert!(Trace::read("\n").is_err() && Trace::read("0\n").is_err());
    }
}
