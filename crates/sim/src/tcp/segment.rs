//! A TCP segment as a value: read from real bytes, written to real bytes.

use weir_packet::{Headers, tcp};

/// Edges of up to four ranges that have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    edges: [(u32, u32); 4],
    count: usize,
}

impl Blocks {
    pub(crate) fn push(&mut self, edges: (u32, u32)) {
        if let Some(place) = self.edges.get_mut(self.count) {
            *place = edges;
            self.count += 1;
        }
    }

    pub(crate) fn all(&self) -> &[(u32, u32)] {
        &self.edges[..self.count]
    }
}

/// What a segment says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) payload: u16,
    /// The two bits of the IP header.
    pub(crate) ecn: u8,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) sack: Blocks,
}

/// Bytes of options at most.
const OPTIONS: usize = 40;
/// Bytes of a header from the sequence number on, at most.
pub(crate) const HEADER_BYTES: usize = 16 + OPTIONS;

impl Segment {
    /// The segment in a frame.
    pub(crate) fn read(bytes: &[u8], headers: &Headers) -> Option<Segment> {
        let view = tcp::Tcp::of(bytes, headers)?;
        let mut segment = Segment {
            seq: view.seq(),
            ack: view.ack(),
            flags: view.flags(),
            window: view.window(),
            payload: u16::try_from(headers.payload_len()).ok()?,
            ecn: headers.ecn(),
            ..Segment::default()
        };
        if view.header_bytes() == tcp::BYTES {
            return Some(segment);
        }
        for option in view.options() {
            match option.ok()? {
                tcp::TcpOption::Mss(mss) => segment.mss = Some(mss),
                tcp::TcpOption::WindowScale(shift) => segment.scale = Some(shift),
                tcp::TcpOption::SackPermitted => segment.sack_permitted = true,
                tcp::TcpOption::Sack(blocks) => {
                    blocks.iter().for_each(|edges| segment.sack.push(edges));
                }
                tcp::TcpOption::Timestamps { value, echo } => {
                    segment.timestamps = Some((value, echo));
                }
                tcp::TcpOption::Unknown { .. } => {}
            }
        }
        Some(segment)
    }

    /// Writes the header from the sequence number on, the sum left out. Returns its length.
    pub(crate) fn write(&self, into: &mut [u8; HEADER_BYTES]) -> usize {
        into[..4].copy_from_slice(&self.seq.to_be_bytes());
        into[4..8].copy_from_slice(&self.ack.to_be_bytes());
        into[9] = self.flags;
        into[10..12].copy_from_slice(&self.window.to_be_bytes());
        into[12..16].fill(0);
        let mut at = 16;
        let mut put = |bytes: &[u8]| {
            into[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            put(&[2, 4, high, low]);
        }
        match (self.sack_permitted, self.timestamps) {
            (true, Some(_)) => put(&[4, 2]),
            (true, None) => put(&[1, 1, 4, 2]),
            (false, Some(_)) => put(&[1, 1]),
            (false, None) => {}
        }
        if let Some((value, echo)) = self.timestamps {
            put(&[8, 10]);
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        }
        if let Some(shift) = self.scale {
            put(&[1, 3, 3, shift]);
        }
        let room = if self.timestamps.is_some() { 3 } else { 4 };
        let blocks = &self.sack.all()[..self.sack.count.min(room)];
        if let Ok(bytes) = u8::try_from(2 + 8 * blocks.len())
            && bytes > 2
        {
            put(&[1, 1, 5, bytes]);
            for (left, right) in blocks {
                put(&left.to_be_bytes());
                put(&right.to_be_bytes());
            }
        }
        into[8] = u8::try_from((at + 4) / 4).unwrap_or(15) << 4;
        at
    }

    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}
