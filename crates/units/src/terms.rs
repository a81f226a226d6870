//! Terms that a policy and the stages share. They know nothing of each other, so what both mean
//! alike is defined here, once.

/// Which layer a rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layer {
    /// The IP packet (for a frame without one, what Ethernet carries).
    Ip,
    /// The Ethernet frame with its check sequence, at least 64 bytes.
    #[default]
    Ethernet,
    /// The Ethernet frame with preamble and gap: what a cable really carries.
    Wire,
    /// ATM cells, as on ADSL: IP packet and AAL5 trailer in cells of 53 bytes that carry 48.
    Atm,
    /// The Ethernet frame with its check sequence, as cable modems count.
    Docsis,
    /// The Ethernet frame with its check sequence in 64/65 coding, as VDSL carries it.
    Ptm,
}

/// Which class is served first among those that are within their shares; it never changes the
/// shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub u8);

/// What makes two frames the same host's, where leaves are made for hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The host on the LAN side: its MAC or, behind a router, its IPv4 address or /64 of IPv6.
    LanHost,
    /// The address on the WAN side.
    WanHost,
    /// The block of the address on the LAN side, by the length for its family.
    LanPrefix {
        /// Leading bits of an IPv4 address.
        v4: u8,
        /// Leading bits of an IPv6 address.
        v6: u8,
    },
    /// The block of the address on the WAN side.
    WanPrefix {
        /// Leading bits of an IPv4 address.
        v4: u8,
        /// Leading bits of an IPv6 address.
        v6: u8,
    },
    /// The MAC on the LAN side.
    LanMac,
    /// The outermost VLAN.
    Vlan,
}

/// Bytes at some place of a frame, as a big-endian number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Where counting begins.
    pub from: Origin,
    /// How many bytes behind that.
    pub at: u16,
    /// How many bytes: 1 to 8.
    pub length: u8,
    /// What they must be,
    pub value: u64,
    /// as far as these bits go.
    pub mask: u64,
}

/// Where a raw match begins to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The first byte of the Ethernet frame.
    Frame,
    /// The network header.
    Net,
    /// The transport header.
    Transport,
    /// What the transport carries.
    Payload,
}

impl Priority {
    /// Calls.
    pub const REALTIME: Priority = Priority(0);
    /// Games, terminals.
    pub const INTERACTIVE: Priority = Priority(1);
    /// Everything that does not say.
    pub const NORMAL: Priority = Priority(2);
    /// Backups.
    pub const BULK: Priority = Priority(3);
}

impl Default for Priority {
    fn default() -> Self {
        Priority::NORMAL
    }
}

impl By {
    /// Whether it names someone on the LAN side.
    #[must_use]
    pub const fn is_of_lan(self) -> bool {
        matches!(self, By::LanHost | By::LanPrefix { .. } | By::LanMac)
    }
}
