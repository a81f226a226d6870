//! From rates, weights, priorities and the words about queues to what shape is told.

use weir_policy::{LeafWords, Limit, Queue};
use weir_shape::tree::{self, NodeSpec};
use weir_units::{Bytes, Rate, Span, Way};

use super::cares::Cares;
use super::{Own, Row, Table};

/// Frames that may wait in a leaf that does not say how many.
const LEAF_FRAMES: u32 = 1_000;

/// How long frames may wait where an allocator is before the queue; twice what it lets wait before
/// it lets only single frames pass, and as long as the bursts that it lets save.
const BEHIND: Span = Span::from_ms(20);
/// The sixteen packets that a leaf may send at once, in any case.
const BEHIND_LEAST: Bytes = Bytes::new(16 * 1_538);

/// The tree of a way; `told` is what it has been told so far.
pub(super) fn spec(table: &Table<'_>, way: Way, told: &tree::Spec) -> tree::Spec {
    let mut cares = Cares::after(&told.cares);
    let mut nodes = Vec::with_capacity(table.rows.len());
    for (at, row) in table.rows.iter().enumerate().skip(1) {
        if let Some(branch) = row.branch {
            if branch.queue == at {
                nodes.push(queue_of_branch(table, &table.rows[branch.top], row, &mut cares, way));
            }
            continue;
        }
        let shares = row.shares(way);
        let node = NodeSpec {
            number: row.number,
            parent: table.rows[row.parent].number,
            is_leaf: matches!(row.own, Own::Itself),
            rate: shares.rate,
            ceil: shares.ceil,
            weight: shares.weight,
            priority: row.node.priority,
            burst: shares.burst,
            care: cares.of(row.node.words, row.words, table.most(shares, way), way),
            ..limits(row.words.limit, shares.ceil)
        };
        nodes.push(node);
        let Own::Made { leaves, each, .. } = &row.own else { continue };
        let shares = each.shares[way];
        let care = cares.of(row.node.words, row.words, table.most(shares, way), way);
        nodes.extend(leaves.clone().map(|number| NodeSpec {
            number,
            parent: row.number,
            is_leaf: true,
            rate: shares.rate,
            ceil: shares.ceil,
            weight: shares.weight,
            care,
            ..node
        }));
    }
    tree::Spec {
        rate: table.rate(way),
        link: table.link,
        nodes,
        cares: cares.into_list(),
        takes_limits: table.takes_limits,
    }
}

/// The one queue of a branch whose leaves have none, in place of its row.
fn queue_of_branch(
    table: &Table<'_>,
    top: &Row<'_>,
    queue: &Row<'_>,
    cares: &mut Cares,
    way: Way,
) -> NodeSpec {
    let shares = top.shares(way);
    let ceil = table.most(shares, way);
    let plain = LeafWords { queue: Some(Queue::Fifo), ..LeafWords::default() };
    let usual = Limit::Bytes(ceil.bytes_in(BEHIND).max(BEHIND_LEAST));
    NodeSpec {
        number: queue.number,
        parent: table.rows[top.parent].number,
        is_leaf: true,
        rate: shares.rate,
        ceil: shares.ceil,
        weight: shares.weight.max(1),
        priority: top.node.priority,
        burst: shares.burst,
        care: cares.of(u32::MAX, &plain, ceil, way),
        ..limits(Some(top.words.limit.unwrap_or(usual)), ceil)
    }
}

/// How much may wait in a leaf.
fn limits(said: Option<Limit>, ceil: Rate) -> NodeSpec {
    let most = NodeSpec { frames: LEAF_FRAMES, ..NodeSpec::new(0, 0, true) };
    match said {
        None => most,
        Some(Limit::Frames(frames)) => NodeSpec { frames, ..most },
        Some(Limit::Bytes(bytes)) => NodeSpec { frames: u32::MAX, bytes, ..most },
        Some(Limit::Time(time)) => {
            NodeSpec { frames: u32::MAX, bytes: ceil.bytes_in(time), ..most }
        }
    }
}
