//! What a running link tells: what the engine, the ports and the packet thread count, in the words
//! of the protocol.

use weir_control::{
    self as control, Both as Ways, Confirm, Direction, LeafBooks, Packets, Port, PortCounters, Tree,
};
use weir_engine::{Books, Count, Counters, Report, RoundTrip, RoundTrips};
use weir_io::PortState;
use weir_packet::{BySide, Reason, Side};
use weir_policy::Plan;
use weir_policy::plan::{NodeId, NodeKind, Shares};
use weir_units::{ByWay, Instant, Rate, limits};
use weir_xdp::Counts;

use crate::facts::Facts;
use crate::reader::Ports;

/// How long what is in effect waits, and what comes then.
pub(crate) fn confirm(waits: Option<(Instant, u64)>, now: Instant) -> Option<Confirm> {
    waits.map(|(until, goes_back_to)| {
        let left_s = until.since(now).ns().div_ceil(1_000_000_000);
        Confirm { left_s, goes_back_to }
    })
}

/// Both ports; without `ports` nothing is known of them.
pub(crate) fn ports(
    plan: &Plan,
    ports: Option<&Ports>,
    passed: BySide<Option<Counts>>,
) -> control::Ports {
    let one = |side: Side, interface: &str| {
        let state = ports.map(|ports| ports.state[side]);
        let counted = ports.and_then(|ports| ports.counters[side]);
        let passed = passed[side].filter(|_| ports.is_some());
        let state = match state {
            Some(PortState::Up) => "up",
            Some(PortState::NoLink) => "no link",
            Some(PortState::Gone) => "gone",
            None => "unknown",
        };
        Port {
            interface: interface.to_owned(),
            state: state.to_owned(),
            counters: counted.map(port_counters),
            xdp: passed.map(|counts| counts.named().into_iter().collect()),
        }
    };
    control::Ports { lan: one(Side::Lan, &plan.lan), wan: one(Side::Wan, &plan.wan) }
}

fn port_counters(c: weir_io::PortCounters) -> PortCounters {
    PortCounters {
        received_frames: c.received_frames,
        received_bytes: c.received_bytes,
        sent_frames: c.sent_frames,
        sent_bytes: c.sent_bytes,
        dropped_by_kernel: c.dropped_by_kernel,
        no_buffer: c.no_buffer,
        too_long: c.too_long,
        not_sent: c.not_sent,
        repaired_checksums: c.repaired_checksums,
        split: c.split,
    }
}

/// What the packet thread says of itself.
pub(crate) fn packets(facts: &Facts, alive: bool, now: Instant) -> Packets {
    Packets {
        alive,
        turns: facts.turns(),
        last_turn_ms: now.since(facts.last_turn()).ns() / 1_000_000,
        longest_gap_us: facts.longest_gap().ns() / 1_000,
        gaps: facts.gaps(),
        without_port: facts.without_port(),
        left_to_the_bridge: facts.left_to_the_bridge(),
        lost_buffers: facts.lost_buffers(),
    }
}

/// How long TCP takes to both sides and back; none where nothing was seen.
pub(crate) fn round_trips(trips: RoundTrips) -> control::RoundTrips {
    let side = |trip: RoundTrip| {
        (trip.taken > 0).then(|| control::RoundTrip {
            shortest_us: trip.shortest.ns() / 1_000,
            mean_us: trip.mean.ns() / 1_000,
        })
    };
    control::RoundTrips { lan: side(trips.lan), wan: side(trips.wan) }
}

/// A row of a report and the node of the plan that it is, or is made by.
struct Placed<'r> {
    row: &'r weir_engine::Row,
    node: NodeId,
    /// Whether it is a leaf made at run time.
    is_made: bool,
}

