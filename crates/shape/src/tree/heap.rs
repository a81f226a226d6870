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
    /// Entries of before an edit, a heap as well, that are looked at anew some at a time.
    closing: Vec<Entry>,
    /// Nothing has been looked at yet: the edit may give what is noted now another, earlier key, so
    /// that it joins those that are looked at anew.
    is_open: bool,
}

impl Heap {
    pub(crate) fn with_capacity(capacity: usize) -> Heap {
        Heap { entries: Vec::with_capacity(capacity), closing: Vec::new(), is_open: false }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        if self.is_closing_first() {
            return self.closing.first().copied();
        }
        self.entries.first().copied()
    }

    /// Whether the first of all is among those of before an edit.
    #[inline]
    fn is_closing_first(&self) -> bool {
        let Some(old) = self.closing.first() else { return false };
        self.entries.first().is_none_or(|first| before(old.key, first.key))
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.entries.len() == self.entries.capacity()
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.entries.capacity() + self.closing.capacity()) * size_of::<Entry>()
    }

    /// Takes the memory of an empty heap; what was there is looked at anew by [`Heap::reviews`].
    pub(crate) fn begins_anew(&mut self, empty: &mut Heap) {
        self.is_open = false;
        while let Some(entry) = self.closing.pop() {
            self.push(entry);
        }
        debug_assert!(empty.entries.is_empty(), "what is there would be lost");
        self.closing = std::mem::replace(&mut self.entries, std::mem::take(&mut empty.entries));
        self.is_open = true;
    }

    /// Looks anew at as many entries of before an edit as `budget` says, and keeps what `wanted`
    /// makes of each. Whether all have been looked at; their memory is left in `empty` then.
    pub(crate) fn reviews(
        &mut self,
        budget: &mut usize,
        empty: &mut Heap,
        mut wanted: impl FnMut(Entry) -> Option<Entry>,
    ) -> bool {
        self.is_open = false;
        while *budget > 0 {
            let Some(entry) = self.closing.pop() else { break };
            if let Some(entry) = wanted(entry) {
                self.push(entry);
            }
            *budget -= 1;
        }
        if self.closing.is_empty() && self.closing.capacity() > 0 {
            empty.entries = std::mem::take(&mut self.closing);
        }
        self.closing.is_empty()
    }

    /// All, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(&self.closing)
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        let is_open = self.is_open && self.closing.len() < self.closing.capacity();
        let entries = if is_open { &mut self.closing } else { &mut self.entries };
        debug_assert!(entries.len() < entries.capacity(), "a heap would grow");
        entries.push(entry);
        let last = entries.len() - 1;
        climb(entries, last, |_, _| {});
    }

    /// Takes the first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let is_closing = self.is_closing_first();
        pop(if is_closing { &mut self.closing } else { &mut self.entries }, |_, _| {})
    }

    /// Gives the first another, later key.
    #[inline]
    pub(crate) fn put_back(&mut self, key: u64) {
        if self.is_closing_first() {
            if let Some(first) = pop(&mut self.closing, |_, _| {}) {
                self.push(Entry { key, ..first });
            }
        } else if let Some(&first) = self.entries.first() {
            sink(&mut self.entries, 0, Entry { key, ..first }, |_, _| {});
        }
    }
}

/// Lets an entry go up to where it belongs; `is_at` is told where each lies from now on.
#[inline]
pub(crate) fn climb(entries: &mut [Entry], mut at: usize, mut is_at: impl FnMut(Entry, usize)) {
    let entry = entries[at];
    while at > 0 {
        let above = (at - 1) / 4;
        if !before(entry.key, entries[above].key) {
            break;
        }
        entries[at] = entries[above];
        is_at(entries[at], at);
        at = above;
    }
    entries[at] = entry;
    is_at(entry, at);
}

