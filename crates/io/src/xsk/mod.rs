//! A port by AF_XDP: frames go between the kernel and the pool's own memory over rings that both
//! sides see, without a system call per frame and, in copy mode, with one copy each way. A small
//! program at the netdev (crate xdp) decides which frames come here; the port gives it its sockets.
//!
//! Left out: frames in several buffers (an MTU above 3818), busy polling (it burned a core and won
//! nothing where it was measured), and sending on more than one queue (it would break the order).

mod error;
mod held;
mod map;
mod ring;
mod socket;

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{io, mem};

use weir_packet::{Burst, MemoryId, Pool};
use weir_units::limits::{XSK_QUEUES, XSK_RESERVE_FRAMES, XSK_RING_FRAMES};

pub use error::XskError;

use crate::offload;
use crate::umem::Umem;
use error::Step;
use held::Held;
pub use socket::bare_sockets;
use socket::{Opening, Socket, address, put_address};

/// Which port, and how.
#[derive(Clone, Debug)]
pub struct XskSpec {
    /// Its name, for messages.
    pub port: String,
    /// Its number in this network namespace.
    pub ifindex: u32,
    /// Its receive queues that this port serves, by number ("combined" in `ethtool -l`); the first
    /// one sends. A frame that arrives at a queue without a socket is not seen here: together, the
    /// ports of a netdev have to serve all of its queues. One thread has all of them as one port,
    /// several have a port each.
    pub queues: Range<u32>,
    /// Let the NIC write into our memory by itself if its driver can. The kernel falls back to
    /// copying if not.
    pub zero_copy: bool,
    /// Slots of each ring, a power of two.
    pub ring_frames: usize,
    /// Free buffers that the pool keeps: the kernel gets none below that.
    pub reserve: usize,
    /// Complete checksums that who sends over a virtual interface has left to hardware.
    pub completes: bool,
}

/// A port of the box: queues of one netdev, all of them or those of one thread. One thread owns it,
/// and the pool it works with. The pool has to be over the memory that the port was opened with;
/// the port panics with any other.
#[derive(Debug)]
pub struct XskPort {
    /// The first sends.
    queues: Vec<Socket>,
    /// Which queue is asked first.
    turn: usize,
    /// What to wait for when there are several queues.
    several: Option<OwnedFd>,
    /// Sockets that were never bound.
    spares: Vec<OwnedFd>,
    held: Held,
    spec: XskSpec,
    /// The memory that buffers are numbered in.
    id: MemoryId,
    memory: libc::xdp_umem_reg,
    zero_copy: bool,
    gone: bool,
    /// It was set down: the kernel leaves what it is given in the ring.
    down: bool,
    /// A queue has no buffer to receive into.
    starved: bool,
    counted: XskCounters,
}

/// What a port did, and what the kernel dropped before it came here. Counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskCounters {
    /// Frames that came in.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames handed to the kernel to send.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames the kernel dropped: longer than a buffer, for the most part.
    pub dropped: u64,
    /// Frames the kernel dropped because we took too few out of the receive ring.
    pub ring_full: u64,
    /// Times the kernel found no buffer to receive into. In copy mode that is a frame dropped.
    pub fill_empty: u64,
    /// Frames the kernel refused to send. Not zero is a fault in weir, unless some were taken back
    /// because the interface was down.
    pub invalid: u64,
    /// Frames that were dropped because the interface was down.
    pub not_sent: u64,
    /// Frames whose checksum the sender had left to hardware.
    pub repaired_checksums: u64,
    /// Times the fill ring was left short because the pool was down to its reserve.
    pub no_buffer: u64,
    /// Buffers that came back though the kernel did not have them, and frames given to send that
    /// are of no buffer. Not zero is a fault in weir.
    pub astray: u64,
}

impl XskSpec {
    /// The first queue, rings and reserve as usual, zero copy if there is.
    #[must_use]
    pub fn of(port: &str, ifindex: u32) -> XskSpec {
        XskSpec {
            port: port.to_owned(),
            ifindex,
            queues: 0..1,
            zero_copy: true,
            ring_frames: XSK_RING_FRAMES,
            reserve: XSK_RESERVE_FRAMES,
            completes: false,
        }
    }
}

