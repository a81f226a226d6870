//! VLAN tags: 802.1Q, 802.1ad (service tags) and the older 0x9100, in any stack up to a bound.

use weir_units::limits::VLAN_TAGS;

use crate::Fault;
use crate::headers::Headers;
use crate::read::{array, be16};

/// Type of an 802.1Q tag.
pub const CUSTOMER: u16 = 0x8100;
/// Type of an 802.1ad service tag.
pub const SERVICE: u16 = 0x88a8;
/// Type of a service tag before 802.1ad.
pub const SERVICE_OLD: u16 = 0x9100;

/// Whether an Ethernet type says that a tag follows.
#[inline]
#[must_use]
pub const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, CUSTOMER | SERVICE | SERVICE_OLD)
}

/// The tags of a frame from the outermost on: priority, drop bit and number as they stand.
pub fn tags(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    (0..VLAN_TAGS).map_while(move |n| {
        let tag: &[u8; 4] = array(bytes, 12 + 4 * n)?;
        is_tag(be16(tag, 0)).then(|| be16(tag, 2))
    })
}

/// Reads type and tags; returns where the payload begins.
#[inline]
pub(crate) fn read(headers: &mut Headers, bytes: &[u8]) -> Result<usize, Fault> {
    let header: &[u8; 14] = array(bytes, 0).ok_or(Fault::Runt)?;
    headers.ethertype = be16(header, 12);
    let mut at = 14;
    while is_tag(headers.ethertype) {
        if usize::from(headers.tags) == VLAN_TAGS {
            return Err(Fault::TooManyTags);
        }
        let tag: &[u8; 4] = array(bytes, at).ok_or(Fault::Runt)?;
        if headers.tags == 0 {
            headers.tci = be16(tag, 0);
        }
        headers.tags += 1;
        headers.ethertype = be16(tag, 2);
        at += 4;
    }
    Ok(at)
}
