//! Which buffers the kernel holds of a port: one bit each. It costs an instruction or two per frame
//! and buys two things: a closed port knows what to give back, and a number that the kernel gives
//! back twice cannot become two frames with one buffer.

#[derive(Debug)]
pub(crate) struct Held {
    bits: Vec<u64>,
    count: usize,
}

impl Held {
    /// For so many buffers, none of them held.
    pub(crate) fn none_of(buffers: usize) -> Held {
        Held { bits: vec![0; buffers.div_ceil(64)], count: 0 }
    }

    /// The kernel has it now. `false` if there is no such buffer or it had it already.
    #[inline]
    pub(crate) fn gave(&mut self, index: u32) -> bool {
        let Some(word) = self.bits.get_mut(index as usize / 64) else { return false };
        let bit = 1 << (index % 64);
        let new = *word & bit == 0;
        *word |= bit;
        self.count += usize::from(new);
        new
    }

    /// The kernel has it no longer. `false` if it had it not.
    #[inline]
    pub(crate) fn got_back(&mut self, index: u32) -> bool {
        let Some(word) = self.bits.get_mut(index as usize / 64) else { return false };
        let bit = 1 << (index % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        self.count -= usize::from(was);
        was
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// All that are held, each once; none is afterwards.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.count = 0;
        self.bits.iter_mut().zip(0u32..).flat_map(|(word, number)| {
            let mut left = std::mem::take(word);
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(number * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_given_and_comes_back_once() {
        let mut held = Held::none_of(130);
        assert!(held.gave(0) && held.gave(63) && held.gave(64) && held.gave(129));
        assert!(!held.gave(64), "twice");
        assert!(!held.gave(192), "there is no such buffer");
        assert!(held.got_back(63) && !held.got_back(63) && !held.got_back(9_999));
        assert_eq!(held.count(), 3);
        assert_eq!(held.take_all().collect::<Vec<_>>(), [0, 64, 129]);
        assert_eq!((held.count(), held.take_all().count()), (0, 0));
    }
}
