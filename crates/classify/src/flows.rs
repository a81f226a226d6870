//! The flow table: buckets of eight places, two candidate buckets per connection, the one with
//! more room taken. The tags of a bucket lie together and apart from the entries, so that a
//! look-up that finds nothing touches two cache lines, and one that does touches the entry it
//! wants. It never grows; it never gives away the place of a connection that is alive.

use weir_packet::{Flow, Side};
use weir_units::Instant;

use crate::entry::{Entry, Kept};
use crate::facts::Facts;
use crate::key::Key;

const WAYS: usize = 8;

/// Sixteen bits of the hash for each place; 0: the place is free.
type Tags = [u16; WAYS];

/// All connections.
#[derive(Debug)]
pub(crate) struct Flows {
    tags: Box<[Tags]>,
    entries: Box<[Entry]>,
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
            tags: vec![[0; WAYS]; buckets].into(),
            entries: vec![Entry::default(); buckets * WAYS].into(),
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
    pub(crate) fn peek(&self, spot: Spot) -> u32 {
        let [a, b] = spot.buckets.map(|bucket| self.tags[bucket as usize][0]);
        u32::from(a ^ b)
    }

    /// Looks at the answer for one direction, for the same reason.
    #[inline]
    pub(crate) fn peek_answer(&self, place: u32, side: Side) -> u32 {
        self.entries[place as usize].answers[side as usize].epoch
    }

    #[inline]
    pub(crate) fn find(&self, spot: Spot, key: &Key) -> Option<u32> {
        for bucket in spot.buckets {
            let tags = &self.tags[bucket as usize];
            let mut hits = 0u32;
            for (way, &tag) in tags.iter().enumerate() {
                hits |= u32::from(tag == spot.tag) << way;
            }
            while hits != 0 {
                let place = bucket * 8 + hits.trailing_zeros();
                hits &= hits - 1;
                if self.entries[place as usize].key == *key {
                    return Some(place);
                }
            }
        }
        None
    }

    /// A place for a connection that has none.
    pub(crate) fn place(&mut self, spot: Spot, key: Key, now: Instant) -> Placed {
        let [a, b] = spot.buckets;
        let free = |bucket: u32| self.tags[bucket as usize].iter().filter(|&&tag| tag == 0).count();
        let bucket = if free(b) > free(a) { b } else { a };
        let way = self.tags[bucket as usize].iter().position(|&tag| tag == 0);
        if let Some(way) = way {
            let place = bucket as usize * WAYS + way;
            self.len += 1;
            return Placed::Free(self.begin(place, spot.tag, key, now));
        }
        let places =
            spot.buckets.into_iter().flat_map(|b| b as usize * WAYS..(b as usize + 1) * WAYS);
        let may_go = places.filter(|&place| self.entries[place].may_go(now));
        match may_go.min_by_key(|&place| self.entries[place].seen) {
            Some(place) => Placed::Instead(self.begin(place, spot.tag, key, now)),
            None => Placed::Refused,
        }
    }

    fn begin(&mut self, place: usize, tag: u16, key: Key, now: Instant) -> u32 {
        self.tags[place / WAYS][place % WAYS] = tag;
        self.entries[place].begin(key, now);
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// One more frame of a connection.
    #[inline]
    pub(crate) fn touch(&mut self, place: u32, facts: &Facts, now: Instant) -> &mut Entry {
        let entry = &mut self.entries[place as usize];
        entry.touch(facts, now);
        entry
    }

    /// Keeps the answer for one direction of a connection.
    pub(crate) fn keep(&mut self, place: u32, side: Side, kept: Kept) {
        self.entries[place as usize].answers[side as usize] = kept;
    }

    /// Frees the places of connections that are idle in the next `buckets` buckets.
    pub(crate) fn age(&mut self, now: Instant, buckets: usize) {
        for _ in 0..buckets.min(self.tags.len()) {
            for way in 0..WAYS {
                let tag = &mut self.tags[self.sweep][way];
                if *tag != 0 && self.entries[self.sweep * WAYS + way].is_idle(now) {
                    *tag = 0;
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
        let taken = self.tags[place / WAYS][place % WAYS] != 0;
        (taken && entry.generation == flow.generation).then_some(flow.index)
    }

    #[inline]
    pub(crate) fn flow(&self, place: u32) -> Flow {
        Flow { index: place, generation: self.entries[place as usize].generation }
    }

    pub(crate) fn key(&self, place: u32) -> &Key {
        &self.entries[place as usize].key
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.entries.len()
    }
}
