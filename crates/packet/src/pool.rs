//! One piece of memory cut into buffers of one size, and a stack of those that are free. The
//! memory is our own or lent by io (which maps it for the kernel). The stack hands out the buffer
//! that came back last, which is the one most likely still in the cache.
//!
//! # One memory, several pools
//!
//! The memory belongs to a link. With several cores each has an engine with a pool of its own, its
//! part: all parts work over the same buffers by the same numbers, and each has a stack of its own
//! of free ones, so that no thread waits for another. A frame that a [`ring`](crate::ring()) takes
//! from one thread to another keeps its buffer, which is given back wherever the frame ends;
//! [`Spares`](crate::Spares) brings buffers back to a part that runs short.
//!
//! What keeps two threads out of one buffer is the token alone: there is one for each buffer,
//! either on one part's stack or in one hand. Safe code cannot share memory that it writes, so each
//! part sees the memory at addresses of its own: io maps the same pages once for each part.

use crate::{Frame, MemoryId};

/// Buffers of one size, or one part of them. It never grows, and nothing here allocates once it is
/// made.
#[derive(Debug)]
pub struct Pool {
    memory: Memory,
    id: MemoryId,
    free: Vec<u32>,
    capacity: usize,
    /// Bytes from one buffer to the next.
    stride: usize,
    /// Bytes of a buffer that a frame can use: what 16 bits can say.
    usable: u16,
}

#[derive(Debug)]
enum Memory {
    Owned(Box<[u8]>),
    Lent(&'static mut [u8]),
}

impl Pool {
    /// A pool with memory of its own: `frames` buffers of `bytes_each`.
    #[must_use]
    pub fn new(frames: usize, bytes_each: usize) -> Self {
        let memory = vec![0; frames.saturating_mul(bytes_each)].into_boxed_slice();
        Pool::over(Memory::Owned(memory), bytes_each)
    }

    /// A pool over memory that the caller maps, cut into as many buffers as fit.
    #[must_use]
    pub fn lent(memory: &'static mut [u8], bytes_each: usize) -> Self {
        Pool::over(Memory::Lent(memory), bytes_each)
    }

    /// Pools over one memory: each gets a view of it, which shows the same bytes as all others, as
    /// `Umem::with_pools` of io maps them. The free buffers are dealt out in equal parts.
    #[must_use]
    pub fn parted(views: Vec<&'static mut [u8]>, bytes_each: usize) -> Vec<Pool> {
        let lent = |view| Pool::over(Memory::Lent(view), bytes_each);
        let mut pools: Vec<Pool> = views.into_iter().map(lent).collect();
        let Some(id) = pools.first().map(Pool::memory) else { return pools };
        // a buffer that one view does not show is of no use to any
        let capacity = pools.iter().map(Pool::capacity).min().unwrap_or(0);
        let parts = pools.len();
        for (part, pool) in pools.iter_mut().enumerate() {
            (pool.id, pool.capacity) = (id, capacity);
            let own = capacity * part / parts..capacity * (part + 1) / parts;
            // what is left of the stack has room for the buffers of all parts
            pool.free.retain(|&index| own.contains(&(index as usize)));
        }
        pools
    }

    fn over(memory: Memory, bytes_each: usize) -> Self {
        let stride = bytes_each.max(1);
        let capacity = u32::try_from(memory.bytes().len() / stride).unwrap_or(u32::MAX - 1);
        Pool {
            memory,
            id: MemoryId::unique(),
            free: (0..capacity).rev().collect(),
            capacity: capacity as usize,
            stride,
            usable: u16::try_from(bytes_each).unwrap_or(u16::MAX),
        }
    }

    /// A free buffer as a frame that covers all of it; [`Pool::resize`] cuts it to what was
    /// written.
    pub fn take(&mut self) -> Option<Frame> {
        self.free.pop().map(|index| Frame::new(index, 0, self.usable))
    }

    /// A frame with these bytes, unless no buffer is free or they are too many for one.
    pub fn fill(&mut self, bytes: &[u8]) -> Option<Frame> {
        let len = u16::try_from(bytes.len()).ok().filter(|&len| len <= self.usable)?;
        let frame = Frame::new(self.free.pop()?, 0, len);
        self.bytes_mut(&frame).copy_from_slice(bytes);
        Some(frame)
    }

    /// A second frame with the same bytes at the same place, for a broadcast.
    pub fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        let (from, len) = self.place(frame);
        let (at, bytes) = frame.bounds();
        let twin = Frame::new(self.free.pop()?, at, bytes);
        let (to, _) = self.place(&twin);
        if let Some(memory) = self.memory.bytes_mut().get_mut(..from.max(to) + len) {
            memory.copy_within(from..from + len, to);
        }
        Some(twin)
    }

    /// Takes a frame back; its buffer is free again.
    pub fn give(&mut self, frame: Frame) {
        let (index, ..) = frame.into_parts();
        let ours = (index as usize) < self.capacity && self.free.len() < self.capacity;
        debug_assert!(ours, "a frame came back twice, or to a pool that it is not of");
        if ours {
            self.free.push(index);
        }
    }

