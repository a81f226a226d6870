//! What happens to the frames of a leaf while they wait and when they leave: queue, AQM, sessions,
//! TCP, marking and policing. A leaf that does not say a word takes it from the nearest class above
//! that does.

use weir_units::{ByWay, Bytes, Rate, Span, dscp};

use crate::police::Police;
use crate::problem::{Position, Problems};
use crate::reader::{Entry, Table, whole};

/// The words of a leaf; `None` where the operator said nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafWords {
    /// How frames of different flows wait.
    pub queue: Option<Queue>,
    /// How much may wait.
    pub limit: Option<Limit>,
    /// Who is told to slow down, and when.
    pub aqm: Option<Aqm>,
    /// Whether flows that can are told by a mark instead of a loss.
    pub ecn: Option<bool>,
    /// What is written into the DSCP of leaving frames.
    pub dscp: Option<Mark>,
    /// What is done to TCP connections.
    pub tcp: Option<Tcp>,
    /// What each session gets.
    pub session: Option<Session>,
    /// What happens to frames above a rate, without a queue.
    pub police: Option<Police>,
}

impl LeafWords {
    /// These words, and those of `above` where these say nothing. Sessions and policing are a
    /// class's own.
    #[must_use]
    pub fn or(&self, above: &LeafWords) -> LeafWords {
        LeafWords {
            queue: self.queue.or(above.queue),
            limit: self.limit.or(above.limit),
            aqm: self.aqm.or(above.aqm),
            ecn: self.ecn.or(above.ecn),
            dscp: self.dscp.or(above.dscp),
            tcp: self.tcp.or(above.tcp),
            session: self.session.clone(),
            police: self.police,
        }
    }
}

/// How frames of different flows wait in a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// One queue, first in first out.
    Fifo,
    /// A queue per flow, each its turn.
    Fair,
    /// Each host its turn, and each flow of the host.
    #[default]
    FairHost,
}

/// How much may wait in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many frames.
    Frames(u32),
    /// So many bytes.
    Bytes(Bytes),
    /// As much as the leaf's rate carries in this time.
    Time(Span),
}

/// Active queue management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aqm {
    /// Which algorithm.
    pub kind: AqmKind,
    /// CoDel, COBALT, PIE: the delay to hold.
    pub target: Option<Span>,
    /// CoDel, COBALT: how long above the target is too long; PIE: how often it looks.
    pub interval: Option<Span>,
    /// RED: no drop below this.
    pub min: Option<Bytes>,
    /// RED: always drop above this.
    pub max: Option<Bytes>,
    /// RED: drop probability at `max`, in millionths.
    pub probability: Option<u32>,
}

/// The algorithms of [`Aqm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AqmKind {
    /// Only the limit drops.
    None,
    /// Random early detection.
    Red,
    /// RED with drop precedences.
    Wred,
    /// Controlled delay.
    Codel,
    /// CoDel with BLUE, as CAKE has it.
    Cobalt,
    /// Proportional integral controller enhanced.
    Pie,
}

/// What is written into the DSCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// What came in.
    Keep,
    /// This code point.
    Set(u8),
}

/// What is done to TCP. What is not said is chosen by the leaf's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Size the advertised window.
    pub window: Option<bool>,
    /// Release acknowledgements evenly.
    pub pace_acks: Option<bool>,
    /// Clamp the segment size.
    pub mss: Option<Mss>,
    /// Segments that a sized window lets out at least.
    pub least: Option<u8>,
    /// What a loss does to a sized window.
    pub loss: TcpLoss,
    /// How the round trip is measured.
    pub round_trip: TcpClock,
    /// What connections are sized for.
    pub rate: TcpRate,
}

/// The rate that a leaf's connections share when their windows are sized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TcpRate {
    /// What the leaf gets now.
    #[default]
    Present,
    /// What it is guaranteed.
    Guaranteed,
    /// So much, where it is written.
    At(ByWay<Option<Rate>>),
}

/// What a loss does to a sized window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TcpLoss {
    /// Nothing.
    #[default]
    Hold,
    /// It is let go for two seconds.
    Release,
}

/// How the round trip of connections is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TcpClock {
    /// By the microsecond.
    #[default]
    Fine,
    /// By ticks of 500 ms.
    Coarse,
}

/// The segment size that connections may agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mss {
    /// Whatever they like.
    Keep,
    /// Small where a full frame would hold up a call.
    Auto,
    /// At most so many bytes.
    AtMost(u16),
}

