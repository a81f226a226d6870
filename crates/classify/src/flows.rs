//! The flow table: buckets of eight places, two candidate buckets per connection, the one with
//! more room taken. The tags of a bucket lie together and apart from the entries, so that a
//! look-up that finds nothing touches two cache lines, and one that does touches the entry it
//! wants. It never grows. Where there is no room for a new connection, `rivals` says which of those
//! that are there gives its place away, if any.

mod rivals;

use std::hint::select_unpredictable;

use weir_packet::{Flow, Side};
use weir_units::Instant;

use crate::entry::Entry;
use crate::key::Key;
use crate::parts::{Cell, Parts};
pub(crate) use rivals::Newcomer;

const WAYS: usize = 8;

/// Sixteen bits of the hash for each place, four in a word; 0: the place is free.
#[derive(Clone, Copy, Debug, Default)]
struct Tags([u64; 2]);

/// All connections.
#[derive(Debug)]
pub(crate) struct Flows {
    tags: Box<[Tags]>,
    entries: Box<[Entry]>,
    parts: Parts,
    len: usize,
    sweep: usize,
}

/// Where a connection may be, by its hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot {
    buckets: [u32; 2],
    tag: u16,
}

/// How a new connection fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// In a free place.
    Free(u32),
    /// In the place of another one.
    Instead(u32),
    /// Nowhere: all candidates are alive.
    Refused,
}

impl Flows {
    /// Room for `limit` connections, rounded down to whole buckets, at least one.
    pub(crate) fn new(limit: usize) -> Self {
        let buckets = (limit / WAYS).clamp(1, (u32::MAX >> 4) as usize);
        Flows {
            tags: vec![Tags::default(); buckets].into(),
            entries: vec![Entry::default(); buckets * WAYS].into(),
            parts: Parts::of(buckets * WAYS),
            len: 0,
            sweep: 0,
        }
    }

    #[inline]
    pub(crate) fn spot(&self, hash: u64) -> Spot {
        let buckets = self.tags.len() as u64;
        let at = |half: u64| u32::try_from((half * buckets) >> 32).unwrap_or(0);
        let tag = u16::try_from(hash >> 24 & 0xffff).unwrap_or(1).max(1);
        Spot { buckets: [at(hash & 0xffff_ffff), at(hash >> 32)], tag }
    }

    /// Looks at the tags only, so that they are in the cache when they are needed.
    #[inline]
    pub(crate) fn peek(&self, spot: Spot) -> u64 {
        let [a, b] = spot.buckets.map(|bucket| self.tags[bucket as usize].0[0]);
        a ^ b
    }

    /// Looks at both lines of an entry, for the same reason.
    #[inline]
    pub(crate) fn peek_entry(&self, place: u32, side: Side) -> u64 {
        let entry = &self.entries[place as usize];
        u64::from(entry.generation ^ entry.answers[side].epoch)
    }

    /// Looks at the connections of which one will give its place to a new one, if none is free.
    #[inline]
    pub(crate) fn peek_rivals(&self, spot: Spot) -> u64 {
        if spot.buckets.iter().any(|&bucket| self.tags[bucket as usize].with(0) != 0) {
            return 0;
        }
        let entries = |bucket: u32| &self.entries[bucket as usize * WAYS..][..WAYS];
        let rivals = spot.buckets.iter().flat_map(|&bucket| entries(bucket));
        rivals.fold(0, |touched, entry| touched ^ u64::from(entry.generation))
    }

    /// The first place whose tag fits, mostly the right one.
    #[inline]
    pub(crate) fn candidate(&self, spot: Spot) -> Option<u32> {
        let [a, b] = spot.buckets.map(|bucket| self.tags[bucket as usize].with(spot.tag));
        // which of the two it is cannot be guessed: no jump
        let is_first = a != 0;
        let bucket = select_unpredictable(is_first, spot.buckets[0], spot.buckets[1]);
        let hits = select_unpredictable(is_first, a, b);
        (hits != 0).then_some(bucket * 8 + Tags::way(hits))
    }

    /// Whether a connection has this place.
    #[inline]
    pub(crate) fn is_at(&self, place: u32, key: &Key) -> bool {
        self.entries[place as usize].key == *key
    }

