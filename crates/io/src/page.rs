//! A few words of memory that two processes share, so that one can see whether the other lives
//! without asking it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};

/// Words in a page.
pub const WORDS: usize = 8;

/// Its length stands, and so do these seals.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Shared words.
#[derive(Debug)]
pub struct Page {
    words: &'static [AtomicU64; WORDS],
    fd: OwnedFd,
}

impl Page {
    /// A new page, all words zero. Nobody can make it shorter, which would end with a signal who
    /// reads it then.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn new() -> io::Result<Page> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create(c"weir", flags)?;
        ftruncate(&fd, size_of::<[AtomicU64; WORDS]>() as u64)?;
        fcntl_add_seals(&fd, SEALS)?;
        Page::of(fd)
    }

    /// The page behind a descriptor that was inherited.
    ///
    /// # Errors
    /// As the kernel says, also when it is no page of ours.
    pub fn of(fd: OwnedFd) -> io::Result<Page> {
        let bytes = size_of::<[AtomicU64; WORDS]>();
        // a file that is or becomes too short would kill us when it is read
        if !fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SEALS)) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if usize::try_from(fstat(&fd)?.st_size) != Ok(bytes) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice aliases nothing that Rust knows.
        let at = unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is page-aligned, as long as the array, never unmapped, and is only
        // ever touched through atomics, by us and by the other process.
        let words = unsafe { &*at.cast::<[AtomicU64; WORDS]>() };
        Ok(Page { words, fd })
    }

    /// Reads a word.
    #[must_use]
    pub fn get(&self, word: usize) -> u64 {
        self.words.get(word).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Writes a word.
    pub fn set(&self, word: usize, value: u64) {
        if let Some(word) = self.words.get(word) {
            word.store(value, Ordering::Release);
        }
    }
}

impl AsFd for Page {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_see_the_same_words() {
        let page = Page::new().unwrap();
        let other = Page::of(page.as_fd().try_clone_to_owned().unwrap()).unwrap();
        page.set(1, 42);
        assert_eq!((other.get(1), other.get(0), other.get(WORDS)), (42, 0, 0));
    }

    #[test]
    fn nobody_can_cut_it_short() {
        let page = Page::new().unwrap();
        let file = std::fs::File::from(page.as_fd().try_clone_to_owned().unwrap());
        assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err());
        assert_eq!(page.get(0), 0);
    }

    #[test]
    fn what_is_no_page_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Page::of(file.into()).is_err());
    }
}