impl XskPort {
    /// Opens its queues and gives the kernel buffers to receive into. Frames come once a program
    /// at the netdev sends them to [`XskPort::sockets`]. It may wait for up to half a second for
    /// the kernel to let go of a socket that was at the same queue. A pool over other memory is
    /// refused.
    pub fn open(umem: &Umem, pool: &mut Pool, spec: &XskSpec) -> Result<XskPort, XskError> {
        if !umem.is_of(pool) {
            let why = io::ErrorKind::InvalidInput.into();
            return Err(XskError::new(&spec.port, spec.queues.start, Step::Pool, why));
        }
        let mut port = XskPort::reopen(umem, spec)?;
        port.refill(pool);
        Ok(port)
    }

    /// The same while another thread works with the pool over `umem`: the kernel gets buffers at
    /// the first [`XskPort::settle`] there.
    pub fn reopen(umem: &Umem, spec: &XskSpec) -> Result<XskPort, XskError> {
        let sockets = bare_sockets(spec.queues.len())
            .map_err(|why| XskError::new(&spec.port, spec.queues.start, Step::Socket, why))?;
        XskPort::over(umem, spec, sockets)
    }

    /// The same over [`bare_sockets`] that were made elsewhere, one for each queue; needs no right
    /// but memory that may be locked. More than one a queue are kept, to ask the kernel by them
    /// whether it has let go of a zero copy queue when the port is closed.
    pub fn over(umem: &Umem, spec: &XskSpec, sockets: Vec<OwnedFd>) -> Result<XskPort, XskError> {
        let failed = |queue, step, why| XskError::new(&spec.port, queue, step, why);
        let Range { start, end } = spec.queues;
        let count = spec.queues.len();
        if count == 0 || end as usize > XSK_QUEUES || sockets.len() < count {
            let why = io::ErrorKind::InvalidInput.into();
            return Err(failed(end.saturating_sub(1), Step::Queues, why));
        }
        let memory = umem.registration();
        let mut queues = Vec::with_capacity(count);
        let mut sockets = sockets.into_iter();
        for (queue, fd) in spec.queues.clone().zip(sockets.by_ref()) {
            let opening = Opening { beside: queues.first(), ..opening(spec, memory, queue) };
            let socket = Socket::over(fd, opening);
            queues.push(socket.map_err(|(step, why)| failed(queue, step, why))?);
        }
        let several = match &queues[..] {
            [_] => None,
            all => Some(wait_for_all(all).map_err(|why| failed(start, Step::Wait, why))?),
        };
        Ok(XskPort {
            turn: 0,
            several,
            held: Held::none_of(umem.frames()),
            spec: spec.clone(),
            id: umem.id(),
            memory,
            zero_copy: queues.iter().all(Socket::is_zero_copy),
            gone: false,
            down: false,
            starved: false,
            counted: XskCounters::default(),
            queues,
            spares: sockets.collect(),
        })
    }

    /// Adds what has arrived to the burst, as far as it has room; says how many frames. The queues
    /// take turns in coming first. Never blocks.
    pub fn receive(&mut self, pool: &mut Pool, burst: &mut Burst) -> usize {
        self.id.expect_same(pool.memory());
        let XskPort { queues, held, counted, memory, .. } = self;
        let before = burst.len();
        let first = self.turn;
        self.turn = if first + 1 < queues.len() { first + 1 } else { 0 };
        let (behind, ahead) = queues.split_at_mut(first);
        for queue in ahead.iter_mut().chain(behind) {
            queue.receive.take(burst.room(), |slot| {
                let (address, len) = slot.get();
                let (index, at) = place(memory, address);
                let ours = held.got_back(index);
                match pool.frame_from(index, at, len as usize).filter(|_| ours) {
                    Some(frame) => {
                        counted.received_bytes += u64::from(len);
                        burst.push(frame).expect("no more were asked for than it has room for");
                    }
                    None => counted.astray += 1,
                }
            });
        }
        let frames = burst.len() - before;
        counted.received += frames as u64;
        if self.spec.completes {
            self.complete_checksums(pool, burst, before);
        }
        frames
    }

