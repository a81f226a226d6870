//! What attackers send.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_packet::{Build, Side, tcp};

use super::list::Attack;
use super::world::{ATTACKER, ROUTER, World, datagram, host, mac};

/// Three times what most links here carry.
const FLOOD: u64 = 30_000_000;
/// Somebody outside.
const OUTSIDE: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 1), 443);

/// A port and somebody outside, of which no two are the same within 2^32.
fn fresh(n: u64) -> (u16, (Ipv4Addr, u16)) {
    let port = u16::try_from(1_024 + n % 60_000).unwrap_or(0);
    let far = u32::try_from(n / 60_000 % (1 << 16)).unwrap_or(0);
    (port, (Ipv4Addr::from_bits(0xcb00_0000 + far), 443))
}

fn segment(n: u64) -> Build {
    let (port, far) = fresh(n);
    let (lan, wan) = (SocketAddr::from((host(ATTACKER), port)), SocketAddr::from(far));
    Build::tcp(lan, wan).macs(mac(ATTACKER), ROUTER)
}

/// Each frame is a connection of its own.
pub(super) fn spray(attack: &Attack, world: &mut World) {
    let from = attack.from;
    world.add(from, (FLOOD, 500), move |n| {
        let (port, far) = fresh(n);
        datagram(from, ATTACKER, port, far).frame_len(500).to_vec()
    });
}

/// So many flows of small frames, each just below what a call has.
fn flows(world: &mut World, count: u64) {
    world.add(Side::Lan, (89_000 * count, 246), move |n| {
        let (port, far) = fresh(n % count);
        datagram(Side::Lan, ATTACKER, port, far).frame_len(246).to_vec()
    });
}

pub(super) fn flows_120(_: &Attack, world: &mut World) {
    flows(world, 120);
}

pub(super) fn flows_400(_: &Attack, world: &mut World) {
    flows(world, 400);
}

/// A thousand connections that send as little as the victim's sparse flow.
pub(super) fn imitate(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (10_240_000, 64), |n| {
        let (port, far) = fresh(n % 1_000);
        datagram(Side::Lan, ATTACKER, port, far).frame_len(64).to_vec()
    });
}

pub(super) fn jumbo(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 9_014), |_| {
        datagram(Side::Lan, ATTACKER, 9_000, OUTSIDE).frame_len(9_014).to_vec()
    });
}

pub(super) fn acks(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 60), |n| {
        let number = u32::try_from(n % (1 << 20)).unwrap_or(0);
        segment(0).tcp_flags(tcp::ACK).tcp_ack(number * 1_000).padded_to(60).to_vec()
    });
}

pub(super) fn ping(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 98), |n| {
        let id = u16::try_from(n % 65_536).unwrap_or(0);
        let (lan, wan) = (IpAddr::from(host(ATTACKER)), IpAddr::from(OUTSIDE.0));
        Build::icmp_echo(lan, wan, id).macs(mac(ATTACKER), ROUTER).frame_len(98).to_vec()
    });
}

/// Later parts of datagrams whose first part never comes.
pub(super) fn fragments(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 600), |n| {
        let id = u32::try_from(n % 65_536).unwrap_or(0);
        let build = datagram(Side::Lan, ATTACKER, 9_000, OUTSIDE).frame_len(600);
        build.fragment(185, n % 2 == 0, id).to_vec()
    });
}

pub(super) fn syn(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 60), |n| segment(n).tcp_flags(tcp::SYN).padded_to(60).to_vec());
}

/// A tenth of a second with six times what the link carries, a tenth with nothing.
pub(super) fn bursts(_: &Attack, world: &mut World) {
    world.add_bursts(Side::Lan, (2 * FLOOD, 1_514), 100_000_000, |_| {
        datagram(Side::Lan, ATTACKER, 9_000, OUTSIDE).frame_len(1_514).to_vec()
    });
}

/// 64 connections that want all they can get, and never slow down.
pub(super) fn herd(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 1_514), |n| {
        let segment = segment(n % 64).tcp_flags(tcp::ACK);
        let number = u32::try_from(n / 64 % (1 << 20)).unwrap_or(0);
        segment.tcp_seq(number * 1_460).frame_len(1_514).to_vec()
    });
}

/// 4 400 new connections a second, of four frames each: as many as make them known for minutes.
pub(super) fn table(attack: &Attack, world: &mut World) {
    connections(attack, world, 4_400);
}

/// 8 000, which is more than the link carries: places are taken while frames wait there.
pub(super) fn table_waits(attack: &Attack, world: &mut World) {
    connections(attack, world, 8_000);
}

fn connections(attack: &Attack, world: &mut World, a_second: u64) {
    let from = attack.from;
    let many = move |n: u64| {
        let (port, far) = fresh(n / 4);
        datagram(from, ATTACKER, port, far).padded_to(64).to_vec()
    };
    world.add(from, (a_second * 4 * 8 * 64, 64), many);
    world.add(from, (FLOOD, 1_514), move |_| {
        datagram(from, ATTACKER, 9_000, OUTSIDE).frame_len(1_514).to_vec()
    });
}

/// Ten strangers call ten hosts that do not exist, each every four seconds.
pub(super) fn sessions(attack: &Attack, world: &mut World) {
    for stranger in 0..10 {
        world.add(Side::Wan, (128, 64), move |_| {
            let far = (Ipv4Addr::new(203, 0, 113, 10 + stranger), 5_060);
            datagram(Side::Wan, 100 + stranger, 7_002, far).padded_to(64).to_vec()
        });
    }
    world.honest(attack.honest);
}

/// 14 frames a second for addresses that nobody has, beside as many honest hosts as undisturbed.
pub(super) fn unused(attack: &Attack, world: &mut World) {
    world.add(Side::Wan, (14 * 8 * 64, 64), |n| {
        let number = u8::try_from(100 + n % 100).unwrap_or(0);
        datagram(Side::Wan, number, 9_000, OUTSIDE).padded_to(64).to_vec()
    });
    world.honest(attack.honest);
}

/// One host with 50 addresses.
pub(super) fn addresses(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 1_514), |n| {
        let address = Ipv4Addr::from_bits(0x0a00_0100 + u32::try_from(n % 50).unwrap_or(0));
        let (lan, wan) = (SocketAddr::from((address, 9_000)), SocketAddr::from(OUTSIDE));
        Build::udp(lan, wan).macs(mac(ATTACKER), ROUTER).frame_len(1_514).to_vec()
    });
}

/// One host with very many addresses of one /64.
pub(super) fn prefix(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 1_514), |n| {
        let address =
            Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, u16::try_from(n % 2_000).unwrap_or(0));
        let wan = SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 1), 443));
        let lan = SocketAddr::from((address, 9_000));
        Build::udp(lan, wan).macs(mac(ATTACKER), ROUTER).frame_len(1_514).to_vec()
    });
}

/// A host that names another source in each frame.
pub(super) fn spoof(_: &Attack, world: &mut World) {
    world.add(Side::Lan, (FLOOD, 500), |n| {
        let far = u32::try_from(n.wrapping_mul(2_654_435_761) % (1 << 24)).unwrap_or(0);
        let lan = SocketAddr::from((Ipv4Addr::from_bits(0x0b00_0000 + far), 9_000));
        let wan = SocketAddr::from(OUTSIDE);
        Build::udp(lan, wan).macs(mac(ATTACKER), ROUTER).frame_len(500).to_vec()
    });
}
