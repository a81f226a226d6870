//! One line of `match`: terms divided by commas that must all hold, as in `lan servers, tcp port
//! 873`; or a table with raw bytes for what has no name.

mod raw;
mod sense;

use std::sync::Arc;

use weir_units::{Prefix, Raw, dscp, protocol};

use crate::addresses::{Addresses, Groups};
use crate::nearest::instead;
use crate::problem::{Position, Problems};
use crate::reader::{Entry, hex, whole};

/// One line of `match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// What must hold, all of it.
    pub when: When,
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
    /// The IP protocol.
    pub protocol: Option<u8>,
    /// The code point.
    pub dscp: Option<u8>,
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
    /// The type of what the frame carries, behind VLAN tags.
    pub ethertype: Option<u16>,
    /// Bytes at a place.
    pub raw: Option<Raw>,
}

/// The direction in which a frame travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// Towards the LAN: down.
    Lan,
    /// Towards the WAN: up.
    Wan,
}

const TERMS: [&str; 17] = [
    "any",
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
fn line(entry: &Entry<'_>, text: &str, groups: &Groups, problems: &mut Problems) -> Option<When> {
    let mut when = When::default();
    let mut good = true;
    for term in text.split(',') {
        let words: Vec<&str> = term.split_whitespace().collect();
        let whole = entry.place_of(text, term.trim());
        if words.is_empty() {
            let help = "write terms such as \"lan 10.0.0.0/24, tcp port 443\"";
            problems.error(whole, "a rule has an empty term", help);
            good = false;
            continue;
        }
        let mut reader = Terms { groups, when: &mut when };
        if let Err(wrong) = reader.term(&words) {
            let place = wrong.at.map_or(whole, |part| entry.place_of(text, part));
            problems.error(place, wrong.what, wrong.help);
            good = false;
        }
    }
    if !good {
        return None;
    }
    if let Some((what, help)) = sense::contradiction(&when) {
        problems.error(entry.place, format!("\"{text}\" never matches: {what}"), help);
        return None;
    }
    Some(when)
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

struct Terms<'a> {
    groups: &'a Groups,
    when: &'a mut When,
}

impl<'a> Terms<'a> {
    fn term(&mut self, words: &[&'a str]) -> Result<(), Wrong<'a>> {
        let (first, rest) = (words[0], &words[1..]);
        match (first, rest) {
            ("any", []) => Ok(()),
            ("up", []) => once(&mut self.when.toward, Toward::Wan, first),
            ("down", []) => once(&mut self.when.toward, Toward::Lan, first),
            ("untagged", []) => {
                self.when.untagged = true;
                Ok(())
            }
            ("arp", []) => once(&mut self.when.ethertype, 0x0806, first),
            ("ipv4", []) => once(&mut self.when.ethertype, 0x0800, first),
            ("ipv6", []) => once(&mut self.when.ethertype, 0x86dd, first),
            ("lan", ["port", ..]) => ports(&mut self.when.lan_port, &rest[1..], first),
            ("wan", ["port", ..]) => ports(&mut self.when.wan_port, &rest[1..], first),
            ("port", _) => ports(&mut self.when.port, rest, first),
            ("lan", ["mac", ..]) => macs(&mut self.when.lan_mac, &rest[1..], first),
            ("wan", ["mac", ..]) => macs(&mut self.when.wan_mac, &rest[1..], first),
            ("mac", _) => macs(&mut self.when.mac, rest, first),
            ("lan" | "wan" | "host", _) => self.address(first, rest),
            ("dscp", _) => self.dscp(first, rest),
            ("vlan", _) => range(&mut self.when.vlan, rest, first, 0..=4_094),
            ("length", _) => range(&mut self.when.length, rest, first, 0..=65_535),
            ("ethertype", _) => ethertype(&mut self.when.ethertype, rest, first),
            ("proto", _) => self.protocol(first, rest),
            _ => self.named_protocol(first, rest),
        }
    }

    fn address(&mut self, side: &'a str, rest: &[&'a str]) -> Result<(), Wrong<'a>> {
        let [name] = rest else {
            let help = format!("write \"{side} 10.0.0.0/24\" or \"{side} GROUP\", one per term");
            let what = format!("\"{side}\" needs one address, block or group");
            return Err(Wrong::new(Some(side), what, help));
        };
        let set = match self.groups.get(name) {
            Some(group) => group.clone(),
            None => match name.parse::<Prefix>() {
                Ok(block) => Arc::new(Addresses::new(vec![block])),
                Err(error) if name.contains(['.', ':', '/']) => {
                    return Err(Wrong::new(Some(name), error.to_string(), ""));
                }
                Err(_) => {
                    let what = format!("there is no group \"{name}\"");
                    let names = self.groups.iter().map(|(n, _)| n).collect::<Vec<_>>();
                    let help = if names.is_empty() {
                        format!("define it: [group] {name} = [\"10.0.0.0/24\"]")
                    } else {
                        instead(name, names.iter().copied())
                    };
                    return Err(Wrong::new(Some(name), what, help));
                }
            },
        };
        let slot = match side {
            "lan" => &mut self.when.lan,
            "wan" => &mut self.when.wan,
            _ => &mut self.when.host,
        };
        once(slot, set, side)
    }

    fn dscp(&mut self, first: &'a str, rest: &[&'a str]) -> Result<(), Wrong<'a>> {
        let [name] = rest else {
            return Err(Wrong::new(
                Some(first),
                "\"dscp\" needs one code point",
                "write \"dscp ef\"",
            ));
        };
        let number = dscp::number(name).or_else(|| whole(name).filter(|n| *n < 64));
        match number {
            Some(number) => once(&mut self.when.dscp, number, first),
            None => {
                let what = format!("\"{name}\" is not a code point (0 to 63 or its name)");
                Err(Wrong::new(Some(name), what, instead(name, dscp::names())))
            }
        }
    }

    fn protocol(&mut self, first: &'a str, rest: &[&'a str]) -> Result<(), Wrong<'a>> {
        let number = match rest {
            [name] => protocol::number(name).or_else(|| whole(name)),
            _ => None,
        };
        match number {
            Some(number) => once(&mut self.when.protocol, number, first),
            None => {
                let what = "\"proto\" needs the number (0 to 255) or name of an IP protocol";
                let name = rest.first().copied().unwrap_or(first);
                Err(Wrong::new(Some(name), what, instead(name, protocol::names())))
            }
        }
    }

    /// `tcp`, `tcp port 80`, `udp lan port 5060`, `tcp wan port 443`.
    fn named_protocol(&mut self, first: &'a str, rest: &[&'a str]) -> Result<(), Wrong<'a>> {
        let Some(number) = protocol::number(first) else {
            if self.groups.get(first).is_some() || first.parse::<Prefix>().is_ok() {
                let what = format!("\"{first}\" does not say which side");
                let help = format!("write \"lan {first}\", \"wan {first}\" or \"host {first}\"");
                return Err(Wrong::new(Some(first), what, help));
            }
            let what = format!("a rule has no term \"{first}\"");
            return Err(Wrong::new(Some(first), what, instead(first, terms())));
        };
        once(&mut self.when.protocol, number, first)?;
        let has_ports = sense::has_ports(number);
        match rest {
            [] => Ok(()),
            ["port", more @ ..] if has_ports => ports(&mut self.when.port, more, rest[0]),
            ["lan", "port", more @ ..] if has_ports => {
                ports(&mut self.when.lan_port, more, rest[1])
            }
            ["wan", "port", more @ ..] if has_ports => {
                ports(&mut self.when.wan_port, more, rest[1])
            }
            ["port", ..] => {
                let what = format!("\"{first}\" has no ports");
                Err(Wrong::new(rest.first().copied(), what, "tcp, udp and sctp have ports"))
            }
            [other, ..] => {
                let what = format!("\"{other}\" cannot follow \"{first}\"");
                let help = "write \"tcp port 80\", \"tcp lan port 80\"; separate terms by commas";
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
    rest: &[&'w str],
    word: &'w str,
) -> Result<(), Wrong<'w>> {
    range(slot, rest, word, 0..=65_535)
}

/// `5060`, `5060-5061`.
fn range<'w>(
    slot: &mut Option<(u16, u16)>,
    rest: &[&'w str],
    word: &'w str,
    legal: std::ops::RangeInclusive<u16>,
) -> Result<(), Wrong<'w>> {
    let help = format!("write a number or \"first-last\", {} to {}", legal.start(), legal.end());
    let [text] = rest else {
        let what = format!("\"{word}\" needs one number or range");
        return Err(Wrong::new(Some(word), what, help));
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |t: &str| whole::<u16>(t).filter(|n| legal.contains(n));
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => once(slot, (first, last), word),
        (Some(first), Some(last)) => {
            let what = format!("the range \"{text}\" ends before it starts");
            Err(Wrong::new(Some(text), what, format!("write \"{last}-{first}\"")))
        }
        _ => Err(Wrong::new(Some(text), format!("\"{word}\" cannot be \"{text}\""), help)),
    }
}

fn ethertype<'w>(slot: &mut Option<u16>, rest: &[&'w str], word: &'w str) -> Result<(), Wrong<'w>> {
    let number = match rest {
        [text] => text.strip_prefix("0x").and_then(hex),
        _ => None,
    };
    match number {
        Some(number) => once(slot, number, word),
        None => {
            let at = rest.first().copied().unwrap_or(word);
            Err(Wrong::new(
                Some(at),
                "\"ethertype\" needs its number",
                "write \"ethertype 0x88cc\"",
            ))
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
            Err(Wrong::new(
                Some(at),
                "\"mac\" needs a MAC address",
                "write \"mac 02:00:5e:10:00:01\"",
            ))
        }
    }
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
