//! The SCTP common header: ports. Its chunks are payload; its checksum is a CRC that no edit
//! touches.

use crate::Fault;
use crate::headers::Headers;
use crate::read::{array, be16, offset};

/// IP protocol number.
pub(crate) const NUMBER: u8 = 132;
/// Bytes of the common header.
pub(crate) const BYTES: usize = 12;

pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    let header: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadTransport)?;
    headers.transport_at = offset(at);
    headers.source_port = be16(header, 0);
    headers.target_port = be16(header, 2);
    headers.payload_at = offset(at + BYTES);
    Ok(())
}
