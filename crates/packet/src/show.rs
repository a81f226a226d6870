//! One line of text for a frame, in the words that [`Build`](crate::Build) reads back: a line of a
//! trace can be typed into `weir explain`. What the words cannot say stands in round brackets at
//! the end.

use std::fmt;

use weir_units::{dscp, protocol};

use crate::headers::{Fragment, Headers, Net};
use crate::tcp::{Tcp, TcpOption};
use crate::words::{ECN, FLAGS};
use crate::{Build, ethernet, icmp, ipsec, sctp, tcp, udp, vlan};

/// A frame that can be written as a line.
#[derive(Clone, Copy, Debug)]
pub struct Show<'f> {
    bytes: &'f [u8],
    headers: Headers,
}

/// A line that says what a frame is.
#[must_use]
pub fn show(bytes: &[u8]) -> Show<'_> {
    Show { bytes, headers: Headers::parse(bytes) }
}

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ends(f)?;
        self.network(f)?;
        self.transport(f)?;
        self.link(f)?;
        write!(f, " length {}", self.bytes.len())?;
        self.remarks(f)
    }
}

impl Show<'_> {
    fn ends(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = &self.headers;
        let Some((source, target)) = h.addresses() else {
            return write!(f, "ethertype {:#06x}", h.ethertype);
        };
        let has_ports = h.transport_at != 0;
        match h.protocol {
            _ if h.net == Net::Arp => write!(f, "arp {source} > {target}"),
            tcp::NUMBER | udp::NUMBER | sctp::NUMBER if has_ports => {
                let name = protocol::name(h.protocol).unwrap_or_default();
                let source = std::net::SocketAddr::new(source, h.source_port);
                let target = std::net::SocketAddr::new(target, h.target_port);
                write!(f, "{name} {source} > {target}")
            }
            icmp::V4 if has_ports && h.net == Net::V4 => write!(f, "icmp {source} > {target}"),
            icmp::V6 if has_ports && h.net == Net::V6 => write!(f, "icmp {source} > {target}"),
            ipsec::ESP if has_ports => write!(f, "esp {source} > {target}"),
            number => write!(f, "protocol {number} {source} > {target}"),
        }
    }

    fn network(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = &self.headers;
        if !h.is_ip() {
            return Ok(());
        }
        match (h.dscp(), dscp::name(h.dscp())) {
            (0, _) => Ok(()),
            (_, Some(name)) => write!(f, " dscp {name}"),
            (number, None) => write!(f, " dscp {number}"),
        }?;
        if h.ecn() != 0 {
            write!(f, " ecn {}", ECN[usize::from(h.ecn())])?;
        }
        let ttl_at = usize::from(h.net_at) + if h.net == Net::V4 { 8 } else { 7 };
        match self.bytes.get(ttl_at) {
            Some(&ttl) if ttl != Build::TTL => write!(f, " ttl {ttl}"),
            _ => Ok(()),
        }
    }

    fn transport(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = &self.headers;
        if let Some(tcp) = Tcp::of(self.bytes, h) {
            return show_tcp(f, tcp);
        }
        if h.net == Net::Arp {
            let operation = self.bytes.get(usize::from(h.net_at) + 7);
            return if operation == Some(&2) { write!(f, " reply") } else { Ok(()) };
        }
        let header = self.bytes.get(usize::from(h.transport_at)..).unwrap_or_default();
        if !h.is_ip() || h.transport_at == 0 {
            return Ok(());
        }
        match (h.protocol, h.net, header) {
            (icmp::V4, Net::V4, &[kind, code, _, _, a, b, ..])
            | (icmp::V6, Net::V6, &[kind, code, _, _, a, b, ..]) => {
                let echo = if h.net == Net::V4 { 8 } else { 128 };
                if (kind, code) != (echo, 0) {
                    write!(f, " type {kind} code {code}")?;
                }
                match u16::from_be_bytes([a, b]) {
                    0 => Ok(()),
                    id => write!(f, " id {id}"),
                }
            }
            (ipsec::ESP, ..) => write!(f, " spi {}", h.spi),
            _ => Ok(()),
        }
    }

    fn link(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tci in vlan::tags(self.bytes) {
            write!(f, " vlan {}", tci & 0x0fff)?;
            if tci >> 13 != 0 {
                write!(f, " pcp {}", tci >> 13)?;
            }
        }
        let h = &self.headers;
        if h.pppoe && h.is_ip() {
            let at = vlan::start(self.bytes).0 + 2;
            if let Some(&[a, b]) = self.bytes.get(at..at + 2) {
                write!(f, " pppoe {}", u16::from_be_bytes([a, b]))?;
            }
        }
        let macs = ethernet::source_mac(self.bytes).zip(ethernet::target_mac(self.bytes));
        match macs {
            Some((a, b)) if (a, b) != self.usual_macs() => {
                write!(f, " mac {} > {}", Mac(a), Mac(b))
            }
            _ => Ok(()),
        }
    }

    /// The MACs of a frame that was made without saying them.
    fn usual_macs(&self) -> ([u8; 6], [u8; 6]) {
        match self.headers.addresses().filter(|_| self.headers.is_ip()) {
            Some((source, target)) => (ethernet::mac_for(source), ethernet::mac_for(target)),
            None => (Build::SOURCE_MAC, Build::TARGET_MAC),
        }
    }

    fn remarks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = &self.headers;
        match h.fragment {
            Fragment::None => Ok(()),
            Fragment::First => write!(f, " (first fragment of {})", h.fragment_id),
            Fragment::Later => write!(f, " (later fragment of {})", h.fragment_id),
        }?;
        if vlan::start(self.bytes).1 {
            write!(f, " (in SNAP)")?;
        }
        match h.fault {
            Some(fault) => write!(f, " ({fault})"),
            None => Ok(()),
        }
    }
}

fn show_tcp(f: &mut fmt::Formatter<'_>, tcp: Tcp<'_>) -> fmt::Result {
    let mut before = " flags ";
    for (name, bit) in FLAGS {
        if tcp.flags() & bit != 0 {
            write!(f, "{before}{name}")?;
            before = ",";
        }
    }
    if tcp.flags() == 0 {
        write!(f, " flags none")?;
    }
    for (name, value, usual) in [
        ("seq", tcp.seq(), 0),
        ("ack", tcp.ack(), 0),
        ("window", u32::from(tcp.window()), u32::from(u16::MAX)),
    ] {
        if value != usual {
            write!(f, " {name} {value}")?;
        }
    }
    let mss = tcp.options().find_map(|option| match option {
        Ok(TcpOption::Mss(mss)) => Some(mss),
        _ => None,
    });
    mss.map_or(Ok(()), |mss| write!(f, " mss {mss}"))
}

struct Mac([u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
