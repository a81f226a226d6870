//! `[link.NAME]`: the two ports and what the line between them carries.

use std::str::FromStr;

use weir_units::limits::ROUTERS;
use weir_units::{ByWay, Layer, Rate, Unreadable};

use crate::amount::Amount;
use crate::class::{ENFORCE, Enforce};
use crate::leaf::{self, LeafWords};
use crate::matching;
use crate::nearest::nearest;
use crate::problem::{At, Position, Problems};
use crate::reader::{Entry, Table};
use crate::rest::{self, Rest};
use crate::silent;

/// A link as the operator wrote it.
#[derive(Clone, Debug)]
pub struct LinkTable {
    /// Its name.
    pub name: String,
    /// Where its table starts.
    pub place: Position,
    /// The interface towards the LAN.
    pub lan: String,
    /// The interface towards the WAN.
    pub wan: String,
    /// What the line carries.
    pub line: ByWay<Rate>,
    /// Where the rates are written.
    pub line_place: ByWay<Position>,
    /// How much of the line is used, in millionths: shaped this far below it.
    pub margin: ByWay<u32>,
    /// Whether the margin downstream is found while traffic flows.
    pub finds: ByWay<bool>,
    /// What a rate counts.
    pub counts: Layer,
    /// Bytes a frame costs beyond what `counts` says.
    pub overhead: i16,
    /// The ceiling of what belongs to nobody.
    pub rest: ByWay<Option<At<Rest>>>,
    /// Who holds the classes to their rates.
    pub enforce: Enforce,
    /// MACs of the LAN side behind which hosts are told apart by their addresses, sorted.
    pub routers: Vec<[u8; 6]>,
    /// What its leaves do that do not say it themselves.
    pub leaf: LeafWords,
    /// Words that say nothing without queues, and where they stand.
    pub(crate) said: Vec<At<&'static str>>,
}

/// The words for [`Layer`].
pub const COUNTS: [(&str, Layer); 6] = [
    ("ip", Layer::Ip),
    ("ethernet", Layer::Ethernet),
    ("wire", Layer::Wire),
    ("atm", Layer::Atm),
    ("docsis", Layer::Docsis),
    ("ptm", Layer::Ptm),
];

const WORDS: [&str; 10] =
    ["lan", "wan", "down", "up", "counts", "overhead", "margin", "rest", "enforce", "routers"];

/// All words of a link, in the order `weir fmt` gives them.
pub(crate) fn words() -> Vec<&'static str> {
    WORDS.into_iter().chain(leaf::LINK_WORDS).collect()
}

const RATE: &str = "a rate such as \"100mbit\"";

