//! A network of its own for a test: the thread moves into a fresh network namespace without a name,
//! which the kernel takes apart when the thread and its sockets have gone. Hosts are packet
//! sockets at the far ends of veth pairs.

#![expect(unsafe_code, reason = "namespaces and packet sockets are system calls")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "this is a test")]

mod queues;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::{io, mem, ptr};

/// A type of frame that no stack answers to: "local experimental", IEEE 802.
pub(crate) const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// Moves this thread into a namespace of its own; `false`, with a line that says so, if it may not.
pub(crate) fn own_network() -> bool {
    // SAFETY: the call takes a number only; the thread has no sockets yet.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if done < 0 {
        println!("skipped, needs root: unshare: {}", io::Error::last_os_error());
        return false;
    }
    // kernels differ in what they turn on for a new netdev: let nobody speak but the test
    for family in ["default", "all"] {
        let switch = format!("/proc/sys/net/ipv6/conf/{family}/disable_ipv6");
        let _ = std::fs::write(switch, "1");
    }
    true
}

/// Runs `ip` with these words in this thread's namespace.
pub(crate) fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split_whitespace()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A pair `{name}0` (the host's end) and `{name}1` (the box's), both up, with so many queues.
pub(crate) fn veth(name: &str, queues: u32) {
    let queues = format!("numtxqueues {queues} numrxqueues {queues}");
    ip(&format!("link add {name}0 {queues} type veth peer name {name}1 {queues}"));
    ip(&format!("link set {name}0 up"));
    ip(&format!("link set {name}1 up"));
}

pub(crate) fn ifindex(name: &str) -> u32 {
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: `name` is a string with its zero, and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert!(index > 0, "{name:?}: {}", io::Error::last_os_error());
    index
}

/// The kernel's clock, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of this thread, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` outlives the call.
    let done = unsafe { libc::clock_gettime(which, &raw mut now) };
    assert_eq!(done, 0);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Waits until there is something to read, or for so long.
pub(crate) fn wait(fd: BorrowedFd<'_>, ms: i32) {
    let mut what = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `what` is one entry, and outlives the call.
    unsafe { libc::poll(&raw mut what, 1, ms) };
}

/// Who sends and receives frames at a netdev.
pub(crate) struct Host {
    socket: OwnedFd,
}

impl Host {
    pub(crate) fn at(name: &str) -> Host {
        Host::of_type(name, ETHERTYPE)
    }

    /// One that hears frames of this type.
    pub(crate) fn of_type(name: &str, ethertype: [u8; 2]) -> Host {
        let protocol = u16::from_ne_bytes(ethertype);
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes numbers only.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, protocol.into()) };
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the kernel just made this descriptor for us.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: zeros are a valid address.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).unwrap();
        address.sll_protocol = protocol;
        address.sll_ifindex = ifindex(name).cast_signed();
        let len = u32::try_from(mem::size_of_val(&address)).unwrap();
        // SAFETY: pointer and length describe `address`, which outlives the call.
        let bound = unsafe { libc::bind(fd, ptr::from_ref(&address).cast(), len) };
        assert_eq!(bound, 0, "{}", io::Error::last_os_error());
        Host { socket }
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        let fd = self.socket.as_raw_fd();
        loop {
            // SAFETY: pointer and length describe `frame`.
            let sent = unsafe { libc::send(fd, frame.as_ptr().cast(), frame.len(), 0) };
            if sent >= 0 {
                return;
            }
            let why = io::Error::last_os_error();
            assert_eq!(why.raw_os_error(), Some(libc::EAGAIN), "{why}");
        }
    }

    pub(crate) fn receive(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 4_096];
        let fd = self.socket.as_raw_fd();
        // SAFETY: pointer and length describe `frame`.
        let len = unsafe { libc::recv(fd, frame.as_mut_ptr().cast(), frame.len(), 0) };
        frame.truncate(usize::try_from(len).ok()?);
        Some(frame)
    }
}

impl AsFd for Host {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A frame that differs from every other number's in length and bytes.
pub(crate) fn frame(number: u32) -> Vec<u8> {
    let len = 60 + (number as usize * 37) % 1_455;
    let seed = number.rotate_left(3).to_be_bytes()[3];
    let mut bytes: Vec<u8> = (0..=u8::MAX).cycle().take(len).map(|at| at ^ seed).collect();
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&ETHERTYPE);
    bytes[14..18].copy_from_slice(&number.to_be_bytes());
    bytes
}
