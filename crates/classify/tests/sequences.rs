//! Short stories of frames that the random ones tell too rarely: what varies within a connection,
//! pieces that find their connection, a change of policy, a place lost within a burst.

use std::net::SocketAddr;

use weir_classify::{
    By, Class, Classifier, Each, Event, Index, Limits, Origin, Owner, Raw, Rule, Seed, Spec,
    Target, When,
};
use weir_packet::{Build, Flow, Headers, Label, Pool, Side};
use weir_units::{Instant, Span};

const NOW: Instant = Instant::from_ns(1);

fn spec(rules: Vec<When>) -> Spec {
    let classes = (0u32..).zip(&rules).map(|(n, _)| leaf(n)).collect();
    let rules = (0u32..).zip(rules).map(|(class, when)| Rule { class, when }).collect();
    Spec { rules, classes, default_leaf: 99, ..Spec::default() }
}

fn leaf(leaf: u32) -> Class {
    Class { parent: None, target: Target::Leaf(leaf) }
}

fn each(first_leaf: u32, count: u32, by: By) -> Spec {
    let idle = Span::from_secs(1);
    let target = Target::Each(Each { by, first_leaf, count, idle, overflow_leaf: 7, known: None });
    let classes = vec![Class { parent: None, target }];
    Spec { classes, rules: vec![Rule::default()], ..Spec::default() }
}

fn classifier(spec: &Spec, flows: usize) -> Classifier {
    Classifier::new(Limits { flows, fragmented: 16 }, Seed::new(1), Index::compile(spec))
}

fn udp(host: u8, port: u16) -> Build {
    let from = SocketAddr::from(([10, 0, 0, host], port));
    Build::udp(from, SocketAddr::from(([192, 0, 2, 1], 53)))
}

fn up(classifier: &mut Classifier, now: Instant, build: &Build) -> Label {
    let bytes = build.to_vec();
    classifier.one(now, Side::Lan, &Headers::parse(&bytes), &bytes)
}

fn down(classifier: &mut Classifier, now: Instant, build: &Build) -> Label {
    let bytes = build.to_vec();
    classifier.one(now, Side::Wan, &Headers::parse(&bytes), &bytes)
}

/// What comes from outside is answered once the LAN side has sent on the same connection, and not
/// if that was a refusal.
#[test]
fn an_answer_is_known_and_a_refusal_is_none() {
    let mut classifier = classifier(&spec(vec![When::default()]), 64);
    let (host, far) =
        (SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([192, 0, 2, 1], 53)));
    assert!(!down(&mut classifier, NOW, &Build::udp(far, host)).is_answered());
    assert!(!down(&mut classifier, NOW, &Build::udp(far, host)).is_answered());
    assert!(up(&mut classifier, NOW, &Build::udp(host, far)).is_answered());
    assert!(down(&mut classifier, NOW, &Build::udp(far, host)).is_answered());
    let other = SocketAddr::from(([192, 0, 2, 2], 53));
    assert!(!down(&mut classifier, NOW, &Build::udp(other, host)).is_answered());
    let syn = Build::tcp(far, host).tcp_flags(weir_packet::tcp::SYN);
    assert!(!down(&mut classifier, NOW, &syn).is_answered());
    let refused = weir_packet::tcp::RST | weir_packet::tcp::ACK;
    assert!(up(&mut classifier, NOW, &Build::tcp(host, far).tcp_flags(refused)).is_answered());
    let more = Build::tcp(far, host).tcp_flags(weir_packet::tcp::ACK);
    assert!(!down(&mut classifier, NOW, &more).is_answered());
}

#[test]
fn what_varies_within_a_connection_is_asked_again() {
    let raw = Raw { from: Origin::Payload, at: 1, length: 2, value: 0xabcd, mask: 0xff00 };
    let mut classifier = classifier(
        &spec(vec![
            When { raw: vec![raw], ..When::default() },
            When { dscp: Some((46, 46)), ..When::default() },
            When { length: Some((200, 300)), ..When::default() },
            When { wan_mac: Some([9; 6]), ..When::default() },
            When { vlan: Some((5, 6)), ..When::default() },
        ]),
        64,
    );
    let plain = udp(1, 1).frame_len(100).macs([1; 6], [8; 6]);
    let payload = |payload: &[u8]| udp(1, 1).macs([1; 6], [8; 6]).payload(payload);
    let frames = [
        (plain.clone(), 99),
        (payload(&[0, 0xab, 0]), 0),
        (payload(&[0, 0xac, 0]), 99),
        (plain.clone().dscp(46), 1),
        (plain.clone().frame_len(250), 2),
        (plain.clone().macs([1; 6], [9; 6]), 3),
    ];
    let flow = up(&mut classifier, NOW, &plain).flow;
    for (build, leaf) in frames.iter().chain(frames.iter().rev()) {
        let label = up(&mut classifier, NOW, build);
        assert_eq!((label.leaf, label.flow), (*leaf, flow), "{build:?}");
    }
    let tagged = up(&mut classifier, NOW, &plain.vlan(5));
    assert_eq!(tagged.leaf, 4);
    assert_ne!(tagged.flow, flow, "another VLAN may have the same addresses");
}

