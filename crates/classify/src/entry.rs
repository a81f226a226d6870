//! One connection: who it is, whether it is alive, and the answer for each of its directions. Two
//! cache lines: the first is what every look-up compares, the second what it takes away.

mod export;

use weir_packet::{BySide, Side, tcp};
use weir_units::limits::{
    FLOW_FRAMES_ALIVE, FLOW_IDLE_CLOSED_SECS, FLOW_IDLE_SECS, FLOW_IDLE_TCP_SECS,
    FLOW_IDLE_UNANSWERED_SECS,
};
use weir_units::{Instant, Span};

use crate::facts::Facts;
use crate::index::Variant;
use crate::key::Key;
use crate::parts::{Parts, UNKNOWN};

/// One connection. Aligned so that its two lines are neighbours that the cache fetches together.
#[derive(Clone, Debug, Default)]
#[repr(align(128))]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) seen: Instant,
    pub(crate) generation: u32,
    frames: u8,
    /// Bits: LAN seen, WAN seen, FIN from the LAN, FIN from the WAN, reset, host settled; two that
    /// tell when the LAN was seen last.
    state: u8,
    /// Where its host's connections are counted: that of the LAN host that sends on it.
    pub(crate) cell: u16,
    pub(crate) answers: BySide<Kept>,
}

/// The answer for one direction, and what it depended on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) variant: Variant,
    pub(crate) leaf: u32,
    /// Which of the classes with leaves per host made the leaf; `NO_EACH`: it is fixed.
    pub(crate) each: u32,
    /// Of the policy that gave the answer; 0: none.
    pub(crate) epoch: u32,
}

/// How much a connection that holds a place has done for it; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It is closed, or has been silent for longer than such a connection is kept.
    Over,
    /// Only strangers have sent on it.
    Uncalled,
    /// Only the LAN side has sent on it, and little.
    Begun,
    /// Only the LAN side has sent on it.
    OneWay,
    /// Both sides have sent on it.
    Alive,
}

/// The leaf is not one made for a host.
pub(crate) const NO_EACH: u32 = u32::MAX;

const BOTH: u8 = 3;
const FINS: u8 = 12;
const RESET: u8 = 16;
const SETTLED: u8 = 32;
/// From this bit on the turn of four in which the LAN was seen last.
const TURN: u32 = 6;
/// How long a turn is, as a power of two of nanoseconds: 2.1 s.
const TURN_NS: u32 = 31;

impl Entry {
    /// Gives the place to another connection.
    pub(crate) fn begin(&mut self, key: Key, cell: u16, now: Instant) {
        let generation = self.generation.wrapping_add(1);
        *self = Entry { key, seen: now, generation, cell, ..Entry::default() };
    }

    /// One more frame of the connection.
    #[inline]
    pub(crate) fn touch(&mut self, facts: &Facts, now: Instant) {
        self.seen = now;
        self.frames = self.frames.saturating_add(1);
        self.state = match facts.side {
            Side::Lan => self.state & !(3 << TURN) | 1 << Side::Lan as u8 | turn(now) << TURN,
            Side::Wan => self.state | 1 << Side::Wan as u8,
        };
        let h = facts.headers;
        if h.protocol == tcp::NUMBER && h.transport_at != 0 {
            let flags = facts.bytes.get(usize::from(h.transport_at) + 13).copied().unwrap_or(0);
            if flags & (tcp::SYN | tcp::FIN | tcp::RST) != 0 {
                self.end_or_begin(flags, facts.side);
            }
        }
    }

    fn end_or_begin(&mut self, flags: u8, side: Side) {
        if flags & tcp::SYN != 0 {
            self.state &= BOTH | SETTLED | 3 << TURN;
        }
        if flags & tcp::FIN != 0 {
            self.state |= 4 << side as u8;
        }
        if flags & tcp::RST != 0 {
            self.state |= RESET;
        }
    }

    /// Whether a frame that says it is this connection's may be: whatever comes from outside, and
    /// what the host sends that has been sending. Anyone in the LAN can write another's addresses
    /// and ports, and would share its queue.
    #[inline]
    pub(crate) fn is_of(&self, side: Side, host: u32) -> bool {
        side == Side::Wan || self.cell == Parts::cell(host)
    }

    /// Whether the LAN host has sent in this turn or the one before. A silence of four turns or
    /// more may look like a short one, for half of the time.
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        let is_known = self.cell & UNKNOWN == 0;
        is_known && self.has_called() && turn(now).wrapping_sub(self.state >> TURN) & 3 <= 1
    }

    /// Another host sends on it from now on.
    pub(crate) fn hand_over(&mut self, host: u32) {
        self.cell = Parts::cell(host);
        self.state &= !SETTLED;
    }

    /// Whether the LAN side has sent, and not to refuse it.
    #[inline]
    pub(crate) const fn is_answered(&self) -> bool {
        self.state & (1 << Side::Lan as u8 | RESET) == 1 << Side::Lan as u8
    }

    /// Whether this host, which it came from, is known to have been there for long enough.
    #[inline]
    pub(crate) fn is_settled(&self, host: u32) -> bool {
        self.state & SETTLED != 0 && self.cell == Parts::cell(host)
    }

    /// This host has been there for long enough.
    pub(crate) fn settle(&mut self, host: u32) {
        if self.cell == Parts::cell(host) {
            self.state |= SETTLED;
        }
    }

    /// Whether it is kept for long though it is silent. What only strangers have sent on is not.
    fn is_proven(&self) -> bool {
        let is_kept = self.state & BOTH == BOTH || self.frames >= FLOW_FRAMES_ALIVE;
        !self.is_closed() && self.has_called() && is_kept
    }

    pub(crate) const fn has_called(&self) -> bool {
        self.state & 1 << Side::Lan as u8 != 0
    }

    fn is_closed(&self) -> bool {
        self.state & RESET != 0 || self.state & FINS == FINS
    }

    /// Whether it has been silent for longer than such a connection is kept.
    #[inline]
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        // forgetting one that lives costs a look-up and its place in a fair queue, no connection
        let idle = if self.is_closed() {
            FLOW_IDLE_CLOSED_SECS
        } else if !self.is_proven() {
            FLOW_IDLE_UNANSWERED_SECS
        } else if self.key.protocol() == tcp::NUMBER && self.state & BOTH == BOTH {
            FLOW_IDLE_TCP_SECS
        } else {
            FLOW_IDLE_SECS
        };
        now.since(self.seen) > Span::from_secs(idle)
    }

    /// What weighs when a new connection finds no free place.
    pub(crate) fn standing(&self, now: Instant) -> Standing {
        if self.is_closed() || self.is_idle(now) {
            Standing::Over
        } else if !self.has_called() {
            Standing::Uncalled
        } else if self.state & BOTH == BOTH {
            Standing::Alive
        } else if self.is_proven() {
            Standing::OneWay
        } else {
            Standing::Begun
        }
    }

    /// Whether nobody would miss it soon, though it is alive.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        now.since(self.seen) > Span::from_secs(FLOW_IDLE_UNANSWERED_SECS)
    }
}

/// The turn of four that it is.
#[inline]
const fn turn(now: Instant) -> u8 {
    (now.ns() >> TURN_NS & 3) as u8
}

const _: () = assert!(size_of::<Entry>() == 128);
