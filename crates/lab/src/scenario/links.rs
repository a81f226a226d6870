//! How those who are there are connected: rate, layer, delay, what waits, what is lost.

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};
use weir_shape::{Layer, Link};
use weir_sim::impair::{Impairments, Jitter, Limit, Loss, Shape};
use weir_sim::link::{Aqm, Codel, Red};
use weir_sim::{Chance, LinkSpec, Queue};
use weir_units::{Bytes, Rate, Span};

use super::nodes::Node;
use super::{SPAN, find};

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
    delay: Option<Span>,
    jitter: Option<Span>,
    loss: Option<Loss>,
    queue: Option<Limit>,
    aqm: Option<Aqm>,
    drop_head: Option<bool>,
    ecn: Option<bool>,
}

pub(super) const WORDS: [&str; 13] = [
    "between",
    "rate",
    "counts",
    "delay",
    "jitter",
    "loss",
    "periodic-loss",
    "queue",
    "aqm",
    "drop-head",
    "ecn",
    "there",
    "back",
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
    problems: &mut Problems,
) -> Option<Wire> {
    let mut table = entry.table(&format!("link \"{name}\""), problems)?;
    let between = between(&mut table, entry, nodes, problems);
    let [there, back] = ["there", "back"].map(|way| {
        let entry = table.take(way)?;
        let mut table = entry.table(&format!("\"{way}\""), problems)?;
        let words = words(&mut table, problems);
        table.finish(&WORDS[1..11], problems);
        Some(words)
    });
    let both = words(&mut table, problems);
    table.finish(&WORDS, problems);
    let (there, back) = (there.unwrap_or_default(), back.unwrap_or_default());
    Some(Wire { name: name.to_owned(), between: between?, both, there, back })
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
pub(super) fn words(table: &mut Table<'_>, problems: &mut Problems) -> Words {
    let mut words = Words::default();
    let rate = "a rate as in \"20mbit\"";
    words.rate = table.take("rate").and_then(|e| e.read("rate", rate, problems));
    words.layer = table.take("counts").and_then(|e| e.word("counts", &LAYERS, problems));
    words.delay = table.take("delay").and_then(|e| e.read("delay", SPAN, problems));
    words.jitter = table.take("jitter").and_then(|e| e.read("jitter", SPAN, problems));
    words.loss = table.take("loss").and_then(|e| random(e, problems));
    if let Some(entry) = table.take("periodic-loss") {
        let every = entry.number("periodic-loss", 2..=u64::from(u32::MAX), problems);
        words.loss = every.map(|every| Loss::Periodic { every, phase: 0 });
    }
    words.queue = table.take("queue").and_then(|e| queue(e, problems));
    words.aqm = table.take("aqm").and_then(|e| aqm(e, problems));
    words.drop_head = table.take("drop-head").and_then(|e| e.yes_no("drop-head", problems));
    words.ecn = table.take("ecn").and_then(|e| e.yes_no("ecn", problems));
    words
}

fn random(entry: Entry<'_>, problems: &mut Problems) -> Option<Loss> {
    let help = "a part as in \"0.5%\"";
    let text = entry.text("loss", help, problems)?;
    let part = text.strip_suffix('%').and_then(|n| n.parse::<f64>().ok());
    let Some(part) = part.filter(|p| (0.0..=100.0).contains(p)) else {
        problems.error(
            entry.place,
            format!("\"loss\" cannot be \"{text}\""),
            format!("write {help}"),
        );
        return None;
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10^9")]
    let chance = Chance::ppb((part * 1e7).round() as u32);
    Some(Loss::Random { chance, correlation: Chance::NEVER })
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
        Words {
            rate: self.rate.or(other.rate),
            layer: self.layer.or(other.layer),
            delay: self.delay.or(other.delay),
            jitter: self.jitter.or(other.jitter),
            loss: self.loss.clone().or_else(|| other.loss.clone()),
            queue: self.queue.or(other.queue),
            aqm: self.aqm.or(other.aqm),
            drop_head: self.drop_head.or(other.drop_head),
            ecn: self.ecn.or(other.ecn),
        }
    }

    fn spec(&self) -> LinkSpec {
        let mut path = Impairments { delay: self.delay.unwrap_or_default(), ..Default::default() };
        path.loss = self.loss.clone().unwrap_or_default();
        path.jitter = self
            .jitter
            .map(|span| Jitter { shape: Shape::Uniform(span), correlation: Chance::NEVER });
        let usual = Queue::default();
        LinkSpec {
            rate: self.rate,
            layers: Link { layer: self.layer.unwrap_or_default(), overhead: 0 },
            queue: Queue {
                limit: self.queue.unwrap_or(usual.limit),
                drop_head: self.drop_head.unwrap_or(false),
                aqm: self.aqm.unwrap_or_default(),
                ecn: self.ecn.unwrap_or(false),
            },
            path,
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
