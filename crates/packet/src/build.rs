//! Frames made from what one says about them, with right lengths and checksums: for tests, for
//! `weir explain` and for the laboratory. Every field has a default, so that a test says only what
//! it is about. It allocates; the packet path never builds a frame.

mod wire;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::{ethernet, tcp};

/// A frame to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Build {
    source_mac: [u8; 6],
    target_mac: [u8; 6],
    tags: Vec<u16>,
    pppoe: Option<u16>,
    body: Body,
    source: IpAddr,
    target: IpAddr,
    traffic_class: u8,
    ttl: u8,
    fragment: Option<Cut>,
    v4_options: Vec<u8>,
    v6_extensions: Vec<(u8, Vec<u8>)>,
    payload: Vec<u8>,
    frame_len: Option<usize>,
    padded_to: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Udp { source: u16, target: u16 },
    Tcp { source: u16, target: u16, tcp: TcpFields },
    Sctp { source: u16, target: u16 },
    Icmp { kind: Option<u8>, code: u8, id: u16 },
    Esp { spi: u32 },
    Protocol(u8),
    Arp { operation: u16 },
    Ethertype(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TcpFields {
    flags: u8,
    seq: u32,
    ack: u32,
    window: u16,
    options: Vec<u8>,
}

/// Where a fragment lies in its packet: offset in bytes, whether more follow, which packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    offset: u16,
    more: bool,
    id: u32,
}

impl Build {
    /// The MAC that a frame comes from unless it is an IP packet or says otherwise.
    pub const SOURCE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    /// The MAC that a frame goes to unless it is an IP packet or says otherwise.
    pub const TARGET_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
    /// The hop limit of a packet unless it says otherwise.
    pub(crate) const TTL: u8 = 64;

    /// A UDP datagram.
    pub fn udp(source: SocketAddr, target: SocketAddr) -> Self {
        let body = Body::Udp { source: source.port(), target: target.port() };
        Build::new(source.ip(), target.ip(), body)
    }

    /// A TCP segment: an ACK with a window of 65 535.
    pub fn tcp(source: SocketAddr, target: SocketAddr) -> Self {
        let fields = TcpFields { flags: tcp::ACK, seq: 0, ack: 0, window: 65_535, options: vec![] };
        let body = Body::Tcp { source: source.port(), target: target.port(), tcp: fields };
        Build::new(source.ip(), target.ip(), body)
    }

    /// An SCTP packet without a checksum.
    pub fn sctp(source: SocketAddr, target: SocketAddr) -> Self {
        let body = Body::Sctp { source: source.port(), target: target.port() };
        Build::new(source.ip(), target.ip(), body)
    }

    /// An echo request with an identifier, ICMP or ICMPv6 after the addresses.
    pub fn icmp_echo(source: IpAddr, target: IpAddr, id: u16) -> Self {
        Build::new(source, target, Body::Icmp { kind: None, code: 0, id })
    }

    /// An ESP packet.
    pub fn esp(source: IpAddr, target: IpAddr, spi: u32) -> Self {
        Build::new(source, target, Body::Esp { spi })
    }

    /// An IP packet of any protocol; its payload is all that follows the IP header.
    pub fn protocol(source: IpAddr, target: IpAddr, protocol: u8) -> Self {
        Build::new(source, target, Body::Protocol(protocol))
    }

    /// An ARP request.
    pub fn arp(sender: Ipv4Addr, target: Ipv4Addr) -> Self {
        Build::new(sender.into(), target.into(), Body::Arp { operation: 1 })
    }

    /// A frame of any Ethernet type with nothing but payload.
    pub fn ethertype(ethertype: u16) -> Self {
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Build::new(nobody, nobody, Body::Ethertype(ethertype))
    }

    /// Addresses of two families become two of IPv6, the older one mapped.
    fn new(source: IpAddr, target: IpAddr, body: Body) -> Self {
        let (source, target) = match (source, target) {
            (IpAddr::V4(v4), IpAddr::V6(_)) => (v4.to_ipv6_mapped().into(), target),
            (IpAddr::V6(_), IpAddr::V4(v4)) => (source, v4.to_ipv6_mapped().into()),
            same => same,
        };
        let (source_mac, target_mac) = match body {
            Body::Arp { .. } | Body::Ethertype(_) => (Build::SOURCE_MAC, Build::TARGET_MAC),
            _ => (ethernet::mac_for(source), ethernet::mac_for(target)),
        };
        Build {
            source_mac,
            target_mac,
            tags: Vec::new(),
            pppoe: None,
            body,
            source,
            target,
            traffic_class: 0,
            ttl: Build::TTL,
            fragment: None,
            v4_options: Vec::new(),
            v6_extensions: Vec::new(),
            payload: Vec::new(),
            frame_len: None,
            padded_to: 0,
        }
    }

