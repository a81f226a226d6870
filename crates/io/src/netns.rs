//! Network namespaces: a thread goes into one, and the sockets that it opens there stay in it
//! wherever they are used later. Namespaces are made and removed by `ip netns`.
#![expect(unsafe_code, reason = "system calls that take a descriptor")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// Where `ip netns` keeps them.
const FOLDER: &str = "/run/netns";

/// A namespace that exists as long as this does, even if its name is removed meanwhile.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// The one that `ip netns add NAME` made.
    ///
    /// # Errors
    /// When there is none of that name, or it may not be read.
    pub fn open(name: &str) -> io::Result<Namespace> {
        File::open(Path::new(FOLDER).join(name)).map(Namespace)
    }

    /// Moves the calling thread into it, and no other. There is no way back: a thread that only
    /// visits should be one of its own.
    ///
    /// # Errors
    /// Without the right to administer the network (`CAP_SYS_ADMIN`).
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open; only the network of the calling thread changes.
        match unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Gives the packets that an IPv4 socket sends a DSCP.
///
/// # Errors
/// When it is no IPv4 socket.
pub fn set_dscp(socket: impl AsFd, dscp: u8) -> io::Result<()> {
    // the two bits below it are ECN's, and TCP's own
    let byte = libc::c_int::from(dscp) << 2;
    let bytes = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(4);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the value lives as long as the call and is as long as is said.
    let done = unsafe {
        libc::setsockopt(socket, libc::IPPROTO_IP, libc::IP_TOS, (&raw const byte).cast(), bytes)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a TCP socket that is open already use another law of congestion, such as `cubic`.
///
/// # Errors
/// When the kernel has none of that name, or it is no TCP socket.
pub fn set_congestion(socket: impl AsFd, law: &str) -> io::Result<()> {
    let bytes = libc::socklen_t::try_from(law.len()).unwrap_or(0);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the name lives as long as the call and is as long as is said.
    let done = unsafe {
        libc::setsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            law.as_ptr().cast(),
            bytes,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn a_name_that_is_not_there_is_an_error() {
        let error = Namespace::open("weir-no-such-namespace").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_socket_takes_a_dscp_and_a_file_does_not() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_dscp(&socket, 46).unwrap();
        assert!(set_dscp(File::open("/dev/null").unwrap(), 46).is_err());
    }

    #[test]
    fn a_connection_takes_a_law_that_there_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // the one that every kernel has
        set_congestion(&stream, "reno").unwrap();
        assert!(set_congestion(&stream, "no-such-law").is_err());
    }
}
