//! Sets of rules, each kept once. A set is a row of bits of which most words are empty: only the
//! others are stored, behind a summary with one bit per word. The rules that do not ask for a
//! field at all are in each of its sets; they are kept apart, in full, once per field.

use std::collections::BTreeMap;

/// The sets of one field.
#[derive(Debug)]
pub(crate) struct Sets {
    /// Rules that do not ask for this field, and which of their words are not empty.
    any: Box<[u64]>,
    any_summary: Box<[u64]>,
    /// Where each set begins in `words`: its summary, then its words that are not empty.
    starts: Vec<u32>,
    words: Vec<u64>,
}

/// Makes the sets of one field; set 0 is the empty one.
pub(crate) struct Maker {
    sets: Sets,
    known: BTreeMap<Vec<u32>, u32>,
    members: Vec<Vec<u32>>,
}

/// One set of a field, for a look-up.
#[derive(Clone, Copy)]
pub(crate) struct Set<'i> {
    any: &'i [u64],
    any_summary: &'i [u64],
    summary: &'i [u64],
    words: &'i [u64],
}

/// Words that hold `bits` bits.
pub(crate) fn words_for(bits: usize) -> usize {
    bits.div_ceil(64)
}

impl Maker {
    /// For `bits` rules, of which those that `is_any` says do not ask for the field.
    pub(crate) fn new(bits: usize, is_any: impl Fn(usize) -> bool) -> Self {
        let mut any = vec![0; words_for(bits)];
        let mut any_summary = vec![0; words_for(any.len())];
        for bit in (0..bits).filter(|&bit| is_any(bit)) {
            any[bit / 64] |= 1 << (bit % 64);
            any_summary[bit / 4096] |= 1 << (bit / 64 % 64);
        }
        let (any, any_summary) = (any.into(), any_summary.into());
        let sets = Sets { any, any_summary, starts: Vec::new(), words: Vec::new() };
        let mut maker = Maker { sets, known: BTreeMap::new(), members: Vec::new() };
        maker.set(Vec::new());
        maker
    }

    /// The number of the set with these members, in order and each once.
    pub(crate) fn set(&mut self, members: Vec<u32>) -> u32 {
        if let Some(&known) = self.known.get(&members) {
            return known;
        }
        let number = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        self.store(&members);
        self.known.insert(members.clone(), number);
        self.members.push(members);
        number
    }

    /// The number of a set with some more members.
    pub(crate) fn with(&mut self, set: u32, more: &[u32]) -> u32 {
        let mut members = self.members[set as usize].clone();
        members.extend(more);
        members.sort_unstable();
        members.dedup();
        self.set(members)
    }

    fn store(&mut self, members: &[u32]) {
        let sets = &mut self.sets;
        let start = sets.words.len();
        sets.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
        sets.words.resize(start + sets.any_summary.len(), 0);
        let mut last = usize::MAX;
        for &bit in members {
            let (word, bit) = (bit as usize / 64, bit % 64);
            if word != last {
                sets.words[start + word / 64] |= 1 << (word % 64);
                sets.words.push(0);
                last = word;
            }
            if let Some(word) = sets.words.last_mut() {
                *word |= 1 << bit;
            }
        }
    }

    pub(crate) fn finish(self) -> Sets {
        self.sets
    }
}

impl Sets {
    /// How many sets there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Set<'_> {
        let start = self.starts.get(number as usize).copied().unwrap_or(0) as usize;
        let (summary, words) = self.words[start..].split_at(self.any_summary.len());
        Set { any: &self.any, any_summary: &self.any_summary, summary, words }
    }
}

impl Set<'_> {
    /// Which of 64 words from `64 * n` on are not empty.
    #[inline]
    pub(crate) fn summary(&self, n: usize) -> u64 {
        self.any_summary[n] | self.summary[n]
    }

    #[inline]
    pub(crate) fn word(&self, n: usize) -> u64 {
        let (row, bit) = (n / 64, n % 64);
        let summary = self.summary[row];
        if summary >> bit & 1 == 0 {
            return self.any[n];
        }
        let before: u32 = self.summary[..row].iter().map(|word| word.count_ones()).sum();
        let rank = before + (summary & ((1 << bit) - 1)).count_ones();
        self.any[n] | self.words[rank as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_its_members_and_those_that_do_not_ask() {
        let mut maker = Maker::new(10_000, |bit| bit == 5_000);
        let first = maker.set(vec![3, 64, 9_999]);
        assert_eq!(maker.set(vec![3, 64, 9_999]), first);
        let more = maker.with(first, &[70, 3]);
        let sets = maker.finish();
        assert_eq!(sets.len(), 3);
        let members = |number| -> Vec<usize> {
            let set = sets.get(number);
            (0..10_000).filter(|bit| set.word(bit / 64) >> (bit % 64) & 1 == 1).collect()
        };
        assert_eq!(members(0), [5_000]);
        assert_eq!(members(first), [3, 64, 5_000, 9_999]);
        assert_eq!(members(more), [3, 64, 70, 5_000, 9_999]);
        assert_eq!(sets.get(first).summary(0) & 7, 3);
    }
}
