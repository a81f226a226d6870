//! What is told of TCP by looking on: data that come again and late, beside a model that remembers
//! every byte, and the time that the ways to both sides take.

use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_engine::{Config, Count, Engine, Planner, Report, RoundTrips, Snapshot};
use weir_packet::{Build, Burst, Pool, Side, tcp};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Span};

fn plan() -> Plan {
    let text = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"1gbit\"\n\
                margin = \"100%\"\n[class.\"/all\"]\nmatch = \"tcp\"\n";
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    reading.plans.into_iter().next().expect("has a link")
}

/// One connection through an engine.
struct Wire {
    engine: Engine,
    now: Instant,
    port: u16,
}

impl Wire {
    fn new() -> Wire {
        Wire::watching(true)
    }

    fn watching(watch: bool) -> Wire {
        let config = Config { flows: 64, watch, ..Config::default() };
        let first = Planner::of(&config).prepare(&plan()).expect("fits");
        let engine = Engine::new(config, Pool::new(256, 2_048), first, Instant::ZERO);
        Wire { engine, now: Instant::from_ns(5_000_000_000), port: 4_000 }
    }

    fn build(&self, side: Side) -> Build {
        let lan = ([10, 0, 0, 1], self.port).into();
        let wan = ([192, 0, 2, 1], 80).into();
        if side == Side::Lan { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) }
    }

    /// A segment comes in from a side and leaves `held` later.
    fn pass(&mut self, side: Side, build: &Build, held: Span) {
        let frame = self.engine.pool_mut().fill(&build.to_vec()).expect("has room");
        let mut burst = Burst::new();
        burst.push(frame).expect("has room");
        self.engine.receive(self.now, side, &mut burst);
        self.now += held;
        let mut out = Burst::new();
        self.engine.transmit(self.now, side.other(), &mut out);
        while let Some(frame) = out.pop() {
            self.engine.pool_mut().give(frame);
        }
        self.now += Span::from_us(100);
    }

    fn data(&mut self, seq: u32, bytes: u16) {
        let build = self.build(Side::Wan).tcp_flags(tcp::ACK).tcp_seq(seq);
        self.pass(Side::Wan, &build.payload_len(bytes.into()), Span::ZERO);
    }

    fn flags(&mut self, side: Side, flags: u8, seq: u32) {
        let build = self.build(side).tcp_flags(flags).tcp_seq(seq);
        self.pass(side, &build, Span::ZERO);
    }

    fn look(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let _ = self.engine.snapshot(0, &mut snapshot);
        snapshot
    }

    /// Frames from the WAN that were repeated, and that were late.
    fn again(&self) -> (u64, u64) {
        let total = self.look().total.down;
        (total.repeated.frames, total.late.frames)
    }

    fn round_trips(&mut self) -> RoundTrips {
        self.now += Span::from_ms(300);
        self.engine.age(self.now);
        self.look().round_trips
    }
}

#[test]
fn data_in_order_are_new() {
    let mut wire = Wire::new();
    wire.flags(Side::Lan, tcp::SYN, 7);
    wire.flags(Side::Wan, tcp::SYN | tcp::ACK, 999);
    for at in 0..20 {
        wire.data(1_000 + at * 500, 500);
        wire.flags(Side::Lan, tcp::ACK, 8);
    }
    wire.flags(Side::Wan, tcp::FIN | tcp::ACK, 11_000);
    wire.flags(Side::Wan, tcp::FIN | tcp::ACK, 11_000);
    assert_eq!(wire.again(), (0, 0));
}

#[test]
fn what_comes_twice_is_repeated_and_what_was_overtaken_is_late() {
    for first in [1_000, u32::MAX - 700, u32::MAX - 1_499, 0x7fff_fe00] {
        let mut wire = Wire::new();
        let at = |n: u32| first.wrapping_add(n * 500);
        wire.data(at(0), 500);
        wire.data(at(1), 500);
        wire.data(at(0), 500);
        assert_eq!(wire.again(), (1, 0), "sent again, from {first}");
        wire.data(at(3), 500);
        wire.data(at(4), 500);
        wire.data(at(2), 500);
        assert_eq!(wire.again(), (1, 1), "out of order, from {first}");
        wire.data(at(2), 500);
        assert_eq!(wire.again(), (2, 1), "its hole is filled, from {first}");
        wire.data(at(5), 500);
        assert_eq!(wire.again(), (2, 1));
    }
}

#[test]
fn a_hole_is_filled_from_both_ends() {
    let mut wire = Wire::new();
    wire.data(0, 100);
    wire.data(1_000, 100);
    wire.data(100, 100);
    wire.data(900, 100);
    wire.data(100, 100);
    wire.data(900, 100);
    assert_eq!(wire.again(), (2, 2));
    // old bytes and new ones in one segment are new
    wire.data(800, 400);
    wire.data(800, 100);
    wire.data(700, 100);
    assert_eq!(wire.again(), (3, 3));
}

