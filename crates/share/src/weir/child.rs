//! What a node is to its parent, and what a parent keeps of its children: who is satisfied with
//! less than the level gives, who has only its guarantee, who wants more; and the sums of these,
//! exact after every packet.

use crate::scale::{Packed, narrow};

/// Bits behind the point in a level: the share of one unit of weight.
pub(super) const POINT: u32 = 16;

/// How a child stands to its parent's level, and what else is known of it, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(pub(super) u32);

/// Has what it wants, by its weight.
pub(super) const SATISFIED: u32 = 0;
/// Has its guarantee, which is more than its weight gives.
pub(super) const KEPT: u32 = 1;
/// Wants more than its part, and has that.
pub(super) const WANTING: u32 = 2;
/// Has what it wants by its guarantee alone.
pub(super) const MET: u32 = 3;

/// The scale of guarantees that fit.
pub(super) const WHOLE: u32 = 1 << 31;

impl Flags {
    const STANDING: u32 = 0b11;
    /// Counts at its parent.
    pub(super) const ACTIVE: u32 = 1 << 2;
    /// The last child of its parent that is of its kind.
    pub(super) const LAST: u32 = 1 << 3;
    /// A leaf nobody has.
    pub(super) const FREE: u32 = 1 << 4;
    /// A leaf that waits for approval.
    pub(super) const WAITING: u32 = 1 << 5;
    /// A leaf of which too little is known for an average.
    pub(super) const SEEDING: u32 = 1 << 6;
    /// A node some of whose children have guarantees.
    pub(super) const KEEPS: u32 = 1 << 7;
    /// A level that went up last.
    pub(super) const ROSE: u32 = 1 << 8;
    /// A leaf that joined while packets flowed, and may be taken out when it is silent for long.
    pub(super) const JOINED: u32 = 1 << 9;

    pub(super) fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn set(&mut self, flag: u32, to: bool) {
        self.0 = if to { self.0 | flag } else { self.0 & !flag };
    }

    pub(super) fn standing(self) -> u32 {
        self.0 & Flags::STANDING
    }

    fn stand(&mut self, standing: u32) {
        self.0 = self.0 & !Flags::STANDING | standing;
    }

    /// A small number kept in the bits from `at`.
    pub(super) fn part(self, at: u32, bits: u32) -> u32 {
        (self.0 >> at) & ((1 << bits) - 1)
    }

    pub(super) fn set_part(&mut self, at: u32, bits: u32, to: u32) {
        let mask = ((1 << bits) - 1) << at;
        self.0 = self.0 & !mask | (to << at & mask);
    }
}

/// A node as its parent sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    pub(super) parent: u32,
    pub(super) weight: u32,
    pub(super) floor: Packed,
    pub(super) peak: Packed,
    pub(super) flags: Flags,
}

impl Child {
    /// Its guarantee at this scale.
    pub(super) fn floor_at(&self, scale: u32) -> u64 {
        scaled(self.floor.get(), scale)
    }

    /// Its part at this level.
    pub(super) fn part(&self, level: Packed) -> u64 {
        narrow((u128::from(self.weight) * u128::from(level.get())) >> POINT)
    }

    fn standing_at(&self, level: Packed, scale: u32, demand: u64) -> u32 {
        if self.floor.is_zero() {
            let is_met = level.is_infinite() || demand <= self.part(level);
            return if is_met { SATISFIED } else { WANTING };
        }
        let floor = self.floor_at(scale);
        if demand <= floor {
            return MET;
        }
        if level.is_infinite() {
            return SATISFIED;
        }
        let part = self.part(level);
        if demand <= part {
            SATISFIED
        } else if part < floor {
            KEPT
        } else {
            WANTING
        }
    }
}

/// A guarantee, or a sum of them, at this scale.
pub(super) fn scaled(floor: u64, scale: u32) -> u64 {
    if scale == WHOLE { floor } else { narrow((u128::from(floor) * u128::from(scale)) >> 31) }
}

