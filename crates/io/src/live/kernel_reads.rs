//! The kernel as the second opinion on the parser: what a socket of this machine gets out of a
//! frame, weir finds in it too, or drops. Frames are wrapped and damaged at random, by a fixed
//! seed.

use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;

use weir_packet::{Build, Headers, Reason, checksum};

use super::{cable, in_own_network, ip, packet, pool, send};
use crate::kernel::socket;

const PORT: u16 = 99;
const FRAMES: u32 = 20_000;
/// Fewer than a socket's buffer holds.
const AT_ONCE: u32 = 50;

/// Draws without pattern.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from((self.0 >> 33) % end as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }
}

/// A datagram with a number in it, wrapped, extended and damaged.
fn frame(draw: &mut Draw, number: u32) -> Vec<u8> {
    let v4 = ("10.0.0.1:7".parse().unwrap(), "10.0.0.2:99".parse().unwrap());
    let v6 = ("[2001:db8::1]:7".parse().unwrap(), "[2001:db8::2]:99".parse().unwrap());
    let (from, to) = if draw.below(2) == 0 { v4 } else { v6 };
    let mut payload = number.to_be_bytes().to_vec();
    payload.resize(40, 0);
    let macs = (Build::SOURCE_MAC, Build::TARGET_MAC);
    let mut build = Build::udp(from, to).macs(macs.0, macs.1).payload(&payload);
    for _ in 0..[0, 0, 1, 3, 10][draw.below(5)] {
        build = build.v6_extension([0, 60][draw.below(2)], &[1, 4, 0, 0, 0, 0]);
    }
    let mut bytes = build.to_vec();
    let net = 14;
    let headers = Headers::parse(&bytes);
    let udp = usize::from(headers.transport_at).max(net);
    if headers.fault.is_none() {
        // none is needed, so that what is changed does not show by it
        bytes[udp + 6..udp + 8].fill(0);
    }
    for _ in 0..draw.below(4) {
        let at = net + draw.below(bytes.len() - 44 - net);
        bytes[at] = if draw.below(3) == 0 { 0 } else { draw.byte() };
    }
    if bytes[12] == 8 {
        let own = usize::from(bytes[net] & 15) * 4;
        bytes[net + 10..net + 12].fill(0);
        let sum = checksum::of(&bytes[net..(net + own).min(bytes.len())]);
        bytes[net + 10..net + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let mut wrapped = bytes[..12].to_vec();
    for _ in 0..[0, 1, 2, 5, 40][draw.below(5)] {
        let layers: [&[u8]; 5] = [
            &[0x81, 0, 0, 0],
            &[0x81, 0, 0xe0, 0],
            &[0x88, 0xa8, 0, 0],
            &[0x91, 0, 0, 0],
            &[0, 60, 0xaa, 0xaa, 3, 0, 0, 0],
        ];
        // the last two are seldom, for the kernel does not look behind them
        wrapped.extend(layers[[0, 0, 1, 1, 2, 2, 2, 3, 4][draw.below(9)]]);
    }
    wrapped.extend(&bytes[12..]);
    wrapped
}

/// Whether weir would have held the frame to the class of the datagram that came out of it.
fn is_known_or_dropped(bytes: &[u8], from: IpAddr) -> bool {
    let headers = Headers::parse(bytes);
    let ends = headers.addresses();
    let is_read = headers.protocol == 17 && headers.transport_at != 0;
    let is_right = ends.is_some_and(|(source, _)| source == from) && headers.target_port == PORT;
    Reason::of(&headers).is_some() || is_read && is_right
}

fn hear(address: &str) -> UdpSocket {
    const UDP_NO_CHECK6_RX: i32 = 102;
    let hearer = UdpSocket::bind((address, PORT)).unwrap();
    hearer.set_nonblocking(true).unwrap();
    if hearer.local_addr().unwrap().is_ipv6() {
        socket::set(hearer.as_fd(), libc::IPPROTO_UDP, UDP_NO_CHECK6_RX, &1_i32).unwrap();
    }
    hearer
}

#[test]
fn what_the_kernel_reads_is_read_or_dropped() {
    in_own_network(|| {
        cable("box0", "host0");
        ip("link set host0 address 02:00:00:00:00:02");
        ip("addr add 10.0.0.2/24 dev host0");
        let has_v6 = std::fs::write("/proc/sys/net/ipv6/conf/host0/disable_ipv6", "0").is_ok();
        let mut hearers = vec![hear("10.0.0.2")];
        if has_v6 {
            ip("addr add 2001:db8::2/64 dev host0 nodad");
            hearers.push(hear("2001:db8::2"));
        }
        let (mut port, mut pool, mut draw) = (packet("box0"), pool(), Draw(1));
        let (mut accepted, mut wrapped) = ([0; 2], 0);
        for first in (0..FRAMES).step_by(AT_ONCE as usize) {
            let frames: Vec<Vec<u8>> =
                (first..first + AT_ONCE).map(|number| frame(&mut draw, number)).collect();
            frames.iter().for_each(|frame| send(&mut port, &mut pool, frame));
            port.settle(&mut pool);
            let mut datagram = [0; 2_048];
            for (hearer, count) in hearers.iter().zip(&mut accepted) {
                while let Ok((len, from)) = hearer.recv_from(&mut datagram) {
                    let Some(number) = datagram[..len].first_chunk::<4>() else { continue };
                    let at = u32::from_be_bytes(*number).wrapping_sub(first) as usize;
                    // one whose number was damaged, or that was late
                    let Some(frame) = frames.get(at) else { continue };
                    let from = match from.ip() {
                        IpAddr::V6(v6) => Ipv6Addr::from(v6.octets()).into(),
                        v4 => v4,
                    };
                    assert!(is_known_or_dropped(frame, from), "{from}: {frame:x?}");
                    *count += 1;
                    wrapped += u32::from(frame[12..14] == [0x81, 0] || frame[12] == 0x88);
                }
            }
        }
        println!("accepted {accepted:?}, wrapped {wrapped}");
        assert!(accepted[0] > 1_000 && wrapped > 1_000, "{accepted:?}, {wrapped} wrapped");
        assert!(!has_v6 || accepted[1] > 1_000, "{accepted:?}");
    });
}
