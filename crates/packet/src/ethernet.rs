//! The Ethernet header: two MACs and a type. A type below 0x600 is the length of an 802.3 frame:
//! behind SNAP its packet is read, anything else is carried unread.

use std::net::IpAddr;

use crate::headers::Headers;
use crate::read::array;
use crate::{Fault, arp, ipv4, ipv6, pppoe, vlan};

/// Bytes of the header without tags.
pub const BYTES: usize = 14;
/// Types from here on are types, below they are lengths.
pub(crate) const FIRST_TYPE: u16 = 0x600;
/// IPv4.
pub const IPV4: u16 = 0x0800;
/// Address resolution for IPv4.
pub const ARP: u16 = 0x0806;
/// IPv6.
pub const IPV6: u16 = 0x86dd;
/// PPPoE while a session is made.
pub(crate) const PPPOE_DISCOVERY: u16 = 0x8863;
/// PPPoE within a session.
pub(crate) const PPPOE_SESSION: u16 = 0x8864;

/// The MAC that a frame goes to.
#[inline]
#[must_use]
pub fn target_mac(bytes: &[u8]) -> Option<[u8; 6]> {
    array(bytes, 0).copied()
}

/// The MAC that a frame comes from.
#[inline]
#[must_use]
pub fn source_mac(bytes: &[u8]) -> Option<[u8; 6]> {
    array(bytes, 6).copied()
}

/// A MAC for the host of an address, where nothing says which it has: each host has its own.
#[must_use]
pub const fn mac_for(address: IpAddr) -> [u8; 6] {
    let (family, [a, b, c, d]) = match address {
        IpAddr::V4(v4) => (0, v4.octets()),
        IpAddr::V6(v6) => {
            let [a, b, c, d] = halved(v6.to_bits());
            (6, (a ^ b ^ c ^ d).to_be_bytes())
        }
    };
    [2, family, a, b, c, d]
}

#[expect(clippy::cast_possible_truncation, reason = "all four parts are taken")]
const fn halved(bits: u128) -> [u32; 4] {
    [(bits >> 96) as u32, (bits >> 64) as u32, (bits >> 32) as u32, bits as u32]
}

#[inline]
pub(crate) fn read(headers: &mut Headers, bytes: &[u8]) -> Result<(), Fault> {
    let at = vlan::read(headers, bytes)?;
    headers.net_at = crate::read::offset(at);
    match headers.ethertype {
        IPV4 => ipv4::read(headers, bytes, at),
        IPV6 => ipv6::read(headers, bytes, at),
        ARP => arp::read(headers, bytes, at),
        PPPOE_SESSION => pppoe::read(headers, bytes, at),
        PPPOE_DISCOVERY => {
            headers.pppoe = true;
            Ok(())
        }
        _ => Ok(()),
    }
}
