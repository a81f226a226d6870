//! Which leaf has the most frames waiting, to a fifth: leaves lie in rings by how many they have,
//! four rings for each power of two, so that the answer takes no search. When the memory for frames
//! is used up, that leaf pays, and not whoever comes next. A frame takes one buffer whatever its
//! size, so frames count here and not bytes: else very many leaves with one small frame each would
//! use up the memory, and a leaf with one large frame would always pay. Which frame has to go is
//! decided in the leaf: of its host that has the most bytes, the connection that has the most
//! (queues/paying.rs).
//!
//! A leaf that grows moves up at once; one that has become shorter moves down when somebody asks
//! for the longest and finds it. Each leaf keeps the number of its ring itself, where it is looked
//! at anyway.

use super::node::{NONE, Node};

/// Four rings per power of two, and ring 0 for leaves without frames, which is none.
const RINGS: usize = 128;
/// Leaves that one question moves down at most.
const MOVES: usize = 16;

/// From how many frames on a leaf of this ring belongs into a higher one.
#[expect(clippy::cast_possible_truncation, reason = "at most 7 x 2^29")]
const ENDS: [u32; RINGS] = {
    let mut ends = [u32::MAX; RINGS];
    ends[0] = 1;
    let mut ring = 1;
    while ring < RINGS - 1 {
        let quarters = (5 + ring as u64 % 4) << (ring / 4);
        ends[ring] = quarters.div_ceil(4) as u32;
        ring += 1;
    }
    ends
};

/// The ring of a leaf with so many frames.
#[expect(clippy::cast_possible_truncation, reason = "at most 127")]
const fn ring_of(frames: u32) -> u8 {
    let Some(power) = frames.checked_ilog2() else { return 0 };
    let quarter = ((frames as u64) << 2 >> power) as u32 % 4;
    let ring = (4 * power + quarter) as u8;
    if ring == 0 { 1 } else { ring }
}

/// Leaves with frames, by how many they had at most.
#[derive(Debug)]
pub(crate) struct Longest {
    first: [u32; RINGS],
    /// Which rings have leaves.
    used: u128,
    links: Vec<Links>,
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
        Longest { first: [NONE; RINGS], used: 0, links: Vec::new() }
    }
}

impl Longest {
    /// The leaves move into `large`, which takes the place of their table.
    pub(crate) fn move_into(&mut self, large: &mut Vec<Links>) {
        large[..self.links.len()].copy_from_slice(&self.links);
        std::mem::swap(&mut self.links, large);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.links.len() * size_of::<Links>()
    }

    /// A leaf has more frames than before.
    #[inline]
    pub(crate) fn grew(&mut self, number: u32, node: &mut Node) {
        if node.chain.frames() >= ENDS[usize::from(node.ring % 128)] {
            self.put(number, &mut node.ring, ring_of(node.chain.frames()));
        }
    }

    /// A leaf with about the most frames of all.
    pub(crate) fn find(&mut self, nodes: &mut [Node]) -> Option<u32> {
        let (mut best, mut most) = (None, 0);
        for _ in 0..MOVES {
            let Some(ring) = self.used.checked_ilog2() else { break };
            let number = self.first[ring as usize];
            let node = &mut nodes[number as usize];
            let frames = node.chain.frames();
            if frames > most {
                (best, most) = (Some(number), frames);
            }
            let is = ring_of(frames);
            if is == node.ring {
                break;
            }
            self.put(number, &mut node.ring, is);
        }
        // many may have become shorter at once: the next question goes on from there
        best
    }

    /// Takes a leaf out of its ring.
    pub(crate) fn forget(&mut self, number: u32, node: &mut Node) {
        self.put(number, &mut node.ring, 0);
    }

    /// Whether a leaf is in this ring.
    pub(crate) fn has(&self, number: u32, ring: u8) -> bool {
        let mut at = self.first[usize::from(ring)];
        while at != NONE && at != number {
            at = self.links[at as usize].behind;
        }
        ring == 0 || at == number
    }

    /// Whether a leaf has more frames than leaves of its ring.
    pub(crate) fn is_low(&self, node: &Node) -> bool {
        ring_of(node.chain.frames()) > node.ring
    }