    pub(crate) fn find(&self, spot: Spot, key: &Key) -> Option<u32> {
        for bucket in spot.buckets {
            let mut hits = self.tags[bucket as usize].with(spot.tag);
            while hits != 0 {
                let place = bucket * 8 + Tags::way(hits);
                hits &= hits - 1;
                if self.entries[place as usize].key == *key {
                    return Some(place);
                }
            }
        }
        None
    }

    /// A place for a connection that has none.
    pub(crate) fn place(&mut self, spot: Spot, key: Key, new: Newcomer, now: Instant) -> Placed {
        let [a, b] = spot.buckets;
        let free = |bucket: u32| self.tags[bucket as usize].with(0);
        let (in_a, in_b) = (free(a), free(b));
        let b_is_better = in_b.count_ones() > in_a.count_ones();
        let (bucket, free) = if b_is_better { (b, in_b) } else { (a, in_a) };
        if free != 0 {
            let place = bucket as usize * WAYS + Tags::way(free) as usize;
            self.len += 1;
            return Placed::Free(self.begin(place, spot.tag, key, new, now));
        }
        let places =
            spot.buckets.into_iter().flat_map(|b| b as usize * WAYS..(b as usize + 1) * WAYS);
        let rivals = places.filter_map(|place| {
            let claim = self.parts.claim(new, &self.entries[place], now)?;
            Some((claim, place))
        });
        let Some((_, place)) = rivals.min() else { return Placed::Refused };
        self.parts.leave(self.entries[place].cell);
        Placed::Instead(self.begin(place, spot.tag, key, new, now))
    }

    /// This place, if it is free and the connection can be found there.
    pub(crate) fn place_at(
        &mut self,
        place: u32,
        spot: Spot,
        key: Key,
        new: Newcomer,
        now: Instant,
    ) -> Option<Placed> {
        let place = place as usize;
        let is_one = spot.buckets.iter().any(|&bucket| bucket as usize == place / WAYS);
        if !is_one || self.tags[place / WAYS].get(place % WAYS) != 0 {
            return None;
        }
        self.len += 1;
        Some(Placed::Free(self.begin(place, spot.tag, key, new, now)))
    }

    fn begin(&mut self, place: usize, tag: u16, key: Key, new: Newcomer, now: Instant) -> u32 {
        self.tags[place / WAYS].set(place % WAYS, tag);
        self.entries[place].begin(key, new.cell, now);
        self.parts.join(new.cell);
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// Whether a frame that says it is of the connection there may be. Where the host that has
    /// been sending is silent, another one that does takes it over.
    #[inline]
    pub(crate) fn takes(&mut self, place: u32, side: Side, host: u32, now: Instant) -> bool {
        self.entries[place as usize].is_of(side, host) || self.takes_over(place, host, now)
    }

    #[cold]
    fn takes_over(&mut self, place: u32, host: u32, now: Instant) -> bool {
        let entry = &mut self.entries[place as usize];
        if entry.is_held(now) {
            return false;
        }
        self.parts.leave(entry.cell);
        entry.hand_over(host);
        self.parts.join(entry.cell);
        true
    }

    #[inline]
    pub(crate) fn entry(&mut self, place: u32) -> &mut Entry {
        &mut self.entries[place as usize]
    }

    /// The connection at a place, if there is one.
    pub(crate) fn at(&self, place: u32) -> Option<&Entry> {
        let at = place as usize;
        let tags = self.tags.get(at / WAYS)?;
        (tags.get(at % WAYS) != 0).then(|| &self.entries[at])
    }

    /// Counts the connection at a place for another host.
    pub(crate) fn count_for(&mut self, place: u32, cell: Cell) {
        let entry = &mut self.entries[place as usize];
        self.parts.leave(entry.cell);
        entry.cell = cell;
        self.parts.join(cell);
    }

    /// Frees the place of a connection.
    pub(crate) fn remove(&mut self, place: u32) {
        let at = place as usize;
        self.tags[at / WAYS].set(at % WAYS, 0);
        self.parts.leave(self.entries[at].cell);
        self.len -= 1;
    }

    /// A connection that was just found.
    #[inline]
    pub(crate) fn found(&mut self, flow: Flow) -> Option<&mut Entry> {
        self.entries.get_mut(flow.index as usize)
    }

    /// Frees the places of connections that are idle in the next `buckets` buckets.
    pub(crate) fn age(&mut self, now: Instant, buckets: usize) {
        for _ in 0..buckets.min(self.tags.len()) {
            for way in 0..WAYS {
                let tags = &mut self.tags[self.sweep];
                let place = self.sweep * WAYS + way;
                if tags.get(way) != 0 && self.entries[place].is_idle(now) {
                    tags.set(way, 0);
                    self.parts.leave(self.entries[place].cell);
                    self.len -= 1;
                }
            }
            self.sweep = (self.sweep + 1) % self.tags.len();
        }
    }

    /// The place of a flow, if it still is that flow's.
    #[inline]
    pub(crate) fn place_of(&self, flow: Flow) -> Option<u32> {
        let place = flow.index as usize;
        let entry = self.entries.get(place)?;
        let taken = self.tags[place / WAYS].get(place % WAYS) != 0;
        (taken && entry.generation == flow.generation).then_some(flow.index)
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.entries.len()
    }
}

impl Tags {
    const ONES: u64 = 0x0001_0001_0001_0001;
    const HIGHS: u64 = 0x8000 * Tags::ONES;

