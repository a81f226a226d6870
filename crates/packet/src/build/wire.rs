//! From what was said to bytes: transport, then IP, then Ethernet, each put in front of the last.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Body, Build, Cut, TcpFields};
use crate::{checksum, ethernet, icmp, ipsec, ipv6, pppoe, sctp, tcp, udp, vlan};

/// No frame is longer: what 16 bits of offset can say.
const FRAME_BYTES_MAX: usize = 65_535;

impl Build {
    /// The bytes of the frame.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let headers = self.assemble(&[]).len();
        let room = FRAME_BYTES_MAX.saturating_sub(headers);
        let wanted = self.frame_len.map_or(self.payload.len(), |len| len.saturating_sub(headers));
        let mut payload = self.payload.clone();
        payload.resize(wanted.min(room), 0);
        let mut frame = self.assemble(&payload);
        if frame.len() < self.padded_to {
            frame.resize(self.padded_to.min(FRAME_BYTES_MAX), 0);
        }
        frame
    }

    fn assemble(&self, payload: &[u8]) -> Vec<u8> {
        let (ethertype, packet) = match self.body {
            Body::Arp { operation } => (ethernet::ARP, self.arp_packet(operation, payload)),
            Body::Ethertype(ethertype) => (ethertype, payload.to_vec()),
            _ => self.ip_packet(payload),
        };
        let mut frame = [self.target_mac, self.source_mac].concat();
        for (n, tci) in self.tags.iter().enumerate() {
            let innermost = n + 1 == self.tags.len();
            frame.extend(if innermost { vlan::CUSTOMER } else { vlan::SERVICE }.to_be_bytes());
            frame.extend(tci.to_be_bytes());
        }
        frame.extend(ethertype.to_be_bytes());
        frame.extend(packet);
        frame
    }

    fn ip_packet(&self, payload: &[u8]) -> (u16, Vec<u8>) {
        let (number, segment) = match self.fragment {
            Some(Cut { offset: 1.., .. }) => (self.protocol_number(), payload.to_vec()),
            _ => (self.protocol_number(), self.segment(payload)),
        };
        let (ethertype, ppp, packet) = match (self.source, self.target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                let packet = self.v4_packet(source, target, number, &segment);
                (ethernet::IPV4, pppoe::PPP_IPV4, packet)
            }
            (source, target) => {
                let packet = self.v6_packet(v6(source), v6(target), number, &segment);
                (ethernet::IPV6, pppoe::PPP_IPV6, packet)
            }
        };
        let Some(session) = self.pppoe else { return (ethertype, packet) };
        let mut outer = pppoe::DATA.to_vec();
        outer.extend(session.to_be_bytes());
        outer.extend(length(packet.len() + 2));
        outer.extend(ppp.to_be_bytes());
        outer.extend(packet);
        (ethernet::PPPOE_SESSION, outer)
    }

    fn v4_packet(&self, source: Ipv4Addr, target: Ipv4Addr, number: u8, rest: &[u8]) -> Vec<u8> {
        let own = 20 + self.v4_options.len();
        let words = u8::try_from(own / 4).unwrap_or(15);
        let cut = self.fragment.unwrap_or(Cut { offset: 0, more: false, id: 0 });
        let [_, _, id @ ..] = cut.id.to_be_bytes();
        let flags = (cut.offset / 8) | if cut.more { 0x2000 } else { 0 };
        let mut packet = vec![0x40 | words, self.traffic_class];
        packet.extend(length(own + rest.len()));
        packet.extend(id);
        packet.extend(flags.to_be_bytes());
        packet.extend([self.ttl, number, 0, 0]);
        packet.extend(source.octets());
        packet.extend(target.octets());
        packet.extend(&self.v4_options);
        let sum = checksum::of(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(rest);
        packet
    }

    fn v6_packet(&self, source: Ipv6Addr, target: Ipv6Addr, number: u8, rest: &[u8]) -> Vec<u8> {
        // from the inside out: every header names the one behind it
        let (mut next, mut chain) = (number, rest.to_vec());
        if let Some(cut) = self.fragment {
            let mut header = vec![next, 0];
            header.extend(((cut.offset & !7) | u16::from(cut.more)).to_be_bytes());
            header.extend(cut.id.to_be_bytes());
            chain.splice(..0, header);
            next = ipv6::FRAGMENT;
        }
        for (number, body) in self.v6_extensions.iter().rev() {
            let words = match *number {
                ipsec::AH => (body.len() + 2) / 4 - 2,
                _ => (body.len() + 2) / 8 - 1,
            };
            let mut header = vec![next, u8::try_from(words).unwrap_or(u8::MAX)];
            header.extend(body);
            chain.splice(..0, header);
            next = *number;
        }
        let class = self.traffic_class;
        let mut packet = vec![0x60 | (class >> 4), class << 4, 0, 0];
        packet.extend(length(chain.len()));
        packet.extend([next, self.ttl]);
        packet.extend(source.octets());
        packet.extend(target.octets());
        packet.extend(chain);
        packet
    }

    fn protocol_number(&self) -> u8 {
        match self.body {
            Body::Udp { .. } => udp::NUMBER,
            Body::Tcp { .. } => tcp::NUMBER,
            Body::Sctp { .. } => sctp::NUMBER,
            Body::Icmp { .. } if self.source.is_ipv4() => icmp::V4,
            Body::Icmp { .. } => icmp::V6,
            Body::Esp { .. } => ipsec::ESP,
            Body::Protocol(number) => number,
            Body::Arp { .. } | Body::Ethertype(_) => 0,
        }
    }

    /// The transport header and its payload.
    fn segment(&self, payload: &[u8]) -> Vec<u8> {
        let mut segment = Vec::new();
        match &self.body {
            Body::Udp { source, target } => {
                segment.extend(ports(*source, *target));
                segment.extend(length(udp::BYTES + payload.len()));
                segment.extend([0, 0]);
                segment.extend(payload);
                let sum = checksum::for_udp(self.sum_with_addresses(&segment));
                segment[6..8].copy_from_slice(&sum.to_be_bytes());
            }
            Body::Tcp { source, target, tcp } => {
                segment.extend(ports(*source, *target));
                segment.extend(tcp.bytes());
                segment.extend(payload);
                let sum = self.sum_with_addresses(&segment);
                let at = tcp::CHECKSUM_AT;
                segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            }
            Body::Sctp { source, target } => {
                segment.extend(ports(*source, *target));
                segment.extend([0; 8]);
                segment.extend(payload);
            }
            Body::Icmp { kind, code, id } => {
                let echo = if self.source.is_ipv4() { 8 } else { 128 };
                segment.extend([kind.unwrap_or(echo), *code, 0, 0]);
                segment.extend(id.to_be_bytes());
                segment.extend([0, 0]);
                segment.extend(payload);
                let v4 = self.source.is_ipv4();
                let plain = checksum::of(&segment);
                let sum = if v4 { plain } else { self.sum_with_addresses(&segment) };
                segment[2..4].copy_from_slice(&sum.to_be_bytes());
            }
            Body::Esp { spi } => {
                segment.extend(spi.to_be_bytes());
                segment.extend([0; 4]);
                segment.extend(payload);
            }
            Body::Protocol(_) | Body::Arp { .. } | Body::Ethertype(_) => segment.extend(payload),
        }
        segment
    }

    /// The checksum over the addresses, the length, the protocol and `segment`.
    fn sum_with_addresses(&self, segment: &[u8]) -> u16 {
        let addresses = [self.source, self.target].into_iter().fold(0, |sum, ip| match ip {
            IpAddr::V4(v4) => checksum::sum(sum, &v4.octets()),
            IpAddr::V6(v6) => checksum::sum(sum, &v6.octets()),
        });
        let pseudo = addresses + segment.len() as u64 + u64::from(self.protocol_number());
        checksum::fold(checksum::sum(pseudo, segment))
    }

    fn arp_packet(&self, operation: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0, 1, 8, 0, 6, 4];
        packet.extend(operation.to_be_bytes());
        for (mac, ip) in [(self.source_mac, self.source), (self.target_mac, self.target)] {
            packet.extend(if operation == 1 && ip == self.target { [0; 6] } else { mac });
            packet.extend(match ip {
                IpAddr::V4(v4) => v4.octets(),
                IpAddr::V6(_) => [0; 4],
            });
        }
        packet.extend(payload);
        packet
    }
}

impl TcpFields {
    /// The header behind the ports, without a checksum.
    fn bytes(&self) -> Vec<u8> {
        let words = u8::try_from((tcp::BYTES + self.options.len()) / 4).unwrap_or(15);
        let mut bytes = Vec::with_capacity(56);
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([words << 4, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&self.options);
        bytes
    }
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

fn ports(source: u16, target: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (source.to_be_bytes(), target.to_be_bytes());
    [a, b, c, d]
}

fn length(len: usize) -> [u8; 2] {
    u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes()
}
