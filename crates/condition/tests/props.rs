//! What holds for any segments under any policy. The world checks each frame that leaves: nothing
//! but a smaller window and a smaller segment size, a checksum that is right, nobody of a
//! connection and direction overtaken, nobody a second late.

mod world;

use std::net::SocketAddr;

use proptest::prelude::*;
use weir_condition::{Leaf, Loss, RoundTrip, Spec, Told};
use weir_packet::tcp::{self, Tcp};
use weir_packet::{Build, Flow, Headers, Side};
use weir_units::limits::HELD_ACKS;
use weir_units::{ByWay, Instant, Rate, Span, Way};
use world::{Left, World};

/// Leaves that policies speak of; the last lie in other pieces of memory.
const LEAVES: [u32; 4] = [0, 3, 1_500, 4_095];

fn told() -> impl Strategy<Value = Told> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let mss = prop_oneof![Just(0), any::<u16>(), 100u16..1_500];
    (flags, prop_oneof![Just(4), any::<u8>()], mss).prop_map(
        |((window, pace_acks, release, coarse), least, mss)| Told {
            window,
            pace_acks,
            least,
            loss: if release { Loss::Release } else { Loss::Hold },
            round_trip: if coarse { RoundTrip::Coarse } else { RoundTrip::Fine },
            mss,
        },
    )
}

fn rate() -> impl Strategy<Value = Rate> {
    let bps = prop_oneof![4 => 1_000u64..1_000_000, 1 => any::<u64>(), 1 => Just(0)];
    bps.prop_map(Rate::from_bps)
}

fn spec() -> impl Strategy<Value = Spec> {
    let leaf = (0u16..4, rate(), any::<bool>());
    let leaves = prop::collection::vec(prop::option::weighted(0.8, leaf), 2 * LEAVES.len());
    (prop::collection::vec(told(), 3), leaves).prop_map(|(told, leaves)| {
        let mut spec = Spec { told: vec![Told::default()], ..Spec::default() };
        for (at, leaf) in leaves.into_iter().enumerate() {
            let Some((of, rate, fixed)) = leaf.filter(|leaf| leaf.0 != 0) else { continue };
            let number = LEAVES[at % LEAVES.len()];
            let way = [Way::Up, Way::Down][at / LEAVES.len()];
            spec.leaves[way].push(Leaf { number, told: of, rate, fixed });
        }
        if !spec.is_idle() {
            spec.told.extend(told);
        }
        spec
    })
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Segment { side: bool, flow: u8, build: Build },
    Garbage { side: bool, flow: u8, bytes: Vec<u8> },
    Pass { us: u64 },
    Waiting { bytes: u32 },
    Policy(Spec),
}

fn options() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        Just(vec![1]),
        any::<[u8; 2]>().prop_map(|mss| [&[2, 4][..], &mss].concat()),
        any::<u8>().prop_map(|shift| vec![3, 3, shift]),
        Just(vec![4, 2]),
        any::<[u8; 8]>().prop_map(|clocks| [&[1, 1, 8, 10][..], &clocks].concat()),
        any::<[u8; 8]>().prop_map(|edges| [&[5, 10][..], &edges].concat()),
        Just([&[19, 18][..], &[7; 16]].concat()),
        Just(vec![29, 4, 1, 1]),
        prop::collection::vec(any::<u8>(), 1..6),
    ];
    prop::collection::vec(one, 0..4).prop_map(|parts| parts.concat())
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn read_tcp<'f>(bytes: &'f [u8], headers: &Headers) -> Tcp<'f> {
    Tcp::of(bytes, headers).expect("a segment was sent")
}

/// Sequence numbers that mean something to each other, around 0, and some that do not.
fn sequence() -> impl Strategy<Value = u32> {
    prop_oneof![8 => (0u32..20_000).prop_map(|n| n.wrapping_sub(10_000)), 1 => any::<u32>()]
}

