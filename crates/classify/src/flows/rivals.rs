//! Which connection gives its place to a new one where none is free.

use std::cmp::Reverse;

use weir_packet::Side;
use weir_units::Instant;

use crate::entry::{Entry, Standing};
use crate::parts::{Cell, Parts};

/// A connection that wants a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    /// Who has sent its first frame.
    side: Side,
    /// Where its host's connections are counted.
    pub(super) cell: Cell,
    /// How it stands, where another table told of it.
    brought: Option<Standing>,
}

/// How well a connection may keep its place; the least first.
type Claim = (Standing, Reverse<u32>, Instant);

impl Parts {
    /// How well a connection may keep its place against a new one; `None`: it does keep it.
    ///
    /// A stranger's only takes the place of a stranger's or of one that is over; one that another
    /// table told of the same, if it stands better itself, so that those of one table do not take
    /// each other's places. A connection that is alive gives way only to one of a host that has
    /// fewer, and if its own host has more than its part. A host that has more than its part takes
    /// the places of its own connections, of those that are alive only if they are quiet.
    pub(super) fn claim(&self, new: Newcomer, of: &Entry, now: Instant) -> Option<Claim> {
        let standing = of.standing(now);
        let [held, news] = [of.cell, new.cell].map(|cell| self.held(cell));
        let is_own = of.cell == new.cell;
        let is_above = self.exceeds(held) && held > news;
        let is_excess = self.exceeds(news);
        let may_go = match standing {
            Standing::Over | Standing::Uncalled => new.brought.is_none_or(|own| standing < own),
            _ if new.brought.is_some() || new.side == Side::Wan => false,
            _ if is_excess && !is_own && !is_above => false,
            Standing::Begun | Standing::OneWay => true,
            Standing::Alive => is_above || is_own && is_excess && of.is_quiet(now),
        };
        let above = if is_above { held } else { 0 };
        may_go.then_some((standing, Reverse(above), of.seen))
    }
}

impl Newcomer {
    pub(crate) fn of(side: Side, host: u32) -> Newcomer {
        Newcomer { side, cell: Parts::cell(host), brought: None }
    }

    /// One that another table told of, whose host's connections are counted there.
    pub(crate) fn brought(told: &Entry, at: Instant) -> Newcomer {
        let side = if told.has_called() { Side::Lan } else { Side::Wan };
        Newcomer { side, cell: told.cell, brought: Some(told.standing(at)) }
    }
}
