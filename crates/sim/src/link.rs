//! One direction of a wire: a queue, a line that takes its time for each frame, and a path behind
//! it that delays and harms.

mod codel;
mod queue;
mod red;

use std::collections::VecDeque;

use weir_shape::FrameCost;
use weir_units::{Bytes, Instant, Pace, Rate};

pub use codel::Codel;
pub use queue::{Aqm, Queue};
pub use red::Red;

use crate::frames::{Frame, Frames};
use crate::impair::{Delivery, Impair, Impairments};
use crate::world::Place;
use queue::{Mark, Waiting};

/// What one direction of a wire is like. The default takes no time and loses nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSpec {
    /// How fast the line is; without one, a frame is through at once.
    pub rate: Option<Rate>,
    /// What a frame costs on it.
    pub layers: FrameCost,
    /// What waits for the line.
    pub queue: Queue,
    /// What happens behind it.
    pub path: Impairments,
}

/// What a link has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Frames that came.
    pub offered: u64,
    /// Frames that went over the line.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that the queue dropped.
    pub dropped: u64,
    /// Frames that the queue marked.
    pub marked: u64,
    /// Frames that the path lost.
    pub lost: u64,
    /// The most bytes that ever waited.
    pub queue_bytes_max: usize,
    /// The longest that a frame waited for the line, in nanoseconds; its own time on the line is
    /// not in it.
    pub wait_ns_max: u64,
    /// How long all frames waited for the line together, in nanoseconds.
    pub wait_ns_sum: u64,
}

/// What the world has to do for a link.
pub(crate) enum Todo {
    Nothing,
    /// Ask again when the line is free.
    SentAt(Instant),
    /// The line is none: the frame is through.
    Through(Frame),
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) to: Place,
    line: Option<(Pace, FrameCost)>,
    queue: queue::State,
    impair: Impair,
    /// Frames behind the line, by their arrival.
    flight: VecDeque<(Instant, Frame)>,
    /// When the next arrival will be asked for.
    pub(crate) asked_at: Instant,
    pub(crate) counts: LinkCounts,
    pub(crate) is_tapped: bool,
}

impl Link {
    pub(crate) fn new(spec: &LinkSpec, to: Place, seed: u64, stream: u64) -> Link {
        Link {
            to,
            line: spec.rate.map(|rate| (Pace::new(rate, Instant::ZERO), spec.layers)),
            queue: queue::State::new(&spec.queue, spec.rate, seed, stream),
            impair: Impair::new(&spec.path, seed, stream),
            flight: VecDeque::new(),
            asked_at: Instant::MAX,
            counts: LinkCounts::default(),
            is_tapped: false,
        }
    }

    /// Takes a frame at the near end.
    pub(crate) fn offer(&mut self, now: Instant, frame: Frame, frames: &mut Frames) -> Todo {
        self.counts.offered += 1;
        let Some((_, layers)) = self.line else { return Todo::Through(frame) };
        let cost = layers.cost(frame.len(), 14);
        let was_idle = self.queue.is_empty();
        let waiting = Waiting { frame, cost, since: now };
        match self.queue.push(now, waiting, frames) {
            Ok(mark) => self.counts.marked += u64::from(mark == Mark::Marked),
            Err(frame) => self.drop(frame, frames),
        }
        while let Some(frame) = self.queue.excess(was_idle) {
            self.drop(frame, frames);
        }
        self.counts.queue_bytes_max = self.counts.queue_bytes_max.max(self.queue.bytes());
        if was_idle { self.start(now, frames) } else { Todo::Nothing }
    }

    /// The frame on the line has left it; the next one may start.
    pub(crate) fn sent(&mut self, now: Instant, frames: &mut Frames) -> (Option<Frame>, Todo) {
        let Some(done) = self.queue.pop(now) else { return (None, Todo::Nothing) };
        (Some(done.frame), self.start(now, frames))
    }

    fn start(&mut self, now: Instant, frames: &mut Frames) -> Todo {
        while let Some(frame) = self.queue.too_old(now, frames, &mut self.counts.marked) {
            self.drop(frame, frames);
        }
        let (Some(next), Some((pace, _))) = (self.queue.front(), &mut self.line) else {
            return Todo::Nothing;
        };
        let waited = now.since(next.since).ns();
        self.counts.wait_ns_max = self.counts.wait_ns_max.max(waited);
        self.counts.wait_ns_sum += waited;
        pace.send(now, Bytes::new(next.cost.get()));
        Todo::SentAt(pace.free_at())
    }

    /// Sends a frame over the path behind the line. Says when to ask for arrivals, if that is
    /// earlier than was said before.
    pub(crate) fn depart(
        &mut self,
        now: Instant,
        frame: Frame,
        frames: &mut Frames,
    ) -> Option<Instant> {
        self.counts.sent += 1;
        self.counts.sent_bytes += frame.len() as u64;
        let Delivery::Arrives(arrival) = self.impair.on_packet(now, frame.len()) else {
            self.counts.lost += 1;
            frames.give(frame);
            return None;
        };
        if arrival.mark && !queue::mark(frames.bytes_mut(&frame)) {
            self.counts.lost += 1;
            frames.give(frame);
            return None;
        }
        if let Some(again) = arrival.again
            && let Some(twin) = frames.copy(&frame)
        {
            self.fly(again, twin);
        }
        if let Some(bit) = arrival.wrong_bit {
            frames.flip(&frame, bit);
        }
        self.fly(arrival.at, frame);
        self.ask()
    }

    /// The next frame that has arrived.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<Frame> {
        self.flight.pop_front_if(|(at, _)| *at <= now).map(|(_, frame)| frame)
    }

    /// When to ask for arrivals next, unless that is known.
    pub(crate) fn ask(&mut self) -> Option<Instant> {
        let (at, _) = self.flight.front()?;
        if *at >= self.asked_at {
            return None;
        }
        self.asked_at = *at;
        Some(*at)
    }

    /// Changes the rate of the line, from the next frame on.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        if let Some((pace, layers)) = self.line {
            self.line = Some((Pace::new(rate, pace.free_at()), layers));
            self.queue.set_rate(rate);
        }
    }

    fn fly(&mut self, at: Instant, frame: Frame) {
        let later = self.flight.iter().rev().take_while(|(other, _)| *other > at).count();
        self.flight.insert(self.flight.len() - later, (at, frame));
    }

    fn drop(&mut self, frame: Frame, frames: &mut Frames) {
        self.counts.dropped += 1;
        frames.give(frame);
    }
}
