//! The exact answer that everything else is held to: hierarchical weighted max-min with
//! guarantees. A parent that has A gives each child `min(d, max(min(g, d), w x level))`, with
//! demand d (never above the peak), guarantee g, weight w, and the one level for which these add up
//! to A or all demands are met. Where the guarantees (of each no more than it wants) are more than
//! A, they are scaled alike until they fit; beside what children without one want, up to 1 % of A.
//! Who wants less than its scaled guarantee has all it wants.
//!
//! Demands go up, capped by each peak; grants come down. At a node the level is found by walking
//! along the points at which a child begins (g/w) and ends (d/w) to rise with the level, in order.
//! All in whole bits per second, rounded down.

use weir_units::Rate;

use crate::tree::{Layout, Node, Place, Unfit};

/// What every node of the list has if the leaves want so much: `demands` by place in the list;
/// those of nodes with children do not matter.
///
/// # Errors
/// The list is no tree.
pub fn shares(nodes: &[Node], demands: &[Rate]) -> Result<Vec<Rate>, Unfit> {
    let layout = Layout::new(nodes)?;
    let mut wants = vec![0_u64; nodes.len()];
    for &leaf in &layout.leaves {
        let node = &nodes[leaf as usize];
        let demand = demands.get(leaf as usize).copied().unwrap_or(Rate::ZERO);
        wants[leaf as usize] = demand.min(node.peak).bps();
    }
    // parents stand before their children in the list
    for at in (1..nodes.len()).rev() {
        wants[at] = wants[at].min(nodes[at].peak.bps());
        wants[nodes[at].parent as usize] += wants[at];
    }
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); layout.inner.len()];
    for at in 1..crate::tree::number(nodes.len()) {
        children[layout.parent(nodes, at) as usize].push(at);
    }
    let mut grants = vec![0_u64; nodes.len()];
    grants[0] = wants[0].min(nodes[0].peak.bps());
    for at in 0..nodes.len() {
        if let Place::Inner(inner) = layout.places.of(crate::tree::number(at)) {
            let some = &children[inner as usize];
            split(grants[at], some, nodes, &wants, &mut grants);
        }
    }
    Ok(grants.into_iter().map(Rate::from_bps).collect())
}

/// A child as the level sees it.
struct Child {
    at: usize,
    least: u128,
    most: u128,
    weight: u128,
}

/// Gives out what one parent has.
fn split(grant: u64, children: &[u32], nodes: &[Node], wants: &[u64], grants: &mut [u64]) {
    let child = |&at: &u32| {
        let (at, node) = (at as usize, &nodes[at as usize]);
        let most = u128::from(wants[at]);
        let least = u128::from(node.floor.bps()).min(most);
        Child { at, least, most, weight: u128::from(node.weight.max(1)) }
    };
    let mut children: Vec<Child> = children.iter().map(child).collect();
    let grant = u128::from(grant);
    if children.iter().map(|c| c.most).sum::<u128>() <= grant {
        children.iter().for_each(|c| grants[c.at] = crate::scale::narrow(c.most));
        return;
    }
    let has_none = |c: &&Child| nodes[c.at].floor == Rate::ZERO;
    let others: u128 = children.iter().filter(has_none).map(|c| c.most).sum();
    scale(&mut children, nodes, grant - others.min(grant / 100));
    let least: u128 = children.iter().map(|c| c.least).sum();
    if least >= grant {
        children.iter().for_each(|c| grants[c.at] = crate::scale::narrow(c.least));
        return;
    }
    let (left, weight) = level(&children, grant, least);
    for c in &children {
        let part = c.weight * left / weight;
        grants[c.at] = crate::scale::narrow(part.clamp(c.least, c.most));
    }
}

/// Scales guarantees that are more than what is promised.
fn scale(children: &mut [Child], nodes: &[Node], promised: u128) {
    if children.iter().map(|c| c.least).sum::<u128>() <= promised {
        return;
    }
    let floor = |c: &Child| u128::from(nodes[c.at].floor.bps());
    // who wants least of its guarantee is met first, and leaves the rest to the others
    let mut order: Vec<&mut Child> = children.iter_mut().filter(|c| floor(c) > 0).collect();
    order.sort_by(|a, b| (a.most * floor(b)).cmp(&(b.most * floor(a))));
    let mut floors: u128 = order.iter().map(|c| floor(c)).sum();
    let mut left = promised;
    for child in order {
        let floor = floor(child);
        child.least = child.most.min(floor * left / floors);
        left -= child.least;
        floors -= floor;
    }
}

