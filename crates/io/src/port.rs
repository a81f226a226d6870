//! One port, whatever is below it: frames come from the wire and go to it. A port moves bytes
//! between the wire and the buffers of a pool and knows nothing of what they say, except where the
//! kernel left a frame unfinished.

use std::fmt;
use std::io;
use std::ops::AddAssign;
use std::os::fd::{AsFd as _, BorrowedFd};

use weir_packet::{Burst, Pool};

use crate::kernel::{ioctl, socket};
use crate::memory::MemoryPort;
use crate::packet::PacketPort;
use crate::tap::TapPort;
use crate::xsk::{XskCounters, XskPort};

/// Where frames come from the wire and go to it.
#[derive(Debug)]
pub enum Port {
    /// An interface of the kernel, by a packet socket. Works on all of them.
    Packet(Box<PacketPort>),
    /// An interface of the kernel, by AF_XDP. The cheapest, where the kernel has it.
    Xsk(Box<XskPort>),
    /// A tap device: what the kernel sends to it comes here.
    Tap(Box<TapPort>),
    /// Two queues in memory, for tests.
    Memory(Box<MemoryPort>),
}

/// What a port and the kernel below it have counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames that came and were handed up.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames that the kernel took.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that the kernel dropped because they were not fetched in time.
    pub dropped_by_kernel: u64,
    /// Frames that came and were dropped because the pool was empty.
    pub no_buffer: u64,
    /// Frames that are longer than a buffer holds or the interface carries, and dropped.
    pub too_long: u64,
    /// Frames that the kernel refused for good (the interface is down or gone), and dropped.
    pub not_sent: u64,
    /// Frames whose checksum the sender had left to hardware.
    pub repaired_checksums: u64,
    /// Large frames that were cut into frames that a wire carries.
    pub split: u64,
}

/// Whether an interface is there and has link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// It is up and has link.
    Up,
    /// It is there, but down or without link; it goes on by itself when that ends.
    NoLink,
    /// It was removed: this port will not come back, another must be opened.
    Gone,
}

impl Port {
    /// Fills the burst with what has come, up to its room, in buffers from the pool. Never blocks.
    /// Returns how many came.
    pub fn receive(&mut self, pool: &mut Pool, burst: &mut Burst) -> usize {
        match self {
            Port::Packet(port) => port.receive(pool, burst),
            Port::Xsk(port) => port.receive(pool, burst),
            Port::Tap(port) => port.receive(pool, burst),
            Port::Memory(port) => port.receive(pool, burst),
        }
    }

    /// Hands frames to the wire, in order. What the kernel cannot take now stays in the burst; all
    /// other buffers go back to the pool, at once or when the kernel is done with them.
    pub fn transmit(&mut self, pool: &mut Pool, burst: &mut Burst) {
        match self {
            Port::Packet(port) => port.transmit(pool, burst),
            Port::Xsk(port) => port.transmit(pool, burst),
            Port::Tap(port) => port.transmit(pool, burst),
            Port::Memory(port) => port.transmit(pool, burst),
        }
    }

    /// Takes back buffers that the kernel is done with, and kicks what waits. Called once a turn.
    pub fn settle(&mut self, pool: &mut Pool) {
        match self {
            Port::Xsk(port) => port.settle(pool),
            // these copy: no buffer is ever with the kernel
            Port::Packet(_) | Port::Tap(_) | Port::Memory(_) => {}
        }
    }

