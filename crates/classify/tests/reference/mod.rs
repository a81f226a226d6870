//! The rules of a spec asked one after the other, as plainly as can be.

use std::net::IpAddr;

use weir_classify::{Origin, Raw, Spec, Target, When};
use weir_packet::{Headers, Side, ethernet};
use weir_units::Prefix;

/// Rule and class that take a frame.
pub(crate) fn answer(
    spec: &Spec,
    side: Side,
    headers: &Headers,
    bytes: &[u8],
) -> Option<(usize, u32)> {
    let matches = |rule: usize| holds(spec, &spec.rules[rule].when, side, headers, bytes);
    let class_matches = |class: u32| {
        (0..spec.rules.len()).any(|rule| spec.rules[rule].class == class && matches(rule))
    };
    let rule = (0..spec.rules.len()).find(|&rule| {
        let mut above = spec.classes[spec.rules[rule].class as usize].parent;
        let mut counts = matches(rule);
        while let Some(class) = above {
            let has_rules = spec.rules.iter().any(|rule| rule.class == class);
            counts &= !has_rules || class_matches(class);
            above = spec.classes[class as usize].parent;
        }
        counts
    })?;
    Some((rule, spec.rules[rule].class))
}

/// The leaf of a frame, unless it is one made for a host.
pub(crate) fn fixed_leaf(spec: &Spec, side: Side, headers: &Headers, bytes: &[u8]) -> Option<u32> {
    let Some((_, class)) = answer(spec, side, headers, bytes) else {
        return Some(spec.default_leaf);
    };
    match spec.classes[class as usize].target {
        Target::Leaf(leaf) => Some(leaf),
        Target::Subscriber { otherwise } => {
            Some(subscriber(spec, side, headers, bytes).unwrap_or(otherwise))
        }
        Target::Each(_) => None,
    }
}

fn ends(side: Side, headers: &Headers) -> Option<(IpAddr, IpAddr)> {
    let (source, target) = headers.addresses().filter(|_| headers.is_ip())?;
    Some(if side == Side::Lan { (source, target) } else { (target, source) })
}

fn subscriber(spec: &Spec, side: Side, headers: &Headers, bytes: &[u8]) -> Option<u32> {
    let Some((lan, _)) = ends(side, headers) else { return by_mac(spec, side, bytes) };
    let mut best: Option<(u8, u32)> = None;
    for (block, leaf) in spec.subscribers.iter().filter(|(block, _)| block.contains(lan)) {
        if best.is_none_or(|(len, _)| block.len() > len) {
            best = Some((block.len(), *leaf));
        }
    }
    best.map(|(_, leaf)| leaf).or_else(|| by_mac(spec, side, bytes))
}

/// The first of those with the MAC on the LAN side.
fn by_mac(spec: &Spec, side: Side, bytes: &[u8]) -> Option<u32> {
    let mac = match side {
        Side::Lan => ethernet::source_mac(bytes),
        Side::Wan => ethernet::target_mac(bytes),
    };
    spec.subscriber_macs.iter().find(|(known, _)| Some(*known) == mac).map(|(_, leaf)| *leaf)
}

fn holds(spec: &Spec, when: &When, side: Side, h: &Headers, bytes: &[u8]) -> bool {
    let ends = ends(side, h);
    let within = |blocks: &[Prefix], end: Option<IpAddr>| {
        end.is_some_and(|end| blocks.iter().any(|block| block.contains(end)))
    };
    let (lan, wan) = (ends.map(|e| e.0), ends.map(|e| e.1));
    let ported = h.transport_at != 0 && matches!(h.protocol, 6 | 17 | 132);
    let ports = ported.then_some((h.source_port, h.target_port));
    let (source_mac, target_mac) = (ethernet::source_mac(bytes), ethernet::target_mac(bytes));
    let (lan_port, wan_port, lan_mac, wan_mac) = match side {
        Side::Lan => (ports.map(|p| p.0), ports.map(|p| p.1), source_mac, target_mac),
        Side::Wan => (ports.map(|p| p.1), ports.map(|p| p.0), target_mac, source_mac),
    };
    let inside = |(first, last): (u16, u16), port: Option<u16>| {
        port.is_some_and(|port| first <= port && port <= last)
    };
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    (when.lan.is_empty() || within(&when.lan, lan))
        && (when.wan.is_empty() || within(&when.wan, wan))
        && (when.host.is_empty() || within(&when.host, lan) || within(&when.host, wan))
        && when.lan_port.is_none_or(|range| inside(range, lan_port))
        && when.wan_port.is_none_or(|range| inside(range, wan_port))
        && when.port.is_none_or(|range| inside(range, lan_port) || inside(range, wan_port))
        && when.protocol.is_none_or(|range| h.is_ip() && is_protocol(h, range))
        && when.dscp.is_none_or(|(first, last)| h.is_ip() && (first..=last).contains(&h.dscp()))
        && when.vlan.is_none_or(|range| inside(range, h.vlan()))
        && (!when.untagged || h.vlan().is_none())
        && when.lan_mac.is_none_or(|mac| lan_mac == Some(mac))
        && when.wan_mac.is_none_or(|mac| wan_mac == Some(mac))
        && when.mac.is_none_or(|mac| lan_mac == Some(mac) || wan_mac == Some(mac))
        && when.length.is_none_or(|range| inside(range, Some(length)))
        && when.side.is_none_or(|asked| asked == side)
        && when.ethertype.is_none_or(|(first, last)| (first..=last).contains(&h.ethertype))
        && when.net.is_none_or(|net| net == h.net)
        && (!when.subscriber || subscriber(spec, side, h, bytes).is_some())
        && when.raw.iter().all(|raw| raw_holds(raw, h, bytes))
}

/// A packet with an authentication header is of two protocols.
fn is_protocol(h: &Headers, (first, last): (u8, u8)) -> bool {
    (first..=last).contains(&h.protocol) || h.ah && (first, last) == (51, 51)
}

fn raw_holds(raw: &Raw, h: &Headers, bytes: &[u8]) -> bool {
    let start = match raw.from {
        Origin::Frame => 0,
        Origin::Net if h.net_at != 0 => h.net_at,
        Origin::Transport if h.transport_at != 0 => h.transport_at,
        Origin::Payload if h.payload_at != 0 => h.payload_at,
        _ => return false,
    };
    let at = usize::from(start) + usize::from(raw.at);
    let Some(found) = bytes.get(at..at + usize::from(raw.length)) else { return false };
    let mut value = 0u64;
    for &byte in found {
        value = value << 8 | u64::from(byte);
    }
    value & raw.mask == raw.value & raw.mask
}
