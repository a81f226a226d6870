//! Hosts that have been there for a moment only, or that were never there.

use std::net::Ipv4Addr;

use weir_packet::{Build, Side};

use super::world::{OUTSIDE, ROUTER, datagram, mac};
use super::{ATTACKER, Case, FLOOD, USUAL, arp_victim, spoofed_mac};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "macs-of-a-moment",
            attack: |w| {
                // 2 477 frames a second: a hundred others every 0.8 s
                w.add(Side::Lan, (FLOOD, 1_514), 0, |n| {
                    let build = datagram(Side::Lan, ATTACKER, 9_000, OUTSIDE);
                    let mac = spoofed_mac(n / 2_000 * 100 + n % 100);
                    build.macs(mac, ROUTER).frame_len(1_514).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "hosts-100-small",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 60), 0, move |n| {
                    let port = 1_024 + u16::try_from(n % 100).expect("fits");
                    let build = datagram(Side::Lan, ATTACKER, port, OUTSIDE).padded_to(60);
                    build.macs(spoofed_mac(n % 100), ROUTER).to_vec()
                });
            },
            honest: 100,
            ..USUAL
        },
        Case {
            name: "macs-of-a-moment-port-each",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 1_514), 0, |n| {
                    let host = n / 2_000 * 100 + n % 100;
                    let port = 1_024 + u16::try_from(host % 60_000).expect("fits");
                    let build = datagram(Side::Lan, ATTACKER, port, OUTSIDE);
                    build.macs(spoofed_mac(host), ROUTER).frame_len(1_514).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "macs-of-a-moment-in-old-connections",
            attack: |w| {
                w.add(Side::Lan, (FLOOD, 1_514), 0, |n| {
                    let port = 1_024 + u16::try_from(n % 100).expect("fits");
                    let build = datagram(Side::Lan, ATTACKER, port, OUTSIDE);
                    // each has settled before others write its connections
                    let mac = if n < 6_000 { mac(ATTACKER) } else { spoofed_mac(n) };
                    build.macs(mac, ROUTER).frame_len(1_514).to_vec()
                });
            },
            // itself, and all that are new
            honest: 2,
            ..USUAL
        },
    ]
}

pub(crate) fn without_connections() -> Vec<Case> {
    vec![
        Case {
            name: "arp-of-many",
            sparse: Some(arp_victim),
            wanted: 0,
            attack: |w| {
                let (a, b) = (Ipv4Addr::new(10, 0, 0, 66), Ipv4Addr::new(10, 0, 0, 1));
                w.add(Side::Lan, (FLOOD, 64), 0, move |n| {
                    Build::arp(a, b).macs(spoofed_mac(n % 10_000_000), [255; 6]).to_vec()
                });
            },
            ..USUAL
        },
        Case {
            name: "to-hosts-that-are-silent",
            side: Side::Wan,
            attack: |w| {
                w.add(Side::Wan, (FLOOD, 1_514), 0, |n| {
                    let number = 100 + u8::try_from(n % 100).expect("fits");
                    datagram(Side::Wan, number, 9_000, OUTSIDE).frame_len(1_514).to_vec()
                });
            },
            ..USUAL
        },
    ]
}