    /// The kernel says nothing of a checksum that is left to hardware to a socket of this kind, but
    /// what stands in its place does.
    fn complete_checksums(&mut self, pool: &mut Pool, burst: &Burst, from: usize) {
        for frame in &burst.frames()[from..] {
            let bytes = pool.bytes_mut(frame);
            if let Some(undone) = offload::undone(bytes)
                && offload::complete(bytes, undone)
            {
                self.counted.repaired_checksums += 1;
            }
        }
    }

    /// Hands frames to the kernel in their order. What the ring cannot take stays in the burst.
    /// They leave at the next [`XskPort::settle`].
    pub fn transmit(&mut self, pool: &mut Pool, burst: &mut Burst) {
        self.id.expect_same(pool.memory());
        if self.down {
            // what waited until the interface is up again would be stale by then
            self.counted.not_sent += burst.len() as u64;
            burst.drain().for_each(|frame| pool.give(frame));
            return;
        }
        let XskPort { queues, held, counted, memory, .. } = self;
        let Some(out) = queues.first_mut().and_then(|queue| queue.out.as_mut()) else { return };
        // asked before a frame is popped, so that none needs to be put back
        let room = out.transmit.room(burst.len());
        out.transmit.give(room, |slot| {
            // frames that cannot be sent take no slot: the kernel would never give them back
            while let Some(frame) = burst.pop() {
                let len = frame.len();
                if len == 0 || !held.gave(frame.index()) {
                    counted.astray += 1;
                    pool.give(frame);
                    continue;
                }
                let (index, at, len) = frame.into_parts();
                let start = u64::from(index) * u64::from(memory.chunk_size);
                slot.put(start + u64::from(at), u32::from(len));
                counted.sent += 1;
                counted.sent_bytes += u64::from(len);
                return true;
            }
            false
        });
    }

    /// Once per turn: wakes the kernel for what there is to send, takes back what it has sent, and
    /// gives it buffers to receive into as far as the pool has more than its reserve.
    pub fn settle(&mut self, pool: &mut Pool) {
        self.id.expect_same(pool.memory());
        self.wake();
        if self.down {
            self.withdraw(pool);
        }
        self.complete(pool);
        self.refill(pool);
    }

    /// Frames given to send that the kernel has not taken. While there are any, come back to
    /// [`XskPort::settle`] soon instead of waiting for something to arrive.
    #[must_use]
    pub fn unsent(&self) -> usize {
        // while it is down there is nothing to come back for
        let out = self.queues.first().filter(|_| !self.down).and_then(|queue| queue.out.as_ref());
        out.map_or(0, |out| out.transmit.untaken())
    }

