//! Network namespaces: a thread goes into one, and the sockets that it opens there stay in it
//! wherever they are used later. Namespaces are made and removed by `ip netns`. TCP sockets with
//! what the standard library does not offer: signatures, several paths, data in the SYN.
#![expect(unsafe_code, reason = "system calls that take a descriptor")]

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

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
        let network = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.0.as_fd(), network)?)
    }
}

/// Gives the packets that an IPv4 socket sends a DSCP.
///
/// # Errors
/// When it is no IPv4 socket.
pub fn set_dscp(socket: impl AsFd, dscp: u8) -> io::Result<()> {
    // the two bits below it are ECN's, and TCP's own
    Ok(sockopt::set_ip_tos(socket, dscp << 2)?)
}

/// Makes a TCP socket that is open already use another law of congestion, such as `cubic`.
///
/// # Errors
/// When the kernel has none of that name, or it is no TCP socket.
pub fn set_congestion(socket: impl AsFd, law: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(socket, law)?)
}

/// A TCP socket over IPv4 that is not connected yet.
#[derive(Debug)]
pub struct TcpSocket(OwnedFd);

/// What the kernel tells of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bits: 1 clocks, 2 SACK, 8 ECN, 32 data in the SYN were acknowledged.
    pub options: u8,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// Segments with data that were sent, again or not.
    pub sent: u32,
    /// Segments with data that came.
    pub received: u32,
    /// The window that the other side shows, in bytes.
    pub window: u32,
}

/// The key of a signature, as the kernel takes it: `struct tcp_md5sig`.
#[repr(C)]
struct Signature {
    family: u16,
    port: u16,
    address: [u8; 4],
    rest: [u8; 120],
    flags: u8,
    prefix: u8,
    key_bytes: u16,
    interface: i32,
    key: [u8; 80],
}

impl TcpSocket {
    /// One for a single path, or for several (MPTCP).
    ///
    /// # Errors
    /// When the kernel has no such protocol.
    pub fn new(several_paths: bool) -> io::Result<TcpSocket> {
        let protocol = if several_paths { ipproto::MPTCP } else { ipproto::TCP };
        let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
        Ok(TcpSocket(socket_with(AddressFamily::INET, kind, flags, Some(protocol))?))
    }

    /// Signs what is sent to `peer` and asks for signatures of what comes from there (TCP MD5).
    ///
    /// # Errors
    /// When the kernel was built without `CONFIG_TCP_MD5SIG`.
    pub fn sign(&self, peer: Ipv4Addr, key: &[u8]) -> io::Result<()> {
        let mut signature = Signature {
            family: u16::try_from(libc::AF_INET).unwrap_or(2),
            port: 0,
            address: peer.octets(),
            rest: [0; 120],
            flags: 0,
            prefix: 0,
            key_bytes: u16::try_from(key.len().min(80)).unwrap_or(80),
            interface: 0,
            key: [0; 80],
        };
        signature.key.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        self.set(libc::TCP_MD5SIG, &signature)
    }

    /// Sends the first data with the SYN (Fast Open), once the other side has given a cookie.
    ///
    /// # Errors
    /// When the kernel cannot.
    pub fn send_with_syn(&self) -> io::Result<()> {
        self.set(libc::TCP_FASTOPEN_CONNECT, &1i32)
    }

    /// Takes data with the SYN, once this listens.
    ///
    /// # Errors
    /// When the kernel cannot.
    pub fn take_with_syn(&self) -> io::Result<()> {
        self.set(libc::TCP_FASTOPEN, &16i32)
    }

    /// Listens there.
    ///
    /// # Errors
    /// When the address is not this host's, or taken.
    pub fn listen(self, at: SocketAddrV4) -> io::Result<TcpListener> {
        self.bind(at)?;
        rustix::net::listen(&self.0, 16)?;
        Ok(TcpListener::from(self.0))
    }

    /// Leaves from there.
    ///
    /// # Errors
    /// When the address is not this host's, or taken.
    pub fn bind(&self, at: SocketAddrV4) -> io::Result<()> {
        Ok(rustix::net::bind(&self.0, &at)?)
    }

    /// Connects to there.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn connect(self, to: SocketAddrV4) -> io::Result<TcpStream> {
        rustix::net::connect(&self.0, &to)?;
        Ok(TcpStream::from(self.0))
    }

    fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        let bytes = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0);
        let (socket, value) = (self.0.as_raw_fd(), (&raw const *value).cast());
        // SAFETY: the value lives as long as the call and is as long as is said.
        done(unsafe { libc::setsockopt(socket, libc::IPPROTO_TCP, option, value, bytes) })
    }
}

/// What the kernel tells of a connection.
///
/// # Errors
/// When it is no TCP socket, or the kernel is older than 5.4.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut info = [0u8; 232];
    let mut bytes = libc::socklen_t::try_from(info.len()).unwrap_or(0);
    let (socket, to) = (socket.as_fd().as_raw_fd(), info.as_mut_ptr().cast());
    // SAFETY: the kernel writes at most as many bytes as are there.
    done(unsafe {
        libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut bytes)
    })?;
    // places in `struct tcp_info`, which only ever grows
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    if (bytes as usize) < info.len() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(TcpInfo {
        options: info[5],
        retransmitted: word(100),
        sent: word(156),
        received: word(152),
        window: word(228),
    })
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

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
    fn a_socket_connects_and_tells_of_its_connection() {
        let free = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let listener = TcpSocket::new(false).unwrap().listen(free).unwrap();
        let at = listener.local_addr().unwrap();
        let std::net::SocketAddr::V4(at) = at else { panic!("{at}") };
        let stream = TcpSocket::new(false).unwrap().connect(at).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert!(info.window > 0 && info.retransmitted == 0, "{info:?}");
        let (mut far, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut far, b"word").unwrap();
        let mut word = [0; 4];
        std::io::Read::read_exact(&mut &stream, &mut word).unwrap();
        let [near, far] = [tcp_info(&stream).unwrap(), tcp_info(&far).unwrap()];
        assert_eq!([(near.sent, near.received), (far.sent, far.received)], [(0, 1), (1, 0)]);
        assert!(tcp_info(File::open("/dev/null").unwrap()).is_err());
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
