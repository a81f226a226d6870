//! What TCP's numbers tell somebody who only looks on: which data come a second time, which come
//! late, and how long the way to either side and back takes (`trips`).
//!
//! Of each direction of a connection two things are remembered: the number behind the highest byte
//! that came, and one hole below it. Where several holes are open they are one that reaches from
//! the first to the last, so that what fills any of them counts as late; what repeats bytes
//! between them does too, which is the price of 12 bytes a direction. Frames are looked at as they
//! come, before weir judges them: what weir itself dropped is `repeated` when it comes again, what
//! was lost on the way to weir is `late`.
//!
//! Not looked at: fragments, FIN without data, selective acknowledgements.

mod export;
mod trips;
mod votes;

use weir_packet::{BySide, Fragment, Frame, Headers, Label, Pool, tcp};
use weir_units::{ByWay, Instant, Way};

pub use export::WatchState;
pub use trips::{RoundTrip, RoundTrips};
use trips::{SEGMENT, Said, Trips};

/// All connections that are watched, by their place in the flow table.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Empty: nobody watches.
    seen: Box<[Seen]>,
    trips: Trips,
    uploads: Uploads,
}

/// Bytes of TCP data from the LAN side, of all connections together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uploads {
    /// Left for the WAN side, those sent again as well, once any of their connection were
    /// acknowledged: what nobody acknowledges says nothing of the line.
    pub left: u64,
    /// Were acknowledged, also selectively: have arrived there.
    pub arrived: u64,
}

/// Which frames of a burst brought nothing new, a bit for each place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Again {
    /// All their bytes had come before.
    pub(crate) repeated: u64,
    /// They fill a hole.
    pub(crate) late: u64,
}

/// What is remembered of a connection.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Seen {
    /// Tells it from an earlier one at this place.
    generation: u32,
    /// The shortest way to the WAN side and back, in microseconds, by what was timed: see
    /// [`trips::BY_CLOCK`]; 0: not known.
    shortest_us: [u32; 2],
    /// By the way that the data travel.
    streams: ByWay<Stream>,
    /// What the WAN side said of data from the LAN side.
    arrived: Arrived,
}

const _: () = assert!(size_of::<Seen>() == 64);

/// Data in one direction.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The number behind the highest byte that came.
    highest: u32,
    /// Where the hole begins, and its bytes: none, or [`UNSEEN`].
    hole: u32,
    gap: u32,
}

/// Which data have arrived at the other side, as it says itself.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    is_known: bool,
    /// All up to here.
    ack: u32,
    /// The highest number that was acknowledged selectively, and how many bytes between the two
    /// were counted already.
    edge: u32,
    counted: u32,
    /// The number behind the highest byte that has left for there.
    has_left: bool,
    left: u32,
    /// Whether it has acknowledged any, and how many bytes have left that it has not.
    is_answered: bool,
    under_way: u32,
    /// It has acknowledged what never left: nothing that it says counts, then or later.
    lies: bool,
}

/// In place of the bytes of a hole: no data came yet.
const UNSEEN: u32 = u32::MAX;
/// The largest window there can be (RFC 7323). What lies further away is of another stretch.
const FAR: u32 = 1 << 30;

/// Bytes of the option with two timestamps, filled up to a multiple of four.
const STAMPS: usize = 12;
/// Zeros behind an acknowledgement over IPv4, in a frame of 60 bytes.
const FILLED: u32 = 6;
/// A header without more than these.
const PLAIN: u16 = 32;

/// What a segment with data brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brought {
    New,
    Nothing,
    Repeated,
    Late,
}

impl Watch {
    /// Remembers so many connections; of none, it does not look.
    pub(crate) fn new(flows: usize) -> Watch {
        Watch {
            seen: vec![Seen::new(0); flows].into(),
            trips: Trips::new(),
            uploads: Uploads::default(),
        }
    }

    /// Whether anybody watches.
    #[inline]
    pub(crate) const fn is_idle(&self) -> bool {
        self.seen.is_empty()
    }

