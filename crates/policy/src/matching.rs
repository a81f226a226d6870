//! One line of `match`: terms divided by commas that must all hold, as in `lan servers, tcp port
//! 873`; or a table with raw bytes for what has no name. Lists (`port 500,4500`) and negations
//! (`not tcp`) are written out here: such a line is several rules of which one must hold.

mod meant;
mod not;
mod raw;
mod sense;

use std::sync::Arc;

use weir_units::limits::RULE_ALTERNATIVES;
use weir_units::{Prefix, Raw, dscp, protocol};

use crate::addresses::{Addresses, Groups};
use crate::blocks::blocks_or_group;
use crate::nearest::{instead, nearest};
use crate::problem::{Position, Problems};
use crate::reader::{Entry, hex, whole};

/// One line of `match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// What must hold: all of any one of these.
    pub when: Vec<When>,
    /// The line as written.
    pub text: String,
    /// Where it is written.
    pub place: Position,
}

/// What must hold of a frame; `None` where anything will do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// The address on the LAN side.
    pub lan: Option<Arc<Addresses>>,
    /// The address on the WAN side.
    pub wan: Option<Arc<Addresses>>,
    /// The address on either side.
    pub host: Option<Arc<Addresses>>,
    /// The port on the LAN side, first and last.
    pub lan_port: Option<(u16, u16)>,
    /// The port on the WAN side.
    pub wan_port: Option<(u16, u16)>,
    /// The port on either side.
    pub port: Option<(u16, u16)>,
    /// The IP protocol, first and last.
    pub protocol: Option<(u8, u8)>,
    /// The code point, first and last.
    pub dscp: Option<(u8, u8)>,
    /// The outermost VLAN, first and last.
    pub vlan: Option<(u16, u16)>,
    /// No VLAN tag at all.
    pub untagged: bool,
    /// The MAC address on the LAN side.
    pub lan_mac: Option<[u8; 6]>,
    /// The MAC address on the WAN side.
    pub wan_mac: Option<[u8; 6]>,
    /// The MAC address on either side.
    pub mac: Option<[u8; 6]>,
    /// Bytes of the Ethernet frame, first and last.
    pub length: Option<(u16, u16)>,
    /// The direction in which the frame travels.
    pub toward: Option<Toward>,
    /// The type of what the frame carries, behind VLAN tags, first and last.
    pub ethertype: Option<(u16, u16)>,
    /// Bytes at a place.
    pub raw: Option<Raw>,
    /// Whether its addresses are all but some (`not lan servers`): that ties it to nobody.
    pub excludes: bool,
}

impl When {
    fn has_no_address(&self) -> bool {
        self.lan.is_none() && self.wan.is_none() && self.host.is_none()
    }
}

/// The direction in which a frame travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// Towards the LAN: down.
    Lan,
    /// Towards the WAN: up.
    Wan,
}

const TERMS: [&str; 18] = [
    "any",
    "not",
    "lan",
    "wan",
    "host",
    "port",
    "proto",
    "dscp",
    "vlan",
    "untagged",
    "mac",
    "length",
    "up",
    "down",
    "ethertype",
    "arp",
    "ipv4",
    "ipv6",
];

fn terms() -> impl Iterator<Item = &'static str> + Clone {
    TERMS.into_iter().chain(protocol::names())
}

/// Whether `word` has a meaning in a match.
pub(crate) fn is_word(word: &str) -> bool {
    terms().any(|t| t == word)
}

pub(crate) fn read(entry: &Entry<'_>, groups: &Groups, problems: &mut Problems) -> Option<Match> {
    if entry.value.is_table() {
        return raw::table(entry, groups, problems);
    }
    let text = entry.text("match", "a rule such as \"udp port 5060\"", problems)?;
    let when = line(entry, text, groups, problems)?;
    Some(Match { when, text: text.to_owned(), place: entry.place })
}