    /// Becomes readable when a frame has arrived; wait for that only. Once the netdev is gone it
    /// stays in a state of error, see [`XskPort::is_gone`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.several {
            Some(all) => all.as_fd(),
            None => self.queues[0].as_fd(),
        }
    }

    /// The sockets with their queues, for the program at the netdev.
    pub fn sockets(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        self.spec.queues.clone().zip(self.queues.iter().map(AsFd::as_fd))
    }

    /// Whether the netdev was removed under the port: then it is to be closed, and opened again
    /// when the netdev is back. A link that is merely down is not gone. A system call per queue.
    pub fn is_gone(&mut self) -> bool {
        let fault = |queue: &Socket| queue.fault() == Some(libc::ENETDOWN);
        // every socket is asked, for asking clears it
        self.gone |= self.queues.iter().filter(|queue| fault(queue)).count() > 0;
        self.gone
    }

    /// Whether one of its queues has no buffer to receive into, and the pool none to give.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// The number of the interface.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.spec.ifindex
    }

    /// Whether the NIC itself reads and writes the frames.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Buffers that the kernel has of this port.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.count()
    }

    /// What happened since the port was opened. A system call per queue: not for every turn.
    pub fn counters(&mut self) -> XskCounters {
        let mut counters = self.counted;
        for kernel in self.queues.iter().map(Socket::statistics) {
            counters.dropped += kernel.rx_dropped;
            counters.ring_full += kernel.rx_ring_full;
            counters.fill_empty += kernel.rx_fill_ring_empty_descs;
            counters.invalid += kernel.tx_invalid_descs + kernel.rx_invalid_descs;
        }
        counters
    }

    /// Closes the sockets and gives the pool every buffer that the kernel had; says how many it
    /// could not give back. Frames that waited in a ring, either way, are lost.
    ///
    /// In copy mode the kernel has let go when the sockets are closed. (Where a driver sends from
    /// pages instead of a copy, as virtio-net does, a frame just under way may leave with the bytes
    /// of a later one.) In zero copy mode the NIC may still write into its buffers, so this waits,
    /// for half a second a queue at most, until the kernel has taken them from it; if it does not,
    /// they stay out of the pool until the process ends.
    pub fn close(mut self, pool: &mut Pool) -> usize {
        self.id.expect_same(pool.memory());
        let sure = !self.zero_copy || self.is_gone();
        let XskPort { queues, several, mut held, spec, memory, spares, .. } = self;
        drop(several);
        drop(queues);
        if !sure && !has_let_go(&spec, memory, spares) {
            return held.count();
        }
        for index in held.take_all() {
            if let Some(frame) = pool.frame_from(index, 0, 0) {
                pool.give(frame);
            }
        }
        0
    }

    fn wake(&mut self) {
        let XskPort { queues, gone, down, .. } = self;
        let Some(queue) = queues.first() else { return };
        let Some(out) = &queue.out else { return };
        let mut left = out.transmit.untaken();
        // whether it is up again is found by asking; once a turn is cheap enough while it is down
        let mut ask = mem::take(down);
        // a wakeup ends early when its budget is used up or the device refused a frame: go on as
        // long as each one brings something forward
        while ask || (left > 0 && out.transmit.needs_wakeup()) {
            ask = false;
            if let Err(why) = queue.wake_transmit() {
                *gone |= why.raw_os_error() == Some(libc::ENXIO);
                *down = why.raw_os_error() == Some(libc::ENETDOWN);
            }
            let before = mem::replace(&mut left, out.transmit.untaken());
            if left >= before {
                break;
            }
        }
    }

    /// Takes back what the kernel will not send while the interface is down. In copy mode it looks
    /// at the ring only when it is woken, which is done by this thread, so nobody reads a slot
    /// while it is made void; in zero copy mode the driver may, and the frames stay.
    fn withdraw(&mut self, pool: &mut Pool) {
        let XskPort { queues, held, counted, memory, zero_copy, .. } = self;
        if *zero_copy {
            return;
        }
        let Some(out) = queues.first_mut().and_then(|queue| queue.out.as_mut()) else { return };
        out.transmit.each_untaken(|slot| {
            let (address, _) = slot.get();
            let (index, _) = place(memory, address);
            // a slot that is void already has an address of no buffer
            if held.got_back(index)
                && let Some(frame) = pool.frame_from(index, 0, 0)
            {
                pool.give(frame);
                counted.not_sent += 1;
            }
            slot.put(u64::MAX, u32::MAX);
        });
    }

    fn complete(&mut self, pool: &mut Pool) {
        let XskPort { queues, held, counted, memory, .. } = self;
        let Some(out) = queues.first_mut().and_then(|queue| queue.out.as_mut()) else { return };
        out.completion.take(usize::MAX, |slot| {
            let (index, _) = place(memory, address(slot));
            let ours = held.got_back(index);
            match pool.frame_from(index, 0, 0).filter(|_| ours) {
                Some(frame) => pool.give(frame),
                None => counted.astray += 1,
            }
        });
    }

    fn refill(&mut self, pool: &mut Pool) {
        let XskPort { queues, held, counted, memory, spec, starved, .. } = self;
        *starved = false;
        for queue in queues {
            let room = queue.fill.room(spec.ring_frames);
            let wanted = room.min(pool.free().saturating_sub(spec.reserve));
            counted.no_buffer += u64::from(wanted < room);
            queue.fill.give(wanted, |slot| {
                let Some(frame) = pool.take() else { return false };
                let (index, ..) = frame.into_parts();
                held.gave(index);
                put_address(slot, u64::from(index) * u64::from(memory.chunk_size));
                true
            });
            if wanted == 0 && room > 0 {
                *starved |= queue.fill.untaken() == 0;
            }
            queue.wake_fill();
        }
    }
}

