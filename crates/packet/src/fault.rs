//! What can be wrong with the bytes of a frame, in words for the operator.

use std::fmt;

/// The first thing in a frame that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// It ends inside the Ethernet header or a VLAN tag.
    Runt,
    /// It has more VLAN tags than the parser follows.
    TooManyTags,
    /// The ARP packet is cut short.
    BadArp,
    /// The PPPoE header is cut short, of a wrong version, or says more bytes than there are.
    BadPppoe,
    /// The IP header or an extension header is cut short or of a wrong version or length.
    BadIpHeader,
    /// The IP header says fewer bytes than itself or more than there are.
    BadIpLength,
    /// There are more IPv6 extension headers than the parser follows.
    TooManyExtensions,
    /// The transport header is cut short or says a wrong length.
    BadTransport,
}

impl Fault {
    /// Every fault, for tables of counters.
    pub const ALL: [Fault; 8] = [
        Fault::Runt,
        Fault::TooManyTags,
        Fault::BadArp,
        Fault::BadPppoe,
        Fault::BadIpHeader,
        Fault::BadIpLength,
        Fault::TooManyExtensions,
        Fault::BadTransport,
    ];

    /// One or two words for a counter or a trace line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Runt => "runt",
            Fault::TooManyTags => "too many tags",
            Fault::BadArp => "bad arp",
            Fault::BadPppoe => "bad pppoe",
            Fault::BadIpHeader => "bad ip header",
            Fault::BadIpLength => "bad ip length",
            Fault::TooManyExtensions => "too many extension headers",
            Fault::BadTransport => "bad transport header",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
