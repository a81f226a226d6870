//! A bit for each of many: who has sent something, whose level is to be found again. Looking for
//! the next costs a word for 64 of them, so who is idle costs nothing to speak of.

#[derive(Clone, Debug)]
pub(super) struct Marks(Box<[u64]>);

/// How many share a word.
pub(super) const WORD: u32 = u64::BITS;

impl Marks {
    pub(super) fn new(count: usize) -> Marks {
        Marks(vec![0; count.div_ceil(WORD as usize)].into())
    }

    pub(super) fn set(&mut self, at: u32) {
        if let Some(word) = self.0.get_mut((at / WORD) as usize) {
            *word |= 1 << (at % WORD);
        }
    }

    pub(super) fn clear(&mut self, at: u32) {
        if let Some(word) = self.0.get_mut((at / WORD) as usize) {
            *word &= !(1 << (at % WORD));
        }
    }

    /// Marks all that another has marked.
    pub(super) fn add(&mut self, other: &Marks) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    /// The marks of a word, and none from now on.
    pub(super) fn take(&mut self, word: u32) -> u64 {
        self.0.get_mut(word as usize).map_or(0, std::mem::take)
    }

    pub(super) fn word(&self, word: u32) -> u64 {
        self.0.get(word as usize).copied().unwrap_or(0)
    }

    /// How many words it has.
    pub(super) fn words(&self) -> u32 {
        crate::tree::number(self.0.len())
    }

    /// Those from `from` up to `to`.
    pub(super) fn within(&self, [from, to]: [u32; 2]) -> impl Iterator<Item = u32> + Clone + '_ {
        let words = if from < to { from / WORD..to.div_ceil(WORD) } else { 0..0 };
        words.flat_map(move |word| {
            let begin = word * WORD;
            let skipped = u64::MAX << from.saturating_sub(begin);
            let cut = u64::MAX >> (begin + WORD).saturating_sub(to);
            Bits(self.word(word) & skipped & cut).map(move |bit| begin + bit)
        })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// The bits of a word, the lowest first.
#[derive(Clone)]
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let bit = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (bit < WORD).then_some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_within_any_range() {
        let mut marks = Marks::new(200);
        let set = [0, 5, 63, 64, 127, 128, 199];
        set.iter().for_each(|&at| marks.set(at));
        marks.set(1_000);
        for from in 0..=200 {
            for to in 0..=200 {
                let found: Vec<u32> = marks.within([from, to]).collect();
                let wanted = set.iter().copied().filter(|at| (from..to).contains(at));
                assert_eq!(found, wanted.collect::<Vec<_>>(), "{from} {to}");
            }
        }
        marks.clear(64);
        assert_eq!((marks.take(1), marks.word(1)), (1 << 63, 0));
    }
}
