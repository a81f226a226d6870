//! Which node of the old plan is which of the new one: by `was`, below a renamed class by the rest
//! of the path, else by the path. What was written wins over what follows from it.

use std::collections::BTreeMap;

use crate::plan::{NodeId, Plan};

/// The nodes of two plans side by side.
pub(super) struct Pairs {
    /// The new node of each old one.
    pub(super) to: Vec<Option<NodeId>>,
    /// The old node of each new one.
    from: Vec<Option<NodeId>>,
}

impl Pairs {
    pub(super) fn new(old: &Plan, new: &Plan) -> Pairs {
        let (before, after) = (paths(old), paths(new));
        let mut pairs =
            Pairs { to: vec![None; old.nodes.len()], from: vec![None; new.nodes.len()] };
        let mut renamed: BTreeMap<&str, &str> = BTreeMap::new();
        for (node, id) in new.nodes.iter().zip(0..) {
            if let Some(was) = node.was.as_deref()
                && let Some(&from) = before.get(was)
            {
                renamed.insert(was, &node.path);
                pairs.join(from, id);
            }
        }
        let mut stayed = Vec::new();
        for (node, id) in old.nodes.iter().zip(0..) {
            match moved(&renamed, &node.path) {
                Some(to) => {
                    if let Some(&to) = after.get(to.as_str()) {
                        pairs.join(id, to);
                    }
                }
                None => stayed.push((&*node.path, id)),
            }
        }
        for (path, id) in stayed {
            if let Some(&to) = after.get(path) {
                pairs.join(id, to);
            }
        }
        pairs
    }

    /// Makes two nodes one, unless either of them has another already.
    fn join(&mut self, old: NodeId, new: NodeId) {
        let (to, from) = (&mut self.to[old as usize], &mut self.from[new as usize]);
        if to.is_none() && from.is_none() {
            *to = Some(new);
            *from = Some(old);
        }
    }

    /// What the new node was before.
    pub(super) fn old(&self, new: NodeId) -> Option<NodeId> {
        self.from[new as usize]
    }

    /// What the old node is now.
    pub(super) fn new_of(&self, old: NodeId) -> Option<NodeId> {
        self.to[old as usize]
    }
}

fn paths(plan: &Plan) -> BTreeMap<&str, NodeId> {
    plan.nodes.iter().zip(0..).map(|(node, id)| (&*node.path, id)).collect()
}

/// The path that something below a renamed class has now.
fn moved(renamed: &BTreeMap<&str, &str>, path: &str) -> Option<String> {
    let mut above = path;
    loop {
        if let Some(to) = renamed.get(above) {
            return Some(format!("{to}{}", &path[above.len()..]));
        }
        above = &above[..above.rfind('/').filter(|&n| n > 0)?];
    }
}
