//! Later fragments have no ports. The first fragment of a packet leaves here what it says, under
//! what all its pieces have in common; the oldest of four places is given to the next packet. It
//! does so whether or not its connection has a place in the flow table, so that a full table loses
//! none.

use weir_packet::{Headers, Net};
use weir_units::limits::FRAGMENTED_SECS;
use weir_units::{Instant, Span};

use crate::key::{AH, Rest, Seed, halves};

const WAYS: usize = 4;

/// What first fragments said of packets that are arriving in pieces.
#[derive(Debug)]
pub(crate) struct Fragments {
    sets: Box<[[Piece; WAYS]]>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    packet: Packet,
    /// What its first fragment said; `None`: the place is free.
    rest: Option<Rest>,
    seen: Instant,
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
        let free = Piece { packet: Packet::default(), rest: None, seen: Instant::ZERO };
        Fragments { sets: vec![[free; WAYS]; (limit / WAYS).max(1)].into() }
    }

    /// What the first fragment of this packet said.
    pub(crate) fn find(&self, seed: Seed, headers: &Headers, now: Instant) -> Option<Rest> {
        let packet = Packet::of(headers);
        let set = &self.sets[self.place(packet.hash(seed))];
        let piece = set.iter().find(|piece| piece.packet == packet)?;
        piece.rest.filter(|_| now.since(piece.seen) <= Span::from_secs(FRAGMENTED_SECS))
    }

    /// Remembers what a first fragment said.
    pub(crate) fn note(&mut self, seed: Seed, headers: &Headers, rest: Rest, now: Instant) {
        let packet = Packet::of(headers);
        let place = self.place(packet.hash(seed));
        let set = &mut self.sets[place];
        let same = set.iter().position(|piece| piece.packet == packet);
        let oldest = (0..WAYS).min_by_key(|&way| (set[way].rest.is_some(), set[way].seen));
        set[same.or(oldest).unwrap_or(0)] = Piece { packet, rest: Some(rest), seen: now };
    }

    fn place(&self, hash: u64) -> usize {
        let place = ((hash >> 32) * self.sets.len() as u64) >> 32;
        usize::try_from(place).unwrap_or(0)
    }
}
