//! Frames of a flow: everything that does not change from one to the next is written once.

use std::net::IpAddr;

use weir_packet::{Headers, Net, checksum, ethernet, tcp};

use crate::frames::{Frame, Frames};

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
const UDP: usize = 8;
const UDP_NUMBER: u8 = 17;

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// One end's view of a flow, and the headers that it sends.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// Ethernet and IP, without lengths and sums.
    headers: [u8; 54],
    len: usize,
    is_v6: bool,
    ports: [u8; 4],
    /// The sum over the addresses and the protocol.
    pseudo: u64,
    /// The sum over the fixed words of the IPv4 header.
    fixed: u64,
    ident: u16,
}

impl Route {
    pub(crate) fn new(
        macs: [Mac; 2],
        addresses: [IpAddr; 2],
        ports: [u16; 2],
        protocol: u8,
        traffic_class: u8,
    ) -> Route {
        let mut headers = [0; 54];
        headers[..6].copy_from_slice(&macs[1]);
        headers[6..12].copy_from_slice(&macs[0]);
        let mut pseudo = u64::from(protocol);
        let (len, is_v6) = match addresses {
            [IpAddr::V4(from), IpAddr::V4(to)] => {
                headers[12..14].copy_from_slice(&ethernet::IPV4.to_be_bytes());
                headers[14..16].copy_from_slice(&[0x45, traffic_class]);
                // do not fragment
                headers[20] = 0x40;
                headers[22..24].copy_from_slice(&[64, protocol]);
                headers[26..30].copy_from_slice(&from.octets());
                headers[30..34].copy_from_slice(&to.octets());
                pseudo = checksum::sum(pseudo, &headers[26..34]);
                (34, false)
            }
            [from, to] => {
                headers[12..14].copy_from_slice(&ethernet::IPV6.to_be_bytes());
                headers[14] = 0x60 | (traffic_class >> 4);
                headers[15] = traffic_class << 4;
                headers[20..22].copy_from_slice(&[protocol, 64]);
                for (at, address) in [(22, from), (38, to)] {
                    let six = match address {
                        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                        IpAddr::V6(v6) => v6,
                    };
                    headers[at..at + 16].copy_from_slice(&six.octets());
                }
                pseudo = checksum::sum(pseudo, &headers[22..54]);
                (54, true)
            }
        };
        let fixed = checksum::sum(0, &headers[ETHERNET..34]);
        let ([a, b], [c, d]) = (ports[0].to_be_bytes(), ports[1].to_be_bytes());
        Route { headers, len, is_v6, ports: [a, b, c, d], pseudo, fixed, ident: 0 }
    }

