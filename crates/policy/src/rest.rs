//! `rest` of a link: the ceiling of `(rest)`, where frames go that belong to no class and no
//! subscriber.

use std::str::FromStr;

use weir_units::{ByWay, Rate, Unreadable};

use crate::amount::{Amount, both};
use crate::problem::{At, Problems};
use crate::reader::Entry;

/// The ceiling of `(rest)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// No ceiling but that of the class above.
    Open,
    /// At most this much, or this part of what the link carries.
    Ceil(Amount),
}

/// With a table of subscribers a host in no row is unknown: it may have this part of the link.
const OF_UNKNOWN: Rest = Rest::Ceil(Amount::Part(100_000));

const REST: &str =
    "a rate such as \"5mbit\", a percentage of the link such as \"10%\", or \"none\"";

impl FromStr for Rest {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Rest, Unreadable> {
        if text.trim() == "none" {
            return Ok(Rest::Open);
        }
        let amount = text.parse::<Amount>();
        amount.map(Rest::Ceil).map_err(|error| error.expecting(REST))
    }
}

impl Rest {
    /// What a link with or without a table of subscribers has that does not say it.
    pub(crate) fn or_default(said: Option<At<Rest>>, has_table: bool) -> Rest {
        let default = if has_table { OF_UNKNOWN } else { Rest::Open };
        said.map_or(default, |said| said.value)
    }

    /// The ceiling below a class that has `above`, on a link that carries `line`.
    pub(crate) fn of(self, line: Rate, above: Rate) -> Rate {
        match self {
            Rest::Open => above,
            // of a narrow line a part may come to nothing
            Rest::Ceil(amount) => amount.of(line).max(Rate::from_bps(1)).min(above),
        }
    }
}

/// Reads the word of a link.
pub(crate) fn read(entry: Option<Entry<'_>>, problems: &mut Problems) -> ByWay<Option<At<Rest>>> {
    let said = both::<Rest>(entry, "rest", REST, problems);
    for (_, said) in said.named() {
        if let Some(At { value: Rest::Ceil(Amount::Rate(Rate::ZERO)), place }) = said {
            let help = "write a small rate such as \"64kbit\": ARP and neighbour discovery need it";
            problems.error(*place, "\"rest\" is zero: no frame could ever leave", help);
            break;
        }
    }
    said
}
