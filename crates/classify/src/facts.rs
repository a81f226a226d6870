//! What a rule can ask of a frame, seen from the LAN: which of the two ends is the LAN host
//! follows from the side that the frame came in from.

use weir_packet::{Headers, Net, Side, ethernet, tcp};

use weir_units::limits::ROUTERS;
use weir_units::{Origin, Raw};

use crate::key::{SCTP, Seed, UDP};

/// MACs of the LAN side behind which there are hosts by their addresses; sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routers(Box<[u64]>);

/// A frame as rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'f> {
    pub(crate) side: Side,
    pub(crate) headers: &'f Headers,
    pub(crate) bytes: &'f [u8],
    /// Whether it is TCP, UDP or SCTP, with a header.
    has_ports: bool,
}

impl<'f> Facts<'f> {
    #[inline]
    pub(crate) fn new(side: Side, headers: &'f Headers, bytes: &'f [u8]) -> Self {
        let number = headers.protocol;
        // not `&&` and `||`: protocols come in any order, and a jump would be guessed wrongly
        let is_ported = (number == tcp::NUMBER) | (number == UDP) | (number == SCTP);
        let has_ports = is_ported & (headers.transport_at != 0);
        Facts { side, headers, bytes, has_ports }
    }

    /// The same frame with other headers: a later fragment, completed.
    pub(crate) fn with(self, headers: &'f Headers, has_ports: bool) -> Self {
        Facts { headers, has_ports, ..self }
    }

    /// The address of the LAN host.
    #[inline]
    pub(crate) fn lan(&self) -> u128 {
        match self.side {
            Side::Lan => self.headers.source,
            Side::Wan => self.headers.target,
        }
    }

    /// The host on the LAN side: its MAC, whatever its addresses. Behind a router, who has the
    /// address: a host has a whole /64 of IPv6 if it likes.
    #[inline]
    pub(crate) fn host(&self, routers: &Routers) -> u128 {
        match self.lan_mac_number() {
            Some(mac) if !routers.has(mac) => (1 << 48 | mac).into(),
            _ => self.address_behind(),
        }
    }

    /// What stands for that host on labels, and decides which core's engine has it.
    #[inline]
    pub(crate) fn host_number(&self, seed: Seed, routers: &Routers) -> u32 {
        seed.host(self.host(routers))
    }

    /// The MAC on the LAN side as [`number`] has it, read with what lies behind it: no frame of
    /// Ethernet ends there.
    #[inline]
    fn lan_mac_number(&self) -> Option<u64> {
        let at = if self.side == Side::Lan { 6 } else { 0 };
        let eight = self.bytes.get(at..)?.first_chunk()?;
        Some(u64::from_be_bytes(*eight) >> 16)
    }

    /// The MAC of a host on the LAN side that is no router.
    pub(crate) fn host_mac(&self, routers: &Routers) -> Option<u64> {
        self.lan_mac_number().filter(|&mac| !routers.has(mac))
    }

    pub(crate) fn address_behind(&self) -> u128 {
        match self.headers.net {
            Net::V6 => self.lan() & u128::MAX << 64,
            Net::V4 | Net::Arp | Net::None => self.lan(),
        }
    }

    /// The address of the other one.
    #[inline]
    pub(crate) fn wan(&self) -> u128 {
        match self.side {
            Side::Lan => self.headers.target,
            Side::Wan => self.headers.source,
        }
    }

    /// Ports of the LAN host (high half) and of the other; 0 if there are none.
    #[inline]
    pub(crate) fn ports(&self) -> u32 {
        let (source, target) = (self.headers.source_port, self.headers.target_port);
        let (lan, wan) = match self.side {
            Side::Lan => (source, target),
            Side::Wan => (target, source),
        };
        ((u32::from(lan) << 16) | u32::from(wan)) * u32::from(self.has_ports)
    }

    pub(crate) fn lan_port(&self) -> Option<u64> {
        self.has_ports.then_some(u64::from(self.ports() >> 16))
    }

    pub(crate) fn wan_port(&self) -> Option<u64> {
        self.has_ports.then_some(u64::from(self.ports() & 0xffff))
    }

    pub(crate) fn lan_mac(&self) -> Option<[u8; 6]> {
        match self.side {
            Side::Lan => ethernet::source_mac(self.bytes),
            Side::Wan => ethernet::target_mac(self.bytes),
        }
    }

    pub(crate) fn wan_mac(&self) -> Option<[u8; 6]> {
        match self.side {
            Side::Lan => ethernet::target_mac(self.bytes),
            Side::Wan => ethernet::source_mac(self.bytes),
        }
    }

    pub(crate) fn raw(&self, raw: &Raw) -> bool {
        let start = match raw.from {
            Origin::Frame => Some(0),
            Origin::Net => present(self.headers.net_at),
            Origin::Transport => present(self.headers.transport_at),
            Origin::Payload => present(self.headers.payload_at),
        };
        let Some(start) = start else { return false };
        let at = start + usize::from(raw.at);
        let Some(bytes) = self.bytes.get(at..at + usize::from(raw.length.clamp(1, 8))) else {
            return false;
        };
        let value = bytes.iter().fold(0, |value, &byte| (value << 8) | u64::from(byte));
        (value ^ raw.value) & raw.mask == 0
    }
}

impl Routers {
    pub(crate) fn of(macs: &[[u8; 6]]) -> Routers {
        let mut macs: Vec<u64> = macs.iter().copied().map(number).collect();
        macs.sort_unstable();
        macs.truncate(ROUTERS);
        Routers(macs.into())
    }

    #[inline]
    pub(crate) fn has(&self, mac: u64) -> bool {
        !self.0.is_empty() && self.0.binary_search(&mac).is_ok()
    }
}

/// A MAC as a number.
#[inline]
pub(crate) const fn number([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

fn present(at: u16) -> Option<usize> {
    (at != 0).then_some(usize::from(at))
}
