//! What one host, or strangers outside, can do to another host.

mod edits;
mod garbage;
mod moments;
mod world;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_packet::{Build, Side, tcp};
use world::{MS, OUTSIDE, ROUTER, SECOND, Seen, Time, World, datagram, fresh, mac};

const MBIT: u64 = 1_000_000;
pub(crate) const LINE: u64 = 10 * MBIT;
pub(crate) const FLOOD: u64 = 30 * MBIT;
const ATTACKER: u8 = 66;

struct Case {
    name: &'static str,
    classes: &'static str,
    side: Side,
    wanted: u64,
    /// Seconds of attack before the victim comes.
    before: Time,
    honest: u8,
    attack: fn(&mut World),
    /// What the victim sends instead of its sparse flow.
    sparse: Option<fn(&mut World)>,
}

const USUAL: Case = Case {
    name: "",
    classes: "",
    side: Side::Lan,
    wanted: 12 * MBIT,
    before: 0,
    honest: 1,
    attack: |_| {},
    sparse: None,
};

fn run(case: &Case, is_attacked: bool) -> Seen {
    let mut world = World::new(LINE, case.classes, case.side);
    let begins = case.before * SECOND;
    if is_attacked {
        (case.attack)(&mut world);
    } else {
        (0..case.honest).for_each(|n| world.honest(10 + n, 12 * MBIT, begins));
    }
    match case.sparse {
        Some(sparse) => sparse(&mut world),
        None => world.victim(case.wanted, begins),
    }
    // in its first second nobody is a host of its own, and what waits then is served after it
    world.run(begins + 2 * SECOND, begins + 6 * SECOND)
}

/// The victim keeps 97 % of what it has beside honest hosts, and its sparse flow waits for no more
/// than twice the time and two frames.
fn holds(name: &str) {
    let (before, after) = both(name);
    let frame = if name.starts_with("jumbo") { 9_042 } else { 1_542 };
    let told = format!("{name}: {after:?}, beside honest hosts {before:?}");
    assert!(after.bulk * 100 >= before.bulk * 97, "{told}");
    assert!(after.p99 <= 2 * before.p99 + 2 * frame * 8 * SECOND / LINE, "{told}");
    assert_eq!(after.lost, 0, "{told}");
}

fn both(name: &str) -> (Seen, Seen) {
    let case = cases().into_iter().find(|case| case.name == name).expect("is a case");
    (run(&case, false), run(&case, true))
}

fn spoofed_mac(n: u64) -> [u8; 6] {
    let [.., a, b, c, d] = n.wrapping_mul(2_654_435_761).to_be_bytes();
    [6, 0, a, b, c, d]
}

fn many_macs(world: &mut World, count: u64, bytes: usize) {
    world.add(Side::Lan, (FLOOD, bytes as u64), 0, move |n| {
        datagram(Side::Lan, ATTACKER, 9_000, OUTSIDE)
            .macs(spoofed_mac(n % count), ROUTER)
            .frame_len(bytes)
            .to_vec()
    });
}

fn raw(world: &mut World, side: Side, rate: u64, frame: Vec<u8>) {
    let bytes = frame.len() as u64;
    world.add(side, (rate, bytes), 0, move |_| frame.clone());
}

fn short(world: &mut World) {
    world.add(Side::Lan, (FLOOD, 200), 0, |n| {
        let (port, far) = fresh(n / 3);
        let lan = SocketAddr::from((Ipv4Addr::new(10, 0, 0, ATTACKER), port));
        let build = Build::tcp(lan, SocketAddr::from(far)).macs(mac(ATTACKER), ROUTER);
        match n % 3 {
            0 => build.tcp_flags(tcp::SYN).padded_to(60).to_vec(),
            1 => build.tcp_flags(tcp::ACK).frame_len(500).to_vec(),
            _ => build.tcp_flags(tcp::FIN | tcp::ACK).padded_to(60).to_vec(),
        }
    });
}

/// Strangers ping a hundred hosts, which answer: as many connections as the table has.
fn answered(world: &mut World, rate: u64) {
    let ping = |n: u64, from: Side| {
        let number = 100 + u8::try_from(n % 100).expect("fits");
        let far = IpAddr::from(Ipv4Addr::from_bits(0xcb00_0000 + (n % (1 << 22)) as u32));
        let host = IpAddr::from(Ipv4Addr::new(10, 0, 0, number));
        let id = (n % 60_000) as u16;
        match from {
            Side::Wan => Build::icmp_echo(far, host, id).macs(ROUTER, mac(number)),
            Side::Lan => Build::icmp_echo(host, far, id).icmp_type(0, 0).macs(mac(number), ROUTER),
        }
        .padded_to(60)
        .to_vec()
    };
    world.add(Side::Wan, (rate, 60), 0, move |n| ping(n, Side::Wan));
    world.add(Side::Lan, (rate, 60), MS, move |n| ping(n, Side::Lan));
}

