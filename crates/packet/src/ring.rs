//! Frames from one thread to another: a bounded queue with one producer and one consumer. AF_XDP
//! delivers a frame only at the netdev and queue where it arrived, so with several cores the thread
//! that owns a receive queue hands a frame to the one whose engine owns the host.
//!
//! Each ring serves one pair of threads and one port of arrival: then a slot is a frame and nothing
//! else, which fits a word, and the receiver takes from it as it takes from the port.
//!
//! It is safe code. What moves is the token; the bytes stay where they are, in memory that both
//! threads' pools work over.
//!
//! # Orderings
//!
//! Two counters only grow (and wrap): `given` is written by the producer alone, `taken` by the
//! consumer alone. Slots `taken..given` are the consumer's, all others the producer's.
//!
//! - The producer writes slots, then stores `given` with `Release`; the consumer loads `given` with
//!   `Acquire`, then reads slots. So it reads what was written for it, and, because everything that
//!   the producer did before is ordered with it, the bytes of the frame too.
//! - The consumer reads slots, then stores `taken` with `Release`; the producer loads `taken` with
//!   `Acquire`, then writes slots. So a slot is not written before it has been read.
//! - Slots are therefore never touched by both at once, and `Relaxed` is enough for them. They are
//!   atomics only because safe code cannot share plain words.
//!
//! Each side remembers what it last saw of the other's counter and looks again only when that is
//! not enough, so that a cache line changes hands once in many frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::{Burst, Frame, MemoryId, Pool};

/// A ring for frames in buffers of this memory, with so many slots, rounded up to a power of two.
/// Nothing allocates afterwards.
#[must_use]
pub fn ring(memory: MemoryId, slots: usize) -> (Producer, Consumer) {
    from(memory, slots, 0)
}

/// The end that frames are put into. Frames left in a ring whose two ends are gone are buffers
/// lost: let the consumer take them first.
#[derive(Debug)]
pub struct Producer {
    ring: Arc<Ring>,
    /// Slots written so far, those that are not published among them.
    next: u32,
    /// What the consumer had taken when we last looked.
    taken: u32,
    refused: u64,
}

/// The end that frames come out of, in the order in which they were put in.
#[derive(Debug)]
pub struct Consumer {
    ring: Arc<Ring>,
    next: u32,
    /// What the producer had given when we last looked.
    given: u32,
}

#[derive(Debug)]
struct Ring {
    memory: MemoryId,
    given: Counter,
    taken: Counter,
    slots: Box<[AtomicU64]>,
}

/// In a cache line of its own, with the one beside it, which processors fetch together: each side
/// writes one of the two, and must not slow down the other by it.
#[derive(Debug)]
#[repr(align(128))]
struct Counter(AtomicU32);

fn from(memory: MemoryId, slots: usize, start: u32) -> (Producer, Consumer) {
    const MOST: usize = 1 << 30;
    let slots = slots.clamp(1, MOST).next_power_of_two();
    let counter = || Counter(AtomicU32::new(start));
    let slots = (0..slots).map(|_| AtomicU64::new(0)).collect();
    let ring = Arc::new(Ring { memory, given: counter(), taken: counter(), slots });
    let producer = Producer { ring: ring.clone(), next: start, taken: start, refused: 0 };
    (producer, Consumer { ring, next: start, given: start })
}

impl Producer {
    /// Puts a frame of `pool` into the ring. When the ring is full, returns the frame and counts
    /// that: the consumer is behind, and a producer that waited for it would lose frames of its
    /// own. The consumer sees the frame after [`Producer::publish`].
    ///
    /// # Panics
    /// If `pool` works over another memory than the ring was made for.
    #[inline]
    pub fn push(&mut self, pool: &Pool, frame: Frame) -> Result<(), Frame> {
        self.ring.memory.expect_same(pool.memory());
        self.put(frame)
    }

    #[inline]
    fn put(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.is_full() {
            self.taken = self.ring.taken.0.load(Ordering::Acquire);
            if self.is_full() {
                self.refused += 1;
                return Err(frame);
            }
        }
        self.ring.slot(self.next).store(frame.into_word(), Ordering::Relaxed);
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// Hands over what was put in: once for a burst, not for every frame.
    pub fn publish(&self) {
        self.ring.given.0.store(self.next, Ordering::Release);
    }

    /// Frames that found no place so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn is_full(&self) -> bool {
        self.next.wrapping_sub(self.taken) >= self.ring.size()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.publish();
    }
}

impl Consumer {
    /// Adds what was handed over to the burst, as far as it has room; says how many frames. Never
    /// blocks.
    ///
    /// # Panics
    /// If `pool` works over another memory than the ring was made for.
    pub fn receive(&mut self, pool: &Pool, burst: &mut Burst) -> usize {
        self.ring.memory.expect_same(pool.memory());
        self.take(burst.room(), |frame| {
            burst.push(frame).expect("no more were asked for than it has room for");
        })
    }

    /// Gives the buffers of all that was handed over to a pool; says how many. For free buffers,
    /// and before a ring is dropped.
    ///
    /// # Panics
    /// If `pool` works over another memory than the ring was made for.
    pub fn reclaim(&mut self, pool: &mut Pool) -> usize {
        self.ring.memory.expect_same(pool.memory());
        self.take(usize::MAX, |frame| pool.give(frame))
    }

