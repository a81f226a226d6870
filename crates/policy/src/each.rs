//! `each`: a class that makes a leaf for every host (or block, or VLAN) with its first frame.

use weir_units::{Span, limits};

use crate::amount::{Amount, Both, both};
use crate::problem::{At, Place, Problems};
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
    pub rate: Both<Option<At<Amount>>>,
    /// What each leaf may borrow up to.
    pub ceil: Both<Option<At<Amount>>>,
    /// Where it is written.
    pub place: Place,
}

/// What one leaf stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// An address on the LAN side.
    LanHost,
    /// An address on the WAN side.
    WanHost,
    /// A block of addresses on the LAN side, of these lengths.
    LanPrefix {
        /// Length of IPv4 blocks.
        v4: u8,
        /// Length of IPv6 blocks.
        v6: u8,
    },
    /// A block of addresses on the WAN side, of these lengths.
    WanPrefix {
        /// Length of IPv4 blocks.
        v4: u8,
        /// Length of IPv6 blocks.
        v6: u8,
    },
    /// A MAC address on the LAN side.
    LanMac,
    /// A VLAN.
    Vlan,
}

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

pub(crate) fn read(entry: Entry<'_>, problems: &mut Problems) -> Option<Each> {
    const RATE: &str = "a rate such as \"1mbit\", or a part such as \"5%\"";
    let mut each = Each {
        by: By::LanHost,
        count: limits::EACH_LEAVES,
        age: Span::from_secs(limits::EACH_IDLE_SECS),
        rate: Both::same(None),
        ceil: Both::same(None),
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
        problems.error(entry.place, "\"each\" does not say \"by\" what", help);
    }
    let by = by.and_then(|e| e.word("by", &BY, problems));
    let mut known = vec!["by", "count", "age", "rate", "ceil"];
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
    table.finish(&known, problems);
    by.map(|_| each)
}
