//! Which queue is the longest, to a factor of two: leaves lie in rings by the power of two of how
//! much waits in them, so that the answer takes no search. When the memory for frames is used up,
//! the longest queue pays, and not whoever comes next.

/// No leaf.
const NONE: u32 = u32::MAX;
/// One ring per power of two.
const RINGS: usize = 33;

/// All leaves with frames, by the power of two of how many.
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
    ring: u8,
}

impl Default for Links {
    fn default() -> Self {
        Links { before: NONE, behind: NONE, ring: 0 }
    }
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

    /// A leaf has so many frames now.
    #[inline]
    pub(crate) fn set(&mut self, leaf: u32, frames: u32) {
        // 0 frames: ring 0, which is none
        let ring = u32::BITS - frames.leading_zeros();
        let was = u32::from(self.links[leaf as usize].ring);
        if ring != was {
            self.leave(leaf);
            self.join(leaf, ring);
        }
    }

    fn leave(&mut self, leaf: u32) {
        let Links { before, behind, ring } = self.links[leaf as usize];
        if ring == 0 {
            return;
        }
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
        self.links[leaf as usize] = Links::default();
    }

    fn join(&mut self, leaf: u32, ring: u32) {
        if ring == 0 {
            return;
        }
        let behind = std::mem::replace(&mut self.first[ring as usize], leaf);
        if behind != NONE {
            self.links[behind as usize].before = leaf;
        }
        self.used |= 1 << ring;
        #[expect(clippy::cast_possible_truncation, reason = "at most 32")]
        let ring = ring as u8;
        self.links[leaf as usize] = Links { before: NONE, behind, ring };
    }

    /// A leaf of the ring with the most frames.
    #[inline]
    pub(crate) fn leaf(&self) -> Option<u32> {
        let ring = self.used.checked_ilog2()?;
        Some(self.first[ring as usize])
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
            let mut longest = Longest::with_capacity(8);
            let mut queues = [0u32; 8];
            for (leaf, frames) in steps {
                queues[leaf as usize] = frames;
                longest.set(leaf, frames);
                let most = queues.iter().copied().max().unwrap();
                match longest.leaf() {
                    None => prop_assert_eq!(most, 0),
                    Some(leaf) => prop_assert!(queues[leaf as usize] > most / 2),
                }
            }
        }
    }
}
