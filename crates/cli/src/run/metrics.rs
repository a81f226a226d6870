//! What a running link has counted, in the text that Prometheus reads. The number of lines is
//! bounded: of a policy with more classes the deepest are left out; their frames count in the
//! classes above them.

use std::fmt::Write as _;

use weir_engine::{Counters, Report};
use weir_io::PortState;
use weir_packet::{Reason, Side};
use weir_policy::Plan;
use weir_policy::plan::Shares;
use weir_units::{Span, limits};

use super::answers::{Placed, placed, port_counts};
use super::board::Turns;
use super::link::Ports;
use super::revision::Rows;

/// What is told of a link; what the packet thread did not answer is left out.
pub(crate) struct Told<'t> {
    pub(crate) plan: &'t Plan,
    pub(crate) report: Option<&'t Report>,
    pub(crate) ports: Option<&'t Ports>,
    pub(crate) turns: Turns,
    pub(crate) is_alive: bool,
    pub(crate) is_observing: bool,
    pub(crate) troubles: usize,
    pub(crate) revision: u64,
    pub(crate) rows: Rows,
    pub(crate) uptime: Span,
    /// How old what was counted is.
    pub(crate) age: Span,
}

/// All of it.
pub(crate) fn text(told: &Told<'_>) -> String {
    let mut page = Page { text: String::new(), link: escaped(&told.plan.name) };
    of_link(told, &mut page);
    if let Some(ports) = told.ports {
        of_ports(ports, &mut page);
    }
    if let Some(report) = told.report {
        of_classes(report, told.plan, &mut page);
    }
    page.text
}

fn of_link(told: &Told<'_>, page: &mut Page) {
    let Turns { turns, gaps, longest_gap, without_port } = told.turns;
    page.head("weir_info", "gauge", "the version of weir");
    page.line("weir_info", &[("version", env!("CARGO_PKG_VERSION"))], &"1");
    let mut one = |name, kind, help, value: String| {
        page.head(name, kind, help);
        page.line(name, &[], &value);
    };
    let yes = |is: bool| u8::from(is).to_string();
    one("weir_up_seconds", "counter", "since the link was started", seconds(told.uptime.ns()));
    one("weir_revision", "gauge", "the revision in effect", told.revision.to_string());
    let age = seconds(told.age.ns());
    one("weir_snapshot_age_seconds", "gauge", "since what is told here was counted", age);
    let (skipped, held) = (told.rows.skipped.to_string(), told.rows.held.to_string());
    one("weir_subscribers_skipped", "gauge", "rows of the table that were skipped", skipped);
    one("weir_subscribers_held", "gauge", "of these, keep their last good row", held);
    one("weir_troubles", "gauge", "lines of trouble in `weir status`", told.troubles.to_string());
    one("weir_observing", "gauge", "1 while nothing is shaped", yes(told.is_observing));
    one("weir_packet_thread_alive", "gauge", "1 while frames pass", yes(told.is_alive));
    let turns = turns.to_string();
    one("weir_packet_thread_turns_total", "counter", "turns of the packet thread", turns);
    let gaps = gaps.to_string();
    one("weir_packet_thread_gaps_total", "counter", "turns that came late", gaps);
    let longest = seconds(longest_gap.ns());
    one("weir_packet_thread_gap_seconds_max", "gauge", "the longest such gap", longest);
    let lost = without_port.to_string();
    one("weir_without_port_frames_total", "counter", "frames that had no port to go to", lost);
}

