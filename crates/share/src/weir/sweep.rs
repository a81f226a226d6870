//! Who has fallen silent sends no packet that could say so. So each packet also looks at one other
//! child of every node on a way down from the link: round and round, whatever the tree. Nobody
//! polls and nobody has a timer; where a whole link falls silent, the caller may `sweep`.

use super::Weir;
use super::child::Flags;
use super::inner::{LEAF, NONE};

impl Weir {
    /// One step down: looks at the next child of each node on the way, except this leaf.
    pub(super) fn step(&mut self, now: u64, except: u32) {
        let mut at = 0;
        // as many steps as there are levels
        for _ in 0..super::PATH {
            let node = &mut self.inner[at as usize];
            let (hand, sums) = (node.hand, &mut node.sums);
            let is_open = sums.level.is_infinite();
            if hand == NONE {
                return;
            }
            if hand & LEAF == 0 {
                let (above, below) = self.inner.split_at_mut(hand as usize);
                let (node, next) = (&mut above[at as usize], &mut below[0]);
                let is_last = next.child.flags.has(Flags::LAST);
                node.hand = after(hand, is_last, node.first);
                if !next.child.flags.has(Flags::ACTIVE) {
                    return;
                }
                if !is_open {
                    let demand = next.demand();
                    node.sums.look(&mut next.child, demand);
                }
                at = hand;
                continue;
            }
            let number = hand & !LEAF;
            let leaf = &mut self.leaves[number as usize];
            let flags = leaf.child.flags;
            if flags.has(Flags::ACTIVE) && !is_open {
                let demand = leaf.demand();
                sums.look(&mut leaf.child, demand);
            }
            node.hand = after(hand, flags.has(Flags::LAST), node.first);
            if flags.has(Flags::ACTIVE) && number != except && leaf.is_silent(now) {
                self.retire(number);
            }
            return;
        }
    }
}

/// The child behind this one: those with children, then the leaves, then again.
fn after(hand: u32, is_last: bool, first: [u32; 2]) -> u32 {
    if !is_last {
        return hand + 1;
    }
    let [inner, leaf] = first;
    let leaf = if leaf == NONE { NONE } else { leaf | LEAF };
    let (other, same) = if hand & LEAF == 0 { (leaf, inner) } else { (inner, leaf) };
    if other == NONE { same } else { other }
}
