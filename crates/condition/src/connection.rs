//! What is remembered of a connection: two halves, each about the data that come in from one side
//! and the acknowledgements that answer them. Two cache lines.

use crate::segment::{Segment, is_after};
use crate::told::RoundTrip;

/// One connection. Its place is that of the flow table.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Connection {
    /// Tells it from an earlier one at this place.
    pub(crate) generation: u32,
    /// Tells what is known of it from what was known before nobody looked for a while.
    pub(crate) watch: u16,
    pub(crate) state: State,
    /// By the side that the data come in from.
    pub(crate) halves: [Half; 2],
}

const _: () = assert!(size_of::<Connection>() <= 128);

/// How much of the connection was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Not its beginning: how far its windows are shifted is not known.
    #[default]
    Unknown,
    /// The first SYN.
    Opening,
    /// Both.
    Open,
    /// It is signed, or said something that cannot be read: it is left alone.
    LeftAlone,
}

/// Data in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Half {
    /// The leaf that the data travel through.
    pub(crate) leaf: u32,
    /// The number behind the last byte that came.
    pub(crate) next: u32,
    /// The number that the receiver expects.
    pub(crate) acked: u32,
    /// The number behind the last byte that the sender was ever told it may send.
    pub(crate) edge: u32,
    /// What ends the measurement that is under way, and when it began.
    timed: u32,
    stamp: u32,
    timed_at: u32,
    /// The shortest way from here to the receiver and back, in microseconds; 0: not known.
    shortest: u32,
    /// The last one.
    last: u32,
    /// When the last acknowledgement was or will be let go.
    pub(crate) paced: u32,
    /// Until when its window is let go.
    pub(crate) released_until: u32,
    pub(crate) mss: u16,
    /// What the receiver wrote into its last acknowledgement.
    window: u16,
    /// Acknowledgements that wait here: the first and the last, counted from 1.
    pub(crate) first_held: u16,
    pub(crate) last_held: u16,
    /// When its leaf counted it last.
    pub(crate) counted: u8,
    /// How far the receiver's windows are shifted; `NO_SCALE` until it says so.
    pub(crate) scale: u8,
    pub(crate) duplicates: u8,
    flags: u8,
}

pub(crate) const NO_SCALE: u8 = 255;

const TIMING: u8 = 1;
const BY_STAMP: u8 = 2;
const STARTED: u8 = 4;
const REPEATED: u8 = 8;
const RELEASED: u8 = 16;
const EDGE_KNOWN: u8 = 32;
const ANSWERED: u8 = 64;

/// A tick of the clock of [`RoundTrip::Coarse`], in microseconds.
const COARSE: u32 = 500_000;
/// Microseconds that a way there and back takes at most; what took longer counts as this.
const LONGEST: u32 = 120_000_000;

impl Connection {
    pub(crate) fn new(generation: u32, watch: u16) -> Connection {
        let half = Half { scale: NO_SCALE, ..Half::default() };
        Connection { generation, watch, state: State::Unknown, halves: [half; 2] }
    }

    /// Nothing that was known of it holds.
    pub(crate) fn begins_anew(&mut self, state: State) {
        *self = Connection { state, ..Connection::new(self.generation, self.watch) };
    }

    /// The whole round trip of data that come in from `side`, in microseconds, as far as it is
    /// known: from here to the receiver and back, and from here to the sender and back.
    pub(crate) fn round_trip(&self, side: usize, kind: RoundTrip) -> u32 {
        let (there, here) = (&self.halves[side], &self.halves[side ^ 1]);
        match kind {
            RoundTrip::Fine => there.shortest.saturating_add(here.shortest),
            RoundTrip::Coarse => {
                let last = there.last.saturating_add(here.shortest);
                // a clock of ticks sees at least one
                last.next_multiple_of(COARSE).max(COARSE)
            }
        }
    }

