//! Guarantees that weights alone would not keep: each such child has a clock in real time, and when
//! that is due the child goes before all others.

use weir_units::{Instant, Rate};

use super::heap::{Entry, Heap};
use super::node::{Flags, Node};

/// Real time of guarantees, in parts of a nanosecond.
const PARTS: u64 = 16;
/// Bits behind the point of the time that a byte takes.
const FRACTION: u32 = 16;
/// Bytes of the frames that a clock may be ahead or behind.
const TWO_FRAMES: u64 = 2 * 1_536;

/// The clock of one guarantee.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Due {
    /// When the guarantee is due, in sixteenths of a nanosecond.
    at: u64,
    /// Sixteenths of a nanosecond per byte, 16 bits behind the point.
    per_byte: u64,
}

/// The children of one node that have such a clock, by when it is due.
#[derive(Debug)]
pub(crate) struct Owed {
    by_due: Heap,
}

impl Due {
    pub(crate) fn new(rate: Rate) -> Due {
        let parts = (8_000_000_000 * u128::from(PARTS)) << FRACTION;
        let per_byte = u64::try_from(parts / u128::from(rate.bps().max(8))).unwrap_or(u64::MAX);
        Due { at: 0, per_byte }
    }

    /// The child has sent; its clock goes on, but never far from the present.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u64) {
        let now = parts(now);
        let frames = self.time_for(TWO_FRAMES);
        let at = self.at.max(now.saturating_sub(frames)).saturating_add(self.time_for(bytes));
        self.at = at.min(now.saturating_add(frames));
    }

    fn time_for(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.per_byte) >> FRACTION
    }
}

impl Owed {
    pub(crate) fn with_capacity(children: usize) -> Owed {
        Owed { by_due: Heap::with_capacity(children) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.by_due.bytes()
    }

    /// A child has something to send.
    pub(crate) fn wake(&mut self, now: Instant, number: u32, node: &mut Node, due: &mut Due) {
        due.at = due.at.max(parts(now));
        if !node.share.flags.has(Flags::LISTED_OWED) {
            node.share.flags.set(Flags::LISTED_OWED);
            self.by_due.push(Entry { key: due.at, node: number });
        }
    }

    /// The child whose guarantee is due. Entries are put right when they come to the top.
    #[inline(never)]
    pub(crate) fn due(&mut self, now: Instant, nodes: &mut [Node], dues: &[Due]) -> Option<u32> {
        while let Some(first) = self.by_due.first() {
            let flags = &mut nodes[first.node as usize].share.flags;
            let due = dues[first.node as usize].at;
            if !flags.has(Flags::ACTIVE) {
                self.by_due.pop();
                flags.clear(Flags::LISTED_OWED);
            } else if due == first.key {
                return (due <= parts(now)).then_some(first.node);
            } else {
                self.by_due.put_back(due);
            }
        }
        None
    }
}

fn parts(now: Instant) -> u64 {
    now.ns().wrapping_mul(PARTS)
}
