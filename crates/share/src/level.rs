//! The level of one node, exactly: a Newton step where that stays between what is known to be too
//! low and too high, half way where it does not. No sorting and no memory, so it also serves those
//! who compute all shares every few milliseconds.

use crate::scale::narrow;

/// Bits behind the point of a level.
pub(crate) const POINT: u32 = 16;

/// A child as the level sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kid {
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
    /// What they have in any case, so much, is more than there is.
    Short(u64),
}

impl Level {
    /// What a child may have of `budget` at most, whatever it wants now.
    pub(crate) fn entitle(self, budget: u64, kid: Kid, floor: u64, peak: u64) -> u64 {
        let open = peak.min(budget);
        match self {
            Level::Open => open,
            Level::At(level) => part(kid.weight, level).max(floor).min(open),
            Level::Short(sum) => {
                let wide = u128::from(kid.least) * u128::from(budget) / u128::from(sum.max(1));
                narrow(wide).min(open)
            }
        }
    }
}

fn part(weight: u32, level: u64) -> u64 {
    narrow((u128::from(weight) * u128::from(level)) >> POINT)
}

/// Finds it for `count` children.
pub(crate) fn find(budget: u64, count: usize, kid: impl Fn(usize) -> Kid) -> Level {
    let (mut most, mut least, mut weight) = (0_u64, 0_u64, 0_u64);
    for kid in (0..count).map(&kid) {
        most = most.saturating_add(kid.most);
        least = least.saturating_add(kid.least);
        weight += if kid.most > 0 { u64::from(kid.weight) } else { 0 };
    }
    if most <= budget {
        return Level::Open;
    }
    if least >= budget {
        return Level::Short(least);
    }
    let (mut low, mut high) = (0_u128, u128::from(budget) << POINT);
    let mut level = high / u128::from(weight.max(1));
    // each round halves what is left at the latest in the second next
    for _ in 0..128 {
        if high - low <= 1 {
            break;
        }
        let (mut sum, mut slope) = (0_u64, 0_u64);
        for kid in (0..count).map(&kid) {
            let part = part(kid.weight, narrow(level));
            sum = sum.saturating_add(part.clamp(kid.least, kid.most));
            slope += u64::from(kid.weight) * u64::from(kid.least < part && part < kid.most);
        }
        let step = (u128::from(budget.abs_diff(sum)) << POINT) / u128::from(slope.max(1));
        if sum <= budget {
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
    Level::At(narrow(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(budget: u64, kids: &[(u64, u64, u32)]) -> Vec<u64> {
        let kid = |at: usize| {
            let (least, most, weight) = kids[at];
            Kid { least: least.min(most), most, weight }
        };
        let level = find(budget, kids.len(), kid);
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
        near(shares(100, &[(150, 500, 1), (50, 500, 1), (0, 500, 1)]), [75, 25, 0]);
        near(shares(100, &[(0, 10, 1), (0, 20, 1), (0, 30, 1)]), [10, 20, 30]);
    }

    #[test]
    fn steps_that_would_swing_find_it() {
        // flat, then steep, then flat: Newton alone jumps from one flat end to the other
        let mut kids = vec![(1_000_000, 2_000_000, 10_000); 50];
        kids.push((0, u64::MAX >> 20, 1));
        let sum: u64 = shares(75_000_000, &kids).iter().sum();
        assert!((74_990_000..=75_000_000).contains(&sum), "{sum}");
    }
}
