//! Where frames wait: one place per buffer of the pool, so that a frame's buffer number is its
//! place and a queue is a chain of them. Every queue may be as long as the pool, and none costs
//! memory while it is empty.

use weir_packet::{Frame, Label};
use weir_units::Instant;

/// No place.
const NONE: u32 = u32::MAX;

/// A frame that waits.
#[derive(Debug)]
pub struct Waiting {
    /// The frame.
    pub frame: Frame,
    /// What is known about it.
    pub label: Label,
    /// When it came.
    pub since: Instant,
}

/// The places of all frames that may wait.
#[derive(Debug)]
pub(crate) struct Store {
    places: Box<[Place]>,
}

#[derive(Debug)]
struct Place {
    waiting: Option<Waiting>,
    next: u32,
}

/// Frames in the order in which they came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    first: u32,
    last: u32,
    frames: u32,
    bytes: u64,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { first: NONE, last: NONE, frames: 0, bytes: 0 }
    }
}

impl Store {
    /// Places for the frames of a pool with so many buffers.
    pub(crate) fn new(buffers: usize) -> Store {
        Store { places: (0..buffers).map(|_| Place { waiting: None, next: NONE }).collect() }
    }

    /// Whether there is a place for this frame: it is of the pool the store was made for.
    #[inline]
    pub(crate) fn has_place(&self, frame: &Frame) -> bool {
        self.places.get(frame.index() as usize).is_some_and(|p| p.waiting.is_none())
    }

    #[inline]
    pub(crate) fn push(&mut self, chain: &mut Chain, now: Instant, frame: Frame, label: Label) {
        let at = frame.index();
        chain.bytes += frame.len() as u64;
        let place = &mut self.places[at as usize];
        place.waiting = Some(Waiting { frame, label, since: now });
        place.next = NONE;
        match chain.last {
            NONE => chain.first = at,
            last => self.places[last as usize].next = at,
        }
        chain.last = at;
        chain.frames += 1;
    }

    #[inline]
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<Waiting> {
        let place = self.places.get_mut(chain.first as usize)?;
        let waiting = place.waiting.take()?;
        chain.first = place.next;
        chain.frames -= 1;
        chain.bytes -= waiting.frame.len() as u64;
        if chain.first == NONE {
            chain.last = NONE;
        }
        Some(waiting)
    }

    /// Puts all of `from` behind what is in `to`, each with its label changed.
    pub(crate) fn append(
        &mut self,
        to: &mut Chain,
        from: Chain,
        mut relabel: impl FnMut(&mut Label, usize),
    ) {
        let mut at = from.first;
        while let Some(place) = self.places.get_mut(at as usize) {
            if let Some(waiting) = &mut place.waiting {
                relabel(&mut waiting.label, waiting.frame.len());
            }
            at = place.next;
        }
        if from.is_empty() {
            return;
        }
        match to.last {
            NONE => to.first = from.first,
            last => self.places[last as usize].next = from.first,
        }
        to.last = from.last;
        to.frames += from.frames;
        to.bytes += from.bytes;
    }
}

impl Chain {
    pub(crate) const fn frames(&self) -> u32 {
        self.frames
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.frames == 0
    }
}