#[test]
fn who_asks_whether_the_other_lives_repeats_nothing() {
    let mut wire = Wire::new();
    wire.data(1_000, 500);
    wire.data(1_499, 1);
    wire.flags(Side::Wan, tcp::ACK, 1_499);
    assert_eq!(wire.again(), (0, 0));
    wire.data(1_498, 1);
    assert_eq!(wire.again(), (1, 0), "any other byte is a byte");
}

#[test]
fn a_connection_that_begins_anew_has_new_numbers() {
    let mut wire = Wire::new();
    wire.data(50_000, 500);
    wire.flags(Side::Lan, tcp::SYN, 9);
    wire.data(1_000, 500);
    wire.flags(Side::Lan, tcp::RST, 9);
    wire.data(700, 100);
    // the answer to a SYN begins only its own direction
    wire.flags(Side::Lan, tcp::SYN | tcp::ACK, 0);
    wire.data(700, 100);
    assert_eq!(wire.again(), (1, 0));
    wire.flags(Side::Wan, tcp::SYN | tcp::ACK, 599);
    wire.data(600, 100);
    assert_eq!(wire.again(), (1, 0));
}

#[test]
fn another_connection_has_its_own_numbers() {
    let mut wire = Wire::new();
    // more than there are places, so that they change hands
    for port in 1_000..1_300 {
        wire.port = port;
        wire.data(1_000_000 - u32::from(port) * 100, 500);
        wire.now += Span::from_secs(11);
        wire.engine.age(wire.now);
    }
    assert_eq!(wire.again(), (0, 0));
}

#[test]
fn the_books_have_it_by_class() {
    let mut wire = Wire::new();
    for seq in [0, 500, 0, 1_500, 1_000] {
        wire.data(seq, 500);
    }
    let report = Report::of(&wire.engine, &plan());
    let frame = 14 + 20 + 20 + 500;
    let row = report.rows.iter().find(|row| row.path == "/all").expect("is there");
    for row in [row, &report.rows[0]] {
        let down = row.from(Side::Wan);
        let one = Count { frames: 1, bytes: frame };
        assert_eq!((down.repeated, down.late), (one, one), "{}", row.path);
        assert_eq!(row.from(Side::Lan).repeated, Count::default());
    }
}

#[test]
fn nobody_looks_unless_told_to() {
    let mut wire = Wire::watching(false);
    for seq in [0, 500, 0, 1_500, 1_000] {
        wire.data(seq, 500);
    }
    assert_eq!(wire.again(), (0, 0));
    assert_eq!(wire.round_trips(), RoundTrips::default());
}

/// The option that nearly everyone sends.
fn stamps(value: u32, echo: u32) -> Vec<u8> {
    let [value, echo] = [value.to_be_bytes(), echo.to_be_bytes()];
    [&[1, 1, 8, 10][..], &value, &echo].concat()
}

#[test]
fn data_are_timed_from_leaving_to_their_acknowledgement() {
    let mut wire = Wire::new();
    let held = Span::from_ms(50);
    let build = wire.build(Side::Lan).tcp_flags(tcp::ACK).tcp_seq(1_000).payload_len(100);
    wire.pass(Side::Lan, &build, held);
    wire.now += Span::from_ms(30);
    let part = wire.build(Side::Wan).tcp_flags(tcp::ACK).tcp_ack(1_099);
    wire.pass(Side::Wan, &part, Span::ZERO);
    assert_eq!(wire.look().round_trips.wan.taken, 0);
    wire.now += Span::from_ms(10);
    let all = wire.build(Side::Wan).tcp_flags(tcp::ACK).tcp_ack(1_100);
    wire.pass(Side::Wan, &all, Span::ZERO);
    let trips = wire.round_trips();
    assert_eq!((trips.wan.taken, trips.lan.taken), (1, 0));
    assert_eq!(trips.wan.shortest, Span::from_us(40_200), "without the time that it waited here");
    assert_eq!(trips.wan.mean, trips.wan.shortest);
}

#[test]
fn what_was_sent_twice_is_not_timed() {
    let mut wire = Wire::new();
    for _ in 0..2 {
        let build = wire.build(Side::Lan).tcp_flags(tcp::ACK).tcp_seq(1_000).payload_len(100);
        wire.pass(Side::Lan, &build, Span::ZERO);
        wire.now += Span::from_ms(200);
    }
    let all = wire.build(Side::Wan).tcp_flags(tcp::ACK).tcp_ack(1_100);
    wire.pass(Side::Wan, &all, Span::ZERO);
    assert_eq!(wire.round_trips().wan.taken, 0);
}

