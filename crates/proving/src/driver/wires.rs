//! The wires between the hosts and boxes of a run. This kernel delays no packets (it has no netem),
//! so a thread does it: it holds one end of each cable and plays the world of the scenario in real
//! time, with its rates, queues, delays and losses. How late it was itself is part of the result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use weir_io::wait::{Wait, Waker, be_punctual};
use weir_io::{PacketPort, Port};
use weir_lab::run::Live;
use weir_packet::{Burst, Pool};
use weir_sim::NodeId;
use weir_units::{Instant, Span};

use crate::clock;
use crate::traffic::Delays;
use crate::world::Place;

/// A cable of a node outside: whose it is, and which of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) node: NodeId,
    pub(super) port: usize,
}

impl Socket {
    /// The interface of the wires at this end.
    pub(super) fn name(self) -> String {
        format!("n{}p{}", self.node, self.port)
    }
}

/// The wires at work.
pub(super) struct Wires {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: JoinHandle<Result<Over, String>>,
}

/// What is left of them.
pub(super) struct Over {
    pub(super) live: Live,
    /// How late frames came out of the world.
    pub(super) lateness: Delays,
    /// Frames that were lost on the way into it or out of it, and should not have been.
    pub(super) lost: u64,
}

/// Frames that may be on their way through the hands of the thread at once; those on wires are the
/// world's.
const FRAMES: usize = 512;
/// Bytes of the longest frame.
const BYTES: usize = 2_048;
/// The longest that the thread sleeps.
const LOOK: Span = Span::from_ms(100);

struct Thread {
    live: Live,
    ports: Vec<(Socket, Port, Burst)>,
    pool: Pool,
    /// When the world began.
    begin: Instant,
    /// When what arrives counts, from and up to, in the world's time.
    measure: [Instant; 2],
    lateness: Delays,
    lost: u64,
}

impl Wires {
    /// From then on frames pass.
    pub(super) fn start(
        at: &Place,
        live: Live,
        sockets: Vec<Socket>,
        (begin, measure): (Instant, [Instant; 2]),
    ) -> Result<Wires, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let wait = Wait::new().map_err(|e| format!("the wires: {e}"))?;
        let (stopped, waker) = (Arc::clone(&stop), wait.waker());
        let thread = at.spawn(move || {
            let open = |socket: Socket| {
                let port = PacketPort::open(&socket.name()).map_err(|e| e.to_string())?;
                Ok((socket, Port::Packet(Box::new(port)), Burst::new()))
            };
            let ports: Result<Vec<_>, String> = sockets.into_iter().map(open).collect();
            let _ = be_punctual();
            let pool = Pool::new(FRAMES, BYTES);
            let lateness = Delays::default();
            let mut thread =
                Thread { live, ports: ports?, pool, begin, measure, lateness, lost: 0 };
            while !stopped.load(Ordering::Relaxed) {
                thread.turn();
                let pause = thread.pause();
                let fds = thread.ports.iter().filter_map(|(_, port, _)| port.fd());
                wait.wait(fds, Some(pause)).map_err(|e| format!("the wires: {e}"))?;
            }
            Ok(thread.ends())
        });
        Ok(Wires { stop, waker, thread })
    }

    /// Nothing passes any more.
    pub(super) fn stop(self) -> Result<Over, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.call();
        self.thread.join().map_err(|_| "the thread of the wires panicked".to_owned())?
    }
}

impl Thread {
    fn turn(&mut self) {
        let now = Instant::ZERO + clock::now().since(self.begin);
        self.run_until(now);
        let mut came = Burst::new();
        for (socket, port, _) in &mut self.ports {
            while port.receive(&mut self.pool, &mut came) > 0 {
                for frame in came.drain() {
                    self.live.world.put(socket.node, socket.port, self.pool.bytes(&frame));
                    self.pool.give(frame);
                }
            }
        }
        self.run_until(now);
        self.send(now);
    }

    /// The world goes on; lines are counted when that begins and when it ends.
    fn run_until(&mut self, now: Instant) {
        for (at, begins) in self.measure.into_iter().zip([true, false]) {
            if self.live.world.now() < at && now >= at {
                self.live.world.run_until(at);
                self.live.counts(begins);
            }
        }
        self.live.world.run_until(now);
    }

    fn send(&mut self, now: Instant) {
        let Thread { live, ports, pool, lateness, lost, .. } = self;
        live.world.take_left(|node, port, at, bytes| {
            lateness.see(now.since(at));
            let socket = Socket { node, port };
            let port = ports.iter_mut().find(|(other, ..)| *other == socket);
            let (Some((_, port, out)), Some(frame)) = (port, pool.fill(bytes)) else {
                *lost += 1;
                return;
            };
            if let Err(frame) = out.push(frame) {
                port.transmit(pool, out);
                if let Err(frame) = out.push(frame) {
                    *lost += 1;
                    pool.give(frame);
                }
            }
        });
        for (_, port, out) in ports.iter_mut().filter(|(.., out)| !out.is_empty()) {
            port.transmit(pool, out);
        }
    }

    fn ends(mut self) -> Over {
        for (_, port, _) in &mut self.ports {
            let counted = port.counters();
            let not_taken = counted.dropped_by_kernel + counted.no_buffer + counted.too_long;
            self.lost += not_taken + counted.not_sent;
        }
        Over { live: self.live, lateness: self.lateness, lost: self.lost }
    }

    /// How long nothing happens, if nothing comes.
    fn pause(&self) -> Span {
        let now = Instant::ZERO + clock::now().since(self.begin);
        let next = self.live.world.next_at();
        next.map_or(LOOK, |next| next.since(now).min(LOOK))
    }
}