fn of_ports(ports: &Ports, page: &mut Page) {
    let sides = [(Side::Lan, "lan"), (Side::Wan, "wan")];
    page.head("weir_port_up", "gauge", "1 while the interface is up and has link");
    for (side, port) in sides {
        let up = u8::from(ports.state[side as usize] == PortState::Up);
        page.line("weir_port_up", &[("port", port)], &up);
    }
    if ports.passed.iter().any(Option::is_some) {
        let metric = "weir_port_xdp_frames_total";
        page.head(metric, "counter", "what the program at the port did with frames, by verdict");
        for (side, port) in sides {
            for (verdict, frames) in
                ports.passed[side as usize].iter().flat_map(weir_xdp::Counts::named)
            {
                page.line(metric, &[("port", port), ("verdict", verdict)], &frames);
            }
        }
    }
    page.head("weir_flows", "gauge", "connections that are known");
    page.line("weir_flows", &[], &ports.flows);
    let counted = sides.map(|(side, port)| {
        (port, ports.counters[side as usize].as_ref().map(port_counts).unwrap_or_default())
    });
    for at in 0..counted[0].1.len() {
        let named = counted.iter().map(|(_, counts)| counts[at].0).find(|name| !name.is_empty());
        let Some(name) = named else { return };
        let metric = format!("weir_port_{name}_total");
        page.head(&metric, "counter", "of the port since it was opened");
        for (port, counts) in counted.iter().filter(|(_, counts)| !counts[at].0.is_empty()) {
            page.line(&metric, &[("port", port)], &counts[at].1);
        }
    }
}

/// A number of a class in one direction.
type Of = fn(&Counters, &Shares) -> String;

const OF_CLASSES: [(&str, &str, &str, Of); 12] = [
    ("received_bytes_total", "counter", "came in", |c, _| c.received.bytes.to_string()),
    ("received_frames_total", "counter", "came in", |c, _| c.received.frames.to_string()),
    ("sent_bytes_total", "counter", "left", |c, _| c.sent.bytes.to_string()),
    ("sent_frames_total", "counter", "left", |c, _| c.sent.frames.to_string()),
    ("waiting_bytes", "gauge", "wait now", |c, _| c.held.bytes.to_string()),
    ("waiting_frames", "gauge", "wait now", |c, _| c.held.frames.to_string()),
    ("marked_frames_total", "counter", "left with a mark of congestion", |c, _| {
        c.marked.frames.to_string()
    }),
    ("delay_seconds_total", "counter", "waited here, all frames that left together", |c, _| {
        seconds(c.delay.sum_ns)
    }),
    ("delay_seconds_max", "gauge", "the longest that a frame waited here", |c, _| {
        seconds(c.delay.max_ns)
    }),
    ("rate_bits", "gauge", "guaranteed, per second", |_, s| s.rate.bps().to_string()),
    ("ceil_bits", "gauge", "at most, per second", |_, s| s.ceil.bps().to_string()),
    ("dropped_bytes_total", "counter", "went no further, for any reason", |c, _| {
        c.dropped_in_all().bytes.to_string()
    }),
];

fn of_classes(report: &Report, plan: &Plan, page: &mut Page) {
    let depth = deepest(report);
    let told = |placed: &Placed<'_>| placed.row.depth <= depth;
    let left_out = report.rows.iter().filter(|row| row.depth > depth).count();
    page.head("weir_classes_left_out", "gauge", "classes that count only in those above them");
    page.line("weir_classes_left_out", &[], &left_out);
    let ways = [(Side::Wan, "down"), (Side::Lan, "up")];
    for (name, kind, help, of) in OF_CLASSES {
        let metric = format!("weir_class_{name}");
        page.head(&metric, kind, help);
        for placed in placed(report, plan).filter(told) {
            for (side, way) in ways {
                let shares = placed.shares(plan);
                let shares = if side == Side::Wan { shares.down } else { shares.up };
                let labels = [("class", placed.row.path.as_str()), ("direction", way)];
                page.line(&metric, &labels, &of(placed.row.from(side), &shares));
            }
        }
    }
    let metric = "weir_class_dropped_frames_total";
    page.head(metric, "counter", "went no further");
    for placed in placed(report, plan).filter(told) {
        for (side, way) in ways {
            for reason in Reason::all() {
                let class = placed.row.path.as_str();
                let labels = [("class", class), ("direction", way), ("reason", reason.name())];
                let dropped = placed.row.from(side).dropped[reason.index()];
                page.line(metric, &labels, &dropped.frames);
            }
        }
    }
}

