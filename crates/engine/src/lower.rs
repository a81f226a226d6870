//! From a policy to what each stage is told. A plan becomes one table, numbered and with its
//! defaults filled in; each stage's part is read from it in one file, and stages know nothing of
//! policies. What is decided here is decided once: which leaves are a node's own, which branch is
//! enforced as a whole, and which leaf has its queue.

mod allocators;
mod cares;
mod police;
mod rules;
mod tcp;
mod tree;

use std::ops::Range;

use weir_policy::plan::{EachPlan, Node, NodeId, NodeKind, Shares};
use weir_policy::{Enforce, LeafWords, Plan};
use weir_shape::FrameCost;
use weir_units::{ByWay, Rate, Way};

use crate::change::Layout;

pub use allocators::why_queues;
pub(crate) use allocators::{Among, Held, LAWS, Spec, Tree, spec as allocators};
pub(crate) use rules::numbers;
pub(crate) use tcp::in_words;

/// A plan with the numbers that its nodes have in an engine.
pub(crate) struct Table<'p> {
    /// For the words of leaves, and the rules.
    plan: &'p Plan,
    /// What a frame costs on the link.
    pub(crate) link: FrameCost,
    /// The leaf for frames that are nobody's.
    rest: u32,
    /// Whether nodes may be limited while traffic flows.
    takes_limits: bool,
    /// By node of the plan: a parent comes before its children, the link first.
    rows: Vec<Row<'p>>,
}

/// A node of the plan.
struct Row<'p> {
    number: u32,
    /// The place of its parent among the rows; its own for the link.
    parent: usize,
    node: &'p Node,
    own: Own<'p>,
    words: &'p LeafWords,
    /// Who allocates below it; `None`: queues.
    law: Option<Law>,
    /// The branch that it is in, if that is enforced as a whole.
    branch: Option<Branch>,
}

/// Which leaves are a node's own.
enum Own<'p> {
    /// None: it has children.
    None,
    /// Itself.
    Itself,
    /// Those that it makes, and the leaf of those who find none.
    Made { leaves: Range<u32>, each: &'p EachPlan, others: u32 },
}

/// A branch all of whose leaves are enforced: they share one queue.
#[derive(Clone, Copy)]
struct Branch {
    /// Where it begins, as a row.
    top: usize,
    /// Which row's number the queue has: that of the top, or of the leaf for what is nobody's
    /// where the top is the link, which can have no queue.
    queue: usize,
}

/// Who allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    Weir,
    Hsdba,
}

impl<'p> Table<'p> {
    pub(crate) fn of(plan: &'p Plan, layout: &Layout) -> Table<'p> {
        let rows = plan.nodes.iter().zip(0 as NodeId..).map(|(node, id)| Row {
            number: layout.slots[id as usize],
            parent: node.parent as usize,
            node,
            own: own(node, id, layout),
            words: plan.words_of(id),
            law: match node.enforce {
                Enforce::Auto | Enforce::Queue => None,
                Enforce::Weir => Some(Law::Weir),
                Enforce::Hsdba => Some(Law::Hsdba),
            },
            branch: None,
        });
        let rest = layout.slots[plan.rest as usize];
        let mut table =
            Table { plan, link: link(plan), rest, takes_limits: false, rows: rows.collect() };
        table.find_branches();
        table
    }

    /// The same for an engine whose nodes may be limited.
    pub(crate) fn taking_limits(self, takes_limits: bool) -> Table<'p> {
        Table { takes_limits, ..self }
    }

    /// Which nodes are enforced as a whole: themselves if they are leaves, and all below.
    fn find_branches(&mut self) {
        let mut is_whole = vec![true; self.rows.len()];
        for (at, row) in self.rows.iter().enumerate().rev() {
            is_whole[at] &= matches!(row.own, Own::None) || row.law.is_some();
            is_whole[row.parent] &= is_whole[at];
        }
        for (at, is_whole) in is_whole.into_iter().enumerate() {
            let above = if at == 0 { None } else { self.rows[self.rows[at].parent].branch };
            let queue = if at == 0 { self.plan.rest as usize } else { at };
            let begins = Branch { top: at, queue };
            self.rows[at].branch = is_whole.then_some(above.unwrap_or(begins));
        }
    }

    /// What the link carries, as it is configured.
    fn rate(&self, way: Way) -> Rate {
        self.rows[0].shares(way).rate
    }

    /// What a node or a leaf that it makes may have at most on the link.
    fn most(&self, shares: Shares, way: Way) -> Rate {
        shares.ceil.min(self.rate(way))
    }

    /// The number of the queue of a branch.
    fn queue_of(&self, branch: Branch) -> u32 {
        self.rows[branch.queue].number
    }
}

impl Row<'_> {
    fn shares(&self, way: Way) -> Shares {
        self.node.shares[way]
    }

    /// What each of its own leaves may have.
    fn of_a_leaf(&self, way: Way) -> Shares {
        match &self.own {
            Own::Made { each, .. } => each.shares[way],
            Own::None | Own::Itself => self.shares(way),
        }
    }

    /// The leaves that are its own.
    fn leaves(&self) -> Range<u32> {
        match &self.own {
            Own::None => 0..0,
            Own::Itself => self.number..self.number + 1,
            Own::Made { leaves, .. } => leaves.clone(),
        }
    }
}

fn own<'p>(node: &'p Node, id: NodeId, layout: &Layout) -> Own<'p> {
    match (&node.kind, layout.each.get(&id)) {
        (NodeKind::Interior, _) => Own::None,
        (NodeKind::Each(each), Some(&(first, count))) => Own::Made {
            leaves: first..first + count,
            each,
            others: layout.slots[each.others as usize],
        },
        (NodeKind::Leaf | NodeKind::Each(_), _) => Own::Itself,
    }
}

/// What a frame costs on the link.
pub(crate) fn link(plan: &Plan) -> FrameCost {
    FrameCost { layer: plan.counts, overhead: plan.overhead }
}

/// What the stages are told of one policy.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    /// What frames are classified by.
    pub(crate) rules: weir_classify::Spec,
    /// The trees of shape.
    pub(crate) trees: ByWay<weir_shape::tree::Spec>,
    /// What is done to TCP.
    pub(crate) steadied: weir_condition::Spec,
    /// Who is enforced without queues.
    pub(crate) enforced: ByWay<Spec>,
    /// What is policed and marked.
    pub(crate) policed: weir_condition::police::Spec,
}

impl Lowered {
    /// What stages are told that were told `before`: what is listed once keeps its place.
    pub(crate) fn after(before: &Lowered, table: &Table<'_>) -> Lowered {
        Lowered {
            rules: rules::spec(table),
            trees: ByWay::WAYS.map(|way| tree::spec(table, way, &before.trees[way])),
            steadied: tcp::spec(table),
            enforced: ByWay::WAYS.map(|way| allocators::spec(table, way)),
            policed: police::spec(table, &before.policed),
        }
    }
}