/// Takes the first.
#[inline]
pub(crate) fn pop(entries: &mut Vec<Entry>, is_at: impl FnMut(Entry, usize)) -> Option<Entry> {
    let last = entries.pop()?;
    let Some(&first) = entries.first() else { return Some(last) };
    sink(entries, 0, last, is_at);
    Some(first)
}

/// Puts `entry` where another is and lets it go down to where it belongs.
#[inline]
pub(crate) fn sink(
    entries: &mut [Entry],
    mut at: usize,
    entry: Entry,
    mut is_at: impl FnMut(Entry, usize),
) {
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
        is_at(found, at);
        at = least;
    }
    if let Some(place) = entries.get_mut(at) {
        *place = entry;
        is_at(entry, at);
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

    /// What is noted before the first look is looked at too, as far as there is room for it.
    #[test]
    fn all_that_comes_before_entries_are_looked_at_is_looked_at() {
        for (room, looked_at) in [(0, 2), (1, 3), (2, 4), (5, 4)] {
            let mut heap = Heap::with_capacity(4);
            (0..2).for_each(|node| heap.push(Entry { key: 50, node }));
            let mut memory = Heap::with_capacity(10);
            heap.begins_anew(&mut memory);
            (2..2 + room).for_each(|node| heap.push(Entry { key: 60, node }));
            let mut looks = |heap: &mut Heap| {
                let earlier = |entry| Some(Entry { key: 40, ..entry });
                assert!(heap.reviews(&mut { usize::MAX }, &mut memory, earlier));
                heap.all().filter(|entry| entry.key == 40).count()
            };
            assert_eq!(looks(&mut heap), looked_at);
            // and from then on nothing is
            heap.push(Entry { key: 70, node: 20 });
            assert_eq!(looks(&mut heap), looked_at);
            let mut nodes: Vec<u32> = heap.all().map(|entry| entry.node).collect();
            nodes.sort_unstable();
            assert!(nodes.into_iter().eq((0..2 + room).chain([20])));
        }
    }

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

        /// Whatever comes and goes while old entries are looked at, each entry comes out once and
        /// in order, those that are not wanted any more apart.
        #[test]
        fn a_heap_that_begins_anew_goes_on(
            keys in prop::collection::vec(0u64..1 << 40, 1..100),
            late in prop::collection::vec(0u64..1 << 40, 1..100),
            at_once in 1usize..20,
        ) {
            let room = keys.len() + late.len();
            let mut heap = Heap::with_capacity(keys.len());
            for (node, &key) in (0..).zip(&keys) {
                heap.push(Entry { key, node });
            }
            let mut memory = Heap::with_capacity(room);
            heap.begins_anew(&mut memory);
            let mut out = Vec::new();
            for (node, &key) in (1_000..).zip(&late) {
                heap.push(Entry { key, node });
                out.extend(heap.pop().filter(|first| first.node >= 1_000 || first.key % 3 > 0));
                if let Some(first) = heap.first() {
                    heap.put_back(first.key);
                }
                let _ = heap.reviews(&mut { at_once }, &mut memory, |e| {
                    (e.key % 3 > 0).then_some(e)
                });
            }
            while !heap.reviews(&mut { at_once }, &mut memory, |e| (e.key % 3 > 0).then_some(e)) {}
            prop_assert!(heap.closing.capacity() == 0 && memory.entries.capacity() >= keys.len());
            let mut last = 0;
            while let Some(first) = heap.pop() {
                prop_assert!(last <= first.key);
                last = first.key;
                out.extend(Some(first).filter(|first| first.node >= 1_000 || first.key % 3 > 0));
            }
            let mut nodes: Vec<u32> = out.iter().map(|entry| entry.node).collect();
            nodes.sort_unstable();
            let old = keys.iter().zip(0..).filter(|(key, _)| *key % 3 > 0).map(|(_, node)| node);
            let all: Vec<u32> = old.chain((1_000..).take(late.len())).collect();
            prop_assert_eq!(nodes, all);
        }
    }
}