    /// The last whole round trip, with whatever made it wait.
    pub(crate) fn last_round_trip(&self, side: usize) -> u32 {
        self.halves[side].last.saturating_add(self.halves[side ^ 1].shortest)
    }
}

impl Half {
    const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    const fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    /// A SYN or data came. Returns whether it had come before.
    pub(crate) fn sent(&mut self, at: u32, segment: &Segment) -> bool {
        let end = segment.end();
        let is_new = !self.has(STARTED) || is_after(end, self.next);
        if is_new {
            self.next = end;
            self.set(STARTED, true);
            if !self.has(TIMING) {
                self.timed = end;
                self.timed_at = at;
                self.stamp = segment.stamps.map_or(0, |(value, _)| value);
                self.set(BY_STAMP, segment.stamps.is_some());
                self.set(TIMING, true);
                self.set(REPEATED, false);
            }
        } else {
            // whose answer comes cannot be told, unless the clocks of both sides say it
            self.set(REPEATED, true);
        }
        !is_new
    }

    /// An acknowledgement came. Returns how many bytes it is the first to acknowledge.
    pub(crate) fn answered(&mut self, at: u32, segment: &Segment) -> u32 {
        let is_first = !self.has(ANSWERED);
        if !is_first && !is_after(segment.ack, self.acked) {
            return 0;
        }
        if self.has(TIMING) && !is_after(self.timed, segment.ack) {
            self.measure(at, segment);
        }
        let fresh = segment.ack.wrapping_sub(self.acked);
        self.acked = segment.ack;
        self.set(ANSWERED, true);
        if is_first { 0 } else { fresh }
    }

    /// Whether an acknowledgement is the last one again (RFC 5681, section 2): all that a sender
    /// learns by it is that something arrived out of order.
    pub(crate) fn is_duplicate(&self, segment: &Segment) -> bool {
        segment.ack == self.acked
            && segment.window == self.window
            && segment.is_bare()
            && self.has(ANSWERED)
    }

    /// An acknowledgement went by that is not older than the last one.
    pub(crate) const fn said(&mut self, segment: &Segment) {
        if segment.ack == self.acked {
            self.window = segment.window;
        }
    }

    fn measure(&mut self, at: u32, segment: &Segment) {
        self.set(TIMING, false);
        let echoed = match segment.stamps {
            Some((_, echo)) if self.has(BY_STAMP) => echo == self.stamp,
            _ => false,
        };
        if !echoed && self.has(REPEATED) {
            return;
        }
        let took = at.wrapping_sub(self.timed_at);
        if took.cast_signed() < 0 {
            // what was measured left before its time
            return;
        }
        let took = took.clamp(1, LONGEST);
        self.last = took;
        self.shortest = if self.shortest == 0 { took } else { self.shortest.min(took) };
    }

    /// What is being measured leaves only then.
    pub(crate) const fn begins_at(&mut self, at: u32) {
        self.timed_at = at;
    }

    /// When the measurement that is under way began.
    pub(crate) const fn timed_at(&self) -> u32 {
        self.timed_at
    }

    /// Whether a segment of it ever came.
    pub(crate) const fn has_begun(&self) -> bool {
        self.has(STARTED)
    }

    /// What is not acknowledged yet.
    pub(crate) const fn under_way(&self) -> bool {
        self.has(STARTED) && is_after(self.next, self.acked)
    }

    pub(crate) const fn is_released(&self) -> bool {
        self.has(RELEASED)
    }

    pub(crate) const fn release(&mut self, released: bool) {
        self.set(RELEASED, released);
    }

    /// The right edge that the sender knows, if it does.
    pub(crate) fn known_edge(&self) -> Option<u32> {
        self.has(EDGE_KNOWN).then_some(self.edge)
    }

    /// The sender may send up to here.
    pub(crate) fn grant(&mut self, edge: u32) {
        if !self.has(EDGE_KNOWN) || is_after(edge, self.edge) {
            self.edge = edge;
        }
        self.set(EDGE_KNOWN, true);
    }
}
