//! The classic format: a header of 24 bytes, then records of 16 bytes and their packet.

use std::io::Read;

use weir_units::Instant;

use super::error::Fault;
use super::link::LinkType;
use super::source::{Order, Source, Stop};
use super::{Head, fill};

#[derive(Debug)]
pub(super) struct File {
    order: Order,
    nanoseconds: bool,
    link: LinkType,
}

/// The byte order and whether time is counted in nanoseconds; `None` for another kind of file.
pub(super) fn magic(bytes: [u8; 4]) -> Option<(Order, bool)> {
    match bytes {
        [0xa1, 0xb2, 0xc3, 0xd4] => Some((Order::Big, false)),
        [0xd4, 0xc3, 0xb2, 0xa1] => Some((Order::Little, false)),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some((Order::Big, true)),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some((Order::Little, true)),
        _ => None,
    }
}

impl File {
    /// Reads on after the first four bytes.
    pub(super) fn open<R: Read>(
        source: &mut Source<R>,
        order: Order,
        nanoseconds: bool,
    ) -> Result<File, Stop> {
        let major = order.u16(source.take()?);
        let minor = order.u16(source.take()?);
        if major != 2 {
            return Err(Stop::Fault(Fault::Version { major, minor }));
        }
        // time zone, accuracy and longest record: nobody fills them in truthfully
        source.skip(12)?;
        // the upper half says how long check sequences are
        let number = order.u32(source.take()?) & 0xffff;
        let link = LinkType::from_number(u16::try_from(number).unwrap_or(u16::MAX));
        Ok(File { order, nanoseconds, link })
    }

    pub(super) fn next<R: Read>(
        &self,
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Head, Stop> {
        let seconds = u64::from(self.order.u32(source.take_or_end()?));
        let fraction = u64::from(self.order.u32(source.take()?));
        let len = self.order.u32(source.take()?);
        let original_len = self.order.u32(source.take()?);
        fill(source, buffer, len)?;
        let scale = if self.nanoseconds { 1 } else { 1_000 };
        let at = Instant::from_ns(seconds * 1_000_000_000 + fraction * scale);
        Ok(Head { at, interface: 0, link: self.link, original_len })
    }
}
