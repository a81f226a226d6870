//! Ranges of numbers (ports, lengths, VLANs, MACs) as steps: sorted boundaries between which the
//! same rules match. Where the boundaries are small numbers, the steps are written out, one place
//! per number, so that a look-up is one load.

use std::collections::BTreeMap;

use crate::sets::Maker;

/// Which set of rules a number leads to. Behind the last boundary it is set 0.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The set of each number, up to the last boundary, if that is small.
    direct: Box<[u32]>,
    /// Else where each step begins; the first begins at 0.
    starts: Box<[u64]>,
    sets: Box<[u32]>,
}

/// Numbers below may be written out: those of 16 bits.
const DIRECT: u64 = 1 << 16;

impl Steps {
    /// From ranges that include both ends, each with the rule that asks for it.
    pub(crate) fn new(ranges: &[(u64, u64, u32)], maker: &mut Maker) -> Self {
        let mut events: BTreeMap<u64, Vec<(u32, bool)>> = BTreeMap::new();
        for &(first, last, rule) in ranges.iter().filter(|(first, last, _)| first <= last) {
            events.entry(first).or_default().push((rule, true));
            events.entry(last + 1).or_default().push((rule, false));
        }
        let mut open: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut starts, mut sets) = (vec![0], vec![0]);
        for (at, changes) in events {
            for (rule, begins) in changes {
                let count = open.entry(rule).or_default();
                *count = if begins { *count + 1 } else { *count - 1 };
            }
            open.retain(|_, count| *count > 0);
            let set = maker.set(open.keys().copied().collect());
            if at == 0 {
                sets[0] = set;
            } else if sets.last() != Some(&set) {
                starts.push(at);
                sets.push(set);
            }
        }
        // all ranges have ended there: the last set is 0
        if starts.last().is_some_and(|&last| last > DIRECT) {
            return Steps { direct: [].into(), starts: starts.into(), sets: sets.into() };
        }
        let widths = starts.windows(2).map(|pair| usize::try_from(pair[1] - pair[0]).unwrap_or(0));
        let direct = sets.iter().zip(widths).flat_map(|(&set, n)| std::iter::repeat_n(set, n));
        Steps { direct: direct.collect(), starts: [0].into(), sets: [0].into() }
    }

    #[inline]
    pub(crate) fn find(&self, number: u64) -> u32 {
        match usize::try_from(number).ok().and_then(|number| self.direct.get(number)) {
            Some(&set) => set,
            None => self.search(number),
        }
    }

    #[inline(never)]
    fn search(&self, number: u64) -> u32 {
        self.sets[self.starts[1..].partition_point(|&start| start <= number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets::Blocks;

    /// The first rules that a number leads to, as bits.
    fn check(ranges: &[(u64, u64, u32)], expected: &[(u64, u64)]) {
        let mut blocks = Blocks::new();
        let mut maker = Maker::new(&mut blocks, 3, |_| false);
        let steps = Steps::new(ranges, &mut maker);
        let sets = maker.finish();
        let blocks = blocks.finish();
        for &(number, rules) in expected {
            let block = sets.list(steps.find(number))[0];
            assert_eq!(blocks[block as usize].0[0], rules, "{number}");
        }
    }

    #[test]
    fn overlapping_ranges_step_up_and_down() {
        let ranges = [(10, 20, 0), (15, 15, 1), (0, 12, 2), (9, 3, 1)];
        let small = [(0, 4), (9, 4), (10, 5), (12, 5), (13, 1), (15, 3), (20, 1), (21, 0)];
        check(&ranges, &small);
        check(&ranges, &[(65_536, 0), (u64::MAX, 0)]);
    }

    #[test]
    fn large_numbers_are_searched() {
        let ranges = [(0, 3, 2), (1 << 20, (1 << 20) + 1, 0), (1 << 20, 1 << 40, 1)];
        let million = 1 << 20;
        check(&ranges, &[(0, 4), (3, 4), (4, 0), (million - 1, 0), (million, 3)]);
        check(&ranges, &[(million + 1, 3), (million + 2, 2), (1 << 40, 2), (u64::MAX, 0)]);
    }

    #[test]
    fn the_last_number_of_16_bits_has_its_place() {
        check(&[(0, 65_535, 1)], &[(0, 2), (65_535, 2), (65_536, 0)]);
        check(&[(65_535, 65_535, 1)], &[(65_534, 0), (65_535, 2), (65_536, 0)]);
    }

    #[test]
    fn a_rule_may_ask_twice_for_the_same_number() {
        check(&[(1, 5, 0), (3, 9, 0)], &[(7, 1), (10, 0)]);
    }
}