/// The level, as a fraction.
fn level(children: &[Child], grant: u128, least: u128) -> (u128, u128) {
    // where a child begins to rise, and where it ends
    let begins = children.iter().map(|c| (c.least, c, true));
    let ends = children.iter().map(|c| (c.most, c, false));
    let mut points: Vec<(u128, &Child, bool)> = begins.chain(ends).collect();
    points.sort_by(|(a, x, _), (b, y, _)| (a * y.weight).cmp(&(b * x.weight)));
    // the sum is fixed + weight x level
    let (mut fixed, mut weight) = (least, 0);
    for (point, child, begins) in points {
        if weight > 0 && (fixed * child.weight + weight * point) >= grant * child.weight {
            break;
        }
        if begins {
            fixed -= child.least;
            weight += child.weight;
        } else {
            fixed += child.most;
            weight -= child.weight;
        }
    }
    (grant.saturating_sub(fixed), weight.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LINK;

    fn shares_of(nodes: &[Node], demands: &[u64]) -> Vec<u64> {
        let demands: Vec<Rate> = demands.iter().map(|&d| Rate::from_bps(d)).collect();
        shares(nodes, &demands).unwrap().into_iter().map(Rate::bps).collect()
    }

    #[test]
    fn the_worked_example() {
        let link = Node::link(Rate::from_bps(50));
        let nodes = [link, Node::leaf(LINK, 1), Node::leaf(LINK, 1), Node::leaf(LINK, 1)];
        assert_eq!(shares_of(&nodes, &[0, 10, 20, 30]), [50, 10, 20, 20]);
    }

    #[test]
    fn weights_guarantees_and_peaks() {
        let link = Node::link(Rate::from_bps(100));
        let kept = Node { floor: Rate::from_bps(60), ..Node::leaf(LINK, 1) };
        let nodes = [link, kept, Node::leaf(LINK, 1), Node::leaf(LINK, 3)];
        assert_eq!(shares_of(&nodes, &[0, 100, 100, 100]), [100, 60, 10, 30]);
        assert_eq!(shares_of(&nodes, &[0, 20, 100, 100]), [100, 20, 20, 60]);
        let peak = Node { peak: Rate::from_bps(15), ..Node::leaf(LINK, 3) };
        let nodes = [link, kept, Node::leaf(LINK, 1), peak];
        assert_eq!(shares_of(&nodes, &[0, 100, 100, 100]), [100, 60, 25, 15]);
    }

    #[test]
    fn guarantees_that_exceed_the_link_are_scaled() {
        let link = Node::link(Rate::from_bps(100));
        let kept = |floor| Node { floor: Rate::from_bps(floor), ..Node::leaf(LINK, 1) };
        let nodes = [link, kept(150), kept(50), Node::leaf(LINK, 1)];
        assert_eq!(shares_of(&nodes, &[0, 500, 500, 0]), [100, 75, 25, 0]);
        // who has no guarantee has a hundredth
        let nodes = [Node::link(Rate::from_bps(1_000)), kept(1_500), kept(500), kept(0)];
        assert_eq!(shares_of(&nodes, &[0, 5_000, 5_000, 0]), [1_000, 750, 250, 0]);
        assert_eq!(shares_of(&nodes, &[0, 5_000, 5_000, 5_000]), [1_000, 742, 248, 10]);
        // who wants less than its scaled guarantee has all it wants
        assert_eq!(shares_of(&nodes, &[0, 5_000, 100, 5_000]), [1_000, 890, 100, 10]);
        // and what is wanted without a guarantee is no more than a hundredth
        assert_eq!(shares_of(&nodes, &[0, 5_000, 100, 4]), [1_000, 896, 100, 4]);
    }

    #[test]
    fn demands_are_capped_on_their_way_up() {
        // two children that may have 0.5 each beside a group that wants all
        let small = |parent| Node { peak: Rate::from_bps(500), ..Node::leaf(parent, 1) };
        let nodes = [
            Node::link(Rate::from_bps(10_000)),
            Node::inner(LINK, 1),
            Node::inner(LINK, 1),
            small(1),
            small(1),
            Node::leaf(2, 1),
            Node::leaf(2, 1),
        ];
        let shares = shares_of(&nodes, &[0, 0, 0, 3_000, 3_000, 6_000, 6_000]);
        assert_eq!(shares[3..], [500, 500, 4_500, 4_500]);
    }
}
