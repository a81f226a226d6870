//! `each`: a class that makes a leaf for every host (or block, or VLAN) with its first frame.

use weir_units::{By, ByWay, Prefix, Span, limits};

use crate::addresses::Groups;
use crate::amount::{Amount, both};
use crate::matching;
use crate::problem::{At, Position, Problems};
use crate::reader::Entry;

/// A template for leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each {
    /// What one leaf stands for.
    pub by: By,
    /// How many leaves at most; hosts beyond share one.
    pub count: u32,
    /// How long a silent leaf is kept before another host may have its place.
    pub age: Span,
    /// The guaranteed rate of each leaf.
    pub rate: ByWay<Option<At<Amount>>>,
    /// What each leaf may borrow up to.
    pub ceil: ByWay<Option<At<Amount>>>,
    /// What becomes of those that are not in `known`.
    pub unknown: Unknown,
    /// Who has a leaf of its own without asking.
    pub known: Vec<Known>,
    /// Where it is written.
    pub place: Position,
}

/// What becomes of a host that comes for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// It gets a leaf.
    #[default]
    Auto,
    /// It shares the leaf of those beyond the count, and is told of, until it is approved.
    Ask,
}

/// Somebody who is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// An address, or all of a block.
    Block(Prefix),
    /// A MAC address.
    Mac([u8; 6]),
    /// A VLAN.
    Vlan(u16),
}

const UNKNOWN: [(&str, Unknown); 2] = [("auto", Unknown::Auto), ("ask", Unknown::Ask)];

const LAN_PREFIX: By = By::LanPrefix { v4: 24, v6: 64 };
const WAN_PREFIX: By = By::WanPrefix { v4: 24, v6: 64 };

/// The words for [`By`].
pub(crate) const BY: [(&str, By); 6] = [
    ("lan-host", By::LanHost),
    ("wan-host", By::WanHost),
    ("lan-prefix", LAN_PREFIX),
    ("wan-prefix", WAN_PREFIX),
    ("lan-mac", By::LanMac),
    ("vlan", By::Vlan),
];

/// How many leaves an `each` may be told to make.
const MOST: u64 = 1 << 18;

pub(crate) fn read(entry: Entry<'_>, groups: &Groups, problems: &mut Problems) -> Option<Each> {
    const RATE: &str = "a rate such as \"1mbit\", or a percentage such as \"5%\"";
    let mut each = Each {
        by: By::LanHost,
        count: limits::EACH_LEAVES,
        age: Span::from_secs(limits::EACH_IDLE_SECS),
        rate: ByWay::same(None),
        ceil: ByWay::same(None),
        unknown: Unknown::Auto,
        known: Vec::new(),
        place: entry.place,
    };
    if !entry.value.is_table() {
        each.by = entry.word("each", &BY, problems)?;
        return Some(each);
    }
    let mut table = entry.table("\"each\"", problems)?;
    let by = table.take("by");
    if by.is_none() {
        let help = "write each = { by = \"lan-host\", ceil = \"10mbit\" }";
        problems.error(entry.place, "\"each\" has no \"by\"", help);
    }
    let by = by.and_then(|e| e.word("by", &BY, problems));
    let mut known = vec!["by", "count", "age", "rate", "ceil", "unknown", "known"];
    // by an unknown word, all others are read: what is wrong with them shall not come later
    each.by = by.unwrap_or(LAN_PREFIX);
    if let By::LanPrefix { v4, v6 } | By::WanPrefix { v4, v6 } = &mut each.by {
        known.extend(["v4", "v6"]);
        let mut length = |word, most: u64, length: &mut u8| {
            let said = table.take(word).and_then(|e| e.number(word, 1..=most, problems));
            *length = said.and_then(|n| u8::try_from(n).ok()).unwrap_or(*length);
        };
        length("v4", 32, v4);
        length("v6", 128, v6);
    }
    if let Some(count) = table.take("count").and_then(|e| e.number("count", 1..=MOST, problems)) {
        each.count = u32::try_from(count).unwrap_or(each.count);
    }
    if let Some(age) =
        table.take("age").and_then(|e| e.read("age", "a time such as \"5m\"", problems))
    {
        each.age = age;
    }
    each.rate = both(table.take("rate"), "rate", RATE, problems);
    each.ceil = both(table.take("ceil"), "ceil", RATE, problems);
    let unknown = table.take("unknown").and_then(|e| e.word("unknown", &UNKNOWN, problems));
    each.unknown = unknown.unwrap_or_default();
    if let Some(entry) = table.take("known") {
        each.known = approved(entry, each.by, groups, problems);
        if each.unknown == Unknown::Auto {
            let help = "add unknown = \"ask\", or remove \"known\"";
            problems.warning(entry.key, "\"known\" has no effect: every host gets a leaf", help);
        }
    }
    table.finish(&known, problems);
    by.map(|_| each)
}

/// Who is approved, in the terms of what a leaf stands for.
fn approved(entry: Entry<'_>, by: By, groups: &Groups, problems: &mut Problems) -> Vec<Known> {
    let (what, example) = match by {
        By::LanMac => ("a MAC address", "\"02:00:5e:10:00:01\""),
        By::Vlan => ("a VLAN", "10"),
        _ => ("an address, a block or a group", "\"10.0.9.7\""),
    };
    let mut known = Vec::new();
    for entry in entry.list() {
        let text = entry.value.as_str();
        let before = known.len();
        match by {
            By::Vlan => {
                let vlan = entry.number("known", 1..=4_094, problems);
                known.extend(vlan.and_then(|vlan| u16::try_from(vlan).ok()).map(Known::Vlan));
                continue;
            }
            By::LanMac => known.extend(text.and_then(matching::mac).map(Known::Mac)),
            _ => {
                let group = text.and_then(|text| groups.get(text));
                let block = text.and_then(|text| text.parse::<Prefix>().ok());
                let blocks = group.map_or(&[][..], |group| group.blocks());
                known.extend(blocks.iter().copied().chain(block).map(Known::Block));
                if group.is_some() {
                    // one without addresses is none of our business here
                    continue;
                }
            }
        }
        if known.len() == before {
            let said = text.map_or_else(|| entry.kind().to_owned(), |text| format!("\"{text}\""));
            let what = format!("\"known\" cannot be {said}: it is not {what}");
            problems.error(entry.place, what, format!("write known = [{example}]"));
        }
    }
    known
}
