//! From the words `match`, `each` and `subscribers` to what classify is told.

use weir_classify as classify;
use weir_packet::{Net, Side};
use weir_policy::plan::{NodeId, Target};
use weir_policy::{Addresses, Known, Plan, Toward, When};

use super::{Own, Table};

/// What classify is told.
pub(super) fn spec(table: &Table<'_>) -> classify::Spec {
    let plan = table.plan;
    let mut spec = classify::Spec {
        default_leaf: table.rest,
        routers: plan.routers.clone(),
        ..classify::Spec::default()
    };
    for (asked, class) in plan.asked.iter().zip(0u32..) {
        let target = match asked.target {
            Target::Leaf(leaf) => classify::Target::Leaf(number(table, leaf)),
            Target::Each(node) => each(table, node),
            Target::Subscriber => classify::Target::Subscriber { otherwise: table.rest },
        };
        spec.classes.push(classify::Class { parent: asked.within, target });
        let is_table = asked.target == Target::Subscriber;
        spec.rules.extend(asked.rules.iter().map(|rule| {
            let when = match names_nobody(&rule.when) {
                // it stays a rule, so that its class stays a condition for all below it
                true => classify::When { vlan: Some((1, 0)), ..classify::When::default() },
                false => classify::When { subscriber: is_table, ..when(&rule.when) },
            };
            classify::Rule { class, when }
        }));
    }
    let subscribers = plan.subscribers.iter();
    spec.subscribers = subscribers.map(|&(block, leaf)| (block, number(table, leaf))).collect();
    let macs = plan.subscriber_macs.iter();
    spec.subscriber_macs = macs.map(|&(mac, leaf)| (mac, number(table, leaf))).collect();
    spec
}

/// Which rule of which asked class each rule is that classify is told.
pub(crate) fn numbers(plan: &Plan) -> Vec<(u32, u32)> {
    let mut numbers = Vec::new();
    for (asked, class) in plan.asked.iter().zip(0u32..) {
        numbers.extend(asked.rules.iter().zip(0u32..).map(|(_, at)| (class, at)));
    }
    numbers
}

fn number(table: &Table<'_>, node: NodeId) -> u32 {
    table.rows[node as usize].number
}

fn each(table: &Table<'_>, node: NodeId) -> classify::Target {
    let Own::Made { leaves, each, others } = &table.rows[node as usize].own else {
        // a plan never says so
        return classify::Target::Leaf(table.rest);
    };
    classify::Target::Each(classify::Each {
        by: each.by,
        first_leaf: leaves.start,
        count: leaves.end - leaves.start,
        idle: each.age,
        overflow_leaf: *others,
        known: each.known.as_ref().map(|known| known.iter().map(owner).collect()),
    })
}

fn owner(known: &Known) -> classify::Owner {
    match *known {
        Known::Block(block) => classify::Owner::Block(block),
        Known::Mac(mac) => classify::Owner::Mac(mac),
        Known::Vlan(vlan) => classify::Owner::Vlan(vlan),
    }
}

/// A group without addresses: nothing matches it, while to classify no address means any.
fn names_nobody(when: &When) -> bool {
    [&when.lan, &when.wan, &when.host].into_iter().flatten().any(|set| set.blocks().is_empty())
}

fn when(said: &When) -> classify::When {
    let blocks = |set: &Option<std::sync::Arc<Addresses>>| {
        set.as_ref().map_or_else(Vec::new, |s| s.blocks().to_vec())
    };
    classify::When {
        lan: blocks(&said.lan),
        wan: blocks(&said.wan),
        host: blocks(&said.host),
        lan_port: said.lan_port,
        wan_port: said.wan_port,
        port: said.port,
        protocol: said.protocol,
        dscp: said.dscp,
        vlan: said.vlan,
        untagged: said.untagged,
        lan_mac: said.lan_mac,
        wan_mac: said.wan_mac,
        mac: said.mac,
        length: said.length,
        side: said.toward.map(|toward| match toward {
            // what travels towards the LAN came in from the WAN
            Toward::Lan => Side::Wan,
            Toward::Wan => Side::Lan,
        }),
        ethertype: said.ethertype,
        net: None::<Net>,
        subscriber: false,
        raw: said.raw.iter().copied().collect(),
    }
}
