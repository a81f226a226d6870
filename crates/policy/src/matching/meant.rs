//! Words of other programs (tcpdump, iptables, nft, tc), and what they are here.

use weir_units::{dscp, protocol};

/// The same term in the words of a policy, if any of its words is another program's. Source and
/// destination become sides: most often the LAN asks, and the WAN is where the known port is.
pub(super) fn term(words: &[&str]) -> Option<String> {
    let mut said: Vec<&str> = Vec::new();
    let mut words_left = words.iter().copied().peekable();
    while let Some(word) = words_left.next() {
        let next = words_left.peek().copied();
        let bare = word.trim_start_matches('-');
        match bare {
            "!" => said.push("not"),
            "proto" | "protocol" | "p" if next.and_then(protocol::number).is_some() => {}
            "ip" | "ip6" | "net" | "addr" | "address" if next.is_some() => {}
            "s" | "src" | "source" | "saddr" | "from" => said.push("lan"),
            "d" | "dst" | "dest" | "destination" | "daddr" | "to" => said.push("wan"),
            "sport" | "src-port" | "source-port" => said.extend(["lan", "port"]),
            "dport" | "dst-port" | "destination-port" => said.extend(["wan", "port"]),
            "ports" => said.push("port"),
            "host" | "range" if matches!(said.last(), Some(&("lan" | "wan"))) => {}
            _ => match word.strip_prefix('!') {
                Some(rest) if !rest.is_empty() => said.extend(["not", rest]),
                _ => said.push(word),
            },
        }
    }
    let nots = said.iter().filter(|word| **word == "not").count();
    said.retain(|word| *word != "not");
    if nots % 2 == 1 {
        said.insert(0, "not");
    }
    let at = usize::from(said.first() == Some(&"not"));
    if said.len() < words.len() && said.get(at).is_some_and(|word| word.contains(['.', ':'])) {
        said.insert(at, "lan");
    }
    (!said.is_empty() && said != words).then(|| said.join(" "))
}

/// The same with the other side.
pub(super) fn other_side(term: &str) -> Option<String> {
    let swap = |word| match word {
        "lan" => "wan",
        "wan" => "lan",
        other => other,
    };
    let other = term.split(' ').map(swap).collect::<Vec<_>>().join(" ");
    (other != term).then_some(other)
}

/// A word that joins terms elsewhere: the terms with commas, or as rules of their own.
pub(super) fn joined(words: &[&str]) -> Option<(&'static str, String)> {
    let is_or = |word: &str| matches!(word, "or" | "||");
    let is_and = |word: &str| matches!(word, "and" | "&&");
    let parts = |is: &dyn Fn(&str) -> bool| -> Vec<String> {
        words.split(|word| is(word)).map(|part| part.join(" ")).collect()
    };
    if words.iter().any(|word| is_or(word)) {
        let rules: Vec<String> = parts(&is_or).iter().map(|rule| format!("\"{rule}\"")).collect();
        let help = format!("write two rules: match = [{}]", rules.join(", "));
        return Some(("one matching rule is enough", help));
    }
    let all = parts(&is_and);
    (all.len() > 1).then(|| {
        let help = format!("write \"{}\"", all.join(", "));
        ("separate terms by commas", help)
    })
}

/// The port of a service that people know by name.
pub(super) fn service(name: &str) -> Option<u16> {
    Some(match name.to_ascii_lowercase().as_str() {
        "bgp" => 179,
        "dns" | "domain" => 53,
        "ftp" => 21,
        "http" => 80,
        "https" => 443,
        "imap" => 143,
        "imaps" => 993,
        "ldap" => 389,
        "mysql" => 3_306,
        "ntp" => 123,
        "openvpn" => 1_194,
        "rdp" => 3_389,
        "rsync" => 873,
        "sip" => 5_060,
        "smb" => 445,
        "smtp" => 25,
        "snmp" => 161,
        "ssh" => 22,
        "wireguard" => 51_820,
        _ => return None,
    })
}

/// An Ethernet type that people know by name.
fn named_type(lower: &str) -> Option<u16> {
    Some(match lower {
        "arp" => 0x0806,
        "ip" | "ipv4" => 0x0800,
        "ipv6" => 0x86dd,
        "lldp" => 0x88cc,
        "eapol" => 0x888e,
        "mpls" => 0x8847,
        "pppoe" => 0x8864,
        _ => return None,
    })
}

/// The number of an Ethernet type that is written otherwise.
pub(super) fn ethertype(text: &str) -> Option<u16> {
    let lower = text.to_ascii_lowercase();
    let named = named_type(&lower);
    // four digits are hexadecimal to most people, five can only be decimal
    let hex = (lower.len() == 4).then(|| u16::from_str_radix(&lower, 16).ok()).flatten();
    named.or(hex).or_else(|| lower.parse().ok()).filter(|number| *number >= 0x600)
}

/// The code point in a byte of the old type of service.
pub(super) fn code_point(text: &str) -> Option<String> {
    let byte = text.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex, 16).ok());
    let number = byte.or_else(|| text.parse().ok().filter(|n: &u8| *n > 63))?;
    (number % 4 == 0)
        .then(|| dscp::name(number / 4).map_or_else(|| (number / 4).to_string(), str::to_owned))
}

/// A MAC address as some switches write it: `0200.5e10.0001`, `02005e100001`.
pub(super) fn mac(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '.' | ':' | '-')).collect();
    let is_mac = digits.len() == 12 && digits.chars().all(|c| c.is_ascii_hexdigit());
    is_mac.then(|| {
        let lower = digits.to_ascii_lowercase();
        let bytes: Vec<&str> = (0..6).filter_map(|n| lower.get(2 * n..2 * n + 2)).collect();
        bytes.join(":")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_become_words_of_a_policy() {
        for (text, meant) in [
            ("src host 10.0.0.1", Some("lan 10.0.0.1")),
            ("dst net 10.0.0.0/24", Some("wan 10.0.0.0/24")),
            ("tcp dst port 443", Some("tcp wan port 443")),
            ("-p tcp --dport 443", Some("tcp wan port 443")),
            ("proto tcp sport 22", Some("tcp lan port 22")),
            ("ip saddr 10.0.0.1", Some("lan 10.0.0.1")),
            ("ip 10.0.0.1", Some("lan 10.0.0.1")),
            ("!tcp", Some("not tcp")),
            ("! tcp", Some("not tcp")),
            ("tcp port not 80", Some("not tcp port 80")),
            ("not not tcp", Some("tcp")),
            ("tcp port 80", None),
            ("lan host", None),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            let expected = if text == "lan host" { Some("lan".to_owned()) } else { None };
            assert_eq!(term(&words), meant.map(str::to_owned).or(expected), "{text}");
        }
    }

    #[test]
    fn numbers_in_other_forms_are_known() {
        assert_eq!(ethertype("LLDP"), Some(0x88cc));
        assert_eq!(ethertype("34916"), Some(0x8864));
        assert_eq!(ethertype("8864"), Some(0x8864));
        assert_eq!(ethertype("12"), None);
        assert_eq!(code_point("0xb8").as_deref(), Some("ef"));
        assert_eq!(code_point("184").as_deref(), Some("ef"));
        assert_eq!(code_point("64").as_deref(), Some("cs2"));
        assert_eq!(code_point("65"), None);
        assert_eq!(mac("0200.5e10.0001").as_deref(), Some("02:00:5e:10:00:01"));
        assert_eq!(mac("0200.5e10"), None);
    }
}
