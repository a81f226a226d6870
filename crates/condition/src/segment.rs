//! What a TCP segment says to somebody in the middle.

use weir_packet::tcp::{self, Tcp, TcpOption};
use weir_packet::{Fragment, Headers};

/// A segment, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    flags: u8,
    /// Bytes of data.
    pub(crate) data: u32,
    /// The clocks of both sides, if they stand where nearly everyone puts them.
    pub(crate) stamps: Option<(u32, u32)>,
    /// It has options besides the clocks: selective acknowledgements, mostly.
    pub(crate) says_more: bool,
}

/// What the first segment of a side says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
}

impl Segment {
    /// Reads a whole TCP segment; `None` for pieces of one and for everything else.
    #[inline]
    pub(crate) fn read(bytes: &[u8], headers: &Headers) -> Option<Segment> {
        let tcp = Tcp::of(bytes, headers).filter(|_| headers.fragment == Fragment::None)?;
        let at = usize::from(headers.transport_at) + tcp::BYTES;
        let options = bytes.get(at..usize::from(headers.payload_at))?;
        let (stamps, says_more) = match options {
            [] => (None, false),
            [1, 1, 8, 10, a, b, c, d, e, f, g, h, more @ ..] => {
                let of = u32::from_be_bytes;
                (Some((of([*a, *b, *c, *d]), of([*e, *f, *g, *h]))), !more.is_empty())
            }
            _ => (None, true),
        };
        Some(Segment {
            seq: tcp.seq(),
            ack: tcp.ack(),
            window: tcp.window(),
            flags: tcp.flags(),
            data: u32::from(headers.end.saturating_sub(headers.payload_at)),
            stamps,
            says_more,
        })
    }

    /// Where the data of a packet's first piece end.
    #[cold]
    pub(crate) fn end_of_piece(bytes: &[u8], headers: &Headers) -> Option<u32> {
        let tcp = Tcp::of(bytes, headers).filter(|_| headers.fragment == Fragment::First)?;
        let data = u32::from(headers.end.saturating_sub(headers.payload_at));
        Some(tcp.seq().wrapping_add(data))
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub(crate) const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Whether it carries nothing but an acknowledgement.
    pub(crate) const fn is_plain_ack(&self) -> bool {
        self.flags == tcp::ACK && self.data == 0 && !self.says_more
    }

    /// Whether it brings no data and does not end them.
    pub(crate) const fn is_bare(&self) -> bool {
        self.data == 0 && !self.has(tcp::FIN)
    }

    /// The number behind its last byte; SYN and FIN count as one.
    pub(crate) const fn end(&self) -> u32 {
        let flags = self.has(tcp::SYN) as u32 + self.has(tcp::FIN) as u32;
        self.seq.wrapping_add(self.data).wrapping_add(flags)
    }
}

impl Opening {
    /// Reads the options of a SYN; `None` if they are malformed.
    pub(crate) fn read(bytes: &[u8], headers: &Headers) -> Option<Opening> {
        let mut opening = Opening::default();
        for option in Tcp::of(bytes, headers)?.options() {
            match option {
                Ok(TcpOption::Mss(mss)) => opening.mss = Some(mss),
                // RFC 7323: more than 14 counts as 14
                Ok(TcpOption::WindowScale(shift)) => opening.scale = Some(shift.min(14)),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
        Some(opening)
    }
}

/// Whether `a` comes after `b` among sequence numbers.
pub(crate) const fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}
