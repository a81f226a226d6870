//! Senders of datagrams, in the order of their times: the same seed gives the same packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use weir_share::{Node, exact};
use weir_sim::Random;
use weir_units::Rate;

use super::{bits, number, whole};

/// What lies between two packets of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gaps {
    /// The same, by so many parts of one more or less.
    Jitter(f64),
    /// Poisson's.
    Poisson,
}

/// A sender.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Its leaf in the list of nodes.
    pub(crate) node: u32,
    /// In bit/s.
    pub(crate) rate: f64,
    pub(crate) gaps: Gaps,
    /// The shortest and the longest of its packets; without, all are as long as those of all.
    pub(crate) sizes: Option<(u32, u32)>,
    /// From and up to when it sends, in ns.
    pub(crate) times: (u64, u64),
}

impl Load {
    pub(crate) fn is_on(&self, now: u64) -> bool {
        self.times.0 <= now && now < self.times.1
    }
}

/// A number from 0 up to 1.
pub(crate) fn unit(random: &mut Random) -> f64 {
    whole(random.below(1 << 53)) / whole(1 << 53)
}

/// Calls `each` with the time, the number of the sender and the length of every packet.
pub(crate) fn send(loads: &[Load], len: u32, seed: u64, mut each: impl FnMut(u64, usize, u32)) {
    let mut random = Random::new(seed, 0x5a);
    let mut heap = BinaryHeap::new();
    let gap = |load: &Load, len: u32| f64::from(len) * 8e9 / load.rate.max(1.0);
    for (at, load) in loads.iter().enumerate() {
        let phase = unit(&mut random) * gap(load, len);
        heap.push(Reverse((load.times.0 + number(phase), at)));
    }
    while let Some(mut next) = heap.peek_mut() {
        let Reverse((now, at)) = *next;
        let load = &loads[at];
        if now >= load.times.1 {
            PeekMut::pop(next);
            continue;
        }
        let len = match load.sizes {
            Some((least, most)) => {
                let more = random.below(u64::from(most.saturating_sub(least)) + 1);
                least + u32::try_from(more).unwrap_or(0)
            }
            None => len,
        };
        each(now, at, len);
        let part = match load.gaps {
            Gaps::Jitter(part) => 1.0 + part * (2.0 * unit(&mut random) - 1.0),
            Gaps::Poisson => -(1.0 - unit(&mut random)).ln(),
        };
        // in its place: with 32 k senders that takes half the time of taking it out and back in
        *next = Reverse((now + number(gap(load, len) * part).max(1), at));
    }
}

/// The exact shares of senders, in bit/s, of those that send at a moment.
pub(crate) fn wanted(nodes: &[Node], loads: &[Load], now: u64) -> Vec<f64> {
    let mut demands = vec![Rate::ZERO; nodes.len()];
    for load in loads.iter().filter(|load| load.is_on(now)) {
        let demand = &mut demands[load.node as usize];
        *demand = demand.plus(Rate::from_bps(number(load.rate)));
    }
    let shares = exact::shares(nodes, &demands).unwrap_or_default();
    let share = |load: &Load| {
        let share = shares.get(load.node as usize).copied().unwrap_or_default();
        if load.is_on(now) { bits(share) } else { 0.0 }
    };
    loads.iter().map(share).collect()
}
