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
use crate::live::clock;

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

impl Bulk {
    pub(crate) fn start(self, from: &End, to: &End) -> Result<Transfer, String> {
        let (stop, received) = (Stop::default(), Arc::new(AtomicU64::new(0)));
        let at = to.at;
        let listener =
            to.place.within(move || TcpListener::bind(at).map_err(|e| format!("tcp {at}: {e}")))?;
        listener.set_nonblocking(true).map_err(|e| format!("tcp {at}: {e}"))?;
        let (stopped, counter) = (stop.clone(), Arc::clone(&received));
        let mut threads = vec![to.place.spawn(move || accept(&listener, &stopped, &counter))];
        for _ in 0..self.connections {
            let stopped = stop.clone();
            let rate =
                self.rate.map(|rate| Rate::from_bps(rate.bps() / u64::from(self.connections)));
            threads.push(from.place.spawn(move || send(at.into(), rate, &stopped)));
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

fn accept(listener: &TcpListener, stop: &Stop, received: &Arc<AtomicU64>) -> Result<(), String> {
    let mut readers = Vec::new();
    while !stop.is_said() {
        if let Ok((stream, _)) = listener.accept() {
            let (stop, received) = (stop.clone(), Arc::clone(received));
            readers.push(std::thread::spawn(move || read(stream, &stop, &received)));
        } else {
            clock::sleep(Span::from_ms(20));
        }
    }
    readers.into_iter().try_for_each(joined)
}

fn read(mut stream: TcpStream, stop: &Stop, received: &AtomicU64) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(clock::duration(LOOK)));
    let mut chunk = vec![0; 64 << 10];
    while !stop.is_said() {
        match stream.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => {
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
            Err(e) if is_timeout(&e) => {}
            Err(_) => return,
        }
    }
}

/// Connects, again and again if need be, and sends.
fn send(to: SocketAddr, rate: Option<Rate>, stop: &Stop) -> Result<(), String> {
    let chunk = vec![0xd5; CHUNK];
    while !stop.is_said() {
        let Ok(mut stream) = TcpStream::connect_timeout(&to, clock::duration(CONNECT)) else {
            clock::sleep(AGAIN);
            continue;
        };
        let _ = stream.set_write_timeout(Some(clock::duration(LOOK)));
        set_congestion(&stream, "cubic").map_err(|e| format!("CUBIC: {e}"))?;
        let mut due = clock::now();
        while !stop.is_said() {
            clock::sleep_until(due);
            match stream.write(&chunk) {
                Ok(0) => break,
                Ok(length) => {
                    let took = rate.map(|rate| rate.time_for(Bytes::new(length as u64)));
                    due = due.max(clock::now() - LOOK) + took.unwrap_or(Span::ZERO);
                }
                Err(e) if is_timeout(&e) => {}
                Err(_) => break,
            }
        }
    }
    Ok(())
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
