//! Sockets as far as ports need them: raw packet sockets and netlink, options, and many frames
//! sent with one call.
#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use weir_units::limits::BURST_FRAMES;

use super::checked;

/// A socket that is closed on exec.
pub(crate) fn open(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let family = AddressFamily::from_raw(u16::try_from(domain).unwrap_or(0));
    let kind = SocketType::from_raw(kind.cast_unsigned());
    let protocol = NonZeroU32::new(protocol.cast_unsigned()).map(Protocol::from_raw);
    Ok(rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?)
}

/// Binds a packet socket to one interface and one Ethernet type (in host order; 0: it only sends).
pub(crate) fn bind_link(fd: BorrowedFd<'_>, index: u32, ethertype: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: FAMILY,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: i32::try_from(index).unwrap_or(i32::MAX),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let bytes = socket_len(size_of_val(&address));
    // SAFETY: the pointer is to `address`, which lives through the call and has `bytes` bytes.
    checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), bytes) }).map(drop)
}

/// Sets an option to a plain value (a number or a C structure of numbers).
pub(crate) fn set<T: Copy>(fd: BorrowedFd<'_>, level: i32, name: i32, to: &T) -> io::Result<()> {
    let bytes = socket_len(size_of::<T>());
    let value: *const T = to;
    // SAFETY: `value` points to `bytes` bytes that the kernel only reads.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.cast(), bytes) }).map(drop)
}

/// Reads an option of up to `N` words; what the kernel does not fill stays 0.
pub(crate) fn get<const N: usize>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
) -> io::Result<[u32; N]> {
    let mut words = [0_u32; N];
    let mut bytes = socket_len(size_of_val(&words));
    let value = words.as_mut_ptr().cast();
    // SAFETY: `value` points to `bytes` writable bytes for which any bits are a value.
    let done = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, value, &raw mut bytes) };
    checked(done).map(|_| words)
}

/// Receives one message, cut to the buffer.
pub(crate) fn receive(fd: BorrowedFd<'_>, into: &mut [u8], flags: i32) -> io::Result<usize> {
    let buffer = into.as_mut_ptr().cast();
    // SAFETY: `buffer` points to `into.len()` writable bytes.
    checked(unsafe { libc::recv(fd.as_raw_fd(), buffer, into.len(), flags) })
}

/// Sends one message.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let buffer = bytes.as_ptr().cast();
    // SAFETY: `buffer` points to `bytes.len()` readable bytes.
    checked(unsafe { libc::send(fd.as_raw_fd(), buffer, bytes.len(), libc::MSG_DONTWAIT) })
}

/// Sends messages in order, as many as the kernel takes now; the error is that of the first.
pub(crate) fn send_many<'f>(
    fd: BorrowedFd<'_>,
    messages: impl Iterator<Item = &'f [u8]>,
) -> io::Result<usize> {
    const PIECE: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut pieces = [PIECE; BURST_FRAMES];
    let mut count = 0;
    for (piece, bytes) in pieces.iter_mut().zip(messages) {
        *piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        count += 1;
    }
    // SAFETY: every field of `mmsghdr` is a number or a pointer, for which zero is a value.
    let mut headers: [libc::mmsghdr; BURST_FRAMES] = unsafe { std::mem::zeroed() };
    for (header, piece) in headers.iter_mut().zip(&mut pieces) {
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
    }
    let first = headers.as_mut_ptr();
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: the first `count` headers each point to one piece, and each piece to the bytes of a
    // message that outlives the call; sending only reads them.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), first, count, flags as _) };
    checked(sent)
}

/// `AF_PACKET` as it stands in an address.
const FAMILY: u16 = 17;

/// The length of an address or option, which is never near the bound.
fn socket_len(bytes: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(bytes).unwrap_or(0)
}
