//! Who says what to whom, and when.

use std::net::IpAddr;

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};
use weir_sim::{Files, Source, TcpSpec};
use weir_units::{Bytes, Rate, Span, dscp};

use super::nodes::{Node, NodeKind};
use super::{SPAN, find};

/// One or more flows of the same kind.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Their name.
    pub name: String,
    /// The hosts at their ends, by their places.
    pub between: (usize, usize),
    /// What is said.
    pub source: Source,
    /// How many of them.
    pub count: u32,
    /// When they start; each of them up to `spread` later, by the seed.
    pub start: Span,
    /// How much later some start.
    pub spread: Span,
    /// How much further away some are, there and back.
    pub away: Span,
    /// When they have no more to say.
    pub stop: Option<Span>,
    /// How TCP behaves at both ends.
    pub tcp: [TcpSpec; 2],
    /// DSCP and ECN of their frames.
    pub traffic_class: u8,
    /// Addresses of the first of them at each end, if not the hosts'; the next have the next.
    pub addresses: [Option<IpAddr>; 2],
    /// Port at the far end, if not the usual one.
    pub port: u16,
}

const WORDS: [&str; 26] = [
    "from",
    "to",
    "source",
    "count",
    "start",
    "spread",
    "stop",
    "tcp",
    "tcp-from",
    "tcp-to",
    "dscp",
    "from-address",
    "to-address",
    "port",
    "rate",
    "bytes",
    "request",
    "think",
    "every",
    "on",
    "off",
    "rings",
    "keeps",
    "ecn",
    "frame",
    "away",
];
/// Of Ethernet, IPv4 and TCP.
const HEADERS: u64 = 54;
const SOURCES: [(&str, u8); 11] = [
    ("bulk", 0),
    ("web", 1),
    ("echo", 2),
    ("dns", 3),
    ("call", 4),
    ("game", 5),
    ("cbr", 6),
    ("poisson", 7),
    ("on-off", 8),
    ("voice", 9),
    ("pages", 10),
];

pub(super) fn read(
    name: &str,
    entry: Entry<'_>,
    nodes: &[Node],
    problems: &mut Problems,
) -> Option<Flow> {
    let mut table = entry.table(&format!("flow \"{name}\""), problems)?;
    let from = end("from", &mut table, entry, nodes, problems);
    let to = end("to", &mut table, entry, nodes, problems);
    let source = source(&mut table, entry, problems);
    let count = table.take("count").and_then(|e| e.number("count", 1..=100_000, problems));
    let mut span = |word: &str| table.take(word).and_then(|e| e.read(word, SPAN, problems));
    let (start, spread, stop) = (span("start"), span("spread"), span("stop"));
    let away: Option<Span> = span("away");
    let [both, near, far] =
        ["tcp", "tcp-from", "tcp-to"].map(|word| tcp(word, &mut table, problems));
    let mss = table.take("frame").and_then(|e| largest_segment(e, problems));
    let ecn = table.take("ecn").and_then(|e| e.yes_no("ecn", problems)).unwrap_or(false);
    let code = table.take("dscp").and_then(|e| code_point(e, problems)).unwrap_or(0);
    let addresses = ["from-address", "to-address"].map(|word| address(word, &mut table, problems));
    let port = table.take("port").and_then(|e| e.number("port", 1..=65_535, problems));
    table.finish(&WORDS, problems);
    let spec = |own: Option<TcpSpec>| {
        let spec = own.or_else(|| both.clone()).unwrap_or_default();
        TcpSpec { mss: mss.unwrap_or(spec.mss), ..spec }
    };
    Some(Flow {
        name: name.to_owned(),
        between: (from?, to?),
        source: source?,
        count: count.and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
        start: start.unwrap_or_default(),
        spread: spread.unwrap_or_default(),
        away: away.unwrap_or_default(),
        stop,
        tcp: [spec(near), spec(far)],
        traffic_class: code << 2 | u8::from(ecn) << 1,
        addresses,
        port: port.and_then(|n| u16::try_from(n).ok()).unwrap_or(0),
    })
}

fn end(
    word: &str,
    table: &mut Table<'_>,
    flow: Entry<'_>,
    nodes: &[Node],
    problems: &mut Problems,
) -> Option<usize> {
    let Some(entry) = table.take(word) else {
        let what = format!("the flow does not say \"{word}\"");
        problems.error(flow.key, what, format!("write {word} = \"client\""));
        return None;
    };
    let at = find(entry, word, "node", nodes.iter().map(|n| n.name.as_str()), problems)?;
    if !matches!(nodes[at].kind, NodeKind::Host(_)) {
        let what = format!("\"{}\" is no host", nodes[at].name);
        problems.error(entry.place, what, "only hosts speak");
        return None;
    }
    Some(at)
}

