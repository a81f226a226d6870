//! The books by class: what each leaf counted, added up along the tree. Made off the packet thread
//! from snapshots.

use std::collections::BTreeMap;

use weir_classify::Owner;
use weir_packet::Side;
use weir_policy::Plan;
use weir_policy::plan::NodeId;
use weir_units::ByWay;

use crate::Engine;
use crate::change::Layout;
use crate::engine::{LeafBooks, Snapshot};
use crate::ledger::Counters;

/// The books of one link.
#[derive(Clone, Debug)]
pub struct Report {
    /// The link and its classes in the plan's order, each made leaf behind its class.
    pub rows: Vec<Row>,
    /// What leaves had counted that are gone; part of the link's row.
    pub gone: ByWay<Counters>,
    /// Who asks for a leaf of its own and is not approved.
    pub askers: Vec<Asker>,
    /// MACs with many addresses that the policy does not name routers: all behind one of them share
    /// one host's part.
    pub crowds: Vec<[u8; 6]>,
}

/// Somebody who asks for a leaf of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The path of the class.
    pub class: String,
    /// Who it is, as `known` would name it.
    pub who: String,
}

/// One node.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its path.
    pub path: String,
    /// Levels below the link.
    pub depth: u8,
    /// Whether frames wait here (and not only below).
    pub is_leaf: bool,
    /// What it counted.
    pub counters: ByWay<Counters>,
}

impl Row {
    /// The counters of frames that came in on the port of `side`.
    #[must_use]
    pub fn from(&self, side: Side) -> &Counters {
        &self.counters[side.way()]
    }

    /// Whether anything ever came.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.counters == ByWay::<Counters>::default()
    }
}

/// All slices of an engine's books together, taken one after the other while traffic flows.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// The leaves that ever counted a frame.
    pub leaves: Vec<LeafBooks>,
    /// The link as a whole.
    pub total: ByWay<Counters>,
    /// What leaves had counted that are gone.
    pub gone: ByWay<Counters>,
    /// Those who ask for a leaf, by the asked class.
    pub askers: Vec<(u32, Owner)>,
    /// MACs with many addresses that the policy does not name routers.
    pub crowds: Vec<[u8; 6]>,
}

impl Books {
    /// All slices at once, for who holds the engine.
    #[must_use]
    pub fn of(engine: &Engine) -> Books {
        let mut books = Books::default();
        let mut snapshot = Snapshot::default();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = engine.snapshot(from, &mut snapshot);
            books.add(&snapshot);
        }
        books
    }

    /// Adds the next slice.
    pub fn add(&mut self, slice: &Snapshot) {
        self.leaves.extend_from_slice(&slice.leaves);
        self.total = slice.total;
        self.gone = slice.gone;
        self.askers.clone_from(&slice.askers);
        self.crowds.clone_from(&slice.crowds);
    }
}

impl Report {
    /// Adds up all counters of an engine; `plan` must be the one that was applied last.
    #[must_use]
    pub fn of(engine: &Engine, plan: &Plan) -> Report {
        Report::from_books(&Books::of(engine), plan, engine.layout())
    }

    /// Adds up books that were taken from an engine in which `plan` and its `layout` were applied
    /// last.
    #[must_use]
    pub fn from_books(books: &Books, plan: &Plan, layout: &Layout) -> Report {
        let mut sums = vec![ByWay::<Counters>::default(); plan.nodes.len()];
        let mut made: BTreeMap<NodeId, Vec<Row>> = BTreeMap::new();
        let nodes = layout.by_slot();
        for LeafBooks { leaf, owner, counters } in &books.leaves {
            let Some((node, is_made)) = nodes.find(*leaf) else { continue };
            join(&mut sums[node as usize], counters);
            if is_made {
                let path = &plan.node(node).path;
                let path = match owner {
                    Some(owner) => format!("{path}/{owner}"),
                    None => format!("{path}/(silent since)"),
                };
                let depth = plan.node(node).depth + 1;
                let row = Row { path, depth, is_leaf: true, counters: *counters };
                made.entry(node).or_default().push(row);
            }
        }
        // children come behind their parents, so that going backwards adds up the tree
        for id in (1..plan.nodes.len()).rev() {
            let below = sums[id];
            join(&mut sums[plan.nodes[id].parent as usize], &below);
        }
        join(&mut sums[0], &books.gone);
        let mut rows = Vec::with_capacity(plan.nodes.len());
        for ((node, counters), id) in plan.nodes.iter().zip(sums).zip(0..) {
            let is_leaf = node.kind == weir_policy::plan::NodeKind::Leaf;
            rows.push(Row { path: node.path.to_string(), depth: node.depth, is_leaf, counters });
            if let Some(mut made) = made.remove(&id) {
                made.sort_by(|a, b| a.path.cmp(&b.path));
                rows.append(&mut made);
            }
        }
        let asker = |(class, who): (u32, Owner)| {
            let class = plan.node(plan.asked.get(class as usize)?.node).path.to_string();
            let who = match who {
                Owner::Vlan(vlan) => vlan.to_string(),
                other => other.to_string(),
            };
            Some(Asker { class, who })
        };
        let askers = books.askers.iter().copied().filter_map(asker).collect();
        Report { rows, gone: books.gone, askers, crowds: books.crowds.clone() }
    }
}

fn join(into: &mut ByWay<Counters>, other: &ByWay<Counters>) {
    into.down.join(&other.down);
    into.up.join(&other.up);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_those_of_the_last_slice() {
        let mut books = Books::default();
        let mut slice = Snapshot::default();
        for frames in 1..=2 {
            slice.total.down.received.add(100);
            slice.gone.up.sent.add(60);
            books.add(&slice);
            assert_eq!((books.total, books.gone), (slice.total, slice.gone));
            assert_eq!(books.total.down.received.frames, frames);
        }
    }
}
