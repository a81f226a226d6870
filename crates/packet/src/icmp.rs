//! ICMP and ICMPv6: the identifier of an echo tells one ping from another.

use crate::Fault;
use crate::headers::Headers;
use crate::read::{array, be16, offset};

/// IP protocol number of ICMP.
pub(crate) const V4: u8 = 1;
/// IP protocol number of ICMPv6.
pub(crate) const V6: u8 = 58;
/// Bytes of the header.
pub(crate) const BYTES: usize = 8;

/// Whether a type is an echo request or reply.
pub(crate) const fn is_echo(protocol: u8, kind: u8) -> bool {
    match protocol {
        V4 => matches!(kind, 0 | 8),
        _ => matches!(kind, 128 | 129),
    }
}

pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    let header: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadTransport)?;
    headers.transport_at = offset(at);
    headers.payload_at = offset(at + BYTES);
    if is_echo(headers.protocol, header[0]) {
        headers.spi = u32::from(be16(header, 4));
    }
    Ok(())
}
