//! What a new policy changes in a running engine, made ready off the packet thread: tables that are
//! swapped in, memory for new leaves, and the list of leaves that are gone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use weir_classify::Index;
use weir_condition::police;
use weir_policy::Plan;
use weir_policy::plan::{NodeId, NodeKind};
use weir_shape::tree::Edit;
use weir_units::ByWay;

use crate::enforce;
use crate::ledger::Chunk;
use crate::limits;
use crate::margin::Margin;
use crate::names::Names;

/// A policy made ready for [`Engine::apply`](crate::Engine::apply).
#[derive(Debug)]
pub struct Change {
    pub(crate) index: Option<Index>,
    /// The rules are not those of before: a connection may be another leaf's.
    pub(crate) has_new_rules: bool,
    pub(crate) old: Option<Index>,
    /// What makes the new trees of the old.
    pub(crate) trees: ByWay<Edit>,
    /// What is done to TCP.
    pub(crate) condition: weir_condition::Edit,
    /// Who has no queues of its own.
    pub(crate) enforced: ByWay<enforce::Edit>,
    /// What is done to the frames of leaves that change.
    pub(crate) treatments: police::Edit,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) limits: Vec<limits::Chunk>,
    /// Numbers that are given now.
    pub(crate) fresh: Vec<Range<u32>>,
    /// Who finds the link's rate, by way, where the policy leaves that to weir.
    pub(crate) margins: ByWay<Option<Margin>>,
    /// Whether it only observes.
    pub(crate) observes: bool,
    /// Leaves that the new policy does not have; sorted.
    pub(crate) gone: Vec<Range<u32>>,
    /// How many of `gone` have been closed, and up to where the next.
    pub(crate) closed: (usize, u32),
    /// Where their frames go.
    pub(crate) rest: u32,
    /// Leaves that have children now, and the leaf that takes their frames and books; sorted.
    pub(crate) parted: Vec<(u32, u32)>,
    pub(crate) layout: Arc<Layout>,
}

impl Change {
    /// Which node of the plan is which leaf of the engine.
    #[must_use]
    pub fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    /// Keeps what was replaced, so that it is freed wherever the change is.
    pub(crate) fn keep_old(&mut self, index: Index) {
        self.old = Some(index);
    }

    /// The leaf that takes over from one that has children now.
    pub(crate) fn successor(&self, leaf: u32) -> Option<u32> {
        let at = self.parted.binary_search_by_key(&leaf, |(from, _)| *from).ok()?;
        Some(self.parted[at].1)
    }
}

/// Which node of a plan has which number in the engine. A class keeps its number from policy to
/// policy as long as it keeps its path (or says what it `was`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The number of each node of the plan.
    pub(crate) slots: Vec<u32>,
    /// First leaf and count of the nodes that make leaves.
    pub(crate) each: BTreeMap<NodeId, (u32, u32)>,
    /// The number of each asked class.
    pub(crate) asked: Vec<u32>,
    /// The rule numbers of classify: which class among those asked, and which of its rules.
    pub(crate) rules: Vec<(u32, u32)>,
    pub(crate) below: Below,
    /// What its classes are called in every engine.
    pub(crate) names: Names,
}

/// The leaves below each node: they stand in one list, those of a node without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Below {
    leaves: Vec<Range<u32>>,
    /// By the number of a node that is no leaf, sorted: its part of the list.
    parts: Vec<(u32, Range<u32>)>,
}

