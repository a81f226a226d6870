//! The kernel's edge: system calls behind safe functions, and memory that the kernel writes behind
//! an object whose every access is checked. All `unsafe` of this crate's ports is here; what is
//! built on it (rings, netlink, facts of an interface) is ordinary code.

pub(crate) mod ioctl;
pub(crate) mod mapped;
pub(crate) mod process;
pub(crate) mod socket;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// What a system call returned: its value, or the error that it left.
fn checked(returned: impl TryInto<i64>) -> io::Result<usize> {
    let value = returned.try_into().unwrap_or(-1);
    usize::try_from(value).map_err(|_| io::Error::last_os_error())
}

/// A descriptor that a system call has just made.
#[expect(unsafe_code, reason = "the one place where a number becomes a descriptor")]
fn owned(returned: libc::c_int) -> io::Result<OwnedFd> {
    checked(returned)?;
    // SAFETY: the kernel has just handed out this number to this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(returned) })
}