/// One who only acknowledges, while the data come from the WAN: `rises` is the queue there.
fn answers(wire: &mut Wire, rises: impl Fn(u32) -> u64) {
    for n in 0..40 {
        // each value twice: only the first of them can be the one that is echoed
        for _ in 0..2 {
            let ack = wire.build(Side::Lan).tcp_flags(tcp::ACK).tcp_options(&stamps(100 + n, 0));
            wire.pass(Side::Lan, &ack.tcp_seq(1), Span::ZERO);
        }
        // what is under way comes all the while
        for part in 1..=5 {
            wire.now += Span::from_us((20 + rises(n)) * 200 - 100);
            let echo = if part == 5 { 100 + n } else { 99 + n };
            let data = wire.build(Side::Wan).tcp_flags(tcp::ACK).tcp_options(&stamps(0, echo));
            wire.pass(Side::Wan, &data.tcp_seq(n * 500 + part * 100).payload_len(100), Span::ZERO);
        }
    }
}

#[test]
fn senders_of_the_other_side_are_timed_by_their_echo() {
    let mut wire = Wire::new();
    answers(&mut wire, |_| 0);
    let trip = wire.round_trips().wan;
    assert!(trip.taken > 0, "{trip:?}");
    // two acknowledgements a tenth of a millisecond apart, and the first counts
    assert_eq!(trip.shortest, Span::from_us(20_100));
    assert_eq!((trip.compared, trip.raised), (trip.taken, Span::ZERO));

    answers(&mut wire, |n| if n < 30 { u64::from(n) } else { 30 });
    let trip = wire.round_trips().wan;
    assert_eq!(trip.raised, Span::from_ms(30), "of the last interval: {trip:?}");
}

#[test]
fn who_has_nothing_to_say_echoes_late_and_is_not_timed() {
    let mut wire = Wire::new();
    for n in 0..40 {
        let ack = wire.build(Side::Lan).tcp_flags(tcp::ACK).tcp_options(&stamps(100 + n, 0));
        wire.pass(Side::Lan, &ack.tcp_seq(1), Span::ZERO);
        wire.now += Span::from_ms(100);
        let data = wire.build(Side::Wan).tcp_flags(tcp::ACK).tcp_options(&stamps(0, 100 + n));
        wire.pass(Side::Wan, &data.tcp_seq(n * 500).payload_len(500), Span::ZERO);
    }
    assert_eq!(wire.round_trips().wan.taken, 0);
}

/// Remembers every byte that is missing.
#[derive(Default)]
struct Model {
    highest: Option<u64>,
    missing: BTreeSet<u64>,
    /// There were two holes at once.
    had_two: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    New,
    Repeated,
    Late,
}

impl Model {
    fn data(&mut self, seq: u64, bytes: u64) -> Kind {
        let end = seq + bytes;
        let Some(highest) = self.highest.filter(|&highest| end <= highest) else {
            if let Some(highest) = self.highest {
                self.missing.extend(highest..seq);
            }
            self.missing.retain(|byte| !(seq..end).contains(byte));
            self.highest = Some(end);
            self.look();
            return Kind::New;
        };
        if bytes == 1 && end == highest {
            return Kind::New;
        }
        let fills = (seq..end).filter(|byte| self.missing.remove(byte)).count();
        self.look();
        if fills > 0 { Kind::Late } else { Kind::Repeated }
    }

    fn look(&mut self) {
        let (first, last) = (self.missing.first(), self.missing.last());
        let whole = first.zip(last).map_or(0, |(first, last)| last - first + 1);
        self.had_two |= whole != self.missing.len() as u64;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn it_tells_what_a_model_of_all_bytes_tells(
        first in any::<u32>(),
        // how far from the highest a segment begins, in tens of bytes; mostly where it ends
        segments in prop::collection::vec(
            (prop_oneof![4 => Just(0i64), 2 => -30i64..10, 1 => 1i64..4], 1u16..90), 1..120),
    ) {
        let mut wire = Wire::new();
        let mut model = Model::default();
        for (ahead, bytes) in segments {
            let highest = model.highest.unwrap_or(10_000);
            let seq = highest.saturating_add_signed(ahead * 10).max(10_000);
            let before = wire.again();
            wire.data(first.wrapping_add(u32::try_from(seq).expect("is small")), bytes);
            let after = wire.again();
            let told = match (after.0 - before.0, after.1 - before.1) {
                (0, 0) => Kind::New,
                (1, 0) => Kind::Repeated,
                (0, 1) => Kind::Late,
                other => panic!("{other:?}"),
            };
            let is = model.data(seq, bytes.into());
            // where there were two holes they count as one, with what lies between
            let alike = told == is || model.had_two && (told, is) == (Kind::Late, Kind::Repeated);
            prop_assert!(alike, "told {told:?}, is {is:?}, {:?}", model.had_two);
        }
    }
}
