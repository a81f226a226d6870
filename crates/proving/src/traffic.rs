//! Traffic of the live tests: real sockets in threads of their own, and what their receivers
//! saw. Numbered datagrams tell what was lost, doubled and overtaken, and how long each took.

mod bulk;
mod call;
mod crowd;
mod delays;
mod flood;
mod paced;
mod ping;
mod tally;

pub(crate) use bulk::{Bulk, Transfer, is_timeout, read};
pub(crate) use call::{Call, Heard};
pub(crate) use crowd::Crowd;
pub(crate) use delays::Delays;
pub(crate) use flood::{Flood, Flow, Seen};
pub(crate) use paced::Paced;
pub(crate) use ping::{Echoes, Ping};
pub(crate) use tally::{STAMP, Tally, stamp, stamped};

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_units::Span;

use super::clock;
use super::world::Place;

/// How long a receiver that should stop goes on without hearing anything.
pub(crate) const SILENCE: Span = Span::from_ms(500);

/// How often a thread that waits for a packet looks whether it should stop.
pub(crate) const LOOK: Span = Span::from_ms(100);

/// A word to threads that they should come to an end.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_said(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where a flow ends: a place and an address in it.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) place: Place,
    pub(crate) at: SocketAddrV4,
}

impl End {
    pub(crate) fn new(place: &Place, host: std::net::Ipv4Addr, port: u16) -> End {
        End { place: place.clone(), at: SocketAddrV4::new(host, port) }
    }

    /// A socket there. A receive buffer that overflows while the machine is late would look like
    /// loss on the way; the default holds 200 KB.
    pub(crate) fn socket(&self) -> Result<UdpSocket, String> {
        let at = self.at;
        let failed = move |e| format!("udp {at}: {e}");
        self.place.within(move || {
            let socket = UdpSocket::bind(at).map_err(failed)?;
            socket.set_read_timeout(Some(clock::duration(LOOK))).map_err(failed)?;
            Ok(socket)
        })
    }
}

/// What a thread brought back, if it did not panic.
pub(crate) fn joined<T>(thread: std::thread::JoinHandle<T>) -> Result<T, String> {
    thread.join().map_err(|_| "a thread of the traffic panicked".to_owned())
}