/// Reads all terms of one line; `None` when any of them is wrong.
fn line(
    entry: &Entry<'_>,
    text: &str,
    groups: &Groups,
    problems: &mut Problems,
) -> Option<Vec<When>> {
    let mut when = When::default();
    let mut written_out = Vec::new();
    let mut good = true;
    for term in split(text) {
        let words: Vec<&str> = term.split_whitespace().collect();
        let whole = entry.place_of(text, term.trim());
        if words.is_empty() {
            let help = "write terms such as \"lan 10.0.0.0/24, tcp port 443\"";
            problems.error(whole, "a rule has an empty term", help);
            good = false;
            continue;
        }
        match alternatives(groups, &mut when, &words) {
            Ok(Some(all)) => written_out.push(all),
            Ok(None) => {}
            Err(wrong) => {
                let wrong = of_others(groups, &words, term.trim()).unwrap_or(wrong);
                let place = wrong.at.map_or(whole, |part| entry.place_of(text, part));
                problems.error(place, wrong.what, wrong.help);
                good = false;
            }
        }
    }
    if !good {
        return None;
    }
    combined(when, &written_out).map_or_else(
        |(what, help)| {
            problems.error(entry.place, format!("\"{text}\" {what}"), help);
            None
        },
        Some,
    )
}

/// The terms of a line. A comma between numbers divides a list and not terms.
fn split(text: &str) -> Vec<&str> {
    let mut terms: Vec<&str> = Vec::new();
    let mut start = 0;
    for piece in text.split(',') {
        let end = piece.as_ptr() as usize - text.as_ptr() as usize + piece.len();
        match terms.last_mut() {
            Some(term) if goes_on(term, piece.trim()) => *term = &text[start..end],
            _ => {
                start = end - piece.len();
                terms.push(piece);
            }
        }
    }
    terms
}

/// Whether a piece behind a comma is one more of the list that a term ends with.
fn goes_on(term: &str, piece: &str) -> bool {
    let is_number = |text: &str| whole::<u64>(text).is_some() && !text.is_empty();
    let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
    let mut words = term.split_whitespace();
    let dscp = words.clone().any(|word| word == "dscp") && dscp::number(piece).is_some();
    let lists = ["port", "ports", "vlan", "length", "dscp", "sport", "dport"];
    words.any(|word| lists.contains(&word)) && (dscp || is_number(first) && is_number(last))
}

/// Reads a term into `when`; gives its alternatives where it is more than one condition.
fn alternatives<'w>(
    groups: &Groups,
    when: &mut When,
    words: &[&'w str],
) -> Result<Option<Vec<When>>, Wrong<'w>> {
    let read = |when: &mut When, words: &[&'w str]| {
        let mut list = Vec::new();
        Terms { groups, when, list: &mut list }.term(words)?;
        Ok(list)
    };
    let alone = |words: &[&'w str]| {
        let mut when = When::default();
        let list = read(&mut when, words)?;
        Ok(not::Said { when, list })
    };
    if words[0] == "not" {
        let Some((&first, _)) = words[1..].split_first() else {
            return Err(Wrong::new(Some(words[0]), "\"not\" needs a term", "write \"not tcp\""));
        };
        if first == "any" {
            let help = "remove the rule, or name what it is to match";
            return Err(Wrong::new(None, "\"not any\" matches nothing", help));
        }
        let all = alone(&words[1..])?.negated();
        let help = "write the rules of another class before this one";
        return all.map(Some).map_err(|why| Wrong::new(None, why, help));
    }
    let list = read(when, words)?;
    if list.len() < 2 {
        return Ok(None);
    }
    Ok(Some(alone(words)?.plain()))
}

/// What is wrong with a term in the words of another program, if it is one: with what it is here.
fn of_others<'w>(groups: &Groups, words: &[&'w str], term: &'w str) -> Option<Wrong<'w>> {
    if let Some((why, help)) = meant::joined(words) {
        return Some(Wrong::new(Some(term), format!("\"{term}\" is not one term: {why}"), help));
    }
    let meant = meant::term(words)?;
    let said: Vec<&str> = meant.split(' ').collect();
    alternatives(groups, &mut When::default(), &said).ok()?;
    let or = meant::other_side(&meant).map_or_else(String::new, |o| format!(" or \"{o}\""));
    let what = match or.is_empty() {
        true => format!("\"{term}\" is not a term"),
        false => format!("\"{term}\": weir names sides, not source and destination"),
    };
    Some(Wrong::new(Some(term), what, format!("write \"{meant}\"{or}")))
}

