//! Frames as a hostile host makes them, byte by byte.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::thread::JoinHandle;

use weir_io::{PacketPort, Port};
use weir_packet::{Build, Burst, Pool};
use weir_units::{Bytes, Rate, Span};

use crate::clock;
use crate::traffic::Stop;
use crate::world::Place;

/// The interface of the LAN side and that of the WAN side; see world.rs.
pub(super) const LAN_MAC: [u8; 6] = [2, 0, 0, 0x4d, 0, 1];
pub(super) const WAN_MAC: [u8; 6] = [2, 0, 0, 0x4d, 0, 2];
pub(super) const BROADCAST: [u8; 6] = [0xff; 6];

/// Bytes of an Ethernet header without a tag.
const ETHERNET: usize = 14;

/// A frame, over and over, until it is told to stop.
pub(super) struct Sending {
    stop: Stop,
    thread: JoinHandle<Result<u64, String>>,
}

impl Sending {
    /// Out of a port of a place, at a rate counted without the Ethernet header.
    pub(super) fn start(
        place: &Place,
        port: &'static str,
        frames: Vec<Vec<u8>>,
        rate: Rate,
    ) -> Sending {
        let stop = Stop::default();
        let stopped = stop.clone();
        let thread = place.spawn(move || send(port, &frames, rate, &stopped));
        Sending { stop, thread }
    }

    /// Ends it, and tells how many frames were sent.
    pub(super) fn stop(self) -> Result<u64, String> {
        self.stop.now();
        self.thread.join().map_err(|_| "a sender panicked".to_owned())?
    }
}

fn send(name: &str, frames: &[Vec<u8>], rate: Rate, stop: &Stop) -> Result<u64, String> {
    const CAUGHT_UP: Span = Span::from_ms(5);
    const STEP: Span = Span::from_ms(1);
    let port = PacketPort::open(name).map_err(|e| e.to_string())?;
    let mut port = Port::Packet(Box::new(port));
    let mut pool = Pool::new(256, 2_048);
    let (mut out, mut back, mut sent) = (Burst::new(), Burst::new(), 0);
    let mut due = clock::now();
    for bytes in frames.iter().cycle() {
        if stop.is_said() {
            break;
        }
        let now = clock::now();
        if now < due {
            clock::sleep(due.since(now).max(STEP));
        }
        let counted = bytes.len().saturating_sub(ETHERNET) as u64;
        due = due.max(clock::now() - CAUGHT_UP) + rate.time_for(Bytes::new(counted));
        if let Some(frame) = pool.fill(bytes)
            && let Err(frame) = out.push(frame)
        {
            pool.give(frame);
        }
        let full = out.len();
        port.transmit(&mut pool, &mut out);
        sent += (full - out.len()) as u64;
        // what comes back is thrown away
        port.receive(&mut pool, &mut back);
        back.drain().for_each(|frame| pool.give(frame));
    }
    out.drain().for_each(|frame| pool.give(frame));
    Ok(sent)
}

/// Frames that [`exchange`] sends.
pub(super) const ASKED: usize = 20;

/// Sends a frame [`ASKED`] times out of one port, and tells what came to the other meanwhile with
/// the same packet in it.
pub(super) fn exchange(
    (from, out): (&Place, &'static str),
    (to, into): (&Place, &'static str),
    bytes: &[u8],
) -> Result<Vec<Vec<u8>>, String> {
    const PATIENCE: Span = Span::from_ms(700);
    const PAUSE: Span = Span::from_ms(5);
    /// The end of a packet, by which it is known.
    const END: usize = 64;
    let opened = Stop::default();
    let is_open = opened.clone();
    let end = bytes[bytes.len().saturating_sub(END)..].to_vec();
    let receiver = to.spawn(move || {
        let port = PacketPort::open(into).map_err(|e| e.to_string())?;
        let mut port = Port::Packet(Box::new(port));
        let (mut pool, mut burst) = (Pool::new(256, 2_048), Burst::new());
        is_open.now();
        let until = clock::now() + PATIENCE;
        let mut came = Vec::new();
        while clock::now() < until {
            port.receive(&mut pool, &mut burst);
            for frame in burst.drain() {
                let bytes = pool.bytes(&frame);
                if bytes.ends_with(&end) {
                    came.push(bytes.to_vec());
                }
                pool.give(frame);
            }
            clock::sleep(Span::from_ms(1));
        }
        Ok(came)
    });
    while !opened.is_said() && !receiver.is_finished() {
        clock::sleep(Span::from_ms(1));
    }
    from.within(|| {
        let port = PacketPort::open(out).map_err(|e| e.to_string())?;
        let mut port = Port::Packet(Box::new(port));
        let (mut pool, mut burst) = (Pool::new(64, 2_048), Burst::new());
        for _ in 0..ASKED {
            if let Some(frame) = pool.fill(bytes)
                && let Err(frame) = burst.push(frame)
            {
                pool.give(frame);
            }
            port.transmit(&mut pool, &mut burst);
            clock::sleep(PAUSE);
        }
        Ok(())
    })?;
    receiver.join().map_err(|_| "a receiver panicked".to_owned())?
}

/// An IP packet of UDP with so many bytes of payload.
pub(super) fn packet(from: Ipv4Addr, to: Ipv4Addr, payload: usize) -> Vec<u8> {
    let at = |address, port| SocketAddr::from(SocketAddrV4::new(address, port));
    let frame = Build::udp(at(from, 9_000), at(to, 9_000)).payload_len(payload).to_vec();
    frame[ETHERNET..].to_vec()
}

/// An Ethernet frame with tags of these types (all of VLAN 0), and what lies behind them.
pub(super) fn frame(to: [u8; 6], tags: &[u16], ethertype: u16, body: &[u8]) -> Vec<u8> {
    let tags: Vec<Tag> = tags.iter().map(|tag| (*tag, 0)).collect();
    tagged(to, &tags, ethertype, body)
}

/// The type of a tag, and what it says.
pub(super) type Tag = (u16, u16);

/// The same with tags of any VLAN.
pub(super) fn tagged(to: [u8; 6], tags: &[Tag], ethertype: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = [&to[..], &LAN_MAC].concat();
    for (kind, says) in tags {
        bytes.extend(kind.to_be_bytes());
        bytes.extend(says.to_be_bytes());
    }
    bytes.extend(ethertype.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Who has this address? In a frame of so many bytes.
pub(super) fn who_has(asks: Ipv4Addr, address: Ipv4Addr, len: usize) -> Vec<u8> {
    Build::arp(asks, address).macs(LAN_MAC, BROADCAST).padded_to(len).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_long_as_their_parts() {
        let ip = packet(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), 100);
        assert_eq!((ip.len(), ip[0]), (128, 0x45));
        let tagged = frame(WAN_MAC, &[0x8100; 5], 0x0800, &ip);
        assert_eq!((tagged.len(), &tagged[30..34]), (14 + 20 + 128, &[0, 0, 0x08, 0x00][..]));
        let arp = who_has(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, 1_500);
        assert_eq!((arp.len(), &arp[..6]), (1_500, &BROADCAST[..]));
    }
}