/// What each session of a leaf gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// At least.
    pub min: ByWay<Option<Rate>>,
    /// At most.
    pub max: ByWay<Option<Rate>>,
    /// How many have the minimum.
    pub count: Option<u32>,
    /// How many of these places one host may have.
    pub host: Option<u32>,
    /// What becomes of one more.
    pub next: Next,
    /// Where it is written.
    pub place: Position,
}

/// What the session beyond the count gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its part of what all have.
    Share,
    /// Nothing until one ends.
    Wait,
    /// A refusal.
    Reject,
}

pub(crate) const WORDS: [&str; 8] =
    ["queue", "limit", "aqm", "ecn", "dscp", "tcp", "session", "police"];

pub(crate) const QUEUES: [(&str, Queue); 3] =
    [("fifo", Queue::Fifo), ("fair", Queue::Fair), ("fair-host", Queue::FairHost)];
pub(crate) const AQMS: [(&str, AqmKind); 6] = [
    ("none", AqmKind::None),
    ("red", AqmKind::Red),
    ("wred", AqmKind::Wred),
    ("codel", AqmKind::Codel),
    ("cobalt", AqmKind::Cobalt),
    ("pie", AqmKind::Pie),
];
pub(crate) const NEXT: [(&str, Next); 3] =
    [("share", Next::Share), ("wait", Next::Wait), ("reject", Next::Reject)];

pub(crate) const LOSSES: [(&str, TcpLoss); 2] =
    [("hold", TcpLoss::Hold), ("release", TcpLoss::Release)];
pub(crate) const CLOCKS: [(&str, TcpClock); 2] =
    [("fine", TcpClock::Fine), ("coarse", TcpClock::Coarse)];

/// Of these, the words that a link may say for all its leaves: the others are a class's own.
pub(crate) const LINK_WORDS: [&str; 6] = ["queue", "limit", "aqm", "ecn", "dscp", "tcp"];

pub(crate) fn read(table: &mut Table<'_>, problems: &mut Problems) -> LeafWords {
    LeafWords {
        queue: table.take("queue").and_then(|e| queue(e, problems)),
        limit: table.take("limit").and_then(|e| limit(e, problems)),
        aqm: table.take("aqm").and_then(|e| aqm(e, problems)),
        ecn: table.take("ecn").and_then(|e| e.yes_no("ecn", problems)),
        dscp: table.take("dscp").and_then(|e| mark(e, problems)),
        tcp: table.take("tcp").and_then(|e| tcp(e, problems)),
        session: table.take("session").and_then(|e| session(e, problems)),
        police: table.take("police").and_then(|e| crate::police::read(e, problems)),
    }
}

/// What a link says for all its leaves.
pub(crate) fn read_of_link(table: &mut Table<'_>, problems: &mut Problems) -> LeafWords {
    for word in ["session", "police"] {
        if let Some(entry) = table.take(word) {
            let help = "write it in the class that it applies to";
            problems.error(entry.key, format!("a link cannot have \"{word}\""), help);
        }
    }
    read(table, problems)
}

/// What the queues of other programs are here: the queue and the AQM.
fn known_elsewhere(text: &str) -> Option<(&'static str, &'static str)> {
    Some(match text {
        "fq_codel" | "fq-codel" => ("fair", "codel"),
        "fq_pie" => ("fair", "pie"),
        "cake" => ("fair-host", "cobalt"),
        "fq" | "sfq" | "drr" | "wfq" => ("fair", "none"),
        "pfifo" | "bfifo" | "pfifo_fast" | "droptail" => ("fifo", "none"),
        "codel" | "cobalt" | "pie" | "red" | "wred" => ("fifo", ""),
        _ => return None,
    })
}

fn queue(entry: Entry<'_>, problems: &mut Problems) -> Option<Queue> {
    let text = entry.value.as_str().unwrap_or_default();
    let Some((queue, aqm)) = known_elsewhere(text) else {
        return entry.word("queue", &QUEUES, problems);
    };
    let help = match aqm {
        "" => format!("write aqm = \"{text}\"; \"queue\" is fifo, fair or fair-host"),
        "none" => format!("write queue = \"{queue}\""),
        aqm => format!("write queue = \"{queue}\", and aqm = \"{aqm}\" beside it"),
    };
    problems.error(entry.place, format!("\"queue\" cannot be \"{text}\""), help);
    None
}

