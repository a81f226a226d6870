//! A small world of policies and frames: few values for each field, so that rules and frames meet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use proptest::sample::select;
use weir_classify::{By, Class, Each, Origin, Raw, Rule, Spec, Target, When};
use weir_packet::{Build, Net, Side};
use weir_units::{Prefix, Span};

pub(crate) fn side() -> impl Strategy<Value = Side> {
    select(vec![Side::Lan, Side::Wan])
}

fn ip() -> impl Strategy<Value = IpAddr> {
    let v4 = (0u8..2, 0u8..4).prop_map(|(a, b)| Ipv4Addr::new(10, 0, a, b).into());
    let v6 =
        (0u16..2, 0u16..4).prop_map(|(a, b)| Ipv6Addr::new(0x2001, 0xdb8, 0, a, 0, 0, 0, b).into());
    prop_oneof![3 => v4, 1 => v6]
}

fn block() -> impl Strategy<Value = Prefix> {
    (ip(), 0u8..8).prop_map(|(ip, behind)| {
        let width: u8 = if ip.is_ipv4() { 32 } else { 128 };
        let len = [0, 8, 22, 24, 24, 30, 31, 32][usize::from(behind)];
        Prefix::around(ip, if width == 128 && len > 0 { len + 96 - (32 - len) / 8 } else { len })
    })
}

fn blocks() -> impl Strategy<Value = Vec<Prefix>> {
    prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(block(), 1..4)]
}

fn rarely<T: std::fmt::Debug + Clone>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.12, value)
}

fn ports() -> impl Strategy<Value = (u16, u16)> {
    (0u16..6, 0u16..6)
}

/// One, or all but some: a packet with an authentication header is of two protocols.
fn protocols() -> impl Strategy<Value = (u8, u8)> {
    select(vec![(1, 1), (6, 6), (17, 17), (51, 51), (0, 5), (7, 255), (18, 255)])
}

fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

fn raw() -> impl Strategy<Value = Vec<Raw>> {
    let from = select(vec![Origin::Frame, Origin::Net, Origin::Transport, Origin::Payload]);
    let one = (from, 0u16..24, 1u8..=8, 0u64..3, 1u64..4)
        .prop_map(|(from, at, length, value, mask)| Raw { from, at, length, value, mask });
    prop_oneof![9 => Just(vec![]), 1 => prop::collection::vec(one, 1..3)]
}

fn when() -> impl Strategy<Value = When> {
    let addresses = (blocks(), blocks(), blocks());
    let numbers = (rarely(ports()), rarely(ports()), rarely(ports()), rarely(protocols()));
    let link = (
        rarely((0u16..3, 0u16..4)),
        prop::bool::weighted(0.1),
        rarely((0u8..3).prop_map(mac)),
        rarely((0u8..3).prop_map(mac)),
        rarely((0u8..3).prop_map(mac)),
        rarely(select(vec![(0x0800, 0x0800), (0x86dd, 0xffff), (0, 0x8864)])),
    );
    let rest = (
        rarely((0u8..3, 0u8..3)),
        rarely((60u16..100, 60u16..130)),
        rarely(side()),
        rarely(select(vec![Net::V4, Net::V6, Net::Arp])),
        prop::bool::weighted(0.1),
        raw(),
    );
    (addresses, numbers, link, rest).prop_map(|(addresses, numbers, link, rest)| When {
        lan: addresses.0,
        wan: addresses.1,
        host: addresses.2,
        lan_port: numbers.0,
        wan_port: numbers.1,
        port: numbers.2,
        protocol: numbers.3,
        vlan: link.0,
        untagged: link.1,
        lan_mac: link.2,
        wan_mac: link.3,
        mac: link.4,
        ethertype: link.5,
        dscp: rest.0,
        length: rest.1,
        side: rest.2,
        net: rest.3,
        subscriber: rest.4,
        raw: rest.5,
    })
}

