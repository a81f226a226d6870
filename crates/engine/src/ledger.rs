//! What came, what left, what waits and what was dropped and why, per leaf and direction. Nothing
//! is lost: received + moved in = sent + held + dropped + moved out, to the byte, at every moment.

use weir_packet::{Reason, Verdict};
use weir_units::{ByWay, Span, Way};

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many frames.
    pub frames: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

impl Count {
    /// Adds one frame.
    pub fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    /// Takes one frame off.
    fn take(&mut self, bytes: usize) {
        self.frames = self.frames.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    /// Adds another count.
    pub fn join(&mut self, other: Count) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// How long frames waited here: what weir itself added to their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// All waiting times together, in nanoseconds.
    pub sum_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

impl Delay {
    fn add(&mut self, waited: Span) {
        self.sum_ns = self.sum_ns.saturating_add(waited.ns());
        self.max_ns = self.max_ns.max(waited.ns());
    }

    fn join(&mut self, other: Delay) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The mean over `frames` frames.
    #[must_use]
    pub fn mean(&self, frames: u64) -> Span {
        Span::from_ns(self.sum_ns / frames.max(1))
    }
}

/// What happened to the frames of one leaf that travel in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received.
    pub received: Count,
    /// Sent.
    pub sent: Count,
    /// In the queue now.
    pub held: Count,
    /// The largest backlog so far, in bytes.
    pub held_max: u64,
    /// Moved here from a leaf that was removed.
    pub moved_in: Count,
    /// Moved to another leaf when this one was removed.
    pub moved_out: Count,
    /// The sojourn times of the frames that were sent.
    pub delay: Delay,
    /// Marked with ECN: by queue management as they were sent, by enforcement as they were
    /// received.
    pub marked: Count,
    /// Dropped, by reason.
    pub dropped: [Count; Reason::COUNT],
    /// Of those received, TCP data that had been received before: retransmitted here.
    pub repeated: Count,
    /// Of those received, TCP data that fill a gap: retransmitted after a loss on the way to weir,
    /// or reordered.
    pub late: Count,
}

impl Counters {
    /// Dropped for any reason.
    #[must_use]
    pub fn dropped_in_all(&self) -> Count {
        let mut all = Count::default();
        for count in self.dropped {
            all.join(count);
        }
        all
    }

    /// Whether the books balance.
    #[must_use]
    pub fn balance(&self) -> bool {
        let (mut into, mut out) = (self.received, self.sent);
        into.join(self.moved_in);
        out.join(self.held);
        out.join(self.moved_out);
        out.join(self.dropped_in_all());
        into == out
    }

    /// Adds the counters of another leaf.
    pub fn join(&mut self, other: &Counters) {
        self.received.join(other.received);
        self.sent.join(other.sent);
        self.held.join(other.held);
        self.held_max = self.held_max.max(other.held_max);
        self.moved_in.join(other.moved_in);
        self.moved_out.join(other.moved_out);
        self.delay.join(other.delay);
        self.marked.join(other.marked);
        for (mine, other) in self.dropped.iter_mut().zip(other.dropped) {
            mine.join(other);
        }
        self.repeated.join(other.repeated);
        self.late.join(other.late);
    }
}

/// Counters of one leaf, by the way of its frames.
pub(crate) type Slot = ByWay<Counters>;

/// How many slots come in one piece of memory.
pub(crate) const CHUNK: usize = 1_024;

/// A piece of memory with room for [`CHUNK`] leaves, made off the packet thread.
pub(crate) type Chunk = Box<[Slot]>;

pub(crate) fn chunk() -> Chunk {
    vec![Slot::default(); CHUNK].into_boxed_slice()
}

/// The books of one engine.
#[derive(Debug)]
pub(crate) struct Ledger {
    chunks: Vec<Chunk>,
    /// Everything that leaves had counted when they were taken away.
    gone: Slot,
    /// The link as a whole.
    total: Slot,
}

impl Ledger {
    /// Books without leaves that can grow to `chunks` pieces without allocating.
    pub(crate) fn new(chunks: usize) -> Ledger {
        Ledger { chunks: Vec::with_capacity(chunks), gone: Slot::default(), total: Slot::default() }
    }

    /// Makes room for more leaves; pieces beyond the bound come back.
    pub(crate) fn grow(&mut self, chunks: &mut Vec<Chunk>) {
        while self.chunks.len() < self.chunks.capacity()
            && let Some(chunk) = chunks.pop()
        {
            self.chunks.push(chunk);
        }
    }

    #[inline]
    fn slot(&mut self, way: Way, leaf: u32) -> Option<&mut Counters> {
        let chunk = self.chunks.get_mut(leaf as usize / CHUNK)?;
        chunk.get_mut(leaf as usize % CHUNK).map(|slot| &mut slot[way])
    }

    #[inline]
    pub(crate) fn received(&mut self, way: Way, leaf: u32, bytes: usize) {
        self.total[way].received.add(bytes);
        if let Some(slot) = self.slot(way, leaf) {
            slot.received.add(bytes);
        }
    }