/// Anyone in the LAN can write another's addresses and ports.
#[test]
fn a_connection_stays_with_the_host_that_sends_on_it() {
    let (host, other, far) = ([1; 6], [2; 6], [9; 6]);
    let lan = SocketAddr::from(([10, 0, 0, 1], 1));
    let answer = Build::udp(SocketAddr::from(([192, 0, 2, 1], 53)), lan).macs(far, host);
    let from = |mac| udp(1, 1).macs(mac, far);
    let at = |ms: u64| NOW + Span::from_ms(ms);
    let mut classifier = classifier(&spec(vec![When::default()]), 64);
    let flow = up(&mut classifier, NOW, &from(host)).flow;
    let apart = up(&mut classifier, NOW, &from(other)).flow;
    assert_ne!(apart, flow);
    for n in 0..20 {
        assert_eq!(up(&mut classifier, at(500 * n), &from(host)).flow, flow);
        assert_eq!(up(&mut classifier, at(500 * n), &from(other)).flow, apart);
        assert_eq!(down(&mut classifier, at(500 * n), &answer).flow, flow);
    }
    // a host may come back with another MAC: the silence that it takes is known to a turn
    let silent = |ms: u64| at(9_500 + ms);
    for n in 1..=4 {
        assert_eq!(up(&mut classifier, silent(500 * n), &from(other)).flow, apart);
        assert_eq!(down(&mut classifier, silent(500 * n), &answer).flow, flow);
    }
    assert_eq!(up(&mut classifier, silent(4_300), &from(other)).flow, flow);
    assert_ne!(up(&mut classifier, silent(4_300), &from(host)).flow, flow);
    assert_eq!(classifier.flows(), 3);
}

/// What only strangers have sent on is the LAN host's that sends first.
#[test]
fn a_strangers_connection_is_whose_answer_comes_first() {
    let far = [9; 6];
    let lan = SocketAddr::from(([10, 0, 0, 1], 1));
    let call = Build::udp(SocketAddr::from(([192, 0, 2, 1], 53)), lan).macs(far, [1; 6]);
    let mut classifier = classifier(&spec(vec![When::default()]), 64);
    let flow = down(&mut classifier, NOW, &call).flow;
    assert_eq!(up(&mut classifier, NOW, &udp(1, 1).macs([2; 6], far)).flow, flow);
    assert_ne!(up(&mut classifier, NOW, &udp(1, 1).macs([1; 6], far)).flow, flow);
}

/// Behind a router a host is who has the address, whichever router its frames come from.
#[test]
fn hosts_behind_routers_may_come_from_either() {
    let routers = vec![[1; 6], [2; 6]];
    let spec = Spec { routers, ..spec(vec![When::default()]) };
    let mut classifier = classifier(&spec, 64);
    let mut from = |mac| up(&mut classifier, NOW, &udp(1, 1).macs(mac, [9; 6])).flow;
    assert_eq!(from([1; 6]), from([2; 6]));
}

#[test]
fn later_fragments_find_their_connection() {
    let mut classifier =
        classifier(&spec(vec![When { lan_port: Some((4000, 4000)), ..When::default() }]), 64);
    let first = udp(1, 4000).payload_len(64).fragment(0, true, 77);
    let later = udp(1, 4000).payload_len(64).fragment(64, false, 77);
    assert_eq!(up(&mut classifier, NOW, &later).leaf, 99);
    assert_eq!(classifier.counters().fragments_unknown, 1);
    let begun = up(&mut classifier, NOW, &first);
    let label = up(&mut classifier, NOW, &later);
    assert_eq!((label.leaf, label.flow), (0, begun.flow));
    assert!(!label.kind.is_udp(), "there is no UDP header in it");
    assert_eq!(up(&mut classifier, NOW, &later.clone().vlan(3)).leaf, 99, "of another VLAN");
    let other = udp(1, 4000).payload_len(64).fragment(64, false, 78);
    assert_eq!(up(&mut classifier, NOW, &other).leaf, 99, "of another packet");
    let late = NOW + Span::from_secs(61);
    assert_eq!(up(&mut classifier, late, &later).leaf, 99, "too late");
}

