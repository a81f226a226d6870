//! Reads a line such as `udp 10.0.0.5:5060 > 192.0.2.1:5060 dscp ef` into a frame to be built. The
//! first words say what it is, the others come in any order; remarks in round brackets, which a
//! trace line may have at its end, are skipped. A line that cannot be read is answered with the
//! word at fault, what was expected there, and the nearest word that is known.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use weir_units::{dscp, protocol};

use crate::{Build, ethernet, ipv6, tcp, vlan};

/// The names of the TCP flags as a line says them.
pub(crate) const FLAGS: [(&str, u8); 8] = [
    ("syn", tcp::SYN),
    ("ack", tcp::ACK),
    ("fin", tcp::FIN),
    ("rst", tcp::RST),
    ("psh", tcp::PSH),
    ("urg", tcp::URG),
    ("ece", tcp::ECE),
    ("cwr", tcp::CWR),
];

/// The names of the four ECN values.
pub(crate) const ECN: [&str; 4] = ["none", "ect1", "ect0", "ce"];

const KINDS: [&str; 8] = ["udp", "tcp", "sctp", "icmp", "esp", "arp", "protocol", "ethertype"];

const ATTRIBUTES: [&str; 19] = [
    "dscp", "ecn", "ttl", "vlan", "pcp", "pppoe", "mac", "length", "payload", "flags", "seq",
    "ack", "window", "mss", "type", "code", "id", "spi", "reply",
];

/// Type of a frame of which a line only says the MACs: local experiments (IEEE 802).
const BARE: u16 = 0x88b5;

/// Why a line could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The word at fault; empty if the line ends too early.
    pub word: String,
    /// Where it begins, counted in characters from 1.
    pub column: usize,
    /// What would have been read there.
    pub expected: String,
    /// The known word that is most like it.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word.as_str() {
            "" => write!(f, "the line ends where {} is expected", self.expected)?,
            word => write!(f, "column {}: \"{word}\" is not {}", self.column, self.expected)?,
        }
        match self.nearest {
            Some(word) => write!(f, "; did you mean \"{word}\"?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Wrong {}

impl FromStr for Build {
    type Err = Wrong;

    fn from_str(line: &str) -> Result<Build, Wrong> {
        let line = line.split(" (").next().unwrap_or(line);
        let mut words = Words { line, at: 0 };
        let mut fields = Fields { build: kind(&mut words)?, tci: None, icmp: (None, 0) };
        while let Some(word) = words.next() {
            fields = attribute(fields, word, &mut words)?;
        }
        Ok(fields.finish())
    }
}

/// A frame, and what is said of it in more than one word.
struct Fields {
    build: Build,
    tci: Option<u16>,
    icmp: (Option<u8>, u8),
}

impl Fields {
    fn with(self, change: impl FnOnce(Build) -> Build) -> Fields {
        Fields { build: change(self.build), ..self }
    }

    /// Ends the tag that was begun, now that no priority can follow.
    fn close_tag(self) -> Fields {
        match self.tci {
            Some(tci) => Fields { build: self.build.vlan(tci), tci: None, icmp: self.icmp },
            None => self,
        }
    }

    fn finish(self) -> Build {
        let Fields { build, icmp, .. } = self.close_tag();
        match icmp {
            (Some(kind), code) => build.icmp_type(kind, code),
            (None, _) => build,
        }
    }
}

#[derive(Clone, Copy)]
struct Word<'l> {
    text: &'l str,
    column: usize,
}

struct Words<'l> {
    line: &'l str,
    at: usize,
}

impl<'l> Words<'l> {
    fn next(&mut self) -> Option<Word<'l>> {
        let rest = &self.line[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let rest = rest.trim_start();
        let text = rest.split_whitespace().next()?;
        self.at = start + text.len();
        Some(Word { text, column: self.line[..start].chars().count() + 1 })
    }

