//! Ranges of numbers (ports, lengths, VLANs, MACs) as steps: sorted boundaries between which the
//! same rules match.

use std::collections::BTreeMap;

use crate::sets::Maker;

/// Which set of rules a number leads to.
#[derive(Debug)]
pub(crate) struct Steps {
    /// Where each step begins; the first begins at 0.
    starts: Box<[u64]>,
    sets: Box<[u32]>,
}

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
        Steps { starts: starts.into(), sets: sets.into() }
    }

    #[inline]
    pub(crate) fn find(&self, number: u64) -> u32 {
        self.sets[self.starts[1..].partition_point(|&start| start <= number)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_step_up_and_down() {
        let mut maker = Maker::new(3, |_| false);
        let steps = Steps::new(&[(10, 20, 0), (15, 15, 1), (0, 12, 2), (9, 3, 1)], &mut maker);
        let sets = maker.finish();
        for (number, rules) in
            [(0, 4), (9, 4), (10, 5), (12, 5), (13, 1), (15, 3), (20, 1), (21, 0)]
        {
            assert_eq!(sets.get(steps.find(number)).word(0), rules, "{number}");
        }
    }

    #[test]
    fn a_rule_may_ask_twice_for_the_same_number() {
        let mut maker = Maker::new(1, |_| false);
        let steps = Steps::new(&[(1, 5, 0), (3, 9, 0)], &mut maker);
        let sets = maker.finish();
        assert_eq!(sets.get(steps.find(7)).word(0), 1);
        assert_eq!(sets.get(steps.find(10)).word(0), 0);
    }
}
