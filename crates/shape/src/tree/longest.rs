//! Which queue is the longest, to a factor of two: leaves lie in rings by the power of two of how
//! much waits in them, so that the answer takes no search. When the memory for frames is used up,
//! the longest queue pays, and not whoever comes next.
//!
//! A leaf that grows moves up at once; one that has become shorter moves down when somebody asks
//! for the longest and finds it. Leaves with fewer than two frames are in no ring.

use super::node::{NONE, Node};

/// One ring per power of two.
const RINGS: usize = 33;
/// Leaves that one question moves down at most.
const MOVES: usize = 16;

/// Leaves with two frames and more, by the power of two of how many they were at most.
#[derive(Debug)]
pub(crate) struct Longest {
    first: [u32; RINGS],
    /// Which rings have leaves.
    used: u64,
    links: Vec<Links>,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    behind: u32,
}

impl Default for Links {
    fn default() -> Self {
        Links { before: NONE, behind: NONE }
    }
}

/// The ring of a queue of so many frames; 0: none.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 32")]
const fn ring_of(frames: u32) -> u8 {
    if frames < 2 { 0 } else { (u32::BITS - frames.leading_zeros()) as u8 }
}

impl Longest {
    /// Room for leaves of these numbers.
    pub(crate) fn with_capacity(numbers: usize) -> Longest {
        let links = vec![Links::default(); numbers];
        Longest { first: [NONE; RINGS], used: 0, links }
    }

    /// Takes over from a smaller one.
    pub(crate) fn inherit(&mut self, old: &Longest) {
        self.first = old.first;
        self.used = old.used;
        self.links[..old.links.len()].copy_from_slice(&old.links);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.links.len() * size_of::<Links>()
    }

    /// A leaf has more frames than before.
    #[inline]
    pub(crate) fn grew(&mut self, number: u32, node: &mut Node) {
        let ring = ring_of(node.chain.frames());
        if ring > node.ring {
            self.put(number, node, ring);
        }
    }

    /// A leaf with about the most frames of all; `None` if no leaf has two.
    pub(crate) fn leaf(&mut self, nodes: &mut [Node]) -> Option<u32> {
        for _ in 0..MOVES {
            let ring = self.used.checked_ilog2()?;
            let number = self.first[ring as usize];
            let node = &mut nodes[number as usize];
            let is = ring_of(node.chain.frames());
            if u32::from(is) == ring {
                return Some(number);
            }
            self.put(number, node, is);
        }
        // many have become shorter at once: the next question goes on from here
        let number = self.first[self.used.checked_ilog2()? as usize];
        (!nodes[number as usize].chain.is_empty()).then_some(number)
    }

    /// Takes a leaf out of its ring.
    pub(crate) fn forget(&mut self, number: u32, node: &mut Node) {
        self.put(number, node, 0);
    }

    #[cold]
    fn put(&mut self, number: u32, node: &mut Node, ring: u8) {
        self.leave(number, std::mem::replace(&mut node.ring, ring));
        if ring == 0 {
            return;
        }
        let behind = std::mem::replace(&mut self.first[usize::from(ring)], number);
        if behind != NONE {
            self.links[behind as usize].before = number;
        }
        self.used |= 1 << ring;
        self.links[number as usize] = Links { before: NONE, behind };
    }

    fn leave(&mut self, number: u32, ring: u8) {
        if ring == 0 {
            return;
        }
        let Links { before, behind } = std::mem::take(&mut self.links[number as usize]);
        match before {
            NONE => self.first[usize::from(ring)] = behind,
            before => self.links[before as usize].behind = behind,
        }
        if behind != NONE {
            self.links[behind as usize].before = before;
        }
        if self.first[usize::from(ring)] == NONE {
            self.used &= !(1 << ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::Chain;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_queue_is_more_than_twice_as_long(
            steps in prop::collection::vec((0u32..8, 0u32..2_000), 1..300),
        ) {
            let mut longest = Longest::with_capacity(8);
            let mut nodes = [Node::default(); 8];
            for (leaf, frames) in steps {
                let node = &mut nodes[leaf as usize];
                node.chain = Chain::of(frames);
                longest.grew(leaf, node);
                let most = nodes.iter().map(|n| n.chain.frames()).max().unwrap();
                match longest.leaf(&mut nodes) {
                    None => prop_assert!(most < 2),
                    Some(leaf) => prop_assert!(nodes[leaf as usize].chain.frames() > most / 2),
                }
            }
        }
    }
}
