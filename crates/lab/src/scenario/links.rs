//! How those who are there are connected: rate, layer, delay, what waits, what is lost.

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};
use weir_shape::{FrameCost, Layer};
use weir_sim::impair::Limit;
use weir_sim::link::{Aqm, Codel, Red};
use weir_sim::{Chance, LinkSpec, Queue};
use weir_units::{Bytes, Rate, Span};

use super::nodes::Node;
use super::path::{self, Path};
use super::{Load, SPAN, find};

/// A wire between two nodes.
#[derive(Clone, Debug)]
pub struct Wire {
    /// Its name.
    pub name: String,
    /// The nodes at its ends, by their places.
    pub between: (usize, usize),
    /// What is said of both directions, and of each.
    pub both: Words,
    /// From the first node to the second.
    pub there: Words,
    /// And back.
    pub back: Words,
}

/// What may be said of a link; `None`: nothing.
#[derive(Clone, Debug, Default)]
pub struct Words {
    rate: Option<Rate>,
    layer: Option<Layer>,
    overhead: Option<i16>,
    delay: Option<Span>,
    path: Path,
    queue: Option<Limit>,
    aqm: Option<Aqm>,
    drop_head: Option<bool>,
    ecn: Option<bool>,
}

pub(super) const WORDS: [&str; 19] = [
    "between",
    "there",
    "back",
    "rate",
    "trace",
    "counts",
    "overhead",
    "delay",
    "jitter",
    "loss",
    "periodic-loss",
    "outage",
    "duplicate",
    "corrupt",
    "reorder",
    "queue",
    "aqm",
    "drop-head",
    "ecn",
];
const LAYERS: [(&str, Layer); 6] = [
    ("ip", Layer::Ip),
    ("ethernet", Layer::Ethernet),
    ("wire", Layer::Wire),
    ("atm", Layer::Atm),
    ("docsis", Layer::Docsis),
    ("ptm", Layer::Ptm),
];
const AQMS: [(&str, u8); 3] = [("none", 0), ("red", 1), ("codel", 2)];

/// As the survey's systems had it: 5 to 15 full packets on average.
const RED: Red =
    Red { least: 7_500, most: 22_500, chance: Chance::percent(10), weight: 9, gentle: true };

pub(super) fn read(
    name: &str,
    entry: Entry<'_>,
    nodes: &[Node],
    load: &mut Load<'_>,
    problems: &mut Problems,
) -> Option<Wire> {
    let mut table = entry.table(&format!("link \"{name}\""), problems)?;
    let between = between(&mut table, entry, nodes, problems);
    let [both, there, back] = ways(&mut table, load, problems);
    table.finish(&WORDS, problems);
    Some(Wire { name: name.to_owned(), between: between?, both, there, back })
}

/// What is said of both directions, and of each.
pub(super) fn ways(
    table: &mut Table<'_>,
    load: &mut Load<'_>,
    problems: &mut Problems,
) -> [Words; 3] {
    let [there, back] = ["there", "back"].map(|way| {
        let entry = table.take(way)?;
        let mut table = entry.table(&format!("\"{way}\""), problems)?;
        let words = words(&mut table, load, problems);
        table.finish(&WORDS[3..], problems);
        Some(words)
    });
    [words(table, load, problems), there.unwrap_or_default(), back.unwrap_or_default()]
}

fn between(
    table: &mut Table<'_>,
    link: Entry<'_>,
    nodes: &[Node],
    problems: &mut Problems,
) -> Option<(usize, usize)> {
    let help = "write between = [\"client\", \"box\"]";
    let Some(entry) = table.take("between") else {
        problems.error(link.key, "the link does not say between whom it is", help);
        return None;
    };
    let ends = entry.list();
    if ends.len() != 2 {
        problems.error(entry.place, "a link has two ends", help);
        return None;
    }
    let names = nodes.iter().map(|n| n.name.as_str());
    let mut end = |at: usize| find(ends[at], "between", "node", names.clone(), problems);
    let (a, b) = (end(0), end(1));
    let (a, b) = (a?, b?);
    if a == b {
        problems.error(entry.place, "a link has two different ends", help);
    }
    Some((a, b))
}

