//! What a running link tells, as JSON: rates in bits per second, times in the unit that the word
//! ends with.

use serde_json::{Map, Value, json};
use weir_engine::{Asker, Books, Count, Counters, Report, RoundTrip, RoundTrips};
use weir_io::{PortCounters, PortState};
use weir_packet::{Reason, Side};
use weir_policy::plan::{Kind, NodeId, Shares};
use weir_policy::{Both, Plan};
use weir_units::{Instant, Rate, limits};

use super::change::Changes;
use super::history::History;
use super::link::{Link, Ports};
use super::revision::{About, Revision};

pub(crate) fn mode(is_observing: bool) -> &'static str {
    if is_observing { "observe" } else { "shape" }
}

/// A revision without its differences and files.
pub(crate) fn revision(revision: &Revision) -> Value {
    let about = &revision.about;
    json!({
        "number": about.number,
        "time": about.time,
        "author": about.author,
        "how": about.how.word(),
        "comment": about.comment,
    })
}

/// How long what is in effect waits, and what comes then.
pub(crate) fn confirm(waits: Option<(Instant, u64)>, now: Instant) -> Value {
    waits.map_or(Value::Null, |(until, back_to)| {
        let left = until.since(now).ns().div_ceil(1_000_000_000);
        json!({ "left_s": left, "goes_back_to": back_to })
    })
}

pub(crate) fn history(history: &History, changes: &Changes) -> Value {
    let revisions: Vec<Value> = history.told().map(About::to_json).collect();
    json!({
        "current": changes.current().about.number,
        "confirmed": changes.confirmed().about.number,
        "folder": history.folder().display().to_string(),
        "revisions": revisions,
        "damaged": history.damaged(),
        "trouble": history.trouble(),
    })
}

/// Both ports; without `ports` nothing is known of them.
pub(crate) fn ports(plan: &Plan, ports: Option<&Ports>) -> Value {
    let one = |side: Side, interface: &str| {
        let state = ports.map(|ports| ports.state[side as usize]);
        let counted = ports.and_then(|ports| ports.counters[side as usize]);
        let passed = ports.and_then(|ports| ports.passed[side as usize]);
        let passed = passed.map(|counts| {
            let counts = counts.named().into_iter();
            Value::Object(counts.map(|(name, n)| (name.to_owned(), Value::from(n))).collect())
        });
        json!({
            "interface": interface,
            "state": match state {
                Some(PortState::Up) => "up",
                Some(PortState::NoLink) => "no link",
                Some(PortState::Gone) => "gone",
                None => "unknown",
            },
            "counters": counted.map(|c| counters_of_port(&c)),
            "xdp": passed,
        })
    };
    json!({ "lan": one(Side::Lan, &plan.lan), "wan": one(Side::Wan, &plan.wan) })
}

/// The counters of a port by their names, which the metrics use too.
pub(crate) fn port_counts(c: &PortCounters) -> [(&'static str, u64); 10] {
    [
        ("received_frames", c.received_frames),
        ("received_bytes", c.received_bytes),
        ("sent_frames", c.sent_frames),
        ("sent_bytes", c.sent_bytes),
        ("dropped_by_kernel", c.dropped_by_kernel),
        ("no_buffer", c.no_buffer),
        ("too_long", c.too_long),
        ("not_sent", c.not_sent),
        ("repaired_checksums", c.repaired_checksums),
        ("split", c.split),
    ]
}

fn counters_of_port(counters: &PortCounters) -> Value {
    let counts = port_counts(counters).into_iter();
    Value::Object(counts.map(|(name, n)| (name.to_owned(), Value::from(n))).collect())
}

/// What the packet thread says of itself.
pub(crate) fn packets(link: &Link, now: Instant) -> Value {
    let facts = link.facts();
    json!({
        "alive": link.is_alive(),
        "turns": facts.turns(),
        "last_turn_ms": now.since(facts.last_turn()).ns() / 1_000_000,
        "longest_gap_us": facts.longest_gap().ns() / 1_000,
        "gaps": facts.gaps(),
        "without_port": facts.without_port(),
        "left_to_the_bridge": facts.left_to_the_bridge(),
        "lost_buffers": facts.lost_buffers(),
    })
}

/// How long TCP takes to both sides and back; null where nothing was seen.
pub(crate) fn round_trips(trips: RoundTrips) -> Value {
    let side = |trip: RoundTrip| match trip.taken {
        0 => Value::Null,
        _ => json!({
            "shortest_us": trip.shortest.ns() / 1_000,
            "mean_us": trip.mean.ns() / 1_000,
        }),
    };
    json!({ "lan": side(trips.lan), "wan": side(trips.wan) })
}

/// A row of a report and the node of the plan that it is, or is made by.
pub(crate) struct Placed<'r> {
    pub(crate) row: &'r weir_engine::Row,
    pub(crate) node: NodeId,
    /// Whether it is a leaf made at run time.
    pub(crate) is_made: bool,
}

