//! Random numbers that are the same for the same seed: PCG-XSH-RR (O'Neill 2014), a linear
//! congruential generator of 64 bits whose high bits say how far the others are turned.

/// A generator; eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        let mut random = Random(0);
        random.next_u32();
        random.0 = random.0.wrapping_add(seed);
        random.next_u32();
        random
    }

    /// The next number: as a fraction of 2^32, evenly in 0..1.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        let old = self.0;
        self.0 =
            old.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[expect(clippy::cast_possible_truncation, reason = "the low half is what is meant")]
        let mixed = (((old >> 18) ^ old) >> 27) as u32;
        mixed.rotate_right((old >> 59) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_neighbouring_seeds_are_even_and_differ() {
        for seed in 0..8 {
            let (mut a, mut b) = (Random::new(seed), Random::new(seed + 1));
            let mut boxes = [0u32; 16];
            let mut alike = 0;
            for _ in 0..16_000 {
                let (x, y) = (a.next_u32(), b.next_u32());
                boxes[(x >> 28) as usize] += 1;
                alike += u32::from(x >> 28 == y >> 28);
            }
            // 1 000 each, five standard deviations of 31
            assert!(boxes.iter().all(|n| n.abs_diff(1_000) < 155), "{seed}: {boxes:?}");
            assert!(alike.abs_diff(1_000) < 155, "{seed}: {alike}");
        }
    }
}