const GUARANTEED: &str = "[class.\"/a\"]\nmatch = \"lan 10.0.0.2\"\nrate = \"5mbit\"\n\
    [class.\"/b\"]\nmatch = \"any\"\neach = { by = \"wan-host\", ceil = \"8kbit\" }\n";
const VLANS: &str = "[class.\"/a\"]\nmatch = \"lan 10.0.0.2\"\nrate = \"5mbit\"\n\
    [class.\"/b\"]\nmatch = \"any\"\neach = { by = \"vlan\", ceil = \"8kbit\" }\n";

const PLAIN_EACH: &str = "[class.\"/hosts\"]\nmatch = \"any\"\neach = \"lan-host\"\n";
const PORTS: &str = "[class.\"/x\"]\nmatch = \"udp port 53\"\nrate = \"100kbit\"\n";

fn small_to_many(world: &mut World) {
    let side = world.side;
    world.add(side, (FLOOD, 60), 0, move |n| {
        let far = Ipv4Addr::from_bits(0xcb00_0000 + (n % 4_096) as u32);
        datagram(side, ATTACKER, 9_000, (far, 443)).padded_to(60).to_vec()
    });
}

/// A frame with the sign of the sparse flow.
fn sign(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(64), 0);
    frame[50..54].copy_from_slice(b"thin");
    frame
}

fn arp_victim(world: &mut World) {
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
    let frame = sign(Build::arp(a, b).macs(mac(2), [255; 6]).to_vec());
    world.add(Side::Lan, (20 * 512, 64), 0, move |_| frame.clone());
}

/// A datagram of two pieces, ten milliseconds apart.
fn pieces_victim(world: &mut World) {
    world.add(Side::Lan, (100 * 512, 64), 0, |n| {
        let build = datagram(Side::Lan, 2, 7_002, (Ipv4Addr::new(192, 0, 2, 2), 53));
        let build = build.payload_len(64);
        let id = u32::try_from((n / 2) & 0xffff).expect("fits");
        match n % 2 {
            0 => build.fragment(0, true, id).to_vec(),
            _ => sign(build.fragment(8, false, id).to_vec()),
        }
    });
}

const CALLS: &str = "[class.\"/calls\"]\nmatch = \"udp lan port 7002\"\n\
    session = { min = \"64kbit\", count = 10, next = \"reject\" }\n";

/// Ten strangers call two hosts that answer, each every four seconds.
fn callers(world: &mut World) {
    for stranger in 0..10 {
        for side in [Side::Wan, Side::Lan] {
            let far = (Ipv4Addr::new(203, 0, 113, 10 + stranger), 5_060);
            let at = if side == Side::Wan { 0 } else { 2 * SECOND };
            world.add(side, (128, 64), at, move |_| {
                datagram(side, 100 + stranger % 2, 7_002, far).padded_to(64).to_vec()
            });
        }
    }
}

fn cases() -> Vec<Case> {
    let first = [first_cases(), second_cases(), third_cases()];
    let last = [fourth_cases(), fifth_cases()];
    let of_a_moment = [moments::cases(), moments::without_connections()];
    first.into_iter().chain(last).chain(of_a_moment).flatten().collect()
}

fn first_cases() -> Vec<Case> {
    vec![
        Case {
            name: "arp-victim",
            sparse: Some(arp_victim),
            wanted: 0,
            attack: |w| {
                let (a, b) = (Ipv4Addr::new(10, 0, 0, 66), Ipv4Addr::new(10, 0, 0, 1));
                raw(w, Side::Lan, FLOOD, Build::arp(a, b).macs(mac(66), [255; 6]).to_vec());
            },
            ..USUAL
        },
        Case {
            name: "arp-victim-few",
            sparse: Some(arp_victim),
            wanted: 0,
            attack: |w| {
                let build = Build::ethertype(0x88b5).macs(mac(66), [255; 6]);
                raw(w, Side::Lan, FLOOD, build.frame_len(1_514).to_vec());
            },
            ..USUAL
        },
        Case {
            name: "pieces-victim",
            sparse: Some(pieces_victim),
            classes: PORTS,
            wanted: 0,
            attack: |w| {
                w.add(Side::Lan, (3 * FLOOD, 60), 0, |n| {
                    let build = datagram(Side::Lan, 66, 9_000, OUTSIDE).payload_len(16);
                    build.fragment(0, true, u32::try_from(n & 0xffff).expect("fits")).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "callers-of-two-hosts",
            classes: CALLS,
            side: Side::Wan,
            before: 20,
            wanted: 0,
            attack: callers,
            ..USUAL
        },
        Case {
            name: "jumbo-only",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 9_014), 0, |n| {
                    let port = 9_000 + (n % 7) as u16;
                    datagram(Side::Lan, 66, port, OUTSIDE).frame_len(9_014).to_vec()
                });
            },
            ..USUAL
        },
    ]
}