    /// A UDP frame with `bytes` of payload, which `write` fills.
    pub(crate) fn udp(
        &mut self,
        frames: &mut Frames,
        bytes: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Option<Frame> {
        let frame = frames.take(self.len + UDP + bytes)?;
        let all = frames.bytes_mut(&frame);
        self.head(all, 0);
        let datagram = &mut all[self.len..];
        datagram.fill(0);
        datagram[..4].copy_from_slice(&self.ports);
        datagram[4..6].copy_from_slice(&length(UDP + bytes));
        write(&mut datagram[UDP..]);
        let sum = self.pseudo + datagram.len() as u64;
        let sum = checksum::for_udp(checksum::fold(checksum::sum(sum, datagram)));
        datagram[6..8].copy_from_slice(&sum.to_be_bytes());
        debug_assert_eq!(self.headers[if self.is_v6 { 20 } else { 23 }], UDP_NUMBER);
        Some(frame)
    }

    /// A TCP frame: `header` is its header from the sequence number on, with options; `payload`
    /// zeros follow.
    pub(crate) fn tcp(
        &mut self,
        frames: &mut Frames,
        header: &[u8],
        payload: usize,
        ecn: u8,
    ) -> Option<Frame> {
        let frame = frames.take(self.len + 4 + header.len() + payload)?;
        let all = frames.bytes_mut(&frame);
        self.head(all, ecn);
        let segment = &mut all[self.len..];
        let head = 4 + header.len();
        segment[..4].copy_from_slice(&self.ports);
        segment[4..head].copy_from_slice(header);
        segment[head..].fill(0);
        debug_assert!(head >= tcp::BYTES);
        // the payload is nothing but zeros, which add nothing
        let sum = self.pseudo + segment.len() as u64;
        let sum = checksum::fold(checksum::sum(sum, &segment[..head]));
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        Some(frame)
    }

    /// An IP packet that another stack made, as a frame.
    pub(crate) fn packet(&self, frames: &mut Frames, packet: &[u8]) -> Option<Frame> {
        let frame = frames.take(ETHERNET + packet.len())?;
        let all = frames.bytes_mut(&frame);
        all[..ETHERNET].copy_from_slice(&self.headers[..ETHERNET]);
        all[ETHERNET..].copy_from_slice(packet);
        Some(frame)
    }

    fn head(&mut self, all: &mut [u8], ecn: u8) {
        let packet = all.len() - ETHERNET;
        all[..self.len].copy_from_slice(&self.headers[..self.len]);
        if self.is_v6 {
            all[15] |= ecn << 4;
            all[18..20].copy_from_slice(&length(packet - 40));
        } else {
            self.ident = self.ident.wrapping_add(1);
            all[15] |= ecn;
            all[16..18].copy_from_slice(&length(packet));
            all[18..20].copy_from_slice(&self.ident.to_be_bytes());
            let sum = self.fixed + u64::from(ecn) + packet as u64 + u64::from(self.ident);
            all[24..26].copy_from_slice(&checksum::fold(sum).to_be_bytes());
        }
    }
}

/// Whether the sums of a TCP or UDP packet over IP are right.
pub(crate) fn is_right(bytes: &[u8], h: &Headers) -> bool {
    if h.fault.is_some() || !h.is_ip() || h.transport_at == 0 {
        return false;
    }
    let (net, transport) = (usize::from(h.net_at), usize::from(h.transport_at));
    let Some(segment) = bytes.get(transport..usize::from(h.end)) else { return false };
    let head_is_right = h.net != Net::V4 || checksum::of(&bytes[net..transport]) == 0;
    let mut sum = u64::from(h.protocol) + segment.len() as u64;
    for address in [h.source, h.target] {
        sum = checksum::sum(sum, &address.to_be_bytes());
    }
    head_is_right && checksum::fold(checksum::sum(sum, segment)) == 0
}

fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::Build;

    #[test]
    fn frames_are_those_that_a_plain_builder_makes() {
        let mut frames = Frames::default();
        for (from, to) in [("10.0.0.1:7", "10.0.0.2:80"), ("[fd00::1]:7", "[fd00::2]:80")] {
            let (from, to): (std::net::SocketAddr, std::net::SocketAddr) =
                (from.parse().unwrap(), to.parse().unwrap());
            let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
            let (addresses, ports) = ([from.ip(), to.ip()], [from.port(), to.port()]);
            let mut route = Route::new(macs, addresses, ports, UDP_NUMBER, 0xb8);
            let frame = route.udp(&mut frames, 5, |bytes| bytes[0] = 9).unwrap();
            let read = Headers::parse(frames.bytes(&frame));
            assert!(is_right(frames.bytes(&frame), &read));
            frames.flip(&frame, 8 * 30 + 3);
            assert!(!is_right(frames.bytes(&frame), &Headers::parse(frames.bytes(&frame))));
            frames.flip(&frame, 8 * 30 + 3);
            let plain = Build::udp(from, to).macs(macs[0], macs[1]).dscp(46);
            assert_same(frames.bytes(&frame), plain.payload(&[9, 0, 0, 0, 0]).to_vec());

            let mut route = Route::new(macs, addresses, ports, tcp::NUMBER, 0);
            let header = [0, 0, 0, 1, 0, 0, 0, 2, 0x50, tcp::ACK, 0, 9, 0, 0, 0, 0];
            let frame = route.tcp(&mut frames, &header, 100, 2).unwrap();
            let plain = Build::tcp(from, to).macs(macs[0], macs[1]).ecn(2).tcp_seq(1);
            let plain = plain.tcp_ack(2).tcp_flags(tcp::ACK).tcp_window(9).payload(&[0; 100]);
            assert_same(frames.bytes(&frame), plain.to_vec());
        }
    }

    /// The same but for the IPv4 identification, the flag against fragments, and their sum.
    #[track_caller]
    fn assert_same(ours: &[u8], mut plain: Vec<u8>) {
        if ours[12..14] == ethernet::IPV4.to_be_bytes() {
            assert_eq!(checksum::of(&ours[14..34]), 0, "the header's sum is wrong");
            plain[18..26].copy_from_slice(&ours[18..26]);
        }
        assert_eq!(ours, plain);
    }
}
