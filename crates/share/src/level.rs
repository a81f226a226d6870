//! The level of one node, exactly: a Newton step where that stays between what is known to be too
//! low and too high, half way where it does not. No sorting and no memory, so it also serves those
//! who compute all shares every few milliseconds.

use crate::scale::narrow;

/// Bits behind the point of a level.
pub(crate) const POINT: u32 = 16;

/// A child as the level sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kid {
    /// What it is guaranteed, whatever it wants.
    pub(crate) floor: u64,
    /// What it has in any case: no more than `most`.
    pub(crate) least: u64,
    /// What it wants.
    pub(crate) most: u64,
    pub(crate) weight: u32,
}

/// How children share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// There is enough for all.
    Open,
    /// A unit of weight has so much, in 2^-16.
    At(u64),
    /// What they have in any case is more than there is: guarantees are scaled by this.
    Short(Scale),
    /// The same, and some have nothing in any case: these have this level, the others their scaled
    /// guarantee at least.
    Scarce {
        /// What guarantees are scaled by.
        scale: Scale,
        /// What a unit of weight has, in 2^-16.
        level: u64,
    },
}

/// What guarantees are scaled by, in 2^-31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale(u32);

impl Scale {
    /// The scale at which guarantees, of each no more than it wants, are no more than there is;
    /// where some have none, beside what these want, up to a hundredth.
    pub(crate) fn of(budget: u64, kids: &(impl Iterator<Item = Kid> + Clone)) -> Scale {
        let bare = kids.clone().filter(|kid| kid.floor == 0);
        let bare = bare.map(|kid| kid.most).fold(0, u64::saturating_add);
        Scale::fit(budget - bare.min(budget / 100), kids)
    }

    /// The same without anything for those that have none. Who wants less than its scaled guarantee
    /// leaves the rest to the others: their sum bends downwards, so steps rise to the answer.
    pub(crate) fn fit(budget: u64, kids: &(impl Iterator<Item = Kid> + Clone)) -> Scale {
        let mut scale = Scale(0);
        // each step but the last meets one more child; more than these are some 2^-31
        for _ in 0..64 {
            let (mut met, mut floors) = (0_u64, 0_u64);
            for kid in kids.clone() {
                if kid.most <= scale.of_floor(kid.floor) {
                    met = met.saturating_add(kid.most);
                } else {
                    floors = floors.saturating_add(kid.floor);
                }
            }
            let wide = (u128::from(budget.saturating_sub(met)) << 31) / u128::from(floors.max(1));
            let next = Scale(u32::try_from(wide).unwrap_or(1 << 31).min(1 << 31));
            if next.0 <= scale.0 {
                break;
            }
            scale = next;
        }
        scale
    }

    fn of_floor(self, floor: u64) -> u64 {
        narrow((u128::from(floor) * u128::from(self.0)) >> 31)
    }
}

impl Level {
    /// What a child may have of `budget` at most, whatever it wants now.
    pub(crate) fn entitle(self, budget: u64, kid: Kid, floor: u64, peak: u64) -> u64 {
        let open = peak.min(budget);
        match self {
            Level::Open => open,
            Level::At(level) => part(kid.weight, level).max(floor).min(open),
            Level::Short(scale) => scale.of_floor(floor).min(open),
            Level::Scarce { scale, level } => {
                part(kid.weight, level).max(scale.of_floor(floor)).min(open)
            }
        }
    }
}

fn part(weight: u32, level: u64) -> u64 {
    narrow((u128::from(weight) * u128::from(level)) >> POINT)
}

/// Finds it, with what each child has in whole units.
pub(crate) fn find(budget: u64, kids: &(impl Iterator<Item = Kid> + Clone)) -> Level {
    search(budget, 0, !((1 << POINT) - 1), kids)
}

/// The levels that are tried on the way to it, where children want so much and have such weights;
/// the last one is found again. In whole units of the budget.
#[must_use]
pub fn tried(budget: u64, wants: &[(u64, u32)]) -> Vec<u64> {
    let kid = |&(most, weight): &(u64, u32)| Kid { floor: 0, least: 0, most, weight };
    let weight = wants.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let mut levels = Vec::new();
    let grain = !((1 << POINT) - 1);
    let last = root((budget, 0, weight, grain), &wants.iter().map(kid), |level| levels.push(level));
    levels.push(u128::from(last));
    levels.into_iter().map(|level| narrow(level >> POINT)).collect()
}

/// The same from where it was, which is near, and in whole units for the sum alone: where all
/// children rise by a unit at the same level, the sum has steps that Newton cannot see.
pub(crate) fn follow(budget: u64, was: u64, kids: &(impl Iterator<Item = Kid> + Clone)) -> Level {
    search(budget, was, u128::MAX, kids)
}

