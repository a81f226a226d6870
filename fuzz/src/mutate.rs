//! Changing bytes at random, from a seed: the same seed gives the same inputs.

/// SplitMix64: small, and good enough to choose bytes with.
pub struct Dice(u64);

impl Dice {
    /// Dice that fall in the order of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`; 0 when there is none.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % (n.max(1) as u64)).expect("it is below a usize")
    }
}

/// Longer inputs are cut: they are slower and find no more.
const LONGEST: usize = 16 << 10;
/// Numbers where code tends to go wrong: edges of their sizes, and what formats start with.
const MAGIC: [u64; 16] = [
    0,
    1,
    4,
    0x7f,
    0x80,
    0xff,
    0x0600,
    0x7fff,
    0xffff,
    0x0004_0000,
    0x0004_0001,
    0x7fff_ffff,
    0xffff_fffc,
    0xffff_ffff,
    0x1a2b_3c4d,
    u64::MAX,
];

/// One to eight changes to `bytes`; `other` is an input to take pieces from.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    for _ in 0..=dice.below(8) {
        let at = dice.below(bytes.len() + 1);
        match dice.below(8) {
            0 => flip(bytes, dice),
            1 => replace(bytes, at, &[dice.next() as u8]),
            2 => {
                let run = vec![dice.next() as u8; 1 + dice.below(16)];
                insert(bytes, at, &run);
            }
            3 => {
                let end = (at + 1 + dice.below(32)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => insert(bytes, at, piece(other, dice)),
            5 => replace(bytes, at, piece(other, dice)),
            6 => magic(bytes, at, dice),
            // rarely: it makes all later changes meet less
            _ if dice.below(8) == 0 => bytes.truncate(at),
            _ => {
                let copy = piece(bytes, dice).to_vec();
                insert(bytes, at, &copy);
            }
        }
    }
    bytes.truncate(LONGEST);
}

fn flip(bytes: &mut [u8], dice: &mut Dice) {
    let at = dice.below(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << dice.below(8);
    }
}

fn magic(bytes: &mut [u8], at: usize, dice: &mut Dice) {
    let number = MAGIC[dice.below(MAGIC.len())];
    let size = 1 << dice.below(4);
    if dice.below(2) == 0 {
        replace(bytes, at, &number.to_le_bytes()[..size]);
    } else {
        replace(bytes, at, &number.to_be_bytes()[8 - size..]);
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    bytes.splice(at..at, new.iter().copied());
}

fn replace(bytes: &mut [u8], at: usize, new: &[u8]) {
    for (to, from) in bytes[at..].iter_mut().zip(new) {
        *to = *from;
    }
}

fn piece<'b>(bytes: &'b [u8], dice: &mut Dice) -> &'b [u8] {
    let start = dice.below(bytes.len());
    let end = (start + 1 + dice.below(64)).min(bytes.len());
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_changes() {
        let run = |seed| {
            let mut dice = Dice::new(seed);
            let mut bytes = b"what is changed".to_vec();
            for _ in 0..100 {
                mutate(&mut bytes, b"something else", &mut dice);
            }
            bytes
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn nothing_can_be_changed_and_nothing_grows_without_end() {
        let mut dice = Dice::new(7);
        let mut bytes = Vec::new();
        for _ in 0..20_000 {
            mutate(&mut bytes, &[], &mut dice);
            assert!(bytes.len() <= LONGEST);
        }
    }
}
