//! One tree takes over from another: made elsewhere for a new policy, it goes on with what the old
//! one knew.

use super::Weir;
use super::child::Flags;
use super::leaf::Leaf;
use crate::tree::{Place, number};

impl Weir {
    /// Goes on where `old` is: `kept` says which node of the old tree is which of this one. Both
    /// must be of the same kind; what is not in the list begins anew.
    ///
    /// Cost: O(levels) for each leaf in the list; nothing is allocated.
    pub fn take_over(&mut self, old: &Weir, kept: &[(Place, Place)]) {
        (self.queue, self.last, self.longest) = (old.queue, old.last, old.longest);
        self.size();
        for &(from, to) in kept {
            if let (Place::Inner(from), Place::Inner(to)) = (from, to)
                && let Some(was) = old.inner.get(from as usize)
                && let Some(node) = self.inner.get_mut(to as usize)
            {
                node.sums.level = was.sums.level;
            }
        }
        let leaves = || {
            kept.iter().filter_map(|&(from, to)| match (from, to) {
                (Place::Leaf(from), Place::Leaf(to)) => Some((from, to)),
                _ => None,
            })
        };
        for (from, to) in leaves() {
            if let Some(was) = old.leaves.get(from as usize) {
                self.go_on(was, to);
            }
        }
        // all have joined as such that want more; how they stand is seen by the level as it was
        for (_, to) in leaves() {
            let Some(leaf) = self.leaves.get_mut(to as usize) else { continue };
            if leaf.child.flags.has(Flags::ACTIVE) {
                let demand = leaf.demand();
                let node = &mut self.inner[leaf.child.parent as usize];
                node.sums.look(&mut leaf.child, demand);
            }
        }
        for at in (1..self.inner.len()).rev() {
            let parent = self.inner[at].child.parent as usize;
            let (above, below) = self.inner.split_at_mut(at);
            let here = &mut below[0];
            if here.child.flags.has(Flags::ACTIVE) {
                let demand = here.demand();
                above[parent].sums.look(&mut here.child, demand);
            }
        }
    }

    fn go_on(&mut self, was: &Leaf, to: u32) {
        let Some(leaf) = self.leaves.get_mut(to as usize) else { return };
        let flags = was.child.flags;
        if (flags.0 | leaf.child.flags.0) & (Flags::FREE | Flags::WAITING) != 0 {
            return;
        }
        leaf.take_over(was);
        if flags.has(Flags::ACTIVE) {
            let at = leaf.child.parent;
            let node = &mut self.inner[at as usize];
            let (before, demand) = (node.demand(), leaf.demand());
            node.sums.join(&mut leaf.child, demand);
            self.rise(at, before);
        }
    }

    /// A leaf is another's from now on: what was known of it is forgotten.
    pub fn begin_anew(&mut self, leaf: u32) {
        if (leaf as usize) < self.leaves.len() {
            if self.leaves[leaf as usize].child.flags.has(Flags::ACTIVE) {
                self.retire(leaf);
            }
            let leaf = &mut self.leaves[leaf as usize];
            *leaf = Leaf::new(leaf.child);
        }
    }

    /// How many leaves it has.
    #[must_use]
    pub fn leaves(&self) -> u32 {
        number(self.leaves.len())
    }
}
