//! Raw bytes at a place in the frame, for what has no name.

use weir_units::{Origin, Raw};

use super::{Match, When, line};
use crate::addresses::Groups;
use crate::problem::Problems;
use crate::reader::{Entry, whole};

const FROM: [(&str, Origin); 4] = [
    ("frame", Origin::Frame),
    ("ip", Origin::Net),
    ("transport", Origin::Transport),
    ("payload", Origin::Payload),
];

/// `{ bytes = { at, length, value, mask }, when = "udp port 53" }`.
pub(super) fn table(entry: &Entry<'_>, groups: &Groups, problems: &mut Problems) -> Option<Match> {
    let mut table = entry.table("a match", problems)?;
    let words = match table.take("when") {
        Some(e) => {
            let text = e.text("when", "a rule such as \"udp port 53\"", problems);
            text.map(|t| (t.to_owned(), line(&e, t, groups, problems)))
        }
        None => Some(("any".to_owned(), Some(vec![When::default()]))),
    };
    let bytes = table.take("bytes");
    if bytes.is_none() {
        let help =
            "write { when = \"udp\", bytes = { at = \"payload 0\", length = 2, value = 0x1234 } }";
        problems.error(entry.place, "a match in braces needs its \"bytes\"", help);
    }
    let raw = bytes.and_then(|e| raw(e, problems));
    table.finish(&["when", "bytes"], problems);
    let (text, when) = words?;
    let raw = raw?;
    let when = when?.into_iter().map(|when| When { raw: Some(raw), ..when }).collect();
    Some(Match { when, text: format!("{text}, {}", show_raw(&raw)), place: entry.place })
}

fn show_raw(raw: &Raw) -> String {
    let from = FROM.iter().find(|(_, f)| *f == raw.from).map_or("frame", |(name, _)| name);
    format!("bytes {from} {} length {} = {:#x} & {:#x}", raw.at, raw.length, raw.value, raw.mask)
}

fn raw(entry: Entry<'_>, problems: &mut Problems) -> Option<Raw> {
    let mut table = entry.table("\"bytes\"", problems)?;
    let at = match table.take("at") {
        Some(e) if e.value.is_integer() => {
            e.number("at", 0..=2_047, problems).map(|n| (Origin::Frame, n))
        }
        Some(e) => {
            e.text("at", "\"payload 0\" or a number", problems).and_then(|t| place(t, e, problems))
        }
        None => {
            problems.error(entry.place, "\"bytes\" has no \"at\"", "write at = \"ip 9\"");
            None
        }
    };
    let length = match table.take("length") {
        Some(e) => e.number("length", 1..=8, problems),
        None => Some(1),
    };
    let number = |e: Entry<'_>, name: &str, problems: &mut Problems| {
        let most = length.map_or(u64::MAX, |l| u64::MAX >> (64 - 8 * l));
        e.number(name, 0..=most, problems)
    };
    let value = match table.take("value") {
        Some(e) => number(e, "value", problems),
        None => {
            problems.error(entry.place, "\"bytes\" has no \"value\"", "write value = 0x45");
            None
        }
    };
    let mask = match table.take("mask") {
        Some(e) => number(e, "mask", problems),
        None => length.map(|l| u64::MAX >> (64 - 8 * l)),
    };
    table.finish(&["at", "length", "value", "mask"], problems);
    let ((from, at), length, value, mask) = (at?, length?, value?, mask?);
    if value & !mask != 0 {
        let what =
            format!("\"value\" {value:#x} has bits outside \"mask\" {mask:#x}: it never matches");
        problems.error(entry.place, what, format!("write value = {:#x}", value & mask));
        return None;
    }
    let small = |n: u64| u16::try_from(n).unwrap_or(u16::MAX);
    Some(Raw { from, at: small(at), length: u8::try_from(length).unwrap_or(8), value, mask })
}

fn place(text: &str, entry: Entry<'_>, problems: &mut Problems) -> Option<(Origin, u64)> {
    let mut words = text.split_whitespace();
    let from = words.next().and_then(|w| FROM.iter().find(|(name, _)| *name == w));
    let at = words.next().and_then(whole).filter(|&n: &u64| n < 2_048);
    if let (Some((_, from)), Some(at), None) = (from, at, words.next()) {
        return Some((*from, at));
    }
    let help = "write \"frame 12\", \"ip 9\", \"transport 13\" or \"payload 0\"";
    problems.error(entry.place, format!("\"at\" cannot be \"{text}\""), help);
    None
}