#[test]
fn a_full_flow_table_loses_no_fragments() {
    let ports = vec![When { lan_port: Some((4000, 4000)), ..When::default() }];
    let mut classifier = classifier(&spec(ports), 8);
    // connections that are alive hold all places
    for port in 1..=200 {
        up(&mut classifier, NOW, &udp(9, port));
        let (host, far) =
            (SocketAddr::from(([10, 0, 0, 9], port)), SocketAddr::from(([192, 0, 2, 1], 53)));
        down(&mut classifier, NOW, &Build::udp(far, host));
    }
    let first = udp(9, 4000).payload_len(64).fragment(0, true, 77);
    let later = udp(9, 4000).payload_len(64).fragment(64, false, 77);
    for piece in [&first, &later, &later] {
        let label = up(&mut classifier, NOW, piece);
        assert_eq!((label.leaf, label.flow), (0, Flow::NONE));
        assert!(!label.kind.is_stray());
    }
}

/// Each of two hosts that send many first pieces has its part: what a third begins is not lost.
#[test]
fn many_first_pieces_leave_room_for_those_of_others() {
    let ports = vec![When { lan_port: Some((4000, 4000)), ..When::default() }];
    let limits = Limits { flows: 64, fragmented: 1_024 };
    let mut classifier = Classifier::new(limits, Seed::new(1), Index::compile(&spec(ports)));
    let of = |host: u8| udp(host, 4000).macs([2, 0, 0, 0, 0, host], [2; 6]).payload_len(64);
    for round in 0..50_u32 {
        let now = NOW + Span::from_ms(round.into());
        up(&mut classifier, now, &of(1).fragment(0, true, round));
        for id in 0..100 {
            let host = if id % 2 == 0 { 2 } else { 3 };
            up(&mut classifier, now, &of(host).fragment(0, true, 1_000 + 100 * round + id));
        }
        assert_eq!(up(&mut classifier, now, &of(1).fragment(64, false, round)).leaf, 0, "{round}");
    }
}

#[test]
fn a_piece_without_its_first_is_a_stray_only_where_that_matters() {
    let later = udp(1, 4000).payload_len(64).fragment(64, false, 77);
    let (a, b) = ("[2001:db8::1]:5".parse().unwrap(), "[2001:db8::2]:6".parse().unwrap());
    let later_v6 = Build::udp(a, b).payload_len(64).fragment(64, false, 9);
    let protocol = When { protocol: Some((17, 17)), ..When::default() };
    let hosts = When { lan: vec!["10.0.0.0/8".parse().unwrap()], ..When::default() };
    let ports = When { port: Some((1, 9)), ..When::default() };
    let bytes = Origin::Transport;
    let raw = Raw { from: bytes, at: 0, length: 1, value: 0, mask: 1 };
    let raw = When { raw: vec![raw], ..When::default() };
    for (when, v4, v6) in
        [(hosts, false, false), (protocol, false, true), (ports, true, true), (raw, true, true)]
    {
        let mut classifier = classifier(&spec(vec![when]), 64);
        let is_stray = [&later, &later_v6].map(|f| up(&mut classifier, NOW, f).kind.is_stray());
        assert_eq!(is_stray, [v4, v6]);
    }
}

#[test]
fn a_later_fragment_of_ipv6_has_the_protocol_of_the_first() {
    let udp_only = When { protocol: Some((17, 17)), ..When::default() };
    let mut classifier = classifier(&spec(vec![udp_only]), 64);
    let (a, b) = ("[2001:db8::1]:5".parse().unwrap(), "[2001:db8::2]:6".parse().unwrap());
    let first = Build::udp(a, b).payload_len(64).fragment(0, true, 9);
    let begun = up(&mut classifier, NOW, &first);
    // behind the fragment header of a later piece may stand the number of an extension header
    let later = Build::protocol(a.ip(), b.ip(), 60).payload_len(64).fragment(64, false, 9);
    assert_eq!(up(&mut classifier, NOW, &later).flow, begun.flow);
    assert_eq!(up(&mut classifier, NOW, &later).leaf, 0);
}

