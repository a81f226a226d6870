//! A frame is a token: the right to touch one buffer of a pool. It cannot be copied, so that a
//! buffer has one owner at a time without a reference count; it holds no bytes, so that moving it
//! is free.

/// The right to touch one buffer of a [`Pool`](crate::Pool), or of one of several that work over
/// the same memory: it may go from thread to thread by a [`ring`](crate::ring()). It goes back by
/// [`Pool::give`](crate::Pool::give); one that is dropped instead is a buffer lost.
#[must_use = "a frame that is dropped is a buffer lost: give it back to its pool"]
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    index: u32,
    at: u16,
    len: u16,
}

impl Frame {
    /// What stands in the empty places of a burst; never handed out.
    pub(crate) const NONE: Frame = Frame { index: u32::MAX, at: 0, len: 0 };

    pub(crate) const fn new(index: u32, at: u16, len: u16) -> Self {
        Frame { index, at, len }
    }

    /// Gives up the token for its numbers: buffer, offset, length. For io, which hands the buffer
    /// to the kernel; [`Pool::frame_from`](crate::Pool::frame_from) is the way back.
    #[must_use]
    pub const fn into_parts(self) -> (u32, u16, u16) {
        (self.index, self.at, self.len)
    }

    /// The same as one word, for a ring; [`Frame::from_word`] is the way back.
    pub(crate) const fn into_word(self) -> u64 {
        (self.index as u64) << 32 | (self.at as u64) << 16 | self.len as u64
    }

    /// The frame that became this word, once: two of them would be two tokens for one buffer.
    pub(crate) const fn from_word(word: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = word.to_be_bytes();
        let index = u32::from_be_bytes([a, b, c, d]);
        Frame { index, at: u16::from_be_bytes([e, f]), len: u16::from_be_bytes([g, h]) }
    }

    pub(crate) const fn bounds(&self) -> (u16, u16) {
        (self.at, self.len)
    }

    /// Bytes of the frame.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a frame without bytes is no case of its own")]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Number of the buffer in its pool.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Where in the buffer the frame begins.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at as usize
    }
}

const _: () = assert!(size_of::<Frame>() == 8);
