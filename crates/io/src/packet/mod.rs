//! A port by a packet socket (`AF_PACKET`): works on every interface with an Ethernet header, at
//! about twice the price of AF_XDP. Frames come by a ring of memory shared with the kernel and go
//! by one system call for many (a ring to send by was tried and is no cheaper). The kernel hands up
//! frames as its own stack would see them, so what a wire would show is made good here: VLAN tags
//! are put back, checksums completed, large frames cut. Left out: several sockets on one interface,
//! and `TPACKET_V3`, whose blocks delay a lone frame by their timeout.

mod open;
mod ring;

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use weir_packet::{Burst, Frame, Pool};

use crate::kernel::ioctl;
use crate::kernel::socket;
use crate::offload::{self, Splitter, UNDONE_BYTES, Undone};
use crate::port::{PortCounters, PortState};
pub use open::PacketSockets;
use ring::{Arrived, Ring};

/// Target and source address: what stands before a VLAN tag.
const ADDRESS_BYTES: usize = 12;
const TAG_BYTES: usize = 4;
const ETHERNET_BYTES: usize = 14;

/// An interface of the kernel, all of whose frames come here too.
#[derive(Debug)]
pub struct PacketPort {
    /// Receives; its ring is `ring`.
    arriving: OwnedFd,
    /// Only sends: a socket of its own, so that what it sends does not pass the other's filters.
    leaving: OwnedFd,
    ring: Ring,
    index: u32,
    mtu: usize,
    /// A frame that is longer than a slot or a buffer, and how far it is cut.
    large: LargeFrame,
    counters: PortCounters,
}

/// Room for one large frame, and the splitter while it is being cut.
#[derive(Debug)]
struct LargeFrame {
    room: Box<[u8]>,
    from: usize,
    to: usize,
    splitter: Option<Splitter>,
}

/// What became of a frame in the ring.
enum Taken {
    Frame(Frame),
    /// It stands in `large` and is being cut.
    Large,
    Dropped,
}

impl PacketPort {
    pub(crate) fn receive(&mut self, pool: &mut Pool, burst: &mut Burst) -> usize {
        let mut came = 0;
        // every round takes a slot or a part, so a call is bounded even if nothing fits the pool
        for _ in 0..burst.room() {
            let frame = if self.large.splitter.is_some() {
                self.next_part(pool)
            } else if let Some(arrived) = self.ring.peek() {
                let taken = self.take(&arrived, pool);
                self.ring.advance();
                match taken {
                    Taken::Frame(frame) => Some(frame),
                    Taken::Large => self.next_part(pool),
                    Taken::Dropped => None,
                }
            } else {
                self.clear_error(came);
                break;
            };
            let Some(frame) = frame else { continue };
            self.counters.came(frame.len());
            match burst.push(frame) {
                Ok(()) => came += 1,
                Err(frame) => pool.give(frame),
            }
        }
        came
    }

