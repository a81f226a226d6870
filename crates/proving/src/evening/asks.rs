//! Short questions from many ports of a host, each answered by whom it is for: who was heard, and
//! under which address.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use weir_units::{Instant, Span};

use crate::clock;
use crate::traffic::{End, Stop};

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Ports that asked, and those of them that had an answer.
    pub(super) asked: usize,
    pub(super) answered: usize,
    /// From which addresses the questions seemed to come.
    pub(super) sources: BTreeSet<Ipv4Addr>,
}

/// How long an answer may take after the last question.
const PATIENCE: Span = Span::from_ms(500);
const PAUSE: Span = Span::from_ms(1);
const LOOK: Span = Span::from_ms(20);

/// One question from each of so many ports, the first of which is that of `from`.
pub(super) fn ask(from: &End, to: &End, ports: u16) -> Result<Asked, String> {
    let answering = to.socket()?;
    let stop = Stop::default();
    let stopped = stop.clone();
    let answers = std::thread::spawn(move || answer(&answering, &stopped));
    let mut sockets = Vec::new();
    for port in (from.at.port()..).take(ports.into()) {
        let socket = End::new(&from.place, *from.at.ip(), port).socket()?;
        let failed = |e| format!("udp {}: {e}", from.at);
        socket.set_nonblocking(true).map_err(failed)?;
        // a refusal is no answer, as silence is none
        let _ = socket.send_to(b"who am I?", to.at);
        sockets.push(socket);
        clock::sleep(PAUSE);
    }
    let until = clock::now() + PATIENCE;
    let mut heard = BTreeSet::new();
    while heard.len() < sockets.len() && clock::now() < until {
        heard.extend(sockets.iter().enumerate().filter(|(_, s)| is_heard(s)).map(|(at, _)| at));
        clock::sleep(PAUSE);
    }
    stop.now();
    let sources = answers.join().map_err(|_| "a thread panicked".to_owned())?;
    Ok(Asked { asked: sockets.len(), answered: heard.len(), sources })
}

/// How long it takes until somebody answers; none if that is longer than `patience`.
pub(super) fn until_answered(from: &End, to: &End, patience: Span) -> Result<Option<Span>, String> {
    let answering = to.socket()?;
    let asking = from.socket()?;
    let stop = Stop::default();
    let stopped = stop.clone();
    let answers = std::thread::spawn(move || answer(&answering, &stopped));
    asking.set_read_timeout(Some(clock::duration(LOOK))).map_err(|e| e.to_string())?;
    let began: Instant = clock::now();
    let mut took = None;
    while took.is_none() && clock::now().since(began) < patience {
        let _ = asking.send_to(b"hello?", to.at);
        if asking.recv_from(&mut [0; 64]).is_ok() {
            took = Some(clock::now().since(began));
        }
    }
    stop.now();
    answers.join().map_err(|_| "a thread panicked".to_owned())?;
    Ok(took)
}

fn is_heard(socket: &UdpSocket) -> bool {
    socket.recv_from(&mut [0; 64]).is_ok()
}

fn answer(socket: &UdpSocket, stop: &Stop) -> BTreeSet<Ipv4Addr> {
    let mut sources = BTreeSet::new();
    let mut bytes = [0; 64];
    while !stop.is_said() {
        if let Ok((length, from)) = socket.recv_from(&mut bytes) {
            if let std::net::SocketAddr::V4(v4) = from {
                sources.insert(*SocketAddrV4::ip(&v4));
            }
            let _ = socket.send_to(&bytes[..length], from);
        }
    }
    sources
}
