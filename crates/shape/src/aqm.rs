//! Active queue management: who is told to slow down, and when, before the queue is full. RED and
//! PIE decide when a frame comes, CoDel and COBALT when it leaves.
//!
//! An [`Aqm`] is what the operator configured, and many queues share it; an [`AqmState`] is what
//! one queue remembers. The owner of the queue makes four calls; nothing here has a timer or a
//! queue of its own:
//!
//! - [`Aqm::arrive`] before a frame joins, [`Aqm::leave`] when one is at the head and may go;
//! - [`Aqm::overflow`] when the limit of the queue was hit;
//! - [`Aqm::emptied`] when the last frame is gone, by whatever way.

mod cobalt;
mod codel;
mod pie;
mod random;
mod red;

pub use cobalt::Cobalt;
pub use codel::Codel;
pub use pie::Pie;
pub use random::Random;
pub use red::{Curve, Red, Wred};

use weir_units::{Bytes, Instant, Rate, Span};

/// A full Ethernet frame with preamble and gap. Below the time of one and a half of these no delay
/// can be held: a frame that waits for another one only would already be late.
const FULL_FRAME: u64 = 1_538;

/// What a leaf's queue is told; never changed by frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aqm {
    /// Only the limit drops.
    #[default]
    None,
    /// Random early detection: by the average length.
    Red(Red),
    /// RED with a curve for each drop precedence.
    Wred(Wred),
    /// Controlled delay: by how long frames waited.
    Codel(Codel),
    /// CoDel for those who listen, BLUE for those who do not.
    Cobalt(Cobalt),
    /// By a probability that a controller moves with the delay.
    Pie(Pie),
}

/// What one queue remembers. The default is a queue that nothing has happened to; a state that some
/// other algorithm left is the same as that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AqmState(Kind);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Fresh,
    Red(red::Memory),
    Codel(codel::Memory),
    Cobalt(cobalt::Memory),
    Pie(pie::Memory),
}

const _: () = assert!(size_of::<AqmState>() <= 40);

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes on as it is.
    Take,
    /// It goes on with the mark that congestion was experienced.
    Mark,
    /// It goes nowhere.
    Drop,
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// So many frames.
    pub frames: u32,
    /// So many bytes.
    pub bytes: u64,
}

/// A frame that would join the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arriving {
    /// Its drop precedence: 0 goes last, 2 first.
    pub colour: u8,
    /// It understands marks, and marking is on here.
    pub can_mark: bool,
}

/// A frame that would leave the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// When it joined.
    pub since: Instant,
    /// It understands marks, and marking is on here.
    pub can_mark: bool,
}

impl Aqm {
    /// Asked before a frame joins; `depth` is what waits, without it.
    #[inline]
    pub fn arrive(
        &self,
        state: &mut AqmState,
        now: Instant,
        frame: Arriving,
        depth: Depth,
        random: &mut Random,
    ) -> Decision {
        match (self, &mut state.0) {
            (Aqm::Red(red), Kind::Red(memory)) => red.arrive(memory, now, frame, depth, random),
            (Aqm::Wred(wred), Kind::Red(memory)) => wred.arrive(memory, now, frame, depth, random),
            (Aqm::Pie(pie), Kind::Pie(memory)) => pie.arrive(memory, now, frame, depth, random),
            (Aqm::None | Aqm::Codel(_) | Aqm::Cobalt(_), _) => Decision::Take,
            _ => {
                state.begin(self);
                self.arrive(state, now, frame, depth, random)
            }
        }
    }