/// What a parent keeps of its children; first what it keeps where nobody has a guarantee.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Sums {
    /// Demands of those that are satisfied by their weight.
    pub(super) fixed: u64,
    /// Demands of all that are active.
    pub(super) demand: u64,
    /// Weight of the wanting.
    pub(super) wanting: u32,
    /// Weight of all that are active.
    pub(super) weight: u32,
    /// 2^(31 + bits) over the weight of the wanting; 0 when that has changed.
    pub(super) inverse: u32,
    /// What a unit of weight has, in 2^-16.
    pub(super) level: Packed,
    /// Demands of those that are met by their guarantee.
    pub(super) met: u64,
    /// Guarantees of the kept, whole.
    pub(super) kept: u64,
    /// Guarantees of all that are not met by theirs, whole.
    pub(super) floors: u64,
    /// Demands of all that have a guarantee.
    pub(super) assured: u64,
    /// What guarantees are scaled by, in 2^-31.
    pub(super) scale: u32,
}

impl Sums {
    pub(super) const NONE: Sums = Sums {
        fixed: 0,
        demand: 0,
        wanting: 0,
        weight: 0,
        inverse: 0,
        level: Packed::INFINITE,
        met: 0,
        kept: 0,
        floors: 0,
        assured: 0,
        scale: WHOLE,
    };

    /// A child begins to count, as one that wants.
    pub(super) fn join(&mut self, child: &mut Child, demand: u64) {
        child.flags.set(Flags::ACTIVE, true);
        child.flags.stand(WANTING);
        self.demand += demand;
        self.weight += child.weight;
        if !child.floor.is_zero() {
            self.assured += demand;
        }
        self.add(child, demand);
    }

    /// A child counts no longer.
    pub(super) fn leave(&mut self, child: &mut Child, demand: u64) {
        child.flags.set(Flags::ACTIVE, false);
        self.demand -= demand;
        self.weight -= child.weight;
        if !child.floor.is_zero() {
            self.assured -= demand;
        }
        self.take(child, demand);
    }

    /// What a child that stands so adds.
    fn add(&mut self, child: &Child, demand: u64) {
        let floor = child.floor.get();
        match child.flags.standing() {
            MET => return self.met += demand,
            SATISFIED => self.fixed += demand,
            KEPT => self.kept += floor,
            _ => {
                self.wanting += child.weight;
                self.inverse = 0;
            }
        }
        self.floors += floor;
    }

    /// Takes away what a child that stood so has added.
    fn take(&mut self, child: &Child, demand: u64) {
        let floor = child.floor.get();
        match child.flags.standing() {
            MET => return self.met -= demand,
            SATISFIED => self.fixed -= demand,
            KEPT => self.kept -= floor,
            _ => {
                self.wanting -= child.weight;
                self.inverse = 0;
            }
        }
        self.floors -= floor;
    }

    /// A child that counts wants another amount.
    pub(super) fn change(&mut self, child: &Child, from: u64, to: u64) {
        self.demand = self.demand - from + to;
        match child.flags.standing() {
            SATISFIED => self.fixed = self.fixed - from + to,
            MET => self.met = self.met - from + to,
            _ => {}
        }
        if !child.floor.is_zero() {
            self.assured = self.assured - from + to;
        }
    }

    /// Whether a child that counts stands to the level as was seen last.
    pub(super) fn knows(&self, child: &Child, demand: u64) -> bool {
        child.standing_at(self.level, self.scale, demand) == child.flags.standing()
    }