fn opening<'a>(spec: &XskSpec, memory: libc::xdp_umem_reg, queue: u32) -> Opening<'a> {
    Opening {
        memory,
        ifindex: spec.ifindex,
        queue,
        ring: u32::try_from(spec.ring_frames).unwrap_or(u32::MAX),
        sends: queue == spec.queues.start,
        copy: !spec.zero_copy,
        beside: None,
    }
}

/// Buffer and offset of an address in the memory.
#[inline]
fn place(memory: &libc::xdp_umem_reg, address: u64) -> (u32, usize) {
    // a power of two, but the compiler does not know; a shift costs nothing
    let shift = memory.chunk_size.trailing_zeros();
    let index = u32::try_from(address >> shift).unwrap_or(u32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "less than the size of a chunk")]
    let at = (address & (u64::from(memory.chunk_size) - 1)) as usize;
    (index, at)
}

/// Whether the kernel has taken each queue from a closed socket: then a new one can be bound, for
/// the kernel stops the NIC first. It lets go in the background, so this waits.
fn has_let_go(spec: &XskSpec, memory: libc::xdp_umem_reg, spares: Vec<OwnedFd>) -> bool {
    let mut spares = spares.into_iter();
    let mut probes = spec.queues.clone().map(|queue| Opening {
        copy: true,
        ring: 2,
        ..opening(spec, memory, queue)
    });
    probes.all(|opening| match spares.next() {
        Some(spare) => Socket::over(spare, opening).is_ok(),
        None => Socket::open(opening).is_ok(),
    })
}

/// One descriptor that is readable when any of the sockets is.
fn wait_for_all(sockets: &[Socket]) -> io::Result<OwnedFd> {
    // SAFETY: the call takes a number only.
    let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
    let all = unsafe { OwnedFd::from_raw_fd(fd) };
    for socket in sockets {
        let mut wish = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: `wish` outlives the call, which only reads it.
        let added = unsafe { libc::epoll_ctl(fd, libc::EPOLL_CTL_ADD, socket, &raw mut wish) };
        if added < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};

    use super::*;
    use crate::umem::FrameSize;

    #[test]
    fn a_port_can_move_to_the_thread_that_serves_it() {
        fn moves<T: Send>() {}
        moves::<XskPort>();
    }

    /// In a network of its own, whose loopback is its number 1. Zero copy, which alone needs it, is
    /// more than a loopback knows, but the kernel tidies up in the same place.
    #[test]
    fn whether_the_kernel_has_let_go_of_a_queue_can_be_asked() {
        // SAFETY: the call takes a number only; the thread has no sockets yet.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
            println!("skipped, needs root: unshare: {}", io::Error::last_os_error());
            return;
        }
        let (umem, mut pool) = Umem::with_pool(4_096, FrameSize::Large).unwrap();
        let spec = XskSpec::of("lo", 1);
        let port = XskPort::open(&umem, &mut pool, &spec).unwrap();
        assert!(!has_let_go(&spec, umem.registration(), Vec::new()));
        assert_eq!((port.held(), pool.free()), (XSK_RING_FRAMES, 4_096 - XSK_RING_FRAMES));
        assert_eq!(port.close(&mut pool), 0);
        assert!(has_let_go(&spec, umem.registration(), Vec::new()));
        assert_eq!(pool.free(), 4_096);
    }

    #[test]
    fn a_port_refuses_the_pool_of_another_memory() {
        // SAFETY: the call takes a number only; the thread has no sockets yet.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
            println!("skipped, needs root: unshare: {}", io::Error::last_os_error());
            return;
        }
        let of_a_size = || Umem::with_pool(4_096, FrameSize::Normal).unwrap();
        let ((umem, mut pool), (_, mut other)) = (of_a_size(), of_a_size());
        let spec = XskSpec::of("lo", 1);
        let refused = XskPort::open(&umem, &mut other, &spec).unwrap_err().to_string();
        assert!(refused.contains("give the pool that came with this memory"), "{refused}");
        let mut port = XskPort::open(&umem, &mut pool, &spec).unwrap();
        let mut settle =
            |pool: &mut Pool| panic::catch_unwind(AssertUnwindSafe(|| port.settle(pool))).is_ok();
        assert!(!settle(&mut other) && settle(&mut pool));
        assert_eq!((other.free(), port.close(&mut pool)), (4_096, 0));
    }
}
