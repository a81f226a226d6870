//! From the word `enforce` to trees for the allocators. A branch that is enforced has one queue in
//! the tree of shape, and its leaves have places in the tree of an allocator. Classes that have
//! queues stand there too, each branch of them as one leaf: what they want is known, and what they
//! may have is left to their queues.

use weir_policy::Queue;
use weir_policy::plan::Shares;
use weir_share as share;
use weir_units::{Rate, Way, limits};

use super::{Law, Own, Table};

pub(crate) const LAWS: [Law; 2] = [Law::Weir, Law::Hsdba];

/// What the allocators of one port are told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spec {
    pub(crate) rate: Rate,
    pub(crate) trees: [Tree; 2],
    /// Sorted by the leaf's number.
    pub(crate) seats: Vec<(u32, Held)>,
}

/// A tree for one law; without nodes where nobody is under it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<share::Node>,
    /// The number of each in the engine.
    pub(crate) numbers: Vec<u32>,
    /// Leaves, by the number of each, and the node that stands for it; sorted.
    pub(crate) leaves: Vec<(u32, u32)>,
}

/// A leaf that is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) law: Law,
    /// Whose queue its frames join.
    pub(crate) queue: u32,
    /// How many levels below the link that one is.
    pub(crate) level: u8,
    pub(crate) ecn: bool,
    pub(crate) among: Among,
}

/// Who shares in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// All frames are alike.
    Frames,
    Flows,
    /// Each host, then each of its flows.
    Hosts,
}

/// Why `enforce = "auto"` takes queues, in figures: how long frames can wait in the memory that a
/// port has for so many, and what a flow may have ahead where there are none.
#[must_use]
pub fn why_queues(rate: Rate, frames: u64) -> String {
    const FULL: u64 = 1_538;
    let ms = |ns: u64| ns / 1_000_000;
    let held = u64::try_from(
        u128::from(frames * FULL * 8) * 1_000_000_000 / u128::from(rate.bps().max(1)),
    );
    let held = held.unwrap_or(u64::MAX);
    // CUBIC falls to 0.7 of its window, and needs 3/7 of a round trip to fill its part then
    let cubic = share::AHEAD / 3 * 7;
    let mut text = format!(
        "{frames} frames hold {} ms of {rate}; without queues a flow may have {} ms of its part \
         ahead, which fills the part of a CUBIC download from up to {} ms away",
        ms(held),
        ms(share::AHEAD),
        ms(cubic),
    );
    if held < share::AHEAD {
        text += ": these are too few for queues, so give more (--queue of weir run) or say \
                 enforce = \"weir\"";
    }
    text
}

/// What the allocators of a way are told.
pub(crate) fn spec(table: &Table<'_>, way: Way) -> Spec {
    let mut spec = Spec { rate: table.rate(way), ..Spec::default() };
    if table.rows.iter().all(|row| row.law.is_none()) {
        return spec;
    }
    for row in &table.rows {
        let (Some(law), Some(branch)) = (row.law, row.branch) else { continue };
        let held = Held {
            law,
            queue: table.queue_of(branch),
            level: table.rows[branch.top].node.depth,
            ecn: row.words.ecn.unwrap_or(false),
            among: match row.words.queue.unwrap_or_default() {
                // the paper's law knows leaves alone
                _ if law == Law::Hsdba => Among::Frames,
                Queue::Fifo => Among::Frames,
                Queue::FairHost => Among::Hosts,
                Queue::Fair => Among::Flows,
            },
        };
        spec.seats.extend(row.leaves().map(|number| (number, held)));
    }
    spec.seats.sort_unstable_by_key(|(number, _)| *number);
    spec.trees = LAWS.map(|law| tree(table, law, way));
    spec
}

/// The tree of one law: nodes below which nobody is under it are leaves.
fn tree(table: &Table<'_>, of: Law, way: Way) -> Tree {
    let mut is_open = vec![false; table.rows.len()];
    for (at, row) in table.rows.iter().enumerate().rev() {
        is_open[at] |= !matches!(row.own, Own::None) && row.law == Some(of);
        is_open[row.parent] |= is_open[at];
    }
    let mut tree = Tree::default();
    if !is_open[0] {
        return tree;
    }
    let line = table.rate(way);
    // which node of the tree stands for each row, and what each weighs
    let mut places: Vec<u32> = Vec::with_capacity(table.rows.len());
    let mut weights: Vec<u64> = Vec::new();
    let mut add = |tree: &mut Tree, number: u32, parent: u32, shares: Shares, is_leaf: bool| {
        let peak = if shares.ceil < line { shares.ceil } else { Rate::MAX };
        let node = share::Node { floor: shares.rate, peak, ..share::Node::leaf(parent, 1) };
        tree.nodes.push(share::Node { is_leaf, ..node });
        tree.numbers.push(number);
        weights.push(shares.weight);
        place(tree.nodes.len() - 1)
    };
    for (at, row) in table.rows.iter().enumerate() {
        let above = if at == 0 { 0 } else { places[row.parent] };
        if at > 0 && !is_open[row.parent] {
            places.push(above);
            tree.leaves.extend(row.leaves().map(|number| (number, above)));
            continue;
        }
        let made = match &row.own {
            Own::Made { each, .. } if is_open[at] => Some(each.shares[way]),
            _ => None,
        };
        let is_leaf = made.is_none() && !(matches!(row.own, Own::None) && is_open[at]);
        let own = add(&mut tree, row.number, above, row.shares(way), is_leaf);
        places.push(own);
        for number in row.leaves() {
            let leaf = made.map(|shares| add(&mut tree, number, own, shares, true));
            tree.leaves.push((number, leaf.unwrap_or(own)));
        }
    }
    tree.nodes[0] = share::Node::link(line);
    weigh(&mut tree.nodes, &weights);
    tree.leaves.sort_unstable();
    tree
}

fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Weights as the allocators take them: those of siblings are all divided by the same power of two,
/// until the largest fits, whatever the others are.
fn weigh(nodes: &mut [share::Node], weights: &[u64]) {
    let mut most = vec![(0_u64, 0_u64); nodes.len()];
    for (node, &weight) in nodes.iter().zip(weights).skip(1) {
        let (largest, siblings) = &mut most[node.parent as usize];
        *largest = weight.max(*largest);
        *siblings += 1;
    }
    for (node, &weight) in nodes.iter_mut().zip(weights).skip(1) {
        let (largest, siblings) = most[node.parent as usize];
        let fits = u64::from(limits::SHARE_WEIGHT).min(u64::from(u32::MAX) / siblings.max(1));
        let shift = (0..64).find(|&shift| largest >> shift <= fits).unwrap_or(63);
        node.weight = u32::try_from(weight >> shift).unwrap_or(u32::MAX).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_are_too_short_are_named_with_their_cure() {
        let why = |mbit: u64, frames| why_queues(Rate::from_bps(mbit * 1_000_000), frames);
        let known = "4096 frames hold 50 ms of 1gbit; without queues a flow may have 33 ms of its \
                     part ahead, which fills the part of a CUBIC download from up to 77 ms away";
        assert_eq!(why(1_000, 4_096), known);
        assert!(why(10_000, 4_096).contains("hold 5 ms of 10gbit"));
        assert!(why(10_000, 4_096).ends_with("or say enforce = \"weir\""));
        assert!(!why(10_000, 65_536).contains("too few"));
        assert!(why(0, 1).contains("frames hold"));
    }
}
