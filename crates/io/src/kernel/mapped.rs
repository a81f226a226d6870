//! Memory shared with the kernel. It changes under our hands, so nobody gets a reference into it:
//! words are loaded and stored as atomics, bytes are copied, and every place is checked against the
//! length. An access outside reads zeros and writes nothing, because a ring whose geometry is wrong
//! must not bring down the box.
#![expect(unsafe_code, reason = "memory that the kernel writes")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapping that is undone when it is dropped.
#[derive(Debug)]
pub(crate) struct Mapped {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and the pointer is never handed out.
unsafe impl Send for Mapped {}

impl Mapped {
    /// The memory behind a descriptor, shared with the kernel; without one, memory of our own.
    pub(crate) fn new(fd: Option<BorrowedFd<'_>>, len: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, fd) = match fd {
            Some(fd) => (libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        let anywhere = std::ptr::null_mut();
        // SAFETY: the kernel chooses the place, so no memory of ours is replaced.
        let start = unsafe { libc::mmap(anywhere, len, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapped { start, len })
    }

    /// The word at a place that 4 divides; what the kernel wrote before it is seen after it.
    #[inline]
    pub(crate) fn load(&self, at: usize) -> u32 {
        self.word(at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Writes a word at a place that 4 divides; what was written before it is seen by who sees it.
    #[inline]
    pub(crate) fn store(&self, at: usize, value: u32) {
        if let Some(word) = self.word(at) {
            word.store(value, Ordering::Release);
        }
    }

    /// The bytes at a place; zeros if it is not there.
    #[inline]
    pub(crate) fn read<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.copy(at, &mut bytes);
        bytes
    }

    /// Fills `into` from a place. `false`, and nothing copied, if it is not all there.
    #[inline]
    pub(crate) fn copy(&self, at: usize, into: &mut [u8]) -> bool {
        let Some(from) = self.place(at, into.len()) else { return false };
        // SAFETY: `place` has checked that the mapping has so many bytes there, and memory of ours
        // does not overlap a mapping of its own.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        true
    }

    /// Writes bytes to a place. `false`, and nothing written, if they do not fit.
    #[cfg(test)]
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.place(at, bytes.len()) else { return false };
        // SAFETY: as in `copy`; the mapping is writable and nobody holds a reference into it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        true
    }

    #[inline]
    fn word(&self, at: usize) -> Option<&AtomicU32> {
        let word = self.place(at, 4).filter(|_| at.is_multiple_of(4))?;
        // SAFETY: four bytes of the mapping, aligned because a mapping begins at a page; they live
        // as long as `self`, and all others reach them by atomics or by copies between turns.
        Some(unsafe { AtomicU32::from_ptr(word.cast()) })
    }

    #[inline]
    fn place(&self, at: usize, len: usize) -> Option<*mut u8> {
        let fits = at.checked_add(len)? <= self.len;
        // SAFETY: `at` is within the mapping, or one behind it where `len` is 0.
        fits.then(|| unsafe { self.start.as_ptr().add(at) })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this place and length, and no reference into it is
        // left, because none outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_neither_read_nor_written() {
        let memory = Mapped::new(None, 4096).unwrap();
        memory.store(4092, 7);
        memory.store(4093, 9);
        memory.store(4096, 9);
        memory.store(usize::MAX, 9);
        assert_eq!((memory.load(4092), memory.load(4096), memory.load(4090)), (7, 0, 0));
        assert!(memory.write(4090, b"ab") && !memory.write(4095, b"ab"));
        assert_eq!((memory.read::<2>(4090), memory.read::<2>(4095)), (*b"ab", [0, 0]));
        let mut long = [1; 5000];
        assert!(!memory.copy(0, &mut long) && long[0] == 1);
    }
}
