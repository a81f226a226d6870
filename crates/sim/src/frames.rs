//! The buffers of all frames in the world. They are cut from pieces that are added when needed, and
//! the one that came back last is used first, so that a run touches little memory.

use weir_units::limits::SIM_FRAMES;

/// Bytes of a buffer: what a frame can have at most.
pub(crate) const FRAME_BYTES: usize = 2_048;
/// Buffers in one piece of memory.
const PIECE: usize = 64;

/// The right to one buffer.
#[derive(Debug)]
pub(crate) struct Frame {
    index: u32,
    len: u16,
}

impl Frame {
    /// Gives the right up.
    fn into_index(self) -> u32 {
        self.index
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Frames {
    pieces: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Frames {
    /// A frame of `len` bytes with whatever was in its buffer before; `None` when all
    /// [`SIM_FRAMES`] are in use or it is too long.
    pub(crate) fn take(&mut self, len: usize) -> Option<Frame> {
        let len = u16::try_from(len).ok().filter(|len| usize::from(*len) <= FRAME_BYTES)?;
        if self.free.is_empty() {
            let from = self.pieces.len() * PIECE;
            if from >= SIM_FRAMES {
                return None;
            }
            self.pieces.push(vec![0; PIECE * FRAME_BYTES].into_boxed_slice());
            let indices = (from..from + PIECE).rev();
            self.free.extend(indices.filter_map(|index| u32::try_from(index).ok()));
        }
        Some(Frame { index: self.free.pop()?, len })
    }

    /// A frame with these bytes.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> Option<Frame> {
        let frame = self.take(bytes.len())?;
        self.bytes_mut(&frame).copy_from_slice(bytes);
        Some(frame)
    }

    /// A second frame with the same bytes.
    pub(crate) fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        let mut bytes = [0; FRAME_BYTES];
        bytes[..frame.len()].copy_from_slice(self.bytes(frame));
        self.fill(&bytes[..frame.len()])
    }

    pub(crate) fn give(&mut self, frame: Frame) {
        self.free.push(frame.into_index());
    }

    pub(crate) fn bytes(&self, frame: &Frame) -> &[u8] {
        let (piece, at) = place(frame.index);
        &self.pieces[piece][at..at + frame.len()]
    }

    pub(crate) fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let (piece, at) = place(frame.index);
        &mut self.pieces[piece][at..at + frame.len()]
    }

    /// Turns one bit over.
    pub(crate) fn flip(&mut self, frame: &Frame, bit: u32) {
        let at = bit as usize / 8;
        if let Some(byte) = self.bytes_mut(frame).get_mut(at) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    /// Buffers in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.pieces.len() * PIECE - self.free.len()
    }
}

fn place(index: u32) -> (usize, usize) {
    (index as usize / PIECE, index as usize % PIECE * FRAME_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_frames_keep_their_bytes() {
        let mut frames = Frames::default();
        let one = frames.fill(&[1, 2, 3]).unwrap();
        let two = frames.copy(&one).unwrap();
        frames.flip(&two, 8);
        assert_eq!((frames.bytes(&one), frames.bytes(&two)), (&[1, 2, 3][..], &[1, 0x82, 3][..]));
        frames.give(one);
        frames.give(two);
        assert_eq!(frames.used(), 0);
        assert!(frames.take(FRAME_BYTES + 1).is_none());
    }
}