    /// Asked when a frame is at the head and may go; `depth` is what waits behind it. After a
    /// [`Decision::Drop`] the next frame is asked about, until one goes.
    #[inline]
    pub fn leave(
        &self,
        state: &mut AqmState,
        now: Instant,
        frame: Leaving,
        depth: Depth,
        random: &mut Random,
    ) -> Decision {
        match (self, &mut state.0) {
            (Aqm::Codel(codel), Kind::Codel(memory)) => codel.leave(memory, now, frame, depth),
            (Aqm::Cobalt(cobalt), Kind::Cobalt(memory)) => {
                cobalt.leave(memory, now, frame, depth, random)
            }
            (Aqm::Pie(pie), Kind::Pie(memory)) => pie.leave(memory, now, frame, depth),
            (Aqm::None | Aqm::Red(_) | Aqm::Wred(_), _) => Decision::Take,
            _ => {
                state.begin(self);
                self.leave(state, now, frame, depth, random)
            }
        }
    }

    /// The queue's limit was hit: a frame was dropped for want of room.
    pub fn overflow(&self, state: &mut AqmState, now: Instant) {
        match (self, &mut state.0) {
            (Aqm::Cobalt(cobalt), Kind::Cobalt(memory)) => cobalt.overflow(memory, now),
            (Aqm::Pie(_), Kind::Pie(memory)) => memory.overflow(),
            (Aqm::Cobalt(cobalt), _) => {
                let mut memory = cobalt::Memory::default();
                cobalt.overflow(&mut memory, now);
                state.0 = Kind::Cobalt(memory);
            }
            _ => {}
        }
    }

    /// The last frame is gone.
    pub fn emptied(&self, state: &mut AqmState, now: Instant) {
        match (self, &mut state.0) {
            (Aqm::Red(_) | Aqm::Wred(_), Kind::Red(memory)) => memory.emptied(now),
            (Aqm::Cobalt(cobalt), Kind::Cobalt(memory)) => cobalt.emptied(memory, now),
            (Aqm::Pie(pie), Kind::Pie(memory)) => pie.emptied(memory, now),
            _ => {}
        }
    }
}

impl AqmState {
    /// The average length of a queue under RED.
    #[must_use]
    pub fn average(&self) -> Option<Bytes> {
        match &self.0 {
            Kind::Red(memory) => Some(memory.average()),
            _ => None,
        }
    }

    /// The probability of a signal under PIE, of a drop by BLUE under COBALT, in 2^-32.
    #[must_use]
    pub fn probability(&self) -> Option<u32> {
        match &self.0 {
            Kind::Pie(memory) => Some(memory.probability()),
            Kind::Cobalt(memory) => Some(memory.probability()),
            _ => None,
        }
    }

    /// Nothing has happened here that `aqm` knows of.
    #[cold]
    fn begin(&mut self, aqm: &Aqm) {
        self.0 = match aqm {
            Aqm::None => Kind::Fresh,
            Aqm::Red(_) | Aqm::Wred(_) => Kind::Red(red::Memory::default()),
            Aqm::Codel(_) => Kind::Codel(codel::Memory::default()),
            Aqm::Cobalt(_) => Kind::Cobalt(cobalt::Memory::default()),
            Aqm::Pie(_) => Kind::Pie(pie::Memory::default()),
        };
    }
}

/// The delay to hold at `rate`: `least`, or the time of one and a half full frames where that is
/// longer.
fn target_for(rate: Rate, least: Span) -> Span {
    let frame = rate.time_for(Bytes::new(FULL_FRAME));
    least.max(frame + Span::from_ns(frame.ns() / 2))
}

/// Target and interval of CoDel and COBALT: the interval stands for a round trip, and a standing
/// queue of one target is part of that (CAKE computes it alike). RFC 8289 has the target at a
/// twentieth of the interval; at 20 kbit/s that would be 18 s before the first signal.
fn times_for(rate: Rate, target: Option<Span>, interval: Option<Span>) -> (Span, Span) {
    const TARGET: Span = Span::from_ms(5);
    const INTERVAL: Span = Span::from_ms(100);
    let target = target.unwrap_or_else(|| target_for(rate, TARGET));
    let interval = interval.unwrap_or_else(|| (INTERVAL + (target - TARGET)).max(target + target));
    (target, interval)
}
