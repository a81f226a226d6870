//! ESP and AH: the security parameter index is what tells their flows apart. ESP hides what
//! follows; AH does not, so the parser walks through it.

use crate::Fault;
use crate::headers::Headers;
use crate::read::{array, be32, offset};

/// IP protocol number of the encapsulating security payload.
pub(crate) const ESP: u8 = 50;
/// IP protocol number of the authentication header.
pub(crate) const AH: u8 = 51;
/// Bytes of ESP that are not hidden.
pub(crate) const ESP_BYTES: usize = 8;

pub(crate) fn read_esp(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    let header: &[u8; ESP_BYTES] = array(bytes, at).ok_or(Fault::BadTransport)?;
    headers.transport_at = offset(at);
    headers.spi = be32(header, 0);
    headers.payload_at = offset(at + ESP_BYTES);
    Ok(())
}

/// The protocol behind the authentication header, and where it begins.
pub(crate) fn read_ah(
    headers: &mut Headers,
    bytes: &[u8],
    at: usize,
) -> Result<(u8, usize), Fault> {
    let header: &[u8; 12] = array(bytes, at).ok_or(Fault::BadIpHeader)?;
    let behind = at + 8 + 4 * usize::from(header[1]);
    if header[1] == 0 || behind > bytes.len() {
        return Err(Fault::BadIpHeader);
    }
    headers.spi = be32(header, 4);
    headers.ah = true;
    Ok((header[0], behind))
}