/// `start`: where to begin, or zero; `grain`: the bits of a part that count, in 2^-16.
fn search(
    budget: u64,
    start: u64,
    grain: u128,
    kids: &(impl Iterator<Item = Kid> + Clone),
) -> Level {
    let (mut most, mut least, mut weight, mut bare) = (0_u64, 0_u64, 0_u64, 0_u64);
    for kid in kids.clone() {
        most = most.saturating_add(kid.most);
        least = least.saturating_add(kid.least);
        weight += if kid.most > 0 { u64::from(kid.weight) } else { 0 };
        bare = bare.saturating_add(if kid.floor == 0 { kid.most } else { 0 });
    }
    if most <= budget {
        return Level::Open;
    }
    if bare > 0 && least > budget - bare.min(budget / 100) {
        let scale = Scale::of(budget, kids);
        let scaled = |kid: Kid| Kid { least: scale.of_floor(kid.floor).min(kid.most), ..kid };
        let by = (budget, start, weight, grain);
        let level = root(by, &kids.clone().map(scaled), |_| {});
        return Level::Scarce { scale, level };
    }
    if least >= budget {
        return Level::Short(Scale::fit(budget, kids));
    }
    Level::At(root((budget, start, weight, grain), kids, |_| {}))
}

/// The level at which children have all of the budget. `tries` is told each level that is tried.
fn root(
    (budget, start, weight, grain): (u64, u64, u64, u128),
    kids: &(impl Iterator<Item = Kid> + Clone),
    mut tries: impl FnMut(u128),
) -> u64 {
    let goal = u128::from(budget) << POINT;
    let (mut low, mut high) = (0_u128, goal);
    let even = high / u128::from(weight.max(1));
    let mut level = if start == 0 { even } else { u128::from(start).clamp(1, high - 1) };
    // each round halves what is left at the latest in the second next
    for _ in 0..128 {
        if high - low <= 1 {
            break;
        }
        tries(level);
        let (mut sum, mut slope) = (0_u128, 0_u64);
        for kid in kids.clone() {
            let part = (u128::from(kid.weight) * level) & grain;
            let (least, most) = (u128::from(kid.least) << POINT, u128::from(kid.most) << POINT);
            sum += part.clamp(least, most);
            slope += u64::from(kid.weight) * u64::from(least < part && part < most);
        }
        let step = goal.abs_diff(sum) / u128::from(slope.max(1));
        if sum <= goal {
            low = level;
            if step <= 1 {
                break;
            }
            level += step;
        } else {
            high = level;
            level = level.saturating_sub(step.max(1));
        }
        if slope == 0 || level <= low || level >= high {
            level = low.midpoint(high);
        }
    }
    narrow(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(budget: u64, kids: &[(u64, u64, u32)]) -> Vec<u64> {
        let kid = |at: usize| {
            let (floor, most, weight) = kids[at];
            Kid { floor, least: floor.min(most), most, weight }
        };
        let level = find(budget, &(0..kids.len()).map(kid));
        let share = |at| level.entitle(budget, kid(at), kids[at].0, u64::MAX).min(kids[at].1);
        (0..kids.len()).map(share).collect()
    }

    #[test]
    fn levels_of_small_nodes() {
        let near = |is: Vec<u64>, wanted: [u64; 3]| {
            assert!(is.iter().zip(wanted).all(|(is, w)| is.abs_diff(w) <= 1), "{is:?} {wanted:?}");
        };
        near(shares(50, &[(0, 10, 1), (0, 20, 1), (0, 30, 1)]), [10, 20, 20]);
        near(shares(100, &[(60, 100, 1), (0, 100, 1), (0, 100, 3)]), [60, 10, 30]);
        near(shares(100, &[(150, 500, 1), (50, 500, 1), (0, 0, 1)]), [75, 25, 0]);
        near(shares(1_000, &[(1_500, 5_000, 1), (500, 5_000, 1), (0, 5_000, 1)]), [742, 247, 10]);
        near(shares(100, &[(0, 10, 1), (0, 20, 1), (0, 30, 1)]), [10, 20, 30]);
        // who wants less than its scaled guarantee has all it wants, beside others that have none
        near(shares(1_000, &[(1_500, 5_000, 1), (400, 10, 1), (600, 5_000, 1)]), [707, 10, 283]);
        near(shares(1_000, &[(1_500, 5_000, 1), (400, 10, 1), (0, 5_000, 1)]), [980, 10, 10]);
    }

    #[test]
    fn many_alike_are_followed_from_both_sides() {
        // half of them want more than their part: their parts rise all at once, a unit each
        let kid = |at: usize| Kid {
            floor: 0,
            least: 0,
            most: if at.is_multiple_of(2) { 900 } else { 5_000 },
            weight: 1,
        };
        let budget = 2_048 * 900 + 2_048 * 1_500 + 7;
        for was in [0, 1, 1_400 << POINT, 1_501 << POINT, 4_000 << POINT, u64::MAX >> 3] {
            let level = follow(budget, was, &(0..4_096).map(kid));
            assert_eq!(level, Level::At((1_500 << POINT) + (7 << POINT) / 2_048), "{was}");
        }
    }

    #[test]
    fn steps_that_would_swing_find_it() {
        // flat, then steep, then flat: Newton alone jumps from one flat end to the other
        let mut kids = vec![(1_000_000, 2_000_000, 10_000); 50];
        kids.push((0, u64::MAX >> 20, 1));
        let sum: u64 = shares(75_000_000, &kids).iter().sum();
        assert!((74_990_000..=75_000_000).contains(&sum), "{sum}");
    }

    #[test]
    fn steps_where_nobody_rises_find_it() {
        // where the second has its 195 and the first its guarantee still, neither rises with the
        // level: a step there is no guess, and what is left has to be halved
        let shares = |second: u32| shares(1_000, &[(800, 1_000, 1), (0, 195, second)]);
        assert!([5, 10, 20].into_iter().all(|weight| shares(weight) == [805, 195]));
    }
}
