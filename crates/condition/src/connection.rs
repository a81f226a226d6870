//! What is remembered of a connection: two halves, each about the data that travel one way
//! and the acknowledgements that answer them. Two cache lines.

mod export;

use weir_packet::tcp;
use weir_units::{ByWay, Way};

use crate::segment::{Segment, is_after};
use crate::told::RoundTrip;

pub use export::{ClaimState, ConnectionState, HalfState};

/// One connection. Its place is that of the flow table.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Connection {
    /// Tells it from an earlier one at this place.
    pub(crate) generation: u32,
    /// Tells what is known of it from what was known before nobody looked for a while.
    pub(crate) watch: u16,
    pub(crate) state: State,
    /// What one side said and the other has yet to confirm.
    pub(crate) claim: Claim,
    /// By the way that the data travel.
    pub(crate) halves: ByWay<Half>,
}

/// What one side of an open connection said that does not fit what is known of it. It counts once
/// the other side answers it: one host alone cannot make its connection another one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claim {
    /// The first number of a SYN, or the number behind data.
    number: u32,
    mss: u16,
    scale: u8,
    /// Bits: there is one; it is a SYN; it travels down.
    kind: u8,
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
    /// The number behind the last byte that the sender was ever told it may send, or that it may
    /// send before it was told anything.
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
const IN_PIECES: u8 = 128;

/// The largest window that is not shifted, and the largest packet.
const UNSCALED: u32 = 65_535;

/// A tick of the clock of [`RoundTrip::Coarse`], in microseconds.
const COARSE: u32 = 500_000;
/// Microseconds that a way there and back takes at most; what took longer counts as this.
const LONGEST: u32 = 120_000_000;

impl Connection {
    pub(crate) fn new(generation: u32, watch: u16) -> Connection {
        let half = Half { scale: NO_SCALE, ..Half::default() };
        let claim = Claim::default();
        Connection { generation, watch, state: State::Unknown, claim, halves: ByWay::same(half) }
    }

    /// Nothing that was known of it holds.
    pub(crate) fn begins_anew(&mut self, state: State) {
        *self = Connection { state, ..Connection::new(self.generation, self.watch) };
    }

    /// Whether the sender of a segment that travels this way and its receiver are where the segment
    /// says: one that is not is rejected by its receiver (RFC 9293, section 3.10.7.4).
    #[inline]
    pub(crate) fn accepts(&self, way: Way, segment: &Segment) -> bool {
        let (from, to) = (&self.halves[way], &self.halves[way.other()]);
        segment.has(tcp::ACK) && !is_after(segment.ack, to.next) && from.expects(segment.end())
    }

    /// Notes what a segment that does not fit says of its sender, and looks whether it confirms
    /// what the other side said: then the record goes on from there. Returns whether the segment
    /// fits after all.
    #[cold]
    pub(crate) fn confirms(&mut self, way: Way, segment: &Segment) -> bool {
        let claim = self.claim;
        let theirs = &mut self.halves[way.other()];
        if !segment.has(tcp::ACK) {
            return false;
        }
        let mut fits = !is_after(segment.ack, theirs.reached());
        if !fits && claim.kind == Claim::data(way.other()) && !is_after(segment.ack, claim.number) {
            theirs.goes_on_at(claim.number, segment);
            self.claim = Claim::default();
            fits = true;
        }
        let (mine, number) = (&self.halves[way], segment.end());
        if !mine.expects(number) && is_after(number, mine.next) {
            self.claim = Claim { number, kind: Claim::data(way), ..Claim::default() };
        }
        fits && mine.expects(number)
    }

    /// A SYN travels this way although the connection is open.
    pub(crate) const fn claims(&mut self, way: Way, number: u32, mss: u16, scale: u8) {
        self.claim = Claim { number, mss, scale, kind: Claim::syn(way) };
    }

    /// Whether a SYN-ACK that travels this way answers such a SYN: then another connection begins
    /// with it.
    pub(crate) const fn is_another(&self, way: Way, segment: &Segment) -> bool {
        let behind = segment.ack.wrapping_sub(self.claim.number).wrapping_sub(1);
        self.claim.kind == Claim::syn(way.other()) && behind <= UNSCALED
    }

    /// It is that other connection from now on. What was held of this one has been let go.
    pub(crate) fn becomes_another(&mut self, way: Way, segment: &Segment) {
        let (theirs, claim) = (way.other(), self.claim);
        let leaves = ByWay::WAYS.map(|way| self.halves[way].leaf);
        self.begins_anew(State::Opening);
        for way in Way::ALL {
            self.halves[way].leaf = leaves[way];
        }
        self.halves[theirs].begins(claim.number, segment.ack);
        (self.halves[way].mss, self.halves[way].scale) = (claim.mss, claim.scale);
    }