/// The rows of a report, which follow the plan with made leaves behind their class.
fn placed<'r>(report: &'r Report, plan: &'r Plan) -> impl Iterator<Item = Placed<'r>> {
    let mut next: NodeId = 0;
    report.rows.iter().map(move |row| {
        let is_node = plan.nodes.get(next as usize).is_some_and(|node| *node.path == *row.path);
        next += NodeId::from(is_node);
        Placed { row, node: next.saturating_sub(1), is_made: !is_node }
    })
}

impl Placed<'_> {
    /// What it may have.
    fn shares(&self, plan: &Plan) -> ByWay<Shares> {
        let node = plan.node(self.node);
        match &node.kind {
            NodeKind::Each(each) if self.is_made => each.shares,
            _ => node.shares,
        }
    }

    fn kind(&self, plan: &Plan) -> control::RowKind {
        match plan.node(self.node).kind {
            _ if self.is_made => control::RowKind::Made,
            NodeKind::Each(_) => control::RowKind::Each,
            NodeKind::Leaf => control::RowKind::Leaf,
            NodeKind::Interior => control::RowKind::Class,
        }
    }
}

/// What each class got since the link started, whether it got anything or not.
pub(crate) fn tree(report: &Report, plan: &Plan, now: Instant) -> Tree {
    let row = |placed: Placed<'_>| {
        let shares = placed.shares(plan);
        control::Row {
            class: placed.row.path.clone(),
            depth: placed.row.depth,
            kind: placed.kind(plan),
            down: direction(shares.down, &placed.row.counters.down),
            up: direction(shares.up, &placed.row.counters.up),
        }
    };
    Tree {
        link: plan.name.clone(),
        time_ns: now.ns(),
        rows: placed(report, plan).map(row).collect(),
        askers: report.askers.iter().map(asker).collect(),
        ..Tree::default()
    }
}

/// Who asks for a leaf.
#[must_use]
pub fn asker(asker: &weir_engine::Asker) -> control::Asker {
    control::Asker { class: asker.class.clone(), who: asker.who.clone() }
}

fn direction(shares: Shares, counted: &Counters) -> Direction {
    Direction {
        counters: counters(counted),
        rate: shares.rate.bps(),
        // whoever may have everything has no ceiling
        ceil: (shares.ceil < Rate::MAX).then(|| shares.ceil.bps()),
        now: None,
    }
}

/// Counters; reasons for which nothing was dropped are left out.
#[must_use]
pub fn counters(c: &Counters) -> control::Counters {
    let count = |c: Count| control::Count { frames: c.frames, bytes: c.bytes };
    let dropped = Reason::all()
        .filter(|reason| c.dropped[reason.index()].frames > 0)
        .map(|reason| (reason.name(), count(c.dropped[reason.index()])));
    control::Counters {
        received: count(c.received),
        sent: count(c.sent),
        backlog: count(c.held),
        backlog_bytes_max: c.held_max,
        marked: count(c.marked),
        retransmitted: count(c.repeated),
        reordered: count(c.late),
        moved_in: count(c.moved_in),
        moved_out: count(c.moved_out),
        delay_ns_sum: c.delay.sum_ns,
        delay_ns_max: c.delay.max_ns,
        dropped: dropped.collect(),
    }
}

/// The books as the engine keeps them: by the number of the leaf.
pub(crate) fn books(books: &Books, now: Instant) -> control::Books {
    let both = |c: &ByWay<Counters>| Ways { down: counters(&c.down), up: counters(&c.up) };
    let leaves = books.leaves.iter().take(limits::CONTROL_ROWS).map(|leaf| {
        let Ways { down, up } = both(&leaf.counters);
        LeafBooks { leaf: leaf.leaf, owner: leaf.owner.map(|owner| owner.to_string()), down, up }
    });
    control::Books {
        time_ns: now.ns(),
        total: both(&books.total),
        gone: both(&books.gone),
        leaves: leaves.collect(),
        left_out: books.leaves.len().saturating_sub(limits::CONTROL_ROWS),
    }
}