    fn peek(&self) -> Option<Word<'l>> {
        Words { ..*self }.next()
    }

    /// The next word as `read` takes it.
    fn value<T>(
        &mut self,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Wrong> {
        match self.next() {
            Some(word) => read(word.text).ok_or_else(|| word.wrong(expected, &[])),
            None => Err(Word { text: "", column: self.line.len() + 1 }.wrong(expected, &[])),
        }
    }

    /// Two values with `>` between them.
    fn pair<T>(&mut self, what: &str, read: impl Fn(&str) -> Option<T>) -> Result<(T, T), Wrong> {
        let source = self.value(what, &read)?;
        self.value("\">\"", |word| (word == ">").then_some(()))?;
        Ok((source, self.value(what, &read)?))
    }

    fn number<T: FromStr>(&mut self, expected: &str) -> Result<T, Wrong> {
        self.value(expected, decimal)
    }

    fn addresses(&mut self) -> Result<(IpAddr, IpAddr), Wrong> {
        let first = self.peek();
        let pair = self.pair("an address such as \"10.0.0.1\"", |word| word.parse().ok())?;
        same_family(pair, first)
    }

    fn sockets(&mut self) -> Result<(SocketAddr, SocketAddr), Wrong> {
        let first = self.peek();
        let expected = "an address with a port such as \"10.0.0.1:80\" or \"[2001:db8::1]:80\"";
        let pair: (SocketAddr, SocketAddr) = self.pair(expected, |word| word.parse().ok())?;
        same_family((pair.0.ip(), pair.1.ip()), first)?;
        Ok(pair)
    }
}

impl Word<'_> {
    fn wrong(self, expected: &str, known: &[&'static str]) -> Wrong {
        Wrong {
            word: self.text.to_owned(),
            column: self.column,
            expected: expected.to_owned(),
            nearest: nearest(self.text, known),
        }
    }
}

fn same_family(pair: (IpAddr, IpAddr), first: Option<Word>) -> Result<(IpAddr, IpAddr), Wrong> {
    let first = first.unwrap_or(Word { text: "", column: 1 });
    if pair.0.is_ipv4() == pair.1.is_ipv4() {
        Ok(pair)
    } else {
        Err(first.wrong("of the same family as the other address", &[]))
    }
}

/// What the frame is: the first words of a line.
fn kind(words: &mut Words) -> Result<Build, Wrong> {
    let expected = "the kind of a frame (udp, tcp, sctp, icmp, esp, arp, protocol, ethertype, mac)";
    let Some(word) = words.peek() else {
        return words.value(expected, |_| None);
    };
    if word.text.eq_ignore_ascii_case("mac") {
        return Ok(Build::ethertype(BARE));
    }
    let word = words.next().unwrap_or(word);
    Ok(match word.text.to_ascii_lowercase().as_str() {
        "udp" => words.sockets().map(|(a, b)| Build::udp(a, b))?,
        "tcp" => words.sockets().map(|(a, b)| Build::tcp(a, b))?,
        "sctp" => words.sockets().map(|(a, b)| Build::sctp(a, b))?,
        "icmp" | "icmpv6" => words.addresses().map(|(a, b)| Build::icmp_echo(a, b, 0))?,
        "esp" => words.addresses().map(|(a, b)| Build::esp(a, b, 0))?,
        "arp" => {
            let (a, b) = words.pair("an IPv4 address", |word| word.parse().ok())?;
            Build::arp(a, b)
        }
        "protocol" => {
            let number =
                words.value("a protocol that has no extension header's number", |word| {
                    let named = protocol::number(&word.to_ascii_lowercase());
                    named.or_else(|| decimal(word)).filter(|&number| !ipv6::is_extension(number))
                })?;
            words.addresses().map(|(a, b)| Build::protocol(a, b, number))?
        }
        "ethertype" => {
            Build::ethertype(words.value("an Ethernet type such as 0x88cc", |word| {
                ethertype(word).filter(|&kind| !is_read_further(kind))
            })?)
        }
        _ => return Err(word.wrong(expected, &KINDS)),
    })
}

