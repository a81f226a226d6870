//! Lines whose terms can each be said and that no frame can ever satisfy.

use super::When;

/// Bytes of an Ethernet header: no frame is shorter.
const HEADER: u16 = 14;

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Why no frame can satisfy `when`, and the cure.
pub(super) fn contradiction(when: &When) -> Option<(&'static str, &'static str)> {
    if when.untagged && when.vlan.is_some() {
        return Some(("a frame without a tag is in no VLAN", "write two rules"));
    }
    if when.length.is_some_and(|(_, last)| last < HEADER) {
        return Some(("no frame is shorter than its header of 14 bytes", "count the whole frame"));
    }
    let ports = when.port.is_some() || when.lan_port.is_some() || when.wan_port.is_some();
    if ports && when.protocol.is_some_and(|(first, last)| !(first..=last).any(has_ports)) {
        return Some(("that protocol has no ports", "tcp, udp and sctp have ports"));
    }
    let sets = [&when.lan, &when.wan, &when.host];
    let addresses = sets.iter().any(|set| set.is_some());
    let ip = addresses || ports || when.protocol.is_some() || when.dscp.is_some();
    if when.ethertype == Some((ARP, ARP)) && ip {
        let what = "ARP is not IP: it has no addresses, protocol, ports or DSCP here";
        return Some((what, "remove one of the two"));
    }
    let mut families = match when.ethertype {
        Some((IPV4, IPV4)) => [true, false],
        Some((IPV6, IPV6)) => [false, true],
        _ => [true, true],
    };
    for set in sets.into_iter().flatten().filter(|set| !set.blocks().is_empty()) {
        for (family, v4) in families.iter_mut().zip([true, false]) {
            *family &= set.blocks().iter().any(|block| block.address().is_ipv4() == v4);
        }
    }
    if families == [false, false] {
        let what = "a frame is either IPv4 or IPv6, and the rule needs both";
        return Some((what, "write one rule for each"));
    }
    None
}

pub(super) fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | 132)
}
