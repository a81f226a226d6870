//! What control asks the packet thread, and what that answers. Everything that costs memory or time
//! is made and freed on control's side; a letter only carries it over.

use weir_engine::{Change, Snapshot};
use weir_io::{Port, PortCounters, PortState};
use weir_packet::Side;
use weir_units::Rate;
use weir_xdp::Heart;

/// Letters that wait in either direction at most.
pub(crate) const LETTERS: usize = 16;

pub(crate) enum Ask {
    /// Apply a change of policy.
    Change(Box<Change>),
    /// Copy the books from this leaf on.
    Look { cursor: u32, slice: Box<Snapshot> },
    /// Tell how the ports are.
    Ports,
    /// Use this port from now on, and beat this heart.
    Put { side: Side, port: Box<Port>, heart: Option<Heart> },
    /// Let go of a port.
    Take { side: Side },
    /// Let the link carry so much from now on, until the policy changes.
    Limit { limit: (u32, Side, Rate) },
    /// Stop turning.
    Stop,
}

pub(crate) enum Answer {
    /// The change is done; here is what it replaced, to be freed.
    Changed(Box<Change>),
    /// A slice, and where the next begins.
    Slice { next: Option<u32>, slice: Box<Snapshot> },
    /// How the ports are, by side, and how many connections are known.
    Ports { state: [PortState; 2], counters: [Option<PortCounters>; 2], flows: usize },
    /// The port that was there is not used any more.
    Away,
}
