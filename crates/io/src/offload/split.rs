//! One large frame cut into frames that a wire carries, as the sender's network card would have:
//! each part has the headers with its own lengths, numbers and checksums. The parts are written
//! one at a time, so that a frame of a thousand parts needs no memory beyond itself.

use weir_packet::{Fragment, Headers, Net, checksum, tcp};

use super::{Large, LargeKind};

const UDP: u8 = 17;
const UDP_BYTES: u16 = 8;

/// A large frame on its way into parts.
#[derive(Debug)]
pub struct Splitter {
    headers: Headers,
    kind: LargeKind,
    size: usize,
    /// Where in the frame the next part's payload begins.
    next: usize,
    part: u16,
}

impl Splitter {
    /// Looks at the frame; `None` if it is none that can be cut.
    #[must_use]
    pub fn new(frame: &[u8], large: Large) -> Option<Self> {
        let headers = Headers::parse(frame);
        let Headers { net_at, transport_at, payload_at, end, .. } = headers;
        let fits = match large.kind {
            LargeKind::Tcp => headers.protocol == tcp::NUMBER,
            LargeKind::Udp => {
                headers.protocol == UDP && payload_at.saturating_sub(transport_at) == UDP_BYTES
            }
            LargeKind::Other => false,
        };
        let whole = headers.fault.is_none()
            && headers.is_ip()
            && headers.fragment == Fragment::None
            && !headers.ah
            && (net_at < transport_at && transport_at < payload_at && payload_at < end);
        (fits && whole && large.size > 0).then(|| Splitter {
            headers,
            kind: large.kind,
            size: usize::from(large.size),
            next: usize::from(payload_at),
            part: 0,
        })
    }

    /// Writes the next part and returns its length; `None` when there are no more, or when it does
    /// not fit. `frame` is the one that the splitter was made of.
    pub fn write_next(&mut self, frame: &[u8], into: &mut [u8]) -> Option<usize> {
        let headers = self.headers;
        let (payload_at, end) = (usize::from(headers.payload_at), usize::from(headers.end));
        let from = self.next;
        let to = (from + self.size).min(end);
        let payload = frame.get(from..to).filter(|payload| !payload.is_empty())?;
        let length = payload_at + payload.len();
        let part = into.get_mut(..length)?;
        part[..payload_at].copy_from_slice(frame.get(..payload_at)?);
        part[payload_at..].copy_from_slice(payload);
        self.write_net(part);
        match self.kind {
            LargeKind::Tcp => self.write_tcp(part, from - payload_at, to == end),
            LargeKind::Udp | LargeKind::Other => self.write_udp(part),
        }
        self.next = to;
        self.part = self.part.wrapping_add(1);
        Some(length)
    }

    /// Whether every part was written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.next >= usize::from(self.headers.end)
    }

    fn write_net(&self, part: &mut [u8]) {
        let at = usize::from(self.headers.net_at);
        let length = part.len() - at;
        if self.headers.pppoe {
            // the length of PPPoE counts the protocol number of PPP, too
            put16(part, at - 4, length + 2);
        }
        if self.headers.net == Net::V6 {
            put16(part, at + 4, length.saturating_sub(40));
            return;
        }
        put16(part, at + 2, length);
        let id = be16(part, at + 4).wrapping_add(self.part);
        put16(part, at + 4, usize::from(id));
        put16(part, at + 10, 0);
        let header = at..at + usize::from(part[at] & 0x0f) * 4;
        let sum = part.get(header).map_or(0, checksum::of);
        put16(part, at + 10, usize::from(sum));
    }

    fn write_tcp(&self, part: &mut [u8], before: usize, last: bool) {
        let at = usize::from(self.headers.transport_at);
        let number = u32::from(be16(part, at + 4)) << 16 | u32::from(be16(part, at + 6));
        let number = number.wrapping_add(u32::try_from(before).unwrap_or(0));
        part[at + 4..at + 8].copy_from_slice(&number.to_be_bytes());
        if !last {
            part[at + 13] &= !(tcp::FIN | tcp::PSH);
        }
        if self.part > 0 {
            part[at + 13] &= !tcp::CWR;
        }
        self.write_sum(part, at + 16);
    }

    fn write_udp(&self, part: &mut [u8]) {
        let at = usize::from(self.headers.transport_at);
        put16(part, at + 4, part.len() - at);
        self.write_sum(part, at + 6);
    }

    /// The checksum of the transport, from nothing: what stood there may have been partial.
    fn write_sum(&self, part: &mut [u8], place: usize) {
        let (net, at) = (usize::from(self.headers.net_at), usize::from(self.headers.transport_at));
        put16(part, place, 0);
        let addresses = match self.headers.net {
            Net::V6 => net + 8..net + 40,
            _ => net + 12..net + 20,
        };
        let length = u64::try_from(part.len() - at).unwrap_or(0);
        let sum = checksum::sum(length + u64::from(self.headers.protocol), &part[addresses]);
        let sum = checksum::fold(checksum::sum(sum, &part[at..]));
        put16(part, place, usize::from(checksum::for_udp(sum)));
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |word| u16::from_be_bytes([word[0], word[1]]))
}