/// Reads one link. What is missing is replaced by a placeholder, so that the classes can be checked
/// all the same; the problems say that the policy cannot be used.
pub(crate) fn read(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Option<LinkTable> {
    let what = format!("link \"{name}\"");
    let mut table = entry.table(&what, problems)?;
    let lan = interface(&mut table, "lan", entry.key, &what, problems);
    let wan = interface(&mut table, "wan", entry.key, &what, problems);
    if let (Some(l), Some(w)) = (&lan, &wan)
        && l.value == w.value
    {
        let help = "name the other interface of the box (`ip link` lists them)";
        problems.error(
            w.place,
            format!("\"wan\" is the same interface as \"lan\" of {what}"),
            help,
        );
    }
    let down = line(&mut table, "down", entry.key, &what, problems);
    let up = line(&mut table, "up", entry.key, &what, problems);
    let counts = table.take("counts").and_then(|e| e.word("counts", &COUNTS, problems));
    let overhead = table.take("overhead").and_then(|e| overhead(e, problems));
    let (margin, finds) = margin(table.take("margin"), problems);
    let rest = rest::read(table.take("rest"), problems);
    let enforce = table.take("enforce").and_then(|e| e.word("enforce", &ENFORCE, problems));
    let routers = table.take("routers").map(|e| routers(e, problems));
    let said = silent::said(&table);
    let leaf = leaf::read_of_link(&mut table, problems);
    table.finish(&words(), problems);
    let placeholder = At { value: Rate::MAX, place: entry.key };
    let (down, up) = (down.unwrap_or(placeholder), up.unwrap_or(placeholder));
    let name_of = |port: Option<At<String>>| port.map_or_else(|| "?".to_owned(), |p| p.value);
    Some(LinkTable {
        name: name.to_owned(),
        place: entry.key,
        lan: name_of(lan),
        wan: name_of(wan),
        line: ByWay { down: down.value, up: up.value },
        line_place: ByWay { down: down.place, up: up.place },
        margin,
        finds,
        counts: counts.unwrap_or(Layer::Ethernet),
        overhead: overhead.unwrap_or(0),
        rest,
        enforce: enforce.unwrap_or(Enforce::Auto),
        routers: routers.unwrap_or_default(),
        leaf,
        said,
    })
}

/// An interface is a port of one link.
pub(crate) fn check_ports(links: &[LinkTable], problems: &mut Problems) {
    let ports = |link: &LinkTable| [link.lan.clone(), link.wan.clone()];
    for (at, link) in links.iter().enumerate() {
        for port in ports(link).into_iter().filter(|port| port != "?") {
            if let Some(other) = links[..at].iter().find(|other| ports(other).contains(&port)) {
                let what = format!(
                    "the interface \"{port}\" of link \"{}\" is a port of link \"{}\" already",
                    link.name, other.name
                );
                let help = "give each link two interfaces of its own; for several kinds of traffic \
                     on one link, write classes";
                problems.error(link.place, what, help);
            }
        }
    }
}

/// A link that stands in where the policy has none, so that its classes are checked all the same.
pub(crate) fn placeholder() -> LinkTable {
    LinkTable {
        name: "?".to_owned(),
        place: Position::default(),
        lan: "?".to_owned(),
        wan: "?".to_owned(),
        line: ByWay::same(Rate::MAX),
        line_place: ByWay::same(Position::default()),
        margin: ByWay::same(1_000_000),
        finds: ByWay::same(false),
        counts: Layer::Ethernet,
        overhead: 0,
        rest: ByWay { down: None, up: None },
        enforce: Enforce::Auto,
        routers: Vec::new(),
        leaf: LeafWords::default(),
        said: Vec::new(),
    }
}

fn interface(
    table: &mut Table<'_>,
    name: &str,
    link: Position,
    what: &str,
    problems: &mut Problems,
) -> Option<At<String>> {
    let Some(entry) = table.take(name) else {
        if !table.misspells(name, &words()) {
            let other = if name == "lan" { "wan" } else { "lan" };
            let other = table.peek(other).and_then(|entry| entry.value.as_str());
            let names = if name == "lan" { ["eth1", "eth2"] } else { ["eth2", "eth1"] };
            let free = if other == Some(names[0]) { names[1] } else { names[0] };
            let help =
                format!("add {name} = \"{free}\" with the interface's name (`ip link` lists them)");
            problems.missing(link, format!("{what} has no \"{name}\" interface"), help);
        }
        return None;
    };
    let text = entry.text(name, "an interface's name such as \"eth1\"", problems)?;
    // the kernel's own rule for names (IFNAMSIZ is 16 with its closing zero)
    let legal = !text.is_empty()
        && text.len() <= 15
        && text != "."
        && text != ".."
        && !text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace());
    if !legal {
        let help = "use 1 to 15 characters without spaces, \"/\" and \":\"; `ip link` lists them";
        problems.error(entry.place, format!("\"{text}\" cannot be an interface's name"), help);
        return None;
    }
    Some(entry.at(text.to_owned()))
}

fn line(
    table: &mut Table<'_>,
    name: &str,
    link: Position,
    what: &str,
    problems: &mut Problems,
) -> Option<At<Rate>> {
    let Some(entry) = table.take(name) else {
        if !table.misspells(name, &words()) {
            let help = format!("add {name} = \"100mbit\" with the rate of the access link");
            problems.missing(link, format!("{what} has no \"{name}\" rate"), help);
        }
        return None;
    };
    if let Some(text) = entry.value.as_str()
        && text.trim().ends_with('%')
    {
        let help = format!("write {name} = \"100mbit\"; \"margin\" sets how much of it is used");
        problems.error(
            entry.place,
            format!(
                "\"{name}\" of a link cannot be a percentage, because there \
            is no parent"
            ),
            help,
        );
        return None;
    }
    let rate: Rate = entry.read(name, RATE, problems)?;
    if rate == Rate::ZERO {
        let help = format!("write what the line carries: {name} = \"100mbit\"");
        problems.error(entry.place, format!("\"{name}\" is zero: nothing could pass"), help);
        return None;
    }
    Some(entry.at(rate))
}