fn limit(entry: Entry<'_>, problems: &mut Problems) -> Option<Limit> {
    const HELP: &str = "write \"1000 frames\", \"64kb\" or \"20ms\"";
    let text = entry.text("limit", "\"1000 frames\", \"64kb\" or \"20ms\"", problems)?;
    let frames = text.strip_suffix("frames").or_else(|| text.strip_suffix("packets"));
    let limit = match frames {
        Some(number) => whole(number.trim()).map(Limit::Frames),
        None => {
            (text.parse().map(Limit::Bytes).ok()).or_else(|| text.parse().map(Limit::Time).ok())
        }
    };
    let is_zero = match limit {
        Some(Limit::Frames(frames)) => frames == 0,
        Some(Limit::Bytes(bytes)) => bytes == Bytes::ZERO,
        Some(Limit::Time(time)) => time == Span::ZERO,
        None => false,
    };
    if limit.is_none() || is_zero {
        let why = if is_zero { ": its queue would drop every frame" } else { "" };
        problems.error(entry.place, format!("\"limit\" cannot be \"{text}\"{why}"), HELP);
    }
    limit.filter(|_| !is_zero)
}

fn aqm(entry: Entry<'_>, problems: &mut Problems) -> Option<Aqm> {
    let plain =
        |kind| Aqm { kind, target: None, interval: None, min: None, max: None, probability: None };
    if !entry.value.is_table() {
        if let Some(text @ ("fq_codel" | "fq-codel" | "fq_pie" | "cake")) = entry.value.as_str() {
            let (queue, aqm) = known_elsewhere(text).unwrap_or(("fair", "codel"));
            let help = format!("write aqm = \"{aqm}\", and queue = \"{queue}\" beside it");
            problems.error(entry.place, format!("\"aqm\" cannot be \"{text}\""), help);
            return None;
        }
        return entry.word("aqm", &AQMS, problems).map(plain);
    }
    let mut table = entry.table("\"aqm\"", problems)?;
    let kind = table.take("kind");
    if kind.is_none() {
        let help = "write aqm = { kind = \"codel\", target = \"5ms\" }";
        problems.error(entry.place, "\"aqm\" has no \"kind\"", help);
    }
    let kind = kind.and_then(|e| e.word("kind", &AQMS, problems));
    // of an unknown kind, all words are read: what is wrong with them shall not come later
    let is = |kinds: &[AqmKind]| kind.is_none_or(|kind| kinds.contains(&kind));
    let mut aqm = plain(kind.unwrap_or(AqmKind::None));
    let mut known = vec!["kind"];
    if is(&[AqmKind::Codel, AqmKind::Cobalt, AqmKind::Pie]) {
        known.extend(["target", "interval"]);
        let time = "a time such as \"5ms\"";
        aqm.target = table.take("target").and_then(|e| e.read("target", time, problems));
        aqm.interval = table.take("interval").and_then(|e| e.read("interval", time, problems));
    }
    if is(&[AqmKind::Red, AqmKind::Wred]) {
        known.extend(["min", "max", "probability"]);
        let size = "an amount of bytes such as \"30kb\"";
        aqm.min = table.take("min").and_then(|e| e.read("min", size, problems));
        aqm.max = table.take("max").and_then(|e| e.read("max", size, problems));
        aqm.probability = table.take("probability").and_then(|e| part("probability", e, problems));
        if let (Some(min), Some(max)) = (aqm.min, aqm.max)
            && min >= max
        {
            let what = format!("\"min\" {min} is not below \"max\" {max}");
            problems.error(
                entry.place,
                what,
                "RED drops with rising probability between min and \
                max",
            );
        }
    }
    table.finish(&known, problems);
    kind.map(|_| aqm)
}