fn source(table: &mut Table<'_>, flow: Entry<'_>, problems: &mut Problems) -> Option<Source> {
    let Some(entry) = table.take("source") else {
        let names: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        let help = format!("write source = one of {}", names.join(", "));
        problems.error(flow.key, "the flow does not say what is said", help);
        return None;
    };
    let kind = entry.word("source", &SOURCES, problems)?;
    let size = |e: Entry<'_>, name: &str, problems: &mut Problems| {
        e.read::<Bytes>(name, "a size as in \"1500b\"", problems).map(Bytes::get)
    };
    let rate = table.take("rate").and_then(|e| e.read::<Rate>("rate", "a rate", problems));
    let bytes = table.take("bytes").and_then(|e| size(e, "bytes", problems));
    let request = table.take("request").and_then(|e| size(e, "request", problems));
    let keeps = table.take("keeps").and_then(|e| e.yes_no("keeps", problems)).unwrap_or(true);
    let mut span = |word: &str, usual: Span| {
        let said = table.take(word).and_then(|e| e.read(word, SPAN, problems));
        said.unwrap_or(usual)
    };
    let think = span("think", Span::from_secs(1));
    let every = span("every", Span::from_ms(200));
    let (on, off) = (span("on", Span::from_secs(1)), span("off", Span::from_secs(1)));
    let rings = span("rings", Span::ZERO);
    let frame = bytes.and_then(|b| usize::try_from(b).ok()).unwrap_or(1_514);
    let mut needed = || {
        if rate.is_none() {
            let what = "the flow does not say its rate";
            problems.error(flow.key, what, "write rate = \"1mbit\": of Ethernet frames");
        }
        rate
    };
    let request = request.and_then(|b| u32::try_from(b).ok()).unwrap_or(300);
    Some(match kind {
        0 => Source::Bulk { bytes },
        1 => Source::Web { files: Files::Classes, request, think, keeps },
        2 => Source::Echo { every },
        3 => Source::Dns { every },
        4 => Source::Call { rings },
        5 => Source::Game,
        6 => Source::Cbr { rate: needed()?, bytes: frame },
        7 => Source::Poisson { rate: needed()?, bytes: frame },
        8 => Source::OnOff { rate: needed()?, bytes: frame, on, off },
        9 => Source::Voice,
        _ => {
            let files = Files::Fixed(bytes.unwrap_or(100_000));
            Source::Web { files, request, think, keeps }
        }
    })
}

fn tcp(word: &str, table: &mut Table<'_>, problems: &mut Problems) -> Option<TcpSpec> {
    let entry = table.take(word)?;
    let presets: Vec<(&'static str, &'static str)> =
        TcpSpec::presets().into_iter().map(|name| (name, name)).collect();
    TcpSpec::preset(entry.word(word, &presets, problems)?)
}

/// What fits into a frame of TCP over IPv4, without options.
fn largest_segment(entry: Entry<'_>, problems: &mut Problems) -> Option<u16> {
    let bytes = entry.read::<Bytes>("frame", "a size as in \"64b\"", problems)?.get();
    let mss = bytes.checked_sub(HEADERS).and_then(|mss| u16::try_from(mss).ok());
    let mss = mss.filter(|mss| (1..=1_460).contains(mss));
    if mss.is_none() {
        let what = format!("\"frame\" cannot be \"{bytes}b\"");
        let help = "write 55b to 1514b: 54 bytes are headers, the check sequence does not count";
        problems.error(entry.place, what, help);
    }
    mss
}

fn code_point(entry: Entry<'_>, problems: &mut Problems) -> Option<u8> {
    let text = entry.text("dscp", "a code point as in \"ef\"", problems)?;
    let code = dscp::number(text).or_else(|| text.parse().ok().filter(|&n| n < 64));
    if code.is_none() {
        let help = "write a name as in \"ef\", \"af11\", or a number below 64";
        problems.error(entry.place, format!("\"dscp\" cannot be \"{text}\""), help);
    }
    code
}

fn address(word: &str, table: &mut Table<'_>, problems: &mut Problems) -> Option<IpAddr> {
    let entry = table.take(word)?;
    let text = entry.text(word, "an address as in \"10.0.1.1\"", problems)?;
    let address = text.parse().ok();
    if address.is_none() {
        let what = format!("\"{word}\" cannot be \"{text}\"");
        problems.error(entry.place, what, "write an address as in \"10.0.1.1\"");
    }
    address
}