fn put16(bytes: &mut [u8], at: usize, value: usize) {
    if let Some(word) = bytes.get_mut(at..at + 2) {
        word.copy_from_slice(&u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use weir_packet::Build;

    const MTU_FRAME: usize = 1_514;

    fn parts(frame: &[u8], large: Large) -> Vec<Vec<u8>> {
        let mut splitter = Splitter::new(frame, large).unwrap();
        let mut into = [0; MTU_FRAME + 8];
        let mut parts = Vec::new();
        while let Some(len) = splitter.write_next(frame, &mut into) {
            parts.push(into[..len].to_vec());
        }
        assert!(splitter.is_done());
        parts
    }

    fn bytes(n: usize) -> Vec<u8> {
        (0..n).map(|i| u8::try_from(i % 251).unwrap()).collect()
    }

    fn hosts(v6: bool) -> (SocketAddr, SocketAddr) {
        let of = |v4: &str, v6_text: &str| if v6 { v6_text } else { v4 }.parse().unwrap();
        (of("10.0.0.1:80", "[2001:db8::1]:80"), of("10.0.0.2:443", "[2001:db8::2]:443"))
    }

    #[test]
    fn segments_are_what_the_sender_would_have_sent_without_offload() {
        for v6 in [false, true] {
            let (a, b) = hosts(v6);
            let payload = bytes(3_000);
            let build = |part: &[u8], seq: u32, flags: u8| {
                Build::tcp(a, b).vlan(9).tcp_seq(seq).tcp_flags(flags).payload(part)
            };
            let (fin, middle, first) = (tcp::ACK | tcp::FIN | tcp::PSH, tcp::ACK, tcp::CWR);
            let seq = u32::MAX - 5;
            let whole = build(&payload, seq, fin | first).to_vec();
            let large = Large { kind: LargeKind::Tcp, size: 1_400 };
            let mut got = parts(&whole, large);
            let want = [
                build(&payload[..1_400], seq, middle | first).to_vec(),
                build(&payload[1_400..2_800], seq.wrapping_add(1_400), middle).to_vec(),
                build(&payload[2_800..], seq.wrapping_add(2_800), fin).to_vec(),
            ];
            if !v6 {
                // Build gives all the same number, the splitter counts on
                for (n, part) in (0..).zip(&mut got) {
                    assert_eq!(be16(part, 18 + 4), be16(&whole, 18 + 4) + n);
                    assert_eq!(checksum::of(&part[18..38]), 0);
                    part[22..24].copy_from_slice(&whole[22..24]);
                    part[28..30].copy_from_slice(&[0, 0]);
                    let sum = checksum::of(&part[18..38]);
                    part[28..30].copy_from_slice(&sum.to_be_bytes());
                }
            }
            assert_eq!(got, want, "v6 {v6}");
        }
    }

    #[test]
    fn datagrams_are_whole_ones_with_their_own_lengths() {
        let (a, b) = hosts(true);
        let payload = bytes(2_500);
        let whole = Build::udp(a, b).payload(&payload).to_vec();
        let got = parts(&whole, Large { kind: LargeKind::Udp, size: 1_000 });
        let want = payload.chunks(1_000).map(|part| Build::udp(a, b).payload(part).to_vec());
        assert_eq!(got, want.collect::<Vec<_>>());
    }

    #[test]
    fn pppoe_carries_its_own_length() {
        let (a, b) = hosts(true);
        let payload = bytes(2_000);
        let build = |part: &[u8]| Build::udp(a, b).pppoe(5).payload(part).to_vec();
        let got = parts(&build(&payload), Large { kind: LargeKind::Udp, size: 1_000 });
        assert_eq!(got, payload.chunks(1_000).map(build).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let (a, b) = hosts(false);
        let segment = Build::tcp(a, b).payload(&bytes(3_000)).to_vec();
        let tcp = Large { kind: LargeKind::Tcp, size: 1_000 };
        assert!(Splitter::new(&segment, tcp).is_some());
        assert!(Splitter::new(&segment, Large { size: 0, ..tcp }).is_none());
        assert!(Splitter::new(&segment, Large { kind: LargeKind::Udp, ..tcp }).is_none());
        assert!(Splitter::new(&segment, Large { kind: LargeKind::Other, ..tcp }).is_none());
        assert!(Splitter::new(&segment[..60], tcp).is_none());
        let fragment = Build::tcp(a, b).payload(&bytes(3_000)).fragment(0, true, 1).to_vec();
        assert!(Splitter::new(&fragment, tcp).is_none());
        let mut splitter = Splitter::new(&segment, tcp).unwrap();
        assert_eq!(splitter.write_next(&segment, &mut [0; 100]), None);
        assert!(!splitter.is_done(), "a part that does not fit is not counted as written");
    }
}
