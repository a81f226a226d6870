//! What a process asks for itself where rustix does not, or does it for one thread only: the clock
//! and the waits of the packet path, real-time scheduling, users, filters of system calls.
#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::checked;

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

/// Schedules this thread before all ordinary ones.
pub(crate) fn real_time(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to `parameters`, which is only read.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
        .map(drop)
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

/// Becomes another user and group, with no groups besides: all threads of the process, as only the
/// C library does it.
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

/// Gives this thread a network of its own, which ends with it; for tests.
#[cfg(test)]
pub(crate) fn own_network() -> io::Result<()> {
    // SAFETY: takes a number, and changes nothing that another thread relies on.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}
