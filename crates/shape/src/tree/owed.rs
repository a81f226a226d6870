//! Guarantees that weights alone would not keep: each such child has a clock in real time, and when
//! that is due the child goes before all others. Of those that are due the one goes first whose
//! frame should be gone first, so that one with a high rate need not wait for all that have low
//! ones and are due since earlier.

use weir_units::{Instant, Rate};

use super::heap::{Entry, Heap};
use super::node::{Flags, Node};

/// Real time of guarantees, in parts of a nanosecond.
const PARTS: u64 = 16;
/// Bits behind the point of the time that a byte takes.
const FRACTION: u32 = 16;
/// Bytes of the frame by which it is decided who should finish first.
const FRAME: u64 = 1_536;

/// The clock of one guarantee.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Due {
    /// When the guarantee is due, in sixteenths of a nanosecond.
    at: u64,
    /// Sixteenths of a nanosecond per byte, 16 bits behind the point.
    per_byte: u64,
}

/// The children of one node that have such a clock.
#[derive(Debug)]
pub(crate) struct Owed {
    /// Those that are not due yet, by when they are.
    coming: Heap,
    /// Those that are, by when their frame should be gone.
    due: Heap,
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
        let frames = 2 * self.time_for(FRAME);
        let at = self.at.max(now.saturating_sub(frames)).saturating_add(self.time_for(bytes));
        self.at = at.min(now.saturating_add(frames));
    }

    /// When a frame should be gone that starts when the guarantee is due.
    fn end(&self) -> u64 {
        self.at.saturating_add(self.time_for(FRAME))
    }

    fn time_for(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.per_byte) >> FRACTION
    }
}

impl Owed {
    pub(crate) fn with_capacity(children: usize) -> Owed {
        Owed { coming: Heap::with_capacity(children), due: Heap::with_capacity(children) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.coming.bytes() + self.due.bytes()
    }

    /// A child has something to send.
    pub(crate) fn wake(&mut self, now: Instant, number: u32, node: &mut Node, due: &mut Due) {
        due.at = due.at.max(parts(now));
        if !node.share.flags.has(Flags::LISTED_OWED) {
            node.share.flags.set(Flags::LISTED_OWED);
            self.coming.push(Entry { key: due.at, node: number });
        }
    }

    /// The child whose guarantee is due. Entries are put right when they come to the top.
    #[inline(never)]
    pub(crate) fn due(&mut self, now: Instant, nodes: &mut [Node], dues: &[Due]) -> Option<u32> {
        let now = parts(now);
        self.have_come(now, nodes, dues);
        while let Some(first) = self.due.first() {
            let flags = &mut nodes[first.node as usize].share.flags;
            let due = &dues[first.node as usize];
            if !flags.has(Flags::ACTIVE) {
                self.due.pop();
                flags.clear(Flags::LISTED_OWED);
            } else if due.at > now {
                // it has sent since
                self.due.pop();
                self.coming.push(Entry { key: due.at, node: first.node });
            } else if due.end() == first.key {
                return Some(first.node);
            } else {
                self.due.put_back(due.end());
            }
        }
        None
    }

    /// Whoever is due by now is among those that are.
    fn have_come(&mut self, now: u64, nodes: &mut [Node], dues: &[Due]) {
        while let Some(first) = self.coming.first().filter(|first| first.key <= now) {
            let flags = &mut nodes[first.node as usize].share.flags;
            let due = &dues[first.node as usize];
            if !flags.has(Flags::ACTIVE) {
                self.coming.pop();
                flags.clear(Flags::LISTED_OWED);
            } else if due.at > now {
                self.coming.put_back(due.at);
            } else {
                self.coming.pop();
                self.due.push(Entry { key: due.end(), node: first.node });
            }
        }
    }
}

fn parts(now: Instant) -> u64 {
    now.ns().wrapping_mul(PARTS)
}