    /// Moves the bounds of a frame within its buffer. `false`, and nothing changed, if they do not
    /// fit.
    pub fn resize(&self, frame: &mut Frame, at: usize, len: usize) -> bool {
        match self.within(at, len) {
            Some((at, len)) => {
                *frame = Frame::new(frame.index(), at, len);
                true
            }
            None => false,
        }
    }

    /// The way back from [`Frame::into_parts`]: a token for a buffer that the kernel held, or
    /// `None` if there is no such place.
    ///
    /// The contract: a buffer has one owner. Whoever calls this must hold the number `index` from
    /// `into_parts` (or from the kernel, to which it was given so), and must not use it again. Two
    /// tokens for one buffer break no memory, but their frames overwrite each other; with parts on
    /// two threads, even while one of them is being read.
    pub fn frame_from(&self, index: u32, at: usize, len: usize) -> Option<Frame> {
        let (at, len) = self.within(at, len)?;
        ((index as usize) < self.capacity).then(|| Frame::new(index, at, len))
    }

    /// The bytes of a frame; none if it is of another pool.
    #[must_use]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let (from, len) = self.place(frame);
        self.memory.bytes().get(from..from + len).unwrap_or_default()
    }

    /// The bytes of a frame, to change them.
    pub fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let (from, len) = self.place(frame);
        self.memory.bytes_mut().get_mut(from..from + len).unwrap_or_default()
    }

    /// Which memory the buffers lie in.
    #[must_use]
    #[inline]
    pub fn memory(&self) -> MemoryId {
        self.id
    }

    /// Buffers that are free here.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Buffers in all, those of other parts of the same memory among them: every frame's number is
    /// below.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes that a frame can have.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.usable as usize
    }

    fn within(&self, at: usize, len: usize) -> Option<(u16, u16)> {
        let fits = at.checked_add(len)? <= self.usable as usize;
        fits.then_some((u16::try_from(at).ok()?, u16::try_from(len).ok()?))
    }

    #[inline]
    fn place(&self, frame: &Frame) -> (usize, usize) {
        (frame.index() as usize * self.stride + frame.at(), frame.len())
    }
}

impl Memory {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Owned(bytes) => bytes,
            Memory::Lent(bytes) => bytes,
        }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Owned(bytes) => bytes,
            Memory::Lent(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let mut pool = Pool::new(2, 64);
        let (a, b) = (pool.fill(b"one").unwrap(), pool.fill(b"two").unwrap());
        assert!(pool.take().is_none());
        assert_eq!((pool.bytes(&a), pool.bytes(&b)), (&b"one"[..], &b"two"[..]));
        pool.give(a);
        assert_eq!((pool.free(), pool.capacity()), (1, 2));
        let c = pool.take().unwrap();
        assert_eq!(c.len(), 64);
        pool.give(b);
        pool.give(c);
        assert!(pool.fill(&[0; 65]).is_none());
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_its_own_buffer() {
        let mut pool = Pool::new(2, 64);
        let mut frame = pool.fill(b"..hello").unwrap();
        assert!(pool.resize(&mut frame, 2, 5));
        let twin = pool.copy(&frame).unwrap();
        pool.bytes_mut(&frame).fill(b'x');
        assert_eq!((pool.bytes(&twin), twin.at()), (&b"hello"[..], 2));
        assert!(pool.copy(&twin).is_none());
    }

    #[test]
    fn bounds_outside_the_buffer_are_refused() {
        let pool = Pool::lent(Box::leak(vec![0; 200].into_boxed_slice()), 64);
        assert_eq!(pool.capacity(), 3);
        assert!(pool.frame_from(3, 0, 1).is_none());
        assert!(pool.frame_from(2, 60, 5).is_none());
        assert!(pool.frame_from(2, usize::MAX, 5).is_none());
        let mut frame = pool.frame_from(2, 60, 4).unwrap();
        assert!(!pool.resize(&mut frame, 1, 64));
        assert_eq!(frame.into_parts(), (2, 60, 4));
    }

    #[test]
    fn parts_share_the_buffers_and_any_of_them_takes_a_frame_back() {
        let views = [7, 9, 8].map(|buffers| vec![0; 64 * buffers].leak());
        let mut pools = Pool::parted(views.into(), 64);
        assert_eq!([2, 2, 3], [0, 1, 2].map(|part| pools[part].free()));
        assert!(pools.iter().all(|pool| pool.capacity() == 7));
        assert!(pools.iter().all(|pool| pool.memory() == pools[0].memory()));
        assert_ne!(pools[0].memory(), Pool::new(7, 64).memory());
        let frames: Vec<Frame> =
            pools.iter_mut().flat_map(|pool| std::iter::from_fn(|| pool.take())).collect();
        assert!(frames.iter().map(Frame::index).eq(0..7));
        frames.into_iter().for_each(|frame| pools[1].give(frame));
        assert_eq!([0, 7, 0], [0, 1, 2].map(|part| pools[part].free()));
        assert!(Pool::parted(Vec::new(), 64).is_empty());
    }

    #[test]
    fn a_frame_of_another_pool_has_no_bytes() {
        let mut large = Pool::new(9, 64);
        let frames: Vec<_> = (0..9).filter_map(|_| large.take()).collect();
        let mut small = Pool::new(1, 64);
        assert!(small.bytes(&frames[8]).is_empty());
        assert!(small.bytes_mut(&frames[8]).is_empty());
    }
}
