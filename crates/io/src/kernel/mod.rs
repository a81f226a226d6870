//! The kernel's edge: system calls behind safe functions, and memory that the kernel writes behind
//! an object whose every access is checked. All `unsafe` of this crate's ports is here; what is
//! built on it (rings, netlink, facts of an interface) is ordinary code.

pub(crate) mod ioctl;
pub(crate) mod mapped;
pub(crate) mod process;
pub(crate) mod socket;

use std::io;

/// What a system call returned: its value, or the error that it left.
fn checked(returned: impl TryInto<i64>) -> io::Result<usize> {
    let value = returned.try_into().unwrap_or(-1);
    usize::try_from(value).map_err(|_| io::Error::last_os_error())
}
