//! What is told of data from the LAN side by looking on: how many bytes have arrived at the WAN
//! side, as that acknowledges them, and how long their way takes.

use proptest::prelude::*;
use weir_engine::{Config, Engine, Planner, RoundTrip, Snapshot};
use weir_packet::{Build, Burst, Pool, Side, tcp};
use weir_policy::{Source, read};
use weir_units::{Instant, Span};

/// One connection through an engine.
struct Wire {
    engine: Engine,
    now: Instant,
}

impl Wire {
    fn new() -> Wire {
        let text = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"1gbit\"\n\
                    margin = \"100%\"\n[class.\"/all\"]\nmatch = \"tcp\"\n";
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
        let config = Config { flows: 64, watch: true, ..Config::default() };
        let first = Planner::of(&config).prepare(&reading.plans[0]).expect("fits");
        let engine = Engine::new(config, Pool::new(256, 2_048), first, Instant::ZERO);
        Wire { engine, now: Instant::from_ns(5_000_000_000) }
    }

    fn pass(&mut self, side: Side, build: &Build) {
        self.frame(side, &build.to_vec());
    }

    fn frame(&mut self, side: Side, bytes: &[u8]) {
        let frame = self.engine.pool_mut().fill(bytes).expect("has room");
        let mut burst = Burst::new();
        burst.push(frame).expect("has room");
        self.engine.receive(self.now, side, &mut burst);
        self.leave(side.other());
        // the line is free for the next
        self.now += Span::from_us(10);
    }

    fn leave(&mut self, side: Side) {
        let mut out = Burst::new();
        self.engine.transmit(self.now, side, &mut out);
        while let Some(frame) = out.pop() {
            self.engine.pool_mut().give(frame);
        }
    }

    fn data(&mut self, seq: u32, bytes: usize) {
        let build = Build::tcp(([10, 0, 0, 1], 4_000).into(), ([192, 0, 2, 1], 80).into());
        self.pass(Side::Lan, &build.tcp_flags(tcp::ACK).tcp_seq(seq).payload_len(bytes));
    }

    /// The WAN side acknowledges, with a selective block perhaps.
    fn ack(&mut self, ack: u32, block: Option<(u32, u32)>) {
        let build = Build::tcp(([192, 0, 2, 1], 80).into(), ([10, 0, 0, 1], 4_000).into());
        let mut build = build.tcp_flags(tcp::ACK).tcp_seq(1).tcp_ack(ack);
        if let Some((from, to)) = block {
            let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1];
            let block = [from.to_be_bytes(), to.to_be_bytes()].concat();
            build = build.tcp_options(&[&stamps[..], &[1, 1, 5, 10], &block].concat());
        }
        self.pass(Side::Wan, &build);
    }

    fn arrived(&self) -> u64 {
        let mut snapshot = Snapshot::default();
        let _ = self.engine.snapshot(0, &mut snapshot);
        snapshot.uploads.arrived
    }

    fn way(&mut self) -> RoundTrip {
        self.now += Span::from_ms(60);
        self.engine.age(self.now);
        let mut snapshot = Snapshot::default();
        let _ = self.engine.snapshot(0, &mut snapshot);
        snapshot.round_trips.data
    }
}

#[test]
fn what_is_acknowledged_has_arrived_once() {
    for first in [1_000_u32, u32::MAX - 1_200] {
        let at = |n: u32| first.wrapping_add(n * 500);
        let mut wire = Wire::new();
        (0..6).for_each(|n| wire.data(at(n), 500));
        wire.ack(at(0), None);
        wire.ack(at(2), None);
        wire.ack(at(2), None);
        assert_eq!(wire.arrived(), 1_000, "from {first}");
        // the third is lost
        wire.ack(at(2), Some((at(3), at(4))));
        wire.ack(at(2), Some((at(3), at(5))));
        assert_eq!(wire.arrived(), 2_000, "from {first}");
        wire.ack(at(6), None);
        assert_eq!(wire.arrived(), 3_000, "from {first}");
    }
}

#[test]
fn what_was_never_sent_has_not_arrived() {
    let mut wire = Wire::new();
    wire.data(1_000, 500);
    wire.ack(1_000, None);
    wire.ack(2_900, None);
    wire.ack(1_000, Some((1_200, 800_000)));
    wire.ack(1_000, Some((1_400, 1_200)));
    assert_eq!(wire.arrived(), 0);
    wire.ack(1_500, None);
    assert_eq!(wire.arrived(), 500);
}