    #[cold]
    fn put(&mut self, number: u32, is_in: &mut u8, ring: u8) {
        self.leave(number, std::mem::replace(is_in, ring));
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
    use super::*;
    use crate::tree::store::Chain;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_leaf_has_a_quarter_more(
            steps in prop::collection::vec((0u32..8, 0u32..2_000, 1u16..1_514), 1..300),
        ) {
            let mut longest = Longest::default();
            longest.move_into(&mut vec![Links::default(); 8]);
            let mut nodes = [Node::default(); 8];
            for (number, frames, bytes) in steps {
                let node = &mut nodes[number as usize];
                node.chain = Chain::default();
                (0..frames).for_each(|_| node.chain.count(bytes));
                longest.grew(number, node);
                let most = nodes.iter().map(|n| n.chain.frames()).max().unwrap();
                let found = longest.find(&mut nodes);
                let found = found.map_or(0, |number| nodes[number as usize].chain.frames());
                prop_assert!(found + found / 4 >= most, "{found} of {most}");
            }
        }
    }

    #[test]
    fn rings_begin_where_those_below_end() {
        for frames in (1..5_000).chain([u32::MAX / 3, u32::MAX - 1, u32::MAX]) {
            let ring = usize::from(ring_of(frames));
            assert!(
                frames >= ENDS[ring - 1] && (ring == RINGS - 1 || frames < ENDS[ring]),
                "{frames}"
            );
        }
    }

    fn node(frames: u32) -> Node {
        let mut node = Node::default();
        (0..frames).for_each(|_| node.chain.count(1));
        node
    }

    fn all(frames: &[u32]) -> (Longest, Vec<Node>) {
        let mut longest = Longest::default();
        let mut nodes: Vec<Node> = frames.iter().map(|&frames| node(frames)).collect();
        longest.move_into(&mut vec![Links::default(); nodes.len()]);
        for (number, node) in (0..).zip(&mut nodes) {
            longest.grew(number, node);
        }
        (longest, nodes)
    }

    /// Leaves of one ring leave it from the middle, from the end and from the beginning.
    #[test]
    fn leaves_come_and_go_in_any_order() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let (mut longest, mut nodes) = all(&[9, 9, 9, 1]);
            for (at, number) in order.into_iter().enumerate() {
                let found = longest.find(&mut nodes).expect("some are left");
                assert!(order[at..].contains(&found), "{found} is gone: {order:?}");
                longest.forget(number, &mut nodes[number as usize]);
                assert_eq!(nodes[number as usize].ring, 0);
            }
            assert_eq!(longest.find(&mut nodes), Some(3), "{order:?}");
            longest.forget(3, &mut nodes[3]);
            assert_eq!((longest.find(&mut nodes), longest.used), (None, 0));
        }
    }

    #[test]
    fn a_larger_table_keeps_who_is_behind_whom() {
        let (mut longest, mut nodes) = all(&[9, 9, 9]);
        longest.move_into(&mut vec![Links::default(); 100]);
        longest.forget(1, &mut nodes[1]);
        longest.forget(2, &mut nodes[2]);
        assert_eq!(longest.find(&mut nodes), Some(0));
    }

    #[test]
    fn a_leaf_that_grows_within_its_ring_stays_where_it_is() {
        // a ring for 8 and 9 frames
        let (mut longest, mut nodes) = all(&[8, 8]);
        assert_eq!(longest.find(&mut nodes), Some(1));
        nodes[0].chain.count(1);
        longest.grew(0, &mut nodes[0]);
        assert_eq!(longest.find(&mut nodes), Some(1));
        nodes[0].chain.count(1);
        longest.grew(0, &mut nodes[0]);
        assert_eq!(longest.find(&mut nodes), Some(0));
    }

    #[test]
    fn a_leaf_that_has_no_frames_any_more_is_not_the_longest() {
        let (mut longest, mut nodes) = all(&[9]);
        nodes[0].chain = Chain::default();
        assert_eq!(longest.find(&mut nodes), None);
        assert_eq!(nodes[0].ring, 0);
    }

    #[test]
    fn a_question_moves_sixteen_down_and_the_next_goes_on() {
        let (mut longest, mut nodes) = all(&[100; 40]);
        for (number, node) in nodes.iter_mut().enumerate() {
            node.chain = self::node(if number == 0 { 90 } else { 2 }).chain;
        }
        let moved = |nodes: &[Node]| nodes.iter().filter(|node| node.ring == ring_of(2)).count();
        // of those that it found, one with two frames has the most
        assert!(longest.find(&mut nodes).is_some_and(|number| number > 0));
        assert_eq!(moved(&nodes), MOVES);
        assert!(longest.find(&mut nodes).is_some_and(|number| number > 0));
        assert_eq!(moved(&nodes), 2 * MOVES);
        assert_eq!(longest.find(&mut nodes), Some(0));
        assert_eq!(longest.find(&mut nodes), Some(0));
        // one whose ring was too high is the longest all the same if no other has as many
        nodes[0].chain = self::node(3).chain;
        assert_eq!(longest.find(&mut nodes), Some(0));
    }
}
