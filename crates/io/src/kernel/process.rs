//! What a process asks for itself: clocks, waiting, scheduling, memory that stays, capabilities.
#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{checked, owned};

/// The monotonic clock, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to `time`, which the kernel fills.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Waits until one of the descriptors has something to say, or the time is over; how many do.
pub(crate) fn poll(fds: &mut [libc::pollfd], ns: Option<u64>) -> io::Result<usize> {
    const SECOND: u64 = 1_000_000_000;
    let time = ns.map(|ns| libc::timespec {
        tv_sec: i64::try_from(ns / SECOND).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % SECOND).unwrap_or(0),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = fds.len() as libc::nfds_t;
    // SAFETY: `fds` has `count` entries that the kernel fills, `time` is null or lives through the
    // call, and the mask of signals stays as it is.
    checked(unsafe { libc::ppoll(fds.as_mut_ptr(), count, time, std::ptr::null()) })
}

/// A counter that can be waited on.
pub(crate) fn event() -> io::Result<OwnedFd> {
    // SAFETY: takes and returns numbers only.
    owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// Reads what is there now.
pub(crate) fn read(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    let buffer = into.as_mut_ptr().cast();
    // SAFETY: `buffer` points to `into.len()` writable bytes.
    checked(unsafe { libc::read(fd.as_raw_fd(), buffer, into.len()) })
}

/// Writes bytes at once.
pub(crate) fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let buffer = bytes.as_ptr().cast();
    // SAFETY: `buffer` points to `bytes.len()` readable bytes.
    checked(unsafe { libc::write(fd.as_raw_fd(), buffer, bytes.len()) })
}

/// One of the many settings of `prctl` that take numbers only.
pub(crate) fn control(option: i32, a: u64, b: u64) -> io::Result<usize> {
    let zero: libc::c_ulong = 0;
    let (a, b) = (a as libc::c_ulong, b as libc::c_ulong);
    // SAFETY: the options used here (timer slack, no new privileges, kept and bounding and ambient
    // capabilities) take numbers, no pointers.
    checked(unsafe { libc::prctl(option, a, b, zero, zero) })
}

/// Ties this thread to one CPU.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    const WORD: usize = u64::BITS as usize;
    // as many as glibc's cpu_set_t; a kernel with more takes the shorter mask
    let mut mask = [0_u64; 16];
    let word = mask.get_mut(cpu / WORD).ok_or(io::ErrorKind::InvalidInput)?;
    *word = 1 << (cpu % WORD);
    let bytes = size_of_val(&mask);
    // SAFETY: the pointer is to `mask`, which has `bytes` bytes and is only read.
    checked(unsafe { libc::sched_setaffinity(0, bytes, mask.as_ptr().cast()) }).map(drop)
}

/// Schedules this thread before all ordinary ones.
pub(crate) fn real_time(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to `parameters`, which is only read.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
        .map(drop)
}

/// Keeps all memory in RAM, present and future.
pub(crate) fn keep_memory() -> io::Result<()> {
    // SAFETY: takes a number.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(drop)
}

/// Has the C library give large pieces of memory back to the kernel as soon as they are free, and
/// serve all threads from two places instead of eight for each CPU, each of which keeps what it
/// once had. What is usual comes from what these have at hand: were it asked for and given back
/// time and again, a piece that stays would now and then lie above a gap, and the process grow.
pub(crate) fn level_memory() {
    #[cfg(target_env = "gnu")]
    {
        /// Bytes at hand in each of the two places, from the start on.
        const AT_HAND: libc::c_int = 8 << 20;
        /// Pieces of so many bytes and more go back as soon as they are free.
        const LARGE: libc::c_int = 1 << 20;
        for (setting, value) in [
            (libc::M_MMAP_THRESHOLD, LARGE),
            (libc::M_TOP_PAD, AT_HAND),
            (libc::M_TRIM_THRESHOLD, 2 * AT_HAND),
            (libc::M_ARENA_MAX, 2),
        ] {
            // SAFETY: takes numbers; where it fails, memory is used as usual.
            unsafe { libc::mallopt(setting, value) };
        }
    }
}

/// `struct __user_cap_header_struct` of version 3.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    thread: i32,
}

const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The capability words of this thread: effective, permitted, inheritable, low half then high.
pub(crate) fn capabilities() -> io::Result<[u32; 6]> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, thread: 0 };
    let mut words = [0_u32; 6];
    let (head, data) = (&raw mut header, words.as_mut_ptr());
    // SAFETY: version 3 fills two structures of three words, which `words` is.
    checked(unsafe { libc::syscall(libc::SYS_capget, head, data) }).map(|_| words)
}

/// Sets the capability words of this thread.
pub(crate) fn set_capabilities(words: &[u32; 6]) -> io::Result<()> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, thread: 0 };
    let (head, data) = (&raw const header, words.as_ptr());
    // SAFETY: version 3 reads two structures of three words, which `words` is.
    checked(unsafe { libc::syscall(libc::SYS_capset, head, data) }).map(drop)
}

/// Becomes another user and group, with no groups besides.
pub(crate) fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: a list of no entries is not read.
    checked(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: takes numbers only.
    checked(unsafe { libc::setresgid(group, group, group) })?;
    // SAFETY: takes numbers only.
    checked(unsafe { libc::setresuid(user, user, user) }).map(drop)
}

/// Puts this thread under a filter of system calls, for good.
pub(crate) fn filter_calls(program: &[libc::sock_filter]) -> io::Result<()> {
    const MODE_FILTER: libc::c_uint = 1;
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let whole = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel reads `whole` and the `len` steps that it points to, and keeps a copy.
    checked(unsafe { libc::syscall(libc::SYS_seccomp, MODE_FILTER, 0_u32, &raw const whole) })
        .map(drop)
}

/// Lets the process lock as much memory as it likes.
pub(crate) fn lock_any_memory() -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to `limit`, which is only read.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) }).map(drop)
}

/// Puts this process into a session of its own, out of reach of the terminal's signals.
pub(crate) fn own_session() -> io::Result<()> {
    // SAFETY: takes and returns numbers only.
    checked(unsafe { libc::setsid() }).map(drop)
}

/// The number of this thread, by which others put interfaces into its network; for tests.
#[cfg(test)]
pub(crate) fn thread() -> i32 {
    // SAFETY: takes and returns numbers only.
    unsafe { libc::gettid() }
}

/// Gives this thread a network of its own, which ends with it; for tests.
#[cfg(test)]
pub(crate) fn own_network() -> io::Result<()> {
    // SAFETY: takes a number, and changes nothing that another thread relies on.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}