    /// One bit for each place with this tag, for [`Tags::way`].
    #[inline]
    fn with(self, tag: u16) -> u64 {
        let wanted = u64::from(tag) * Tags::ONES;
        // the high bit of each sixteen is set if the others are not all 0; nothing carries over
        let differ = |four: u64| {
            let bits = four ^ wanted;
            ((bits & !Tags::HIGHS) + !Tags::HIGHS) | bits
        };
        let [low, high] = self.0.map(|four| !differ(four) & Tags::HIGHS);
        low >> 1 | high
    }

    /// The place in the bucket that the lowest of some bits stands for.
    #[inline]
    const fn way(bits: u64) -> u32 {
        let bit = bits.trailing_zeros();
        (bit >> 4) | (bit & 1) << 2
    }

    fn get(self, way: usize) -> u16 {
        let [.., high, low] = (self.0[way / 4] >> (16 * (way % 4))).to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    fn set(&mut self, way: usize, tag: u16) {
        self.0[way / 4] ^= u64::from(self.get(way) ^ tag) << (16 * (way % 4));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_place_has_its_tag_and_is_found_by_it() {
        let mut tags = Tags::default();
        assert_eq!(tags.with(0).count_ones(), 8);
        for way in 0..WAYS {
            tags.set(way, [1, 2, 0x8000, 0xffff, 0x7fff, 0x8001, 3, 0xfffe][way]);
        }
        for way in 0..WAYS {
            let hits = tags.with(tags.get(way));
            assert_eq!((hits.count_ones(), Tags::way(hits) as usize), (1, way));
        }
        assert_eq!(tags.with(0), 0);
        tags.set(6, 0);
        assert_eq!((tags.with(0).count_ones(), Tags::way(tags.with(0))), (1, 6));
        tags.set(7, 1);
        assert_eq!(tags.with(1).count_ones(), 2, "of a 0 and a 1 side by side only one is 1");
    }

    #[test]
    fn connections_of_one_bucket_have_tags_of_their_own() {
        let flows = Flows::new(1_024 * WAYS);
        let mut draw = 1_u64;
        let mut hashes = std::iter::from_fn(|| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            Some(draw ^ draw >> 32)
        });
        let mut tags = |which: usize| {
            let spots = hashes.by_ref().take(400_000).map(|hash| flows.spot(hash));
            let same = spots.filter(|spot| spot.buckets[which] == 77).take(256);
            same.map(|spot| spot.tag).collect::<BTreeSet<u16>>().len()
        };
        // of 256 tags out of 65 536 nearly all differ; those of a first bucket have eight bits in
        // common with its number, and 256 draws out of 256 find 162
        let (first, second) = (tags(0), tags(1));
        assert!(first > 140 && second > 250, "{first} and {second} tags");
        assert_eq!(flows.spot(0).tag, 1, "0 is a free place");
    }
}
