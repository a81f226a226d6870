//! Messages to and from the kernel about interfaces (rtnetlink). Building and reading them is pure;
//! one function sends a request and collects what comes back. Netlink rather than files of /sys,
//! because those show the network namespace in which /sys was mounted, which need not be ours.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::kernel::socket;

/// Bytes of `struct nlmsghdr`, and of `struct ifinfomsg` behind it.
const HEAD_BYTES: usize = 16;
const LINK_BYTES: usize = 16;
const ATTRIBUTE_BYTES: usize = 4;
/// Bytes of `struct genlmsghdr`.
const GENERIC_BYTES: usize = 4;
/// The flag of an attribute that holds others.
const NESTED: u16 = 0x8000;
/// What the kernel may answer in one datagram.
const ANSWER_BYTES: usize = 64 << 10;

const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Flags of a request: all there are, and a word when it is done.
const DUMP: u16 = 0x300;
const ACK: u16 = 4;

/// A request that is being written.
#[derive(Clone, Debug)]
pub(super) struct Request(Vec<u8>);

impl Request {
    /// A request of that type about the link with that number (0: by name, or all).
    pub(super) fn link(kind: u16, flags: i32, index: u32) -> Self {
        Request::of_family(0, kind, flags, index)
    }

    /// The same for one family, such as bridges.
    pub(super) fn of_family(family: u8, kind: u16, flags: i32, index: u32) -> Self {
        let mut bytes = vec![0; HEAD_BYTES + LINK_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = u16::try_from(flags | libc::NLM_F_REQUEST).unwrap_or(0);
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[HEAD_BYTES] = family;
        bytes[HEAD_BYTES + 4..HEAD_BYTES + 8].copy_from_slice(&index.to_ne_bytes());
        Request(bytes)
    }

    /// A request to a family of generic netlink.
    pub(super) fn generic(family: u16, command: u8) -> Self {
        let mut bytes = vec![0; HEAD_BYTES + GENERIC_BYTES];
        bytes[4..6].copy_from_slice(&family.to_ne_bytes());
        let flags = u16::try_from(libc::NLM_F_REQUEST).unwrap_or(0);
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[HEAD_BYTES..HEAD_BYTES + 2].copy_from_slice(&[command, 1]);
        Request(bytes)
    }

    /// Which of the link's flags become what.
    pub(super) fn flags(mut self, set: i32, which: i32) -> Self {
        self.0[HEAD_BYTES + 8..HEAD_BYTES + 12].copy_from_slice(&set.to_ne_bytes());
        self.0[HEAD_BYTES + 12..HEAD_BYTES + 16].copy_from_slice(&which.to_ne_bytes());
        self
    }

    /// Adds an attribute.
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(ATTRIBUTE_BYTES + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Adds a name with its closing zero.
    pub(super) fn with_name(self, kind: u16, name: &str) -> Self {
        let mut bytes = name.as_bytes().to_vec();
        bytes.push(0);
        self.with(kind, &bytes)
    }

    /// Adds an attribute that holds others.
    pub(super) fn nested(mut self, kind: u16, inside: impl FnOnce(Request) -> Request) -> Self {
        let at = self.0.len();
        // newer families insist on the flag, older ones do not mind it
        self = inside(self.with(kind | NESTED, &[]));
        let length = u16::try_from(self.0.len() - at).unwrap_or(u16::MAX);
        self.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    pub(super) fn finished(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// A socket to the kernel; requests of rtnetlink and of generic netlink want one each.
#[derive(Debug)]
pub(super) struct Netlink(OwnedFd);

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE).map(Netlink)
    }

    pub(super) fn generic() -> io::Result<Self> {
        socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC).map(Netlink)
    }

    /// Sends a request and waits for the kernel's word that it is done; what it answers before
    /// that, one message each, without the general header.
    pub(super) fn ask(&self, request: Request) -> io::Result<Vec<Vec<u8>>> {
        let mut bytes = request.finished();
        let flags = u16::from_ne_bytes([bytes[6], bytes[7]]);
        if flags & DUMP != DUMP {
            bytes[6..8].copy_from_slice(&(flags | ACK).to_ne_bytes());
        }
        socket::send(self.0.as_fd(), &bytes)?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; ANSWER_BYTES];
        loop {
            let got = socket::receive(self.0.as_fd(), &mut buffer, 0)?;
            if read(&buffer[..got], &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Reads one datagram of answers; whether it was the last.
fn read(mut datagram: &[u8], answers: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while let Some(head) = datagram.first_chunk::<HEAD_BYTES>() {
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = u16::from_ne_bytes([head[4], head[5]]);
        let Some(body) = datagram.get(HEAD_BYTES..length) else {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        };
        match kind {
            DONE => return Ok(true),
            ERROR => {
                let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                return if code == 0 { Ok(true) } else { Err(io::Error::from_raw_os_error(-code)) };
            }
            _ => answers.push(body.to_vec()),
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The attributes one after another: type and value. What is cut off ends them.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    // whether it is nested or in network order
    const FLAGS: u16 = NESTED | 0x4000;
    std::iter::from_fn(move || {
        let [l0, l1, k0, k1] = *bytes.first_chunk::<ATTRIBUTE_BYTES>()?;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = bytes.get(ATTRIBUTE_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([k0, k1]) & !FLAGS, value))
    })
}

/// The attributes of an answer about a link.
pub(super) fn link_attributes(answer: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    attributes(answer.get(LINK_BYTES..).unwrap_or_default())
}

/// The attributes of an answer of generic netlink.
pub(super) fn generic_attributes(answer: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    attributes(answer.get(GENERIC_BYTES..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back_as_it_was_written() {
        let request = Request::link(16, libc::NLM_F_DUMP, 7)
            .flags(1, 3)
            .with_name(3, "eth0")
            .nested(18, |inside| inside.with(1, b"bridge").with(2, &[1]))
            .with(4, &5_u32.to_ne_bytes())
            .finished();
        assert_eq!(request.len() % 4, 0);
        let mut answers = Vec::new();
        assert!(!read(&request, &mut answers).unwrap());
        let all: Vec<_> = link_attributes(&answers[0]).collect();
        assert_eq!((all[0], all[2]), ((3, &b"eth0\0"[..]), (4, &[5, 0, 0, 0][..])));
        let inside: Vec<_> = attributes(all[1].1).collect();
        assert_eq!(inside, [(1, &b"bridge"[..]), (2, &[1][..])]);
    }

    #[test]
    fn an_error_of_the_kernel_is_an_error() {
        let mut message = [0_u8; 36];
        message[0] = 36;
        message[4] = 2;
        assert!(read(&message, &mut Vec::new()).unwrap());
        message[16..20].copy_from_slice(&(-libc::ENODEV).to_ne_bytes());
        let error = read(&message, &mut Vec::new()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        message[4] = 3;
        assert!(read(&message, &mut Vec::new()).unwrap());
    }

    #[test]
    fn what_is_cut_off_or_contradicts_itself_ends_the_reading() {
        assert_eq!(attributes(&[8, 0, 1, 0, 9]).count(), 0);
        assert_eq!(attributes(&[0, 0, 1, 0, 9, 9, 9, 9]).count(), 0);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert!(read(&[200; 20], &mut Vec::new()).is_err());
        assert!(read(&[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &mut Vec::new()).is_err());
        assert!(!read(&[], &mut Vec::new()).unwrap());
    }
}
