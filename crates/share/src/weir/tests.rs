//! The allocator by parts: each is held to figures that follow from its rule by hand. 1 Gbit/s is
//! 2^30 units, and a byte in a queue or a credit is 2^33.

mod building;
mod changes;
mod levels;
mod passing;
mod queues;
mod taking_over;

use super::*;

const MS: u64 = 1_000_000;
const GBIT: u64 = 1 << 30;

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

fn bytes(amount: u64) -> u64 {
    amount >> CREDIT
}

fn of_bytes(bytes: u64) -> u64 {
    bytes << CREDIT
}

fn made(nodes: &[Node], options: Options) -> Weir {
    Weir::new(nodes, options).expect("is a tree").0
}

/// A link of 1 Gbit/s with so many leaves of weight one.
fn flat(leaves: usize, options: Options) -> Weir {
    let link = Node::link(mbit(1_000));
    made(&[&[link][..], &vec![Node::leaf(0, 1); leaves]].concat(), options)
}

/// A link of 1 Gbit/s, two branches of weight one and two leaves of each.
fn branches() -> [Node; 7] {
    let [leaf, other] = [1, 2].map(|parent| Node::leaf(parent, 1));
    [Node::link(mbit(1_000)), Node::inner(0, 1), Node::inner(0, 1), leaf, leaf, other, other]
}

/// Packets of 1 000 bytes from these leaves, each one every so many us, for so many ms from `from`
/// on; when that ends, and the last fate of each.
fn send(weir: &mut Weir, from: u64, ms: u64, leaves: &[(u32, u64)]) -> (u64, Vec<Fate>) {
    let mut fates = vec![Fate::Pass; leaves.len()];
    for us in 0..ms * 1_000 {
        for (fate, &(leaf, every)) in fates.iter_mut().zip(leaves) {
            if us % every == 0 {
                *fate = weir.packet(at(from + us * 1_000), leaf, 1_000);
            }
        }
    }
    weir.audit().expect("the sums are what follows");
    (from + ms * MS, fates)
}

/// Shares of leaves in Mbit/s.
fn shares<const N: usize>(weir: &Weir, leaves: [u32; N]) -> [u64; N] {
    leaves.map(|leaf| (weir.share(leaf).bps() + 500_000) / 1_000_000)
}

/// Whether each is within 1 % of what it should be.
fn is_near<const N: usize>(are: [u64; N], should: [u64; N]) -> bool {
    are.iter().zip(should).all(|(are, should)| are.abs_diff(should) * 100 <= should)
}
