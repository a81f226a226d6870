//! What the first stages found out about a frame, so that no later stage reads the bytes again. It
//! is written by classify (and the colour by condition); everyone behind only reads it.

use weir_units::Way;

use crate::{Headers, Net, Side};

/// What travels with a frame through the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Number of the leaf whose queue the frame joins.
    pub leaf: u32,
    /// The connection it belongs to.
    pub flow: Flow,
    /// Stands for the host on the LAN side: a hash of its MAC or, behind a router, of its address.
    pub host: u32,
    /// Where the network header begins; 0: nowhere.
    pub net_at: u16,
    /// Where the transport header begins; 0: nowhere.
    pub transport_at: u16,
    /// What the two headers are.
    pub kind: FrameKind,
    /// DSCP and ECN as they stand in the IP header; 0 if there is none.
    pub traffic_class: u8,
    /// Drop precedence: 0 is green, the last to be dropped. Assured forwarding (RFC 2597) brings
    /// its own in the code point; everything else comes green.
    pub colour: u8,
    /// Which way the frame travels.
    pub way: Way,
}

/// A connection in the flow table: its place, and how often that place was given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The place in the table, for arrays beside it.
    pub index: u32,
    /// Tells this connection from an earlier one at the same place.
    pub generation: u32,
}

/// Which network and transport header a frame has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameKind(u8);

impl Label {
    /// Stands for all hosts that may be inventions: they take turns as one.
    pub(crate) const NEW_HOSTS: u32 = u32::MAX >> 1;

    /// The label of a frame of which only the headers are known.
    #[must_use]
    pub const fn new(side: Side, headers: &Headers) -> Self {
        Label {
            leaf: 0,
            flow: Flow::NONE,
            host: 0,
            net_at: headers.net_at,
            transport_at: headers.transport_at,
            kind: FrameKind::of(headers),
            traffic_class: headers.traffic_class,
            colour: precedence(headers.traffic_class >> 2),
            way: side.way(),
        }
    }

    /// The side that the frame came in from.
    #[must_use]
    #[inline]
    pub const fn side(&self) -> Side {
        match self.way {
            Way::Up => Side::Lan,
            Way::Down => Side::Wan,
        }
    }

    /// Whether the LAN side has sent on this connection, and did not refuse it.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        matches!(self.way, Way::Up) || self.kind.0 & FrameKind::ANSWERED != 0
    }

    /// The host with which the frame takes turns: its own, or [`Label::NEW_HOSTS`].
    #[must_use]
    #[inline]
    pub const fn turns_with(&self) -> u32 {
        if self.kind.is_of_new_host() { Label::NEW_HOSTS } else { self.host }
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
}

/// The drop precedence that a code point asks for: AFx1 to AFx3 are 0 to 2.
#[must_use]
pub const fn precedence(dscp: u8) -> u8 {
    // x from 1 to 4 in the upper three bits, the precedence in the next two, then 0
    match (dscp >> 3, dscp & 7) {
        (1..=4, low @ (2 | 4 | 6)) => low / 2 - 1,
        _ => 0,
    }
}

impl Flow {
    /// No entry in the flow table.
    pub const NONE: Flow = Flow { index: u32::MAX, generation: 0 };

    /// Whether this is [`Flow::NONE`].
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.index == u32::MAX
    }
}

impl FrameKind {
    const V4: u8 = 1;
    const V6: u8 = 2;
    const TCP: u8 = 4;
    const UDP: u8 = 8;
    const STRAY: u8 = 16;
    const ANSWERED: u8 = 32;
    const NEW_HOST: u8 = 64;

    const fn of(headers: &Headers) -> FrameKind {
        let net = match headers.net {
            Net::V4 => FrameKind::V4,
            Net::V6 => FrameKind::V6,
            Net::None | Net::Arp => return FrameKind(0),
        };
        // a later fragment has the protocol but not its header
        let transport = match (headers.transport_at, headers.protocol) {
            (1.., crate::tcp::NUMBER) => FrameKind::TCP,
            (1.., crate::udp::NUMBER) => FrameKind::UDP,
            _ => 0,
        };
        FrameKind(net | transport)
    }

    /// The same of a later fragment whose class nobody knows, because the first has not come.
    #[must_use]
    pub const fn stray(self) -> FrameKind {
        FrameKind(self.0 | FrameKind::STRAY)
    }

    /// The same of a frame on whose connection the LAN side has sent, or has not.
    #[must_use]
    pub const fn answered(self, is_answered: bool) -> FrameKind {
        FrameKind(self.0 & !FrameKind::ANSWERED | if is_answered { FrameKind::ANSWERED } else { 0 })
    }

    /// The same of a frame whose host has not been sending for a second yet.
    #[must_use]
    pub const fn of_new_host(self) -> FrameKind {
        FrameKind(self.0 | FrameKind::NEW_HOST)
    }

    /// Its host has not been sending for a second yet, as far as anyone knows.
    #[must_use]
    #[inline]
    pub const fn is_of_new_host(self) -> bool {
        self.0 & FrameKind::NEW_HOST != 0
    }

    /// A later fragment whose class nobody knows.
    #[must_use]
    pub const fn is_stray(self) -> bool {
        self.0 & FrameKind::STRAY != 0
    }

    /// An IPv4 packet.
    #[must_use]
    pub const fn is_v4(self) -> bool {
        self.0 & FrameKind::V4 != 0
    }

    /// An IPv6 packet.
    #[must_use]
    pub const fn is_v6(self) -> bool {
        self.0 & FrameKind::V6 != 0
    }

    /// An IP packet of either version.
    #[must_use]
    pub const fn is_ip(self) -> bool {
        self.0 & (FrameKind::V4 | FrameKind::V6) != 0
    }

    /// There is a TCP header at `transport_at`.
    #[must_use]
    pub const fn is_tcp(self) -> bool {
        self.0 & FrameKind::TCP != 0
    }

    /// There is a UDP header at `transport_at`.
    #[must_use]
    pub const fn is_udp(self) -> bool {
        self.0 & FrameKind::UDP != 0
    }
}

const _: () = assert!(size_of::<Label>() <= 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assured_forwarding_brings_its_colour() {
        let colour = |dscp: u8| {
            let headers = Headers { traffic_class: dscp << 2 | 3, ..Headers::EMPTY };
            Label::new(Side::Lan, &headers).colour
        };
        for class in 1..=4_u8 {
            let of = |precedence: u8| colour(8 * class + 2 * precedence);
            assert_eq!([of(1), of(2), of(3)], [0, 1, 2], "AF{class}x");
        }
        // all others are green: class selectors, EF, what is odd, what lies beyond AF4
        let af = |dscp: u8| (1..=4).contains(&(dscp >> 3)) && matches!(dscp & 7, 2 | 4 | 6);
        assert!((0..64).filter(|dscp| !af(*dscp)).all(|dscp| colour(dscp) == 0));
    }
}
