//! The UDP header: ports and a length that must fit.

use crate::Fault;
use crate::headers::{Fragment, Headers, Net};
use crate::read::{array, be16, offset};

/// IP protocol number.
pub(crate) const NUMBER: u8 = 17;
/// Bytes of the header.
pub(crate) const BYTES: usize = 8;

#[inline]
pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    let header: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadTransport)?;
    headers.transport_at = offset(at);
    headers.source_port = be16(header, 0);
    headers.target_port = be16(header, 2);
    headers.payload_at = offset(at + BYTES);
    let len = usize::from(be16(header, 4));
    // length 0 is a jumbogram in IPv6; that of a first fragment is the whole datagram's
    let jumbo = len == 0 && headers.net == Net::V6;
    let too_long = at + len > bytes.len() && headers.fragment == Fragment::None;
    if (len < BYTES && !jumbo) || too_long {
        return Err(Fault::BadTransport);
    }
    Ok(())
}
