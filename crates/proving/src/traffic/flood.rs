//! A paced stream of numbered datagrams in one direction.

use std::net::UdpSocket;
use std::thread::JoinHandle;

use weir_io::netns::set_dscp;
use weir_units::{Bytes, Rate, Span};

use super::tally::{STAMP, stamp, stamped};
use super::{End, Paced, SILENCE, Stop, Tally, joined};
use crate::clock;

/// What to send.
#[derive(Clone, Copy)]
pub(crate) struct Flood {
    /// At the IP layer.
    pub(crate) rate: Rate,
    /// Bytes of one packet at the IP layer.
    pub(crate) size: u16,
    pub(crate) dscp: u8,
    /// Bytes in front of the number, and what the first of them are.
    pub(crate) head: &'static [u8],
}

/// A flood under way.
pub(crate) struct Flow {
    stop: Stop,
    over: Stop,
    sender: JoinHandle<u64>,
    receiver: JoinHandle<Tally>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) sent: u64,
    pub(crate) tally: Tally,
}

/// Bytes of an IPv4 and a UDP header.
const HEADERS: u16 = 28;

/// The shortest that a sender of many packets sleeps, and after one that the host refused.
const STEP: Span = Span::from_ms(1);

impl Flood {
    pub(crate) fn new(rate: Rate, size: u16) -> Flood {
        Flood { rate, size, dscp: 0, head: &[] }
    }

    pub(crate) fn start(self, from: &End, to: &End) -> Result<Flow, String> {
        let (sending, receiving) = (from.socket()?, to.socket()?);
        let failed = |e| format!("udp {} to {}: {e}", from.at, to.at);
        sending.connect(to.at).map_err(failed)?;
        set_dscp(&sending, self.dscp).map_err(failed)?;
        let (stop, over) = (Stop::default(), Stop::default());
        let (stopped, all_sent) = (stop.clone(), over.clone());
        let sender = std::thread::spawn(move || self.send(&sending, &stopped));
        let head = self.head.len();
        let receiver = std::thread::spawn(move || receive(&receiving, head, &all_sent));
        Ok(Flow { stop, over, sender, receiver })
    }

    /// Sends until told to stop; how many were sent. What the host itself refuses (the interface is
    /// gone, a queue of its own is full) was not sent and keeps its number.
    fn send(self, socket: &UdpSocket, stop: &Stop) -> u64 {
        let payload = usize::from(self.size - HEADERS).max(self.head.len() + STAMP);
        let mut datagram = vec![0xd5; payload];
        datagram[..self.head.len()].copy_from_slice(self.head);
        let frame = self.rate.time_for(Bytes::new(u64::from(self.size)));
        let mut number = 0;
        // in one sleep for a slow stream, so that a packet leaves at its moment
        let mut paced = Paced::new(clock::now(), frame, STEP.min(frame));
        while !stop.is_said() {
            let Some(now) = paced.next() else { continue };
            stamp(&mut datagram[self.head.len()..], number, now);
            if socket.send(&datagram).is_ok() {
                number += 1;
            } else {
                clock::sleep(STEP);
            }
        }
        number
    }
}

impl Flow {
    /// Ends it, and waits for what is still under way.
    pub(crate) fn stop(self) -> Result<Seen, String> {
        self.stop.now();
        let sent = joined(self.sender)?;
        self.over.now();
        Ok(Seen { sent, tally: joined(self.receiver)? })
    }
}

impl Seen {
    pub(crate) fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.tally.arrived)
    }
}

fn receive(socket: &UdpSocket, head: usize, over: &Stop) -> Tally {
    let mut tally = Tally::default();
    let mut datagram = [0; 2_048];
    let mut heard = clock::now();
    loop {
        let length = socket.recv(&mut datagram).ok();
        let now = clock::now();
        match length {
            Some(length) => {
                heard = now;
                if let Some((number, sent)) = datagram[..length].get(head..).and_then(stamped) {
                    tally.see(number, sent, now);
                }
            }
            None if over.is_said() && now.since(heard) > SILENCE => return tally,
            None => {}
        }
    }
}
