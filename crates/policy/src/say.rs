//! Values back into the words an operator writes: for diffs, explanations and reports.

use crate::class::{ENFORCE, Enforce, PRIORITY};
use crate::each::{BY, Known};
use crate::leaf::{
    AQMS, Aqm, CLOCKS, LOSSES, LeafWords, Limit, Mark, Mss, NEXT, QUEUES, Queue, Session, Tcp,
    TcpClock, TcpLoss, TcpRate,
};
use crate::plan::{EachPlan, Shares};
use crate::police::Police;
use weir_units::{By, ByWay, Priority};

/// The name that `words` has for a value.
pub(crate) fn name_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, v)| v == value).map_or("?", |(name, _)| name)
}

/// `2mbit`, or `2mbit down, 1mbit up`.
pub(crate) fn pair<T: PartialEq + ToString>(both: &ByWay<T>) -> String {
    if both.down == both.up {
        return both.down.to_string();
    }
    format!("{} down, {} up", both.down.to_string(), both.up.to_string())
}

/// The priority's word.
#[must_use]
pub fn priority(priority: Priority) -> &'static str {
    name_of(&PRIORITY, &priority)
}

/// The word for who holds a class to its rates.
#[must_use]
pub fn enforce(enforce: Enforce) -> &'static str {
    name_of(&ENFORCE, &enforce)
}

/// The words of a leaf as `word = value`, those that are set.
#[must_use]
pub fn leaf(words: &LeafWords) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    let mut add = |word, value: Option<String>| said.extend(value.map(|v| (word, v)));
    add("queue", words.queue.map(|q| queue(q).to_owned()));
    add("limit", words.limit.map(limit));
    add("aqm", words.aqm.as_ref().map(aqm));
    add("ecn", words.ecn.map(|e| e.to_string()));
    add("dscp", words.dscp.map(mark));
    add("tcp", words.tcp.map(tcp));
    add("session", words.session.as_ref().map(session));
    add("police", words.police.map(police));
    said
}

/// How a class makes leaves.
#[must_use]
pub fn each(each: &EachPlan) -> String {
    let Shares { rate, ceil, .. } = each.shares.down;
    let known = match &each.known {
        None => String::new(),
        Some(known) => format!(", unknown ones ask, known {}", list(known)),
    };
    format!(
        "{}, at most {}, kept {}{known}, rate {rate}, ceil {ceil} down; rate {}, ceil {} up",
        by(each.by),
        each.count,
        each.age,
        each.shares.up.rate,
        each.shares.up.ceil
    )
}

/// MAC addresses with blanks between them; `none`.
pub(crate) fn macs(macs: &[[u8; 6]]) -> String {
    if macs.is_empty() {
        return "none".to_owned();
    }
    let known: Vec<Known> = macs.iter().copied().map(Known::Mac).collect();
    list(&known)
}

/// A MAC address.
pub(crate) fn mac([a, b, c, d, e, f]: &[u8; 6]) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

fn list(known: &[Known]) -> String {
    let one = |known: &Known| match known {
        Known::Block(block) => block.to_string(),
        Known::Mac(of) => mac(of),
        Known::Vlan(vlan) => format!("vlan {vlan}"),
    };
    let said: Vec<String> = known.iter().map(one).collect();
    if said.is_empty() { "nobody".to_owned() } else { said.join(" ") }
}

/// What a made leaf stands for.
#[must_use]
pub fn by(by: By) -> String {
    match by {
        By::LanPrefix { v4, v6 } => format!("lan-prefix /{v4} and /{v6}"),
        By::WanPrefix { v4, v6 } => format!("wan-prefix /{v4} and /{v6}"),
        other => name_of(&BY, &other).to_owned(),
    }
}

/// The queue's word.
#[must_use]
pub fn queue(queue: Queue) -> &'static str {
    name_of(&QUEUES, &queue)
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Frames(n) => format!("{n} frames"),
        Limit::Bytes(bytes) => bytes.to_string(),
        Limit::Time(time) => time.to_string(),
    }
}

fn aqm(aqm: &Aqm) -> String {
    let mut text = name_of(&AQMS, &aqm.kind).to_owned();
    let mut add = |word: &str, value: Option<String>| {
        text.extend(value.map(|value| format!(" {word} {value}")));
    };
    add("target", aqm.target.map(|t| t.to_string()));
    add("interval", aqm.interval.map(|t| t.to_string()));
    add("min", aqm.min.map(|b| b.to_string()));
    add("max", aqm.max.map(|b| b.to_string()));
    add("probability", aqm.probability.map(|p| crate::Amount::Part(p).to_string()));
    text
}

fn mark(mark: Mark) -> String {
    match mark {
        Mark::Keep => "keep".to_owned(),
        Mark::Set(number) => code_point(number),
    }
}

/// A code point's name, or its number.
#[must_use]
pub fn code_point(number: u8) -> String {
    weir_units::dscp::name(number).map_or_else(|| number.to_string(), str::to_owned)
}

fn tcp(tcp: Tcp) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut add = |word: &str, value: Option<String>| {
        said.extend(value.map(|value| format!("{word} {value}")));
    };
    add("window", tcp.window.map(|on| on.to_string()));
    add("pace-acks", tcp.pace_acks.map(|on| on.to_string()));
    add("mss", tcp.mss.map(mss));
    add("least", tcp.least.map(|segments| segments.to_string()));
    let other_loss = tcp.loss != TcpLoss::default();
    add("loss", other_loss.then(|| name_of(&LOSSES, &tcp.loss).to_owned()));
    let other_clock = tcp.round_trip != TcpClock::default();
    add("round-trip", other_clock.then(|| name_of(&CLOCKS, &tcp.round_trip).to_owned()));
    let rate = |both: ByWay<Option<weir_units::Rate>>| {
        pair(&both.map(|r| r.map_or_else(|| "-".to_owned(), |r| r.to_string())))
    };
    add(
        "rate",
        match tcp.rate {
            TcpRate::Present => None,
            TcpRate::Guaranteed => Some("guaranteed".to_owned()),
            TcpRate::At(both) => Some(rate(both)),
        },
    );
    said.join(", ")
}

fn mss(mss: Mss) -> String {
    match mss {
        Mss::Keep => "keep".to_owned(),
        Mss::Auto => "auto".to_owned(),
        Mss::AtMost(most) => most.to_string(),
    }
}

fn session(session: &Session) -> String {
    let rate = |both: &ByWay<Option<weir_units::Rate>>| {
        pair(&both.map(|r| r.map_or_else(|| "-".to_owned(), |r| r.to_string())))
    };
    let host = session.host.map_or_else(String::new, |n| format!("host {n}, "));
    format!(
        "min {}, max {}, count {}, {host}next {}",
        rate(&session.min),
        rate(&session.max),
        session.count.map_or_else(|| "any".to_owned(), |n| n.to_string()),
        name_of(&NEXT, &session.next)
    )
}

fn police(police: Police) -> String {
    let mut text = format!("rate {}", police.rate);
    let mut add = |word: &str, value: Option<String>| {
        text.extend(value.map(|value| format!(", {word} {value}")));
    };
    add("burst", police.burst.map(|b| b.to_string()));
    add("peak", police.peak.map(|b| b.to_string()));
    add("peak-burst", police.peak_burst.map(|b| b.to_string()));
    match police.colours {
        Some(colours) => add("colours", Some(colours.map(code_point).join(" "))),
        None => add("excess", Some(police.excess.map_or_else(|| "drop".to_owned(), code_point))),
    }
    add("aware", police.aware.then(|| "true".to_owned()));
    text
}
