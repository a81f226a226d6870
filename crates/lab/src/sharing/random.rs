//! A tree drawn from the seed: two to five levels, weights, guarantees and peaks, leaves that want
//! more or less than their part, in packets of 64 to 1 500 bytes. What each leaf has is held to the
//! exact answer for what it really sent.

use weir_share::{LINK, Node, exact};
use weir_sim::Random;
use weir_units::Rate;

use super::traffic::{Gaps, Load};
use super::{Enforce, Numbers, Sharing, bits, fair, number, whole};

/// Bytes of the shortest and the longest packet of a leaf, one of these.
const SIZES: [(u32, u32); 4] = [(64, 1_500), (64, 128), (1_500, 1_500), (64, 1_000)];
/// A tree with as many nodes has only leaves from there on.
const LEAVES: usize = 24;

pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Numbers {
    let link = bits(sharing.nodes[0].peak);
    let (nodes, loads) = drawn(link, sharing.run.ns(), seed);
    // the first third does not count
    let (unit, settled) = (sharing.run, sharing.run.ns() / 3);
    let sharing = Sharing { nodes, loads, unit, ..*sharing };
    let Some(seen) = fair::seen(&sharing, enforce, seed, settled) else { return Vec::new() };
    let Some(seen) = seen.stretches.first() else { return Vec::new() };
    let seconds = whole(sharing.run.ns() - settled) / 1e9;
    let mut offered = vec![Rate::ZERO; sharing.nodes.len()];
    for (load, seen) in sharing.loads.iter().zip(seen) {
        offered[load.node as usize] = Rate::from_bps(number(seen[0] / seconds));
    }
    let Ok(due) = exact::shares(&sharing.nodes, &offered) else { return Vec::new() };
    let (mut sum, mut most, mut used, mut right) = (0.0, 0.0_f64, 0.0, 0.0);
    for (load, seen) in sharing.loads.iter().zip(seen) {
        let (due, rate) = (bits(due[load.node as usize]).max(1.0), seen[1] / seconds);
        let off = (rate - due).abs();
        // of a slow leaf two frames a second are much
        let frame = load.sizes.map_or(0.0, |(_, most)| f64::from(most) * 8.0);
        most = if off > 2.0 * frame { most.max(off / due) } else { most };
        // one more or less in all the time is no error: the counting cannot be finer
        let mean = (off - frame / seconds).max(0.0) / due;
        (sum, used, right) = (sum + mean, used + rate, right + due);
    }
    vec![
        ("dev_mean".to_owned(), sum / whole(sharing.loads.len().max(1) as u64)),
        ("dev_max".to_owned(), most),
        ("use".to_owned(), used / f64::max(right, 1.0)),
    ]
}

/// The nodes, the link first, and what the leaves send.
fn drawn(link: f64, run: u64, seed: u64) -> (Vec<Node>, Vec<Load>) {
    let mut random = Random::new(seed, 0x7e);
    let mut draw = |least: u64, most: u64| least + random.below(most - least + 1);
    let mut nodes = vec![Node::link(Rate::from_bps(number(link)))];
    let mut parents = vec![LINK];
    let levels = draw(2, 5);
    for level in 1..=levels {
        let mut inner = Vec::new();
        for parent in std::mem::take(&mut parents) {
            for _ in 0..draw(2, 4) {
                let is_full = nodes.len() >= LEAVES;
                let is_leaf = level == levels || is_full || (level > 1 && draw(0, 3) == 0);
                if !is_leaf {
                    inner.push(u32::try_from(nodes.len()).unwrap_or(LINK));
                }
                let weight = u32::try_from(draw(1, 5)).unwrap_or(1);
                nodes.push(Node { is_leaf, ..Node::leaf(parent, weight) });
            }
        }
        parents = inner;
    }
    let leaves = nodes.iter().filter(|node| node.is_leaf).count().max(1);
    let even = link / whole(leaves as u64);
    let mut loads = Vec::new();
    for (at, node) in (0_u32..).zip(&mut nodes).filter(|(_, node)| node.is_leaf) {
        let mut part = |least, most| Rate::from_bps(number(even * whole(draw(least, most)) / 1e2));
        let rate = bits(part(30, 300));
        let (floor, peak) = (part(20, 80), part(90, 250));
        node.floor = if draw(0, 3) == 0 { floor } else { Rate::ZERO };
        node.peak = if draw(0, 3) == 0 { peak } else { Rate::MAX };
        let sizes = Some(SIZES[usize::try_from(draw(0, 3)).unwrap_or(0)]);
        loads.push(Load { node: at, rate, gaps: Gaps::Jitter(0.2), sizes, times: (0, run) });
    }
    // a node promises what its children promise; some may have less than those would send
    for at in (1..nodes.len()).rev() {
        let (parent, floor) = (nodes[at].parent as usize, nodes[at].floor);
        if parent > 0 {
            nodes[parent].floor = nodes[parent].floor.plus(floor);
        }
        if !nodes[at].is_leaf && draw(0, 3) == 0 {
            let below = whole(leaves_below(&nodes, at)) * even;
            let least = bits(floor) * 1.02;
            let peak = (below * whole(draw(60, 150)) / 1e2).max(least);
            nodes[at].peak = Rate::from_bps(number(peak));
        }
    }
    (nodes, loads)
}

fn leaves_below(nodes: &[Node], top: usize) -> u64 {
    let is_below = |mut at: usize| {
        while at > top {
            at = nodes[at].parent as usize;
        }
        at == top
    };
    (0..nodes.len()).filter(|&at| nodes[at].is_leaf && is_below(at)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_can_be_said_in_a_policy() {
        let mut sizes = Vec::new();
        for seed in 1..200 {
            let (nodes, loads) = drawn(1e8, 1, seed);
            let demands = vec![Rate::MAX; nodes.len()];
            assert!(exact::shares(&nodes, &demands).is_ok(), "{seed}");
            assert!(
                super::super::Gate::new(&nodes, Enforce::Engine(super::super::Word::Weir), 1)
                    .is_some(),
                "{seed}"
            );
            sizes.push(loads.len());
        }
        assert!(sizes.iter().all(|leaves| (4..=64).contains(leaves)), "{sizes:?}");
    }
}
