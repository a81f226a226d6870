//! Which queue is the longest, to a factor of two: queues lie in rings by the power of two of how
//! many frames they have, so that the answer takes no search. When the memory for frames is used
//! up, the longest queue pays, and not whoever comes next.
//!
//! A queue that grows moves up at once; one that has become shorter moves down when somebody asks
//! for the longest and finds it. Queues with fewer than two frames are in no ring. Each queue keeps
//! the number of its ring itself, where it is looked at anyway.

use super::node::NONE;
use super::split::Split;

/// One ring per power of two.
const RINGS: usize = 32;
/// Queues that one question moves down at most.
const MOVES: usize = 16;

/// Queues with two frames and more, by the power of two of how many they were at most.
#[derive(Debug)]
pub(crate) struct Longest {
    first: [u32; RINGS],
    /// Which rings have queues.
    used: u64,
    links: Split<Links>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    before: u32,
    behind: u32,
}

impl Default for Links {
    fn default() -> Self {
        Links { before: NONE, behind: NONE }
    }
}

impl Default for Longest {
    fn default() -> Self {
        Longest { first: [NONE; RINGS], used: 0, links: Split::default() }
    }
}

/// The ring of a queue of so many frames; 0: none.
#[expect(clippy::cast_possible_truncation, reason = "at most 31")]
const fn ring_of(frames: u32) -> u8 {
    if frames < 2 { 0 } else { frames.ilog2() as u8 }
}

impl Longest {
    /// For queues of so many connections; those of leaves come with an edit.
    pub(crate) fn new(flows: usize) -> Longest {
        Longest { links: Split::new(flows), ..Longest::default() }
    }

    /// The leaves' part moves into `large`, which takes its place.
    pub(crate) fn move_into(&mut self, large: &mut Vec<Links>) {
        self.links.move_into(large);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.links.bytes()
    }

    pub(crate) fn bytes_of_flows(&self) -> usize {
        self.links.bytes_of_flows()
    }

    /// A queue has more frames than before.
    #[inline]
    pub(crate) fn grew(&mut self, id: u32, frames: u32, is_in: &mut u8) {
        // twice as many as its ring begins with
        if frames >> *is_in > 1 {
            self.put(id, is_in, ring_of(frames));
        }
    }

    /// A queue with about the most frames of all; `None` if no queue has two. `frames` tells how
    /// many a queue has, after it has been told the queue's new ring, if there is one.
    pub(crate) fn find(&mut self, mut frames: impl FnMut(u32, Option<u8>) -> u32) -> Option<u32> {
        for _ in 0..MOVES {
            let was = u8::try_from(self.used.checked_ilog2()?).unwrap_or(0);
            let id = self.first[usize::from(was)];
            let ring = ring_of(frames(id, None));
            if ring == was {
                return Some(id);
            }
            self.put(id, &mut { was }, ring);
            frames(id, Some(ring));
        }
        // many have become shorter at once: the next question goes on from here
        let id = self.first[self.used.checked_ilog2()? as usize];
        (frames(id, None) > 0).then_some(id)
    }

    /// Takes a queue out of its ring.
    pub(crate) fn forget(&mut self, id: u32, is_in: &mut u8) {
        self.put(id, is_in, 0);
    }

    #[cold]
    fn put(&mut self, id: u32, is_in: &mut u8, ring: u8) {
        self.leave(id, std::mem::replace(is_in, ring));
        if ring == 0 {
            return;
        }
        let behind = std::mem::replace(&mut self.first[usize::from(ring)], id);
        if behind != NONE {
            self.links[behind].before = id;
        }
        self.used |= 1 << ring;
        self.links[id] = Links { before: NONE, behind };
    }

    fn leave(&mut self, id: u32, ring: u8) {
        if ring == 0 {
            return;
        }
        let Links { before, behind } = std::mem::take(&mut self.links[id]);
        match before {
            NONE => self.first[usize::from(ring)] = behind,
            before => self.links[before].behind = behind,
        }
        if behind != NONE {
            self.links[behind].before = before;
        }
        if self.first[usize::from(ring)] == NONE {
            self.used &= !(1 << ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_queue_is_more_than_twice_as_long(
            steps in prop::collection::vec((0u32..8, 0u32..2_000), 1..300),
        ) {
            let mut longest = Longest::new(8);
            let (mut queues, mut rings) = ([0u32; 8], [0u8; 8]);
            for (id, frames) in steps {
                queues[id as usize] = frames;
                longest.grew(id, frames, &mut rings[id as usize]);
                let most = queues.iter().copied().max().unwrap();
                let found = longest.find(|id, ring| {
                    rings[id as usize] = ring.unwrap_or(rings[id as usize]);
                    queues[id as usize]
                });
                match found {
                    None => prop_assert!(most < 2),
                    Some(id) => prop_assert!(queues[id as usize] > most / 2),
                }
            }
        }
    }
}