#[test]
fn data_that_leave_are_counted_without_headers() {
    let mut wire = Wire::new();
    let build = Build::tcp(([10, 0, 0, 1], 4_000).into(), ([192, 0, 2, 1], 80).into());
    let build = build.tcp_options(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1]).tcp_flags(tcp::ACK);
    wire.pass(Side::Lan, &build.tcp_seq(1_000).payload_len(700));
    let udp = Build::udp(([10, 0, 0, 1], 4_000).into(), ([192, 0, 2, 1], 80).into());
    wire.pass(Side::Lan, &udp.payload_len(900));
    let mut snapshot = Snapshot::default();
    let _ = wire.engine.snapshot(0, &mut snapshot);
    // until the other side says something of this connection, they say nothing of the line
    assert_eq!(snapshot.uploads.left, 0);
    wire.ack(1_000, None);
    wire.ack(1_700, None);
    let _ = wire.engine.snapshot(0, &mut snapshot);
    assert_eq!((snapshot.uploads.left, snapshot.uploads.arrived), (700, 700));
}

#[test]
fn few_bytes_are_data_as_well_and_what_fills_up_a_frame_is_none() {
    let mut wire = Wire::new();
    wire.data(1_000, 500);
    wire.ack(1_000, None);
    wire.ack(1_500, None);
    // the shortest that needs no zeros behind it, then one of nothing but these
    wire.data(1_500, 7);
    wire.ack(1_507, None);
    let build = Build::tcp(([10, 0, 0, 1], 4_000).into(), ([192, 0, 2, 1], 80).into());
    let mut bytes = build.tcp_flags(tcp::ACK).tcp_seq(1_507).to_vec();
    bytes.resize(60, 0);
    wire.frame(Side::Lan, &bytes);
    let mut snapshot = Snapshot::default();
    let _ = wire.engine.snapshot(0, &mut snapshot);
    assert_eq!((snapshot.uploads.left, snapshot.uploads.arrived), (507, 507));
}

#[test]
fn what_has_not_left_cannot_be_acknowledged() {
    let mut wire = Wire::new();
    wire.data(1_000, 500);
    wire.ack(1_000, None);
    wire.now += Span::from_us(10);
    // more than the line takes at once: most of it waits here
    for n in 0..200 {
        let build = Build::tcp(([10, 0, 0, 1], 4_000).into(), ([192, 0, 2, 1], 80).into());
        let build = build.tcp_flags(tcp::ACK).tcp_seq(1_500 + n * 1_000).payload_len(1_000);
        wire.pass(Side::Lan, &build);
        wire.now = wire.now - Span::from_us(10);
    }
    wire.ack(1_500 + 200_000, None);
    assert!(wire.arrived() <= 2_500, "{}", wire.arrived());
}

#[test]
fn who_acknowledges_what_never_left_is_not_heard_any_more() {
    for (beyond, counts) in [(1_500, true), (1_501, false)] {
        let mut wire = Wire::new();
        wire.data(1_000, 500);
        wire.ack(1_000, None);
        wire.ack(1_500, None);
        wire.ack(1_500 + beyond, None);
        for n in 3..20 {
            wire.data(n * 500, 500);
            wire.ack(n * 500, None);
        }
        let mut snapshot = Snapshot::default();
        let _ = wire.engine.snapshot(0, &mut snapshot);
        let uploads = snapshot.uploads;
        let is_heard = uploads.left > 500 && uploads.arrived > 500;
        assert_eq!(is_heard, counts, "{beyond} beyond: {uploads:?}");
    }
}

#[test]
fn one_that_weir_meets_in_the_midst_of_a_loss_is_heard_after_a_while() {
    let mut wire = Wire::new();
    // sent again; the other side has all that left before weir looked
    wire.data(1_000, 500);
    wire.ack(20_000, None);
    for n in 40..400 {
        wire.data(n * 500, 500);
        wire.ack(n * 500, None);
    }
    assert!(wire.arrived() >= 40_000, "{}", wire.arrived());
}

#[test]
fn another_connection_of_the_same_ports_is_heard() {
    let mut wire = Wire::new();
    wire.data(1_000, 500);
    wire.ack(1_000, None);
    wire.ack(1_500, None);
    wire.ack(90_000, None);
    let build = Build::tcp(([10, 0, 0, 1], 4_000).into(), ([192, 0, 2, 1], 80).into());
    wire.pass(Side::Lan, &build.tcp_flags(tcp::SYN).tcp_seq(9_999));
    for n in 20..40 {
        wire.data(n * 500, 500);
        wire.ack(n * 500, None);
    }
    assert!(wire.arrived() >= 9_000, "{}", wire.arrived());
}

#[test]
fn a_reset_is_no_lie() {
    let mut wire = Wire::new();
    wire.data(500, 500);
    wire.ack(500, None);
    wire.data(1_000, 500);
    wire.ack(1_500, None);
    let build = Build::tcp(([192, 0, 2, 1], 80).into(), ([10, 0, 0, 1], 4_000).into());
    let build = build.tcp_flags(tcp::RST | tcp::ACK).tcp_seq(0xdead_beef);
    wire.pass(Side::Wan, &build.tcp_ack(900_000));
    for n in 3..20 {
        wire.data(n * 500, 500);
        wire.ack(n * 500, None);
    }
    assert!(wire.arrived() >= 7_000, "{}", wire.arrived());
}

