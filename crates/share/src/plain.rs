//! A tree for the allocators that are not ours: who is whose child, with what weight and peak, and
//! the dice that they throw.

use weir_units::limits;

use crate::scale::{narrow, units};
use crate::tree::{Layout, Node, Places, Unfit};

/// The nodes from the link to a leaf.
pub(crate) const PATH: usize = limits::TREE_DEPTH + 1;

/// What is configured of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) parent: u32,
    pub(crate) weight: u32,
    pub(crate) floor: u64,
    pub(crate) peak: u64,
}

/// Nodes with children, and leaves.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) inner: Vec<Terms>,
    pub(crate) leaves: Vec<Terms>,
}

impl Plain {
    /// # Errors
    /// The list is no tree.
    pub(crate) fn new(nodes: &[Node]) -> Result<(Plain, Places), Unfit> {
        let layout = Layout::new(nodes)?;
        let terms = |&at: &u32| {
            let node = &nodes[at as usize];
            let weight = node.weight.clamp(1, limits::SHARE_WEIGHT);
            let (floor, peak) = (units(node.floor), units(node.peak));
            Terms { parent: layout.parent(nodes, at), weight, floor, peak }
        };
        let inner = layout.inner.iter().map(terms).collect();
        let leaves = layout.leaves.iter().map(terms).collect();
        Ok((Plain { inner, leaves }, layout.places))
    }

    /// What is shared.
    pub(crate) fn capacity(&self) -> u64 {
        self.inner[0].peak
    }

    /// The nodes from the link down to the parent of a leaf.
    pub(crate) fn path(&self, leaf: u32) -> Path {
        let mut path = Path { nodes: [0; PATH], len: 0 };
        let mut at = self.leaves[leaf as usize].parent;
        while path.len < PATH {
            path.nodes[path.len] = at;
            path.len += 1;
            if at == 0 {
                break;
            }
            at = self.inner[at as usize].parent;
        }
        path.nodes[..path.len].reverse();
        path
    }
}

/// Nodes from the link down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    nodes: [u32; PATH],
    len: usize,
}

impl Path {
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes[..self.len]
    }
}

/// `weight` times a level in 2^-16; a level of `u64::MAX` is none.
pub(crate) fn part(weight: u32, level: u64) -> u64 {
    if level == u64::MAX {
        return u64::MAX;
    }
    narrow((u128::from(weight) * u128::from(level)) >> 16)
}

/// Xorshift (Marsaglia 2003): enough to drop packets by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x9e37_79b9_7f4a_7c15 | 1)
    }

    /// True with the probability `of`/`all`.
    pub(crate) fn falls(&mut self, of: u64, all: u64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u128::from(self.0 >> 32) * u128::from(all) < u128::from(of) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_are_marsaglias() {
        let mut dice = Dice(1);
        let mut next = || {
            dice.falls(1, 2);
            dice.0
        };
        // from 1, shifted by 13, 7 and 17
        assert_eq!([next(), next()], [0x4082_2041, 0x1000_4106_0c01_1441]);
    }

    #[test]
    fn dice_fall_as_often_as_they_should() {
        let mut dice = Dice::new(1);
        let fell = (0..100_000).filter(|_| dice.falls(3, 10)).count();
        assert!((29_500..30_500).contains(&fell), "{fell} of 100 000");
    }
}
