//! What a running link has counted, in the text that Prometheus reads. The number of lines is
//! bounded: of a policy with more classes the deepest are left out; their frames count in the
//! classes above them.
//!
//! The text is written here and not by prometheus-client, which cannot reproduce it (0.26, encoder
//! of version 0.0.4 of the text): it renames the counter `weir_up_seconds`, which has no `_total`,
//! and writes seconds as floats, so that a sum of 10000000000.000000001 s loses its nanosecond.

use std::fmt::{Display, Write as _};

use weir_packet::Reason;
use weir_units::{Rate, Span, limits};

use crate::{Direction, Mode, Packets, PortCounters, Ports, Status, Tree};

/// Times that metrics tell to the nanosecond.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Since the link was started.
    pub uptime: Span,
    /// Since what is told was counted.
    pub age: Span,
    /// The longest time by which a turn came late.
    pub longest_gap: Span,
}

/// All of it. `tree` has all classes; without it, what the packet thread counts is left out.
#[must_use]
pub fn text(status: &Status, tree: Option<&Tree>, times: Times) -> String {
    let mut page = Page { text: String::new(), link: escaped(&status.link) };
    of_link(status, times, &mut page);
    if let Some(flows) = status.flows {
        of_ports(&status.ports, flows, &mut page);
    }
    if let Some(tree) = tree {
        of_classes(tree, &mut page);
    }
    page.text
}

/// What is told of a link.
struct Told<'s> {
    status: &'s Status,
    packets: Packets,
    times: Times,
}

/// How a figure is read, as a metric's value.
type OfLink = for<'s> fn(&Told<'s>) -> String;
type OfClass = fn(&Direction) -> String;

/// A figure of the link: its name, its type, what it tells, and how it is read.
const OF_LINK: [(&str, &str, &str, OfLink); 12] = [
    ("up_seconds", "counter", "time since the link was started", |t| seconds(t.times.uptime.ns())),
    ("revision", "gauge", "the revision in effect", |t| t.status.revision.number.to_string()),
    ("snapshot_age_seconds", "gauge", "the age of the snapshot behind these figures", |t| {
        seconds(t.times.age.ns())
    }),
    ("subscribers_skipped", "gauge", "rows of the table of subscribers that were skipped", |t| {
        t.status.subscribers.skipped.to_string()
    }),
    ("subscribers_held", "gauge", "skipped subscribers that keep their last good row", |t| {
        t.status.subscribers.held.to_string()
    }),
    ("troubles", "gauge", "lines of trouble in `weir status`", |t| {
        t.status.trouble.len().to_string()
    }),
    ("observing", "gauge", "1 while the link observes and does not shape", |t| {
        yes(t.status.mode == Mode::Observe)
    }),
    ("packet_thread_alive", "gauge", "1 while the packet thread runs", |t| yes(t.packets.alive)),
    ("packet_thread_turns_total", "counter", "iterations of the packet thread", |t| {
        t.packets.turns.to_string()
    }),
    ("packet_thread_gaps_total", "counter", "iterations that were late", |t| {
        t.packets.gaps.to_string()
    }),
    ("packet_thread_gap_seconds_max", "gauge", "the longest delay of an iteration", |t| {
        seconds(t.times.longest_gap.ns())
    }),
    ("without_port_frames_total", "counter", "frames dropped because their port was down", |t| {
        t.packets.without_port.to_string()
    }),
];

fn of_link(status: &Status, times: Times, page: &mut Page) {
    page.head("weir_info", "gauge", "the version of weir");
    page.line("weir_info", &[("version", &status.version)], &"1");
    let told = Told { status, packets: status.packets.unwrap_or_default(), times };
    for (name, kind, help, of) in OF_LINK {
        let name = format!("weir_{name}");
        page.head(&name, kind, help);
        page.line(&name, &[], &of(&told));
    }
}

