//! One queue in front of one line, in virtual time, and random traffic for it.

use std::collections::VecDeque;

use proptest::prelude::*;
use weir_shape::aqm::{Aqm, AqmState, Arriving, Decision, Depth, Leaving, Random};
use weir_units::{Bytes, Instant, Rate};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) id: u64,
    pub(crate) bytes: u32,
    pub(crate) since: Instant,
    pub(crate) can_mark: bool,
    pub(crate) colour: u8,
}

/// What became of a frame, in the order in which it was decided; `None`: no room.
pub(crate) type Log = Vec<(u64, Option<Decision>)>;

/// A queue with what decides about its frames.
pub(crate) trait Discipline {
    fn arrive(&mut self, now: Instant, frame: Frame);
    /// The frame that goes, unless none is left.
    fn leave(&mut self, now: Instant) -> Option<Frame>;
}

/// Ours.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) aqm: Aqm,
    pub(crate) state: AqmState,
    pub(crate) random: Random,
    pub(crate) frames: VecDeque<Frame>,
    pub(crate) bytes: u64,
    pub(crate) limit: usize,
    pub(crate) log: Log,
}

impl Queue {
    pub(crate) fn new(aqm: Aqm, limit: usize) -> Queue {
        Queue {
            aqm,
            state: AqmState::default(),
            random: Random::new(1),
            frames: VecDeque::new(),
            bytes: 0,
            limit,
            log: Log::new(),
        }
    }

    pub(crate) fn depth(&self) -> Depth {
        Depth { frames: self.frames.len() as u32, bytes: self.bytes }
    }

    /// What RED and PIE say when this frame comes.
    pub(crate) fn asked(&mut self, now: Instant, frame: Frame) -> Decision {
        let arriving = Arriving { colour: frame.colour, can_mark: frame.can_mark };
        let depth = self.depth();
        self.aqm.arrive(&mut self.state, now, arriving, depth, &mut self.random)
    }

    pub(crate) fn count(&self, fate: Option<Decision>) -> usize {
        self.log.iter().filter(|(_, f)| *f == fate).count()
    }
}

impl Discipline for Queue {
    fn arrive(&mut self, now: Instant, frame: Frame) {
        if self.frames.len() >= self.limit {
            self.aqm.overflow(&mut self.state, now);
            self.log.push((frame.id, None));
            return;
        }
        let fate = self.asked(now, frame);
        if fate != Decision::Take {
            self.log.push((frame.id, Some(fate)));
        }
        if fate != Decision::Drop {
            self.frames.push_back(Frame { since: now, ..frame });
            self.bytes += u64::from(frame.bytes);
        }
    }

    fn leave(&mut self, now: Instant) -> Option<Frame> {
        loop {
            let frame = self.frames.pop_front()?;
            self.bytes -= u64::from(frame.bytes);
            let leaving = Leaving { since: frame.since, can_mark: frame.can_mark };
            let depth = self.depth();
            let fate = self.aqm.leave(&mut self.state, now, leaving, depth, &mut self.random);
            self.log.push((frame.id, Some(fate)));
            if self.frames.is_empty() {
                self.aqm.emptied(&mut self.state, now);
            }
            if fate != Decision::Drop {
                return Some(frame);
            }
        }
    }
}

/// Frames that come at once, after a gap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    gap_ns: u64,
    frames: u64,
    bytes: u32,
    can_mark: bool,
    colour: u8,
}

/// Phases of load from far too little to far too much, with long gaps between some of them, for a
/// line of 10 Mbit/s.
pub(crate) fn traffic() -> impl Strategy<Value = Vec<Burst>> {
    // percent of the line, bursts, frames per burst, bytes, marks, idle milliseconds before
    let phase = (20u64..400, 1usize..400, 1u64..6, 64u32..1_514, 0u8..3, 0u64..3_000, 0u8..3);
    prop::collection::vec((phase, any::<u64>()), 1..8).prop_map(|phases| {
        let mut bursts = Vec::new();
        for ((percent, many, frames, bytes, marks, idle, colour), seed) in phases {
            let mut random = Random::new(seed);
            for i in 0..many {
                let mean = u64::from(bytes) * frames * 800 * 100 / percent;
                let idle = if i == 0 && idle > 1_500 { idle * 1_000_000 } else { 0 };
                bursts.push(Burst {
                    gap_ns: idle + u64::from(random.next_u32()) * 2 * mean / (1 << 32),
                    frames,
                    bytes,
                    can_mark: marks == 2 || (marks == 1 && random.next_u32() & 1 == 1),
                    colour: (colour + (random.next_u32() & 1) as u8) % 3,
                });
            }
        }
        bursts
    })
}

/// Sends it all through a line of 10 Mbit/s.
pub(crate) fn drive(queue: &mut impl Discipline, traffic: &[Burst]) {
    let rate = Rate::from_bps(10_000_000);
    let (mut now, mut free_at, mut id) = (Instant::ZERO, Instant::ZERO, 0);
    for burst in traffic {
        let next = now + weir_units::Span::from_ns(burst.gap_ns);
        while free_at <= next {
            let at = free_at.max(now);
            let Some(frame) = queue.leave(at) else { break };
            free_at = at + rate.time_for(Bytes::new(u64::from(frame.bytes)));
        }
        now = next;
        for _ in 0..burst.frames {
            id += 1;
            let Burst { bytes, can_mark, colour, .. } = *burst;
            queue.arrive(now, Frame { id, bytes, since: now, can_mark, colour });
        }
    }
}

impl Burst {
    pub(crate) fn green(self) -> Burst {
        Burst { colour: 0, ..self }
    }
}
