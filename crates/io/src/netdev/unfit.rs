//! Why weir cannot use an interface, and what the operator does about it. Pure.

use std::fmt;

use weir_units::limits::PORT_MTU;

use super::{InterfaceKind, Netdev, PartOf, Wifi};

/// One reason, with its cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is no interface of that name; those with the nearest names.
    NotFound(String, Vec<String>),
    /// The kernel does not tell, and why.
    Unreadable(String, String),
    /// It is the loopback.
    Loopback(String),
    /// Its packets have no Ethernet header.
    NoEthernet(String),
    /// It is a radio that is served by an access point, or does not say.
    WifiStation(String),
    /// It is a bridge, not a port.
    Bridge(String),
    /// It is part of a bond or of something else that takes its frames.
    Member(String),
    /// It is in a bridge that passes frames past weir.
    Bridged(String),
    /// It is not up.
    Down(String),
    /// It carries packets that are longer than weir's buffers.
    Mtu(String, usize),
}

/// All that stands against an interface.
pub(super) fn judge(netdev: &Netdev) -> Vec<Unfit> {
    let name = || netdev.name.clone();
    let mut against = Vec::new();
    match &netdev.kind {
        // the rest does not matter for what can never be a port
        InterfaceKind::Loopback => return vec![Unfit::Loopback(name())],
        InterfaceKind::NoEthernet => return vec![Unfit::NoEthernet(name())],
        InterfaceKind::Bridge => return vec![Unfit::Bridge(name())],
        InterfaceKind::Wifi(Wifi::Station | Wifi::Unknown) => {
            against.push(Unfit::WifiStation(name()));
        }
        InterfaceKind::Wifi(Wifi::AccessPoint)
        | InterfaceKind::Ethernet
        | InterfaceKind::Veth
        | InterfaceKind::Vlan => {}
        InterfaceKind::Bond | InterfaceKind::Tap | InterfaceKind::Other(_) => {}
    }
    match netdev.part_of {
        PartOf::Nothing | PartOf::Bridge { isolated: true } => {}
        PartOf::Bridge { isolated: false } => against.push(Unfit::Bridged(name())),
        PartOf::Bond | PartOf::Other => against.push(Unfit::Member(name())),
    }
    if !netdev.up {
        against.push(Unfit::Down(name()));
    }
    if netdev.mtu > PORT_MTU {
        against.push(Unfit::Mtu(name(), netdev.mtu));
    }
    against
}

/// What to say of a name that is not there.
pub(super) fn not_found(name: &str, there: &[String]) -> Unfit {
    let mut near: Vec<(usize, &String)> =
        there.iter().map(|other| (distance(name, other), other)).collect();
    near.sort();
    // a slip changes a letter of three at most
    let slip = (name.len() / 3).max(1);
    let near = near.into_iter().filter(|&(distance, _)| distance <= slip).take(3);
    Unfit::NotFound(name.to_owned(), near.map(|(_, other)| other.clone()).collect())
}

/// How many letters must change, come or go to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::NotFound(name, near) if near.is_empty() => write!(
                f,
                "\"{name}\": there is no such interface; `ip -brief link` lists those there are"
            ),
            Unfit::NotFound(name, near) => {
                write!(f, "\"{name}\": there is no such interface; did you mean ")?;
                for (n, name) in near.iter().enumerate() {
                    write!(f, "{}\"{name}\"", if n == 0 { "" } else { " or " })?;
                }
                f.write_str("?")
            }
            Unfit::Unreadable(name, why) => write!(
                f,
                "\"{name}\": the kernel does not tell what it is: {why}; \
                 `ip -details link show {name}` asks it the same"
            ),
            Unfit::Loopback(name) => write!(
                f,
                "\"{name}\" is the loopback, which no other host is behind; name the interface \
                 that leads to them"
            ),
            Unfit::NoEthernet(name) => write!(
                f,
                "\"{name}\" carries packets without an Ethernet header (PPP, tun, a tunnel); name \
                 the Ethernet interface below it, weir reads PPPoE there"
            ),
            Unfit::WifiStation(name) => write!(
                f,
                "\"{name}\" is a radio in station mode: its access point takes frames from one \
                 address only, so nothing can be bridged through it; use an access point \
                 (`iw dev {name} set type __ap` with hostapd) or a cable"
            ),
            Unfit::Bridge(name) => write!(
                f,
                "\"{name}\" is a bridge, weir needs its two ports; `ip link show master {name}` \
                 lists them"
            ),
            Unfit::Member(name) => write!(
                f,
                "\"{name}\" is part of a bond, which takes its frames; name the bond, or run \
                 `ip link set {name} nomaster`"
            ),
            Unfit::Bridged(name) => write!(
                f,
                "\"{name}\" is in a bridge that passes frames past weir; run \
                 `ip link set {name} nomaster`, or keep it there by \
                 `bridge link set dev {name} isolated on` for both ports"
            ),
            Unfit::Down(name) => write!(f, "\"{name}\" is down; run `ip link set {name} up`"),
            Unfit::Mtu(name, mtu) => write!(
                f,
                "\"{name}\" has an MTU of {mtu}, more than {PORT_MTU}; run \
                 `ip link set {name} mtu {PORT_MTU}`"
            ),
        }
    }
}

impl std::error::Error for Unfit {}

#[cfg(test)]
mod tests {
    use super::*;

    fn netdev() -> Netdev {
        let name = "eth1".to_owned();
        Netdev { name, index: 2, mtu: 1_500, up: true, link: true, ..Netdev::default() }
    }

    #[test]
    fn all_reasons_are_told_at_once() {
        assert_eq!(judge(&netdev()), []);
        let part_of = PartOf::Bridge { isolated: false };
        let bad = Netdev { up: false, mtu: 16_000, part_of, ..netdev() };
        let text: Vec<_> = judge(&bad).iter().map(ToString::to_string).collect();
        assert_eq!(text.len(), 3);
        assert!(text[0].ends_with("`bridge link set dev eth1 isolated on` for both ports"));
        assert_eq!(text[1], "\"eth1\" is down; run `ip link set eth1 up`");
        assert!(text[2].ends_with("`ip link set eth1 mtu 9216`"));
    }

    #[test]
    fn a_port_that_its_bridge_isolates_is_fine() {
        let part_of = PartOf::Bridge { isolated: true };
        assert_eq!(judge(&Netdev { part_of, ..netdev() }), []);
    }

    #[test]
    fn what_can_never_be_a_port_has_one_reason() {
        for kind in [InterfaceKind::Loopback, InterfaceKind::NoEthernet, InterfaceKind::Bridge] {
            let bad = Netdev { kind, up: false, mtu: 65_536, ..netdev() };
            assert_eq!(judge(&bad).len(), 1);
        }
        let station = Netdev { kind: InterfaceKind::Wifi(Wifi::Station), ..netdev() };
        assert_eq!(judge(&station), [Unfit::WifiStation("eth1".into())]);
        let served = Netdev { kind: InterfaceKind::Wifi(Wifi::AccessPoint), ..netdev() };
        assert_eq!(judge(&served), []);
    }

    #[test]
    fn a_name_that_is_not_there_comes_with_the_nearest() {
        let there = ["lo", "enp3s0", "enp4s0", "wlan0"].map(str::to_owned);
        let text = not_found("enp3so", &there).to_string();
        assert!(text.ends_with("did you mean \"enp3s0\" or \"enp4s0\"?"), "{text}");
        assert!(not_found("x", &there[1..]).to_string().contains("ip -brief link"));
    }
}
