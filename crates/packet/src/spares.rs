//! Free buffers on their way to a part that runs short. Frames that arrive on one thread and leave
//! from another take their buffers along, so that the receiving part would run dry while the other
//! has them all. A part that has few says so, and the others pass it some of theirs.
//!
//! Nobody keeps books about who owes whom: a part is short below a mark, and one that has more than
//! twice as much helps, a burst to each poll. What neither has, nobody has; then frames are dropped
//! where they arrive, and counted there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_units::limits::{BURST_FRAMES, SPARE_FRAMES};

use crate::{Consumer, MemoryId, Pool, Producer, ring};

/// What one part of a memory needs to pass free buffers to the others and to get some from them.
#[derive(Debug)]
pub struct Spares {
    memory: MemoryId,
    me: usize,
    low: usize,
    is_short: bool,
    short: Arc<[Short]>,
    lanes: Box<[Lane]>,
}

/// To and from one other part.
#[derive(Debug)]
struct Lane {
    other: usize,
    to: Producer,
    from: Consumer,
}

/// Whether a part is short of buffers; in a cache line of its own, because all look at it and only
/// the part itself writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Short(AtomicBool);

impl Spares {
    /// One for each of these pools, which are the parts of one memory, in their order. A part is
    /// short while it has fewer than `low` free buffers; others give while they have more than
    /// twice as many.
    ///
    /// # Panics
    /// If the pools are not of the same memory.
    #[must_use]
    pub fn among(pools: &[Pool], low: usize) -> Vec<Spares> {
        let Some(memory) = pools.first().map(Pool::memory) else { return Vec::new() };
        pools.iter().for_each(|pool| memory.expect_same(pool.memory()));
        let parts = pools.len();
        let short: Arc<[Short]> = pools.iter().map(|_| Short::default()).collect();
        let mut lanes: Vec<Vec<Lane>> = pools.iter().map(|_| Vec::new()).collect();
        for (one, other) in (0..parts).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let (there, here) = (ring(memory, SPARE_FRAMES), ring(memory, SPARE_FRAMES));
            lanes[one].push(Lane { other, to: there.0, from: here.1 });
            lanes[other].push(Lane { other: one, to: here.0, from: there.1 });
        }
        let spares = lanes.into_iter().enumerate().map(|(me, lanes)| Spares {
            memory,
            me,
            low,
            is_short: false,
            short: short.clone(),
            lanes: lanes.into(),
        });
        spares.collect()
    }

    /// Takes the buffers that others have passed, says whether this part is short, and passes some
    /// to those that are. Called once a poll, by the thread that has this part. Looks at two words
    /// of each other part; moves at most `SPARE_FRAMES` buffers from each and `BURST_FRAMES` to it.
    ///
    /// # Panics
    /// If `pool` is of another memory.
    pub fn balance(&mut self, pool: &mut Pool) {
        self.memory.expect_same(pool.memory());
        self.reclaim(pool);
        let is_short = pool.free() < self.low;
        if is_short != self.is_short {
            self.is_short = is_short;
            // a wish, not a promise: what it is about travels by the rings, which order it
            self.short[self.me].0.store(is_short, Ordering::Relaxed);
        }
        let Spares { low, short, lanes, .. } = self;
        for Lane { other, to, .. } in lanes {
            if !short[*other].0.load(Ordering::Relaxed) {
                continue;
            }
            let spare = pool.free().saturating_sub(2 * *low).min(BURST_FRAMES);
            for _ in 0..spare {
                let Some(frame) = pool.take() else { break };
                if let Err(frame) = to.push(pool, frame) {
                    pool.give(frame);
                    break;
                }
            }
            to.publish();
        }
    }

    /// Takes the buffers that others have passed, and says how many: the last thing to do with
    /// this part when they do not pass any more.
    ///
    /// # Panics
    /// If `pool` is of another memory.
    pub fn reclaim(&mut self, pool: &mut Pool) -> usize {
        self.lanes.iter_mut().map(|lane| lane.from.reclaim(pool)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(count: usize, buffers: usize) -> Vec<Pool> {
        Pool::parted((0..count).map(|_| vec![0; buffers].leak()).collect(), 1)
    }

    #[test]
    fn a_part_that_runs_short_gets_what_others_can_spare() {
        let mut pools = parts(3, 300);
        let mut spares = Spares::among(&pools, 20);
        // all buffers of the first have left by the second
        while let Some(frame) = pools[0].take() {
            pools[1].give(frame);
        }
        let mut poll = |pools: &mut [Pool]| {
            spares.iter_mut().zip(&mut *pools).for_each(|(part, pool)| part.balance(pool));
            [0, 1, 2].map(|part| pools[part].free())
        };
        assert_eq!(poll(&mut pools), [0, 136, 40], "what is above twice the mark, 64 at most");
        assert_eq!(poll(&mut pools), [124, 136, 40]);
        // nobody is short: nothing moves any more
        assert_eq!(poll(&mut pools), [124, 136, 40]);
    }

    #[test]
    fn a_part_keeps_what_it_needs_itself() {
        let mut pools = parts(2, 80);
        let mut spares = Spares::among(&pools, 20);
        let taken: Vec<_> = std::iter::from_fn(|| pools[0].take()).collect();
        for _ in 0..3 {
            spares.iter_mut().zip(&mut pools).for_each(|(part, pool)| part.balance(pool));
        }
        assert_eq!((pools[0].free(), pools[1].free()), (0, 40));
        taken.into_iter().for_each(|frame| pools[1].give(frame));
        for _ in 0..3 {
            spares.iter_mut().zip(&mut pools).for_each(|(part, pool)| part.balance(pool));
        }
        assert_eq!((pools[0].free(), pools[1].free()), (40, 40));
    }

    #[test]
    fn a_part_that_is_short_and_does_not_poll_gets_a_ring_full() {
        let mut pools = parts(2, 2_000);
        let mut spares = Spares::among(&pools, 20);
        let taken: Vec<_> = std::iter::from_fn(|| pools[0].take()).collect();
        spares[0].balance(&mut pools[0]);
        for _ in 0..20 {
            spares[1].balance(&mut pools[1]);
        }
        assert_eq!(pools[1].free(), 1_000 - SPARE_FRAMES);
        assert_eq!(spares[0].reclaim(&mut pools[0]), SPARE_FRAMES);
        taken.into_iter().for_each(|frame| pools[1].give(frame));
        assert_eq!(pools[0].free() + pools[1].free(), 2_000);
    }

    #[test]
    #[should_panic(expected = "but its buffers are of memory")]
    fn pools_of_different_memories_are_no_parts_of_one() {
        let _ = Spares::among(&[Pool::new(4, 64), Pool::new(4, 64)], 1);
    }
}
