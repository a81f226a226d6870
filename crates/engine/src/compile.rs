//! From a plan to what each stage is told: stages know nothing of policies.

use weir_classify as classify;
use weir_packet::{Net, Side};
use weir_policy::plan::NodeId;
use weir_policy::plan::{Kind, Target};
use weir_policy::{By, Counts, From, Known, LeafWords, Limit, Plan, Queue, Raw, Toward, When};
use weir_shape::tree::{self, NodeSpec};
use weir_shape::{Layer, Link};
use weir_units::{ByWay, Bytes, Rate, Span, Way};

use crate::allocate;
use crate::cares::Cares;
use crate::change::Layout;

/// Frames that may wait in a leaf that does not say how many.
const LEAF_FRAMES: u32 = 1_000;

/// How long frames may wait where an allocator is before the queue; twice what it lets wait before
/// it lets only single frames pass, and as long as the bursts that it lets save.
const BEHIND: Span = Span::from_ms(20);
/// The sixteen packets that a leaf may send at once, in any case.
const BEHIND_LEAST: Bytes = Bytes::new(16 * 1_538);

/// What shape is told: a tree for each way. `told` is what they have been told so far.
pub(crate) fn trees(plan: &Plan, layout: &Layout, told: &ByWay<tree::Spec>) -> ByWay<tree::Spec> {
    ByWay::WAYS.map(|way| tree_of(plan, layout, Cares::after(&told[way].cares), way))
}

fn tree_of(plan: &Plan, layout: &Layout, mut cares: Cares, way: Way) -> tree::Spec {
    let mut nodes = Vec::with_capacity(plan.nodes.len());
    let line = plan.nodes[0].shares[way].rate;
    let tops = allocate::tops(plan);
    for (node, id) in plan.nodes.iter().zip(0u32..).skip(1) {
        if let Some(top) = tops[id as usize] {
            if allocate::queue_of(plan, top) == id {
                nodes.push(queue_of_branch(plan, layout, top, &mut cares, way));
            }
            continue;
        }
        let shares = node.shares[way];
        let words = plan.words_of(id);
        let told = NodeSpec {
            number: layout.slots[id as usize],
            parent: layout.slots[node.parent as usize],
            is_leaf: node.kind == Kind::Leaf,
            rate: shares.rate,
            ceil: shares.ceil,
            weight: shares.weight,
            priority: node.priority as u8,
            burst: shares.burst,
            care: cares.of(node.words, words, shares.ceil.min(line), way),
            ..limits(words.limit, shares.ceil)
        };
        nodes.push(told);
        let (Kind::Each(each), Some(&(first, count))) = (&node.kind, layout.each.get(&id)) else {
            continue;
        };
        let shares = each.shares[way];
        let care = cares.of(node.words, words, shares.ceil.min(line), way);
        let made = (first..first + count).map(|number| NodeSpec {
            number,
            parent: told.number,
            is_leaf: true,
            rate: shares.rate,
            ceil: shares.ceil,
            weight: shares.weight,
            care,
            ..told
        });
        nodes.extend(made);
    }
    tree::Spec { rate: line, link: link(plan), nodes, cares: cares.into_list() }
}

/// The one queue of a branch whose leaves have none.
fn queue_of_branch(
    plan: &Plan,
    layout: &Layout,
    top: NodeId,
    cares: &mut Cares,
    way: Way,
) -> NodeSpec {
    let (node, words) = (plan.node(top), plan.words_of(top));
    let shares = node.shares[way];
    let ceil = shares.ceil.min(plan.nodes[0].shares[way].rate);
    let plain = LeafWords { queue: Some(Queue::Fifo), ..LeafWords::default() };
    let usual = Limit::Bytes(ceil.bytes_in(BEHIND).max(BEHIND_LEAST));
    let limit = words.limit.unwrap_or(usual);
    NodeSpec {
        number: layout.slots[allocate::queue_of(plan, top) as usize],
        parent: layout.slots[node.parent as usize],
        is_leaf: true,
        rate: shares.rate,
        ceil: shares.ceil,
        weight: shares.weight.max(1),
        priority: node.priority as u8,
        burst: shares.burst,
        care: cares.of(u32::MAX, &plain, ceil, way),
        ..limits(Some(limit), ceil)
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

/// What a frame costs on the link.
pub(crate) fn link(plan: &Plan) -> Link {
    let layer = match plan.counts {
        Counts::Ip => Layer::Ip,
        Counts::Ethernet => Layer::Ethernet,
        Counts::Wire => Layer::Wire,
        Counts::Atm => Layer::Atm,
        Counts::Docsis => Layer::Docsis,
        Counts::Ptm => Layer::Ptm,
    };
    Link { layer, overhead: plan.overhead }
}

/// What classify is told, and which of its rules is which rule of which asked class.
pub(crate) fn spec(plan: &Plan, layout: &Layout) -> (classify::Spec, Vec<(u32, u32)>) {
    let slot = |node: u32| layout.slots[node as usize];
    let (default_leaf, routers) = (slot(plan.rest), plan.routers.clone());
    let mut spec = classify::Spec { default_leaf, routers, ..classify::Spec::default() };
    let mut numbers = Vec::new();
    for (asked, number) in plan.asked.iter().zip(0u32..) {
        let target = match asked.target {
            Target::Leaf(leaf) => classify::Target::Leaf(slot(leaf)),
            Target::Each(node) => each(plan, layout, node),
            Target::Subscriber => classify::Target::Subscriber { otherwise: slot(plan.rest) },
        };
        spec.classes.push(classify::Class { parent: asked.within, target });
        let is_table = asked.target == Target::Subscriber;
        for (rule, at) in asked.rules.iter().zip(0u32..) {
            let when = match names_nobody(&rule.when) {
                // it stays a rule, so that its class stays a condition for all below it
                true => classify::When { vlan: Some((1, 0)), ..classify::When::default() },
                false => classify::When { subscriber: is_table, ..when(&rule.when) },
            };
            spec.rules.push(classify::Rule { class: number, when });
            numbers.push((number, at));
        }
    }
    spec.subscribers = plan.subscribers.iter().map(|&(block, leaf)| (block, slot(leaf))).collect();
    (spec, numbers)
}

fn each(plan: &Plan, layout: &Layout, node: u32) -> classify::Target {
    let (Kind::Each(each), Some(&(first_leaf, count))) =
        (&plan.node(node).kind, layout.each.get(&node))
    else {
        // a plan never says so
        return classify::Target::Leaf(layout.slots[plan.rest as usize]);
    };
    let by = match each.by {
        By::LanHost => classify::By::LanHost,
        By::WanHost => classify::By::WanHost,
        By::LanPrefix { v4, v6 } => classify::By::LanPrefix { v4, v6 },
        By::WanPrefix { v4, v6 } => classify::By::WanPrefix { v4, v6 },
        By::LanMac => classify::By::LanMac,
        By::Vlan => classify::By::Vlan,
    };
    classify::Target::Each(classify::Each {
        by,
        first_leaf,
        count,
        idle: each.age,
        overflow_leaf: layout.slots[each.others as usize],
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
    let blocks = |set: &Option<std::sync::Arc<weir_policy::Addresses>>| {
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
        raw: said.raw.iter().map(raw).collect(),
    }
}

fn raw(said: &Raw) -> classify::Raw {
    let from = match said.from {
        From::Frame => classify::From::Frame,
        From::Ip => classify::From::Net,
        From::Transport => classify::From::Transport,
        From::Payload => classify::From::Payload,
    };
    classify::Raw { from, at: said.at, length: said.length, value: said.value, mask: said.mask }
}
