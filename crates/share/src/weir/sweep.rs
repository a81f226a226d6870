//! Who has fallen silent sends no packet that could say so. So each packet also looks at one other
//! child of every node on a way down from the link: round and round, whatever the tree. Nobody
//! polls and nobody has a timer; where a whole link falls silent, the caller may `sweep`.

use super::Weir;
use super::child::Flags;
use super::inner::{Inner, LEAF, NONE};
use crate::tree::Place;

impl Weir {
    /// One step down: looks at the next child of each node on the way, except this leaf.
    pub(super) fn step(&mut self, now: u64, except: u32) {
        let mut at = 0;
        // as many steps as there are levels
        for _ in 0..super::PATH {
            let hand = self.inner[at as usize].hand;
            if hand & LEAF != 0 {
                if hand != NONE {
                    self.step_leaf(now, at, hand & !LEAF, except);
                }
                return;
            }
            let next = &self.inner[hand as usize];
            let (child, demand) = (next.child, next.demand());
            let node = &mut self.inner[at as usize];
            node.pass_on(child.flags);
            if !child.flags.has(Flags::ACTIVE) {
                return;
            }
            if !node.sums.level.is_infinite() && !node.sums.knows(&child, demand) {
                self.look(Place::Inner(hand));
            }
            at = hand;
        }
    }

    fn step_leaf(&mut self, now: u64, at: u32, number: u32, except: u32) {
        let leaf = &self.leaves[number as usize];
        let (child, demand) = (leaf.child, leaf.demand());
        let node = &mut self.inner[at as usize];
        node.pass_on(child.flags);
        if !child.flags.has(Flags::ACTIVE) {
            return;
        }
        let is_silent = number != except && leaf.is_silent(now);
        if !node.sums.level.is_infinite() && !node.sums.knows(&child, demand) {
            self.look(Place::Leaf(number));
        }
        if is_silent {
            self.retire(number);
        }
    }
}

impl Inner {
    /// Points the hand at the child behind the one that has these flags.
    fn pass_on(&mut self, flags: Flags) {
        let is_last = flags.has(Flags::LAST);
        self.hand = if is_last { around(self.hand, self.first) } else { self.hand + 1 };
    }
}

/// The child behind the last of its kind: those with children, then the leaves, then again.
fn around(hand: u32, first: [u32; 2]) -> u32 {
    let [inner, leaf] = first;
    let leaf = if leaf == NONE { NONE } else { leaf | LEAF };
    let (other, same) = if hand & LEAF == 0 { (leaf, inner) } else { (inner, leaf) };
    if other == NONE { same } else { other }
}
