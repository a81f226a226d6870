//! Nodes that wait for their ceilings, by the moment at which they may send again: a heap that
//! knows the place of each, so that a node whose ceiling changes can leave it. No node is in it
//! twice, so it needs no more room than there are nodes.

use super::heap::{Entry, before, climb, pop, sink};
use super::node::NONE;

#[derive(Debug, Default)]
pub(crate) struct Timer {
    entries: Vec<Entry>,
    /// Where the entry of each node is, by number; [`NONE`] if it does not wait.
    places: Vec<u32>,
}

impl Timer {
    /// Room for as many nodes, numbered from 0.
    pub(crate) fn with_capacity(numbers: usize) -> Timer {
        Timer { entries: Vec::with_capacity(numbers), places: vec![NONE; numbers] }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + size_of_val(&self.places[..])
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    /// A node that does not wait yet.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        debug_assert!(self.entries.len() < self.entries.capacity(), "a timer would grow");
        debug_assert_eq!(self.places[entry.node as usize], NONE, "a node waits twice");
        self.entries.push(entry);
        let last = self.entries.len() - 1;
        climb(&mut self.entries, last, noted_in(&mut self.places));
    }

    /// Takes the first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let first = pop(&mut self.entries, noted_in(&mut self.places))?;
        self.places[first.node as usize] = NONE;
        Some(first)
    }

    /// Takes out a node, if it waits.
    pub(crate) fn remove(&mut self, number: u32) {
        let at = std::mem::replace(&mut self.places[number as usize], NONE) as usize;
        if at >= self.entries.len() {
            return;
        }
        let gone = self.entries.swap_remove(at);
        // the last one has its place now
        let Some(&last) = self.entries.get(at) else { return };
        if before(last.key, gone.key) {
            climb(&mut self.entries, at, noted_in(&mut self.places));
        } else {
            sink(&mut self.entries, at, last, noted_in(&mut self.places));
        }
    }

    /// Goes on with the memory of a larger one that is empty; the two change places.
    pub(crate) fn moves_into(&mut self, large: &mut Timer) {
        large.entries.append(&mut self.entries);
        large.places[..self.places.len()].copy_from_slice(&self.places);
        std::mem::swap(self, large);
    }

    pub(crate) fn is_until(&self, number: u32, key: u64) -> bool {
        let at = self.places[number as usize] as usize;
        self.entries.get(at) == Some(&Entry { key, node: number })
    }

    #[cfg(test)]
    pub(crate) fn has_room_for(&self, nodes: usize) -> bool {
        self.entries.capacity() >= nodes && self.places.len() >= nodes
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Notes where an entry is now.
#[inline]
fn noted_in(places: &mut [u32]) -> impl FnMut(Entry, usize) {
    #[expect(clippy::cast_possible_truncation, reason = "no more entries than numbers of nodes")]
    |entry, at| places[entry.node as usize] = at as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32, u64),
        Pop,
        Remove(u32),
        Grow,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            5 => (0u32..40, 0u64..60).prop_map(|(node, key)| Step::Push(node, key)),
            2 => Just(Step::Pop),
            2 => (0u32..40).prop_map(Step::Remove),
            1 => Just(Step::Grow),
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        /// As a map from nodes to moments.
        #[test]
        fn each_node_waits_once_and_comes_out_in_its_turn(steps in steps()) {
            let mut timer = Timer::with_capacity(40);
            let mut expected = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Push(node, key) => {
                        timer.remove(node);
                        timer.push(Entry { key, node });
                        expected.insert(node, key);
                    }
                    Step::Pop => {
                        let first = timer.first();
                        prop_assert_eq!(first.map(|e| e.key), expected.values().min().copied());
                        prop_assert_eq!(timer.pop(), first);
                        let key = first.and_then(|first| expected.remove(&first.node));
                        prop_assert_eq!(key, first.map(|e| e.key));
                    }
                    Step::Remove(node) => {
                        timer.remove(node);
                        expected.remove(&node);
                    }
                    Step::Grow => {
                        timer.moves_into(&mut Timer::with_capacity(timer.places.len() + 1));
                    }
                }
                prop_assert_eq!(timer.len(), expected.len());
                prop_assert!(expected.iter().all(|(node, key)| timer.is_until(*node, *key)));
            }
        }
    }
}