    /// Whether the kernel has frames that it has not begun to send: come back to
    /// [`Port::settle`] soon.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        match self {
            Port::Xsk(port) => port.unsent() > 0,
            Port::Packet(_) | Port::Tap(_) | Port::Memory(_) => false,
        }
    }

    /// Whether the kernel has no buffer to receive into, and the pool none to give.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        match self {
            Port::Xsk(port) => port.is_starved(),
            // what finds no buffer stays with the kernel, or is dropped and counted one by one
            Port::Packet(_) | Port::Tap(_) | Port::Memory(_) => false,
        }
    }

    /// What to wait on for frames. `None` for memory, and for an interface that is gone.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Port::Packet(port) => port.fd(),
            Port::Xsk(port) => Some(port.fd()),
            Port::Tap(port) => port.fd(),
            Port::Memory(_) => None,
        }
    }

    /// What was counted since the port was opened.
    pub fn counters(&mut self) -> PortCounters {
        match self {
            Port::Packet(port) => port.counters(),
            Port::Xsk(port) => port.counters().into(),
            Port::Tap(port) => port.counters(),
            Port::Memory(port) => port.counters(),
        }
    }

    /// Whether the interface is there and has link.
    pub fn state(&mut self) -> PortState {
        match self {
            Port::Packet(port) => port.state(),
            Port::Xsk(port) => {
                if port.is_gone() {
                    PortState::Gone
                } else {
                    link_of(port.index())
                }
            }
            Port::Tap(port) => port.state(),
            Port::Memory(port) => port.state(),
        }
    }

    /// Closes the port; buffers that the kernel had go back to the pool. Returns how many did not.
    pub fn close(self, pool: &mut Pool) -> usize {
        match self {
            Port::Xsk(port) => port.close(pool),
            Port::Packet(_) | Port::Tap(_) | Port::Memory(_) => 0,
        }
    }
}

impl PortCounters {
    pub(crate) fn came(&mut self, bytes: usize) {
        self.received_frames += 1;
        self.received_bytes += bytes as u64;
    }

    pub(crate) fn went(&mut self, bytes: usize) {
        self.sent_frames += 1;
        self.sent_bytes += bytes as u64;
    }
}

/// What the kernel says of an interface.
fn link_of(index: u32) -> PortState {
    let any = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0);
    match any.and_then(|any| ioctl::status(any.as_fd(), index)) {
        Ok(status) if status.up => PortState::Up,
        Ok(_) => PortState::NoLink,
        Err(_) => PortState::Gone,
    }
}

impl From<XskCounters> for PortCounters {
    fn from(counted: XskCounters) -> PortCounters {
        PortCounters {
            received_frames: counted.received,
            received_bytes: counted.received_bytes,
            sent_frames: counted.sent,
            sent_bytes: counted.sent_bytes,
            dropped_by_kernel: counted.ring_full + counted.fill_empty,
            no_buffer: counted.no_buffer,
            too_long: counted.dropped,
            not_sent: counted.not_sent,
            repaired_checksums: counted.repaired_checksums,
            ..PortCounters::default()
        }
    }
}
/// A port is opened where rights are, and turned on the thread of its engine.
const _: () = {
    const fn can_move<T: Send>() {}
    can_move::<Port>();
};

/// Both sides of a link, or a port and the one that it replaced.
impl AddAssign for PortCounters {
    fn add_assign(&mut self, other: PortCounters) {
        self.received_frames += other.received_frames;
        self.received_bytes += other.received_bytes;
        self.sent_frames += other.sent_frames;
        self.sent_bytes += other.sent_bytes;
        self.dropped_by_kernel += other.dropped_by_kernel;
        self.no_buffer += other.no_buffer;
        self.too_long += other.too_long;
        self.not_sent += other.not_sent;
        self.repaired_checksums += other.repaired_checksums;
        self.split += other.split;
    }
}

/// Why a port could not be opened.
#[derive(Debug)]
pub struct OpenError {
    name: String,
    what: &'static str,
    error: io::Error,
}

impl OpenError {
    pub(crate) fn new(name: &str, what: &'static str, error: io::Error) -> Self {
        OpenError { name: name.to_owned(), what, error }
    }

    /// What the kernel said.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.error.kind()
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpenError { name, what, error } = self;
        write!(f, "\"{name}\" {what}: {error}")?;
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => write!(f, "; {}", crate::privileges::CURE),
            Some(libc::ENODEV | libc::ENXIO) => {
                write!(f, "; `ip -brief link` lists the interfaces there are")
            }
            Some(libc::ENOMEM) => write!(f, "; free memory for its ring, or restart the machine"),
            Some(libc::EBUSY) => write!(f, "; another program holds it: `fuser -v /dev/net/tun`"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