    /// Takes what waits, `most` at most and no more than the ring holds.
    fn take(&mut self, most: usize, mut each: impl FnMut(Frame)) -> usize {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        if self.given.wrapping_sub(self.next) < most {
            self.given = self.ring.given.0.load(Ordering::Acquire);
        }
        let count = self.given.wrapping_sub(self.next).min(most);
        for _ in 0..count {
            let word = self.ring.slot(self.next).load(Ordering::Relaxed);
            self.next = self.next.wrapping_add(1);
            each(Frame::from_word(word));
        }
        if count > 0 {
            self.ring.taken.0.store(self.next, Ordering::Release);
        }
        count as usize
    }
}

impl Ring {
    #[inline]
    fn slot(&self, number: u32) -> &AtomicU64 {
        // a power of two of them: the remainder is the low bits, also where the counter wraps
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    #[inline]
    fn size(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use weir_units::limits::BURST_FRAMES;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_is_a_queue_with_a_bound(
            slots in 1usize..20,
            start in prop_oneof![Just(0), (u32::MAX - 40)..=u32::MAX],
            steps in prop::collection::vec((0u8..3, 0usize..10), 1..200),
        ) {
            let mut pool = Pool::new(64, 64);
            let (mut producer, mut consumer) = from(pool.memory(), slots, start);
            let size = slots.next_power_of_two();
            let (mut given, mut staged, mut refused) = (VecDeque::new(), VecDeque::new(), 0);
            for (step, count) in steps {
                match step {
                    0 => for _ in 0..count {
                        let Some(mut frame) = pool.take() else { break };
                        pool.resize(&mut frame, count, 7);
                        let number = frame.index();
                        match producer.push(&pool, frame) {
                            Ok(()) => staged.push_back((number, count)),
                            Err(frame) => {
                                prop_assert_eq!(given.len() + staged.len(), size);
                                refused += 1;
                                pool.give(frame);
                            }
                        }
                    }
                    1 => {
                        producer.publish();
                        given.append(&mut staged);
                    }
                    _ => {
                        let mut burst = Burst::new();
                        for _ in count..BURST_FRAMES {
                            // room for `count`
                            let filler = Frame::new(0, 0, 0);
                            burst.push(filler).expect("it is empty");
                        }
                        let came = consumer.receive(&pool, &mut burst);
                        prop_assert_eq!(came, count.min(given.len()));
                        for frame in burst.drain().skip(BURST_FRAMES - count) {
                            let seen = (frame.index(), frame.at());
                            prop_assert_eq!(Some(seen), given.pop_front());
                            prop_assert_eq!(frame.len(), 7);
                            pool.give(frame);
                        }
                    }
                }
                prop_assert_eq!(producer.refused(), refused);
                prop_assert_eq!(pool.free() + given.len() + staged.len(), 64);
            }
            drop(producer);
            prop_assert_eq!(consumer.reclaim(&mut pool), given.len() + staged.len());
            prop_assert_eq!(pool.free(), 64);
        }
    }

    #[test]
    #[should_panic(expected = "but its buffers are of memory")]
    fn a_frame_of_another_memory_is_refused() {
        let mut pool = Pool::new(4, 64);
        let (mut producer, _) = ring(Pool::new(4, 64).memory(), 4);
        let frame = pool.take().unwrap();
        let _ = producer.push(&pool, frame);
    }

    /// Two threads, a ring each way and no pool between them: what one hands over, the other hands
    /// back. Miri gets fewer of them: `cargo +nightly miri test -p weir-packet --lib ring`.
    #[test]
    fn two_threads_pass_frames_in_order() {
        const FRAMES: u32 = if cfg!(miri) { 300 } else { 300_000 };
        let mut pool = Pool::new(64, 64);
        let memory = pool.memory();
        let (mut there, mut far) = ring(memory, 16);
        let (mut back, mut near) = ring(memory, 8);
        let echo = std::thread::spawn(move || {
            let mut passed = 0;
            while passed < FRAMES {
                far.take(4, |mut frame| {
                    passed += 1;
                    while let Err(again) = back.put(frame) {
                        frame = again;
                        std::thread::yield_now();
                    }
                    back.publish();
                });
                std::thread::yield_now();
            }
        });
        let (mut sent, mut came) = (0u32, 0u32);
        while came < FRAMES {
            while sent < FRAMES
                && let Some(mut frame) = pool.take()
            {
                let mark = (sent % 50) as usize;
                pool.resize(&mut frame, mark, 1);
                match there.push(&pool, frame) {
                    Ok(()) => sent += 1,
                    Err(frame) => {
                        pool.give(frame);
                        break;
                    }
                }
            }
            there.publish();
            let before = came;
            near.take(usize::MAX, |frame| {
                assert_eq!(frame.at(), (came % 50) as usize);
                came += 1;
                pool.give(frame);
            });
            if came == before {
                std::thread::yield_now();
            }
        }
        echo.join().unwrap();
        assert_eq!(pool.free(), 64);
    }
}