#[test]
fn leaves_of_hosts_outlive_a_policy_that_keeps_them() {
    let mut classifier = classifier(&each(100, 4, By::LanHost), 64);
    let before = [1, 2, 3].map(|host| up(&mut classifier, NOW, &udp(host, 1)).leaf);
    assert_eq!(before, [100, 101, 102]);
    // a class more, and another number of the same one
    let mut newer = each(100, 4, By::LanHost);
    newer.classes.insert(0, leaf(5));
    newer.rules[0].class = 1;
    drop(classifier.replace(Index::compile(&newer)));
    let after = [3, 2, 1].map(|host| up(&mut classifier, NOW, &udp(host, 1)).leaf);
    assert_eq!(after, [102, 101, 100]);
    assert_eq!(classifier.owner(101), Some(Owner::Host([10, 0, 0, 2].into())));
    drop(classifier.replace(Index::compile(&each(100, 3, By::LanHost))));
    assert_eq!(classifier.owner(101), None, "not the same leaves: forgotten");
    assert_eq!(up(&mut classifier, NOW, &udp(3, 1)).leaf, 100);
}

#[test]
fn a_leaf_is_reused_when_its_host_is_silent_and_its_queue_empty() {
    let mut classifier = classifier(&each(100, 2, By::LanHost), 64);
    assert_eq!([1, 2, 3].map(|h| up(&mut classifier, NOW, &udp(h, 1)).leaf), [100, 101, 7]);
    assert_eq!(classifier.counters().hosts_overflowed, 1);
    let later = NOW + Span::from_secs(2);
    up(&mut classifier, later, &udp(2, 1));
    classifier.age(later, |_| false);
    assert_eq!(up(&mut classifier, later, &udp(3, 1)).leaf, 7, "its queue is not empty");
    classifier.age(later, |_| true);
    assert_eq!(up(&mut classifier, later, &udp(3, 1)).leaf, 100);
    // host 1 comes back: the leaf that its connection remembers is another's now
    assert_eq!(up(&mut classifier, later, &udp(1, 1)).leaf, 7);
    let events: Vec<_> = std::iter::from_fn(|| classifier.event()).collect();
    assert_eq!(events.len(), 4);
    let owner = Owner::Host([10, 0, 0, 1].into());
    assert_eq!(events[2], Event::Aged { class: 0, leaf: 100, owner });
}

/// Anyone outside can send to addresses that nobody has, and go on sending to one that is gone.
#[test]
fn strangers_make_no_leaf_for_a_host_and_keep_none() {
    let mut classifier = of_each(By::LanHost);
    let far = SocketAddr::from(([192, 0, 2, 1], 53));
    let to = |host: u8| Build::udp(far, SocketAddr::from(([10, 0, 0, host], 1)));
    for host in 10..20 {
        assert_eq!(down(&mut classifier, NOW, &to(host)).leaf, 7, "with all others");
    }
    assert_eq!(up(&mut classifier, NOW, &udp(10, 1)).leaf, 100);
    assert_eq!(down(&mut classifier, NOW, &to(10)).leaf, 100, "it has its leaf now");
    for ms in (0..2_000).step_by(100) {
        let now = NOW + Span::from_ms(ms);
        down(&mut classifier, now, &to(10));
        classifier.age(now, |_| true);
    }
    assert_eq!(classifier.owner(100), None, "it has been silent for a second");
    // who is meant on the other side makes leaves from there
    let mut of_far = of_each(By::WanHost);
    assert_eq!(down(&mut of_far, NOW, &to(1)).leaf, 100);
}

fn of_each(by: By) -> Classifier {
    classifier(&each(100, 2, by), 64)
}

#[test]
fn a_place_lost_within_a_burst_is_not_mistaken() {
    let mut classifier = classifier(&Spec::default(), 8);
    let olds: Vec<Flow> =
        (1..=8).map(|host| up(&mut classifier, NOW, &udp(host, 1)).flow).collect();
    // a new connection takes the oldest place, whose owner comes right behind it
    let mut pool = Pool::new(2, 128);
    let burst = [udp(9, 1).to_vec(), udp(1, 1).to_vec()];
    let frames: Vec<_> = burst.iter().map(|bytes| pool.fill(bytes).unwrap()).collect();
    let headers: Vec<_> = burst.iter().map(|bytes| Headers::parse(bytes)).collect();
    let mut labels = [Label::new(Side::Lan, &headers[0]); 2];
    let later = NOW + Span::from_ms(1);
    classifier.burst(later, Side::Lan, &pool, &frames, &headers, &mut labels);
    assert_eq!(labels[0].flow.index, olds[0].index);
    assert_ne!(labels[1].flow.index, labels[0].flow.index);
    assert_ne!(labels[1].flow, olds[0]);
    assert_eq!(classifier.counters().evicted, 2);
}

