//! The books by class: what each leaf counted, added up along the tree. Made off the packet thread
//! from snapshots.

use std::collections::BTreeMap;

use weir_classify::Owner;
use weir_packet::Side;
use weir_policy::Plan;
use weir_policy::plan::NodeId;

use crate::Engine;
use crate::engine::Snapshot;
use crate::ledger::Counters;

/// The books of one link.
#[derive(Clone, Debug)]
pub struct Report {
    /// The link and its classes in the plan's order, each made leaf behind its class.
    pub rows: Vec<Row>,
    /// What leaves had counted that are gone; part of the link's row.
    pub gone: [Counters; 2],
    /// Who asks for a leaf of its own and is not approved.
    pub askers: Vec<Asker>,
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
    /// Frames on their way up (from the LAN) and down (from the WAN).
    pub counters: [Counters; 2],
}

impl Row {
    /// The counters of frames that came in on the port of `side`.
    #[must_use]
    pub fn from(&self, side: Side) -> &Counters {
        &self.counters[side as usize]
    }

    /// Whether anything ever came.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.counters == <[Counters; 2]>::default()
    }
}

impl Report {
    /// Adds up all counters of an engine; `plan` must be the one that was applied last.
    #[must_use]
    pub fn of(engine: &Engine, plan: &Plan) -> Report {
        let layout = engine.layout();
        let mut sums = vec![<[Counters; 2]>::default(); plan.nodes.len()];
        let mut made: BTreeMap<NodeId, Vec<Row>> = BTreeMap::new();
        let nodes = layout.by_slot();
        let mut snapshot = Snapshot::default();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = engine.snapshot(from, &mut snapshot);
            for (leaf, counters) in &snapshot.leaves {
                let Some((node, is_made)) = nodes.find(*leaf) else { continue };
                join(&mut sums[node as usize], counters);
                if is_made {
                    let path = &plan.node(node).path;
                    let path = match engine.classifier().owner(*leaf) {
                        Some(owner) => format!("{path}/{owner}"),
                        None => format!("{path}/(silent since)"),
                    };
                    let depth = plan.node(node).depth + 1;
                    let row = Row { path, depth, is_leaf: true, counters: *counters };
                    made.entry(node).or_default().push(row);
                }
            }
        }
        // children come behind their parents, so that going backwards adds up the tree
        for id in (1..plan.nodes.len()).rev() {
            let below = sums[id];
            join(&mut sums[plan.nodes[id].parent as usize], &below);
        }
        join(&mut sums[0], &snapshot.gone);
        let mut rows = Vec::with_capacity(plan.nodes.len());
        for ((node, counters), id) in plan.nodes.iter().zip(sums).zip(0..) {
            let is_leaf = node.kind == weir_policy::plan::Kind::Leaf;
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
        let askers = engine.classifier().askers().filter_map(asker).collect();
        Report { rows, gone: snapshot.gone, askers }
    }
}

fn join(into: &mut [Counters; 2], other: &[Counters; 2]) {
    into[0].join(&other[0]);
    into[1].join(&other[1]);
}