fn of_ports(ports: &Ports, flows: u64, page: &mut Page) {
    let ports = ports.named();
    page.head("weir_port_up", "gauge", "1 while the interface is up and has link");
    for (side, port) in ports {
        page.line("weir_port_up", &[("port", side)], &yes(port.state == "up"));
    }
    if ports.iter().any(|(_, port)| port.xdp.is_some()) {
        let metric = "weir_port_xdp_frames_total";
        page.head(metric, "counter", "frames by the verdict of the program at the port");
        for (side, port) in ports {
            for (verdict, frames) in port.xdp.iter().flat_map(crate::Named::iter) {
                page.line(metric, &[("port", side), ("verdict", verdict)], frames);
            }
        }
    }
    page.head("weir_flows", "gauge", "connections in the flow table");
    page.line("weir_flows", &[], &flows);
    let counted = ports.map(|(side, port)| (side, port.counters));
    if counted.iter().all(|(_, counters)| counters.is_none()) {
        return;
    }
    for (at, (name, _)) in PortCounters::default().named().enumerate() {
        let metric = format!("weir_port_{name}_total");
        page.head(&metric, "counter", "counter of the port since it was opened");
        for (side, counters) in counted {
            if let Some((_, count)) = counters.and_then(|counters| counters.named().nth(at)) {
                page.line(&metric, &[("port", side)], &count);
            }
        }
    }
}

/// A figure of a class in one direction: its name, its type, what it tells, and how it is read.
const OF_CLASSES: [(&str, &str, &str, OfClass); 12] = [
    ("received_bytes_total", "counter", "received", |d| d.counters.received.bytes.to_string()),
    ("received_frames_total", "counter", "received", |d| d.counters.received.frames.to_string()),
    ("sent_bytes_total", "counter", "sent", |d| d.counters.sent.bytes.to_string()),
    ("sent_frames_total", "counter", "sent", |d| d.counters.sent.frames.to_string()),
    ("waiting_bytes", "gauge", "backlog now", |d| d.counters.backlog.bytes.to_string()),
    ("waiting_frames", "gauge", "backlog now", |d| d.counters.backlog.frames.to_string()),
    ("marked_frames_total", "counter", "sent with a congestion mark (ECN)", |d| {
        d.counters.marked.frames.to_string()
    }),
    ("delay_seconds_total", "counter", "queueing delay, sum over all sent frames", |d| {
        seconds(d.counters.delay_ns_sum)
    }),
    ("delay_seconds_max", "gauge", "the maximum queueing delay of a frame", |d| {
        seconds(d.counters.delay_ns_max)
    }),
    ("rate_bits", "gauge", "guaranteed rate", |d| d.rate.to_string()),
    ("ceil_bits", "gauge", "ceiling", |d| d.ceil.unwrap_or(Rate::MAX.bps()).to_string()),
    ("dropped_bytes_total", "counter", "dropped, for any reason", |d| {
        d.counters.dropped_in_all().bytes.to_string()
    }),
];

fn of_classes(tree: &Tree, page: &mut Page) {
    let depth = deepest(tree);
    let told = || tree.rows.iter().filter(|row| row.depth <= depth);
    page.head(
        "weir_classes_left_out",
        "gauge",
        "classes that are omitted and count in those \
        above them",
    );
    page.line("weir_classes_left_out", &[], &(tree.rows.len() - told().count()));
    for (name, kind, help, of) in OF_CLASSES {
        let metric = format!("weir_class_{name}");
        page.head(&metric, kind, help);
        for row in told() {
            for (way, direction) in row.directions() {
                let labels = [("class", row.class.as_str()), ("direction", way)];
                page.line(&metric, &labels, &of(direction));
            }
        }
    }
    let metric = "weir_class_dropped_frames_total";
    page.head(metric, "counter", "dropped");
    for row in told() {
        for (way, direction) in row.directions() {
            for reason in Reason::all() {
                let class = row.class.as_str();
                let labels = [("class", class), ("direction", way), ("reason", reason.name())];
                let dropped = direction.counters.dropped.get(reason.name());
                page.line(metric, &labels, &dropped.map_or(0, |count| count.frames));
            }
        }
    }
}

/// Down to which level all classes fit.
fn deepest(tree: &Tree) -> u8 {
    let mut levels = [0; u8::MAX as usize + 1];
    tree.rows.iter().for_each(|row| levels[usize::from(row.depth)] += 1);
    let mut fits = 0;
    let mut rows = 0;
    for (depth, level) in (0..=u8::MAX).zip(levels) {
        rows += level;
        if rows > limits::METRICS_CLASSES {
            break;
        }
        fits = depth;
    }
    fits
}