/// What holds in a line where one of each of these alternatives does; why there is nothing.
fn combined(when: When, written_out: &[Vec<When>]) -> Result<Vec<When>, (String, String)> {
    let mut all = vec![when];
    for alternatives in written_out {
        all = all
            .iter()
            .flat_map(|when| alternatives.iter().filter_map(|one| not::both(when, one)))
            .collect();
        if all.len() > RULE_ALTERNATIVES {
            let what = format!("stands for more than {RULE_ALTERNATIVES} rules");
            return Err((what, "write a shorter list, or several rules".to_owned()));
        }
    }
    let mut why = None;
    all.retain(|when| match sense::contradiction(when) {
        Some(wrong) => {
            why.get_or_insert(wrong);
            false
        }
        None => true,
    });
    if all.is_empty() {
        let (what, help) = why.unwrap_or(("its terms exclude each other", "remove one of them"));
        return Err((format!("never matches: {what}"), help.to_owned()));
    }
    Ok(all)
}

struct Wrong<'w> {
    at: Option<&'w str>,
    what: String,
    help: String,
}

impl<'w> Wrong<'w> {
    fn new(at: Option<&'w str>, what: impl Into<String>, help: impl Into<String>) -> Wrong<'w> {
        Wrong { at, what: what.into(), help: help.into() }
    }
}

struct Terms<'t> {
    groups: &'t Groups,
    when: &'t mut When,
    /// The ranges of a list, if the term has one.
    list: &'t mut Vec<(u16, u16)>,
}

