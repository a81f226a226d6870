//! What a rule can ask of a frame, seen from the LAN: which of the two ends is the LAN host
//! follows from the side that the frame came in from.

use weir_packet::{Headers, Side, ethernet, tcp};

use crate::key::{SCTP, UDP};
use crate::spec::{From, Raw};

/// A frame as rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'f> {
    pub(crate) side: Side,
    pub(crate) headers: &'f Headers,
    pub(crate) bytes: &'f [u8],
    pub(crate) lan: u128,
    pub(crate) wan: u128,
    /// Of the LAN host in the high half, of the other in the low one: copied in one piece.
    ports: u32,
    /// Whether it is TCP, UDP or SCTP, with a header.
    has_ports: bool,
}

impl<'f> Facts<'f> {
    #[inline]
    pub(crate) fn new(side: Side, headers: &'f Headers, bytes: &'f [u8]) -> Self {
        let h = headers;
        let has_ports = h.transport_at != 0 && matches!(h.protocol, tcp::NUMBER | UDP | SCTP);
        let (lan, wan, ports) = match side {
            Side::Lan => (h.source, h.target, (h.source_port, h.target_port)),
            Side::Wan => (h.target, h.source, (h.target_port, h.source_port)),
        };
        Facts { side, headers, bytes, lan, wan, ports: join(ports), has_ports }
    }

    /// The same frame with other headers and ports: a later fragment, completed.
    pub(crate) fn with(self, headers: &'f Headers, ports: Option<(u16, u16)>) -> Self {
        let has_ports = ports.is_some();
        Facts { headers, ports: join(ports.unwrap_or_default()), has_ports, ..self }
    }

    /// Ports of the LAN host (high half) and of the other; 0 if there are none.
    #[inline]
    pub(crate) fn ports(&self) -> u32 {
        if self.has_ports { self.ports } else { 0 }
    }

    pub(crate) fn lan_port(&self) -> Option<u64> {
        self.has_ports.then_some(u64::from(self.ports >> 16))
    }

    pub(crate) fn wan_port(&self) -> Option<u64> {
        self.has_ports.then_some(u64::from(self.ports & 0xffff))
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
            From::Frame => Some(0),
            From::Net => present(self.headers.net_at),
            From::Transport => present(self.headers.transport_at),
            From::Payload => present(self.headers.payload_at),
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

fn present(at: u16) -> Option<usize> {
    (at != 0).then_some(usize::from(at))
}

#[inline]
fn join((lan, wan): (u16, u16)) -> u32 {
    (u32::from(lan) << 16) | u32::from(wan)
}