fn part(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Option<u32> {
    match entry.read(name, "a percentage such as \"10%\"", problems)? {
        crate::amount::Amount::Part(part) => Some(part),
        crate::amount::Amount::Rate(_) => {
            problems.error(
                entry.place,
                format!("\"{name}\" is a rate"),
                "write a percentage such as \"10%\"",
            );
            None
        }
    }
}

fn mark(entry: Entry<'_>, problems: &mut Problems) -> Option<Mark> {
    if entry.value.as_str() == Some("keep") {
        return Some(Mark::Keep);
    }
    code_point("dscp", entry, problems).map(Mark::Set)
}

pub(crate) fn code_point(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Option<u8> {
    if entry.value.is_integer() {
        return entry.number(name, 0..=63, problems).and_then(|n| u8::try_from(n).ok());
    }
    let text = entry.text(name, "a code point such as \"ef\", \"af41\" or 46", problems)?;
    let number = dscp::number(text);
    if number.is_none() {
        let what = format!("\"{name}\" cannot be \"{text}\"");
        problems.error(entry.place, what, crate::nearest::instead(text, dscp::names()));
    }
    number
}

fn tcp(entry: Entry<'_>, problems: &mut Problems) -> Option<Tcp> {
    const RATE: &str = "a rate such as \"1mbit\", or \"guaranteed\"";
    let mut table = entry.table("\"tcp\"", problems)?;
    let mut yes = |word| table.take(word).and_then(|e| e.yes_no(word, problems));
    let (window, pace_acks) = (yes("window"), yes("pace-acks"));
    let mss = table.take("mss").and_then(|e| mss(e, problems));
    let least = table.take("least").and_then(|e| e.number("least", 1..=64, problems));
    let loss = table.take("loss").and_then(|e| e.word("loss", &LOSSES, problems));
    let round_trip = table.take("round-trip");
    let round_trip = round_trip.and_then(|e| e.word("round-trip", &CLOCKS, problems));
    let rate = match table.take("rate") {
        None => TcpRate::Present,
        Some(e) if e.value.as_str() == Some("guaranteed") => TcpRate::Guaranteed,
        Some(e) => {
            let both = crate::amount::both::<Rate>(Some(e), "rate", RATE, problems);
            TcpRate::At(both.map(|r| r.map(|r| r.value)))
        }
    };
    table.finish(&["window", "pace-acks", "mss", "least", "loss", "round-trip", "rate"], problems);
    Some(Tcp {
        window,
        pace_acks,
        mss,
        least: least.and_then(|n| u8::try_from(n).ok()),
        loss: loss.unwrap_or_default(),
        round_trip: round_trip.unwrap_or_default(),
        rate,
    })
}

fn mss(entry: Entry<'_>, problems: &mut Problems) -> Option<Mss> {
    match entry.value.as_str() {
        Some("auto") => Some(Mss::Auto),
        Some("keep") => Some(Mss::Keep),
        Some(_) => {
            let help = "write mss = \"auto\", mss = \"keep\" or mss = 1400";
            problems.error(entry.place, "\"mss\" is not a segment size", help);
            None
        }
        None => {
            let most = entry.number("mss", 88..=9_216, problems)?;
            u16::try_from(most).ok().map(Mss::AtMost)
        }
    }
}

fn session(entry: Entry<'_>, problems: &mut Problems) -> Option<Session> {
    const RATE: &str = "a rate such as \"1mbit\"";
    let mut table = entry.table("\"session\"", problems)?;
    let min = crate::amount::both::<Rate>(table.take("min"), "min", RATE, problems);
    let max = crate::amount::both::<Rate>(table.take("max"), "max", RATE, problems);
    let count = table.take("count").and_then(|e| e.number("count", 1..=(1 << 20) - 1, problems));
    let host = table.take("host").and_then(|e| e.number("host", 1..=(1 << 20) - 1, problems));
    let next = table.take("next").and_then(|e| e.word("next", &NEXT, problems));
    table.finish(&["min", "max", "count", "host", "next"], problems);
    for (direction, (min, max)) in min.zip(max).named() {
        if let (Some(min), Some(max)) = (min, max)
            && min.value > max.value
        {
            let what = format!(
                "each session gets at least {} {direction} but at most {}",
                min.value, max.value
            );
            problems.error(max.place, what, "raise \"max\" or lower \"min\"");
        }
    }
    if count.is_some() && min.down.is_none() && min.up.is_none() {
        let help = "add min = \"1mbit\": the guarantee of each session";
        problems.error(entry.place, "\"session\" has a \"count\" but no guarantee", help);
    }
    if host.is_some() && (count.is_none() || next.is_none_or(|next| next == Next::Share)) {
        let what = "\"host\" limits the places of a host, and this \"session\" has no places";
        problems.error(entry.place, what, "add count = 20 and next = \"wait\" or \"reject\"");
    }
    Some(Session {
        min: min.map(|m| m.map(|m| m.value)),
        max: max.map(|m| m.map(|m| m.value)),
        count: count.and_then(|n| u32::try_from(n).ok()),
        host: host.and_then(|n| u32::try_from(n).ok()),
        next: next.unwrap_or(Next::Share),
        place: entry.place,
    })
}