impl Terms<'_> {
    fn term<'a>(&mut self, words: &[&'a str]) -> Result<(), Wrong<'a>> {
        let (first, rest) = (words[0], &words[1..]);
        match (first, rest) {
            ("any", []) => Ok(()),
            ("up", []) => once(&mut self.when.toward, Toward::Wan, first),
            ("down", []) => once(&mut self.when.toward, Toward::Lan, first),
            ("untagged", []) => {
                self.when.untagged = true;
                Ok(())
            }
            ("arp", []) => once(&mut self.when.ethertype, (0x0806, 0x0806), first),
            ("ipv4", []) => once(&mut self.when.ethertype, (0x0800, 0x0800), first),
            ("ipv6", []) => once(&mut self.when.ethertype, (0x86dd, 0x86dd), first),
            ("lan", ["port", ..]) => ports(&mut self.when.lan_port, self.list, &rest[1..], rest[0]),
            ("wan", ["port", ..]) => ports(&mut self.when.wan_port, self.list, &rest[1..], rest[0]),
            ("port", _) => ports(&mut self.when.port, self.list, rest, first),
            ("lan", ["mac", ..]) => macs(&mut self.when.lan_mac, &rest[1..], first),
            ("wan", ["mac", ..]) => macs(&mut self.when.wan_mac, &rest[1..], first),
            ("mac", _) => macs(&mut self.when.mac, rest, first),
            ("lan" | "wan" | "host", _) => self.address(first, rest),
            ("dscp", _) => self.dscp(first, rest),
            ("vlan", _) => list(&mut self.when.vlan, self.list, rest, first, 4_094),
            ("length", _) => list(&mut self.when.length, self.list, rest, first, 65_535),
            ("ethertype", _) => ethertype(&mut self.when.ethertype, rest, first),
            ("proto", _) => self.protocol(first, rest),
            _ => self.named_protocol(first, rest),
        }
    }

    fn address<'a>(&mut self, side: &'a str, rest: &[&'a str]) -> Result<(), Wrong<'a>> {
        let [name] = rest else {
            let help = format!("write \"{side} 10.0.0.0/24\" or \"{side} GROUP\", one per term");
            let what = format!("\"{side}\" needs one address, block or group");
            return Err(Wrong::new(Some(side), what, help));
        };
        let set = match self.groups.get(name) {
            Some(group) => group.clone(),
            None => {
                let names = self.groups.iter().map(|(name, _)| name).collect::<Vec<_>>();
                let blocks = blocks_or_group(name, names.iter().copied());
                let blocks = blocks.map_err(|(what, help)| Wrong::new(Some(name), what, help))?;
                Arc::new(Addresses::new(blocks))
            }
        };
        let slot = match side {
            "lan" => &mut self.when.lan,
            "wan" => &mut self.when.wan,
            _ => &mut self.when.host,
        };
        once(slot, set, side)
    }

    fn dscp<'a>(&mut self, first: &'a str, rest: &[&'a str]) -> Result<(), Wrong<'a>> {
        let names = items(rest).ok_or_else(|| {
            let what = "\"dscp\" needs one code point, or several separated by commas";
            Wrong::new(Some(first), what, "write \"dscp ef\" or \"dscp ef,af41\"")
        })?;
        let mut points = Vec::new();
        for name in names {
            let number = dscp::number(name).or_else(|| whole(name).filter(|n| *n < 64));
            let number = number.ok_or_else(|| {
                let what = format!("\"{name}\" is not a code point (0 to 63 or its name)");
                let help = match meant::code_point(name) {
                    Some(of_byte) => format!(
                        "if it is a byte (ToS, traffic class), write \"{of_byte}\": the code point \
                         is its upper six bits"
                    ),
                    None if name.starts_with(|c: char| c.is_ascii_digit()) => {
                        "write \"dscp ef\" or \"dscp 46\"".to_owned()
                    }
                    None => instead(name, dscp::names()),
                };
                Wrong::new(Some(name), what, help)
            })?;
            points.push((number.into(), number.into()));
        }
        let points = not::merged(points);
        let narrow = |n: u16| u8::try_from(n).unwrap_or(63);
        let hull = (narrow(points[0].0), narrow(points[points.len() - 1].1));
        *self.list = points;
        once(&mut self.when.dscp, hull, first)
    }

    fn protocol<'a>(&mut self, first: &'a str, rest: &[&'a str]) -> Result<(), Wrong<'a>> {
        let number = match rest {
            [name] => protocol::number(name).or_else(|| whole(name)),
            _ => None,
        };
        match number {
            Some(number) => once(&mut self.when.protocol, (number, number), first),
            None => {
                let what = "\"proto\" needs the number (0 to 255) or name of an IP protocol";
                let name = rest.first().copied().unwrap_or(first);
                Err(Wrong::new(Some(name), what, instead(name, protocol::names())))
            }
        }
    }

    /// `tcp`, `tcp port 80`, `udp lan port 5060`, `tcp wan port 443`.
    fn named_protocol<'a>(&mut self, first: &'a str, rest: &[&'a str]) -> Result<(), Wrong<'a>> {
        let Some(number) = protocol::number(first) else {
            if self.groups.get(first).is_some() || first.parse::<Prefix>().is_ok() {
                let what = format!("\"{first}\" does not say which side");
                let help = format!("write \"lan {first}\", \"wan {first}\" or \"host {first}\"");
                return Err(Wrong::new(Some(first), what, help));
            }
            if first.strip_prefix("0x").and_then(hex::<u16>).is_some() {
                let what = format!("\"{first}\" does not say what it is the number of");
                let help = format!("write \"ethertype {first}\"");
                return Err(Wrong::new(Some(first), what, help));
            }
            let what = format!("a rule has no term \"{first}\"");
            return Err(Wrong::new(Some(first), what, instead(first, terms())));
        };
        once(&mut self.when.protocol, (number, number), first)?;
        let has_ports = sense::has_ports(number);
        match rest {
            [] => Ok(()),
            ["port", more @ ..] if has_ports => {
                ports(&mut self.when.port, self.list, more, rest[0])
            }
            ["lan", "port", more @ ..] if has_ports => {
                ports(&mut self.when.lan_port, self.list, more, rest[1])
            }
            ["wan", "port", more @ ..] if has_ports => {
                ports(&mut self.when.wan_port, self.list, more, rest[1])
            }
            ["port", ..] => {
                let what = format!("\"{first}\" has no ports");
                Err(Wrong::new(rest.first().copied(), what, "tcp, udp and sctp have ports"))
            }
            [other, ..] => {
                let what = format!("\"{other}\" cannot follow \"{first}\"");
                let help = match nearest(other, ["port", "lan", "wan"]) {
                    Some(near) if has_ports => format!("did you mean \"{near}\"?"),
                    _ => "write \"tcp port 80\", \"tcp lan port 80\"; separate terms by commas"
                        .to_owned(),
                };
                Err(Wrong::new(Some(other), what, help))
            }
        }
    }
}

/// Sets what may be said once in a line.
fn once<'w, T>(slot: &mut Option<T>, value: T, word: &'w str) -> Result<(), Wrong<'w>> {
    if slot.is_some() {
        let what = format!("\"{word}\" repeats a term of the rule: a frame cannot match both");
        return Err(Wrong::new(
            Some(word),
            what,
            "write two rules: one matching rule of a class is enough",
        ));
    }
    *slot = Some(value);
    Ok(())
}

fn ports<'w>(
    slot: &mut Option<(u16, u16)>,
    ranges: &mut Vec<(u16, u16)>,
    rest: &[&'w str],
    word: &'w str,
) -> Result<(), Wrong<'w>> {
    list(slot, ranges, rest, word, u16::MAX)
}