    /// Looks at the frames of a burst.
    #[inline(never)]
    pub(crate) fn burst(
        &mut self,
        now: Instant,
        way: Way,
        pool: &Pool,
        frames: &[Frame],
        headers: &[Headers],
        labels: &[Label],
    ) -> Again {
        let mut again = Again::default();
        let mut may_begin = self.trips.may_begin(now, way);
        let headers = &headers[..labels.len()];
        for (at, (label, frame)) in labels.iter().zip(frames).enumerate() {
            let headers = &headers[at];
            if !label.kind.is_tcp() || headers.fragment != Fragment::None {
                continue;
            }
            let Some(seen) = self.seen.get_mut(label.flow.index as usize) else { continue };
            let header = usize::from(label.transport_at);
            let bytes = pool.bytes(frame).get(header..).and_then(<[u8]>::first_chunk);
            let Some(bytes) = bytes else { continue };
            // 0: a header that cannot be read to its end
            let data = match headers.payload_at {
                0 => 0,
                at => headers.end.saturating_sub(at),
            };
            let segment = Segment { bytes, data };
            let mut brought = Brought::Nothing;
            if segment.data != 0 || segment.has(tcp::SYN | tcp::RST) {
                brought = seen.note(label.flow.generation, way, &segment);
                if brought == Brought::Repeated || brought == Brought::Late {
                    let of = if brought == Brought::Late {
                        &mut again.late
                    } else {
                        &mut again.repeated
                    };
                    *of |= 1 << at;
                    self.trips.retransmitted(way, label.flow, segment.end());
                }
            }
            if way == Way::Down && seen.may_hear(label, headers, &segment) {
                let options = options(pool.bytes(frame), headers);
                let Uploads { left, arrived } = seen.heard(&segment, options);
                self.uploads.left += left;
                self.uploads.arrived += arrived;
            }
            if may_begin || self.trips.is_timed(label.flow) {
                let whole = pool.bytes(frame);
                let said = said(whole, (label, headers), &segment, brought == Brought::New);
                let shortest =
                    (seen.generation == label.flow.generation).then_some(&mut seen.shortest_us);
                self.trips.frame(now, way, label.flow, &said, shortest);
                may_begin = self.trips.may_begin(now, way);
            }
        }
        again
    }

    /// Whether [`Watch::left`] wants to see frames that leave on this way.
    #[inline]
    pub(crate) const fn looks_at(&self, way: Way) -> bool {
        !self.is_idle() && (matches!(way, Way::Up) || self.trips.waits_for(way))
    }

    /// A frame that came at `since` or later leaves.
    #[inline(never)]
    pub(crate) fn left(&mut self, now: Instant, label: &Label, frame: &[u8], since: Instant) {
        if !label.kind.is_tcp() {
            return;
        }
        let way = label.way;
        let at = usize::from(label.transport_at);
        if way == Way::Up
            && let Some(seen) = self.seen.get_mut(label.flow.index as usize)
            && seen.generation == label.flow.generation
            && let Some(&[a, b, c, d, _, _, _, _, words, _, _, _]) =
                frame.get(at + 4..).and_then(<[u8]>::first_chunk)
        {
            let data = frame.len().saturating_sub(at + usize::from(words >> 4) * 4);
            let data = u32::try_from(data).unwrap_or(0);
            let end = u32::from_be_bytes([a, b, c, d]).wrapping_add(data);
            // a frame of the shortest kind is filled up with zeros
            let data = if data > FILLED { data } else { 0 };
            self.uploads.left += u64::from(seen.leaves(end, data));
        }
        if self.trips.waits_for(way)
            && let Some([a, b, c, d]) = frame.get(at + 4..).and_then(<[u8]>::first_chunk)
        {
            let seq = u32::from_be_bytes([*a, *b, *c, *d]);
            self.trips.left(now, way, label.flow, since, seq);
        }
    }

    /// What became of data from the LAN side.
    pub(crate) const fn uploads(&self) -> Uploads {
        self.uploads
    }

    /// Ends intervals that are over.
    pub(crate) fn age(&mut self, now: Instant) {
        self.trips.age(now);
    }

    /// How long the ways to both sides and back took.
    pub(crate) const fn round_trips(&self) -> RoundTrips {
        self.trips.read()
    }
}

/// The fixed part of a TCP header, and how much data stand behind it.
struct Segment<'f> {
    bytes: &'f [u8; tcp::BYTES],
    data: u16,
}

