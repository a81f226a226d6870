//! Sets of rules, each kept once: a set is a list of blocks of 512 rules, and a block that several
//! sets have in common is kept once too. Most sets of a field differ from one another in a block
//! or two. The rules that do not ask for a field at all are in each of its sets, so that a frame's
//! rules are the intersection of one set per field and nothing else.

use std::collections::BTreeMap;

/// Rules in one block.
pub(crate) const BLOCK: usize = 512;

/// A cache line of bits, one per rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(align(64))]
pub(crate) struct Block(pub(crate) [u64; BLOCK / 64]);

/// The blocks of all sets. Number 0 is the empty one.
#[derive(Debug)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    known: BTreeMap<Block, u32>,
}

/// The sets of one field; set 0 has no rules but those that do not ask for it.
#[derive(Debug)]
pub(crate) struct Sets {
    /// The numbers of each set's blocks, one set behind the other.
    lists: Box<[u32]>,
    /// Blocks per set.
    width: usize,
    count: usize,
}

/// Makes the sets of one field.
pub(crate) struct Maker<'b> {
    blocks: &'b mut Blocks,
    /// The rules that do not ask for the field, and the numbers of their blocks.
    any: Vec<Block>,
    any_list: Vec<u32>,
    lists: Vec<u32>,
    known: BTreeMap<Vec<u32>, u32>,
    members: Vec<Vec<u32>>,
}

impl Block {
    fn insert(&mut self, bit: usize) {
        self.0[bit % BLOCK / 64] |= 1 << (bit % 64);
    }

    #[inline]
    pub(crate) fn intersect(&mut self, other: &Block) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }
}

impl Blocks {
    pub(crate) fn new() -> Self {
        let mut blocks = Blocks { blocks: Vec::new(), known: BTreeMap::new() };
        blocks.number(Block::default());
        blocks
    }

    /// The number of a block with these bits.
    fn number(&mut self, block: Block) -> u32 {
        let next = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(block).or_insert(next);
        if number == next {
            self.blocks.push(block);
        }
        number
    }

    pub(crate) fn finish(self) -> Box<[Block]> {
        self.blocks.into()
    }
}

impl<'b> Maker<'b> {
    /// For `bits` rules, of which those that `is_any` says do not ask for the field.
    pub(crate) fn new(blocks: &'b mut Blocks, bits: usize, is_any: impl Fn(usize) -> bool) -> Self {
        let mut any = vec![Block::default(); bits.div_ceil(BLOCK)];
        for bit in (0..bits).filter(|&bit| is_any(bit)) {
            any[bit / BLOCK].insert(bit);
        }
        let any_list = any.iter().map(|block| blocks.number(*block)).collect();
        let (known, members, lists) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut maker = Maker { blocks, any, any_list, lists, known, members };
        maker.set(Vec::new());
        maker
    }

    /// The number of the set with these members, in order and each once.
    pub(crate) fn set(&mut self, members: Vec<u32>) -> u32 {
        if let Some(&known) = self.known.get(&members) {
            return known;
        }
        let number = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        let start = self.lists.len();
        self.lists.extend(&self.any_list);
        for near in members.chunk_by(|a, b| *a as usize / BLOCK == *b as usize / BLOCK) {
            let place = near[0] as usize / BLOCK;
            let mut block = self.any[place];
            near.iter().for_each(|&bit| block.insert(bit as usize));
            self.lists[start + place] = self.blocks.number(block);
        }
        self.known.insert(members.clone(), number);
        self.members.push(members);
        number
    }

    /// The number of a set with some more members.
    pub(crate) fn with(&mut self, set: u32, more: &[u32]) -> u32 {
        let mut members = self.members[set as usize].clone();
        members.extend(more);
        members.sort_unstable();
        members.dedup();
        self.set(members)
    }

    pub(crate) fn finish(self) -> Sets {
        let (width, count) = (self.any.len(), self.members.len());
        Sets { lists: self.lists.into(), width, count }
    }
}

impl Sets {
    /// How many sets there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The numbers of a set's blocks.
    #[inline]
    pub(crate) fn list(&self, set: u32) -> &[u32] {
        let start = set as usize * self.width;
        &self.lists[start..start + self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members of a set, whether they ask for the field or not.
    fn members(sets: &Sets, blocks: &[Block], set: u32) -> Vec<usize> {
        let words = sets.list(set).iter().flat_map(|&number| blocks[number as usize].0);
        let bits = words.enumerate().flat_map(|(n, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| n * 64 + bit)
        });
        bits.collect()
    }

    #[test]
    fn a_set_holds_its_members_and_those_that_do_not_ask() {
        let mut blocks = Blocks::new();
        let mut maker = Maker::new(&mut blocks, 10_000, |bit| bit == 5_000);
        let first = maker.set(vec![3, 64, 9_999]);
        assert_eq!(maker.set(vec![3, 64, 9_999]), first);
        let more = maker.with(first, &[70, 3]);
        let sets = maker.finish();
        let blocks = blocks.finish();
        assert_eq!(sets.len(), 3);
        assert_eq!(members(&sets, &blocks, 0), [5_000]);
        assert_eq!(members(&sets, &blocks, first), [3, 64, 5_000, 9_999]);
        assert_eq!(members(&sets, &blocks, more), [3, 64, 70, 5_000, 9_999]);
    }

    #[test]
    fn a_block_is_kept_once() {
        let mut blocks = Blocks::new();
        let mut maker = Maker::new(&mut blocks, 2_000, |bit| bit == 1);
        let (a, b) = (maker.set(vec![600]), maker.set(vec![600, 1_999]));
        let one = maker.finish();
        let mut maker = Maker::new(&mut blocks, 2_000, |bit| bit == 600);
        let c = maker.set(vec![1]);
        let two = maker.finish();
        assert_eq!(one.list(a)[..3], one.list(b)[..3]);
        assert_eq!(one.list(a)[..2], two.list(c)[..2]);
        assert_eq!(one.list(0)[1..], [0, 0, 0], "what is empty is number 0");
        // empty, {1}, {600}, {1999}
        assert_eq!(blocks.finish().len(), 4);
    }
}
