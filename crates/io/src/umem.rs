//! The memory that frames lie in when the kernel and weir share it (the kernel calls it UMEM): one
//! piece, mapped once and for the life of the process, cut into frames of one size. A [`Pool`]
//! works over it, and every AF_XDP port of the box registers the same piece, so that a frame which
//! came in at one port leaves at another without being copied by us.
//!
//! Each port registers the memory for itself instead of borrowing the first port's registration
//! (`XDP_SHARED_UMEM` across ports). What it costs is a second count on each page. What it buys: a
//! port can be closed and opened whatever became of the others (the kernel shares only with a
//! socket that is bound, which one whose netdev has gone is not), and one port's NIC may be zero
//! copy while the other's is not, which a shared registration forbids. The queues of one port do
//! share: they live and die together, and a NIC maps the memory once.
//!
//! Room in front of a frame: the kernel leaves 256 bytes (`XDP_PACKET_HEADROOM`) before each frame
//! it receives; we ask for none beyond. That is room for tags and tunnels to be put in front in
//! place, and it is taken from what a frame can be: see [`FrameSize`].

use std::io;

use weir_packet::{MemoryId, Pool};

/// What the kernel keeps free in front of every frame that it receives.
const KERNEL_HEADROOM: usize = 256;
/// Ethernet header and two VLAN tags: what a frame has beyond its MTU.
const BEYOND_MTU: usize = 14 + 2 * 4;
const HUGE_PAGE: usize = 2 << 20;

/// Bytes of one buffer. The kernel knows these two (a chunk is a power of two, a page at most).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameSize {
    /// 2048 bytes: frames up to 1792, an MTU up to 1770.
    Normal,
    /// 4096 bytes: frames up to 3840, an MTU up to 3818.
    Large,
}

impl FrameSize {
    /// The smallest that holds every frame of ports with this MTU, or `None` if none does: a frame
    /// in several buffers is more than weir knows, and AF_PACKET is the way for such a port.
    #[must_use]
    pub fn for_mtu(mtu: usize) -> Option<FrameSize> {
        let sizes = [FrameSize::Normal, FrameSize::Large];
        sizes.into_iter().find(|size| mtu.saturating_add(BEYOND_MTU) <= size.frame())
    }

    /// Bytes of the buffer.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            FrameSize::Normal => 2_048,
            FrameSize::Large => 4_096,
        }
    }

    /// Bytes of the longest frame that can be received into it.
    #[must_use]
    pub const fn frame(self) -> usize {
        self.bytes() - KERNEL_HEADROOM
    }
}

/// The piece of memory, as a port needs to know it. The bytes themselves belong to the pool.
#[derive(Debug)]
pub struct Umem {
    id: MemoryId,
    address: u64,
    len: usize,
    frames: usize,
    size: FrameSize,
    huge_pages: bool,
}

impl Umem {
    /// Maps memory for so many frames, on huge pages if the machine has set any aside, and makes
    /// the one pool over it. It is never unmapped: frames and the kernel may hold any part of it.
    pub fn with_pool(frames: usize, size: FrameSize) -> io::Result<(Umem, Pool)> {
        let asked = frames.max(1).checked_mul(size.bytes());
        let len = asked.and_then(|bytes| bytes.checked_next_multiple_of(HUGE_PAGE));
        let len = len.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let (start, huge_pages) = match map(len, libc::MAP_HUGETLB) {
            Ok(start) => (start, true),
            Err(_) => (map(len, 0)?, false),
        };
        if !huge_pages {
            // SAFETY: advice on a mapping of ours; whether it is heeded does not matter.
            unsafe { libc::madvise(start.cast(), len, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: `map` gave `len` bytes, readable and writable, zeroed, and page aligned. Nothing
        // unmaps them, so they are 'static; this is the only reference to them that is ever made.
        // The kernel writes here too, but only into buffers whose number it holds; who holds no
        // Frame of a buffer does not look into it, and the rings' counters order the two.
        let memory: &'static mut [u8] = unsafe { std::slice::from_raw_parts_mut(start, len) };
        let address = memory.as_ptr().expose_provenance() as u64;
        let pool = Pool::lent(memory, size.bytes());
        let (id, frames) = (pool.memory(), pool.capacity());
        Ok((Umem { id, address, len, frames, size, huge_pages }, pool))
    }

    /// Buffers in all: what was asked for, rounded up to whole huge pages.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Bytes of one buffer.
    #[must_use]
    pub fn frame_size(&self) -> FrameSize {
        self.size
    }

    /// Whether it lies on huge pages that were set aside (`vm.nr_hugepages`).
    #[must_use]
    pub fn has_huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// Which memory it is: that of the pool that came with it.
    #[must_use]
    pub fn id(&self) -> MemoryId {
        self.id
    }

    /// Whether this pool was made over this memory.
    pub(crate) fn is_of(&self, pool: &Pool) -> bool {
        pool.memory() == self.id
    }

    pub(crate) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.address,
            len: self.len as u64,
            chunk_size: u32::try_from(self.size.bytes()).unwrap_or(u32::MAX),
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }
}

fn map(len: usize, more: libc::c_int) -> io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place that the kernel chooses touches nothing that exists.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, both, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_cut_into_frames_that_can_be_written() {
        let (umem, mut pool) = Umem::with_pool(1_000, FrameSize::Normal).unwrap();
        assert_eq!((umem.frames(), pool.free()), (1_024, 1_024));
        assert!(umem.is_of(&pool) && umem.id() == pool.memory());
        // of the same size
        assert!(!umem.is_of(&Pool::new(1_024, 2_048)));
        let frame = pool.fill(b"written and read").unwrap();
        assert_eq!(pool.bytes(&frame), b"written and read");
        pool.give(frame);
        assert_eq!(umem.registration().addr % 4_096, 0);
        assert_eq!(umem.registration().len, 2 << 20);
    }

    #[test]
    fn the_frame_size_follows_the_mtu() {
        let cases = [
            (1_500, Some(FrameSize::Normal)),
            (1_770, Some(FrameSize::Normal)),
            (1_771, Some(FrameSize::Large)),
            (3_818, Some(FrameSize::Large)),
            (9_000, None),
            (usize::MAX, None),
        ];
        for (mtu, size) in cases {
            assert_eq!(FrameSize::for_mtu(mtu), size, "{mtu}");
        }
    }
}
