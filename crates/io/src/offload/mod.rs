//! What a kernel leaves undone when it believes that hardware will finish it: the checksum behind
//! the headers, and the cut of one large frame into many. A port that hands such frames on as they
//! are sends what no receiver accepts, so they are finished here. Pure; nothing of it knows where
//! the frame came from.

mod checksum;
mod split;

pub use checksum::{complete, undone};
pub use split::Splitter;

/// Bytes of `struct virtio_net_hdr`, in which the kernel says what is undone.
pub const UNDONE_BYTES: usize = 10;

/// What is undone of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// The checksum that holds only the sum of its pseudo header.
    pub checksum: Option<Checksum>,
    /// The frame is to be cut.
    pub large: Option<Large>,
}

/// Where a checksum is and from where on it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Where it begins to count, from the first byte of the frame.
    pub start: u16,
    /// Where it stands, from `start`.
    pub offset: u16,
}

/// A frame larger than a wire carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Large {
    /// Which transport it has.
    pub kind: LargeKind,
    /// Bytes of payload in each part but the last.
    pub size: u16,
}

/// What a large frame is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargeKind {
    /// TCP segments.
    Tcp,
    /// Whole UDP datagrams.
    Udp,
    /// Something that is not cut here (fragments of UDP, and what is invented later).
    Other,
}

impl Undone {
    /// Reads the kernel's header.
    #[must_use]
    pub fn read(header: &[u8; UNDONE_BYTES]) -> Undone {
        const NEEDS_CHECKSUM: u8 = 1;
        let [flags, kind, _, _, s0, s1, c0, c1, o0, o1] = *header;
        let start = u16::from_ne_bytes([c0, c1]);
        let offset = u16::from_ne_bytes([o0, o1]);
        // 0x80 says that the sender has marked congestion, which the flags of TCP say too
        let kind = match kind & 0x7f {
            0 => None,
            1 | 4 => Some(LargeKind::Tcp),
            5 => Some(LargeKind::Udp),
            _ => Some(LargeKind::Other),
        };
        let size = u16::from_ne_bytes([s0, s1]);
        Undone {
            checksum: (flags & NEEDS_CHECKSUM != 0).then_some(Checksum { start, offset }),
            large: kind.map(|kind| Large { kind, size }),
        }
    }

    /// The same of the frame with `bytes` more before its payload (a tag that was put back).
    #[must_use]
    pub fn behind(self, bytes: usize) -> Undone {
        let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
        let moved = |c: Checksum| Checksum { start: c.start.saturating_add(bytes), ..c };
        Undone { checksum: self.checksum.map(moved), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_header_is_read() {
        let mut header = [0; UNDONE_BYTES];
        assert_eq!(Undone::read(&header), Undone::default());
        header[0] = 1;
        header[1] = 0x81;
        header[4..6].copy_from_slice(&1448_u16.to_ne_bytes());
        header[6..8].copy_from_slice(&34_u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16_u16.to_ne_bytes());
        let undone = Undone::read(&header).behind(4);
        assert_eq!(undone.checksum, Some(Checksum { start: 38, offset: 16 }));
        assert_eq!(undone.large, Some(Large { kind: LargeKind::Tcp, size: 1448 }));
        header[1] = 3;
        assert_eq!(Undone::read(&header).large.map(|large| large.kind), Some(LargeKind::Other));
    }
}
