//! What waits for a line: a bound in frames, bytes or time, who pays at the bound, and what is
//! dropped or marked before it. The frame on the line is the first of the queue, and counts.

use std::collections::VecDeque;

use weir_packet::{Headers, Net, checksum};
use weir_units::{Bytes, Instant, Rate, Span};

use super::codel::{self, Codel};
use super::red::{self, Red};
use crate::frames::{Frame, Frames};
use crate::impair::Limit;

/// A queue as plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// How much may wait, with the frame on the line.
    pub limit: Limit,
    /// At the bound the oldest frame pays, not the newest.
    pub drop_head: bool,
    /// What is dropped before the bound.
    pub aqm: Aqm,
    /// Whether that marks frames that can be marked instead of dropping them.
    pub ecn: bool,
}

impl Default for Queue {
    /// A thousand frames, as a network card has them.
    fn default() -> Queue {
        Queue { limit: Limit::Frames(1_000), drop_head: false, aqm: Aqm::None, ecn: false }
    }
}

impl Queue {
    /// A plain queue of so many frames.
    #[must_use]
    pub fn frames(frames: usize) -> Queue {
        Queue { limit: Limit::Frames(frames), ..Queue::default() }
    }
}

/// What is dropped before a queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aqm {
    /// Nothing.
    #[default]
    None,
    /// By chance, by the length of the queue.
    Red(Red),
    /// By how long frames have waited.
    Codel(Codel),
}

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) frame: Frame,
    pub(crate) cost: Bytes,
    pub(crate) since: Instant,
}

/// Whether a frame was marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    Marked,
}

#[derive(Debug)]
pub(crate) struct State {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    cost: u64,
    limit: Limit,
    rate: Rate,
    drop_head: bool,
    ecn: bool,
    aqm: Active,
}

#[derive(Debug)]
enum Active {
    None,
    Red(red::State),
    Codel(codel::State),
}

impl State {
    pub(crate) fn new(queue: &Queue, rate: Option<Rate>, seed: u64, stream: u64) -> State {
        let rate = rate.unwrap_or(Rate::MAX);
        let aqm = match queue.aqm {
            Aqm::None => Active::None,
            Aqm::Red(red) => Active::Red(red::State::new(red, rate, seed, stream)),
            Aqm::Codel(codel) => Active::Codel(codel::State::new(codel)),
        };
        State {
            waiting: VecDeque::new(),
            bytes: 0,
            cost: 0,
            limit: queue.limit,
            rate,
            drop_head: queue.drop_head,
            ecn: queue.ecn,
            aqm,
        }
    }

    /// Takes a frame, or gives it back when it may not wait.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        waiting: Waiting,
        frames: &mut Frames,
    ) -> Result<Mark, Frame> {
        let mut marked = Mark::None;
        if let Active::Red(red) = &mut self.aqm
            && red.hits(now, self.bytes, self.waiting.len(), waiting.frame.len())
        {
            if !(self.ecn && mark(frames.bytes_mut(&waiting.frame))) {
                return Err(waiting.frame);
            }
            marked = Mark::Marked;
        }
        if !self.drop_head && !self.has_room(&waiting) {
            return Err(waiting.frame);
        }
        self.bytes += waiting.frame.len();
        self.cost += waiting.cost.get();
        self.waiting.push_back(waiting);
        Ok(marked)
    }

    /// The oldest frame that is too many, where the oldest pays. The one on the line stays.
    pub(crate) fn excess(&mut self, was_idle: bool) -> Option<Frame> {
        let spared = usize::from(!was_idle);
        if !self.drop_head || self.waiting.len() <= spared + 1 || self.is_within() {
            return None;
        }
        let gone = self.waiting.remove(spared)?;
        self.forget(&gone);
        Some(gone.frame)
    }

    /// The first frame, if it should not be sent any more.
    pub(crate) fn too_old(
        &mut self,
        now: Instant,
        frames: &mut Frames,
        marked: &mut u64,
    ) -> Option<Frame> {
        let Active::Codel(codel) = &mut self.aqm else { return None };
        let first = self.waiting.front()?;
        if !codel.hits(now, now.since(first.since), self.bytes) {
            return None;
        }
        if self.ecn && mark(frames.bytes_mut(&first.frame)) {
            *marked += 1;
            return None;
        }
        self.pop(now).map(|gone| gone.frame)
    }

    pub(crate) fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub(crate) fn pop(&mut self, now: Instant) -> Option<Waiting> {
        let gone = self.waiting.pop_front()?;
        self.forget(&gone);
        if let Active::Red(red) = &mut self.aqm
            && self.waiting.is_empty()
        {
            red.idle_since(now);
        }
        Some(gone)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    fn has_room(&self, next: &Waiting) -> bool {
        match self.limit {
            Limit::Frames(frames) => self.waiting.len() < frames,
            Limit::Bytes(bytes) => self.bytes + next.frame.len() <= bytes,
            Limit::Time(span) => self.takes(self.cost) <= span,
        }
    }

    fn is_within(&self) -> bool {
        match self.limit {
            Limit::Frames(frames) => self.waiting.len() <= frames,
            Limit::Bytes(bytes) => self.bytes <= bytes,
            Limit::Time(span) => self.takes(self.cost) <= span,
        }
    }

    fn takes(&self, cost: u64) -> Span {
        self.rate.time_for(Bytes::new(cost))
    }

    fn forget(&mut self, gone: &Waiting) {
        self.bytes -= gone.frame.len();
        self.cost -= gone.cost.get();
    }
}

/// Sets the mark of congestion in a frame; `false`, and nothing changed, if it cannot be marked.
pub(crate) fn mark(bytes: &mut [u8]) -> bool {
    let headers = Headers::parse(bytes);
    if headers.ecn() == 0 {
        return false;
    }
    let at = usize::from(headers.net_at);
    match headers.net {
        Net::V4 => {
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let new = old | 3;
            bytes[at + 1] |= 3;
            let sum = u16::from_be_bytes([bytes[at + 10], bytes[at + 11]]);
            let sum = checksum::repair16(sum, old, new).to_be_bytes();
            bytes[at + 10..at + 12].copy_from_slice(&sum);
            true
        }
        Net::V6 => {
            bytes[at + 1] |= 0x30;
            true
        }
        Net::None | Net::Arp => false,
    }
}
