//! The rings' memory: the kernel's, mapped by the socket they belong to. Here is all the trust in
//! it, so that `ring.rs` needs none.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::ring::{Descriptor, Ring};

/// Which of a socket's four rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Receive,
    Transmit,
    Fill,
    Completion,
}

/// A ring in the kernel's memory, for as long as this lives (the kernel keeps the memory for the
/// mapping, even past the socket).
#[derive(Debug)]
pub(crate) struct MappedRing<S> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    slots: usize,
    count: usize,
    of: PhantomData<S>,
}

/// What a slot can be: made of atomics and nothing else, so that any bytes are a valid one and two
/// sides may touch it at once.
pub(crate) trait Slot {}
impl Slot for AtomicU64 {}
impl Slot for Descriptor {}

impl<S: Slot> MappedRing<S> {
    /// Maps a ring that has been sized to `count` slots.
    pub(crate) fn map(
        socket: BorrowedFd<'_>,
        which: Which,
        offsets: &libc::xdp_mmap_offsets,
        count: u32,
    ) -> io::Result<MappedRing<S>> {
        let (place, at) = match which {
            Which::Receive => (&offsets.rx, libc::XDP_PGOFF_RX_RING),
            Which::Transmit => (&offsets.tx, libc::XDP_PGOFF_TX_RING),
            Which::Fill => (&offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING.cast_signed()),
            Which::Completion => (&offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING.cast_signed()),
        };
        let inside = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let (slots, count) = (inside(place.desc), count as usize);
        let len = slots.saturating_add(count.saturating_mul(size_of::<S>()));
        let ring = MappedRing {
            mapping: Mapping::new(socket, at, len)?,
            producer: inside(place.producer),
            consumer: inside(place.consumer),
            flags: inside(place.flags),
            slots,
            count,
            of: PhantomData,
        };
        let word = |offset: usize| {
            let fits = offset.checked_add(size_of::<u32>()).is_some_and(|end| end <= len);
            fits && offset.is_multiple_of(size_of::<u32>())
        };
        let known = word(ring.producer) && word(ring.consumer) && word(ring.flags);
        if known && slots.is_multiple_of(align_of::<S>()) && count.is_power_of_two() {
            Ok(ring)
        } else {
            Err(io::Error::other("the kernel describes its rings in a way that weir does not know"))
        }
    }

    pub(crate) fn ring(&self) -> Ring<'_, S> {
        let start = self.mapping.start.as_ptr();
        let slots = start.wrapping_add(self.slots).cast::<S>();
        // SAFETY: `map` mapped `count` slots from here and checked that they are aligned; they stay
        // mapped while `self` is borrowed; a `Slot` is atomics, so the kernel may write them too.
        let slots = unsafe { std::slice::from_raw_parts(slots, self.count) };
        Ring { producer: self.word(self.producer), consumer: self.word(self.consumer), slots }
    }

    /// Whether the kernel sleeps over this ring and wants to be told of what was given.
    pub(crate) fn needs_wakeup(&self) -> bool {
        let flags = self.word(self.flags).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        let word = self.mapping.start.as_ptr().wrapping_add(offset).cast::<u32>();
        // SAFETY: `map` checked that the offset is aligned and within the mapping, which stays
        // while `self` is borrowed; the kernel touches the word by atomic operations only.
        unsafe { AtomicU32::from_ptr(word) }
    }
}

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is memory of the process, the same from every thread; it has one owner.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(socket: BorrowedFd<'_>, at: libc::off_t, len: usize) -> io::Result<Mapping> {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let place = std::ptr::null_mut();
        // SAFETY: a new mapping at a place that the kernel chooses touches nothing that exists.
        let start = unsafe { libc::mmap(place, len, both, flags, socket.as_raw_fd(), at) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping is never at zero");
        Ok(Mapping { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are what mmap gave, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
