//! How large a plan may be.

use std::collections::BTreeSet;

use weir_units::limits;

use crate::plan::{NodeKind, Plan};
use crate::problem::{Position, Problems};

/// Whether a plan is larger than the engine takes.
pub(crate) fn check_size(plan: &Plan, place: Position, problems: &mut Problems) {
    let each = plan.nodes.iter().map(|n| match &n.kind {
        NodeKind::Each(each) => each.count as usize,
        _ => 0,
    });
    let nodes = plan.nodes.len() + each.sum::<usize>();
    let rules: usize = plan.asked.iter().map(|a| a.rules.len()).sum();
    let raw = plan.asked.iter().flat_map(|a| &a.rules).filter(|r| r.when.raw.is_some());
    // a line that is several rules has one
    let raw = raw.map(|rule| rule.place).collect::<BTreeSet<_>>().len();
    let sets =
        plan.asked.iter().flat_map(|a| &a.rules).flat_map(|rule| {
            [&rule.when.lan, &rule.when.wan, &rule.when.host].into_iter().flatten()
        });
    let blocks: usize = sets.map(|set| set.blocks().len()).sum();
    let has_macs = !plan.subscriber_macs.is_empty();
    let most_raw = if has_macs { limits::RAW_BESIDE_MACS } else { limits::RAW_MATCHES };
    for (what, is, most) in [
        ("classes, subscribers and leaves created at run time", nodes, limits::CLASSES),
        ("match lines", rules, limits::RULES),
        ("address blocks in its rules", blocks, limits::PREFIXES),
        ("raw byte matches", raw, most_raw),
        ("MAC addresses of subscribers", plan.subscriber_macs.len(), limits::SUBSCRIBER_MACS),
    ] {
        if is > most {
            let what =
                format!("link \"{}\" has {is} {what}, and at most {most} are possible", plan.name);
            problems.error(place, what, "merge some, or split the link over several boxes");
        }
    }
}