    /// Looks again how a child that counts stands to the level.
    pub(super) fn look(&mut self, child: &mut Child, demand: u64) {
        let now = child.standing_at(self.level, self.scale, demand);
        if now != child.flags.standing() {
            self.take(child, demand);
            child.flags.stand(now);
            self.add(child, demand);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(weight: u32, floor: u64) -> Child {
        let (floor, peak) = (Packed::new(floor), Packed::INFINITE);
        Child { parent: 0, weight, floor, peak, flags: Flags::default() }
    }

    #[test]
    fn no_two_flags_share_a_bit_nor_have_one_that_a_number_is_kept_in() {
        let of_leaves = [Flags::FREE, Flags::WAITING, Flags::SEEDING, Flags::JOINED];
        let of_nodes = [Flags::ACTIVE, Flags::LAST, Flags::KEEPS, Flags::ROSE];
        let flags = [Flags::STANDING].into_iter().chain(of_leaves).chain(of_nodes);
        let mut seen = 0;
        for flag in flags {
            assert!(flag != 0 && seen & flag == 0, "{flag:#x}");
            seen |= flag;
        }
        // numbers stand from bit 10 on: how far steps are damped, the time constant, the length
        assert_eq!(seen & !0x3ff, 0, "{seen:#x}");
        let standings = [SATISFIED, KEPT, WANTING, MET];
        assert!(standings.iter().all(|standing| standing & !Flags::STANDING == 0));
    }

    #[test]
    fn who_has_just_what_it_wants_is_satisfied() {
        // a unit of weight has 10, a weight of 3 has 30
        let level = Packed::new(10 << 16);
        let plain = child(3, 0);
        assert_eq!([29, 30, 31].map(|d| plain.standing_at(level, WHOLE, d)), [0, 0, WANTING]);
        // with a guarantee of 50, and of 30, which is no more than its part
        let kept = child(3, 50);
        let stands = |kept: Child, scale, d| kept.standing_at(level, scale, d);
        assert_eq!([30, 49, 50, 51].map(|d| stands(kept, WHOLE, d)), [MET, MET, MET, KEPT]);
        // at four fifths of it
        assert_eq!([40, 41].map(|d| stands(kept, WHOLE / 5 * 4 + 4, d)), [MET, KEPT]);
        // at half of it, which is less than its part
        assert_eq!([25, 26, 30, 31].map(|d| stands(kept, WHOLE / 2, d)), [MET, 0, 0, WANTING]);
        let kept = child(3, 30);
        assert_eq!([30, 31].map(|d| stands(kept, WHOLE, d)), [MET, WANTING]);
        let kept = child(3, 31);
        assert_eq!([31, 32].map(|d| stands(kept, WHOLE, d)), [MET, KEPT]);
        let of_all = |d| kept.standing_at(Packed::INFINITE, WHOLE, d);
        assert_eq!([31, u64::MAX].map(of_all), [MET, SATISFIED]);
    }

    #[test]
    fn a_part_is_exact_where_a_unit_of_weight_has_less_than_one() {
        // 3/4 of a unit for each of 1 000 000
        assert_eq!(child(1_000_000, 0).part(Packed::new(3 << 14)), 750_000);
    }

    #[test]
    fn the_inverse_is_forgotten_whenever_the_weight_of_the_wanting_changes() {
        let level = Packed::new(10 << 16);
        let mut sums = Sums { inverse: 7, level, ..Sums::NONE };
        let mut one = child(3, 0);
        let is_known = |sums: &mut Sums| std::mem::replace(&mut sums.inverse, 7) != 0;
        sums.join(&mut one, 50);
        assert!(!is_known(&mut sums));
        sums.look(&mut one, 50);
        assert!(is_known(&mut sums));
        sums.change(&one, 50, 20);
        sums.look(&mut one, 20);
        assert!(!is_known(&mut sums));
        sums.change(&one, 20, 50);
        sums.look(&mut one, 50);
        assert!(!is_known(&mut sums));
        sums.leave(&mut one, 50);
        assert!(!is_known(&mut sums));
        assert_eq!((sums.fixed, sums.demand, sums.wanting, sums.weight), (0, 0, 0, 0));
    }
}
