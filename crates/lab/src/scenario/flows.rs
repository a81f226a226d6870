//! Who says what to whom, and when.

use std::net::IpAddr;

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};
use weir_sim::{Source, TcpSpec};
use weir_units::{Bytes, Span, dscp};

use super::nodes::{Node, NodeKind};
use super::{SPAN, find, source};

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

pub(super) fn read(
    name: &str,
    entry: Entry<'_>,
    nodes: &[Node],
    problems: &mut Problems,
) -> Option<Flow> {
    let mut table = entry.table(&format!("flow \"{name}\""), problems)?;
    let from = end("from", &mut table, entry, nodes, problems);
    let to = end("to", &mut table, entry, nodes, problems);
    let source = source::read(&mut table, entry, problems);
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
