//! System calls that a thread may still make, by seccomp: a list for each kind of thread. What is
//! not on it fails with EPERM instead of ending the process, so that a call which a new version of
//! a library makes costs a message and not the line.

use std::io;

use crate::kernel::process;

/// What a thread does, and so which calls it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// It moves frames between ports that are open.
    Packets,
    /// It answers the operator and keeps the history; opens sockets of the local machine only.
    Control,
    /// It watches a page and changes interfaces by netlink.
    Guard,
}

/// What each of them needs; the hot ones first, for the filter looks through the list in its order.
const EVERY: &[libc::c_long] = &[
    libc::SYS_ppoll,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_futex,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_ioctl,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_socket,
    libc::SYS_sched_yield,
    libc::SYS_clock_nanosleep,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Beside those of [`EVERY`].
const PACKETS: &[libc::c_long] = &[
    libc::SYS_sendmmsg,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // to ask whether a zero copy queue is let go of, by a spare socket
    libc::SYS_bind,
    libc::SYS_epoll_ctl,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
];

/// Beside those of [`EVERY`] and [`PACKETS`].
const CONTROL: &[libc::c_long] = &[
    libc::SYS_accept4,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_openat,
    libc::SYS_statx,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_writev,
    libc::SYS_readv,
    libc::SYS_getdents64,
    libc::SYS_mkdirat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_readlinkat,
    libc::SYS_fchmodat,
    libc::SYS_fchmod,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_copy_file_range,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_prctl,
    libc::SYS_capset,
    libc::SYS_capget,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_seccomp,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_umask,
    libc::SYS_prlimit64,
];

/// Calls of the same meaning that only older machines have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_poll,
    libc::SYS_access,
    libc::SYS_mkdir,
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_readlink,
    libc::SYS_chmod,
    libc::SYS_epoll_wait,
    libc::SYS_arch_prctl,
    libc::SYS_getdents,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

/// Leaves this thread, and those that it starts, only these calls.
///
/// # Errors
/// `EINVAL` from a kernel that has no seccomp.
pub fn leave_only(calls: Calls) -> io::Result<()> {
    let lists: &[&[libc::c_long]] = match calls {
        Calls::Packets => &[PACKETS, EVERY],
        Calls::Control => &[PACKETS, EVERY, CONTROL, OLDER],
        Calls::Guard => &[EVERY],
    };
    rustix::thread::set_no_new_privs(true)?;
    process::filter_calls(&filter(lists))
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;

const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000 | libc::EPERM.cast_unsigned();

/// The program (classic BPF) over `struct seccomp_data`: the number of the call, the architecture.
fn filter(lists: &[&[libc::c_long]]) -> Vec<libc::sock_filter> {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const NUMBER: u32 = 0;
    const MACHINE: u32 = 4;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![
        step(LOAD, 0, 0, MACHINE),
        step(IF_EQUAL, 1, 0, ARCHITECTURE),
        step(RETURN, 0, 0, REFUSE),
        step(LOAD, 0, 0, NUMBER),
    ];
    for call in lists.iter().copied().flatten() {
        let number = u32::try_from(*call).unwrap_or(u32::MAX);
        // each with its own end: a jump reaches 255 steps only
        program.push(step(IF_EQUAL, 0, 1, number));
        program.push(step(RETURN, 0, 0, ALLOW));
    }
    program.push(step(RETURN, 0, 0, REFUSE));
    program
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::UdpSocket;
    use std::process::Command;

    use super::*;

    /// What a thread under a filter can still do: read a file, make a socket, run a program.
    fn can(calls: Calls) -> [bool; 3] {
        let thread = std::thread::spawn(move || {
            leave_only(calls).unwrap();
            [
                File::open("/proc/version").is_ok(),
                UdpSocket::bind("127.0.0.1:0").is_ok(),
                Command::new("true").status().is_ok(),
            ]
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_thread_keeps_the_calls_of_its_kind_and_no_others() {
        assert_eq!(can(Calls::Control), [true, true, false]);
        assert_eq!(can(Calls::Packets), [false, true, false]);
        assert_eq!(can(Calls::Guard), [false, false, false]);
    }
}