    pub(crate) fn transmit(&mut self, pool: &mut Pool, burst: &mut Burst) {
        let mut asked = false;
        while !burst.is_empty() {
            let fitting = |frame: &&Frame| !is_too_long(pool.bytes(frame), self.mtu);
            let messages = burst.frames().iter().take_while(fitting).map(|frame| pool.bytes(frame));
            let mut messages = messages.peekable();
            if messages.peek().is_none() {
                // the MTU may have become larger; once a burst, because asking has its price
                if !std::mem::replace(&mut asked, true) {
                    self.state();
                    continue;
                }
                self.give_up(pool, burst, |counters| &mut counters.too_long);
                continue;
            }
            match socket::send_many(self.leaving.as_fd(), messages) {
                Ok(0) => return,
                Ok(sent) => {
                    for frame in burst.drain().take(sent) {
                        self.counters.went(frame.len());
                        pool.give(frame);
                    }
                }
                Err(error) => match error.raw_os_error() {
                    // the kernel says the same of a full queue, which ends soon, and of a cable
                    // that is out, which may not: what waited for that would be stale
                    Some(libc::ENOBUFS) if self.state() == PortState::Up => return,
                    Some(libc::EAGAIN | libc::ENOMEM) => return,
                    Some(libc::EINTR) => {}
                    Some(libc::EMSGSIZE) => {
                        // the MTU has become smaller
                        self.state();
                        self.give_up(pool, burst, |counters| &mut counters.too_long);
                    }
                    // down or gone: what waited for it would be stale when it comes back
                    _ => self.give_up(pool, burst, |counters| &mut counters.not_sent),
                },
            }
        }
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.arriving.as_fd())
    }

    pub(crate) fn counters(&mut self) -> PortCounters {
        // reading them sets them to 0 in the kernel
        let read = socket::get(self.arriving.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS);
        if let Ok([_, dropped]) = read {
            self.counters.dropped_by_kernel += u64::from(dropped);
        }
        self.counters
    }

    pub(crate) fn state(&mut self) -> PortState {
        let Ok(status) = ioctl::status(self.leaving.as_fd(), self.index) else {
            return PortState::Gone;
        };
        self.mtu = status.mtu;
        if status.up { PortState::Up } else { PortState::NoLink }
    }

    /// The number of the interface.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    fn take(&mut self, arrived: &Arrived, pool: &mut Pool) -> Taken {
        let added = if arrived.tag.is_some() { TAG_BYTES } else { 0 };
        if arrived.copied || arrived.undone.large.is_some() {
            return self.take_large(arrived, pool);
        }
        let len = arrived.len + added;
        if arrived.held < arrived.len || len > pool.buffer_bytes() {
            self.counters.too_long += 1;
            return Taken::Dropped;
        }
        let Some(frame) = self.buffer(pool, len) else { return Taken::Dropped };
        let bytes = pool.bytes_mut(&frame);
        match (arrived.tag, bytes.split_at_mut_checked(ADDRESS_BYTES)) {
            (Some(tag), Some((addresses, rest))) if rest.len() >= TAG_BYTES => {
                self.ring.copy(arrived, 0, addresses);
                rest[..TAG_BYTES].copy_from_slice(&tag);
                self.ring.copy(arrived, ADDRESS_BYTES, &mut rest[TAG_BYTES..]);
            }
            _ => drop(self.ring.copy(arrived, 0, bytes)),
        }
        self.complete(arrived.undone.behind(added), bytes);
        Taken::Frame(frame)
    }

    /// Fetches a frame that is not in the ring as a whole, or is to be cut.
    fn take_large(&mut self, arrived: &Arrived, pool: &mut Pool) -> Taken {
        let Some(undone) = self.large.fetch(self.arriving.as_fd(), &self.ring, arrived) else {
            self.counters.too_long += 1;
            return Taken::Dropped;
        };
        let bytes = &self.large.room[self.large.from..self.large.to];
        if let Some(large) = undone.large {
            self.large.splitter = Splitter::new(bytes, large);
            return if self.large.splitter.is_some() {
                self.counters.split += 1;
                Taken::Large
            } else {
                self.counters.too_long += 1;
                Taken::Dropped
            };
        }
        let len = bytes.len();
        if len > pool.buffer_bytes() {
            self.counters.too_long += 1;
            return Taken::Dropped;
        }
        let Some(frame) = self.buffer(pool, len) else { return Taken::Dropped };
        let into = pool.bytes_mut(&frame);
        into.copy_from_slice(&self.large.room[self.large.from..self.large.to]);
        self.complete(undone, into);
        Taken::Frame(frame)
    }

    /// The next part of the large frame; the rest of it is dropped if a part finds no buffer.
    fn next_part(&mut self, pool: &mut Pool) -> Option<Frame> {
        let frame = self.buffer(pool, pool.buffer_bytes());
        let bytes = self.large.room.get(self.large.from..self.large.to).unwrap_or_default();
        let splitter = self.large.splitter.as_mut()?;
        let room = frame.as_ref().map(|frame| pool.bytes_mut(frame));
        let len = room.and_then(|room| splitter.write_next(bytes, room));
        if len.is_none() || splitter.is_done() {
            self.large.splitter = None;
        }
        let mut frame = frame?;
        let Some(len) = len else {
            // no part at all fits a buffer
            self.counters.too_long += 1;
            pool.give(frame);
            return None;
        };
        pool.resize(&mut frame, 0, len);
        Some(frame)
    }

    fn buffer(&mut self, pool: &mut Pool, len: usize) -> Option<Frame> {
        let Some(mut frame) = pool.take() else {
            self.counters.no_buffer += 1;
            return None;
        };
        pool.resize(&mut frame, 0, len);
        Some(frame)
    }

    fn complete(&mut self, undone: Undone, bytes: &mut [u8]) {
        if let Some(checksum) = undone.checksum
            && offload::complete(bytes, checksum)
        {
            self.counters.repaired_checksums += 1;
        }
    }

    /// Takes the first frame out of the burst for good.
    fn give_up(
        &mut self,
        pool: &mut Pool,
        burst: &mut Burst,
        counter: impl Fn(&mut PortCounters) -> &mut u64,
    ) {
        if let Some(frame) = burst.pop() {
            *counter(&mut self.counters) += 1;
            pool.give(frame);
        }
    }

    /// An error that the socket holds (the interface went down) would make it readable for ever.
    fn clear_error(&self, came: usize) {
        if came == 0 {
            let _: std::io::Result<[u32; 1]> =
                socket::get(self.arriving.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR);
        }
    }
}

