//! The TCP header as a checked view: flags, numbers, window, and an iterator over its options that
//! ends with an error where they are malformed.

use crate::headers::Headers;
use crate::read::{array, be16, be32, offset};
use crate::{Fault, Net};

/// IP protocol number.
pub const NUMBER: u8 = 6;
/// Bytes of the header without options.
pub const BYTES: usize = 20;
/// Where the window stands in the header.
pub(crate) const WINDOW_AT: usize = 14;
/// Where the checksum stands in the header.
pub(crate) const CHECKSUM_AT: usize = 16;

/// The sender has no more to say.
pub const FIN: u8 = 0x01;
/// The connection begins.
pub const SYN: u8 = 0x02;
/// The connection is refused or broken off.
pub const RST: u8 = 0x04;
/// Hand the data over at once.
pub const PSH: u8 = 0x08;
/// The acknowledgement number counts.
pub const ACK: u8 = 0x10;
/// The urgent pointer counts.
pub const URG: u8 = 0x20;
/// Congestion was echoed.
pub const ECE: u8 = 0x40;
/// The congestion window was cut.
pub const CWR: u8 = 0x80;

/// Options that sign the header.
const MD5: u8 = 19;
const AO: u8 = 29;

/// A TCP header whose length was checked.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'f> {
    fixed: &'f [u8; BYTES],
    options: &'f [u8],
}

/// One TCP option; padding is stepped over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'f> {
    /// The largest segment that the sender takes.
    Mss(u16),
    /// How far the sender's window is shifted.
    WindowScale(u8),
    /// Selective acknowledgements are welcome.
    SackPermitted,
    /// Selective acknowledgements: pairs of left and right edge.
    Sack(Blocks<'f>),
    /// The sender's clock, and the receiver's as it was last seen.
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// What the other side's clock said.
        echo: u32,
    },
    /// Anything else.
    Unknown {
        /// Its number.
        kind: u8,
        /// Its bytes without number and length.
        data: &'f [u8],
    },
}

/// Edges of selective acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks<'f>(&'f [u8]);

/// The options cannot be read from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Offset from the start of the TCP header.
    pub at: usize,
}

impl<'f> Tcp<'f> {
    /// The TCP header of a frame, if it has a whole one.
    #[inline]
    #[must_use]
    pub fn of(bytes: &'f [u8], headers: &Headers) -> Option<Tcp<'f>> {
        let ip = matches!(headers.net, Net::V4 | Net::V6);
        if !ip || headers.protocol != NUMBER || headers.transport_at == 0 {
            return None;
        }
        let at = usize::from(headers.transport_at);
        let fixed: &[u8; BYTES] = array(bytes, at)?;
        let options = bytes.get(at + BYTES..usize::from(headers.payload_at))?;
        Some(Tcp { fixed, options })
    }

    /// The eight flags: [`SYN`], [`ACK`] and so on.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.fixed[13]
    }

    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags() & flags == flags
    }

    /// Sequence number of the first byte.
    #[must_use]
    pub const fn seq(&self) -> u32 {
        be32(self.fixed, 4)
    }

    /// The next byte that the sender expects.
    #[must_use]
    pub const fn ack(&self) -> u32 {
        be32(self.fixed, 8)
    }

    /// The window, not yet shifted.
    #[must_use]
    pub const fn window(&self) -> u16 {
        be16(self.fixed, WINDOW_AT)
    }

    /// Bytes of the header with its options.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        BYTES + self.options.len()
    }

    /// Whether it is signed, by TCP MD5 (RFC 2385) or TCP-AO (RFC 5925): its receiver rejects it
    /// if any field of the header was changed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        let mut options = self.options();
        while let Some(Ok((_, kind, _))) = options.next_raw() {
            if kind == MD5 || kind == AO {
                return true;
            }
        }
        false
    }

    /// The options in order.
    #[must_use]
    pub const fn options(&self) -> Options<'f> {
        Options { bytes: self.options, at: 0 }
    }
}

/// Offset, number and data of an option.
type Raw<'f> = (usize, u8, &'f [u8]);

/// Walks over the options of a TCP header; after an error it ends.
#[derive(Clone, Debug)]
pub struct Options<'f> {
    bytes: &'f [u8],
    at: usize,
}

impl<'f> Options<'f> {
    /// The next option with the offset of its number from the start of the TCP header.
    fn next_raw(&mut self) -> Option<Result<Raw<'f>, Malformed>> {
        loop {
            let at = self.at;
            let kind = *self.bytes.get(at)?;
            match kind {
                0 => return None,
                1 => self.at += 1,
                _ => {
                    let len = usize::from(self.bytes.get(at + 1).copied().unwrap_or(0));
                    let data = if len < 2 { None } else { self.bytes.get(at + 2..at + len) };
                    self.at = if data.is_some() { at + len } else { self.bytes.len() };
                    let found = data.map(|data| (BYTES + at, kind, data));
                    return Some(found.ok_or(Malformed { at: BYTES + at }));
                }
            }
        }
    }

    /// Where the value of the maximum segment size stands, from the start of the TCP header.
    pub(crate) fn mss_at(mut self) -> Option<usize> {
        while let Some(Ok((at, kind, data))) = self.next_raw() {
            if kind == 2 && data.len() == 2 {
                return Some(at + 2);
            }
        }
        None
    }
}