fn overhead(entry: Entry<'_>, problems: &mut Problems) -> Option<i16> {
    let legal = |n: &i16| (-64..=256).contains(n);
    let number = entry.value.as_integer().and_then(|i| i.as_str().parse::<i16>().ok());
    let number = number.filter(legal);
    if number.is_none() {
        let said = entry.value.as_str().and_then(|text| text.split_whitespace().next());
        let meant = said.and_then(|text| text.trim_end_matches('b').parse().ok()).filter(legal);
        let help = match meant {
            Some(meant) => format!("write overhead = {meant}"),
            None => "write the bytes that each frame costs in addition to \"counts\": -64 to 256"
                .to_owned(),
        };
        problems.error(entry.place, "\"overhead\" is not a number of bytes", help);
    }
    number
}

/// MACs of the LAN side that are routers.
fn routers(entry: Entry<'_>, problems: &mut Problems) -> Vec<[u8; 6]> {
    let mut macs = Vec::new();
    for entry in entry.list() {
        let text = entry.value.as_str();
        match text.and_then(matching::mac) {
            Some(mac) => macs.push(mac),
            None => {
                let said =
                    text.map_or_else(|| entry.kind().to_owned(), |text| format!("\"{text}\""));
                let what = format!("\"routers\" cannot be {said}: it is not a MAC address");
                problems.error(entry.place, what, "write routers = [\"02:00:5e:10:00:01\"]");
            }
        }
    }
    macs.sort_unstable();
    macs.dedup();
    if macs.len() > ROUTERS {
        let what = format!("\"routers\" names {} MAC addresses", macs.len());
        problems.error(entry.place, what, format!("name at most {ROUTERS}"));
        macs.truncate(ROUTERS);
    }
    macs
}

/// How far below the line to stay, as the operator writes it.
#[derive(Clone, Copy)]
enum Margin {
    /// This part of the line, in millionths.
    Part(u32),
    /// To be found while traffic flows.
    Auto,
    /// What cannot be a margin.
    Rate,
}

impl FromStr for Margin {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Margin, Unreadable> {
        if text.trim() == "auto" {
            return Ok(Margin::Auto);
        }
        let amount = text.parse::<Amount>();
        let meant = nearest(text.trim(), ["auto"]).map(str::to_owned);
        let amount = amount.map_err(|error| error.expecting(MARGIN).meaning(meant))?;
        Ok(match amount {
            Amount::Part(part) => Margin::Part(part),
            Amount::Rate(_) => Margin::Rate,
        })
    }
}

const MARGIN: &str = "a percentage such as \"97%\", or \"auto\"";

/// Downstream stays 3 % below the line unless told otherwise, so that the queue forms here and not
/// at the provider; upstream the box is in front of the line and loses nothing by using all of it.
/// Whether the margins are to be found comes with them.
fn margin(entry: Option<Entry<'_>>, problems: &mut Problems) -> (ByWay<u32>, ByWay<bool>) {
    let default = ByWay { down: 970_000, up: 1_000_000 };
    let Some(entry) = entry else { return (default, ByWay::same(false)) };
    if let Some(number) = entry.value.as_integer() {
        let what = "\"margin\" is a number, not a string";
        problems.error(entry.place, what, format!("write margin = \"{}%\"", number.as_str()));
        return (default, ByWay::same(false));
    }
    let only_text = !entry.value.is_table();
    let said = crate::amount::both::<Margin>(Some(entry), "margin", MARGIN, problems);
    let mut one = |said: Option<At<Margin>>, default: u32| match said {
        Some(At { value: Margin::Part(part), .. }) => (part, false),
        // what was told is the most
        Some(At { value: Margin::Auto, .. }) => (1_000_000, true),
        Some(At { value: Margin::Rate, place }) => {
            let help = "write a percentage of the access link such as \"97%\", or \"auto\"";
            problems.error(
                place,
                "\"margin\" is a rate, not a percentage of the access link",
                help,
            );
            (default, false)
        }
        None => (default, false),
    };
    let down = one(said.down, default.down);
    // `margin = "97%"` speaks of the downstream alone: there it matters
    let up = if only_text { (default.up, false) } else { one(said.up, default.up) };
    (ByWay { down: down.0, up: up.0 }, ByWay { down: down.1, up: up.1 })
}
