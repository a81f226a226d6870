//! One AF_XDP socket: one receive queue of a netdev, its four rings, and the system calls that make
//! it and wake the kernel. What a frame or a pool is it does not know; it moves addresses.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Step;
use super::map::{MappedRing, Slot, Which};
use super::ring::{Descriptor, Giver, Taker};

/// `XDP_MAX_TX_SKB_BUDGET` of linux/if_xdp.h (6.18): frames that one wakeup may send in copy mode.
/// The default is 32.
const TX_BUDGET_OPTION: libc::c_int = 9;
const TX_BUDGET: u32 = 512;
/// The kernel counts frames under way against the socket's send buffer. The default lets 200 large
/// frames or so pass before each wakeup fails.
const SEND_BUFFER: libc::c_int = 64 << 20;
/// How often a bind is tried that meets the remains of a socket which was just closed: the kernel
/// tidies up in the background.
const BIND_TRIES: u32 = 100;
const BIND_PAUSE_MS: libc::c_int = 5;

#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    pub(crate) receive: Taking<Descriptor>,
    pub(crate) fill: Giving<AtomicU64>,
    pub(crate) out: Option<Out>,
}

/// The half of a socket that sends.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) transmit: Giving<Descriptor>,
    pub(crate) completion: Taking<AtomicU64>,
}

/// A ring that we give into.
#[derive(Debug)]
pub(crate) struct Giving<S> {
    map: MappedRing<S>,
    side: Giver,
}

/// A ring that we take from.
#[derive(Debug)]
pub(crate) struct Taking<S> {
    map: MappedRing<S>,
    side: Taker,
}

/// How to open one.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) memory: libc::xdp_umem_reg,
    pub(crate) ifindex: u32,
    pub(crate) queue: u32,
    pub(crate) ring: u32,
    pub(crate) sends: bool,
    /// Keep to copy mode even where the driver knows zero copy.
    pub(crate) copy: bool,
    /// A socket of the same port whose registration of the memory this one shares.
    pub(crate) beside: Option<&'a Socket>,
}

/// Sockets of no port yet: the one step of opening a port that needs a right.
pub fn bare_sockets(count: usize) -> io::Result<Vec<OwnedFd>> {
    (0..count).map(|_| new_socket().inspect(send_buffer)).collect()
}

impl Socket {
    pub(crate) fn open(opening: Opening<'_>) -> Result<Socket, (Step, io::Error)> {
        let fd = new_socket().map_err(|why| (Step::Socket, why))?;
        send_buffer(&fd);
        Socket::over(fd, opening)
    }

    /// Makes a port's socket of a bare one.
    pub(crate) fn over(fd: OwnedFd, opening: Opening<'_>) -> Result<Socket, (Step, io::Error)> {
        let at = |step| move |why| (step, why);
        if opening.beside.is_none() {
            set(&fd, libc::XDP_UMEM_REG, &opening.memory).map_err(at(Step::Memory))?;
        }
        let (receive, fill, out) = rings(&fd, &opening).map_err(at(Step::Rings))?;
        // kernels before 6.18 do not know it and send 32 at a time; the caller wakes them again
        let _ = set(&fd, TX_BUDGET_OPTION, &TX_BUDGET.min(opening.ring));
        bind(&fd, &opening).map_err(at(Step::Bind))?;
        Ok(Socket { fd, receive, fill, out })
    }