/// Down to which level all classes fit.
fn deepest(report: &Report) -> u8 {
    let mut levels = [0; u8::MAX as usize + 1];
    report.rows.iter().for_each(|row| levels[usize::from(row.depth)] += 1);
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

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn std::fmt::Display) {
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

#[cfg(test)]
mod tests {
    use weir_engine::{Config, Engine, Planner, Row};
    use weir_packet::Pool;
    use weir_units::Instant;

    use super::super::tests::revision;
    use super::*;

    fn report(plan: &Plan) -> Report {
        let config = Config { queue_frames: 1, flows: 8, ..Config::default() };
        let change = Planner::of(&config).prepare(plan).unwrap();
        Report::of(&Engine::new(config, Pool::new(1, 1), change, Instant::ZERO), plan)
    }

    fn told<'t>(plan: &'t Plan, report: &'t Report, ports: &'t Ports) -> Told<'t> {
        Told {
            plan,
            report: Some(report),
            ports: Some(ports),
            turns: Turns::default(),
            is_alive: true,
            is_observing: false,
            troubles: 0,
            revision: 7,
            rows: Rows { skipped: 3, held: 2 },
            uptime: Span::from_ms(1_500),
            age: Span::from_ms(20),
        }
    }

    fn ports() -> Ports {
        let counted = weir_io::PortCounters { received_frames: 3, ..Default::default() };
        let state = [PortState::Up, PortState::Gone];
        let passed = weir_xdp::Counts { taken: 3, ..Default::default() };
        Ports { state, counters: [Some(counted), None], flows: 2, passed: [Some(passed), None] }
    }

    #[test]
    fn the_text_is_this() {
        let mut plan = revision(1, "10mbit").plan;
        plan.name = "a \"b\"".to_owned();
        let mut report = report(&plan);
        let counted = &mut report.rows[1].counters[Side::Wan as usize];
        counted.sent = weir_engine::Count { frames: 2, bytes: 3_000 };
        counted.delay.sum_ns = 1_000_000_001;
        counted.dropped[Reason::Crowded.index()] = weir_engine::Count { frames: 1, bytes: 60 };
        let text = text(&told(&plan, &report, &ports()));
        let golden = include_str!("metrics.golden.txt");
        if text != golden {
            let made = std::env::temp_dir().join("weir-metrics.golden.txt");
            std::fs::write(&made, &text).unwrap();
            panic!("it is not what metrics.golden.txt says, but {}", made.display());
        }
    }

    #[test]
    fn every_line_is_of_the_format() {
        let plan = revision(1, "10mbit").plan;
        let (report, ports) = (report(&plan), ports());
        let text = text(&told(&plan, &report, &ports));
        let mut seen = std::collections::BTreeSet::new();
        let mut of = "";
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                of = help.split(' ').next().unwrap();
                assert!(seen.insert(of), "{of} twice");
            } else if !line.starts_with("# TYPE ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.starts_with(&format!("{of}{{link=\"l\"")), "{line}");
                assert!(value.parse::<f64>().is_ok() && series.ends_with('}'), "{line}");
            }
        }
    }

    #[test]
    fn too_many_classes_count_in_those_above() {
        let plan = revision(1, "10mbit").plan;
        let mut report = report(&plan);
        let made = |n: usize| Row {
            path: format!("/a/{n}"),
            depth: 2,
            is_leaf: true,
            counters: Default::default(),
        };
        let at = report.rows.iter().position(|row| row.path == "/a").unwrap();
        report.rows.splice(at + 1..at + 1, (0..limits::METRICS_CLASSES).map(made));
        let ports = ports();
        let text = text(&told(&plan, &report, &ports));
        let left_out = format!("weir_classes_left_out{{link=\"l\"}} {}", limits::METRICS_CLASSES);
        assert!(text.contains(&left_out) && !text.contains("class=\"/a/7\""));
        assert!(text.contains("class=\"/a\""));
    }
}
