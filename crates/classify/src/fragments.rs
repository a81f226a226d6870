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

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed::new(1);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    /// The first fragment of a packet with this number.
    fn piece(id: u32) -> Headers {
        Headers { net: Net::V4, fragment_id: id, ..Headers::EMPTY }
    }

    /// Packets by the set in which they are remembered.
    fn numbers(fragments: &Fragments, set: usize) -> impl Iterator<Item = u32> {
        let is_there = move |&id: &u32| fragments.place(Packet::of(&piece(id)).hash(SEED)) == set;
        (0..).filter(is_there)
    }

    #[test]
    fn packets_are_spread_over_the_whole_table() {
        let mut fragments = Fragments::new(1_024);
        (0..64).for_each(|id| fragments.note(SEED, (id, &piece(id)), Rest::default(), at(0)));
        assert!((0..64).all(|id| fragments.find(SEED, &piece(id), at(0)).is_some()));
    }

    #[test]
    fn in_a_full_set_the_host_with_the_most_gives_its_oldest() {
        let mut fragments = Fragments::new(WAYS);
        for (id, host) in [(0, 8), (1, 7), (2, 7), (3, 7), (4, 9)] {
            let now = at(u64::from(id));
            fragments.note(SEED, (host, &piece(id)), Rest::default(), now);
        }
        let kept = [0, 1, 2, 3, 4].map(|id| fragments.find(SEED, &piece(id), at(5)).is_some());
        assert_eq!(kept, [true, false, true, true, true]);
    }

    #[test]
    fn a_host_above_its_part_takes_no_place_of_one_that_has_half_as_many() {
        for (held, takes) in [(1, true), (2, false), (3, false)] {
            let mut fragments = Fragments::new(2 * WAYS);
            let own: Vec<u32> = numbers(&fragments, 0).take(held).collect();
            let others: Vec<u32> = numbers(&fragments, 1).take(WAYS + 1).collect();
            for id in own {
                fragments.note(SEED, (7, &piece(id)), Rest::default(), at(0));
            }
            // four others have a packet each, which is more than half of one, and half of two
            for (host, &id) in (20..).zip(&others[..WAYS]) {
                fragments.note(SEED, (host, &piece(id)), Rest::default(), at(0));
            }
            let last = piece(others[WAYS]);
            fragments.note(SEED, (7, &last), Rest::default(), at(1));
            assert_eq!(fragments.find(SEED, &last, at(1)).is_some(), takes, "with {held}");
        }
    }
}
