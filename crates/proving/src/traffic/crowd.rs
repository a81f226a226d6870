//! Many hosts, none of which stays with anything for long: short transfers and bursts of datagrams,
//! each from another host, from another port. What a day of users does to tables of flows and
//! hosts.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use weir_io::netns::set_congestion;
use weir_units::Span;

use super::{LOOK, Stop, joined};
use crate::clock;
use crate::world::{WAN_HOST, World, lan_host};

/// Under way.
pub(crate) struct Crowd {
    stop: Stop,
    count: Arc<Count>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

/// What it has done so far.
#[derive(Debug, Default)]
pub(crate) struct Count {
    /// Transfers that came to their end, and that did not within [`PATIENCE`].
    pub(crate) transfers: AtomicU64,
    pub(crate) given_up: AtomicU64,
    /// Bursts of datagrams, each a new flow.
    pub(crate) bursts: AtomicU64,
}

const PORT: u16 = 7_300;
/// At once.
const TRANSFERS: u64 = 4;
const LARGEST: u64 = 200_000;
/// A transfer that takes longer is given up: its host may be behind a link that is down.
const PATIENCE: Span = Span::from_secs(10);
const BETWEEN_TRANSFERS: Span = Span::from_ms(10);
const BETWEEN_BURSTS: Span = Span::from_ms(20);
const LONGEST_BURST: u64 = 20;

/// Numbers without order, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        // xorshift64 (Marsaglia 2003)
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn host(&mut self, hosts: u16) -> Ipv4Addr {
        lan_host(u16::try_from(self.below(u64::from(hosts))).unwrap_or(0))
    }
}

impl Crowd {
    pub(crate) fn start(world: &World, hosts: u16) -> Result<Crowd, String> {
        let (stop, count) = (Stop::default(), Arc::new(Count::default()));
        let all = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        let listener =
            world.lan.within(|| TcpListener::bind(all).map_err(|e| format!("tcp {all}: {e}")))?;
        listener.set_nonblocking(true).map_err(|e| format!("tcp {all}: {e}"))?;
        let stopped = stop.clone();
        let mut threads = vec![world.lan.spawn(move || serve(&listener, &stopped))];
        for seed in 1..=TRANSFERS {
            let (stop, count) = (stop.clone(), Arc::clone(&count));
            threads.push(world.wan.spawn(move || {
                let mut dice = Dice(seed);
                while !stop.is_said() {
                    let size = 1 + dice.below(LARGEST);
                    let to = SocketAddr::from((dice.host(hosts), PORT));
                    let done = transfer(to, size);
                    let counter = if done.is_some() { &count.transfers } else { &count.given_up };
                    counter.fetch_add(1, Ordering::Relaxed);
                    clock::sleep(BETWEEN_TRANSFERS);
                }
                Ok(())
            }));
        }
        let (stopped, counted) = (stop.clone(), Arc::clone(&count));
        threads.push(world.lan.spawn(move || {
            let mut dice = Dice(99);
            while !stopped.is_said() {
                burst(dice.host(hosts), 1 + dice.below(LONGEST_BURST));
                counted.bursts.fetch_add(1, Ordering::Relaxed);
                clock::sleep(BETWEEN_BURSTS);
            }
            Ok(())
        }));
        Ok(Crowd { stop, count, threads })
    }

    pub(crate) fn stop(self) -> Result<Arc<Count>, String> {
        self.stop.now();
        for thread in self.threads {
            joined(thread)??;
        }
        Ok(self.count)
    }
}

/// Reads what each connection sends, and ends it when the other side does.
fn serve(listener: &TcpListener, stop: &Stop) -> Result<(), String> {
    while !stop.is_said() {
        let Ok((mut stream, _)) = listener.accept() else {
            clock::sleep(Span::from_ms(5));
            continue;
        };
        std::thread::spawn(move || {
            let _ = stream.set_nonblocking(false);
            let _ = stream.set_read_timeout(Some(clock::duration(PATIENCE)));
            let mut chunk = [0; 16 << 10];
            while stream.read(&mut chunk).is_ok_and(|length| length > 0) {}
        });
    }
    Ok(())
}

/// Sends so many bytes and waits until the other side has read them and ends too.
fn transfer(to: SocketAddr, size: u64) -> Option<()> {
    let mut stream = TcpStream::connect_timeout(&to, clock::duration(PATIENCE)).ok()?;
    let patience = Some(clock::duration(PATIENCE));
    stream.set_write_timeout(patience).ok()?;
    stream.set_read_timeout(patience).ok()?;
    set_congestion(&stream, "cubic").ok()?;
    stream.write_all(&vec![0xd5; usize::try_from(size).ok()?]).ok()?;
    stream.shutdown(Shutdown::Write).ok()?;
    (stream.read(&mut [0]).ok()? == 0).then_some(())
}

/// Datagrams to a port of chance on the other side, where nobody listens: what comes back is an
/// ICMP message, which is traffic too.
fn burst(from: Ipv4Addr, packets: u64) {
    let Ok(socket) = UdpSocket::bind((from, 0)) else { return };
    let _ = socket.set_write_timeout(Some(clock::duration(LOOK)));
    for number in 0..packets {
        let port = 20_000 + u16::try_from(number % 100).unwrap_or(0);
        let _ = socket.send_to(&[0xd5; 400], (WAN_HOST, port));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_reach_every_host() {
        let mut dice = Dice(1);
        let hosts: std::collections::BTreeSet<_> = (0..4_000).map(|_| dice.host(200)).collect();
        assert_eq!(hosts.len(), 200);
    }
}
