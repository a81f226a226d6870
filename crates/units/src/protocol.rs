//! Names of the protocols that IP carries (IANA protocol numbers), those an operator speaks of.

const NAMES: [(&str, u8); 14] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("ip6in4", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", 132),
];

/// The number of the protocol that `name` stands for.
#[must_use]
pub fn number(name: &str) -> Option<u8> {
    NAMES.iter().find(|(n, _)| *n == name).map(|(_, number)| *number)
}

/// The name of a protocol that has one.
#[must_use]
pub fn name(number: u8) -> Option<&'static str> {
    NAMES.iter().find(|(_, n)| *n == number).map(|(name, _)| *name)
}

/// All names, for messages.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    NAMES.iter().map(|(name, _)| *name)
}