impl Segment<'_> {
    /// Whether any of `flags` is set.
    #[inline]
    const fn has(&self, flags: u8) -> bool {
        self.bytes[13] & flags != 0
    }

    #[inline]
    const fn number(&self, at: usize) -> u32 {
        let b = self.bytes;
        u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
    }

    #[inline]
    const fn seq(&self) -> u32 {
        self.number(4)
    }

    /// The number behind its last byte; SYN counts as one.
    #[inline]
    fn end(&self) -> u32 {
        let syn = u32::from(self.has(tcp::SYN));
        self.seq().wrapping_add(u32::from(self.data)).wrapping_add(syn)
    }
}

/// What a segment says about times.
#[inline(never)]
fn said(
    bytes: &[u8],
    (label, headers): (&Label, &Headers),
    segment: &Segment<'_>,
    is_new: bool,
) -> Said {
    let options = options(bytes, headers);
    // where nearly everyone puts them
    let stamps = match options {
        [1, 1, 8, 10, a, b, c, d, e, f, g, h, ..] => {
            let of = u32::from_be_bytes;
            Some((of([*a, *b, *c, *d]), of([*e, *f, *g, *h])))
        }
        _ => None,
    };
    let is_ack = segment.has(tcp::ACK) && !segment.has(tcp::RST);
    let ack = segment.number(8);
    // a block that starts below was received twice
    let selective = block(options)
        .filter(|(from, to)| is_behind(ack, *from) && is_behind(*from, *to))
        .map(|(_, to)| to);
    Said {
        ack: is_ack.then(|| selective.unwrap_or(ack)),
        is_selective: selective.is_some(),
        stamps: stamps.filter(|_| is_ack),
        has_data: segment.data != 0,
        seq: segment.seq(),
        end: is_new.then(|| segment.end()),
        // with as many addresses as it likes, a host of the LAN side has one voice
        hosts: BySide {
            lan: label.host,
            wan: host(match label.way {
                Way::Up => headers.target,
                Way::Down => headers.source,
            }),
        },
    }
}

/// Whether a number comes after another.
const fn is_behind(before: u32, number: u32) -> bool {
    number.wrapping_sub(before).cast_signed() > 0
}

/// The options of a TCP header.
fn options<'b>(bytes: &'b [u8], headers: &Headers) -> &'b [u8] {
    let at = usize::from(headers.transport_at) + tcp::BYTES;
    bytes.get(at..usize::from(headers.payload_at)).unwrap_or_default()
}

/// The first block of a selective acknowledgement, which tells what came last (RFC 2018), where
/// nearly everyone puts it: behind the timestamps, or alone.
fn block(options: &[u8]) -> Option<(u32, u32)> {
    let options = if let [1, 1, 8, 10, ..] = options { options.get(STAMPS..)? } else { options };
    match options {
        [1, 1, 5, _, a, b, c, d, e, f, g, h, ..] => {
            let of = u32::from_be_bytes;
            Some((of([*a, *b, *c, *d]), of([*e, *f, *g, *h])))
        }
        _ => None,
    }
}