    /// A frame was received whose TCP data are not new: they fill a gap, or repeat.
    pub(crate) fn retransmitted(&mut self, way: Way, leaf: u32, bytes: usize, is_late: bool) {
        let write = |counters: &mut Counters| {
            let of = if is_late { &mut counters.late } else { &mut counters.repeated };
            of.add(bytes);
        };
        write(&mut self.total[way]);
        if let Some(slot) = self.slot(way, leaf) {
            write(slot);
        }
    }

    #[inline]
    pub(crate) fn judged(&mut self, way: Way, leaf: u32, bytes: usize, verdict: Verdict) {
        let write = |counters: &mut Counters| match verdict {
            Verdict::Forward => counters.sent.add(bytes),
            Verdict::Hold => {
                counters.held.add(bytes);
                counters.held_max = counters.held_max.max(counters.held.bytes);
            }
            Verdict::Drop(reason) => counters.dropped[reason.index()].add(bytes),
        };
        write(&mut self.total[way]);
        if let Some(slot) = self.slot(way, leaf) {
            write(slot);
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, way: Way, leaf: u32, bytes: usize, waited: Span) {
        let write = |counters: &mut Counters| {
            counters.held.take(bytes);
            counters.sent.add(bytes);
            counters.delay.add(waited);
        };
        write(&mut self.total[way]);
        if let Some(slot) = self.slot(way, leaf) {
            write(slot);
        }
    }

    /// A frame that was held before its queue is about to be enqueued.
    pub(crate) fn requeued(&mut self, way: Way, leaf: u32, bytes: usize) {
        self.total[way].held.take(bytes);
        if let Some(slot) = self.slot(way, leaf) {
            slot.held.take(bytes);
        }
    }

    /// A frame was marked with ECN.
    pub(crate) fn marked(&mut self, way: Way, leaf: u32, bytes: usize) {
        self.total[way].marked.add(bytes);
        if let Some(slot) = self.slot(way, leaf) {
            slot.marked.add(bytes);
        }
    }

    /// A frame that was marked when it was received was dropped after all.
    pub(crate) fn mark_lost(&mut self, way: Way, leaf: u32, bytes: usize) {
        self.total[way].marked.take(bytes);
        if let Some(slot) = self.slot(way, leaf) {
            slot.marked.take(bytes);
        }
    }

    /// A frame in the queue is dropped.
    pub(crate) fn dropped_from_queue(&mut self, way: Way, leaf: u32, bytes: usize, reason: Reason) {
        let write = |counters: &mut Counters| {
            counters.held.take(bytes);
            counters.dropped[reason.index()].add(bytes);
        };
        write(&mut self.total[way]);
        if let Some(slot) = self.slot(way, leaf) {
            write(slot);
        }
    }

    /// A frame in the queue moves to another leaf.
    pub(crate) fn moved(&mut self, way: Way, from: u32, to: u32, bytes: usize) {
        if let Some(slot) = self.slot(way, from) {
            slot.held.take(bytes);
            slot.moved_out.add(bytes);
        }
        if let Some(slot) = self.slot(way, to) {
            slot.held.add(bytes);
            slot.moved_in.add(bytes);
        }
    }

    /// Adds the counters of a removed leaf to those of all removed leaves, so that its number can
    /// be used again.
    pub(crate) fn close(&mut self, leaf: u32) {
        for way in Way::ALL {
            if let Some(slot) = self.slot(way, leaf) {
                let last = std::mem::take(slot);
                self.gone[way].join(&last);
            }
        }
    }

    /// Adds the counters of a leaf to those of another, and starts at zero.
    pub(crate) fn fold(&mut self, leaf: u32, into: u32) {
        for way in Way::ALL {
            let last = self.slot(way, leaf).map(std::mem::take).unwrap_or_default();
            if let Some(slot) = self.slot(way, into) {
                slot.join(&last);
            }
        }
    }

    /// Whether nothing waits in a leaf.
    pub(crate) fn is_empty(&self, leaf: u32) -> bool {
        self.leaf(leaf).is_none_or(|slot| slot.iter().all(|(_, c)| c.held.frames == 0))
    }

    pub(crate) fn leaf(&self, leaf: u32) -> Option<&Slot> {
        self.chunks.get(leaf as usize / CHUNK)?.get(leaf as usize % CHUNK)
    }

    pub(crate) fn leaves(&self) -> u32 {
        u32::try_from(self.chunks.len() * CHUNK).unwrap_or(u32::MAX)
    }

    pub(crate) fn total(&self) -> &Slot {
        &self.total
    }

    pub(crate) fn gone(&self) -> &Slot {
        &self.gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_the_mean_delay_are_known() {
        let mut ledger = Ledger::new(1);
        ledger.grow(&mut vec![chunk()]);
        for ms in [2, 5, 2] {
            ledger.judged(Way::Up, 7, 100, Verdict::Hold);
            ledger.sent(Way::Up, 7, 100, Span::from_ms(ms));
        }
        for slot in [ledger.total(), ledger.leaf(7).unwrap()] {
            let Counters { delay, sent, .. } = slot[Way::Up];
            assert_eq!(Span::from_ns(delay.max_ns), Span::from_ms(5));
            assert_eq!((sent.frames, delay.mean(sent.frames)), (3, Span::from_ms(3)));
        }
    }
}