/// The parts of a list: `500,4500`, also with blanks behind the commas; `None` if it is none.
fn items<'w>(rest: &[&'w str]) -> Option<Vec<&'w str>> {
    let (_, before) = rest.split_last()?;
    if before.iter().any(|part| !part.ends_with(',')) {
        return None;
    }
    let parts = rest.iter().flat_map(|part| part.split(','));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then_some(parts)
}

/// `5060`, `5060-5061`, `500,4500`: sets `slot` to all from the first to the last number, and
/// `ranges` to what of it is meant.
fn list<'w>(
    slot: &mut Option<(u16, u16)>,
    ranges: &mut Vec<(u16, u16)>,
    rest: &[&'w str],
    word: &'w str,
    most: u16,
) -> Result<(), Wrong<'w>> {
    let help = format!("write a number or \"first-last\", 0 to {most}");
    let Some(items) = items(rest) else {
        let what = format!("\"{word}\" needs one number, range or list");
        let numbers = rest.iter().all(|part| whole::<u16>(part).is_some());
        let help = match rest {
            [_, _, ..] if numbers => format!("write \"{word} {}\"", rest.join(",")),
            _ => help,
        };
        return Err(Wrong::new(Some(word), what, help));
    };
    let mut all = Vec::new();
    for item in items {
        all.push(range(item, word, most, &help)?);
    }
    let all = not::merged(all);
    let hull = (all[0].0, all[all.len() - 1].1);
    *ranges = all;
    once(slot, hull, word)
}

/// `5060`, `5060-5061`.
fn range<'w>(text: &'w str, word: &'w str, most: u16, help: &str) -> Result<(u16, u16), Wrong<'w>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |t: &str| whole::<u16>(t).filter(|n| *n <= most);
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        (Some(first), Some(last)) => {
            let what = format!("the range \"{text}\" ends before it starts");
            Err(Wrong::new(Some(text), what, format!("write \"{last}-{first}\"")))
        }
        _ => {
            let help = match (word, meant::service(text)) {
                ("port", Some(port)) => format!("write \"{port}\""),
                _ => help.to_owned(),
            };
            Err(Wrong::new(Some(text), format!("\"{word}\" cannot be \"{text}\""), help))
        }
    }
}

fn ethertype<'w>(
    slot: &mut Option<(u16, u16)>,
    rest: &[&'w str],
    word: &'w str,
) -> Result<(), Wrong<'w>> {
    let [text] = rest else {
        let what = "\"ethertype\" needs one number";
        return Err(Wrong::new(Some(word), what, "write \"ethertype 0x88cc\""));
    };
    match text.strip_prefix("0x").and_then(hex) {
        Some(number) => once(slot, (number, number), word),
        None => {
            let number = meant::ethertype(text).unwrap_or(0x88cc);
            let what = format!("\"{text}\" is not the number of an Ethernet type (hexadecimal)");
            Err(Wrong::new(Some(text), what, format!("write \"{number:#06x}\"")))
        }
    }
}

fn macs<'w>(slot: &mut Option<[u8; 6]>, rest: &[&'w str], word: &'w str) -> Result<(), Wrong<'w>> {
    let mac = match rest {
        [text] => mac(text),
        _ => None,
    };
    match mac {
        Some(mac) => once(slot, mac, word),
        None => {
            let at = rest.first().copied().unwrap_or(word);
            let help = match meant::mac(at) {
                Some(meant) => format!("write \"{meant}\""),
                None => "write \"mac 02:00:5e:10:00:01\"".to_owned(),
            };
            Err(Wrong::new(Some(at), "\"mac\" needs a MAC address", help))
        }
    }
}

/// A MAC address in its usual form, however it is written.
pub(crate) fn usual_mac(text: &str) -> Option<String> {
    meant::mac(text)
}

pub(crate) fn mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut mac {
        let part = parts.next().filter(|p| p.len() == 2)?;
        *byte = hex(part)?;
    }
    parts.next().is_none().then_some(mac)
}