/// Who an address is: of IPv6 a whole /64 is one, as it costs nothing to have another in it.
fn host(address: u128) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    let (low, high) = (address as u64, (address >> 64) as u64);
    let who = if high == 0 { low } else { high };
    (who.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

impl Seen {
    const fn new(generation: u32) -> Seen {
        let arrived = Arrived {
            is_known: false,
            ack: 0,
            edge: 0,
            counted: 0,
            has_left: false,
            is_answered: false,
            left: 0,
            under_way: 0,
            lies: false,
        };
        Seen {
            generation,
            shortest_us: [0; 2],
            streams: ByWay { down: Stream::UNSEEN, up: Stream::UNSEEN },
            arrived,
        }
    }

    /// Whether a segment from the WAN side may acknowledge data that it did not before.
    #[inline]
    fn may_hear(&self, label: &Label, headers: &Headers, segment: &Segment<'_>) -> bool {
        let has_block = headers.payload_at > headers.transport_at + PLAIN;
        (segment.number(8) != self.arrived.ack || has_block)
            && segment.has(tcp::ACK)
            && self.generation == label.flow.generation
    }

    /// The WAN side acknowledges data: what has left and arrived since it did so last. Only of
    /// data that have left, whatever came from the LAN side: who acknowledges more says nothing.
    #[inline(never)]
    fn heard(&mut self, segment: &Segment<'_>, options: &[u8]) -> Uploads {
        let Arrived { has_left: is_known, left, .. } = self.arrived;
        let beyond = |number: u32| number.wrapping_sub(left).cast_signed();
        // a FIN takes one number more
        let has_left = |number: u32| is_known && beyond(number) <= 1;
        let ack = segment.number(8);
        let is_plain = !segment.has(tcp::SYN | tcp::RST);
        // before it has said anything true weir may have met it in the midst of a loss; and up to a
        // segment more may be data of a fragment, or a number that SYN takes
        let may_lie = is_plain && is_known && self.arrived.is_answered;
        self.arrived.lies |= may_lie && beyond(ack) > SEGMENT.cast_signed();
        if !is_plain || !has_left(ack) || self.arrived.lies {
            self.arrived.is_known = false;
            return Uploads::default();
        }
        let block = block(options).filter(|(_, end)| has_left(*end));
        let news = self.arrived.more(ack, block);
        if news == 0 {
            return Uploads::default();
        }
        let Arrived { is_answered, under_way, .. } = self.arrived;
        // what was dropped here cannot have arrived, whoever acknowledges it
        let arrived = news.min(under_way);
        (self.arrived.is_answered, self.arrived.under_way) = (true, under_way - arrived);
        let left = if is_answered { 0 } else { under_way };
        Uploads { left: left.into(), arrived: arrived.into() }
    }

    /// Data leave for the WAN side, up to a number. How many of these bytes count: all, once any
    /// were acknowledged.
    fn leaves(&mut self, end: u32, bytes: u32) -> u32 {
        let arrived = &mut self.arrived;
        let ahead = end.wrapping_sub(arrived.left).cast_signed();
        // a number far behind is of another stretch, but not where no data stand behind it
        if !arrived.has_left || ahead > 0 || bytes > 0 && ahead.unsigned_abs() > FAR {
            (arrived.has_left, arrived.left) = (true, end);
        }
        arrived.under_way = arrived.under_way.saturating_add(bytes).min(FAR);
        if arrived.is_answered && !arrived.lies { bytes } else { 0 }
    }

    /// A segment with data came, or one that begins or ends a connection.
    #[inline]
    fn note(&mut self, generation: u32, way: Way, segment: &Segment<'_>) -> Brought {
        let stream = &mut self.streams[way];
        // what nearly all do; where nothing was seen yet this changes nothing that is looked at
        if stream.highest == segment.seq()
            && self.generation == generation
            && !segment.has(tcp::SYN | tcp::RST)
        {
            stream.highest = segment.end();
            return Brought::New;
        }
        self.look(generation, way, segment)
    }

    #[inline(never)]
    fn look(&mut self, generation: u32, way: Way, segment: &Segment<'_>) -> Brought {
        if self.generation != generation {
            *self = Seen::new(generation);
        }
        if segment.has(tcp::RST) {
            self.streams = ByWay::same(Stream::UNSEEN);
            return Brought::Nothing;
        }
        if segment.has(tcp::SYN) {
            if !segment.has(tcp::ACK) {
                // what was said of a connection before says nothing of this one
                *self = Seen { shortest_us: self.shortest_us, ..Seen::new(generation) };
            }
            let stream = &mut self.streams[way];
            let is_new = stream.gap == UNSEEN || stream.highest != segment.end();
            *stream = Stream::from(segment.end());
            return if is_new { Brought::New } else { Brought::Nothing };
        }
        self.streams[way].data(segment.seq(), u32::from(segment.data))
    }
}

impl Arrived {
    fn more(&mut self, ack: u32, block: Option<(u32, u32)>) -> u32 {
        let ahead = ack.wrapping_sub(self.ack).cast_signed();
        if !self.is_known || ahead.unsigned_abs() > FAR {
            *self = Arrived { is_known: true, ack, edge: ack, counted: 0, ..*self };
        }
        let mut bytes = 0;
        if ahead > 0 {
            let filled = ack.wrapping_sub(self.ack);
            let known = self.known_of(filled);
            bytes = filled.saturating_sub(known);
            self.counted -= known;
            self.ack = ack;
        }
        if self.edge.wrapping_sub(self.ack).cast_signed() <= 0 {
            (self.edge, self.counted) = (self.ack, 0);
        }
        if let Some((from, to)) = block {
            let behind = self.edge.wrapping_sub(from).cast_signed().max(0).cast_unsigned();
            let news = to.wrapping_sub(from).saturating_sub(behind);
            let is_ahead = to.wrapping_sub(self.edge).cast_signed() > 0;
            if is_ahead && news <= FAR {
                self.edge = to;
                self.counted = self.counted.saturating_add(news);
                bytes = bytes.saturating_add(news);
            }
        }
        bytes
    }
}

impl Arrived {
    /// How many of the next bytes were counted already: holes are taken to be spread evenly.
    fn known_of(&self, filled: u32) -> u32 {
        let stretch = self.edge.wrapping_sub(self.ack);
        if filled >= stretch {
            return self.counted;
        }
        let known = u64::from(self.counted) * u64::from(filled) / u64::from(stretch);
        u32::try_from(known).unwrap_or(self.counted).min(self.counted)
    }
}

impl Stream {
    const UNSEEN: Stream = Stream { highest: 0, hole: 0, gap: UNSEEN };

    /// From here on.
    const fn from(next: u32) -> Stream {
        Stream { highest: next, hole: next, gap: 0 }
    }

    fn data(&mut self, seq: u32, bytes: u32) -> Brought {
        let end = seq.wrapping_add(bytes);
        let ahead = end.wrapping_sub(self.highest).cast_signed();
        if self.gap == UNSEEN || ahead.unsigned_abs() > FAR {
            *self = Stream::from(end);
            return Brought::New;
        }
        if ahead > 0 {
            self.go_on(seq);
            self.highest = end;
            return Brought::New;
        }
        if ahead == 0 && bytes == 1 {
            // asks whether the other side is alive, or has room again
            return Brought::Nothing;
        }
        let from = seq.wrapping_sub(self.hole).cast_signed();
        let to = end.wrapping_sub(self.hole).cast_signed();
        let gap = self.gap.cast_signed();
        if gap == 0 || to <= 0 || from >= gap {
            return Brought::Repeated;
        }
        match (from <= 0, to >= gap) {
            (true, true) => self.gap = 0,
            (true, false) => {
                self.hole = end;
                self.gap = (gap - to).cast_unsigned();
            }
            (false, true) => self.gap = from.cast_unsigned(),
            // in the middle: the hole stays one
            (false, false) => {}
        }
        Brought::Late
    }

    /// Data from `seq` on reach beyond the highest.
    fn go_on(&mut self, seq: u32) {
        let start = seq.wrapping_sub(self.highest).cast_signed();
        let since_hole = seq.wrapping_sub(self.hole).cast_signed();
        if start > 0 {
            if self.gap == 0 || since_hole.unsigned_abs() > FAR {
                self.hole = self.highest;
            }
            self.gap = seq.wrapping_sub(self.hole).min(FAR);
        } else if since_hole < self.gap.cast_signed() {
            // they fill the end of the hole as well
            self.gap = since_hole.max(0).cast_unsigned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived() -> Arrived {
        let mut arrived = Seen::new(0).arrived;
        assert_eq!(arrived.more(1_000, None), 0, "where it begins, nobody knows how much has");
        arrived
    }

    #[test]
    fn each_byte_arrives_once() {
        let mut arrived = arrived();
        assert_eq!(arrived.more(3_000, None), 2_000);
        // 3 000 to 4 000 are missing, then they come
        assert_eq!(arrived.more(3_000, Some((4_000, 5_000))), 1_000);
        assert_eq!(arrived.more(3_000, Some((4_000, 6_000))), 1_000);
        assert_eq!(arrived.more(6_000, None), 1_000);
        assert_eq!(arrived.more(6_000, Some((7_000, 7_500))), 500);
        assert_eq!(arrived.more(8_000, None), 1_500);
    }

    #[test]
    fn what_came_twice_has_arrived_once() {
        let mut arrived = arrived();
        assert_eq!(arrived.more(9_000, None), 8_000);
        // a block below says that something came a second time (RFC 2883)
        for block in [(1_000, 2_000), (5_000, 6_000), (8_000, 9_000)] {
            assert_eq!(arrived.more(9_000, Some(block)), 0, "{block:?}");
        }
    }
}