fn second_cases() -> Vec<Case> {
    vec![
        Case {
            name: "sixty-seven-flows",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 60), 0, |n| {
                    let port = 9_000 + (n % 7) as u16;
                    datagram(Side::Lan, 66, port, OUTSIDE).padded_to(60).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "1514-and-60",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 800), 0, |n| {
                    let bytes = if n % 2 == 0 { 1_514 } else { 60 };
                    let port = 9_000 + (n % 7) as u16;
                    datagram(Side::Lan, 66, port, OUTSIDE).frame_len(bytes).to_vec()
                });
            },
            ..USUAL
        },
        Case { name: "macs-10-small", attack: |w| many_macs(w, 10, 60), honest: 10, ..USUAL },
        Case { name: "macs-100-small", attack: |w| many_macs(w, 100, 60), honest: 100, ..USUAL },
        Case { name: "macs-100-full", attack: |w| many_macs(w, 100, 1_514), honest: 100, ..USUAL },
        Case { name: "macs-fresh-small", attack: |w| many_macs(w, 1 << 30, 60), ..USUAL },
        Case { name: "macs-fresh-full", attack: |w| many_macs(w, 1 << 30, 1_514), ..USUAL },
        Case {
            name: "macs-fresh-each",
            classes: PLAIN_EACH,
            attack: |w| many_macs(w, 1 << 30, 60),
            ..USUAL
        },
        Case { name: "short", attack: short, ..USUAL },
        Case {
            name: "answered-100-hosts",
            side: Side::Wan,
            before: 40,
            attack: |w| answered(w, 4_400 * 480),
            ..USUAL
        },
        Case {
            name: "answered-100-up",
            side: Side::Lan,
            before: 40,
            attack: |w| answered(w, 4_400 * 480),
            ..USUAL
        },
        Case {
            name: "arp",
            attack: |w| {
                let (a, b) = (Ipv4Addr::new(10, 0, 0, 66), Ipv4Addr::new(10, 0, 0, 1));
                raw(w, Side::Lan, FLOOD, Build::arp(a, b).macs(mac(66), [255; 6]).to_vec());
            },
            ..USUAL
        },
    ]
}

fn third_cases() -> Vec<Case> {
    vec![
        Case {
            name: "ethertype",
            attack: |w| {
                let build = Build::ethertype(0x88b5).macs(mac(66), [255; 6]);
                raw(w, Side::Lan, FLOOD, build.frame_len(1_514).to_vec());
            },
            ..USUAL
        },
        Case {
            name: "broadcast-down",
            side: Side::Wan,
            attack: |w| {
                let build = datagram(Side::Wan, 255, 67, OUTSIDE).macs(ROUTER, [255; 6]);
                raw(w, Side::Wan, FLOOD, build.frame_len(1_514).to_vec());
            },
            ..USUAL
        },
        Case {
            name: "multicast-many-down",
            side: Side::Wan,
            attack: |w| {
                w.add(Side::Wan, (FLOOD, 1_514), 0, |n| {
                    let target = [1, 0, 0x5e, 0, (n >> 8 & 255) as u8, (n & 255) as u8];
                    let build = datagram(Side::Wan, 200, 67, OUTSIDE);
                    build.macs(ROUTER, target).frame_len(1_514).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "spoof-victims-address",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 1_514), 0, |n| {
                    let build = datagram(Side::Lan, 2, 7_001 + (n % 3) as u16, OUTSIDE);
                    build.macs(mac(66), ROUTER).frame_len(1_514).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "spoof-victims-flow",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 1_514), 0, |n| {
                    let far = (Ipv4Addr::new(192, 0, 2, 2), 443);
                    let build = datagram(Side::Lan, 2, 7_001 + (n % 2) as u16, far);
                    build.macs(mac(66), ROUTER).frame_len(1_514).to_vec()
                });
            },
            ..USUAL
        },
    ]
}

