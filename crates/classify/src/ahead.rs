//! Looking ahead over a burst: what its frames will read from the tables is touched before any of
//! them needs it, so that their cache misses overlap instead of adding up. Each loop does one
//! thing: those that only load are short enough for the processor to have many loads under way.

use weir_packet::{Headers, Side};

use crate::facts::Facts;
use crate::flows::{Flows, Spot};
use crate::index::Index;
use crate::key::{Key, Seed};

/// What is known of a frame ahead of its turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ahead {
    /// Its connection, if it is an IP packet.
    pub(crate) key: Key,
    pub(crate) spot: Spot,
    /// Where the connection seems to be.
    pub(crate) place: Option<u32>,
}

/// Finds out where the connections of a burst seem to be, and has their entries fetched; of those
/// that seem new, what their answers begin with.
pub(crate) fn look(
    flows: &Flows,
    index: &Index,
    seed: Seed,
    side: Side,
    headers: &[Headers],
    ahead: &mut [Ahead],
) {
    let ahead = &mut ahead[..headers.len()];
    let mut touched = 0;
    for (frame, headers) in ahead.iter_mut().zip(headers) {
        frame.key = Key::of_ip(&Facts::new(side, headers, &[]));
        frame.spot = flows.spot(frame.key.hash(seed));
    }
    for frame in &*ahead {
        touched ^= flows.peek(frame.spot);
    }
    for (frame, headers) in ahead.iter_mut().zip(headers) {
        frame.place = flows.candidate(frame.spot).filter(|_| headers.is_ip());
    }
    for frame in &*ahead {
        touched ^= frame.place.map_or(0, |place| flows.peek_entry(place, side));
    }
    for (frame, headers) in ahead.iter().zip(headers).filter(|(frame, _)| frame.place.is_none()) {
        touched ^= flows.peek_rivals(frame.spot);
        touched ^= u64::from(index.peek(&Facts::new(side, headers, &[])));
    }
    // keeps the looks into the tables from being optimised away
    std::hint::black_box(touched);
}
