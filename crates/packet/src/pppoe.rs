//! PPPoE within a session: six bytes of its own, two of PPP, then IP. What is neither IPv4 nor
//! IPv6 (the control of the link) is carried unread.

use crate::headers::Headers;
use crate::read::{array, be16, offset};
use crate::{Fault, ipv4, ipv6};

/// Bytes of the PPPoE header and the PPP protocol number.
pub(crate) const BYTES: usize = 8;
/// Version 1, type 1, code 0: data of a session.
pub(crate) const DATA: [u8; 2] = [0x11, 0];
/// PPP number of IPv4.
pub(crate) const PPP_IPV4: u16 = 0x0021;
/// PPP number of IPv6.
pub(crate) const PPP_IPV6: u16 = 0x0057;

pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    headers.pppoe = true;
    let header: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadPppoe)?;
    let end = at + 6 + usize::from(be16(header, 4));
    if header[..2] != DATA || end < at + BYTES {
        return Err(Fault::BadPppoe);
    }
    let bytes = bytes.get(..end).ok_or(Fault::BadPppoe)?;
    match be16(header, 6) {
        PPP_IPV4 => {
            headers.net_at = offset(at + BYTES);
            ipv4::read(headers, bytes, at + BYTES)
        }
        PPP_IPV6 => {
            headers.net_at = offset(at + BYTES);
            ipv6::read(headers, bytes, at + BYTES)
        }
        _ => Ok(()),
    }
}