fn segment() -> impl Strategy<Value = Step> {
    let flags = prop_oneof![
        4 => Just(tcp::ACK),
        2 => Just(tcp::SYN),
        2 => Just(tcp::SYN | tcp::ACK),
        1 => Just(tcp::FIN | tcp::ACK),
        1 => any::<u8>(),
    ];
    let fields = (flags, sequence(), sequence(), any::<u16>(), options());
    let data = prop_oneof![Just(0usize), 1usize..1_400];
    let around = (any::<bool>(), 0u8..6, 0u8..20);
    (fields, data, around).prop_map(|((flags, seq, ack, window, options), data, around)| {
        let (side, flow, net) = around;
        let (lan, wan) = match net % 2 {
            0 => ("10.0.0.1:1000", "192.0.2.2:80"),
            _ => ("[fd00::1]:1000", "[2001:db8::2]:80"),
        };
        let (lan, wan) = (address(lan), address(wan));
        let build = if side { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) };
        let build = build.tcp_flags(flags).tcp_seq(seq).tcp_ack(ack).tcp_window(window);
        let build = build.tcp_options(&options).payload_len(data).padded_to(60);
        let build = match net {
            2 | 3 => build.vlan(9),
            4 | 5 => build.pppoe(9),
            6 => build.fragment(0, true, 3),
            _ => build,
        };
        Step::Segment { side, flow, build }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let us = prop_oneof![8 => 0u64..300_000, 1 => 0u64..10_000_000_000];
    let garbage = (any::<bool>(), 0u8..6, prop::collection::vec(any::<u8>(), 0..90));
    prop_oneof![
        20 => segment(),
        1 => garbage.prop_map(|(side, flow, bytes)| Step::Garbage { side, flow, bytes }),
        6 => us.prop_map(|us| Step::Pass { us }),
        1 => (0u32..100_000).prop_map(|bytes| Step::Waiting { bytes }),
        1 => spec().prop_map(Step::Policy),
    ]
}

/// Few places that are given to others now and then.
fn flow_of(flow: u8) -> Flow {
    Flow { index: u32::from(flow % 3), generation: u32::from(flow / 3) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_segments_under_any_policy(
        start in prop_oneof![Just(0u64), any::<u32>().prop_map(u64::from)],
        first in spec(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new(Instant::from_ns(start * 1_000));
        world.tell(&first);
        for step in steps {
            let side = |lan: bool| if lan { Side::Lan } else { Side::Wan };
            let mut arrive = |lan: bool, flow: u8, bytes: &[u8]| {
                let leaf = LEAVES[usize::from(flow % 4)];
                world.arrive(side(lan), flow_of(flow), leaf, bytes);
            };
            match step {
                Step::Segment { side, flow, build } => arrive(side, flow, &build.to_vec()),
                Step::Garbage { side, flow, bytes } => arrive(side, flow, &bytes),
                Step::Pass { us } => {
                    let until = world.now + Span::from_us(us);
                    world.pass_until(until);
                }
                Step::Waiting { bytes } => world.waiting = [bytes; 2],
                Step::Policy(spec) => world.tell(&spec),
            }
            prop_assert!(world.conditioner.held() <= HELD_ACKS);
            prop_assert_eq!(
                world.conditioner.next_at().is_some(),
                world.conditioner.held() > 0
            );
        }
        let until = world.now + Span::from_secs(1);
        world.pass_until(until);
        prop_assert_eq!(world.conditioner.held(), 0, "somebody waits for ever");
    }
}

/// One thing in the life of a connection.
#[derive(Clone, Copy, Debug)]
enum Life {
    /// So many bytes of data, after so many microseconds.
    Data(u16, u32),
    /// So much of what is under way is acknowledged (in 256ths), with this window.
    Ack(u8, u16, u32),
    /// The last acknowledgement comes again.
    Again(u32),
    Tell(Told, u32),
}

fn life() -> impl Strategy<Value = Life> {
    let us = || prop_oneof![Just(0u32), 0u32..400_000];
    prop_oneof![
        4 => (1u16..1_400, us()).prop_map(|(n, us)| Life::Data(n, us)),
        6 => (any::<u8>(), any::<u16>(), us()).prop_map(|(n, w, us)| Life::Ack(n, w, us)),
        2 => us().prop_map(Life::Again),
        1 => (told(), 1_000u32..2_000_000).prop_map(|(told, rate)| Life::Tell(told, rate)),
    ]
}

/// The connection as the sender of the data sees it.
struct Sender {
    world: World,
    next: u32,
    acked: u32,
    shift: u8,
    /// Up to where it was ever told that it may send.
    edge: Option<u32>,
    /// What the receiver said last, and the window that arrived: number, own window, window.
    said: Option<(u32, u16, u16)>,
}

impl Sender {
    fn tell(&mut self, told: Told, rate: u32) {
        let leaf = Leaf { number: 3, told: 1, rate: Rate::from_bps(rate.into()), fixed: false };
        let told = vec![Told::default(), Told { pace_acks: true, ..told }];
        self.world.tell(&Spec { told, leaves: ByWay { up: vec![leaf], down: vec![] } });
    }

    fn arrives(&mut self, side: Side, flags: u8, fields: (u32, u32, u16), rest: (&[u8], usize)) {
        let (lan, wan) = (address("10.0.0.1:1000"), address("192.0.2.2:80"));
        let build = if side == Side::Lan { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) };
        let (seq, ack, window) = fields;
        let build = build.tcp_flags(flags).tcp_seq(seq).tcp_ack(ack).tcp_window(window);
        let bytes = build.tcp_options(rest.0).payload_len(rest.1).to_vec();
        self.world.arrive(side, Flow { index: 5, generation: 1 }, 3, &bytes);
        self.read();
    }

    /// Reads what reached it.
    fn read(&mut self) {
        for Left { at, side, flow, came, bytes } in self.world.left.drain(..) {
            assert!(at <= self.world.now && flow.index == 5);
            if side == Side::Lan {
                continue;
            }
            let headers = Headers::parse(&bytes);
            let (own, told) = (read_tcp(&came, &headers), read_tcp(&bytes, &headers));
            if !told.has(tcp::SYN) {
                if let Some((ack, window, arrived)) = self.said
                    && (ack, window) == (own.ack(), own.window())
                {
                    assert_eq!(told.window(), arrived, "duplicates with different windows");
                }
                self.said = Some((own.ack(), own.window(), told.window()));
            }
            let shift = if told.has(tcp::SYN) { 0 } else { self.shift };
            let edge = |tcp: &Tcp<'_>| tcp.ack().wrapping_add(u32::from(tcp.window()) << shift);
            let (own, told, ack) = (edge(&own), edge(&told), told.ack());
            if own == ack {
                continue;
            }
            let after = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() > 0;
            let floor = self.edge.map_or(ack, |edge| if after(edge, own) { own } else { edge });
            assert!(!after(floor, told), "told {told} although {floor} was its");
            if self.edge.is_none_or(|edge| after(told, edge)) {
                self.edge = Some(told);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_a_sender_was_told_it_may_send_it_may_send(
        isn in prop_oneof![Just(0u32), any::<u32>(), Just(u32::MAX - 500)],
        shifts in prop_oneof![Just(None), (0u8..15).prop_map(Some)],
        first in (told(), 1_000u32..2_000_000),
        steps in prop::collection::vec(life(), 1..150),
    ) {
        let world = World::new(Instant::from_ns(u64::from(isn) * 1_000));
        let shift = shifts.unwrap_or(0);
        let mut sender = Sender {
            world,
            next: isn.wrapping_add(1),
            acked: isn,
            shift,
            edge: None,
            said: None,
        };
        sender.tell(first.0, first.1);
        let options = match shifts {
            Some(shift) => vec![2, 4, 5, 0xb4, 1, 3, 3, shift],
            None => vec![2, 4, 5, 0xb4],
        };
        sender.arrives(Side::Lan, tcp::SYN, (isn, 0, 65_535), (&options, 0));
        let next = sender.next;
        sender.arrives(Side::Wan, tcp::SYN | tcp::ACK, (99, next, 65_535), (&options, 0));
        sender.acked = next;
        let mut last = None;
        for step in steps {
            let pass = |sender: &mut Sender, us: u32| {
                let until = sender.world.now + Span::from_us(us.into());
                sender.world.pass_until(until);
                sender.read();
            };
            match step {
                Life::Data(bytes, us) => {
                    pass(&mut sender, us);
                    let seq = sender.next;
                    sender.next = seq.wrapping_add(bytes.into());
                    let fields = (seq, 100, 65_535);
                    sender.arrives(Side::Lan, tcp::ACK, fields, (&[], usize::from(bytes)));
                }
                Life::Ack(part, window, us) => {
                    pass(&mut sender, us);
                    let under_way = sender.next.wrapping_sub(sender.acked);
                    let part = u64::from(under_way) * u64::from(part) / 255;
                    let part = u32::try_from(part).expect("a part of it");
                    sender.acked = sender.acked.wrapping_add(part);
                    let fields = (100, sender.acked, window);
                    last = Some(fields);
                    sender.arrives(Side::Wan, tcp::ACK, fields, (&[], 0));
                }
                Life::Again(us) => {
                    pass(&mut sender, us);
                    if let Some(fields) = last {
                        sender.arrives(Side::Wan, tcp::ACK, fields, (&[], 0));
                    }
                }
                Life::Tell(told, rate) => sender.tell(told, rate),
            }
        }
    }
}

/// What a host sends beside its connection, to have it treated as another one.
#[derive(Clone, Copy, Debug)]
enum Hostile {
    /// An acknowledgement so far beyond what was sent.
    Ack(u32),
    /// These flags, so far beyond what the window allows, with so much data.
    Beyond(u8, u32, usize),
    /// A SYN with any number, and whether its options are malformed.
    Syn(u32, bool),
    /// Data that acknowledge nothing.
    NoAck(u32),
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let far = || 1u32..1 << 29;
    let flags = prop_oneof![
        Just(tcp::ACK),
        Just(tcp::FIN | tcp::ACK),
        Just(tcp::RST),
        Just(tcp::RST | tcp::ACK),
        Just(tcp::SYN | tcp::ACK),
    ];
    prop_oneof![
        far().prop_map(Hostile::Ack),
        (flags, far(), 0usize..100)
            .prop_map(|(flags, far, data)| Hostile::Beyond(flags, far, data)),
        (any::<u32>(), any::<bool>()).prop_map(|(seq, bad)| Hostile::Syn(seq, bad)),
        any::<u32>().prop_map(Hostile::NoAck),
    ]
}

/// A connection whose data go up, in a world of its own.
struct Pair {
    world: World,
    next: u32,
    acked: u32,
    /// Up to where the sender was told that it may send.
    edge: u32,
}

impl Pair {
    /// Beyond any window.
    const BEYOND: u32 = (1 << 30) + 65_537;

    fn new(isn: u32, told: Told, rate: u32) -> Pair {
        let mut world = World::new(Instant::from_ns(1));
        let leaf = Leaf { number: 3, told: 1, rate: Rate::from_bps(rate.into()), fixed: true };
        let told = vec![Told::default(), Told { window: true, pace_acks: false, ..told }];
        world.tell(&Spec { told, leaves: ByWay { up: vec![leaf], down: vec![] } });
        let (mss, next) = ([2, 4, 5, 0xb4], isn.wrapping_add(1));
        let mut pair = Pair { world, next, acked: next, edge: next };
        pair.send(Side::Lan, tcp::SYN, (isn, 0), (65_535, &mss, 0));
        let answer = pair.send(Side::Wan, tcp::SYN | tcp::ACK, (99, next), (65_535, &mss, 0));
        pair.shown(&answer);
        pair.send(Side::Lan, tcp::ACK, (next, 100), (65_535, &[], 0));
        pair
    }

    /// Returns the frame as it left.
    fn send(
        &mut self,
        side: Side,
        flags: u8,
        (seq, ack): (u32, u32),
        (window, options, data): (u16, &[u8], usize),
    ) -> Vec<u8> {
        let (lan, wan) = (address("10.0.0.1:1000"), address("192.0.2.2:80"));
        let build = if side == Side::Lan { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) };
        let build = build.tcp_flags(flags).tcp_seq(seq).tcp_ack(ack).tcp_window(window);
        let bytes = build.tcp_options(options).payload_len(data).to_vec();
        self.world.arrive(side, Flow { index: 5, generation: 1 }, 3, &bytes);
        self.world.left.drain(..).next_back().expect("nothing waits").bytes
    }

    fn attack(&mut self, side: Side, hostile: Hostile) {
        let (seq, ack) = match side {
            Side::Lan => (self.next, 100),
            Side::Wan => (100, self.acked),
        };
        // the last number that the other side has sent
        let sent = if side == Side::Lan { 100 } else { self.next };
        let far = |far: u32| seq.wrapping_add(Pair::BEYOND).wrapping_add(far);
        let bad = [2, 1, 5, 0xb4];
        match hostile {
            Hostile::Ack(far) => {
                self.send(side, tcp::ACK, (seq, sent.wrapping_add(far)), (65_535, &[], 0))
            }
            Hostile::Beyond(flags, beyond, data) => {
                self.send(side, flags, (far(beyond), ack), (65_535, &[], data))
            }
            Hostile::Syn(seq, is_bad) => {
                let options = if is_bad { &bad[..] } else { &[] };
                self.send(side, tcp::SYN, (seq, 0), (65_535, options, 0))
            }
            Hostile::NoAck(seq) => self.send(side, tcp::PSH, (seq, 0), (65_535, &[], 50)),
        };
    }

    fn shown(&mut self, bytes: &[u8]) {
        let headers = Headers::parse(bytes);
        let edge = self.acked.wrapping_add(read_tcp(bytes, &headers).window().into());
        if edge.wrapping_sub(self.edge).cast_signed() > 0 {
            self.edge = edge;
        }
    }

    fn live(&mut self, life: Life) -> Option<Vec<u8>> {
        let pass = |pair: &mut Pair, us: u32| {
            let until = pair.world.now + Span::from_us(us.into());
            pair.world.pass_until(until);
        };
        match life {
            Life::Data(bytes, us) => {
                pass(self, us);
                let seq = self.next;
                let bytes = u32::from(bytes).min(self.edge.wrapping_sub(seq));
                self.next = seq.wrapping_add(bytes);
                let bytes = usize::try_from(bytes).expect("is small");
                Some(self.send(Side::Lan, tcp::ACK, (seq, 100), (65_535, &[], bytes)))
            }
            Life::Ack(part, window, us) => {
                pass(self, us);
                let under_way = u64::from(self.next.wrapping_sub(self.acked));
                let part = u32::try_from(under_way * u64::from(part) / 255).expect("a part of it");
                self.acked = self.acked.wrapping_add(part);
                let window = window.max(20_000);
                let bytes = self.send(Side::Wan, tcp::ACK, (100, self.acked), (window, &[], 0));
                self.shown(&bytes);
                Some(bytes)
            }
            Life::Again(_) | Life::Tell(..) => None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Twice the same connection; in one of the two worlds one of its hosts attacks.
    #[test]
    fn one_host_alone_changes_nothing_for_its_connection(
        isn in any::<u32>(),
        told in (told(), 1_000u32..2_000_000),
        is_lan in any::<bool>(),
        steps in prop::collection::vec((life(), prop::option::of(hostile())), 1..60),
    ) {
        let [mut calm, mut attacked] = [0; 2].map(|_| Pair::new(isn, told.0, told.1));
        let side = if is_lan { Side::Lan } else { Side::Wan };
        for (life, hostile) in steps {
            if let Some(hostile) = hostile {
                attacked.attack(side, hostile);
            }
            prop_assert_eq!(calm.live(life), attacked.live(life), "after {:?}", hostile);
        }
        prop_assert_eq!(calm.world.conditioner.counters().rejected, 0, "without an attack");
    }
}
