//! The IPv6 header and the chain of extension headers behind it, up to a bound.

use weir_units::limits::IPV6_EXTENSIONS;

use crate::headers::{Fragment, Headers, Net};
use crate::read::{array, be16, be32, offset};
use crate::{Fault, ipsec};

/// Bytes of the fixed header.
pub(crate) const BYTES: usize = 40;
/// Options that every hop reads.
pub(crate) const HOP_BY_HOP: u8 = 0;
/// A route that the sender chose.
pub(crate) const ROUTING: u8 = 43;
/// A piece of a packet.
pub(crate) const FRAGMENT: u8 = 44;
/// Options for the receiver.
pub(crate) const DESTINATION: u8 = 60;

/// Whether a next-header number is an extension header that the parser walks through.
pub(crate) const fn is_extension(number: u8) -> bool {
    matches!(number, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION | ipsec::AH)
}

#[inline]
pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    let header: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadIpHeader)?;
    if header[0] >> 4 != 6 {
        return Err(Fault::BadIpHeader);
    }
    headers.net = Net::V6;
    headers.traffic_class = (header[0] << 4) | (header[1] >> 4);
    headers.protocol = header[6];
    let (source, target) = (array(header, 8), array(header, 24));
    headers.source = source.copied().map_or(0, u128::from_be_bytes);
    headers.target = target.copied().map_or(0, u128::from_be_bytes);
    let end = match be16(header, 4) {
        // the length may stand in an option; Linux takes what there is if it stands nowhere
        0 if headers.protocol == HOP_BY_HOP => bytes.len(),
        length => at + BYTES + usize::from(length),
    };
    let bytes = bytes.get(..end).ok_or(Fault::BadIpLength)?;
    headers.end = offset(end);
    if is_extension(headers.protocol) {
        read_extensions(headers, bytes, at + BYTES)
    } else {
        headers.read_transport(bytes, at + BYTES)
    }
}

fn read_extensions(headers: &mut Headers, bytes: &[u8], mut at: usize) -> Result<(), Fault> {
    for _ in 0..IPV6_EXTENSIONS {
        (headers.protocol, at) = match headers.protocol {
            ipsec::AH => ipsec::read_ah(headers, bytes, at)?,
            FRAGMENT => {
                let header: &[u8; 8] = array(bytes, at).ok_or(Fault::BadIpHeader)?;
                read_fragment(headers, header);
                (header[0], at + 8)
            }
            HOP_BY_HOP | ROUTING | DESTINATION => {
                let header: &[u8; 8] = array(bytes, at).ok_or(Fault::BadIpHeader)?;
                let behind = at + 8 + 8 * usize::from(header[1]);
                if behind > bytes.len() {
                    return Err(Fault::BadIpHeader);
                }
                (header[0], behind)
            }
            _ => return headers.read_transport(bytes, at),
        };
        if headers.fragment == Fragment::Later {
            headers.payload_at = offset(at);
            return Ok(());
        }
    }
    if is_extension(headers.protocol) {
        return Err(Fault::TooManyExtensions);
    }
    headers.read_transport(bytes, at)
}

/// A fragment header that cuts nothing off (offset 0, no more to come) is a whole packet.
fn read_fragment(headers: &mut Headers, header: &[u8; 8]) {
    let cut = be16(header, 2);
    if cut & 0xfff9 != 0 {
        headers.fragment = if cut & 0xfff8 == 0 { Fragment::First } else { Fragment::Later };
        headers.fragment_id = be32(header, 4);
    }
}