    /// Whether a SYN-ACK that travels this way answers the SYN that was seen.
    pub(crate) fn is_answered(&self, way: Way, segment: &Segment) -> bool {
        let asked = &self.halves[way.other()];
        asked.has_begun()
            && is_after(segment.ack, asked.acked)
            && !is_after(segment.ack, asked.next)
    }

    /// The whole round trip of data that travel this way, in microseconds, as far as it is
    /// known: from here to the receiver and back, and from here to the sender and back.
    pub(crate) fn round_trip(&self, way: Way, kind: RoundTrip) -> u32 {
        let (there, here) = (&self.halves[way], &self.halves[way.other()]);
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
    pub(crate) fn last_round_trip(&self, way: Way) -> u32 {
        self.halves[way].last.saturating_add(self.halves[way.other()].shortest)
    }
}

impl Claim {
    const fn data(way: Way) -> u8 {
        match way {
            Way::Up => 1,
            Way::Down => 5,
        }
    }

    const fn syn(way: Way) -> u8 {
        Claim::data(way) | 2
    }
}

impl Half {
    /// A connection begins here, with this number; the one behind what came is `next`.
    pub(crate) const fn begins(&mut self, number: u32, next: u32) {
        self.next = next;
        if !self.has(ANSWERED) {
            self.acked = number;
        }
        if !self.has(EDGE_KNOWN) {
            // the window of a SYN is not shifted
            self.edge = next.wrapping_add(UNSCALED);
        }
        self.set(STARTED, true);
    }

    /// What its sender said does not count; what the receiver said of itself does.
    pub(crate) fn is_forgotten(&mut self) {
        *self = Half { leaf: self.leaf, mss: self.mss, scale: self.scale, ..Half::default() };
    }

    /// Data that were not seen came up to `next`, and a segment acknowledges some of them.
    fn goes_on_at(&mut self, next: u32, segment: &Segment) {
        // what the sender was shown meanwhile, it knows
        self.edge = segment.ack.wrapping_add(u32::from(segment.window) << (self.scale & 15));
        self.set(EDGE_KNOWN, true);
        self.set(TIMING, false);
        self.acked = segment.ack;
        self.next = if is_after(next, self.edge) { segment.ack } else { next };
    }

    /// Whether a segment that ends there may come: none that was acknowledged as a whole, nor one
    /// beyond what the receiver allowed, but for a FIN or the byte of a probe.
    #[inline]
    pub(crate) const fn expects(&self, end: u32) -> bool {
        end.wrapping_sub(self.acked) <= self.edge.wrapping_add(1).wrapping_sub(self.acked)
    }

    /// The number behind the last byte that can have been sent.
    const fn reached(&self) -> u32 {
        if self.has(IN_PIECES) { self.next.wrapping_add(UNSCALED) } else { self.next }
    }

    /// The first piece of a packet came: the others have no numbers.
    pub(crate) const fn came_in_pieces(&mut self, end: u32) {
        if self.has(STARTED) && self.expects(end) {
            if is_after(end, self.next) {
                self.next = end;
            }
            self.set(IN_PIECES, true);
        }
    }

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

    /// Data travel through this leaf, which has yet to count the connection if it is another one:
    /// rounds of two leaves may have one number.
    #[inline]
    pub(crate) const fn goes_through(&mut self, leaf: u32) {
        if self.leaf != leaf {
            (self.leaf, self.counted) = (leaf, 0);
        }
    }

    /// A SYN or data came. Returns whether it had come before.
    pub(crate) fn sent(&mut self, at: u32, segment: &Segment) -> bool {
        let end = segment.end();
        let is_new = !self.has(STARTED) || is_after(end, self.next);
        if is_new {
            if !self.has(STARTED) {
                self.begins(segment.seq, end);
            }
            self.next = end;
            if !self.has(TIMING) {
                self.timed = end;
                self.timed_at = at;
                self.stamp = segment.stamps.map_or(0, |(value, _)| value);
                self.set(BY_STAMP, segment.stamps.is_some());
                self.set(TIMING, true);
                self.set(REPEATED, false);
            }
        } else if is_after(end, self.acked) {
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

    /// Whether a measurement is under way.
    pub(crate) const fn is_timed(&self) -> bool {
        self.has(TIMING)
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

    /// The right edge that the sender knows, if it does. Before, `edge` is as far as it may go.
    pub(crate) fn known_edge(&self) -> Option<u32> {
        self.has(EDGE_KNOWN).then_some(self.edge)
    }

    /// The sender may send up to here.
    pub(crate) const fn grant(&mut self, edge: u32) {
        if self.has(EDGE_KNOWN) {
            if is_after(edge, self.edge) {
                self.edge = edge;
            }
        } else {
            // what came with the SYN came in any case
            self.edge = if is_after(self.next, edge) { self.next } else { edge };
            self.set(EDGE_KNOWN, true);
        }
    }
}
