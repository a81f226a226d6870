//! From the word `enforce` to trees for the allocators. A branch that is enforced has one queue in
//! the tree of shape, and its leaves have places in the tree of an allocator. Classes that have
//! queues stand there too, each branch of them as one leaf: what they want is known, and what they
//! may have is left to their queues.

use weir_policy::plan::{Kind, Node, NodeId, Shares};
use weir_policy::{Enforce, Plan, Queue};
use weir_share as share;
use weir_units::{Rate, Way, limits};

use crate::change::Layout;

/// Who allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    Weir,
    Hsdba,
}

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

/// The law of a node; `None`: queues.
fn law(node: &Node) -> Option<Law> {
    match node.enforce {
        Enforce::Auto | Enforce::Queue => None,
        Enforce::Weir => Some(Law::Weir),
        Enforce::Hsdba => Some(Law::Hsdba),
    }
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

/// For each node the top of the branch that it is in and that is enforced as a whole: all below
/// share one queue.
pub(crate) fn tops(plan: &Plan) -> Vec<Option<NodeId>> {
    let mut is_whole = vec![true; plan.nodes.len()];
    for (at, node) in plan.nodes.iter().enumerate().rev() {
        let holds = node.kind == Kind::Interior || law(node).is_some();
        is_whole[at] &= holds;
        is_whole[node.parent as usize] &= is_whole[at];
    }
    let mut tops: Vec<Option<NodeId>> = Vec::with_capacity(plan.nodes.len());
    for (node, id) in plan.nodes.iter().zip(0 as NodeId..) {
        let above = if id == 0 { None } else { tops[node.parent as usize] };
        tops.push(is_whole[id as usize].then_some(above.unwrap_or(id)));
    }
    tops
}

/// The node that has the queue of a branch: its top, or the leaf of what is nobody's where that is
/// the link, which can have none.
pub(crate) fn queue_of(plan: &Plan, top: NodeId) -> NodeId {
    if top == 0 { plan.rest } else { top }
}

/// What the allocators of a port are told.
pub(crate) fn spec(plan: &Plan, layout: &Layout, way: Way) -> Spec {
    let tops = tops(plan);
    let mut spec = Spec { rate: plan.nodes[0].shares[way].rate, ..Spec::default() };
    if plan.nodes.iter().all(|node| law(node).is_none()) {
        return spec;
    }
    for (node, id) in plan.nodes.iter().zip(0 as NodeId..) {
        let (Some(law), Some(top)) = (law(node), tops[id as usize]) else { continue };
        if node.kind == Kind::Interior {
            continue;
        }
        let held = Held {
            law,
            queue: layout.slots[queue_of(plan, top) as usize],
            level: plan.node(top).depth,
            ecn: plan.words_of(id).ecn.unwrap_or(false),
            among: match plan.words_of(id).queue.unwrap_or_default() {
                // the paper's law knows leaves alone
                _ if law == Law::Hsdba => Among::Frames,
                Queue::Fifo => Among::Frames,
                Queue::FairHost => Among::Hosts,
                Queue::Fair => Among::Flows,
            },
        };
        spec.seats.extend(numbers_of(layout, node, id).map(|number| (number, held)));
    }
    spec.seats.sort_unstable_by_key(|(number, _)| *number);
    spec.trees = LAWS.map(|law| tree(plan, layout, law, way));
    spec
}

/// The leaves that are a node's own: itself, or those it makes.
fn numbers_of(layout: &Layout, node: &Node, id: NodeId) -> std::ops::Range<u32> {
    match (&node.kind, layout.each.get(&id)) {
        (Kind::Interior, _) => 0..0,
        (Kind::Each(_), Some(&(first, count))) => first..first + count,
        _ => layout.slots[id as usize]..layout.slots[id as usize] + 1,
    }
}

/// The tree of one law: nodes below which nobody is under it are leaves.
fn tree(plan: &Plan, layout: &Layout, of: Law, way: Way) -> Tree {
    let mut is_open = vec![false; plan.nodes.len()];
    for (at, node) in plan.nodes.iter().enumerate().rev() {
        is_open[at] |= node.kind != Kind::Interior && law(node) == Some(of);
        is_open[node.parent as usize] |= is_open[at];
    }
    let mut tree = Tree::default();
    if !is_open[0] {
        return tree;
    }
    let line = plan.nodes[0].shares[way].rate;
    // which node of the tree stands for each of the plan, and what each weighs
    let mut places: Vec<u32> = Vec::with_capacity(plan.nodes.len());
    let mut weights: Vec<u64> = Vec::new();
    let mut add = |tree: &mut Tree, number: u32, parent: u32, shares: Shares, is_leaf: bool| {
        let peak = if shares.ceil < line { shares.ceil } else { Rate::MAX };
        let node = share::Node { floor: shares.rate, peak, ..share::Node::leaf(parent, 1) };
        tree.nodes.push(share::Node { is_leaf, ..node });
        tree.numbers.push(number);
        weights.push(shares.weight);
        place(tree.nodes.len() - 1)
    };
    for (node, id) in plan.nodes.iter().zip(0 as NodeId..) {
        let above = if id == 0 { 0 } else { places[node.parent as usize] };
        if id > 0 && !is_open[node.parent as usize] {
            places.push(above);
            tree.leaves.extend(numbers_of(layout, node, id).map(|number| (number, above)));
            continue;
        }
        let number = layout.slots[id as usize];
        let makes = matches!(node.kind, Kind::Each(_)) && is_open[id as usize];
        let is_leaf = !makes && (node.kind != Kind::Interior || !is_open[id as usize]);
        let at = add(&mut tree, number, above, node.shares[way], is_leaf);
        places.push(at);
        for number in numbers_of(layout, node, id) {
            let own = match &node.kind {
                Kind::Each(each) if makes => add(&mut tree, number, at, each.shares[way], true),
                _ => at,
            };
            tree.leaves.push((number, own));
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
