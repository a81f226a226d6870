//! What may stand between the MACs of a frame and its packet: VLAN tags (802.1Q, 802.1ad service
//! tags and the older 0x9100) and SNAP headers, in any order up to a bound.
//!
//! Receivers take off more of them than a network needs. Linux unwraps priority tags (VLAN 0) to
//! any depth. A Wi-Fi access point sends an 802.3 frame with LLC and SNAP on as it is, and the
//! station behind it reads what stands in it as an ordinary packet. So all are followed here.

use weir_units::limits::VLAN_TAGS;

use crate::headers::Headers;
use crate::read::{array, be16};
use crate::{Fault, ethernet};

/// Type of an 802.1Q tag.
pub const CUSTOMER: u16 = 0x8100;
/// Type of an 802.1ad service tag.
pub const SERVICE: u16 = 0x88a8;
/// Type of a service tag before 802.1ad.
pub(crate) const SERVICE_OLD: u16 = 0x9100;

/// Whether an Ethernet type says that a tag follows.
#[inline]
#[must_use]
pub(crate) const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, CUSTOMER | SERVICE | SERVICE_OLD)
}

/// The VLAN that a tag names; a priority tag names none.
#[inline]
#[must_use]
pub const fn number(tci: u16) -> Option<u16> {
    match tci & 0x0fff {
        0 => None,
        number => Some(number),
    }
}

/// The tags of a frame from the outermost on: priority, drop bit and number as they stand.
pub fn tags(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let mut walk = Walk::new(bytes);
    (0..VLAN_TAGS).map_while(move |_| walk.next().ok()?).filter_map(|layer| match layer {
        Layer::Tag(tci) => Some(tci),
        Layer::Snap => None,
    })
}

/// Where the packet of a frame begins, and whether SNAP stands before it.
pub(crate) fn start(bytes: &[u8]) -> (usize, bool) {
    let mut walk = Walk::new(bytes);
    let mut snap = false;
    for _ in 0..VLAN_TAGS {
        match walk.next() {
            Ok(Some(layer)) => snap |= matches!(layer, Layer::Snap),
            Ok(None) | Err(_) => break,
        }
    }
    (walk.at, snap)
}

/// Reads type and tags; returns where the payload begins.
#[inline]
pub(crate) fn read(headers: &mut Headers, bytes: &[u8]) -> Result<usize, Fault> {
    let header: &[u8; 14] = array(bytes, 0).ok_or(Fault::Runt)?;
    headers.ethertype = be16(header, 12);
    if headers.ethertype >= ethernet::FIRST_TYPE && !is_tag(headers.ethertype) {
        return Ok(ethernet::BYTES);
    }
    unwrap(headers, bytes)
}

#[inline(never)]
fn unwrap(headers: &mut Headers, bytes: &[u8]) -> Result<usize, Fault> {
    let mut walk = Walk::new(bytes);
    for _ in 0..VLAN_TAGS {
        let layer = walk.next();
        headers.ethertype = walk.ethertype;
        match layer? {
            None => return Ok(walk.at),
            // the outermost tag that names a VLAN counts, or else the outermost
            Some(Layer::Tag(tci)) => {
                if headers.tags == 0 || headers.vlan().is_none() && number(tci).is_some() {
                    headers.tci = tci;
                }
                headers.tags += 1;
            }
            Some(Layer::Snap) => {}
        }
    }
    match walk.next()? {
        None => Ok(walk.at),
        Some(_) => Err(Fault::TooManyTags),
    }
}

/// One layer between the MACs and the packet.
enum Layer {
    Tag(u16),
    Snap,
}

/// Goes through the layers of a frame.
struct Walk<'f> {
    bytes: &'f [u8],
    /// The type that was read last, and what follows it.
    ethertype: u16,
    at: usize,
}

impl Walk<'_> {
    fn new(bytes: &[u8]) -> Walk<'_> {
        let ethertype = array(bytes, 12).map_or(u16::MAX, |kind: &[u8; 2]| be16(kind, 0));
        Walk { bytes, ethertype, at: ethernet::BYTES }
    }

    /// The next layer; `None` when the packet follows.
    fn next(&mut self) -> Result<Option<Layer>, Fault> {
        if is_tag(self.ethertype) {
            let tag: &[u8; 4] = array(self.bytes, self.at).ok_or(Fault::Runt)?;
            self.ethertype = be16(tag, 2);
            self.at += 4;
            return Ok(Some(Layer::Tag(be16(tag, 0))));
        }
        // the length that it says is not compared: not every receiver does
        if self.ethertype < ethernet::FIRST_TYPE
            && let Some(header) = array::<8>(self.bytes, self.at)
            && is_snap(header)
        {
            self.ethertype = be16(header, 6);
            self.at += 8;
            return Ok(Some(Layer::Snap));
        }
        Ok(None)
    }
}

/// LLC and SNAP with an Ethernet type: RFC 1042, or the organization of bridge tunnels (802.1H).
const fn is_snap(header: &[u8; 8]) -> bool {
    matches!(header, [0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, ..])
}
