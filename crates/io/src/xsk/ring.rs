//! The arithmetic of a ring that is shared with the kernel: two counters that only grow (and wrap),
//! and slots in between. One side gives, the other takes; each writes its own counter and reads the
//! other's. All of it is safe code over atomics, so that a test can play the kernel's part on
//! another thread, under Miri too. Where the memory comes from is `map.rs`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A ring as it lies in memory; the number of slots is a power of two.
#[derive(Debug)]
pub(crate) struct Ring<'m, S> {
    pub(crate) producer: &'m AtomicU32,
    pub(crate) consumer: &'m AtomicU32,
    pub(crate) slots: &'m [S],
}

impl<S> Clone for Ring<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Ring<'_, S> {}

/// Where a frame lies, as the receive and transmit rings say it: the kernel's `struct xdp_desc`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Descriptor {
    address: AtomicU64,
    len: AtomicU32,
    options: AtomicU32,
}

/// Our side of a ring that we give into: fill and transmit.
#[derive(Debug, Default)]
pub(crate) struct Giver {
    next: u32,
    /// What the other side had taken when we last looked.
    taken: u32,
}

/// Our side of a ring that we take from: receive and completion.
#[derive(Debug, Default)]
pub(crate) struct Taker {
    next: u32,
    /// What the other side had given when we last looked.
    given: u32,
}

impl Giver {
    /// Slots to write into. The other side's counter is a cache line that is away, so it is read
    /// only when fewer than `wanted` are known to be free.
    pub(crate) fn room<S>(&mut self, ring: &Ring<'_, S>, wanted: u32) -> u32 {
        if self.known_room(ring) < wanted {
            // what the other side read from a slot must be read before we write there again
            self.taken = ring.consumer.load(Ordering::Acquire);
        }
        self.known_room(ring).min(wanted)
    }

    /// The next slot to write, then [`Giver::advance`]; as often as [`Giver::room`] said.
    pub(crate) fn slot<'m, S>(&self, ring: &Ring<'m, S>) -> &'m S {
        ring.slot(self.next)
    }

    /// The slot is written.
    pub(crate) fn advance(&mut self) {
        self.next = self.next.wrapping_add(1);
    }

    /// Hands over what was written.
    pub(crate) fn publish<S>(&self, ring: &Ring<'_, S>) {
        ring.producer.store(self.next, Ordering::Release);
    }

    /// How many the other side has not taken yet.
    pub(crate) fn untaken<S>(&self, ring: &Ring<'_, S>) -> u32 {
        self.next.wrapping_sub(ring.consumer.load(Ordering::Acquire))
    }

    /// The slots that were published and not taken, to be changed while the other side is known not
    /// to look.
    pub(crate) fn untaken_slots<'m, S>(&self, ring: &Ring<'m, S>) -> impl Iterator<Item = &'m S> {
        let count = self.untaken(ring).min(ring.size());
        let (first, ring) = (self.next.wrapping_sub(count), *ring);
        (0..count).map(move |n| ring.slot(first.wrapping_add(n)))
    }

    fn known_room<S>(&self, ring: &Ring<'_, S>) -> u32 {
        ring.size().saturating_sub(self.next.wrapping_sub(self.taken))
    }
}

impl Taker {
    /// Slots to read, `wanted` at most; looks at the other side's counter only when it knows of
    /// too few.
    pub(crate) fn waiting<S>(&mut self, ring: &Ring<'_, S>, wanted: u32) -> u32 {
        if self.known_waiting() < wanted {
            self.given = ring.producer.load(Ordering::Acquire);
        }
        let waiting = self.known_waiting();
        // more than the ring holds is a counter gone wrong: better nothing than the same again
        if waiting > ring.size() { 0 } else { waiting.min(wanted) }
    }

    /// The next slot to read; call it as often as [`Taker::waiting`] said.
    pub(crate) fn slot<'m, S>(&mut self, ring: &Ring<'m, S>) -> &'m S {
        let slot = ring.slot(self.next);
        self.next = self.next.wrapping_add(1);
        slot
    }

    /// Gives the slots that were read back to the other side.
    pub(crate) fn release<S>(&self, ring: &Ring<'_, S>) {
        ring.consumer.store(self.next, Ordering::Release);
    }

    fn known_waiting(&self) -> u32 {
        self.given.wrapping_sub(self.next)
    }
}

impl<'m, S> Ring<'m, S> {
    #[inline]
    fn slot(&self, index: u32) -> &'m S {
        &self.slots[index as usize & (self.slots.len() - 1)]
    }

    fn size(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }
}