/// The text as it grows.
struct Page {
    text: String,
    link: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn Display) {
        let _ = write!(self.text, "{name}{{link=\"{}\"", self.link);
        for (label, of) in labels {
            let _ = write!(self.text, ",{label}=\"{}\"", escaped(of));
        }
        let _ = writeln!(self.text, "}} {value}");
    }
}

/// A label's value as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn yes(is: bool) -> String {
    u8::from(is).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Count, Port, Revision, Row, RowKind, Subscribers};

    const MBIT: u64 = 1_000_000;

    fn row(class: &str, depth: u8, kind: RowKind, rate: u64, ceil: u64) -> Row {
        let direction =
            Direction { rate: rate * MBIT, ceil: Some(ceil * MBIT), ..Direction::default() };
        Row { class: class.to_owned(), depth, kind, down: direction.clone(), up: direction }
    }

    fn tree() -> Tree {
        let mut rows = vec![
            row("/", 0, RowKind::Class, 10, 10),
            row("/a", 1, RowKind::Leaf, 1, 10),
            row("/b", 1, RowKind::Leaf, 0, 9),
            row("/(rest)", 1, RowKind::Leaf, 0, 10),
        ];
        // nobody said what it may have at most
        rows[3].up.ceil = None;
        let counted = &mut rows[1].down.counters;
        counted.sent = Count { frames: 2, bytes: 3_000 };
        counted.delay_ns_sum = 1_000_000_001;
        counted.dropped =
            [(Reason::Crowded.name(), Count { frames: 1, bytes: 60 })].into_iter().collect();
        Tree { rows, ..Tree::default() }
    }

    fn status() -> Status {
        let lan = Port {
            state: "up".to_owned(),
            counters: Some(PortCounters { received_frames: 3, ..PortCounters::default() }),
            xdp: Some([("taken", 3), ("aside", 0)].into_iter().collect()),
            ..Port::default()
        };
        let wan = Port { state: "gone".to_owned(), ..Port::default() };
        Status {
            version: "0.1.0".to_owned(),
            link: "a \"b\"".to_owned(),
            revision: Revision { number: 7, ..Revision::default() },
            packets: Some(Packets { alive: true, ..Packets::default() }),
            flows: Some(2),
            subscribers: Subscribers { skipped: 3, held: 2 },
            ports: Ports { lan, wan },
            ..Status::default()
        }
    }

    fn text_of(tree: &Tree) -> String {
        let times =
            Times { uptime: Span::from_ms(1_500), age: Span::from_ms(20), ..Times::default() };
        text(&status(), Some(tree), times)
    }

    #[test]
    fn the_text_is_this() {
        let (text, golden) = (text_of(&tree()), include_str!("metrics.golden.txt"));
        if text != golden {
            let made = std::env::temp_dir().join("weir-metrics.golden.txt");
            std::fs::write(&made, &text).unwrap();
            panic!("metrics.golden.txt differs; if it should, copy {} over it", made.display());
        }
    }

    #[test]
    fn every_line_is_of_the_format() {
        let text = text_of(&tree());
        let mut seen = BTreeSet::new();
        let mut of = "";
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                of = help.split(' ').next().unwrap();
                assert!(seen.insert(of), "{of} twice");
            } else if !line.starts_with("# TYPE ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.starts_with(&format!("{of}{{link=\"a ")), "{line}");
                assert!(value.parse::<f64>().is_ok() && series.ends_with('}'), "{line}");
            }
        }
    }

    #[test]
    fn too_many_classes_count_in_those_above() {
        let mut tree = tree();
        let made = |n| row(&format!("/a/{n}"), 2, RowKind::Made, 0, 1);
        tree.rows.splice(2..2, (0..limits::METRICS_CLASSES).map(made));
        let text = text_of(&tree);
        let left_out =
            format!("weir_classes_left_out{{link=\"a \\\"b\\\"\"}} {}", limits::METRICS_CLASSES);
        assert!(text.contains(&left_out) && !text.contains("class=\"/a/7\""));
        assert!(text.contains("class=\"/a\""));
    }
}