fn by() -> impl Strategy<Value = By> {
    select(vec![
        By::LanHost,
        By::WanHost,
        By::LanPrefix { v4: 31, v6: 64 },
        By::WanPrefix { v4: 24, v6: 127 },
        By::LanMac,
        By::Vlan,
    ])
}

/// What a class does with its frames, before it has numbers of leaves.
#[derive(Clone, Debug)]
enum Kind {
    Leaf,
    Subscriber,
    Each(By, u32),
}

/// Leaf numbers: a class has its own at `class`, and those of its hosts from `1000 * class` on.
pub(crate) fn spec() -> impl Strategy<Value = Spec> {
    let kind = prop_oneof![
        4 => Just(Kind::Leaf),
        1 => Just(Kind::Subscriber),
        2 => (by(), 0u32..4).prop_map(|(by, count)| Kind::Each(by, count)),
    ];
    let class = (kind, any::<prop::sample::Index>(), prop::collection::vec(when(), 0..4));
    let subscribers = prop::collection::vec((block(), 500u32..510), 0..6);
    let macs = prop::collection::vec(((0u8..4).prop_map(mac), 510u32..515), 0..3);
    let subscribers = (subscribers, macs);
    (prop::collection::vec(class, 1..24), subscribers).prop_map(|(drawn, subscribers)| {
        let (subscribers, subscriber_macs) = subscribers;
        let mut spec = Spec { subscribers, subscriber_macs, default_leaf: 999, ..Spec::default() };
        for (number, (kind, parent, whens)) in (0u32..).zip(&drawn) {
            // children come before their parents: a parent has a larger number
            let above: Vec<u32> = (number + 1..=u32::try_from(drawn.len()).unwrap_or(0)).collect();
            let parent = *parent.get(&above);
            let target = match *kind {
                Kind::Leaf => Target::Leaf(number),
                Kind::Subscriber => Target::Subscriber { otherwise: number },
                Kind::Each(by, count) => Target::Each(Each {
                    by,
                    first_leaf: 1000 + 10 * number,
                    count,
                    idle: Span::from_secs(3),
                    overflow_leaf: number,
                    known: None,
                }),
            };
            let is_top = parent as usize == drawn.len();
            spec.classes.push(Class { parent: (!is_top).then_some(parent), target });
            spec.rules.extend(whens.iter().map(|when| Rule { class: number, when: when.clone() }));
        }
        spec
    })
}

/// The bytes of a frame, as it comes in from one side.
pub(crate) fn frame() -> impl Strategy<Value = (Side, Vec<u8>)> {
    let ends = (ip(), ip(), 0u16..6, 0u16..6, 0u8..6);
    let link = (prop::option::of(0u16..4), 0u8..3, 0u8..3, prop::bool::weighted(0.1));
    let ah = prop::bool::weighted(0.2);
    let rest = (0u8..3, 60usize..130, prop::option::weighted(0.1, (0u16..2, 0u32..3)));
    (ends, link, ah, rest, side()).prop_map(|((a, b, x, y, kind), link, ah, rest, side)| {
        let (from, to) = (SocketAddr::new(a, x), SocketAddr::new(b, y));
        let mut build = match kind {
            0 | 1 => Build::udp(from, to),
            2 => Build::tcp(from, to).tcp_flags(1 << x),
            3 => Build::icmp_echo(a, b, x),
            4 => Build::arp(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)),
            _ => Build::protocol(a, b, 47),
        };
        build = build.macs(mac(link.1), mac(link.2)).dscp(rest.0).frame_len(rest.1);
        if let Some(vlan) = link.0 {
            build = build.vlan(vlan);
        }
        if let Some((offset, id)) = rest.2 {
            build = build.fragment(offset * 8, true, id);
        }
        if ah {
            // of IPv6 only; without an index, so that nothing but the header itself tells it apart
            build = build.v6_extension(51, &[0; 10]);
        }
        if link.3 {
            build = build.pppoe(1);
        }
        (side, build.to_vec())
    })
}