impl Descriptor {
    pub(crate) fn put(&self, address: u64, len: u32) {
        self.address.store(address, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.options.store(0, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> (u64, u32) {
        (self.address.load(Ordering::Relaxed), self.len.load(Ordering::Relaxed))
    }
}

const _: () = assert!(size_of::<Descriptor>() == size_of::<libc::xdp_desc>());

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory<S> {
        producer: AtomicU32,
        consumer: AtomicU32,
        slots: Vec<S>,
    }

    impl<S: Default> Memory<S> {
        /// A ring whose counters have come to `at`.
        fn at(at: u32, size: usize) -> Memory<S> {
            let slots = (0..size).map(|_| S::default()).collect();
            Memory { producer: AtomicU32::new(at), consumer: AtomicU32::new(at), slots }
        }

        fn ring(&self) -> Ring<'_, S> {
            Ring { producer: &self.producer, consumer: &self.consumer, slots: &self.slots }
        }
    }

    fn sides(at: u32) -> (Giver, Taker) {
        (Giver { next: at, taken: at }, Taker { next: at, given: at })
    }

    #[test]
    fn a_ring_takes_as_many_as_it_has_slots_and_no_more() {
        let memory = Memory::<AtomicU64>::at(u32::MAX - 1, 4);
        let (mut giver, mut taker) = sides(u32::MAX - 1);
        let ring = memory.ring();
        assert_eq!((giver.room(&ring, 9), taker.waiting(&ring, 9)), (4, 0));
        for value in 0..4 {
            giver.slot(&ring).store(value, Ordering::Relaxed);
            giver.advance();
        }
        assert_eq!(taker.waiting(&ring, 9), 0, "nothing is there before it is published");
        giver.publish(&ring);
        assert_eq!((giver.room(&ring, 1), giver.untaken(&ring)), (0, 4));
        assert_eq!(taker.waiting(&ring, 3), 3);
        let read: Vec<u64> = (0..3).map(|_| taker.slot(&ring).load(Ordering::Relaxed)).collect();
        assert_eq!(read, [0, 1, 2], "across the wrap of the counters");
        assert_eq!(giver.room(&ring, 1), 0, "nothing is free before it is released");
        taker.release(&ring);
        assert_eq!((giver.room(&ring, 9), giver.untaken(&ring)), (3, 1));
    }

    #[test]
    fn counters_that_make_no_sense_stop_the_ring_and_break_nothing() {
        let memory = Memory::<AtomicU64>::at(0, 4);
        let (mut giver, mut taker) = sides(0);
        memory.producer.store(77, Ordering::Relaxed);
        memory.consumer.store(5, Ordering::Relaxed);
        assert_eq!(taker.waiting(&memory.ring(), 8), 0);
        giver.taken = 5;
        assert_eq!(giver.room(&memory.ring(), 8), 0);
    }

    #[test]
    fn a_descriptor_says_what_was_put() {
        let slot = Descriptor::default();
        slot.put(4096 + 256, 1514);
        assert_eq!(slot.get(), (4096 + 256, 1514));
    }

    /// The kernel's part on a second thread, through a ring so small that each side waits for the
    /// other all the time. The slots are plain words (relaxed): only the counters' order makes the
    /// values right, which is what Miri's weak memory tries to break.
    #[test]
    fn two_threads_see_every_value_once_and_in_order() {
        const LOTS: u32 = if cfg!(miri) { 200 } else { 200_000 };
        let memory = Memory::<Descriptor>::at(u32::MAX - 100, 4);
        let (mut giver, mut taker) = sides(u32::MAX - 100);
        let mut wrong = None;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let ring = memory.ring();
                let mut value = 0;
                while value < LOTS {
                    for _ in 0..giver.room(&ring, 3).min(LOTS - value) {
                        giver.slot(&ring).put(u64::from(value), value ^ 0x55);
                        giver.advance();
                        value += 1;
                    }
                    giver.publish(&ring);
                    std::thread::yield_now();
                }
            });
            let ring = memory.ring();
            let mut read = 0;
            while read < LOTS {
                for _ in 0..taker.waiting(&ring, 2) {
                    let got = taker.slot(&ring).get();
                    if got != (u64::from(read), read ^ 0x55) {
                        // a panic here would wait for the other thread for ever
                        wrong.get_or_insert((read, got));
                    }
                    read += 1;
                }
                taker.release(&ring);
                std::thread::yield_now();
            }
        });
        assert_eq!(wrong, None);
        assert_eq!(giver.untaken(&memory.ring()), 0);
    }
}
