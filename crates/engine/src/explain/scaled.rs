//! What is left of a guarantee when all that is guaranteed beside it is asked for: the law of
//! guarantees that do not fit (docs/policy.md), for the link as fast as it is now.

use weir_policy::Plan;
use weir_policy::plan::{Node, NodeId};
use weir_units::{Rate, Way};

/// A guarantee that is not whole.
pub(super) struct Scaled {
    /// What is had of it.
    pub(super) rate: Rate,
    /// The factor by which it and its siblings' are scaled, in thousandths.
    pub(super) factor: u128,
}

/// What the children of a node are guaranteed in all, and whether one is guaranteed nothing.
struct Promised {
    sum: u128,
    beside_others: bool,
}

/// By node on the way from the link down to `leaf`: how its guarantee is scaled, if it is.
pub(super) fn scaled(plan: &Plan, leaf: NodeId, line: Rate, way: Way) -> Vec<(NodeId, Scaled)> {
    let mut path: Vec<NodeId> = Vec::new();
    let mut at = leaf;
    while plan.node(at).parent != at {
        path.push(at);
        at = plan.node(at).parent;
    }
    let mut there = line;
    let mut found = Vec::new();
    for &node in path.iter().rev() {
        let Node { parent, shares, .. } = plan.node(node);
        let guaranteed = shares[way].rate;
        let Promised { sum, beside_others } = promised(plan, *parent, way);
        let kept = if beside_others { there.part(990_000) } else { there };
        there = guaranteed;
        if sum > u128::from(kept.bps()) {
            let bits = u128::from(guaranteed.bps()) * u128::from(kept.bps()) / sum;
            there = Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX));
            let factor = 1_000 * u128::from(kept.bps()) / sum;
            found.push((node, Scaled { rate: there, factor }));
        }
    }
    found
}

fn promised(plan: &Plan, parent: NodeId, way: Way) -> Promised {
    let mut promised = Promised { sum: 0, beside_others: false };
    for (child, id) in plan.nodes.iter().zip(0..) {
        if child.parent == parent && id != parent {
            let rate = child.shares[way].rate;
            promised.sum += u128::from(rate.bps());
            promised.beside_others |= rate == Rate::ZERO;
        }
    }
    promised
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::{Source, read};

    #[test]
    fn where_all_are_guaranteed_something_all_of_it_is_shared_out() {
        let text = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"100mbit\"\n\
                    margin = \"100%\"\n[class.\"/a\"]\nrate = \"40mbit\"\n\
                    [class.\"/a/x\"]\nmatch = \"tcp\"\nrate = \"30mbit\"\n\
                    [class.\"/a/y\"]\nmatch = \"udp\"\nrate = \"10mbit\"\n";
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).unwrap();
        let plan = &reading.plans[0];
        let node = |path: &str| {
            let at = plan.nodes.iter().position(|node| &*node.path == path).unwrap();
            NodeId::try_from(at).unwrap()
        };
        let found = |mbit: u64| -> Vec<(NodeId, u64, u128)> {
            let line = Rate::from_bps(mbit * 1_000_000);
            let found = scaled(plan, node("/a/x"), line, Way::Up);
            found.into_iter().map(|(node, s)| (node, s.rate.bps(), s.factor)).collect()
        };
        // beside /a is what is nobody's, without a guarantee: of 20 Mbit/s it leaves 99 %, of which
        // /a/x has 30 in 40 parts
        let of_class = (node("/a"), 19_800_000, 495);
        assert_eq!(found(20), [of_class, (node("/a/x"), 14_850_000, 495)]);
        assert_eq!(found(41), []);
    }
}
