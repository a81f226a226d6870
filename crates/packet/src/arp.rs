//! ARP for IPv4 over Ethernet: who asks for whom. Other kinds of ARP are known only as ARP.

use crate::headers::{Headers, Net};
use crate::read::{array, be16, be32};
use crate::{Fault, ethernet};

/// Bytes of an ARP packet for IPv4 over Ethernet.
pub(crate) const BYTES: usize = 28;

pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    headers.net = Net::Arp;
    let start: &[u8; 8] = array(bytes, at).ok_or(Fault::BadArp)?;
    if (be16(start, 2), start[4], start[5]) != (ethernet::IPV4, 6, 4) {
        return Ok(());
    }
    let packet: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadArp)?;
    headers.source = u128::from(be32(packet, 14));
    headers.target = u128::from(be32(packet, 24));
    Ok(())
}
