//! Two hundred thousand frames of garbage, seeded: nothing of it panics, every buffer comes back,
//! and what is cut adds up.

use std::net::SocketAddr;

use weir_io::offload::{self, Checksum, Large, LargeKind, Splitter, UNDONE_BYTES, Undone};
use weir_io::{MemoryPort, Port};
use weir_packet::{Build, Burst, Headers, Pool};

const FRAMES: u64 = 200_000;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() % n as u64).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.roll().to_le_bytes()[0]
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Noise, or a real frame with a few of its bytes changed or its end cut off.
    fn frame(&mut self) -> Vec<u8> {
        if self.below(4) == 0 {
            let len = self.below(2_200);
            return (0..len).map(|_| self.byte()).collect();
        }
        let host = |v6: bool, n: u16| match v6 {
            false => SocketAddr::from(([10, 0, 0, 1], n)),
            true => SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, n], n)),
        };
        let v6 = self.below(2) == 0;
        let (a, b) = (host(v6, 80), host(v6, 443));
        let build = if self.below(2) == 0 { Build::tcp(a, b) } else { Build::udp(a, b) };
        let build = match self.below(4) {
            0 => build.vlan(self.word()),
            1 => build.pppoe(self.word()),
            _ => build,
        };
        let mut frame = build.payload_len(self.below(3_000)).to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(frame.len().min(100));
            frame[at] = self.byte();
        }
        if self.below(4) == 0 {
            frame.truncate(self.below(frame.len() + 1));
        }
        frame
    }
}

#[test]
fn a_port_loses_no_buffer_to_garbage() {
    let (port, wire) = MemoryPort::new(1_500);
    let mut port = Port::Memory(Box::new(port));
    let (mut pool, mut burst) = (Pool::new(48, 2_048), Burst::new());
    let mut dice = Dice(1);
    let mut put = 0;
    while put < FRAMES {
        for _ in 0..dice.below(80) {
            wire.put(dice.frame());
            put += 1;
        }
        wire.set_room(dice.below(70));
        port.receive(&mut pool, &mut burst);
        port.transmit(&mut pool, &mut burst);
        port.settle(&mut pool);
        while wire.take().is_some_and(|frame| frame.len() <= 1_518) {}
        assert_eq!(pool.free() + burst.len(), pool.capacity());
    }
    wire.set_room(usize::MAX);
    while port.receive(&mut pool, &mut burst) > 0 || !burst.is_empty() {
        port.transmit(&mut pool, &mut burst);
    }
    let counters = port.counters();
    assert_eq!(counters.sent_frames + counters.too_long + counters.no_buffer, put);
    assert!(counters.sent_frames > 0 && counters.too_long > 0 && counters.no_buffer > 0);
    assert_eq!(pool.free(), pool.capacity());
}

#[test]
fn garbage_left_undone_is_finished_or_refused() {
    let mut dice = Dice(2);
    let mut part = [0; 2_048];
    let (mut cut, mut completed) = (0, 0);
    for _ in 0..FRAMES {
        let mut frame = dice.frame();
        let header: [u8; UNDONE_BYTES] = std::array::from_fn(|_| dice.byte());
        let undone = Undone::read(&header).behind(4);
        let near = Checksum { start: dice.word() % 100, offset: dice.word() % 100 };
        for checksum in undone.checksum.into_iter().chain([near]) {
            let len = frame.len();
            completed += u32::from(offload::complete(&mut frame, checksum));
            assert_eq!(frame.len(), len);
        }
        let kind = [LargeKind::Tcp, LargeKind::Udp, LargeKind::Other][dice.below(3)];
        let near = Large { kind, size: dice.word() % 1_500 };
        for large in undone.large.into_iter().chain([near]) {
            let Some(mut splitter) = Splitter::new(&frame, large) else { continue };
            let (mut payload, headers) = (0, Headers::parse(&frame));
            while let Some(len) = splitter.write_next(&frame, &mut part) {
                let got = Headers::parse(&part[..len]);
                assert_eq!((got.fault, got.protocol), (None, headers.protocol));
                assert_eq!((got.source, got.target), (headers.source, headers.target));
                payload += got.payload_len();
            }
            assert!(!splitter.is_done() || payload == headers.payload_len());
            cut += u32::from(splitter.is_done());
        }
    }
    assert!(cut > 1_000 && completed > 1_000, "{cut} {completed}");
}