fn fourth_cases() -> Vec<Case> {
    vec![
        Case {
            name: "take-victims-mac",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 1_514), 0, |_| {
                    let build = datagram(Side::Lan, 66, 9_000, OUTSIDE).macs(mac(2), ROUTER);
                    build.frame_len(1_514).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "vlan-stacks",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 500), 0, |n| {
                    let mut build = datagram(Side::Lan, 66, 9_000, OUTSIDE).payload_len(400);
                    for tag in 0..n % 40 {
                        build = build.vlan(((n + tag) & 0xfff) as u16);
                    }
                    build.to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "pppoe",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 500), 0, |n| {
                    let build = datagram(Side::Lan, 66, 9_000, OUTSIDE);
                    build.pppoe((n & 0xffff) as u16).frame_len(500).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "guaranteed-wan-host-up",
            classes: GUARANTEED,
            attack: small_to_many,
            wanted: 4 * MBIT,
            ..USUAL
        },
        Case {
            name: "guaranteed-wan-host-down",
            classes: GUARANTEED,
            side: Side::Wan,
            attack: small_to_many,
            wanted: 4 * MBIT,
            ..USUAL
        },
    ]
}

fn fifth_cases() -> Vec<Case> {
    vec![
        Case {
            name: "guaranteed-vlans",
            classes: VLANS,
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 60), 0, |n| {
                    let build = datagram(Side::Lan, 66, 9_000, OUTSIDE);
                    build.vlan(u16::try_from(1 + n % 4_094).expect("fits")).padded_to(60).to_vec()
                });
            },
            wanted: 4 * MBIT,
            ..USUAL
        },
        Case {
            name: "jumbo-and-60",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 4_500), 0, |n| {
                    let bytes = if n % 2 == 0 { 9_014 } else { 60 };
                    let port = 9_000 + (n % 7) as u16;
                    datagram(Side::Lan, 66, port, OUTSIDE).frame_len(bytes).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "first-fragments",
            classes: PORTS,
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 60), 0, |n| {
                    let build = datagram(Side::Lan, 66, 9_000, OUTSIDE).payload_len(16);
                    build.fragment(0, true, u32::try_from(n & 0xffff).expect("fits")).to_vec()
                });
            },
            ..USUAL
        },
    ]
}

/// Very many hosts of one frame each, and connections of three.
#[test]
fn small_frames_of_many() {
    ["macs-10-small", "macs-100-small", "hosts-100-small", "macs-fresh-small", "macs-fresh-each"]
        .into_iter()
        .chain(["short"])
        .for_each(holds);
}

/// Hosts that have not been sending for a second share one host's part.
#[test]
fn hosts_of_a_moment() {
    ["macs-of-a-moment", "macs-of-a-moment-port-each", "macs-of-a-moment-in-old-connections"]
        .into_iter()
        .chain(["to-hosts-that-are-silent", "arp-of-many"])
        .for_each(holds);
}

#[test]
fn frames_that_are_no_connections() {
    ["arp", "ethertype", "broadcast-down", "multicast-many-down", "vlan-stacks", "pppoe"]
        .into_iter()
        .for_each(holds);
}

#[test]
fn the_victims_address_and_mac() {
    ["spoof-victims-address", "take-victims-mac"].into_iter().for_each(holds);
}

/// Thousands of leaves with a frame each use up the memory: a class with a guarantee does not pay.
/// Where no leaf has two frames, the one that grew last pays: a sparse frame now and then.
#[test]
fn leaves_that_may_not_send() {
    for name in ["guaranteed-wan-host-up", "guaranteed-wan-host-down", "guaranteed-vlans"] {
        let (before, after) = both(name);
        let told = format!("{name}: {after:?}, beside honest hosts {before:?}");
        assert!(after.bulk * 100 >= before.bulk * 97, "{told}");
        assert!(after.lost <= 2, "{told}");
    }
}

/// ARP of a host, under a flood of ARP and of frames of another kind.
#[test]
fn frames_that_are_no_connections_of_the_victim() {
    ["arp-victim", "arp-victim-few"].into_iter().for_each(holds);
}

#[test]
fn pieces_under_a_flood_of_first_pieces() {
    holds("pieces-victim");
}

#[test]
fn a_session_while_strangers_call_two_others() {
    holds("callers-of-two-hosts");
}

#[test]
fn strangers_whom_many_hosts_answer() {
    holds("answered-100-hosts");
}

#[test]
fn strangers_whom_many_hosts_answer_and_the_way_up() {
    holds("answered-100-up");
}

#[test]
fn frames_of_the_victims_connections_from_another_mac() {
    holds("spoof-victims-flow");
}

#[test]
fn jumbo_frames_and_small_ones() {
    holds("jumbo-and-60");
}