#[test]
fn an_old_number_without_data_makes_no_liar() {
    let mut wire = Wire::new();
    let start = 2_000_000_000;
    for n in 0..10 {
        wire.data(start + n * 500, 500);
        wire.ack(start + n * 500, None);
    }
    wire.data(start + 5_000, 1_000);
    wire.data(start + 6_000, 1_000);
    wire.data(500_000, 0);
    wire.ack(start + 7_000, None);
    assert_eq!(wire.arrived(), 7_000);
}

#[test]
fn single_bytes_that_are_acknowledged_are_no_lie() {
    let mut wire = Wire::new();
    // more of them than one segment has, in frames that are filled up
    for n in 0..2_000 {
        wire.data(1_000 + n, 1);
        wire.ack(1_000 + n, None);
    }
    wire.data(3_000, 500);
    wire.ack(3_000, None);
    wire.ack(3_500, None);
    assert!(wire.arrived() >= 500, "{}", wire.arrived());
}

/// Pairs of segments are acknowledged together, after 20 ms and the time in a queue.
fn pairs(wire: &mut Wire, from: u32, queue_ms: impl Fn(u32) -> u64) {
    for n in 0..20 {
        let at = from + n * 1_000;
        wire.data(at, 500);
        wire.now += Span::from_ms(6);
        wire.data(at + 500, 500);
        wire.now += Span::from_ms(20 + queue_ms(n));
        wire.ack(at + 1_000, None);
        wire.engine.age(wire.now);
    }
}

#[test]
fn ways_are_timed_from_the_segment_that_is_answered() {
    let mut wire = Wire::new();
    pairs(&mut wire, 1_000, |_| 0);
    let way = wire.way();
    assert_eq!((way.raised, way.sank), (Span::ZERO, Span::ZERO), "{way:?}");
    assert!(way.compared > 0, "{way:?}");
    pairs(&mut wire, 21_000, |n| u64::from(n.min(15)) * 2);
    let way = wire.way();
    assert_eq!(way.raised, Span::from_ms(30), "{way:?}");
}

#[test]
fn an_answer_that_was_put_off_says_nothing() {
    let mut wire = Wire::new();
    pairs(&mut wire, 1_000, |_| 0);
    let before = wire.way();
    for n in 0..10 {
        // one alone is acknowledged late
        wire.data(50_000 + n * 500, 500);
        for _ in 0..4 {
            wire.now += Span::from_ms(15);
            wire.engine.age(wire.now);
        }
        wire.ack(50_500 + n * 500, None);
        wire.engine.age(wire.now);
    }
    assert_eq!(wire.way(), before);
}

#[test]
fn who_is_not_answered_is_heard_before_the_answer() {
    let mut wire = Wire::new();
    pairs(&mut wire, 1_000, |_| 0);
    wire.data(50_000, 500);
    wire.now += Span::from_ms(1);
    wire.data(50_500, 500);
    let (mut longest, begun) = (Span::ZERO, wire.now);
    while wire.now.since(begun) < Span::from_ms(400) {
        longest = wire.way().raised;
    }
    assert!(longest >= Span::from_ms(320), "{longest:?}");
}

proptest! {
    /// Whatever is lost and sent again, in the end all bytes have arrived, each once.
    #[test]
    fn all_bytes_arrive_once(
        first in any::<u32>(),
        lost in proptest::collection::vec(proptest::bool::weighted(0.2), 60),
    ) {
        let mut wire = Wire::new();
        let at = |n: usize| first.wrapping_add(u32::try_from(n * 500).expect("is small"));
        wire.data(at(0), 500);
        wire.ack(at(0), None);
        let mut has = [false; 60];
        let mut came = 0;
        for (n, &is_lost) in lost.iter().enumerate() {
            wire.data(at(n), 500);
            if !is_lost {
                has[n] = true;
                let all = has.iter().take_while(|has| **has).count();
                let from = n - has[..n].iter().rev().take_while(|has| **has).count();
                wire.ack(at(all), (from > all).then(|| (at(from), at(n + 1))));
                came += 500;
                prop_assert!(wire.arrived() <= came, "{} of {came}", wire.arrived());
            }
        }
        for n in 0..60 {
            if !has[n] {
                wire.data(at(n), 500);
                has[n] = true;
                let all = has.iter().take_while(|has| **has).count();
                wire.ack(at(all), None);
            }
        }
        prop_assert_eq!(wire.arrived(), 30_000);
    }
}
