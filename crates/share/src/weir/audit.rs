//! Whether what is kept is what follows from the parts: for tests and fuzzers, that hold every
//! packet to it.

use super::child::{Child, Flags, KEPT, MET, SATISFIED, Sums, WANTING};
use super::{Inner, Weir};

impl Weir {
    /// Recomputes all sums.
    ///
    /// # Errors
    /// One of them is not what is kept; in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut sums = vec![Sums::NONE; self.inner.len()];
        let inner = self.inner.iter().skip(1).map(|node| (node.child, node.demand()));
        let leaves = self.leaves.iter().map(|leaf| (leaf.child, leaf.demand()));
        for (child, demand) in inner.chain(leaves) {
            if child.flags.has(Flags::ACTIVE) {
                add(&mut sums[child.parent as usize], &child, demand);
            }
        }
        for (at, (node, sums)) in self.inner.iter().zip(&sums).enumerate() {
            let Inner { sums: kept, child, .. } = node;
            let is_same = kept.fixed == sums.fixed
                && kept.demand == sums.demand
                && kept.wanting == sums.wanting
                && kept.weight == sums.weight
                && kept.met == sums.met
                && kept.kept == sums.kept
                && kept.floors == sums.floors
                && kept.assured == sums.assured;
            if !is_same {
                return Err(format!("node {at}: {kept:?} is kept, {sums:?} follows"));
            }
            let is_active = child.flags.has(Flags::ACTIVE);
            if at > 0 && is_active != (kept.weight > 0) {
                return Err(format!("node {at} is active: {is_active}, with {kept:?}"));
            }
        }
        Ok(())
    }
}

fn add(sums: &mut Sums, child: &Child, demand: u64) {
    sums.demand += demand;
    sums.weight += child.weight;
    let (floor, standing) = (child.floor.get(), child.flags.standing());
    match standing {
        SATISFIED => sums.fixed += demand,
        KEPT => sums.kept += floor,
        WANTING => sums.wanting += child.weight,
        _ => sums.met += demand,
    }
    sums.floors += if standing == MET { 0 } else { floor };
    sums.assured += if floor > 0 { demand } else { 0 };
}
