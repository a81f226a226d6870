//! PPPoE within a session: six bytes of its own, the number of a PPP protocol, then IP. What is
//! neither IPv4 nor IPv6 (the control of the link) is carried unread.
//!
//! Linux looks at neither version nor code, and takes a protocol number of one byte even where none
//! was agreed (RFC 1661, section 6.5). So nothing is asked of them here either.

use crate::headers::Headers;
use crate::read::{array, be16, offset};
use crate::{Fault, ipv4, ipv6};

/// Bytes of the PPPoE header.
pub(crate) const BYTES: usize = 6;
/// Version 1, type 1, code 0: data of a session.
pub(crate) const DATA: [u8; 2] = [0x11, 0];
/// PPP number of IPv4.
pub(crate) const PPP_IPV4: u16 = 0x0021;
/// PPP number of IPv6.
pub(crate) const PPP_IPV6: u16 = 0x0057;

pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    headers.pppoe = true;
    let header: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadPppoe)?;
    let end = at + BYTES + usize::from(be16(header, 4));
    let bytes = bytes.get(..end).ok_or(Fault::BadPppoe)?;
    let (number, at) = protocol(bytes, at + BYTES).ok_or(Fault::BadPppoe)?;
    match number {
        PPP_IPV4 => {
            headers.net_at = offset(at);
            ipv4::read(headers, bytes, at)
        }
        PPP_IPV6 => {
            headers.net_at = offset(at);
            ipv6::read(headers, bytes, at)
        }
        _ => Ok(()),
    }
}

/// The number of a PPP protocol, whose last byte alone is odd, and what follows it.
fn protocol(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    match *bytes.get(at..)? {
        [low, ..] if low & 1 == 1 => Some((low.into(), at + 1)),
        [high, low, ..] => Some((u16::from_be_bytes([high, low]), at + 2)),
        _ => None,
    }
}
