//! Words that a policy may say and that this version reads and checks but does not do yet. Whoever
//! uses one is told, wherever the policy is looked at.

use weir_policy::{Enforce, Plan};

/// A sentence about those that a plan uses; `None` when it uses none.
pub(crate) fn of(plan: &Plan) -> Option<String> {
    let mut used: Vec<&str> = Vec::new();
    let is_done = |enforce| matches!(enforce, Enforce::Auto | Enforce::Queue);
    if plan.nodes.iter().any(|node| !is_done(node.enforce)) {
        used.push("enforce");
    }
    used.sort_unstable();
    used.dedup();
    (!used.is_empty())
        .then(|| format!("read and checked, but not done yet in this version: {}", used.join(", ")))
}