impl Below {
    pub(crate) fn of(plan: &Plan, layout: &Layout) -> Below {
        let own = |id: usize| {
            let slot = layout.slots[id];
            let made = NodeId::try_from(id).ok().and_then(|id| layout.each.get(&id));
            let is_leaf = plan.nodes[id].kind != NodeKind::Interior;
            let itself = is_leaf.then_some(slot..slot + 1);
            itself.into_iter().chain(made.map(|&(first, count)| first..first + count))
        };
        // a parent comes before its children
        let mut counts: Vec<u32> = (0..plan.nodes.len()).map(|id| count(own(id))).collect();
        for id in (1..plan.nodes.len()).rev() {
            counts[plan.nodes[id].parent as usize] += counts[id];
        }
        let mut leaves = vec![0..0; counts.first().map_or(0, |all| *all as usize)];
        let mut next = vec![0; counts.len()];
        let mut parts = Vec::new();
        for id in 0..plan.nodes.len() {
            let parent = plan.nodes[id].parent as usize;
            let start = if id == 0 { 0 } else { next[parent] };
            next[parent] += counts[id];
            next[id] = start + count(own(id));
            for (at, range) in (start as usize..).zip(own(id)) {
                leaves[at] = range;
            }
            if plan.nodes[id].kind != NodeKind::Leaf {
                parts.push((layout.slots[id], start..start + counts[id]));
            }
        }
        parts.sort_unstable_by_key(|(number, _)| *number);
        Below { leaves, parts }
    }

    /// The leaves below a node that is none.
    pub(crate) fn part(&self, number: u32) -> Option<&[Range<u32>]> {
        let at = self.parts.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let part = &self.parts[at].1;
        self.leaves.get(part.start as usize..part.end as usize)
    }
}

fn count(ranges: impl Iterator<Item = Range<u32>>) -> u32 {
    u32::try_from(ranges.count()).unwrap_or(u32::MAX)
}

impl Layout {
    /// The number of a node in the engine.
    #[must_use]
    pub fn slot(&self, node: NodeId) -> Option<u32> {
        self.slots.get(node as usize).copied()
    }

    /// The leaves that a node may make: first and count.
    #[must_use]
    pub fn each(&self, node: NodeId) -> Option<(u32, u32)> {
        self.each.get(&node).copied()
    }

    /// The asked class and its rule by the number classify gives.
    #[must_use]
    pub fn rule(&self, number: usize) -> Option<(u32, u32)> {
        self.rules.get(number).copied()
    }
}

impl Layout {
    /// The node that a number stands for: itself, or the class that makes leaves with it.
    #[must_use]
    pub(crate) fn node_of(&self, slot: u32) -> Option<NodeId> {
        self.by_slot().find(slot).map(|(node, _)| node)
    }

    /// The nodes sorted by number, for many look-ups.
    pub(crate) fn by_slot(&self) -> BySlot {
        let own = self.slots.iter().zip(0..).map(|(&slot, node)| (slot, 1, node, false));
        let made = self.each.iter().map(|(&node, &(first, count))| (first, count, node, true));
        let mut ranges: Vec<(u32, u32, NodeId, bool)> = own.chain(made).collect();
        ranges.sort_unstable();
        BySlot(ranges)
    }
}

/// Ranges of numbers with their nodes: first, count, node, whether leaves are made with them.
pub(crate) struct BySlot(Vec<(u32, u32, NodeId, bool)>);

impl BySlot {
    pub(crate) fn find(&self, slot: u32) -> Option<(NodeId, bool)> {
        let after = self.0.partition_point(|(first, ..)| *first <= slot);
        let (first, count, node, made) = *self.0.get(after.checked_sub(1)?)?;
        (slot - first < count).then_some((node, made))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Engine, Planner};
    use weir_packet::Pool;
    use weir_policy::{Source, read};
    use weir_units::Instant;

    #[test]
    fn what_was_replaced_is_left_to_whoever_made_the_change() {
        let plan = |up: &str| {
            let text = format!(
                "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"{up}\"\n\
                 [class.\"/a\"]\nmatch = \"tcp\"\n"
            );
            read(Source::new("p", text), &mut |_| Err(String::new())).unwrap().plans.remove(0)
        };
        let config = Config { flows: 64, ..Config::default() };
        let mut planner = Planner::of(&config);
        let first = planner.prepare(&plan("10mbit")).unwrap();
        let mut engine = Engine::new(config, Pool::new(64, 2_048), first, Instant::ZERO);
        let mut change = planner.prepare(&plan("20mbit")).unwrap();
        assert!(change.index.is_some() && change.old.is_none());
        while !engine.apply(Instant::ZERO, &mut change) {}
        assert!(change.index.is_none() && change.old.is_some());
    }
}
