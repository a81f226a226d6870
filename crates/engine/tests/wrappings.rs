//! Nobody leaves a class by how a frame is wrapped: whatever a receiving kernel unwraps is held to
//! the ceiling of its class, or dropped with a counted reason. Which of these Linux accepts was
//! tried with raw frames between two namespaces; docs/drops.md has the table.

use std::net::SocketAddr;

use weir_engine::{Config, Engine, Planner, Report};
use weir_packet::{Build, Burst, Headers, Pool, Reason, Side};
use weir_policy::{Source, read};
use weir_units::limits::VLAN_TAGS;
use weir_units::{Instant, Span};

const POLICY: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ncounts = \"ethernet\"\n\
    down = \"100mbit\"\nup = \"100mbit\"\n\
    [class.\"/slow\"]\nmatch = [\"udp port 4000\", \"tcp port 4000\"]\nceil = \"1mbit\"\n";

/// What became of 20 Mbit/s that a host sent for two seconds.
struct Outcome {
    bytes_left: u64,
    dropped: [u64; Reason::COUNT],
}

fn send(frames: &[Vec<u8>]) -> Outcome {
    let reading = read(Source::new("p", POLICY), &mut |_| Err(String::new())).expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    let plan = reading.plans.into_iter().next().expect("has a link");
    let first = Planner::new().prepare(&plan).expect("fits");
    let config = Config { flows: 256, ..Config::default() };
    let mut engine = Engine::new(config, Pool::new(5_000, 2_048), first, Instant::ZERO);
    let mut bytes_left = 0;
    let mut now = Instant::ZERO;
    let end = now + Span::from_secs(2);
    while now < end {
        for bytes in frames {
            let frame = engine.pool_mut().fill(bytes).expect("a buffer");
            let mut burst = Burst::new();
            burst.push(frame).expect("room");
            engine.receive(now, Side::Lan, &mut burst);
            now += Span::from_ns(bytes.len() as u64 * 400);
            let mut out = Burst::new();
            engine.transmit(now, Side::Wan, &mut out);
            for frame in out.drain() {
                bytes_left += frame.len() as u64;
                engine.pool_mut().give(frame);
            }
        }
    }
    let report = Report::of(&engine, &plan);
    let all = report.rows[0].from(Side::Lan);
    assert!(all.balance());
    Outcome { bytes_left, dropped: all.dropped.map(|count| count.frames) }
}

/// Two seconds of 1 Mbit/s and a burst.
const CEILING: u64 = 250_000 + 25_000;

fn v4() -> [SocketAddr; 2] {
    ["10.0.0.1:4000", "192.0.2.1:9"].map(|end| end.parse().expect("an address"))
}

fn v6() -> [SocketAddr; 2] {
    ["[2001:db8::1]:4000", "[2001:db8:1::1]:9"].map(|end| end.parse().expect("an address"))
}

fn plain() -> Vec<u8> {
    let [from, to] = v4();
    Build::udp(from, to).payload_len(900).to_vec()
}

/// The frame with more between its addresses and its Ethernet type.
fn behind(layers: &[&[u8]], frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &layers.concat(), &frame[12..]].concat()
}

/// An 802.3 frame: the length, LLC and SNAP before the Ethernet type.
fn snap(organization: u8, frame: &[u8]) -> Vec<u8> {
    let length = u16::try_from(frame.len() - 12 + 6).expect("is short").to_be_bytes();
    behind(&[&length, &[0xaa, 0xaa, 3, 0, 0, organization]], frame)
}

/// PPPoE with a header of its own making before the IP packet.
fn pppoe(start: [u8; 2], protocol: &[u8]) -> Vec<u8> {
    let frame = plain();
    let length = u16::try_from(frame.len() - 14 + protocol.len()).expect("is short").to_be_bytes();
    let header = [&[0x88, 0x64], &start[..], &[0, 1], &length, protocol].concat();
    [&frame[..12], &header, &frame[14..]].concat()
}

/// A UDP packet with so many extension headers of eight bytes.
fn extended(count: usize) -> Vec<u8> {
    let [from, to] = v6();
    let build = Build::udp(from, to).payload_len(900);
    (0..count).fold(build, |build, _| build.v6_extension(60, &[1, 4, 0, 0, 0, 0])).to_vec()
}

/// A payload length of 0, and a first extension header that every hop reads.
fn of_no_length() -> Vec<u8> {
    let [from, to] = v6();
    let build = Build::udp(from, to).payload_len(900).v6_extension(0, &[1, 4, 0, 0, 0, 0]);
    let mut bytes = build.to_vec();
    bytes[18..20].fill(0);
    bytes
}

