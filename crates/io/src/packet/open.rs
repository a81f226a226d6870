//! How a packet port is opened: the options in the order in which the kernel takes them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use weir_units::limits::{LARGE_FRAME_BYTES, PACKET_RING_BYTES, SOCKET_BUFFER_BYTES};

use super::ring::Ring;
use super::{ETHERNET_BYTES, LargeFrame, PacketPort, TAG_BYTES};
use crate::kernel::ioctl;
use crate::kernel::mapped::Mapped;
use crate::kernel::socket;
use crate::netdev::index_of;
use crate::port::{OpenError, PortCounters};

/// Bytes that the kernel puts before a frame in a slot, at most.
const SLOT_HEAD_BYTES: usize = 128;
/// The ring is made of blocks of so much contiguous memory.
const BLOCK_BYTES: usize = 1 << 16;
const TPACKET_V2: i32 = 1;
const IGNORE_OUTGOING: i32 = 23;
const EVERY_ETHERTYPE: u16 = 3;
const MEMBER_PROMISCUOUS: u16 = 1;

/// What the kernel is told of the ring (`struct tpacket_req`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Geometry {
    block_bytes: u32,
    blocks: u32,
    slot_bytes: u32,
    slots: u32,
}

/// The sockets of a port and what is known of its interface: all that needs a right. Who has none
/// can be handed them and make a [`PacketPort`] of them.
#[derive(Debug)]
pub struct PacketSockets {
    /// Receives, by a ring that is not mapped yet.
    pub arriving: OwnedFd,
    /// Only sends: a socket of its own, so that what it sends does not pass the other's filters.
    pub leaving: OwnedFd,
    /// The number of the interface.
    pub index: u32,
    /// Its MTU, by which the ring was laid out.
    pub mtu: usize,
}

impl PacketSockets {
    /// Opens the interface of that name. All its frames come here, those for others too, beside
    /// what else the kernel does with them.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let failed = |doing| move |error| OpenError::new(name, doing, error);
        let index = index_of(name).map_err(failed("cannot be found"))?;
        let leaving = sender(index).map_err(failed("cannot be opened to send"))?;
        let status = ioctl::status(leaving.as_fd(), index);
        let mtu = status.map_err(failed("does not tell its MTU"))?.mtu;
        let arriving = receiver(index, mtu).map_err(failed("cannot be opened to receive"))?;
        promiscuous(arriving.as_fd(), index).map_err(failed("cannot be made promiscuous"))?;
        Ok(PacketSockets { arriving, leaving, index, mtu })
    }
}

impl PacketPort {
    /// Opens the interface of that name.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        PacketPort::over(name, PacketSockets::open(name)?)
    }

    /// A port over sockets that were opened elsewhere; needs no right.
    pub fn over(name: &str, sockets: PacketSockets) -> Result<Self, OpenError> {
        let PacketSockets { arriving, leaving, index, mtu } = sockets;
        let geometry = Geometry::of(mtu);
        let memory = Mapped::new(Some(arriving.as_fd()), PACKET_RING_BYTES)
            .map_err(|error| OpenError::new(name, "has a ring that cannot be mapped", error))?;
        Ok(PacketPort {
            arriving,
            leaving,
            ring: Ring::new(memory, geometry.slots as usize, geometry.slot_bytes as usize),
            index,
            mtu,
            large: LargeFrame {
                room: vec![0; LARGE_FRAME_BYTES].into_boxed_slice(),
                from: 0,
                to: 0,
                splitter: None,
            },
            counters: PortCounters::default(),
        })
    }
}

fn sender(index: u32) -> io::Result<OwnedFd> {
    let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    let fd = socket.as_fd();
    // without it every frame would take the lock of a queue that weir has already put in order
    socket::set(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)?;
    large_buffer(fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
    socket::bind_link(fd, index, 0)?;
    Ok(socket)
}

fn receiver(index: u32, mtu: usize) -> io::Result<OwnedFd> {
    let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    let fd = socket.as_fd();
    let set = |name, value: i32| socket::set(fd, libc::SOL_PACKET, name, &value);
    set(libc::PACKET_VERSION, TPACKET_V2)?;
    // both before the ring, because they say how its slots are laid out
    set(libc::PACKET_VNET_HDR, 1)?;
    set(libc::PACKET_COPY_THRESH, 1)?;
    // what this box sends itself has been here already
    set(IGNORE_OUTGOING, 1)?;
    large_buffer(fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
    socket::set(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &Geometry::of(mtu))?;
    socket::bind_link(fd, index, EVERY_ETHERTYPE)?;
    Ok(socket)
}

/// The kernel forgets it when the socket is closed, however the process ends.
fn promiscuous(fd: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: i32::try_from(index).unwrap_or(i32::MAX),
        mr_type: MEMBER_PROMISCUOUS,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    socket::set(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// As large as the bound where we may, else as large as the system lets everybody.
fn large_buffer(fd: BorrowedFd<'_>, force: i32, polite: i32) -> io::Result<()> {
    let bytes = i32::try_from(SOCKET_BUFFER_BYTES).unwrap_or(i32::MAX);
    socket::set(fd, libc::SOL_SOCKET, force, &bytes)
        .or_else(|_| socket::set(fd, libc::SOL_SOCKET, polite, &bytes))
}

impl Geometry {
    /// Slots that hold a frame of that MTU, as many as the bound on the ring's memory allows.
    fn of(mtu: usize) -> Self {
        let longest = SLOT_HEAD_BYTES + ETHERNET_BYTES + TAG_BYTES + mtu;
        // a longer one comes through the socket, as large frames do
        let slot_bytes = longest.next_power_of_two().clamp(2_048, BLOCK_BYTES);
        let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Geometry {
            block_bytes: word(BLOCK_BYTES),
            blocks: word(PACKET_RING_BYTES / BLOCK_BYTES),
            slot_bytes: word(slot_bytes),
            slots: word(PACKET_RING_BYTES / slot_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_slots_for_its_mtu_and_never_grows() {
        for (mtu, slot) in [(68, 2_048), (1_500, 2_048), (9_000, 16_384), (1 << 20, 1 << 16)] {
            let geometry = Geometry::of(mtu);
            assert_eq!(geometry.slot_bytes, slot, "{mtu}");
            assert_eq!(
                geometry.slots * geometry.slot_bytes,
                geometry.blocks * geometry.block_bytes
            );
            assert_eq!(geometry.slots as usize * slot as usize, PACKET_RING_BYTES);
        }
    }
}
