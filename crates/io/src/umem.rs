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
//! With several threads the memory is still one, and each thread has a part of it as a pool of its
//! own. A reference that writes cannot be shared, so each part sees the memory at addresses of its
//! own: the same pages are mapped once for each. For the processor they are the same bytes, and
//! for the kernel it does not matter by which mapping a port has registered them.
//!
//! Room in front of a frame: the kernel leaves 256 bytes (`XDP_PACKET_HEADROOM`) before each frame
//! it receives; we ask for none beyond. That is room for tags and tunnels to be put in front in
//! place, and it is taken from what a frame can be: see [`FrameSize`].

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use weir_packet::{MemoryId, Pool};
use weir_units::limits::CORES;

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
}

impl Umem {
    /// Maps memory for so many frames, on huge pages if the machine has set any aside, and makes
    /// the one pool over it. It is never unmapped: frames and the kernel may hold any part of it.
    pub fn with_pool(frames: usize, size: FrameSize) -> io::Result<(Umem, Pool)> {
        let len = len_of(frames, size)?;
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let view = match map(len, private | libc::MAP_HUGETLB, None) {
            Ok(view) => view,
            Err(_) => {
                let view = map(len, private, None)?;
                advise(view, libc::MADV_HUGEPAGE);
                view
            }
        };
        let address = view.as_ptr().expose_provenance() as u64;
        let pool = Pool::lent(view, size.bytes());
        Ok((Umem::of(&pool, address, len, size), pool))
    }

    /// The same for several threads, each with a pool that is its part of the memory: a frame may
    /// go from one to another and be given back to either. The buffers are dealt out in equal
    /// shares. Any part works with any port over this memory.
    pub fn with_pools(
        frames: usize,
        size: FrameSize,
        parts: usize,
    ) -> io::Result<(Umem, Vec<Pool>)> {
        if parts == 0 || parts > CORES {
            let why = format!("{parts} parts of one memory; there can be 1 to {CORES}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let len = len_of(frames, size)?;
        let views = match views(len, parts, libc::MFD_HUGETLB) {
            Ok(views) => views,
            Err(_) => {
                let mut views = views(len, parts, 0)?;
                views.iter_mut().for_each(|view| advise(view, libc::MADV_HUGEPAGE));
                views
            }
        };
        let address = views[0].as_ptr().expose_provenance() as u64;
        let pools = Pool::parted(views, size.bytes());
        Ok((Umem::of(&pools[0], address, len, size), pools))
    }

    fn of(pool: &Pool, address: u64, len: usize, size: FrameSize) -> Umem {
        Umem { id: pool.memory(), address, len, frames: pool.capacity(), size }
    }

    /// Buffers in all: what was asked for, rounded up to whole huge pages.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
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

/// Bytes of memory for so many frames, in whole huge pages.
fn len_of(frames: usize, size: FrameSize) -> io::Result<usize> {
    let asked = frames.max(1).checked_mul(size.bytes());
    let len = asked.and_then(|bytes| bytes.checked_next_multiple_of(HUGE_PAGE));
    len.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// The same new memory, mapped so often.
fn views(len: usize, count: usize, more: libc::c_uint) -> io::Result<Vec<&'static mut [u8]>> {
    let flags = libc::MFD_CLOEXEC | more;
    // SAFETY: the name is a string with an end, and only read.
    let fd = unsafe { libc::memfd_create(c"weir-frames".as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(len as u64)?;
    // the mappings keep the pages when the descriptor is closed
    (0..count).map(|_| map(len, libc::MAP_SHARED, Some(file.as_fd()))).collect()
}

/// Maps memory: pages of the file from its beginning, or new ones.
fn map(
    len: usize,
    flags: libc::c_int,
    file: Option<BorrowedFd<'_>>,
) -> io::Result<&'static mut [u8]> {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let file = file.map_or(-1, |file| file.as_raw_fd());
    // SAFETY: a new mapping at a place that the kernel chooses touches nothing that exists.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, both, flags, file, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: mmap gave `len` bytes, readable and writable, zeroed, and page aligned. Nothing
    // unmaps them, so they are 'static; this is the only reference to these addresses that is ever
    // made. The pages are also written by the kernel, and by other threads through mappings of
    // their own, but only in buffers whose number they hold; who holds no Frame of a buffer does
    // not look into it, and the counters of the rings by which numbers travel order the two.
    Ok(unsafe { std::slice::from_raw_parts_mut(start.cast(), len) })
}

fn advise(view: &mut [u8], advice: libc::c_int) {
    // SAFETY: advice on a mapping of ours; whether it is heeded does not matter.
    unsafe { libc::madvise(view.as_mut_ptr().cast(), view.len(), advice) };
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
    fn all_parts_see_the_same_bytes() {
        let (umem, mut pools) = Umem::with_pools(1_000, FrameSize::Normal, 3).unwrap();
        assert_eq!([0, 1, 2].map(|part| pools[part].free()), [341, 341, 342]);
        assert!(pools.iter().all(|pool| umem.is_of(pool) && pool.capacity() == 1_024));
        for (writer, reader) in [(0, 1), (1, 2), (2, 0)] {
            let text = format!("from {writer} to {reader}");
            let frame = pools[writer].fill(text.as_bytes()).unwrap();
            assert_eq!(pools[reader].bytes(&frame), text.as_bytes());
            pools[reader].give(frame);
        }
        assert_eq!(pools.iter().map(Pool::free).sum::<usize>(), 1_024);
        let too_many = Umem::with_pools(1, FrameSize::Normal, CORES + 1).unwrap_err().to_string();
        assert!(too_many.contains("33 parts"), "{too_many}");
        assert!(Umem::with_pools(1, FrameSize::Normal, 0).is_err());
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