#[test]
fn no_wrapping_leaves_the_class() {
    const PRIORITY: &[u8] = &[0x81, 0, 0, 0];
    const VLAN: &[u8] = &[0x81, 0, 0x20, 7];
    const SERVICE: &[u8] = &[0x88, 0xa8, 0, 0];
    let plain = plain();
    let [from, to] = v4();
    let in_session = Build::udp(from, to).payload_len(900).pppoe(5).to_vec();
    let wrapped = [
        ("plain", plain.clone()),
        ("five priority tags", behind(&[PRIORITY; 5], &plain)),
        ("as many tags as are followed", behind(&[PRIORITY; VLAN_TAGS], &plain)),
        ("five VLANs", behind(&[VLAN; 5], &plain)),
        ("five service tags", behind(&[SERVICE; 5], &plain)),
        ("mixed tags", behind(&[SERVICE, PRIORITY, SERVICE, VLAN, PRIORITY, VLAN], &plain)),
        ("PPPoE in five tags", behind(&[PRIORITY; 5], &in_session)),
        ("SNAP", snap(0, &plain)),
        ("SNAP of a bridge tunnel", snap(0xf8, &plain)),
        ("SNAP in tags", behind(&[PRIORITY; 2], &snap(0, &plain))),
        ("tags in SNAP", snap(0, &behind(&[PRIORITY; 5], &plain))),
        ("PPPoE with a short protocol number", pppoe([0x11, 0], &[0x21])),
        ("PPPoE with a code that is ignored", pppoe([0x11, 9], &[0, 0x21])),
        ("PPPoE of another version", pppoe([0x21, 0], &[0, 0x21])),
        ("IPv6 that says no length", of_no_length()),
        ("as many extension headers as are followed", extended(8)),
    ];
    for (name, frame) in wrapped {
        assert_eq!(Headers::parse(&frame).fault, None, "{name}");
        let Outcome { bytes_left, .. } = send(&[frame]);
        assert!((100_000..=CEILING).contains(&bytes_left), "{name}: {bytes_left} bytes left");
    }
}

#[test]
fn what_is_too_deep_is_dropped() {
    let too_many = VLAN_TAGS + 1;
    let frames = [
        behind(&vec![&[0x81, 0, 0, 0][..]; too_many], &plain()),
        behind(&vec![&[0x88, 0xa8, 0, 5][..]; too_many], &plain()),
        extended(9),
    ];
    for frame in frames {
        let Outcome { bytes_left, dropped } = send(std::slice::from_ref(&frame));
        assert_eq!(bytes_left, 0, "{:?}", Headers::parse(&frame).fault);
        assert!(dropped[Reason::TooDeep.index()] > 1_000, "{dropped:?}");
    }
}

#[test]
fn no_fragment_leaves_the_class_of_its_packet() {
    let [from, to] = v4();
    let first = Build::udp(from, to).payload_len(504).fragment(0, true, 7).to_vec();
    let later = Build::udp(from, to).payload_len(512).fragment(512, false, 7).to_vec();
    let [from, to] = v6();
    let first6 = Build::udp(from, to).payload_len(504).fragment(0, true, 7).to_vec();
    let later6 = Build::udp(from, to).payload_len(512).fragment(512, false, 7).to_vec();
    let in_order = [vec![first.clone(), later.clone()], vec![first6, later6.clone()]];
    for frames in in_order {
        let Outcome { bytes_left, dropped } = send(&frames);
        assert!((100_000..=CEILING).contains(&bytes_left), "{bytes_left} bytes left");
        assert_eq!(dropped[Reason::Fragment.index()], 0);
    }
    // a receiver puts together what comes in any order, so the later pieces must not come before
    // it is known whose they are
    for later in [later, later6] {
        let Outcome { bytes_left, dropped } = send(&[later]);
        assert_eq!(bytes_left, 0);
        assert!(dropped[Reason::Fragment.index()] > 1_000, "{dropped:?}");
    }
}

#[test]
fn a_first_fragment_must_have_its_transport_header() {
    let [from, to] = v4();
    // RFC 1858: eight bytes of TCP are the ports, and no kernel minds that the rest comes later
    let mut tiny = Build::tcp(from, to).payload_len(100).fragment(0, true, 7).to_vec();
    tiny.truncate(14 + 20 + 8);
    tiny[16..18].copy_from_slice(&28_u16.to_be_bytes());
    // RFC 7112: the chain of extension headers goes on in the next piece
    let [from, to] = v6();
    let (a, b) = (from.ip(), to.ip());
    let chain = Build::protocol(a, b, 60).fragment(0, true, 7).payload(&[60, 0, 1, 4, 0, 0, 0, 0]);
    for frame in [tiny, chain.to_vec()] {
        let Outcome { bytes_left, dropped } = send(&[frame]);
        assert_eq!(bytes_left, 0);
        assert!(dropped[Reason::Fragment.index()] > 1_000, "{dropped:?}");
    }
}
