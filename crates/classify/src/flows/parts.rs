//! How many places of the flow table each host of the LAN has, and which connection gives its place
//! to a new one where none is free. No host, and no stranger, can have so many that there are none
//! for others.
//!
//! Hosts are told apart by a seeded hash, so that two of them may be taken for one, but nobody can
//! see to it.

use std::cmp::Reverse;

use weir_packet::Side;
use weir_units::Instant;
use weir_units::limits::FLOW_HOST_PARTS;

use crate::entry::{Entry, Standing};

const CELLS: u16 = 1 << 14;

/// Connections of each host.
#[derive(Debug)]
pub(super) struct Parts {
    held: Box<[u32]>,
    /// More than a host may have while there is none for another.
    part: u32,
}

/// A connection that wants a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    /// Who has sent its first frame.
    side: Side,
    /// Where its host's connections are counted.
    pub(super) cell: u16,
}

/// How well a connection may keep its place; the least first.
type Claim = (Standing, Reverse<u32>, Instant);

impl Parts {
    pub(super) fn of(places: usize) -> Parts {
        let part = u32::try_from(places / FLOW_HOST_PARTS).unwrap_or(u32::MAX);
        Parts { held: vec![0; CELLS.into()].into(), part }
    }

    pub(super) fn join(&mut self, cell: u16) {
        self.held[usize::from(cell)] += 1;
    }

    pub(super) fn leave(&mut self, cell: u16) {
        self.held[usize::from(cell)] -= 1;
    }

    /// How well a connection may keep its place against a new one; `None`: it does keep it.
    ///
    /// A stranger's only takes the place of a stranger's. A connection that is alive gives way only
    /// to one of a host that has fewer, and if its own host has more than its part. A host that has
    /// more than its part takes the places of its own connections, of those that are alive only
    /// if they are quiet.
    pub(super) fn claim(&self, new: Newcomer, of: &Entry, now: Instant) -> Option<Claim> {
        let standing = of.standing(now);
        let [held, news] = [of.cell, new.cell].map(|cell| self.held[usize::from(cell)]);
        let is_own = of.cell == new.cell;
        let is_above = held > self.part && held > news;
        let may_go = match standing {
            Standing::Over | Standing::Uncalled => true,
            _ if new.side == Side::Wan => false,
            _ if news > self.part && !is_own && !is_above => false,
            Standing::Begun | Standing::OneWay => true,
            Standing::Alive => is_above || is_own && news > self.part && of.is_quiet(now),
        };
        let above = if is_above { held } else { 0 };
        may_go.then_some((standing, Reverse(above), of.seen))
    }
}

impl Newcomer {
    pub(crate) fn of(side: Side, host: u32) -> Newcomer {
        let [.., high, low] = host.to_be_bytes();
        Newcomer { side, cell: u16::from_be_bytes([high, low]) % CELLS }
    }
}
