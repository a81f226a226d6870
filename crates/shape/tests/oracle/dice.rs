//! Random numbers from a seed (SplitMix64, Steele and others 2014).

#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `least` to `most`, both possible.
    pub(crate) fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// True once in `of`.
    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        self.next().is_multiple_of(of)
    }

    /// Every order of magnitude from `least` to `most` is as likely.
    pub(crate) fn magnitude(&mut self, least: u64, most: u64) -> u64 {
        let part = self.next() as f64 / u64::MAX as f64;
        let (low, high) = ((least as f64).ln(), (most as f64).ln());
        ((low + (high - low) * part).exp() as u64).clamp(least, most)
    }
}
