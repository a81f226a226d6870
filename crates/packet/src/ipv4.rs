//! The IPv4 header: addresses, protocol, fragments. Options are stepped over.

use crate::headers::{Fragment, Headers, Net};
use crate::read::{array, be16, be32, offset};
use crate::{Fault, ipsec};

/// Bytes of the header without options.
pub(crate) const BYTES: usize = 20;

#[inline]
pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    let header: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadIpHeader)?;
    let own = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || own < BYTES || bytes.len() < at + own {
        return Err(Fault::BadIpHeader);
    }
    headers.net = Net::V4;
    headers.traffic_class = header[1];
    headers.protocol = header[9];
    headers.source = u128::from(be32(header, 12));
    headers.target = u128::from(be32(header, 16));
    let cut = be16(header, 6);
    if cut & 0x3fff != 0 {
        headers.fragment = if cut & 0x1fff == 0 { Fragment::First } else { Fragment::Later };
        headers.fragment_id = u32::from(be16(header, 4));
    }
    let total = usize::from(be16(header, 2));
    if total < own || at + total > bytes.len() {
        return Err(Fault::BadIpLength);
    }
    let bytes = &bytes[..at + total];
    headers.end = offset(at + total);
    if headers.fragment == Fragment::Later {
        headers.payload_at = offset(at + own);
        return Ok(());
    }
    if headers.protocol == ipsec::AH {
        let (next, behind) = ipsec::read_ah(headers, bytes, at + own)?;
        headers.protocol = next;
        return headers.read_transport(bytes, behind);
    }
    headers.read_transport(bytes, at + own)
}
