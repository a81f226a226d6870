//! TCP of the kernel, as much as it can: connections that send until they are told to stop. CUBIC,
//! whatever the machine's default: BBR measures what it may send rather than filling a queue.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use weir_io::netns::set_congestion;
use weir_units::{Bytes, Rate, Span};

use super::{End, LOOK, Stop, joined};
use crate::clock;

/// What to send.
#[derive(Clone, Copy)]
pub(crate) struct Bulk {
    pub(crate) connections: u16,
    /// What the application has to send in all; none: as much as goes.
    pub(crate) rate: Option<Rate>,
}

/// Under way.
pub(crate) struct Transfer {
    stop: Stop,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

const CHUNK: usize = 16 << 10;
/// What a connection may take to be set up, and between two tries.
const CONNECT: Span = Span::from_secs(2);
const AGAIN: Span = Span::from_ms(200);

/// What an end of a connection does.
#[derive(Clone)]
enum Work {
    Send(Option<Rate>),
    Read(Arc<AtomicU64>),
}

impl Bulk {
    /// From an end that connects to one that listens.
    pub(crate) fn start(self, from: &End, to: &End) -> Result<Transfer, String> {
        let received = Arc::new(AtomicU64::new(0));
        let work = (self.sending(), Work::Read(Arc::clone(&received)));
        self.join((from, work.0), (to, work.1), received)
    }

    /// From an end that listens: it has its address to itself, where one that connects has the
    /// first of its interface.
    pub(crate) fn start_at_listener(self, from: &End, to: &End) -> Result<Transfer, String> {
        let received = Arc::new(AtomicU64::new(0));
        let work = (Work::Read(Arc::clone(&received)), self.sending());
        self.join((to, work.0), (from, work.1), received)
    }

    fn sending(self) -> Work {
        let each = |rate: Rate| Rate::from_bps(rate.bps() / u64::from(self.connections));
        Work::Send(self.rate.map(each))
    }

    fn join(
        self,
        (connecting, does): (&End, Work),
        (listening, answers): (&End, Work),
        received: Arc<AtomicU64>,
    ) -> Result<Transfer, String> {
        let (stop, at) = (Stop::default(), listening.at);
        let failed = move |e| format!("tcp {at}: {e}");
        let listener = listening.place.within(move || TcpListener::bind(at).map_err(failed))?;
        listener.set_nonblocking(true).map_err(failed)?;
        let stopped = stop.clone();
        let mut threads =
            vec![listening.place.spawn(move || accept(&listener, &answers, &stopped))];
        for _ in 0..self.connections {
            let (does, stop) = (does.clone(), stop.clone());
            threads.push(connecting.place.spawn(move || connect(at.into(), &does, &stop)));
        }
        Ok(Transfer { stop, received, threads })
    }
}

impl Transfer {
    /// Bytes that the receiver has read so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(self) -> Result<u64, String> {
        self.stop.now();
        for thread in self.threads {
            joined(thread)??;
        }
        Ok(self.received.load(Ordering::Relaxed))
    }
}

fn accept(listener: &TcpListener, work: &Work, stop: &Stop) -> Result<(), String> {
    let mut ends = Vec::new();
    while !stop.is_said() {
        if let Ok((stream, _)) = listener.accept() {
            let (work, stop) = (work.clone(), stop.clone());
            let _ = stream.set_nonblocking(false);
            ends.push(std::thread::spawn(move || work.on(stream, &stop)));
        } else {
            clock::sleep(Span::from_ms(20));
        }
    }
    ends.into_iter().try_for_each(|end| joined(end)?)
}

/// Connects, again and again if need be.
fn connect(to: SocketAddr, work: &Work, stop: &Stop) -> Result<(), String> {
    while !stop.is_said() {
        match TcpStream::connect_timeout(&to, clock::duration(CONNECT)) {
            Ok(stream) => work.on(stream, stop)?,
            Err(_) => clock::sleep(AGAIN),
        }
    }
    Ok(())
}

impl Work {
    /// Until told to stop, or the connection breaks.
    fn on(&self, stream: TcpStream, stop: &Stop) -> Result<(), String> {
        match self {
            Work::Send(rate) => send(stream, *rate, stop),
            Work::Read(received) => {
                read(stream, stop, |bytes| _ = received.fetch_add(bytes, Ordering::Relaxed));
                Ok(())
            }
        }
    }
}

/// Tells of all bytes that come, until told to stop, or the connection ends.
pub(crate) fn read(mut stream: TcpStream, stop: &Stop, mut came: impl FnMut(u64)) {
    let _ = stream.set_read_timeout(Some(clock::duration(LOOK)));
    let mut chunk = vec![0; 64 << 10];
    while !stop.is_said() {
        match stream.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => came(length as u64),
            Err(e) if is_timeout(&e) => {}
            Err(_) => return,
        }
    }
}

fn send(mut stream: TcpStream, rate: Option<Rate>, stop: &Stop) -> Result<(), String> {
    let chunk = vec![0xd5; CHUNK];
    let _ = stream.set_write_timeout(Some(clock::duration(LOOK)));
    set_congestion(&stream, "cubic").map_err(|e| format!("CUBIC: {e}"))?;
    let mut due = clock::now();
    while !stop.is_said() {
        clock::sleep_until(due);
        match stream.write(&chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                let took = rate.map(|rate| rate.time_for(Bytes::new(length as u64)));
                due = due.max(clock::now() - LOOK) + took.unwrap_or(Span::ZERO);
            }
            Err(e) if is_timeout(&e) => {}
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Whether nothing is wrong but that it took so long.
pub(crate) fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
