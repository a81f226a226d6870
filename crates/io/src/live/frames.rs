//! What happens to frames between the wire and a pool.

use std::os::fd::AsFd;

use weir_packet::{Burst, Headers, checksum};

use super::{cable, in_own_network, ip, next, numbered, packet, pool, send};
use crate::kernel::socket;
use crate::netdev::index_of;
use crate::offload::UNDONE_BYTES;
use crate::{Port, PortState};

/// Sends a frame with what is undone of it said before it, as a stack with offload does.
fn send_undone(name: &str, undone: [u8; UNDONE_BYTES], frame: &[u8]) {
    let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0).unwrap();
    socket::set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32).unwrap();
    socket::bind_link(socket.as_fd(), index_of(name).unwrap(), 0).unwrap();
    let all = [&undone[..], frame].concat();
    assert_eq!(socket::send(socket.as_fd(), &all).unwrap(), all.len());
}

/// The kernel's header: checksum needed, kind and size of the parts, bytes of headers.
fn undone(kind: u8, size: u16, frame: &[u8], checksum_at: u16) -> [u8; UNDONE_BYTES] {
    let headers = Headers::parse(frame);
    let words = [headers.payload_at, size, headers.transport_at, checksum_at];
    let mut bytes = [1, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    for (at, word) in [2, 4, 6, 8].into_iter().zip(words) {
        bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Replaces the transport's checksum by the sum of its pseudo header.
fn with_partial_checksum(mut frame: Vec<u8>, checksum_at: u16) -> Vec<u8> {
    let headers = Headers::parse(&frame);
    let (net, start) = (usize::from(headers.net_at), usize::from(headers.transport_at));
    let length = u64::try_from(frame.len() - start).unwrap() + u64::from(headers.protocol);
    let sum = !checksum::fold(checksum::sum(length, &frame[net + 12..net + 20]));
    let at = start + usize::from(checksum_at);
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn a_thousand_frames_pass_two_ports_in_order_with_their_tags() {
    in_own_network(|| {
        cable("host0", "box0");
        cable("box1", "host1");
        let (mut left, mut right) = (packet("box0"), packet("box1"));
        let (mut from, mut to) = (packet("host0"), packet("host1"));
        let (mut pool, mut burst) = (pool(), Burst::new());
        let mut bytes = 0;
        for n in 0..1_000 {
            let frame = match n % 3 {
                0 => numbered(n),
                1 => numbered(n).vlan(0x2007),
                _ => numbered(n).vlan(5).vlan(6),
            };
            let frame = frame.to_vec();
            bytes += frame.len() as u64;
            send(&mut from, &mut pool, &frame);
            while left.receive(&mut pool, &mut burst) == 0 {}
            right.transmit(&mut pool, &mut burst);
            right.settle(&mut pool);
            assert_eq!(next(&mut to, &mut pool), frame, "frame {n}");
        }
        let (left, right) = (left.counters(), right.counters());
        assert_eq!((left.received_frames, left.received_bytes), (1_000, bytes));
        assert_eq!((right.sent_frames, right.sent_bytes), (1_000, bytes));
        let lost = left.dropped_by_kernel + left.no_buffer + left.too_long + right.not_sent;
        assert_eq!(lost, 0);
        assert_eq!(pool.free(), pool.capacity());
    });
}

#[test]
fn a_ring_goes_around_many_times_and_says_what_it_lost() {
    in_own_network(|| {
        cable("host0", "box0");
        let (mut from, mut to, mut pool) = (packet("host0"), packet("box0"), pool());
        let mut burst = Burst::new();
        let frame = numbered(3).to_vec();
        let mut came = 0;
        for round in 0..200 {
            for _ in 0..burst.room() {
                burst.push(pool.fill(&frame).unwrap()).unwrap();
            }
            from.transmit(&mut pool, &mut burst);
            assert!(burst.is_empty());
            // now and then nobody fetches, and then the ring is full
            while round < 100 && to.receive(&mut pool, &mut burst) > 0 {
                came += burst.len() as u64;
                burst.drain().for_each(|frame| pool.give(frame));
            }
        }
        while to.receive(&mut pool, &mut burst) > 0 {
            came += burst.len() as u64;
            burst.drain().for_each(|frame| pool.give(frame));
        }
        let (sent, got) = (from.counters(), to.counters());
        assert_eq!((sent.sent_frames, got.received_frames), (200 * 64, came));
        assert_eq!(came + got.dropped_by_kernel, sent.sent_frames);
        assert!(got.dropped_by_kernel > 0);
        assert_eq!(to.counters(), got, "they are not counted twice");
        assert_eq!(pool.free(), pool.capacity());
    });
}

#[test]
fn a_checksum_left_to_hardware_is_completed() {
    in_own_network(|| {
        cable("host0", "box0");
        let (mut port, mut pool) = (packet("box0"), pool());
        let whole = numbered(9).to_vec();
        let partial = with_partial_checksum(whole.clone(), 6);
        assert_ne!(partial, whole);
        send_undone("host0", undone(0, 0, &whole, 6), &partial);
        assert_eq!(next(&mut port, &mut pool), whole);
        assert_eq!(port.counters().repaired_checksums, 1);
    });
}

#[test]
fn what_the_box_itself_sends_does_not_come_back() {
    in_own_network(|| {
        cable("host0", "box0");
        let (mut host, mut port, mut pool) = (packet("host0"), packet("box0"), pool());
        let frame = numbered(9).to_vec();
        send_undone("box0", [0; UNDONE_BYTES], &frame);
        assert_eq!(next(&mut host, &mut pool), frame);
        assert_eq!(port.receive(&mut pool, &mut Burst::new()), 0);
    });
}

#[test]
fn a_large_frame_comes_as_what_the_wire_would_carry() {
    in_own_network(|| {
        cable("host0", "box0");
        let (mut port, mut pool) = (packet("box0"), pool());
        let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        // one that fits a slot of the ring, and one that comes by the socket; with tag and without
        for (bytes, size) in [(1_200, 500), (40_000, 1_400)] {
            for tagged in [false, true] {
                let build = |part: &[u8], seq: usize| {
                    let seq = u32::try_from(seq).unwrap();
                    let build = weir_packet::Build::tcp(a, b).tcp_seq(seq).payload(part);
                    if tagged { build.vlan(9) } else { build }.to_vec()
                };
                let payload: Vec<u8> = (0..251).cycle().take(bytes).collect();
                let whole = with_partial_checksum(build(&payload, 0), 16);
                send_undone("host0", undone(1, size, &whole, 16), &whole);
                let mut got: Vec<u8> = Vec::new();
                for (n, part) in payload.chunks(usize::from(size)).enumerate() {
                    let frame = next(&mut port, &mut pool);
                    let want = build(part, got.len());
                    let net = usize::from(Headers::parse(&want).net_at);
                    assert_eq!(frame[..net], want[..net], "part {n} of {bytes} {tagged}");
                    assert_eq!(frame[net + 20..], want[net + 20..], "part {n} of {bytes} {tagged}");
                    assert_eq!(checksum::of(&frame[net..net + 20]), 0);
                    got.extend(part);
                }
                assert_eq!(got, payload);
            }
        }
        let counters = port.counters();
        assert_eq!((counters.split, counters.too_long), (4, 0));
        assert_eq!(pool.free(), pool.capacity());
    });
}

#[test]
fn what_is_longer_than_the_interface_carries_is_given_back() {
    in_own_network(|| {
        cable("host0", "box0");
        let (mut from, mut to, mut pool) = (packet("host0"), packet("box0"), pool());
        let long = numbered(3).padded_to(1_515).to_vec();
        send(&mut from, &mut pool, &long);
        send(&mut from, &mut pool, &long[..1_514]);
        assert_eq!(next(&mut to, &mut pool), long[..1_514]);
        // smaller without a word
        ip("link set host0 mtu 1000");
        send(&mut from, &mut pool, &long[..1_015]);
        send(&mut from, &mut pool, &long[..1_014]);
        assert_eq!(next(&mut to, &mut pool), long[..1_014]);
        // and larger again
        ip("link set host0 mtu 1500");
        send(&mut from, &mut pool, &long[..1_514]);
        assert_eq!(next(&mut to, &mut pool), long[..1_514]);
        // less than an Ethernet header
        send(&mut from, &mut pool, &long[..9]);
        let counters = from.counters();
        assert_eq!((counters.too_long, counters.sent_frames, counters.not_sent), (2, 3, 1));
        assert_eq!(pool.free(), pool.capacity());
    });
}

#[test]
fn an_empty_pool_loses_frames_and_says_so() {
    in_own_network(|| {
        cable("host0", "box0");
        let (mut from, mut to, mut pool) = (packet("host0"), packet("box0"), pool());
        for n in 0..3 {
            send(&mut from, &mut pool, &numbered(n).to_vec());
        }
        let (mut none, mut burst) = (weir_packet::Pool::new(1, 2_048), Burst::new());
        assert_eq!(to.receive(&mut none, &mut burst), 1);
        assert_eq!(to.counters().no_buffer, 2);
    });
}

#[test]
fn an_interface_that_goes_down_comes_back_and_one_that_is_removed_does_not() {
    in_own_network(|| {
        cable("host0", "box0");
        let (mut from, mut to, mut pool) = (packet("host0"), packet("box0"), pool());
        assert_eq!(from.state(), PortState::Up);
        let frame = numbered(3).to_vec();
        ip("link set box0 down");
        assert_eq!((from.state(), to.state()), (PortState::NoLink, PortState::NoLink));
        send(&mut to, &mut pool, &frame);
        send(&mut from, &mut pool, &frame);
        assert_eq!((to.counters().not_sent, from.counters().not_sent), (1, 1));
        quiet(&mut to, &mut pool);
        ip("link set box0 up");
        assert_eq!((from.state(), to.state()), (PortState::Up, PortState::Up));
        send(&mut from, &mut pool, &frame);
        assert_eq!(next(&mut to, &mut pool), frame);
        send(&mut to, &mut pool, &frame);
        assert_eq!(next(&mut from, &mut pool), frame);
        ip("link set box0 name lan0");
        assert_eq!(to.state(), PortState::Up, "it is the same interface");
        ip("link del host0");
        cable("host0", "lan0");
        for port in [&mut from, &mut to] {
            assert_eq!(port.state(), PortState::Gone, "one of the same name is another");
            send(port, &mut pool, &frame);
            quiet(port, &mut pool);
        }
        assert_eq!((from.counters().not_sent, to.counters().not_sent), (2, 2));
        assert_eq!(pool.free(), pool.capacity());
    });
}

/// A port in trouble must not be readable for ever: after it was read once, a wait lasts.
fn quiet(port: &mut Port, pool: &mut weir_packet::Pool) {
    let mut burst = Burst::new();
    port.receive(pool, &mut burst);
    assert!(burst.is_empty());
    let wait = crate::wait::Wait::new().unwrap();
    let woken = wait.wait(port.fd(), Some(weir_units::Span::from_ms(1))).unwrap();
    assert_eq!(woken, crate::wait::Woken::Time);
}
