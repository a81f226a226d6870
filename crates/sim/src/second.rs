//! smoltcp behind the face of our own TCP: somebody else's code on the same hosts, so that a result
//! does not hang on one model. It gets and gives whole IP packets and counts what it sends by
//! looking at them.

use std::collections::VecDeque;
use std::net::IpAddr;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant as Moment};
use smoltcp::wire::{HardwareAddress, IpCidr};
use weir_units::Instant;

use crate::tcp::{Control, Counts, Segment, TcpSpec};

const MTU: usize = 1_500;

/// One end of a connection.
pub(crate) struct Second {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    wire: Wire,
    /// What the application has written and the socket has no room for.
    unsent: u64,
    closes: bool,
    delivered: u64,
    told: u64,
    deadline: Instant,
    /// Something has happened since it was asked what it sends.
    is_due: bool,
    /// The number behind the last byte that was ever sent.
    highest: Option<u32>,
    pub(crate) counts: Counts,
}

/// Packets on their way in and out.
#[derive(Default)]
struct Wire {
    to_us: VecDeque<Vec<u8>>,
    from_us: VecDeque<Vec<u8>>,
}

impl Second {
    /// An end at `own` that talks with `peer`, and begins if `calls`.
    pub(crate) fn new(
        spec: &TcpSpec,
        calls: bool,
        own: (IpAddr, u16),
        peer: (IpAddr, u16),
        luck: u64,
    ) -> Second {
        let mut wire = Wire::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = luck;
        let mut interface = Interface::new(config, &mut wire, Moment::ZERO);
        interface.update_ip_addrs(|addresses| {
            // a prefix of nothing: everybody is a neighbour
            _ = addresses.push(IpCidr::new(own.0.into(), 0));
        });
        let buffer = || SocketBuffer::new(vec![0; spec.window as usize]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(match spec.control {
            Control::Reno => CongestionControl::Reno,
            Control::Cubic | Control::Bbr => CongestionControl::Cubic,
        });
        socket.set_nagle_enabled(spec.nagle);
        socket.set_ack_delay(Some(Duration::from_micros(spec.delayed_ack.ns() / 1_000)));
        // both can only fail where a port or an address is 0
        _ = if calls {
            socket.connect(interface.context(), peer, own).is_ok()
        } else {
            socket.listen(own.1).is_ok()
        };
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Second {
            interface,
            sockets,
            handle,
            wire,
            unsent: 0,
            closes: false,
            delivered: 0,
            told: 0,
            deadline: Instant::MAX,
            is_due: true,
            highest: None,
            counts: Counts::default(),
        }
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        self.unsent = self.unsent.saturating_add(bytes);
        self.is_due = true;
    }

    pub(crate) fn stop_writing(&mut self) {
        self.unsent = 0;
    }

    pub(crate) fn close(&mut self) {
        self.closes = true;
        self.is_due = true;
    }

    pub(crate) fn take_delivered(&mut self) -> u64 {
        let news = self.delivered - self.told;
        self.told = self.delivered;
        news
    }

    /// An IP packet has come.
    pub(crate) fn receive(&mut self, now: Instant, packet: &[u8]) {
        self.wire.to_us.push_back(packet.to_vec());
        self.poll(now);
    }

    pub(crate) fn wake(&mut self, _now: Instant) {
        self.is_due = true;
    }

    /// The next IP packet that leaves now.
    pub(crate) fn transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.is_due {
            self.poll(now);
        }
        self.wire.from_us.pop_front()
    }

    /// Counts a segment that it sends.
    pub(crate) fn count(&mut self, segment: &Segment) {
        if segment.payload == 0 {
            return;
        }
        self.counts.sent += 1;
        self.counts.sent_bytes += u64::from(segment.payload);
        let end = segment.seq.wrapping_add(u32::from(segment.payload));
        let is_new = self.highest.is_none_or(|highest| {
            let ahead = end.wrapping_sub(highest);
            ahead > 0 && ahead < 1 << 31
        });
        if is_new {
            self.highest = Some(end);
        } else {
            self.counts.again += 1;
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    fn poll(&mut self, now: Instant) {
        self.is_due = false;
        let moment = Moment::from_micros(i64::try_from(now.ns() / 1_000).unwrap_or(i64::MAX));
        self.fill();
        self.interface.poll(moment, &mut self.wire, &mut self.sockets);
        self.drain();
        // room that acknowledgements made, and windows that reading opened
        self.fill();
        self.interface.poll(moment, &mut self.wire, &mut self.sockets);
        let next = self.interface.poll_at(moment, &self.sockets);
        self.deadline = next.map_or(Instant::MAX, |at| {
            let us = u64::try_from(at.total_micros()).unwrap_or(0);
            // what it would do at once it has just done
            Instant::from_ns(us.saturating_mul(1_000).max(now.ns() + 1_000))
        });
    }

    fn fill(&mut self) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        while self.unsent > 0 && socket.can_send() {
            let unsent = self.unsent;
            let sent = socket.send(|room| {
                let bytes = usize::try_from(unsent).unwrap_or(usize::MAX).min(room.len());
                room[..bytes].fill(0);
                (bytes, bytes as u64)
            });
            match sent {
                Ok(bytes) if bytes > 0 => self.unsent -= bytes,
                _ => break,
            }
        }
        if self.closes && self.unsent == 0 {
            socket.close();
        }
    }

    fn drain(&mut self) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        while socket.can_recv() {
            match socket.recv(|bytes| (bytes.len(), bytes.len() as u64)) {
                Ok(bytes) if bytes > 0 => self.delivered += bytes,
                _ => break,
            }
        }
    }
}

impl std::fmt::Debug for Second {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Second").field("counts", &self.counts).finish_non_exhaustive()
    }
}

struct In(Vec<u8>);

struct Out<'w>(&'w mut VecDeque<Vec<u8>>);

impl RxToken for In {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Out<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'w> = In;
    type TxToken<'w> = Out<'w>;

    fn receive(&mut self, _: Moment) -> Option<(In, Out<'_>)> {
        let packet = self.to_us.pop_front()?;
        Some((In(packet), Out(&mut self.from_us)))
    }

    fn transmit(&mut self, _: Moment) -> Option<Out<'_>> {
        Some(Out(&mut self.from_us))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}
