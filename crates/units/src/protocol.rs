//! Names of the protocols that IP carries (IANA protocol numbers), those an operator speaks of.

use crate::names::Names;

const NAMES: Names = Names(&[
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
]);

/// The number of the protocol that `name` stands for.
#[must_use]
pub fn number(name: &str) -> Option<u8> {
    NAMES.number(name)
}

/// The name of a protocol that has one.
#[must_use]
pub fn name(number: u8) -> Option<&'static str> {
    NAMES.name(number)
}

/// All names, for messages.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    NAMES.all()
}