/// One attribute; its name was read.
fn attribute(fields: Fields, word: Word, words: &mut Words) -> Result<Fields, Wrong> {
    let name = word.text.to_ascii_lowercase();
    if name == "pcp" {
        let priority: u16 = words.value("a priority from 0 to 7", |word| {
            decimal(word).filter(|&priority| priority < 8)
        })?;
        let Some(tci) = fields.tci else {
            return Err(word.wrong("allowed before a \"vlan\"", &[]));
        };
        return Ok(Fields { tci: Some((tci & 0x0fff) | (priority << 13)), ..fields });
    }
    let mut fields = fields.close_tag();
    match name.as_str() {
        "vlan" => {
            let number = words.value("a VLAN from 0 to 4095", |word| {
                decimal(word).filter(|&number: &u16| number < 4096)
            })?;
            fields.tci = Some(number);
        }
        "type" => fields.icmp.0 = Some(words.number("an ICMP type from 0 to 255")?),
        "code" => fields.icmp.1 = words.number("an ICMP code from 0 to 255")?,
        _ => return plain_attribute(fields, &name, word, words),
    }
    Ok(fields)
}

fn plain_attribute(
    fields: Fields,
    name: &str,
    word: Word,
    words: &mut Words,
) -> Result<Fields, Wrong> {
    let port = "a number from 0 to 65535";
    let wide = "a number below 2^32";
    Ok(match name {
        "dscp" => {
            let value = dscp_value(words)?;
            fields.with(|build| build.dscp(value))
        }
        "ecn" => {
            let value = words.value("one of none, ect0, ect1, ce", ecn)?;
            fields.with(|build| build.ecn(value))
        }
        "ttl" => words.number("a hop limit from 0 to 255").map(|n| fields.with(|b| b.ttl(n)))?,
        "pppoe" => words.number(port).map(|n| fields.with(|b| b.pppoe(n)))?,
        "mac" => {
            let (a, b) = words.pair("a MAC such as 02:00:00:00:00:01", mac)?;
            fields.with(|build| build.macs(a, b))
        }
        "length" => words.number(port).map(|n: u16| fields.with(|b| b.frame_len(n.into())))?,
        "payload" => words.number(port).map(|n: u16| fields.with(|b| b.payload_len(n.into())))?,
        "flags" => {
            let value = words.value("TCP flags such as \"syn,ack\" or \"none\"", flags)?;
            fields.with(|build| build.tcp_flags(value))
        }
        "seq" => words.number(wide).map(|n| fields.with(|b| b.tcp_seq(n)))?,
        "ack" => words.number(wide).map(|n| fields.with(|b| b.tcp_ack(n)))?,
        "window" => words.number(port).map(|n| fields.with(|b| b.tcp_window(n)))?,
        "mss" => words.number(port).map(|n: u16| {
            let [high, low] = n.to_be_bytes();
            fields.with(|build| build.tcp_options(&[2, 4, high, low]))
        })?,
        "id" => words.number(port).map(|n| fields.with(|b| b.icmp_id(n)))?,
        "spi" => words.number(wide).map(|n| fields.with(|b| b.spi(n)))?,
        "reply" => fields.with(Build::arp_reply),
        _ => return Err(word.wrong("a word that is known here", &ATTRIBUTES)),
    })
}

fn dscp_value(words: &mut Words) -> Result<u8, Wrong> {
    let known: Vec<&str> = dscp::names().collect();
    let expected = "a DSCP such as \"ef\", \"af41\", \"cs1\" or a number below 64";
    let word = words.peek();
    let read = |word: &str| {
        let named = dscp::number(&word.to_ascii_lowercase());
        named.or_else(|| decimal(word)).filter(|&number| number < 64)
    };
    words.value(expected, read).map_err(|wrong| match word {
        Some(word) => word.wrong(expected, &known),
        None => wrong,
    })
}

fn ecn(word: &str) -> Option<u8> {
    let named = ECN.iter().position(|name| name.eq_ignore_ascii_case(word));
    let number = named.or_else(|| decimal(word))?;
    u8::try_from(number).ok().filter(|&number| number < 4)
}

fn flags(word: &str) -> Option<u8> {
    if word == "none" {
        return Some(0);
    }
    word.split(',').try_fold(0, |all, name| {
        FLAGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, bit)| all | bit)
    })
}

fn mac(word: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = word.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() <= 2 && !part.starts_with('+'))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

fn decimal<T: FromStr>(word: &str) -> Option<T> {
    word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse().ok())?
}

fn ethertype(word: &str) -> Option<u16> {
    match word.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u16::from_str_radix(hex, 16).ok(),
        _ => decimal(word),
    }
}