#[test]
fn silent_connections_make_room() {
    let mut classifier = classifier(&Spec::default(), 8);
    let (a, b) = ("10.0.0.1:1".parse().unwrap(), "192.0.2.1:2".parse().unwrap());
    for build in [Build::udp(a, b), Build::udp(b, a)] {
        let side = if build == Build::udp(a, b) { Side::Lan } else { Side::Wan };
        let bytes = build.to_vec();
        classifier.one(NOW, side, &Headers::parse(&bytes), &bytes);
    }
    up(&mut classifier, NOW, &udp(9, 9));
    assert_eq!(classifier.flows(), 2);
    classifier.age(NOW + Span::from_secs(11), |_| true);
    assert_eq!(classifier.flows(), 1, "unanswered for 11 s");
    classifier.age(NOW + Span::from_secs(119), |_| true);
    assert_eq!(classifier.flows(), 1);
    classifier.age(NOW + Span::from_secs(121), |_| true);
    assert_eq!(classifier.flows(), 0);
}

#[test]
fn a_closed_tcp_connection_goes_soon() {
    let mut classifier = classifier(&Spec::default(), 8);
    let (a, b) = ("10.0.0.1:1".parse().unwrap(), "192.0.2.1:2".parse().unwrap());
    let mut send = |side: Side, flags: u8, at: Instant| {
        let build = if side == Side::Lan { Build::tcp(a, b) } else { Build::tcp(b, a) };
        let bytes = build.tcp_flags(flags).to_vec();
        classifier.one(at, side, &Headers::parse(&bytes), &bytes);
        classifier.age(at + Span::from_secs(6), |_| true);
        classifier.flows()
    };
    assert_eq!(send(Side::Lan, 0x02, NOW), 1);
    assert_eq!(send(Side::Wan, 0x12, NOW), 1);
    assert_eq!(send(Side::Lan, 0x11, NOW), 1, "half closed");
    assert_eq!(send(Side::Wan, 0x11, NOW), 0);
    assert_eq!(send(Side::Wan, 0x10, NOW), 1);
    assert_eq!(send(Side::Wan, 0x14, NOW), 0, "reset");
}

#[test]
fn a_chain_of_parents_that_goes_round_never_matches() {
    let mut spec = spec(vec![When::default(), When::default()]);
    spec.classes[0].parent = Some(1);
    spec.classes[1].parent = Some(0);
    spec.rules.push(Rule { class: 77, when: When::default() });
    let mut classifier = classifier(&spec, 8);
    assert_eq!(up(&mut classifier, NOW, &udp(1, 1)).leaf, 99);
}

#[test]
fn a_packet_with_an_authentication_header_is_of_two_protocols() {
    let protocol = |number| When { protocol: Some((number, number)), ..When::default() };
    let asks = [protocol(51), protocol(17)];
    let plain = udp(1, 1);
    let (from, to) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
    // of IPv4: next header, words, index 0, and behind it UDP from port 1 to 53
    let ah = [17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 53, 0, 8, 0, 0];
    let hidden = Build::protocol(from, to, 51).payload(&ah);
    let cut = Build::protocol(from, to, 51).payload(&ah[..8]);
    let leaves = |rules: &[When]| {
        let mut classifier = classifier(&spec(rules.to_vec()), 64);
        [&plain, &hidden, &cut, &plain].map(|frame| up(&mut classifier, NOW, frame).leaf)
    };
    assert_eq!(leaves(&asks), [1, 0, 0, 1]);
    assert_eq!(leaves(&asks[1..]), [0, 0, 99, 0], "it is still UDP");
    let port = When { wan_port: Some((53, 53)), ..protocol(51) };
    assert_eq!(leaves(&[port]), [99, 0, 99, 99]);
    let mut classifier = classifier(&spec(asks.to_vec()), 64);
    let mut piece = |offset| up(&mut classifier, NOW, &hidden.clone().fragment(offset, true, 7));
    let (first, later) = (piece(0), piece(24));
    assert_eq!((first.leaf, later.leaf, first.flow), (0, 0, later.flow));
}