impl<'f> Iterator for Options<'f> {
    type Item = Result<TcpOption<'f>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let (at, kind, data) = match self.next_raw()? {
            Ok(raw) => raw,
            Err(malformed) => return Some(Err(malformed)),
        };
        let option = match (kind, data) {
            (2, &[high, low]) => TcpOption::Mss(u16::from_be_bytes([high, low])),
            (3, &[shift]) => TcpOption::WindowScale(shift),
            (4, []) => TcpOption::SackPermitted,
            (5, edges) if edges.len() % 8 == 0 => TcpOption::Sack(Blocks(edges)),
            (8, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps {
                value: u32::from_be_bytes([a, b, c, d]),
                echo: u32::from_be_bytes([e, f, g, h]),
            },
            (2..=5 | 8, _) => {
                self.at = self.bytes.len();
                return Some(Err(Malformed { at }));
            }
            _ => TcpOption::Unknown { kind, data },
        };
        Some(Ok(option))
    }
}

impl Blocks<'_> {
    /// Left and right edge of each block.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (blocks, _) = self.0.as_chunks::<8>();
        blocks.iter().map(|block| (be32(block, 0), be32(block, 4)))
    }
}

#[inline]
pub(crate) fn read(headers: &mut Headers, bytes: &[u8], at: usize) -> Result<(), Fault> {
    let header: &[u8; BYTES] = array(bytes, at).ok_or(Fault::BadTransport)?;
    headers.transport_at = offset(at);
    headers.source_port = be16(header, 0);
    headers.target_port = be16(header, 2);
    let own = usize::from(header[12] >> 4) * 4;
    if own < BYTES || at + own > bytes.len() {
        return Err(Fault::BadTransport);
    }
    headers.payload_at = offset(at + own);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Build;

    fn options(bytes: &[u8]) -> Vec<Result<TcpOption<'_>, Malformed>> {
        Options { bytes, at: 0 }.collect()
    }

    #[test]
    fn every_known_option_is_read() {
        let bytes = [
            &[2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2][..],
            &[8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4, 99, 3, 1, 0, 9],
        ]
        .concat();
        let read: Vec<_> = options(&bytes).into_iter().map(Result::unwrap).collect();
        assert_eq!(read.len(), 6);
        assert_eq!(read[0], TcpOption::Mss(1460));
        assert_eq!(read[1], TcpOption::WindowScale(7));
        assert_eq!(read[2], TcpOption::SackPermitted);
        assert_eq!(read[3], TcpOption::Timestamps { value: 1, echo: 2 });
        let TcpOption::Sack(blocks) = read[4] else { panic!("{:?}", read[4]) };
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [(3, 4)]);
        assert_eq!(read[5], TcpOption::Unknown { kind: 99, data: &[1] });
    }

    #[test]
    fn a_malformed_option_ends_the_walk_with_an_error() {
        for bytes in [&[1, 2][..], &[1, 2, 0], &[1, 2, 1, 0], &[1, 2, 5, 0, 0], &[1, 2, 3, 0, 1]] {
            assert_eq!(options(bytes), [Err(Malformed { at: BYTES + 1 })], "{bytes:?}");
        }
    }

    #[test]
    fn a_signature_is_found_wherever_it_stands_and_not_in_other_options() {
        let signed = |options: &[u8]| {
            let build = Build::tcp("10.0.0.1:80".parse().unwrap(), "10.0.0.2:81".parse().unwrap());
            let bytes = build.tcp_options(options).to_vec();
            Tcp::of(&bytes, &Headers::parse(&bytes)).unwrap().is_signed()
        };
        for kind in [19, 29] {
            assert!(signed(&[kind, 4, 0, 0]) && signed(&[1, 1, kind, 2]));
            assert!(signed(&[2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, kind, 4, 1, 1]));
            // within another option, behind the end of all, behind a malformed one, or cut off
            assert!(!signed(&[99, 6, kind, 4, 0, 0, 1, 1]) && !signed(&[0, kind, 2, 0]));
            assert!(!signed(&[3, 1, kind, 2]) && !signed(&[1, 1, kind, 9]));
        }
        assert!(!signed(&[]) && !signed(&[8, 10, 19, 19, 29, 29, 19, 19, 29, 29]));
    }

    #[test]
    fn the_view_says_what_was_built() {
        let bytes = Build::tcp("10.0.0.1:80".parse().unwrap(), "10.0.0.2:81".parse().unwrap())
            .tcp_flags(SYN | ACK)
            .tcp_seq(7)
            .tcp_ack(8)
            .tcp_window(9)
            .tcp_options(&[2, 4, 5, 0xb4])
            .to_vec();
        let tcp = Tcp::of(&bytes, &Headers::parse(&bytes)).unwrap();
        assert!(tcp.has(SYN | ACK) && !tcp.has(FIN));
        assert_eq!((tcp.seq(), tcp.ack(), tcp.window(), tcp.header_bytes()), (7, 8, 9, 24));
    }
}
