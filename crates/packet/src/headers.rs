//! What the bytes of a frame say, found in one pass from the outside to the inside. It never
//! fails: what stands before a fault stays usable, and the fault is named.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::read::offset;
use crate::{Fault, ethernet, icmp, ipsec, sctp, tcp, udp, vlan};

/// The headers of one frame. Offsets count from the frame's first byte; 0 means: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Source address, IPv4 in the low 32 bits; of ARP, the sender's.
    pub source: u128,
    /// Target address, IPv4 in the low 32 bits; of ARP, the one asked for.
    pub target: u128,
    /// Security parameter index of ESP or AH, identifier of an ICMP echo, else 0.
    pub spi: u32,
    /// Which packet a fragment is a piece of; 0 for a whole packet.
    pub fragment_id: u32,
    /// Ethernet type behind all tags and SNAP; below 0x600 the length of another 802.3 frame.
    pub ethertype: u16,
    /// The outermost VLAN tag that names a VLAN, or else the outermost: priority, drop bit and
    /// number. 0 without tags.
    pub tci: u16,
    /// Where the network header (or an unknown payload) begins.
    pub net_at: u16,
    /// Where the transport header begins; its fixed part is whole.
    pub transport_at: u16,
    /// Where the transport's payload begins.
    pub payload_at: u16,
    /// Where the IP packet ends; Ethernet padding may lie behind it.
    pub end: u16,
    /// Source port of TCP, UDP or SCTP.
    pub source_port: u16,
    /// Target port of TCP, UDP or SCTP.
    pub target_port: u16,
    /// IP protocol behind all extension headers.
    pub protocol: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// VLAN tags.
    pub tags: u8,
    /// Which network header there is.
    pub net: Net,
    /// Whether this is a piece of a larger packet.
    pub fragment: Fragment,
    /// Whether PPPoE lies between Ethernet and IP.
    pub pppoe: bool,
    /// Whether an authentication header (AH) lies between IP and `protocol`.
    pub ah: bool,
    /// The first thing that could not be read.
    pub fault: Option<Fault>,
}

/// Which network header a frame has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Net {
    /// None that is read here.
    #[default]
    None,
    /// ARP.
    Arp,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Whether a packet is a piece of a larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fragment {
    /// A whole packet.
    #[default]
    None,
    /// The first piece: it has the transport header.
    First,
    /// A later piece: without ports.
    Later,
}

impl Headers {
    /// Nothing known.
    pub const EMPTY: Headers = Headers {
        source: 0,
        target: 0,
        spi: 0,
        fragment_id: 0,
        ethertype: 0,
        tci: 0,
        net_at: 0,
        transport_at: 0,
        payload_at: 0,
        end: 0,
        source_port: 0,
        target_port: 0,
        protocol: 0,
        traffic_class: 0,
        tags: 0,
        net: Net::None,
        fragment: Fragment::None,
        pppoe: false,
        ah: false,
        fault: None,
    };

    /// Reads a frame; what lies behind 65 535 bytes is not looked at.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Headers {
        let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
        let mut headers = Headers { end: offset(bytes.len()), ..Headers::EMPTY };
        if let Err(fault) = ethernet::read(&mut headers, bytes) {
            headers.fault = Some(fault);
        }
        headers
    }

    /// Reads the header of `self.protocol` at `at`; `bytes` end where the IP packet does.
    #[inline]
    pub(crate) fn read_transport(&mut self, bytes: &[u8], at: usize) -> Result<(), Fault> {
        match self.protocol {
            tcp::NUMBER => tcp::read(self, bytes, at),
            udp::NUMBER => udp::read(self, bytes, at),
            icmp::V4 | icmp::V6 => icmp::read(self, bytes, at),
            sctp::NUMBER => sctp::read(self, bytes, at),
            ipsec::ESP => ipsec::read_esp(self, bytes, at),
            _ => {
                self.transport_at = offset(at);
                self.payload_at = offset(at);
                Ok(())
            }
        }
    }

    /// Number of the outermost VLAN. Tags that name none (VLAN 0) put a frame into none, as
    /// receivers have it.
    #[must_use]
    pub const fn vlan(&self) -> Option<u16> {
        vlan::number(self.tci)
    }

    /// The differentiated services code point.
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// The two bits of explicit congestion notification.
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }

    /// Whether there is an IP header.
    #[must_use]
    pub const fn is_ip(&self) -> bool {
        matches!(self.net, Net::V4 | Net::V6)
    }

    /// Bytes behind the transport header, without padding.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        if self.payload_at == 0 { 0 } else { self.end.saturating_sub(self.payload_at) as usize }
    }

    /// Source and target address of IPv4, IPv6 or ARP.
    #[must_use]
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        match self.net {
            Net::None => None,
            Net::Arp | Net::V4 => Some((v4(self.source), v4(self.target))),
            Net::V6 => Some((
                Ipv6Addr::from_bits(self.source).into(),
                Ipv6Addr::from_bits(self.target).into(),
            )),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "IPv4 stands in the low 32 bits")]
fn v4(bits: u128) -> IpAddr {
    Ipv4Addr::from_bits(bits as u32).into()
}

const _: () = assert!(size_of::<Headers>() == 64);
