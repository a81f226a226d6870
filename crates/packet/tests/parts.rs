//! What holds for the parts of one memory whatever their threads do: each buffer is in one place,
//! and none is lost.

use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_packet::{Burst, Consumer, Frame, Pool, Producer, Spares, ring};

/// What one thread has.
struct Part {
    pool: Pool,
    spares: Spares,
    /// To and from each part, itself among them.
    to: Vec<Producer>,
    from: Vec<Consumer>,
    held: Vec<Frame>,
}

/// Parts of one memory, with rings of so many slots from each to each.
fn parts(count: usize, buffers: usize, slots: usize, low: usize) -> Vec<Part> {
    // the numbers are what is looked at: no bytes are written
    let pools = Pool::parted((0..count).map(|_| vec![0; buffers].leak()).collect(), 1);
    let mut froms: Vec<Vec<Consumer>> = (0..count).map(|_| Vec::new()).collect();
    let mut tos = Vec::new();
    for _ in 0..count {
        let (to, from): (Vec<_>, Vec<_>) =
            (0..count).map(|_| ring(pools[0].memory(), slots)).unzip();
        froms.iter_mut().zip(from).for_each(|(froms, from)| froms.push(from));
        tos.push(to);
    }
    let ends = Spares::among(&pools, low).into_iter().zip(tos).zip(froms);
    let part = |(pool, ((spares, to), from))| Part { pool, spares, to, from, held: Vec::new() };
    pools.into_iter().zip(ends).map(part).collect()
}

fn step(parts: &mut [Part], (what, one, other, count): (u8, usize, usize, usize)) {
    let (one, other) = (one % parts.len(), other % parts.len());
    let Part { pool, spares, to, from, held } = &mut parts[one];
    match what {
        0 => held.extend(std::iter::from_fn(|| pool.take()).take(count)),
        1 => held.drain(..count.min(held.len())).for_each(|frame| pool.give(frame)),
        2 | 3 => {
            for frame in held.drain(..count.min(held.len())) {
                if let Err(frame) = to[other].push(pool, frame) {
                    pool.give(frame);
                }
            }
            if what == 2 {
                to[other].publish();
            }
        }
        4 => {
            let mut burst = Burst::new();
            from[other].receive(pool, &mut burst);
            held.extend(burst.drain());
        }
        _ => spares.balance(pool),
    }
}

proptest! {
    #[test]
    fn each_buffer_is_in_one_place(
        (count, buffers, slots, low) in (1usize..5, 1usize..200, 1usize..40, 0usize..30),
        steps in prop::collection::vec((0u8..7, 0usize..5, 0usize..5, 0usize..70), 1..300),
    ) {
        let mut parts = parts(count, buffers, slots, low);
        for step_of in steps {
            step(&mut parts, step_of);
            let here: usize = parts.iter().map(|part| part.pool.free() + part.held.len()).sum();
            prop_assert!(here <= buffers);
        }
        // all threads end: what is still under way comes out of the rings
        let ends = parts.into_iter().map(|part| {
            let Part { mut pool, spares, to, from, held } = part;
            held.into_iter().for_each(|frame| pool.give(frame));
            drop(to);
            (pool, spares, from)
        });
        let mut numbers = BTreeSet::new();
        let mut seen = 0;
        for (mut pool, mut spares, from) in ends.collect::<Vec<_>>() {
            spares.reclaim(&mut pool);
            for mut from in from {
                from.reclaim(&mut pool);
            }
            while let Some(frame) = pool.take() {
                numbers.insert(frame.index());
                seen += 1;
            }
        }
        prop_assert_eq!((seen, numbers.len()), (buffers, buffers));
    }

    #[test]
    fn a_part_that_only_receives_does_not_run_dry(
        // what two bursts take
        (buffers, low) in (300usize..600, 38usize..50),
        bursts in prop::collection::vec(1usize..20, 50..200),
    ) {
        // all frames come to the first part and leave from the second
        let mut parts = parts(2, buffers, 64, low);
        for count in bursts {
            for (what, one, other) in [(5, 0, 0), (0, 0, 0), (2, 0, 1), (5, 1, 0), (4, 1, 0)] {
                step(&mut parts, (what, one, other, count));
                let (free, held) = (parts[0].pool.free(), parts[0].held.len());
                prop_assert!(what != 0 || held == count, "{held} of {count}, {free} free");
            }
            step(&mut parts, (1, 1, 0, usize::MAX));
        }
    }
}