impl LargeFrame {
    /// Puts the whole frame, its tag too, into the room. `None` if it did not come whole.
    fn fetch(&mut self, fd: BorrowedFd<'_>, ring: &Ring, arrived: &Arrived) -> Option<Undone> {
        let whole = UNDONE_BYTES + arrived.len;
        if arrived.copied {
            // it must leave the socket's queue even if it is of no use
            let got = loop {
                match socket::receive(fd, &mut self.room, libc::MSG_DONTWAIT | libc::MSG_TRUNC) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    got => break got.ok()?,
                }
            };
            if got != whole || whole > self.room.len() {
                return None;
            }
        } else if !ring.copy(arrived, 0, self.room.get_mut(UNDONE_BYTES..whole)?) {
            return None;
        }
        (self.from, self.to) = (UNDONE_BYTES, whole);
        let Some(tag) = arrived.tag.filter(|_| arrived.len >= ETHERNET_BYTES) else {
            return Some(arrived.undone);
        };
        // the addresses move forward into the place of what was read before the frame
        self.from -= TAG_BYTES;
        self.room.copy_within(UNDONE_BYTES..UNDONE_BYTES + ADDRESS_BYTES, self.from);
        let at = self.from + ADDRESS_BYTES;
        self.room[at..at + TAG_BYTES].copy_from_slice(&tag);
        Some(arrived.undone.behind(TAG_BYTES))
    }
}

/// Whether an interface with that MTU refuses the frame. A tag of 802.1Q does not count, as in the
/// kernel.
#[inline]
pub(crate) fn is_too_long(bytes: &[u8], mtu: usize) -> bool {
    let over = bytes.len().saturating_sub(mtu + ETHERNET_BYTES);
    over > 0 && (over > TAG_BYTES || bytes.get(12..14) != Some(&[0x81, 0x00]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_does_not_count_towards_the_mtu() {
        let mut frame = [0; 1_519];
        assert!(!is_too_long(&frame[..1_514], 1_500));
        assert!(is_too_long(&frame[..1_515], 1_500));
        frame[12..14].copy_from_slice(&[0x81, 0]);
        assert!(!is_too_long(&frame[..1_518], 1_500));
        assert!(is_too_long(&frame, 1_500));
    }
}
