//! What the packet thread tells about itself without being asked: a few words that it writes and
//! control reads, without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_units::{Instant, Span};

#[derive(Debug, Default)]
pub(crate) struct Facts {
    turns: AtomicU64,
    last_ns: AtomicU64,
    longest_gap_ns: AtomicU64,
    gaps: AtomicU64,
    unsent: AtomicU64,
    stood_aside: AtomicU64,
    lost: AtomicU64,
}

/// A turn that comes later than this after the one before is a gap: the machine was busy.
const GAP: Span = Span::from_ms(5);

impl Facts {
    /// A turn begins, so long after it should have.
    #[inline]
    pub(crate) fn turned(&self, now: Instant, late: Span) {
        // one writer, so that no read-modify-write is needed
        self.turns.store(self.turns.load(Relaxed) + 1, Relaxed);
        self.last_ns.store(now.ns(), Relaxed);
        if late > GAP {
            self.gaps.store(self.gaps.load(Relaxed) + 1, Relaxed);
        }
        if late.ns() > self.longest_gap_ns.load(Relaxed) {
            self.longest_gap_ns.store(late.ns(), Relaxed);
        }
    }

    /// Frames that had no port to go to.
    pub(crate) fn unsent(&self, frames: usize) {
        self.unsent.fetch_add(frames as u64, Relaxed);
    }

    /// Frames that came while the kernel's bridge carried them.
    pub(crate) fn stood_aside(&self, frames: usize) {
        self.stood_aside.fetch_add(frames as u64, Relaxed);
    }

    /// Buffers that the kernel did not give back when a port was closed.
    pub(crate) fn lost(&self, buffers: usize) {
        self.lost.fetch_add(buffers as u64, Relaxed);
    }

    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Relaxed)
    }

    pub(crate) fn last_turn(&self) -> Instant {
        Instant::from_ns(self.last_ns.load(Relaxed))
    }

    /// The longest time between two turns that nobody had asked for.
    pub(crate) fn longest_gap(&self) -> Span {
        Span::from_ns(self.longest_gap_ns.load(Relaxed))
    }

    /// How often turns were that late.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps.load(Relaxed)
    }

    pub(crate) fn left_to_the_bridge(&self) -> u64 {
        self.stood_aside.load(Relaxed)
    }

    pub(crate) fn lost_buffers(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    pub(crate) fn without_port(&self) -> u64 {
        self.unsent.load(Relaxed)
    }
}