    /// The DSCP.
    pub fn dscp(mut self, dscp: u8) -> Self {
        self.traffic_class = (dscp << 2) | (self.traffic_class & 3);
        self
    }

    /// The ECN.
    pub fn ecn(mut self, ecn: u8) -> Self {
        self.traffic_class = (self.traffic_class & !3) | (ecn & 3);
        self
    }

    /// One more VLAN tag, from the outermost on: number, drop bit and priority as on the wire.
    pub fn vlan(mut self, tci: u16) -> Self {
        self.tags.push(tci);
        self
    }

    /// Puts the packet into a PPPoE session. ARP and bare payloads have none.
    pub fn pppoe(mut self, session: u16) -> Self {
        self.pppoe = Some(session);
        self
    }

    /// The MACs it comes from and goes to.
    pub fn macs(mut self, source: [u8; 6], target: [u8; 6]) -> Self {
        (self.source_mac, self.target_mac) = (source, target);
        self
    }

    /// The hop limit.
    pub fn ttl(mut self, ttl: u8) -> Self {
        self.ttl = ttl;
        self
    }

    /// What follows the last header.
    pub fn payload(mut self, bytes: &[u8]) -> Self {
        self.payload = bytes.to_vec();
        self
    }

    /// So many zero bytes behind the last header.
    pub fn payload_len(mut self, len: usize) -> Self {
        self.payload = vec![0; len];
        self
    }

    /// Bytes of the whole frame: the payload is cut or filled up with zeros.
    pub fn frame_len(mut self, len: usize) -> Self {
        self.frame_len = Some(len);
        self
    }

    /// Ethernet padding behind the packet, up to so many bytes of frame.
    pub fn padded_to(mut self, len: usize) -> Self {
        self.padded_to = len;
        self
    }

    /// A piece of a packet: its offset in bytes (a multiple of 8), whether more follow, which
    /// packet. A piece that is not the first has payload instead of a transport header.
    pub fn fragment(mut self, offset: u16, more: bool, id: u32) -> Self {
        self.fragment = Some(Cut { offset, more, id });
        self
    }

    /// Options of the IPv4 header, filled up to a multiple of 4 bytes; at most 40.
    pub fn v4_options(mut self, options: &[u8]) -> Self {
        self.v4_options = options[..options.len().min(40)].to_vec();
        self.v4_options.resize(self.v4_options.len().next_multiple_of(4), 0);
        self
    }

    /// One more IPv6 extension header: its number, and its bytes behind the length.
    pub fn v6_extension(mut self, number: u8, body: &[u8]) -> Self {
        let mut body = body[..body.len().min(2_046)].to_vec();
        body.resize((body.len() + 2).next_multiple_of(8) - 2, 0);
        self.v6_extensions.push((number, body));
        self
    }

    /// The TCP flags.
    pub fn tcp_flags(self, flags: u8) -> Self {
        self.change_tcp(|tcp| tcp.flags = flags)
    }

    /// The TCP sequence number.
    pub fn tcp_seq(self, seq: u32) -> Self {
        self.change_tcp(|tcp| tcp.seq = seq)
    }

    /// The TCP acknowledgement number.
    pub fn tcp_ack(self, ack: u32) -> Self {
        self.change_tcp(|tcp| tcp.ack = ack)
    }

    /// The TCP window, not shifted.
    pub fn tcp_window(self, window: u16) -> Self {
        self.change_tcp(|tcp| tcp.window = window)
    }

    /// The TCP options, filled up to a multiple of 4 bytes; at most 40.
    pub fn tcp_options(self, options: &[u8]) -> Self {
        self.change_tcp(|tcp| {
            tcp.options = options[..options.len().min(40)].to_vec();
            tcp.options.resize(tcp.options.len().next_multiple_of(4), 0);
        })
    }

    /// Type and code of an ICMP message.
    pub fn icmp_type(mut self, new: u8, new_code: u8) -> Self {
        if let Body::Icmp { kind, code, .. } = &mut self.body {
            (*kind, *code) = (Some(new), new_code);
        }
        self
    }

    /// The identifier of an ICMP message.
    pub(crate) fn icmp_id(mut self, new: u16) -> Self {
        if let Body::Icmp { id, .. } = &mut self.body {
            *id = new;
        }
        self
    }

    /// The security parameter index of ESP.
    pub fn spi(mut self, new: u32) -> Self {
        if let Body::Esp { spi } = &mut self.body {
            *spi = new;
        }
        self
    }

    /// An ARP answer instead of a request.
    pub(crate) fn arp_reply(mut self) -> Self {
        if let Body::Arp { operation } = &mut self.body {
            *operation = 2;
        }
        self
    }

    fn change_tcp(mut self, change: impl FnOnce(&mut TcpFields)) -> Self {
        if let Body::Tcp { tcp, .. } = &mut self.body {
            change(tcp);
        }
        self
    }
}
