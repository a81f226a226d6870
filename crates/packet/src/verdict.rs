//! What a stage decides about a frame. A drop is a value with a reason; each reason is a row of one
//! table, from which counters, metrics, traces and docs/drops.md take its name and its meaning.

use crate::{Fault, Fragment, Headers};

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// On to the next stage.
    Forward,
    /// It waits here and leaves later.
    Hold,
    /// It goes no further.
    Drop(Reason),
}

/// Why a frame goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Fewer bytes than an Ethernet header has.
    Runt,
    /// The queue it should wait in is full.
    QueueFull,
    /// All queues together are full, and its own is the longest.
    Crowded,
    /// Queue management: its sender shall slow down.
    Managed,
    /// Its session is one too many.
    NoSession,
    /// It is beyond what its class is policed to.
    Policed,
    /// Its leaf has sent its share of what there is.
    OverShare,
    /// More tags or extension headers than are followed: nobody knows whose it is.
    TooDeep,
    /// A fragment of a packet of which nobody knows yet whose it is.
    Fragment,
    /// Newer ones have passed by: it has waited through a standstill of weir, or an edit of the
    /// policy sends its connection to another class.
    Stale,
}

/// Every reason with its name and its meaning, in the order of their counters.
const TABLE: [(Reason, &str, &str); Reason::COUNT] = [
    (Reason::Runt, "runt", "the frame is shorter than an Ethernet header"),
    (Reason::QueueFull, "queue-full", "the queue for the frame is full"),
    (Reason::Crowded, "crowded", "all queues together are full, and this class has the most"),
    (Reason::Managed, "managed", "active queue management (AQM) signals the sender to slow down"),
    (Reason::NoSession, "no-session", "all session places of the class are taken"),
    (Reason::Policed, "policed", "the frame exceeds the policed rate of its class"),
    (
        Reason::OverShare,
        "over-share",
        "the frame exceeds the share of its leaf, which has no queue",
    ),
    (
        Reason::TooDeep,
        "too-deep",
        "the frame has more VLAN tags or extension headers than weir parses",
    ),
    (
        Reason::Fragment,
        "fragment",
        "the first fragment, which decides the class, has not arrived or is too short",
    ),
    (
        Reason::Stale,
        "stale",
        "newer frames have passed while weir did not run or an edit moved the connection",
    ),
];

impl Reason {
    /// How many reasons there are.
    pub const COUNT: usize = 10;

    /// All reasons in the order of their counters.
    pub fn all() -> impl Iterator<Item = Reason> {
        TABLE.iter().map(|(reason, ..)| *reason)
    }

    /// Why a frame with these headers goes no further, whatever its class would be: nobody can say
    /// which one that is, and its receiver may find more in it than weir does (docs/drops.md).
    #[inline]
    #[must_use]
    pub fn of(headers: &Headers) -> Option<Reason> {
        // a first fragment says whose all of them are (RFC 1858 and RFC 7112)
        let is_first = headers.fragment == Fragment::First;
        match headers.fault? {
            Fault::Runt => Some(Reason::Runt),
            Fault::TooManyTags | Fault::TooManyExtensions => Some(Reason::TooDeep),
            _ if is_first => Some(Reason::Fragment),
            _ => None,
        }
    }

    /// Its place among the counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its name in metrics and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        TABLE[self.index()].1
    }

    /// What it means, in words.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        TABLE[self.index()].2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_counters() {
        for (at, (reason, ..)) in TABLE.iter().enumerate() {
            assert_eq!(reason.index(), at);
        }
    }
}
