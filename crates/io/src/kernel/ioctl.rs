//! Questions about an interface that only `ioctl` answers: its name by number, ethtool's features,
//! the mode of a radio; and the making of tap devices. Each request is a value of an enum, so that
//! none is asked with a buffer smaller than its answer.
#![expect(unsafe_code, reason = "system calls that take pointers")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::checked;

/// Bytes of an interface's name with its closing zero.
pub(crate) const NAME_BYTES: usize = 16;

/// A request whose answer fits `struct ifreq` and holds no pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// The name that belongs to a number.
    NameOf,
    /// The flags of the interface.
    Flags,
    /// Its MTU.
    Mtu,
    /// What a radio does: 2 is a station, 3 an access point.
    WirelessMode,
    /// Makes a tun or tap device of the descriptor.
    MakeTap,
}

impl Request {
    fn number(self) -> libc::Ioctl {
        match self {
            Request::NameOf => libc::SIOCGIFNAME as _,
            Request::Flags => libc::SIOCGIFFLAGS as _,
            Request::Mtu => libc::SIOCGIFMTU as _,
            Request::WirelessMode => 0x8b07,
            Request::MakeTap => libc::TUNSETIFF as _,
        }
    }
}

/// `struct ifreq`: a name and 24 bytes whose meaning depends on the request.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interface {
    name: [u8; NAME_BYTES],
    pub(crate) data: [u8; 24],
}

impl Interface {
    /// The interface of that name; one that is too long for the kernel is cut, and so not found.
    pub(crate) fn named(name: &str) -> Self {
        let mut interface = Interface::default();
        for (to, from) in interface.name[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        interface
    }

    /// The same with a number as its data.
    pub(crate) fn with(mut self, value: u32) -> Self {
        self.data[..4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// The first four bytes of the data.
    pub(crate) fn value(&self) -> u32 {
        u32::from_ne_bytes([self.data[0], self.data[1], self.data[2], self.data[3]])
    }

    /// The first two bytes of the data.
    pub(crate) fn half(&self) -> u16 {
        u16::from_ne_bytes([self.data[0], self.data[1]])
    }

    pub(crate) fn name(&self) -> String {
        let name = self.name.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}

/// Asks, and returns the interface as the kernel filled it in.
pub(crate) fn ask(fd: BorrowedFd<'_>, what: Request, of: Interface) -> io::Result<Interface> {
    let mut interface = of;
    // SAFETY: every `Request` reads and writes no more than a `struct ifreq`, which `interface`
    // is, and follows no pointer in it.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), what.number(), &raw mut interface) };
    checked(done).map(|_| interface)
}

/// What may change of an interface while it is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) name: String,
    pub(crate) mtu: usize,
    /// It was set up and has link.
    pub(crate) up: bool,
}

/// Asks by number, because a name may by now belong to another interface.
pub(crate) fn status(fd: BorrowedFd<'_>, index: u32) -> io::Result<Status> {
    const UP: u16 = 0x1;
    const RUNNING: u16 = 0x40;
    let name = ask(fd, Request::NameOf, Interface::default().with(index))?.name();
    let flags = ask(fd, Request::Flags, Interface::named(&name))?.half();
    let mtu = ask(fd, Request::Mtu, Interface::named(&name))?.value() as usize;
    // the flag follows the link with a delay; a driver that cannot be asked leaves us only that
    let link = ethtool(fd, &name, EthtoolCommand::GetLink, 0).map(|link| link != 0);
    let up = flags & UP != 0 && link.unwrap_or(flags & RUNNING != 0);
    Ok(Status { name, mtu, up })
}

/// An ethtool command that takes and gives one number.
pub(crate) fn ethtool(
    fd: BorrowedFd<'_>,
    name: &str,
    command: EthtoolCommand,
    value: u32,
) -> io::Result<u32> {
    let mut question = [command as u32, value];
    let mut interface = Interface::named(name);
    let address = question.as_mut_ptr().expose_provenance();
    interface.data[..size_of::<usize>()].copy_from_slice(&address.to_ne_bytes());
    // SAFETY: every `EthtoolCommand` uses a `struct ethtool_value`, two words, to which the data
    // of `interface` points and which lives through the call.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), ETHTOOL, &raw mut interface) };
    checked(done).map(|_| question[1])
}

const ETHTOOL: libc::Ioctl = 0x8946;

/// The commands with one number (`linux/ethtool.h`).
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum EthtoolCommand {
    GetLink = 0x0a,
    GetTxChecksums = 0x16,
    SetTxChecksums = 0x17,
    GetTso = 0x1e,
    SetTso = 0x1f,
    GetGso = 0x23,
    SetGso = 0x24,
    GetFlags = 0x25,
    SetFlags = 0x26,
    GetGro = 0x2b,
    SetGro = 0x2c,
}