    /// Wakes the kernel for what was given to transmit.
    pub(crate) fn wake_transmit(&self) -> io::Result<()> {
        let (no_bytes, no_address) = (std::ptr::null(), std::ptr::null());
        let fd = self.fd.as_raw_fd();
        // SAFETY: no bytes and no address are passed, so the call reads no memory of ours.
        let sent = unsafe { libc::sendto(fd, no_bytes, 0, libc::MSG_DONTWAIT, no_address, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Wakes the kernel if it waits for buffers to receive into (only zero copy drivers do).
    pub(crate) fn wake_fill(&self) {
        if self.fill.map.needs_wakeup() {
            let nothing = std::ptr::null_mut();
            // SAFETY: a length of zero, so the call writes no memory of ours.
            unsafe { libc::recv(self.fd.as_raw_fd(), nothing, 0, libc::MSG_DONTWAIT) };
        }
    }

    /// What stands against the socket: `ENETDOWN` once its netdev is gone. Reading it clears it.
    pub(crate) fn fault(&self) -> Option<i32> {
        let errno = get::<libc::c_int>(&self.fd, libc::SOL_SOCKET, libc::SO_ERROR).ok()?;
        (errno != 0).then_some(errno)
    }

    pub(crate) fn is_zero_copy(&self) -> bool {
        let options = get::<libc::xdp_options>(&self.fd, libc::SOL_XDP, libc::XDP_OPTIONS);
        options.is_ok_and(|options| options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    pub(crate) fn statistics(&self) -> libc::xdp_statistics {
        // what an older kernel does not count stays zero, and so does all if it does not answer
        get(&self.fd, libc::SOL_XDP, libc::XDP_STATISTICS).unwrap_or(libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<S: Slot> Giving<S> {
    /// Hands over what `next` writes, `wanted` at most, until it has no more or the ring no room;
    /// says how many it were.
    #[inline]
    pub(crate) fn give(&mut self, wanted: usize, mut next: impl FnMut(&S) -> bool) -> usize {
        let Giving { map, side } = self;
        let ring = map.ring();
        let room = side.room(&ring, u32::try_from(wanted).unwrap_or(u32::MAX));
        let mut given = 0;
        while given < room && next(side.slot(&ring)) {
            side.advance();
            given += 1;
        }
        if given > 0 {
            side.publish(&ring);
        }
        given as usize
    }

    /// How many could be given now.
    pub(crate) fn room(&mut self, wanted: usize) -> usize {
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        self.side.room(&self.map.ring(), wanted) as usize
    }

    /// How many the kernel has not taken yet.
    pub(crate) fn untaken(&self) -> usize {
        self.side.untaken(&self.map.ring()) as usize
    }

    /// What the kernel has not taken, slot by slot, while it is known not to look.
    pub(crate) fn each_untaken(&mut self, each: impl FnMut(&S)) {
        self.side.untaken_slots(&self.map.ring()).for_each(each);
    }

    pub(crate) fn needs_wakeup(&self) -> bool {
        self.map.needs_wakeup()
    }
}

impl<S: Slot> Taking<S> {
    /// Takes what waits, `wanted` at most; says how many it were.
    #[inline]
    pub(crate) fn take(&mut self, wanted: usize, mut each: impl FnMut(&S)) -> usize {
        let Taking { map, side } = self;
        let ring = map.ring();
        let waiting = side.waiting(&ring, u32::try_from(wanted).unwrap_or(u32::MAX));
        for _ in 0..waiting {
            each(side.slot(&ring));
        }
        if waiting > 0 {
            side.release(&ring);
        }
        waiting as usize
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

type Rings = (Taking<Descriptor>, Giving<AtomicU64>, Option<Out>);

fn rings(fd: &OwnedFd, opening: &Opening<'_>) -> io::Result<Rings> {
    let size = opening.ring;
    // the kernel wants a completion ring even from a socket that never sends
    for option in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING] {
        set(fd, option, &size)?;
    }
    if opening.sends {
        set(fd, libc::XDP_TX_RING, &size)?;
    }
    let offsets = get(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
    let receive = MappedRing::map(fd.as_fd(), Which::Receive, &offsets, size)?;
    let fill = MappedRing::map(fd.as_fd(), Which::Fill, &offsets, size)?;
    let out = if opening.sends {
        let transmit = MappedRing::map(fd.as_fd(), Which::Transmit, &offsets, size)?;
        let completion = MappedRing::map(fd.as_fd(), Which::Completion, &offsets, size)?;
        Some(Out {
            transmit: Giving { map: transmit, side: Giver::default() },
            completion: Taking { map: completion, side: Taker::default() },
        })
    } else {
        None
    };
    let receive = Taking { map: receive, side: Taker::default() };
    Ok((receive, Giving { map: fill, side: Giver::default() }, out))
}

fn send_buffer(fd: &OwnedFd) {
    for option in [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF] {
        // without CAP_NET_ADMIN the limit of the system holds: slower, not wrong
        if set_at(fd, libc::SOL_SOCKET, option, &SEND_BUFFER).is_ok() {
            return;
        }
    }
}

/// Binds to the queue. Without a wish for copy mode the kernel tries zero copy by itself and falls
/// back; a socket that shares another's registration takes its mode too.
fn bind(fd: &OwnedFd, opening: &Opening<'_>) -> io::Result<()> {
    let (flags, beside) = match opening.beside {
        Some(socket) => (libc::XDP_SHARED_UMEM, socket.fd.as_raw_fd().cast_unsigned()),
        None if opening.copy => (libc::XDP_USE_NEED_WAKEUP | libc::XDP_COPY, 0),
        None => (libc::XDP_USE_NEED_WAKEUP, 0),
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: u16::try_from(libc::AF_XDP).unwrap_or_default(),
        sxdp_flags: flags,
        sxdp_ifindex: opening.ifindex,
        sxdp_queue_id: opening.queue,
        sxdp_shared_umem_fd: beside,
    };
    for tried in 1.. {
        let (from, len) = (std::ptr::from_ref(&address).cast(), size_of_val(&address));
        let len = libc::socklen_t::try_from(len).unwrap_or_default();
        // SAFETY: `from` and `len` describe `address`, which outlives the call.
        let bound = unsafe { libc::bind(fd.as_raw_fd(), from, len) };
        if bound == 0 {
            break;
        }
        let why = io::Error::last_os_error();
        if why.raw_os_error() != Some(libc::EBUSY) || tried == BIND_TRIES {
            return Err(why);
        }
        // SAFETY: no descriptors are passed, so the call only waits.
        unsafe { libc::poll(std::ptr::null_mut(), 0, BIND_PAUSE_MS) };
    }
    Ok(())
}

fn set<T>(fd: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    set_at(fd, libc::SOL_XDP, option, value)
}

fn set_at<T>(fd: &OwnedFd, level: i32, option: libc::c_int, value: &T) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default();
    let from = std::ptr::from_ref(value).cast();
    // SAFETY: `from` and `len` describe `value`, which outlives the call and is only read.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, from, len) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What the kernel says of an option that is a plain structure of integers.
fn get<T: Plain>(fd: &OwnedFd, level: i32, option: libc::c_int) -> io::Result<T> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    let mut len = libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default();
    let (fd, to) = (fd.as_raw_fd(), value.as_mut_ptr().cast());
    // SAFETY: `to` and `len` describe `value`, which outlives the call; the kernel writes no more
    // than `len` bytes.
    let done = unsafe { libc::getsockopt(fd, level, option, to, &raw mut len) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it began as zeros and the kernel wrote over some; a `Plain` type is valid with any.
    Ok(unsafe { value.assume_init() })
}

/// Structures that are valid whatever their bytes are.
trait Plain {}
impl Plain for libc::c_int {}
impl Plain for libc::xdp_mmap_offsets {}
impl Plain for libc::xdp_options {}
impl Plain for libc::xdp_statistics {}

/// The address in a fill or completion slot.
pub(crate) fn address(slot: &AtomicU64) -> u64 {
    slot.load(Ordering::Relaxed)
}

/// Puts an address into a fill slot.
pub(crate) fn put_address(slot: &AtomicU64, address: u64) {
    slot.store(address, Ordering::Relaxed);
}
