//! Later fragments have no ports. The first fragment of a packet leaves here what it says, under
//! what all its pieces have in common, in one of four places: one that is free, or else the oldest
//! of the host that has the most of this table. It does so whether or not its connection has a
//! place in the flow table, so that a full one loses none.

use std::cmp::Reverse;

use weir_packet::{Headers, Net};
use weir_units::limits::FRAGMENTED_SECS;
use weir_units::{Instant, Span};

use crate::key::{AH, Rest, Seed, halves};
use crate::parts::{Cell, Parts};

const WAYS: usize = 4;

/// What first fragments said of packets that are arriving in pieces.
#[derive(Debug)]
pub(crate) struct Fragments {
    sets: Box<[[Piece; WAYS]]>,
    parts: Parts,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    packet: Packet,
    /// What its first fragment said; `None`: the place is free.
    rest: Option<Rest>,
    seen: Instant,
    /// Where its host's packets are counted.
    cell: Cell,
}

/// What the pieces of one packet have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Packet {
    source: u128,
    target: u128,
    id: u32,
    /// Of IPv4; the pieces of an IPv6 packet may name different extension headers.
    protocol: u8,
    v4: bool,
}

impl Packet {
    fn of(headers: &Headers) -> Packet {
        let v4 = headers.net == Net::V4;
        // a later piece does not say what lies behind the authentication header
        let protocol = if headers.ah { AH } else { headers.protocol };
        Packet {
            source: headers.source,
            target: headers.target,
            id: headers.fragment_id,
            protocol: if v4 { protocol } else { 0 },
            v4,
        }
    }

    fn hash(&self, seed: Seed) -> u64 {
        let ([a, b], [c, d]) = (halves(self.source), halves(self.target));
        let kind = u64::from(self.protocol) << 1 | u64::from(self.v4);
        seed.hash([a, b, c, d, kind << 32 | u64::from(self.id)])
    }
}

impl Fragments {
    pub(crate) fn new(limit: usize) -> Self {
        let free = Piece { packet: Packet::default(), rest: None, seen: Instant::ZERO, cell: 0 };
        let sets = (limit / WAYS).max(1);
        Fragments { sets: vec![[free; WAYS]; sets].into(), parts: Parts::of(sets * WAYS) }
    }

    /// What the first fragment of this packet said.
    pub(crate) fn find(&self, seed: Seed, headers: &Headers, now: Instant) -> Option<Rest> {
        let packet = Packet::of(headers);
        let set = &self.sets[self.place(packet.hash(seed))];
        let piece = set.iter().find(|piece| piece.packet == packet)?;
        piece.rest.filter(|_| !piece.is_free(now))
    }

    /// Remembers what a first fragment from or to a host said, unless that host has more than its
    /// part and there are only places of others, who have no more than half as many.
    pub(crate) fn note(
        &mut self,
        seed: Seed,
        (host, headers): (u32, &Headers),
        rest: Rest,
        now: Instant,
    ) {
        let (packet, cell) = (Packet::of(headers), Parts::cell(host));
        let place = self.place(packet.hash(seed));
        let same = self.sets[place].iter().position(|piece| piece.packet == packet);
        let Some(way) = same.or_else(|| self.way(place, cell, now)) else { return };
        let piece = &mut self.sets[place][way];
        if piece.rest.is_some() {
            self.parts.leave(piece.cell);
        }
        *piece = Piece { packet, rest: Some(rest), seen: now, cell };
        self.parts.join(cell);
    }

    /// Which place of a set one more packet of a host gets.
    fn way(&self, place: usize, cell: Cell, now: Instant) -> Option<usize> {
        let set = &self.sets[place];
        if let Some(free) = set.iter().position(|piece| piece.is_free(now)) {
            return Some(free);
        }
        let news = self.parts.held(cell);
        let is_excess = self.parts.exceeds(news);
        let claims = set.iter().zip(0..).filter_map(|(piece, way)| {
            let held = self.parts.held(piece.cell);
            // about as many: pieces stay for a while after all have come
            let is_first = piece.cell == cell || u64::from(held) * 2 > news.into();
            let held = if is_first { held } else { 0 };
            (is_first || !is_excess).then_some((Reverse(held), piece.seen, way))
        });
        claims.min().map(|(_, _, way)| way)
    }

    fn place(&self, hash: u64) -> usize {
        let place = ((hash >> 32) * self.sets.len() as u64) >> 32;
        usize::try_from(place).unwrap_or(0)
    }
}

impl Piece {
    /// Whether another packet may have the place, whoever has it.
    fn is_free(&self, now: Instant) -> bool {
        self.rest.is_none() || now.since(self.seen) > Span::from_secs(FRAGMENTED_SECS)
    }
}