/// The rows of a report, which follow the plan with made leaves behind their class.
pub(crate) fn placed<'r>(report: &'r Report, plan: &'r Plan) -> impl Iterator<Item = Placed<'r>> {
    let mut next: NodeId = 0;
    report.rows.iter().map(move |row| {
        let is_node = plan.nodes.get(next as usize).is_some_and(|node| *node.path == *row.path);
        next += NodeId::from(is_node);
        Placed { row, node: next.saturating_sub(1), is_made: !is_node }
    })
}

impl Placed<'_> {
    /// What it may have.
    pub(crate) fn shares(&self, plan: &Plan) -> Both<Shares> {
        let node = plan.node(self.node);
        match &node.kind {
            Kind::Each(each) if self.is_made => each.shares,
            _ => node.shares,
        }
    }

    fn kind(&self, plan: &Plan) -> &'static str {
        match plan.node(self.node).kind {
            _ if self.is_made => "made",
            Kind::Each(_) => "each",
            Kind::Leaf => "leaf",
            Kind::Interior => "class",
        }
    }
}

/// What each class got since the link started.
pub(crate) fn tree(report: &Report, plan: &Plan, all: bool, now: Instant) -> Value {
    let mut rows: Vec<Value> = Vec::new();
    let (mut silent, mut left_out) = (0, 0);
    for placed in placed(report, plan) {
        let row = placed.row;
        if !all && row.is_silent() && row.depth > 0 {
            silent += 1;
            continue;
        }
        if rows.len() == limits::CONTROL_ROWS {
            left_out += 1;
            continue;
        }
        let shares = placed.shares(plan);
        rows.push(json!({
            "class": row.path,
            "depth": row.depth,
            "kind": placed.kind(plan),
            "down": direction(shares.down, row.from(Side::Wan)),
            "up": direction(shares.up, row.from(Side::Lan)),
        }));
    }
    json!({
        "link": plan.name,
        "time_ns": now.ns(),
        "rows": rows,
        "silent": silent,
        "left_out": left_out,
        "askers": report.askers.iter().map(asker).collect::<Vec<_>>(),
    })
}

fn asker(asker: &Asker) -> Value {
    json!({ "class": asker.class, "who": asker.who })
}

fn direction(shares: Shares, counted: &Counters) -> Value {
    let mut value = counters(counted);
    value["rate"] = Value::from(shares.rate.bps());
    // whoever may have everything has no ceiling
    let ceil = (shares.ceil < Rate::MAX).then(|| shares.ceil.bps());
    value["ceil"] = Value::from(ceil);
    value
}

/// Counters; reasons for which nothing was dropped are left out.
pub(crate) fn counters(c: &Counters) -> Value {
    let count = |c: Count| json!({ "frames": c.frames, "bytes": c.bytes });
    let dropped: Map<String, Value> = Reason::all()
        .filter(|reason| c.dropped[reason.index()].frames > 0)
        .map(|reason| (reason.name().to_owned(), count(c.dropped[reason.index()])))
        .collect();
    json!({
        "received": count(c.received),
        "sent": count(c.sent),
        "waiting": count(c.held),
        "waiting_bytes_max": c.held_max,
        "marked": count(c.marked),
        "again": count(c.repeated),
        "late": count(c.late),
        "moved_in": count(c.moved_in),
        "moved_out": count(c.moved_out),
        "delay_ns_sum": c.delay.sum_ns,
        "delay_ns_max": c.delay.max_ns,
        "dropped": dropped,
    })
}

/// The books as the engine keeps them: by the number of the leaf.
pub(crate) fn books(books: &Books, now: Instant) -> Value {
    let both = |c: &[Counters; 2]| {
        let [up, down] = [Side::Lan, Side::Wan].map(|side| counters(&c[side as usize]));
        json!({ "down": down, "up": up })
    };
    let leaves = books.leaves.iter().take(limits::CONTROL_ROWS).map(|leaf| {
        let owner = leaf.owner.map(|owner| owner.to_string());
        json!({
            "leaf": leaf.leaf,
            "owner": owner,
            "down": counters(&leaf.counters[Side::Wan as usize]),
            "up": counters(&leaf.counters[Side::Lan as usize]),
        })
    });
    json!({
        "time_ns": now.ns(),
        "total": both(&books.total),
        "gone": both(&books.gone),
        "leaves": leaves.collect::<Vec<_>>(),
        "left_out": books.leaves.len().saturating_sub(limits::CONTROL_ROWS),
    })
}
