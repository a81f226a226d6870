//! The second opinion: etherparse, on the frames that it accepts.

use etherparse::{LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use weir_packet::{Fragment, Headers, Net};

/// Fails where the two parsers differ on a frame that etherparse reads to the end.
pub(crate) fn agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let headers = Headers::parse(bytes);
    let Ok(packet) = SlicedPacket::from_ethernet(bytes) else { return Ok(()) };
    if packet.link_exts.iter().any(|ext| !matches!(ext, LinkExtSlice::Vlan(_))) {
        return Ok(());
    }
    let tags = packet.link_exts.len();
    if tags < SlicedPacket::LINK_EXTS_CAP {
        prop_assert_eq!(usize::from(headers.tags), tags);
    }
    if tags < SlicedPacket::LINK_EXTS_CAP {
        let mut numbers = packet.link_exts.iter().filter_map(|ext| match ext {
            LinkExtSlice::Vlan(tag) => Some(tag.vlan_identifier().value()),
            LinkExtSlice::Macsec(_) => None,
        });
        // a priority tag is no VLAN
        prop_assert_eq!(headers.vlan(), numbers.find(|number| *number != 0));
    }
    let (protocol, payload) = match &packet.net {
        Some(NetSlice::Ipv4(v4)) => {
            let header = v4.header();
            prop_assert_eq!(headers.net, Net::V4);
            prop_assert_eq!(headers.source, u128::from(header.source_addr().to_bits()));
            prop_assert_eq!(headers.target, u128::from(header.destination_addr().to_bits()));
            prop_assert_eq!(headers.dscp(), header.dcp().value());
            prop_assert_eq!(headers.ecn(), header.ecn().value());
            let first = header.more_fragments() && header.fragments_offset().value() == 0;
            prop_assert_eq!(headers.fragment == Fragment::First, first);
            prop_assert_eq!(headers.fragment != Fragment::None, v4.is_payload_fragmented());
            (v4.payload().ip_number.0, v4.payload().payload)
        }
        Some(NetSlice::Ipv6(v6)) => {
            let header = v6.header();
            prop_assert_eq!(headers.net, Net::V6);
            prop_assert_eq!(headers.source, header.source_addr().to_bits());
            prop_assert_eq!(headers.target, header.destination_addr().to_bits());
            prop_assert_eq!(headers.traffic_class, header.traffic_class());
            prop_assert_eq!(headers.fragment != Fragment::None, v6.is_payload_fragmented());
            (v6.payload().ip_number.0, v6.payload().payload)
        }
        Some(NetSlice::Arp(_)) => {
            prop_assert_eq!(headers.net, Net::Arp);
            return Ok(());
        }
        None => return Ok(()),
    };
    // etherparse walks through a longer chain and through headers that to us are protocols
    if headers.fault.is_some() || matches!(headers.protocol, 135 | 139 | 140) {
        return Ok(());
    }
    if headers.fragment == Fragment::Later {
        return Ok(());
    }
    prop_assert_eq!(headers.protocol, protocol);
    prop_assert_eq!(usize::from(headers.transport_at), place(bytes, payload));
    prop_assert_eq!(usize::from(headers.end), place(bytes, payload) + payload.len());
    let (source, target, behind) = match &packet.transport {
        Some(TransportSlice::Udp(udp)) => {
            (udp.source_port(), udp.destination_port(), udp.payload())
        }
        Some(TransportSlice::Tcp(tcp)) => {
            (tcp.source_port(), tcp.destination_port(), tcp.payload())
        }
        _ => return Ok(()),
    };
    prop_assert_eq!((headers.source_port, headers.target_port), (source, target));
    prop_assert_eq!(usize::from(headers.payload_at), place(bytes, behind));
    Ok(())
}

/// Where a part begins in the whole that it was cut from.
fn place(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}
