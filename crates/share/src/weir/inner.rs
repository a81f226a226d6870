//! A node with children: the level at which its children share what it has, moved a step with each
//! packet.
//!
//! The sum of the shares rises with the level, in straight pieces. Where nobody is guaranteed
//! anything it bends only downwards, and a step to where the piece at hand meets the goal (Newton's
//! method) cannot swing: from any start it is below after one step, and rises to the answer.
//! Guarantees bend it upwards as well, and there such steps can swing for ever. So with guarantees
//! a step that turns back makes the next ones smaller, one that does not makes them larger again.
//!
//! Guarantees that do not fit are scaled. What they take rises with the scale, in pieces that bend
//! only downwards, since whoever has all it wants takes no more: so the scale has such a step with
//! each packet as well, which needs no damping.

use super::child::{Child, Flags, POINT, Sums, WHOLE, scaled};
use crate::scale::{Packed, bits};

/// A node with children: a line of the cache, and behind the level what only a node uses that has
/// guarantees among its children.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Inner {
    pub(super) child: Child,
    /// Whom the sweep looks at next: a leaf has the highest bit.
    pub(super) hand: u32,
    /// Its first child with children, and its first leaf; `NONE` without.
    pub(super) first: [u32; 2],
    pub(super) sums: Sums,
}

/// No child of that kind.
pub(super) const NONE: u32 = u32::MAX;
/// What a hand has that points at a leaf.
pub(super) const LEAF: u32 = 1 << 31;

/// By how many bits steps are smaller: three bits of the flags from here.
const DAMPED: (u32, u32) = (10, 3);

impl Inner {
    /// What it wants of its parent.
    pub(super) fn demand(&self) -> u64 {
        self.sums.demand.min(self.child.peak.get())
    }

    /// Moves the level to where it should be with what is known now.
    pub(super) fn settle(&mut self, budget: u64) {
        let Sums { fixed, demand, wanting, weight, .. } = self.sums;
        if demand <= budget || weight == 0 {
            self.sums.level = Packed::INFINITE;
            if self.child.flags.has(Flags::KEEPS) {
                self.sums.scale = WHOLE;
            }
        } else if self.child.flags.has(Flags::KEEPS) {
            self.approach(budget);
        } else if wanting == 0 || fixed >= budget {
            self.sums.level = even(budget, weight);
        } else {
            let level = self.step(budget - fixed);
            // never much below what an even split would give
            let safe = (level + level / 128).checked_mul(u64::from(weight));
            let is_low = safe.is_some_and(|safe| safe < budget << POINT);
            self.sums.level = if is_low { even(budget, weight) } else { Packed::new(level) };
        }
    }

    /// Where the wanting share the rest.
    fn step(&mut self, rest: u64) -> u64 {
        let wanting = u64::from(self.sums.wanting);
        let width = bits(wanting);
        if self.sums.inverse == 0 {
            let inverse = ((1_u64 << (31 + width)) - 1) / wanting.max(1);
            self.sums.inverse = u32::try_from(inverse).unwrap_or(u32::MAX);
        }
        // 44 bits of the rest and 32 of the inverse, less what the inverse has behind the point: of
        // an amount in 2^-16 at least 16 bits go
        let wide =
            (u128::from(rest) * u128::from(self.sums.inverse)) >> ((31 + width - POINT) & 63);
        #[expect(clippy::cast_possible_truncation, reason = "2^16 rest / wanting: 60 bits")]
        let level = wide as u64;
        level
    }

    /// A step with guarantees among the children.
    fn approach(&mut self, budget: u64) {
        let left = self.left(budget);
        self.scale(budget - left);
        let Sums { wanting, weight, kept, scale, .. } = self.sums;
        let fixed = self.sums.fixed + self.sums.met + scaled(kept, scale);
        let start = even(budget, weight).get();
        let old = if self.sums.level.is_infinite() { start } else { self.sums.level.get() };
        // what guarantees leave is somebody's
        let bottom = if left == 0 { 0 } else { even(left, weight).get() };
        let is_full = fixed <= budget && fixed >= budget - budget / 1_024;
        let goal = if wanting == 0 && scale < WHOLE && is_full {
            // guarantees that are scaled leave nothing that a higher level could give
            old
        } else if fixed >= budget {
            // too high for those that are satisfied
            (old / 2).max(bottom)
        } else if wanting == 0 {
            old.saturating_mul(2).max(start / 1_024 + 1)
        } else {
            self.step(budget - fixed).max(bottom)
        };
        let flags = &mut self.child.flags;
        let damped = flags.part(DAMPED.0, DAMPED.1);
        let turned = goal != old && flags.has(Flags::ROSE) != (goal > old);
        let damped = if turned { (damped + 1).min(5) } else { damped.saturating_sub(1) };
        flags.set_part(DAMPED.0, DAMPED.1, damped);
        if goal != old {
            flags.set(Flags::ROSE, goal > old);
        }
        let level = if goal >= old {
            old + ((goal - old) >> damped)
        } else {
            old - (old - goal).div_ceil(1 << damped)
        };
        self.sums.level = Packed::new(level.min(Packed::new(u64::MAX >> 4).get()));
    }

    /// What a child has of `budget` at most; the second says whether the level set it.
    pub(super) fn entitle(&self, child: &Child, budget: u64) -> (u64, bool) {
        let open = child.peak.get().min(budget);
        if self.sums.level.is_infinite() {
            return (open, false);
        }
        let part = child.part(self.sums.level);
        if part >= open {
            return (open, false);
        }
        if child.floor.is_zero() && !self.child.flags.has(Flags::KEEPS) {
            return (part, true);
        }
        let share = part.max(child.floor_at(self.sums.scale)).min(open);
        (share, share < open)
    }

    /// What guarantees that do not fit leave to those that have none: what these want, up to a
    /// hundredth of what there is.
    fn left(&self, budget: u64) -> u64 {
        (self.sums.demand - self.sums.assured).min(budget / 100)
    }

    /// A step of the scale to where guarantees, of each no more than it wants, are `promised`.
    fn scale(&mut self, promised: u64) {
        let Sums { met, floors, scale, .. } = self.sums;
        if met.saturating_add(floors) <= promised {
            self.sums.scale = WHOLE;
        } else if met >= promised {
            self.sums.scale = scale / 2;
        } else {
            let wide = (u128::from(promised - met) << 31) / u128::from(floors.max(1));
            self.sums.scale = u32::try_from(wide).unwrap_or(WHOLE).min(WHOLE);
        }
    }
}

/// The level of an even split.
fn even(budget: u64, weight: u32) -> Packed {
    // a budget is less than 2^44
    Packed::new((budget << POINT) / u64::from(weight.max(1)))
}

#[cfg(test)]
mod tests;