/// What is said in this table about a link.
fn words(table: &mut Table<'_>, load: &mut Load<'_>, problems: &mut Problems) -> Words {
    let mut words = Words::default();
    let rate = "a rate as in \"20mbit\"";
    let said = table.take("rate");
    words.rate = said.and_then(|e| e.read("rate", rate, problems));
    words.path = path::read(table, load, problems);
    words.layer = table.take("counts").and_then(|e| e.word("counts", &LAYERS, problems));
    words.overhead = table.take("overhead").and_then(|e| overhead(e, problems));
    words.delay = table.take("delay").and_then(|e| e.read("delay", SPAN, problems));
    words.queue = table.take("queue").and_then(|e| queue(e, problems));
    let [aqm_said, head_said, ecn_said] = ["aqm", "drop-head", "ecn"].map(|word| table.take(word));
    words.aqm = aqm_said.and_then(|e| aqm(e, problems));
    words.drop_head = head_said.and_then(|e| e.yes_no("drop-head", problems));
    words.ecn = ecn_said.and_then(|e| e.yes_no("ecn", problems));
    if words.path.trace.is_some() {
        for entry in [said, aqm_said, head_said, ecn_said].into_iter().flatten() {
            let help = "leave out \"trace\", or this: what waits for a trace has a plain queue";
            problems.error(entry.key, "a link with a trace does not take this word", help);
        }
    }
    words
}

fn overhead(entry: Entry<'_>, problems: &mut Problems) -> Option<i16> {
    let bytes = entry.number("overhead", 0..=256, problems)?;
    i16::try_from(bytes).ok()
}

/// `"50 frames"`, `"64kb"` or `"20ms"`.
fn queue(entry: Entry<'_>, problems: &mut Problems) -> Option<Limit> {
    let help = "\"50 frames\", \"64kb\" or \"20ms\"";
    let text = entry.text("queue", help, problems)?;
    let frames = text.strip_suffix(" frames").and_then(|n| n.parse().ok()).map(Limit::Frames);
    let bytes = || text.parse::<Bytes>().ok().and_then(|b| usize::try_from(b.get()).ok());
    let time = || text.parse::<Span>().ok().map(Limit::Time);
    let limit = frames.or_else(|| bytes().map(Limit::Bytes)).or_else(time);
    if limit.is_none() {
        problems.error(
            entry.place,
            format!("\"queue\" cannot be \"{text}\""),
            format!("write {help}"),
        );
    }
    limit
}

fn aqm(entry: Entry<'_>, problems: &mut Problems) -> Option<Aqm> {
    Some(match entry.word("aqm", &AQMS, problems)? {
        0 => Aqm::None,
        1 => Aqm::Red(RED),
        _ => Aqm::Codel(Codel::default()),
    })
}

impl Words {
    /// These words, and those of `other` where these say nothing.
    fn or(&self, other: &Words) -> Words {
        let mut path = self.path.or(&other.path);
        // a trace stands for a rate: who says one of them has not the other's
        let is_said = self.rate.is_some() || path.trace.is_some();
        if !is_said {
            path.trace.clone_from(&other.path.trace);
        }
        Words {
            rate: if is_said { self.rate } else { other.rate },
            layer: self.layer.or(other.layer),
            overhead: self.overhead.or(other.overhead),
            delay: self.delay.or(other.delay),
            path,
            queue: self.queue.or(other.queue),
            aqm: self.aqm.or(other.aqm),
            drop_head: self.drop_head.or(other.drop_head),
            ecn: self.ecn.or(other.ecn),
        }
    }

    fn spec(&self) -> LinkSpec {
        let overhead = self.overhead.unwrap_or(0);
        let limit = self.queue.unwrap_or(Queue::default().limit);
        LinkSpec {
            rate: self.rate,
            layers: FrameCost { layer: self.layer.unwrap_or_default(), overhead },
            queue: Queue {
                limit,
                drop_head: self.drop_head.unwrap_or(false),
                aqm: self.aqm.unwrap_or_default(),
                ecn: self.ecn.unwrap_or(false),
            },
            path: self.path.spec(self.delay.unwrap_or_default(), limit),
        }
    }
}

impl Wire {
    /// One direction, as a profile may have changed it.
    pub(super) fn spec(&self, is_there: bool, change: Option<&[Words; 3]>) -> LinkSpec {
        let own = if is_there { &self.there } else { &self.back };
        let plain = own.or(&self.both);
        let Some([both, there, back]) = change else { return plain.spec() };
        let change = if is_there { there.or(both) } else { back.or(both) };
        change.or(&plain).spec()
    }
}