/// Types that have a kind of their own, so that a bare one would be a broken frame.
fn is_read_further(kind: u16) -> bool {
    let own = [ethernet::IPV4, ethernet::IPV6, ethernet::ARP, ethernet::PPPOE_SESSION];
    own.contains(&kind) || vlan::is_tag(kind)
}

/// The known word that takes the fewest changed letters, if they are few.
fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let most = if word.len() < 4 { 1 } else { 2 };
    let near = known.iter().map(|&k| (distance(&word, k), k)).filter(|&(d, _)| d <= most);
    near.min_by_key(|&(distance, _)| distance).map(|(_, name)| name)
}

/// Letters to add, drop or change, of words that are short.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().take(32).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show;

    fn wrong(line: &str) -> String {
        line.parse::<Build>().unwrap_err().to_string()
    }

    #[test]
    fn a_line_is_shown_as_it_was_written() {
        for line in [
            "udp 10.0.0.5:5060 > 192.0.2.1:5060 dscp ef length 200",
            "tcp [2001:db8::1]:80 > [2001:db8::2]:4000 flags ack vlan 10 length 1500",
            "tcp 10.0.0.1:1 > 10.0.0.2:2 flags syn,ece seq 7 window 100 mss 1460 length 58",
            "icmp 10.0.0.1 > 10.0.0.2 ecn ect0 ttl 1 id 9 length 60",
            "icmp fe80::1 > ff02::1 type 135 code 0 length 100",
            "esp 10.0.0.1 > 10.0.0.2 spi 7 pppoe 3 length 100",
            "arp 10.0.0.1 > 10.0.0.2 reply mac aa:00:00:00:00:01 > ff:ff:ff:ff:ff:ff length 60",
            "protocol 47 10.0.0.1 > 10.0.0.2 vlan 5 pcp 7 vlan 6 length 60",
            "ethertype 0x88cc mac aa:00:00:00:00:01 > 01:80:c2:00:00:0e length 60",
            "sctp 10.0.0.1:5 > 10.0.0.2:6 dscp 3 length 60",
        ] {
            let bytes = line.parse::<Build>().unwrap().to_vec();
            assert_eq!(show(&bytes).to_string(), line);
        }
    }

    #[test]
    fn remarks_and_upper_case_are_taken() {
        let line = "UDP 10.0.0.5:5060 > 192.0.2.1:5060 DSCP EF length 200";
        let remarked = format!("{line} (first fragment of 3)");
        assert_eq!(line.parse::<Build>(), remarked.parse::<Build>());
        assert!("mac 02:00:00:00:00:0a > ff:ff:ff:ff:ff:ff".parse::<Build>().is_ok());
    }

    #[test]
    fn the_wrong_word_is_named() {
        for (line, says) in [
            ("", "ends where the kind"),
            ("udb 10.0.0.1:1 > 10.0.0.2:2", "did you mean \"udp\"?"),
            ("udp 10.0.0.1 > 10.0.0.2:2", "\"10.0.0.1\" is not an address with a port"),
            ("udp 10.0.0.1:1 10.0.0.2:2", "column 16: \"10.0.0.2:2\" is not \">\""),
            ("udp 10.0.0.1:1 >", "the line ends"),
            ("udp 10.0.0.1:1 > [::1]:2", "same family"),
            ("udp 10.0.0.1:1 > 10.0.0.2:2 dcsp ef", "did you mean \"dscp\"?"),
            ("udp 10.0.0.1:1 > 10.0.0.2:2 dscp af4", "did you mean \"af4"),
            ("udp 10.0.0.1:1 > 10.0.0.2:2 vlan 4096", "VLAN from 0 to 4095"),
            ("udp 10.0.0.1:1 > 10.0.0.2:2 pcp 3", "vlan"),
            ("udp 10.0.0.1:1 > 10.0.0.2:2 mac 1:2:3:4:5 > 1:2:3:4:5:6", "MAC"),
            ("ethertype 0x0800", "Ethernet type"),
            ("protocol 43 ::1 > ::2", "extension"),
        ] {
            let message = wrong(line);
            assert!(message.contains(says), "{line}: {message}");
        }
    }
}
