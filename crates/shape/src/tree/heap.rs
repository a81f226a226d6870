//! A heap of four branches in one piece of memory: the smallest key on top. A branch's four entries
//! lie in one cache line, so that going down costs a line per level, and levels are few.

/// A key and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: u64,
    pub(crate) node: u32,
}

/// Keys are compared as points of a circle: a key is smaller if it lies less than half a turn
/// before the other. Virtual time may thus run for ever.
#[inline]
pub(crate) const fn before(a: u64, b: u64) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// The heap; it never grows beyond the capacity it was made with.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    entries: Vec<Entry>,
}

impl Heap {
    pub(crate) fn with_capacity(capacity: usize) -> Heap {
        Heap { entries: Vec::with_capacity(capacity) }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.entries.len() == self.entries.capacity()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Keeps the entries that `wanted` says.
    pub(crate) fn retain(&mut self, wanted: impl FnMut(&Entry) -> bool) {
        let mut kept = std::mem::take(&mut self.entries);
        kept.retain(wanted);
        let count = kept.len();
        self.entries = kept;
        // in place: the first so many are a heap, the next one climbs
        for from in 1..count {
            self.climb(from);
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        debug_assert!(self.entries.len() < self.entries.capacity(), "a heap would grow");
        self.entries.push(entry);
        self.climb(self.entries.len() - 1);
    }

    /// Lets an entry go up to where it belongs.
    #[inline]
    fn climb(&mut self, mut at: usize) {
        let entry = self.entries[at];
        while at > 0 {
            let above = (at - 1) / 4;
            if !before(entry.key, self.entries[above].key) {
                break;
            }
            self.entries[at] = self.entries[above];
            at = above;
        }
        self.entries[at] = entry;
    }

    /// Takes the first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let last = self.entries.pop()?;
        let Some(first) = self.first() else { return Some(last) };
        self.sink(last);
        Some(first)
    }

    /// Gives the first another, later key.
    #[inline]
    pub(crate) fn put_back(&mut self, key: u64) {
        if let Some(first) = self.first() {
            self.sink(Entry { key, ..first });
        }
    }

    /// Puts `entry` in the place of the first and lets it go down to where it belongs.
    #[inline]
    fn sink(&mut self, entry: Entry) {
        let entries = &mut self.entries[..];
        let mut at = 0;
        loop {
            let from = at * 4 + 1;
            let least = match entries.get(from..from + 4) {
                Some(&[a, b, c, d]) => {
                    // two rounds of a tournament: no step waits for more than one other
                    let (ab, cd) = (from + later(a, b), from + 2 + later(c, d));
                    if before(entries[cd].key, entries[ab].key) { cd } else { ab }
                }
                _ => match least(entries.get(from..).unwrap_or_default()) {
                    Some(least) => from + least,
                    None => break,
                },
            };
            let found = entries[least];
            if !before(found.key, entry.key) {
                break;
            }
            entries[at] = found;
            at = least;
        }
        if let Some(place) = entries.get_mut(at) {
            *place = entry;
        }
    }
}

/// 1 if the second is before the first, else 0.
#[inline]
fn later(a: Entry, b: Entry) -> usize {
    usize::from(before(b.key, a.key))
}

/// The place of the least of a few.
#[inline]
fn least(entries: &[Entry]) -> Option<usize> {
    let places = 0..entries.len();
    places.reduce(|best, at| if before(entries[at].key, entries[best].key) { at } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comes_out_in_order_also_around_the_end_of_the_circle(
            keys in prop::collection::vec(0u64..1 << 40, 0..200),
            offset in any::<u64>(),
        ) {
            let mut heap = Heap::with_capacity(keys.len());
            for (node, key) in (0..).zip(&keys) {
                heap.push(Entry { key: key.wrapping_add(offset), node });
            }
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            for key in sorted {
                let first = heap.first().unwrap();
                prop_assert_eq!(first.key, key.wrapping_add(offset));
                // half of them go down first and are taken later in their turn
                if key % 2 == 0 {
                    heap.put_back(first.key);
                }
                prop_assert_eq!(heap.pop().map(|e| e.key), Some(first.key));
            }
            prop_assert_eq!(heap.pop(), None);
        }
    }
}
