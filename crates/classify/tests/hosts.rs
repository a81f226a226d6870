//! Who is one host: whoever has a MAC, with all of its addresses; behind a router that the policy
//! names, an IPv4 address or a /64 of IPv6.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use weir_classify::{
    By, Class, Classifier, Each, Event, Index, Limits, Owner, Rule, Seed, Spec, Target, When,
};
use weir_packet::{Build, Headers, Label, Side};
use weir_units::{Instant, Span};

const NOW: Instant = Instant::from_ns(1);
const ATTACKER: [u8; 6] = [2, 7, 0, 0, 0, 1];
const VICTIM: [u8; 6] = [2, 7, 0, 0, 0, 2];
const GATEWAY: [u8; 6] = [2, 8, 0, 0, 0, 1];
const OTHERS: u32 = 7;

fn classifier(routers: &[[u8; 6]]) -> Classifier {
    let limits = Limits { flows: 256, fragmented: 16 };
    Classifier::new(limits, Seed::new(1), index(routers))
}

fn index(routers: &[[u8; 6]]) -> Index {
    let idle = Span::from_secs(1);
    let (by, first_leaf, count) = (By::LanHost, 100, 8);
    let each = Each { by, first_leaf, count, idle, overflow_leaf: OTHERS, known: None };
    let spec = Spec {
        classes: vec![Class { parent: None, target: Target::Each(each) }],
        rules: vec![Rule::default()],
        routers: routers.to_vec(),
        ..Spec::default()
    };
    Index::compile(&spec)
}

fn send(classifier: &mut Classifier, side: Side, mac: [u8; 6], address: IpAddr) -> Label {
    let far = if address.is_ipv4() { "192.0.2.1" } else { "2001:db8:ffff::1" };
    let far = SocketAddr::new(far.parse().unwrap_or(address), 53);
    let near = SocketAddr::new(address, 9);
    let build = match side {
        Side::Lan => Build::udp(near, far).macs(mac, GATEWAY),
        Side::Wan => Build::udp(far, near).macs(GATEWAY, mac),
    };
    let bytes = build.to_vec();
    classifier.one(NOW, side, &Headers::parse(&bytes), &bytes)
}

/// Fifty of IPv4 and ten of IPv6, in as many /64s.
fn addresses() -> impl Iterator<Item = IpAddr> {
    let v4 = (1..=50).map(|n| IpAddr::from([10, 0, 0, n]));
    v4.chain((1..=10).map(|n| IpAddr::from([0x2001, 0xdb8, 0, n, 0, 0, 0, n])))
}

#[test]
fn all_addresses_of_a_mac_are_one_host() {
    let mut classifier = classifier(&[]);
    let victims = send(&mut classifier, Side::Lan, VICTIM, [10, 0, 1, 1].into());
    let mut seen = BTreeSet::new();
    for address in addresses() {
        for side in [Side::Lan, Side::Wan] {
            let label = send(&mut classifier, side, ATTACKER, address);
            seen.insert((label.leaf, label.host));
        }
    }
    assert_eq!(seen.len(), 1, "one leaf, one host: {seen:?}");
    // who uses another's address stays who it is
    let spoofed = send(&mut classifier, Side::Lan, ATTACKER, [10, 0, 1, 1].into());
    assert!(seen.contains(&(spoofed.leaf, spoofed.host)));
    let again = send(&mut classifier, Side::Wan, VICTIM, [10, 0, 1, 1].into());
    assert_eq!((again.leaf, again.host), (victims.leaf, victims.host));
    assert_ne!((spoofed.leaf, spoofed.host), (victims.leaf, victims.host));
    assert_eq!(classifier.counters().hosts_made, 2);
    let owner = Owner::Host([10, 0, 0, 1].into());
    let made: Vec<_> = std::iter::from_fn(|| classifier.event()).collect();
    assert_eq!(made[1], Event::Made { class: 0, leaf: spoofed.leaf, owner }, "by its first");
}

#[test]
fn behind_a_router_each_address_is_a_host() {
    let mut classifier = classifier(&[ATTACKER]);
    let labels: Vec<_> =
        addresses().map(|a| send(&mut classifier, Side::Lan, ATTACKER, a)).collect();
    let hosts: BTreeSet<_> = labels.iter().map(|label| label.host).collect();
    assert_eq!(hosts.len(), 60);
    let leaves: Vec<_> = labels.iter().map(|label| label.leaf).collect();
    assert_eq!(leaves[..8], [100, 101, 102, 103, 104, 105, 106, 107]);
    assert!(leaves[8..].iter().all(|&leaf| leaf == OTHERS));
}

#[test]
fn behind_a_router_a_block_of_ipv6_is_a_host() {
    let mut classifier = classifier(&[GATEWAY, ATTACKER]);
    let address = |net: u16, host: u16| IpAddr::from([0x2001, 0xdb8, 0, net, 0, 0, 0, host]);
    let mut of_net = |net: u16| -> BTreeSet<(u32, u32)> {
        let labels =
            (0..100).map(|host| send(&mut classifier, Side::Lan, ATTACKER, address(net, host)));
        labels.map(|label| (label.leaf, label.host)).collect()
    };
    let (one, two) = (of_net(1), of_net(2));
    assert_eq!((one.len(), two.len()), (1, 1));
    assert!(one.is_disjoint(&two));
}

#[test]
fn a_router_that_is_named_later_parts_its_hosts() {
    let mut classifier = classifier(&[]);
    let of = |classifier: &mut Classifier, host: u8| {
        let label = send(classifier, Side::Lan, ATTACKER, [10, 0, 0, host].into());
        (label.leaf, label.host)
    };
    assert_eq!(of(&mut classifier, 1), of(&mut classifier, 2));
    drop(classifier.replace(index(&[ATTACKER])));
    assert_ne!(of(&mut classifier, 1), of(&mut classifier, 2));
}

#[test]
fn leaves_of_every_class_age() {
    let idle = Span::from_secs(1);
    let each = |first_leaf| {
        let (by, count, overflow_leaf) = (By::WanHost, 100, OTHERS);
        Target::Each(Each { by, first_leaf, count, idle, overflow_leaf, known: None })
    };
    let class = |first_leaf| Class { parent: None, target: each(first_leaf) };
    let rule = |class, protocol| Rule { class, when: When { protocol, ..When::default() } };
    let spec = Spec {
        classes: vec![class(100), class(200), class(300)],
        rules: vec![rule(0, Some((17, 17))), rule(1, Some((6, 6))), rule(2, None)],
        ..Spec::default()
    };
    let limits = Limits { flows: 256, fragmented: 16 };
    let mut classifier = Classifier::new(limits, Seed::new(1), Index::compile(&spec));
    let (near, far) = (([10, 0, 0, 1], 9).into(), ([192, 0, 2, 1], 53).into());
    let frames = [Build::udp(near, far), Build::tcp(near, far), Build::sctp(near, far)];
    let mut later = NOW;
    // twice: the round begins again
    for round in 1..=2 {
        for frame in &frames {
            let bytes = frame.to_vec();
            classifier.one(later, Side::Lan, &Headers::parse(&bytes), &bytes);
        }
        assert_eq!(classifier.counters().hosts_made, 3 * round);
        later += idle;
        // 64 of 300 places with each call
        (0..6).for_each(|_| classifier.age(later, |_| true));
        assert_eq!(classifier.counters().hosts_aged, 3 * round);
    }
}
