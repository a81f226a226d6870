//! Default weights: a class weighs its rate; those without a rate share evenly what their parent
//! has not promised, and at least a hundredth of it, so that nobody starves for want of a word.
//! Beside siblings that say a weight they get the smallest weight said.

use weir_units::{ByWay, Rate};

use crate::plan::{NodeId, NodeKind, Plan, Shares};

/// Gives every node a weight above zero.
pub(crate) fn set(plan: &mut Plan) {
    let down = of(plan, |shares| shares.down);
    let up = of(plan, |shares| shares.up);
    for ((node, down), up) in plan.nodes.iter_mut().zip(down).zip(up) {
        node.shares.down.weight = down;
        node.shares.up.weight = up;
    }
    // the leaf of those that find none of their own stands beside these, and weighs as much
    for at in 0..plan.nodes.len() {
        if let NodeKind::Each(each) = &plan.nodes[at].kind {
            let (own, others) = (each.shares, each.others as usize);
            plan.nodes[others].shares.down.weight = own.down.weight;
            plan.nodes[others].shares.up.weight = own.up.weight;
        }
    }
}

fn of(plan: &Plan, direction: impl Fn(ByWay<Shares>) -> Shares) -> Vec<u64> {
    // per parent: what is promised, and how many children have neither weight nor rate
    let mut promised = vec![Rate::ZERO; plan.nodes.len()];
    let mut bare = vec![0u64; plan.nodes.len()];
    let mut least_said = vec![u64::MAX; plan.nodes.len()];
    for (node, id) in plan.nodes.iter().zip(0 as NodeId..) {
        let shares = direction(node.shares);
        let parent = node.parent as usize;
        if id != node.parent && shares.weight > 0 {
            least_said[parent] = least_said[parent].min(shares.weight);
        } else if id != node.parent {
            promised[parent] = promised[parent].plus(shares.rate);
            bare[parent] += u64::from(shares.rate == Rate::ZERO);
        }
    }
    let weigh = |node: &crate::plan::Node| {
        let shares = direction(node.shares);
        if shares.weight > 0 {
            return shares.weight;
        }
        if shares.rate > Rate::ZERO {
            return shares.rate.bps();
        }
        let parent = node.parent as usize;
        if least_said[parent] < u64::MAX {
            return least_said[parent];
        }
        let above = direction(plan.nodes[parent].shares);
        let whole = above.rate.max(promised[parent]);
        let whole = if whole == Rate::ZERO { above.ceil } else { whole };
        let free = whole.minus(promised[parent]).bps() / bare[parent].max(1);
        free.max(whole.bps() / 100).max(1)
    };
    plan.nodes.iter().map(weigh).collect()
}
