//! Scripts: what one end says to segments that a test makes up. Numbers are relative: the SYN of
//! each side is 0, its first byte 1.

use proptest::prelude::*;
use weir_packet::tcp::{ACK, CWR, ECE, FIN, SYN};
use weir_units::{Instant, Span};

use super::*;

const PEER: u32 = 7_000_000;
const OWN: u32 = 0xffff_f000;

struct Script {
    tcp: Tcp,
    now: Instant,
}

fn spec(name: &str) -> TcpSpec {
    TcpSpec::preset(name).unwrap()
}

fn from_peer(seq: u32, ack: u32) -> Segment {
    Segment {
        seq: PEER.wrapping_add(seq),
        ack: OWN.wrapping_add(ack),
        flags: ACK,
        window: 60_000,
        ..Segment::default()
    }
}

impl Script {
    /// A connection that was opened 100 ms after the start, with all that both may offer.
    fn open(spec: &TcpSpec) -> Script {
        let mut script = Script { tcp: Tcp::connect(spec, u64::from(OWN)), now: Instant::ZERO };
        assert!(script.says()[0].starts_with("0 SYN"));
        script.at(100);
        script.tcp.receive(script.now, &Script::syn_ack());
        assert_eq!(script.says(), ["1"]);
        script
    }

    fn syn_ack() -> Segment {
        Segment {
            flags: SYN | ACK,
            mss: Some(1_460),
            scale: Some(0),
            sack_permitted: true,
            ..from_peer(0, 1)
        }
    }

    /// Goes to this millisecond, through all that has to be done on the way.
    fn at(&mut self, ms: u64) -> &mut Script {
        let until = Instant::ZERO + Span::from_ms(ms);
        assert!(self.tcp.deadline() > until, "{} is before {until}", self.tcp.deadline());
        self.now = until;
        self
    }

    /// Goes to the next deadline; says the millisecond.
    fn next(&mut self) -> u64 {
        self.now = self.tcp.deadline();
        self.tcp.wake(self.now);
        self.now.ns() / 1_000_000
    }

    fn acks(&mut self, ack: u32) -> Vec<String> {
        self.gets(&from_peer(1, ack))
    }

    fn sacks(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<String> {
        let mut segment = from_peer(1, ack);
        blocks.iter().for_each(|(l, r)| {
            segment.sack.push((OWN.wrapping_add(*l), OWN.wrapping_add(*r)));
        });
        self.gets(&segment)
    }

    fn gets(&mut self, segment: &Segment) -> Vec<String> {
        self.tcp.receive(self.now, segment);
        self.says()
    }

    /// All that leaves now: number and end of data, flags, ranges.
    fn says(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(segment) = self.tcp.transmit(self.now) {
            let seq = segment.seq.wrapping_sub(OWN);
            let mut text = seq.to_string();
            if segment.payload > 0 {
                text += &format!("-{}", seq + u32::from(segment.payload));
            }
            for (flag, name) in [(SYN, "SYN"), (FIN, "FIN"), (ECE, "ECE"), (CWR, "CWR")] {
                if segment.has(flag) {
                    text += &format!(" {name}");
                }
            }
            for (left, right) in segment.sack.all() {
                let [left, right] = [left, right].map(|edge| edge.wrapping_sub(PEER));
                text += &format!(" [{left}-{right}]");
            }
            said.push(text);
        }
        said
    }
}

fn data(seq: u32, bytes: u16) -> Segment {
    Segment { payload: bytes, ..from_peer(seq, 1) }
}

#[test]
fn options_are_offered_and_the_smaller_segment_is_taken() {
    let mut tcp = Tcp::connect(&spec("linux-now"), 1);
    let syn = tcp.transmit(Instant::ZERO).unwrap();
    assert!(syn.sack_permitted && syn.timestamps.is_some());
    assert_eq!((syn.mss, syn.scale), (Some(1_460), Some(7)));

    let mut old = Tcp::listen(&spec("linux-2.2"), 2);
    old.receive(Instant::ZERO, &Segment { mss: Some(536), ..syn });
    let answer = old.transmit(Instant::ZERO).unwrap();
    assert!(!answer.sack_permitted && answer.timestamps.is_none() && answer.scale.is_none());
    old.receive(Instant::ZERO, &Segment { flags: ACK, seq: 2, ack: 3, ..syn });
    old.write(10_000);
    assert_eq!(old.transmit(Instant::ZERO).unwrap().payload, 536);
}

#[test]
fn slow_start_doubles_and_a_third_duplicate_sends_again() {
    let mut script = Script::open(&spec("linux-2.2"));
    script.tcp.write(1 << 20);
    assert_eq!(script.says(), ["1-1461", "1461-2921"]);
    script.at(200);
    assert_eq!(script.acks(2_921), ["2921-4381", "4381-5841", "5841-7301"]);
    script.at(300);
    assert_eq!(script.acks(4_381), ["7301-8761", "8761-10221"]);
    assert_eq!(script.acks(4_381).len(), 0);
    assert_eq!(script.acks(4_381).len(), 0);
    // half of what was out, and three that have left: room for one more
    assert_eq!(script.acks(4_381), ["4381-5841", "10221-11681"]);
    assert_eq!(script.tcp.threshold, 2);
}

#[test]
fn windows_2000_does_so_at_the_second() {
    let mut script = Script::open(&spec("win2000"));
    script.tcp.write(1 << 20);
    script.says();
    script.at(200);
    script.acks(2_921);
    assert_eq!(script.acks(2_921).len(), 0);
    assert_eq!(script.acks(2_921), ["2921-4381", "7301-8761"]);
}

#[test]
fn new_reno_repairs_one_hole_per_round_trip_and_reno_gives_up() {
    let repairs = |recovery| {
        let spec = TcpSpec { initial_window: 6, recovery, ..spec("linux-2.2") };
        let mut script = Script::open(&spec);
        script.tcp.write(6 * 1_460);
        assert_eq!(script.says().len(), 6);
        script.at(200);
        for _ in 0..2 {
            assert_eq!(script.acks(1).len(), 0);
        }
        assert_eq!(script.acks(1), ["1-1461"]);
        script.at(300);
        script.acks(4_381)
    };
    assert_eq!(repairs(Recovery::NewReno), ["4381-5841"]);
    assert!(repairs(Recovery::Reno).is_empty());
}

#[test]
fn limited_transmit_sends_new_data_at_the_first_duplicates() {
    for limited_transmit in [false, true] {
        let spec = TcpSpec { limited_transmit, initial_window: 4, ..spec("linux-2.2") };
        let mut script = Script::open(&spec);
        script.tcp.write(1 << 20);
        script.says();
        script.at(200);
        assert_eq!(script.acks(1).len(), usize::from(limited_transmit));
        assert_eq!(script.acks(1).len(), usize::from(limited_transmit));
    }
}

#[test]
fn sack_sends_exactly_what_is_missing() {
    let spec = TcpSpec { recovery: Recovery::Sack, timestamps: false, ..spec("linux-reno") };
    let mut script = Script::open(&spec);
    script.tcp.write(10 * 1_460);
    assert_eq!(script.says().len(), 10);
    script.at(200);
    // the first and the fourth are missing
    assert!(script.sacks(1, &[(1_461, 4_381)]).is_empty());
    assert_eq!(script.sacks(1, &[(5_841, 7_301), (1_461, 4_381)]), ["1-1461"]);
    assert!(script.sacks(1, &[(5_841, 8_761), (1_461, 4_381)]).is_empty());
    let said = script.sacks(1, &[(5_841, 10_221), (1_461, 4_381)]);
    assert_eq!(said, ["4381-5841"]);
    assert_eq!(script.tcp.counts.again, 2);
}

#[test]
fn rack_needs_time_and_no_third_duplicate() {
    let spec = TcpSpec { timestamps: false, ..spec("linux-reno") };
    let mut script = Script::open(&spec);
    script.tcp.write(2 * 1_460);
    assert_eq!(script.says().len(), 2);
    script.at(200);
    assert!(script.sacks(1, &[(1_461, 2_921)]).is_empty());
    // a quarter of the least round trip, and a timer's slack
    assert_eq!(script.next(), 227);
    assert_eq!(script.says(), ["1-1461"]);
}

#[test]
fn the_tail_is_probed_after_two_round_trips() {
    let spec = TcpSpec { timestamps: false, ..spec("linux-now") };
    let mut script = Script::open(&spec);
    script.tcp.write(3 * 1_460);
    assert_eq!(script.says().len(), 3);
    script.at(200);
    assert!(script.acks(2_921).is_empty());
    // one is out: 2 x 100 ms and 200 ms for an acknowledgement held back; the timeout is earlier
    assert_eq!(script.next(), 500);
    assert_eq!(script.says(), ["2921-4381"]);

    let mut script = Script::open(&spec);
    script.tcp.write(3 * 1_460);
    script.says();
    assert_eq!(script.next(), 308);
    assert_eq!(script.says(), ["2921-4381"]);
    script.at(408);
    // what was sent before the probe is lost, as the probe has arrived; the window is cut
    assert_eq!(script.sacks(1, &[(2_921, 4_381)]), ["1-1461"]);
    script.at(508);
    assert_eq!(script.sacks(1_461, &[(2_921, 4_381)]), ["1461-2921"]);
}

#[test]
fn timeouts_double_and_keep_to_the_clock_of_the_system() {
    for (name, times) in [("linux-2.2", [400, 1_000, 2_200]), ("freebsd-4", [1_500, 3_500, 7_500])]
    {
        let mut script = Script::open(&TcpSpec { frto: false, ..spec(name) });
        script.tcp.write(1_460);
        script.says();
        for at in times {
            assert_eq!(script.next(), at, "{name}");
            assert_eq!(script.says(), ["1-1461"]);
        }
        assert_eq!(script.tcp.counts.timeouts, 3);
    }
}

#[test]
fn a_needless_timeout_is_noticed_and_taken_back() {
    let mut script = Script::open(&spec("linux-reno-2001"));
    script.tcp.write(1 << 20);
    script.says();
    script.at(200);
    assert_eq!(script.acks(2_921).len(), 4);
    let window = script.tcp.window;
    assert_eq!(script.next(), 500);
    assert_eq!(script.says(), ["2921-4381"]);
    assert_eq!(script.tcp.window, 1);
    script.at(600);
    // the acknowledgement of the first sending: new data, nothing again
    assert_eq!(script.acks(4_381), ["8761-10221", "10221-11681"]);
    // the second comes too, and was sent only once
    script.acks(5_841);
    assert!(script.tcp.window >= window, "{}", script.tcp.window);
    assert_eq!((script.tcp.counts.undone, script.tcp.board.lost), (1, 0));
}

#[test]
fn a_real_timeout_is_not_taken_back() {
    let mut script = Script::open(&spec("linux-reno-2001"));
    script.tcp.write(1 << 20);
    script.says();
    script.at(200);
    script.acks(2_921);
    script.next();
    script.says();
    script.at(600);
    assert_eq!(script.acks(4_381).len(), 2);
    // both new ones arrive above a hole
    assert_eq!(script.acks(4_381), ["4381-5841"]);
    assert_eq!(script.acks(4_381), ["5841-7301"]);
    assert_eq!(script.tcp.counts.undone, 0);
}

#[test]
fn acknowledgements_wait_for_a_second_segment_or_for_a_timer() {
    let mut script = Script::open(&TcpSpec { quick_acks: 0, ..spec("linux-2.2") });
    assert!(script.gets(&data(1, 1_460)).is_empty());
    assert_eq!(script.gets(&data(1_461, 1_460)), ["1"]);
    assert!(script.gets(&data(2_921, 1_460)).is_empty());
    assert_eq!(script.next(), 130);
    assert_eq!(script.says(), ["1"]);
    assert_eq!(script.tcp.take_delivered(), 3 * 1_460);
}

#[test]
fn what_is_out_of_order_or_twice_is_told_at_once() {
    let mut script = Script::open(&TcpSpec { timestamps: false, ..spec("linux-now") });
    assert_eq!(script.gets(&data(1_461, 1_460)), ["1 [1461-2921]"]);
    assert_eq!(script.gets(&data(4_381, 1_460)), ["1 [4381-5841] [1461-2921]"]);
    assert_eq!(script.gets(&data(2_921, 1_460)), ["1 [1461-5841]"]);
    assert_eq!(script.gets(&data(1, 1_460)), ["1"]);
    assert_eq!(script.gets(&data(1, 1_460)), ["1 [1-1461]"]);
    assert_eq!(script.tcp.take_delivered(), 4 * 1_460);
}

#[test]
fn congestion_is_echoed_until_the_sender_has_cut_once() {
    let ecn = TcpSpec { timestamps: false, ..spec("linux-ecn") };
    let mut script = Script { tcp: Tcp::connect(&ecn, u64::from(OWN)), now: Instant::ZERO };
    assert_eq!(script.says(), ["0 SYN ECE CWR"]);
    script.at(100);
    let answer = Segment { flags: SYN | ACK | ECE, ..Script::syn_ack() };
    assert_eq!(script.gets(&answer), ["1"]);
    assert_eq!(script.gets(&Segment { ecn: 3, ..data(1, 100) }), ["1 ECE"]);
    assert_eq!(script.gets(&data(101, 100)), ["1 ECE"]);
    assert_eq!(script.gets(&Segment { flags: ACK | CWR, ..data(201, 100) }), ["1"]);

    script.tcp.write(1 << 20);
    assert_eq!(script.says().len(), 10);
    script.at(200);
    let told = |ack| Segment { flags: ACK | ECE, ..from_peer(301, ack) };
    let said: Vec<_> = (1..9).flat_map(|n| script.gets(&told(n * 1_460 + 1))).collect();
    assert_eq!(said.iter().filter(|s| s.contains("CWR")).count(), 1, "{said:?}");
    assert_eq!(script.tcp.threshold, 7);
}

#[test]
fn what_waited_above_a_hole_is_no_round_trip() {
    // no SACK, no timestamps: a cumulative acknowledgement is all that is heard
    let mut script = Script::open(&TcpSpec { initial_window: 6, ..spec("linux-2.2") });
    script.tcp.write(1 << 20);
    script.says();
    script.at(200);
    script.acks(1_461);
    let said: Vec<_> = (0..4).flat_map(|_| script.acks(1_461)).collect();
    assert_eq!(said, ["1461-2921"]);
    let before = script.tcp.rtt.smooth;
    // the hole is filled late, and all that came long before is acknowledged with it
    script.at(390);
    script.acks(8_761);
    assert_eq!(script.tcp.rtt.smooth, before);
}

#[test]
fn a_shut_window_is_asked_for_ever_more_seldom() {
    let mut script = Script::open(&spec("linux-2.2"));
    script.tcp.write(1 << 20);
    script.says();
    script.at(200);
    assert!(script.gets(&Segment { window: 0, ..from_peer(1, 2_921) }).is_empty());
    let mut times = Vec::new();
    for _ in 0..3 {
        times.push(script.next());
        // an old number, so that the peer must answer
        assert_eq!(script.says(), ["2920"]);
        assert!(script.gets(&Segment { window: 0, ..from_peer(1, 2_921) }).is_empty());
    }
    assert!(times[1] - times[0] >= 2 * (times[0] - 200), "{times:?}");
    assert!(times[2] - times[1] >= 2 * (times[1] - times[0]), "{times:?}");
    let said = script.gets(&Segment { window: 3_000, ..from_peer(1, 2_921) });
    assert_eq!(said, ["2921-4381", "4381-5841"]);
}

#[test]
fn both_sides_say_goodbye() {
    let mut script = Script::open(&spec("linux-2.2"));
    script.tcp.write(2_000);
    script.tcp.close();
    assert_eq!(script.says(), ["1-1461", "1461-2001 FIN"]);
    script.at(200);
    script.acks(2_002);
    assert!(!script.tcp.is_over());
    assert_eq!(script.gets(&Segment { flags: ACK | FIN, ..from_peer(1, 2_002) }), ["2002"]);
    assert!(script.tcp.is_over());
    assert_eq!(script.tcp.deadline(), Instant::MAX);
}

/// Two ends over a path that loses, delays and swaps by the bits of `luck`.
fn transfer(from: &TcpSpec, to: &TcpSpec, bytes: u64, luck: u64) -> (Tcp, Tcp) {
    let mut random = crate::Random::new(luck, 0);
    let mut ends = [Tcp::connect(from, random.bits()), Tcp::listen(to, random.bits())];
    ends[0].write(bytes);
    ends[0].close();
    ends[1].close();
    let mut way: Vec<(Instant, usize, Segment)> = Vec::new();
    let mut now = Instant::ZERO;
    for _ in 0..200_000 {
        for (end, tcp) in ends.iter_mut().enumerate() {
            while let Some(segment) = tcp.transmit(now) {
                let lost = random.below(100) < 5;
                let late = if random.below(20) == 0 { random.below(80) } else { 0 };
                if !lost {
                    way.push((now + Span::from_ms(20 + late), 1 - end, segment));
                }
            }
        }
        if ends.iter().all(Tcp::is_over) {
            break;
        }
        let wake = ends[0].deadline().min(ends[1].deadline());
        let next = way.iter().enumerate().min_by_key(|(n, (at, ..))| (*at, *n));
        match next.map(|(n, (at, ..))| (n, *at)) {
            Some((n, at)) if at <= wake => {
                now = now.max(at);
                let (_, end, segment) = way.remove(n);
                ends[end].receive(now, &segment);
            }
            _ if wake == Instant::MAX => break,
            _ => {
                now = now.max(wake);
                ends.iter_mut().for_each(|end| end.wake(now));
            }
        }
    }
    let [a, b] = ends;
    (a, b)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn everything_arrives_whatever_the_path_does(
        from in 0..10_usize,
        to in 0..10_usize,
        bytes in 0..300_000_u64,
        luck: u64,
    ) {
        let names: Vec<_> =
            TcpSpec::presets().into_iter().filter(|n| spec(n).stack == Stack::Own).collect();
        let (from, to) = (spec(names[from]), spec(names[to]));
        let (a, mut b) = transfer(&from, &to, bytes, luck);
        prop_assert!(a.is_acknowledged(), "una {} of {}", a.una, a.written);
        prop_assert_eq!(b.take_delivered(), bytes);
        prop_assert!(a.is_over() && b.is_over());
    }
}

fn any_segment() -> impl Strategy<Value = Segment> {
    let near = || prop_oneof![0..40_000_u32, any::<u32>()];
    let options = (any::<Option<(u32, u32)>>(), prop::collection::vec((near(), near()), 0..4));
    (near(), near(), any::<u8>(), any::<u16>(), 0..1_461_u16, 0..4_u8, options).prop_map(
        |(seq, ack, flags, window, payload, ecn, (timestamps, edges))| {
            let mut sack = segment::Blocks::default();
            for (left, right) in edges {
                sack.push((OWN.wrapping_add(left), OWN.wrapping_add(right)));
            }
            let base = from_peer(seq, ack);
            // mostly no resets: they end the talk
            let flags = if flags < 16 { flags } else { flags & !weir_packet::tcp::RST };
            Segment { flags, window, payload, ecn, timestamps, sack, ..base }
        },
    )
}

proptest! {
    #[test]
    fn no_segment_breaks_an_end(
        preset in 0..10_usize,
        segments in prop::collection::vec((any_segment(), 0..3_u8), 1..60),
    ) {
        let mut script = Script::open(&spec(TcpSpec::presets()[preset]));
        script.tcp.write(100_000);
        for (segment, then) in segments {
            script.tcp.receive(script.now, &segment);
            let said = script.says();
            prop_assert!(said.len() < 200, "it does not end");
            prop_assert!(script.tcp.deadline() > script.now, "it would be woken for ever");
            if then > 0 && script.tcp.deadline() < Instant::MAX {
                script.now = script.now.max(script.tcp.deadline());
                script.tcp.wake(script.now);
                script.says();
                prop_assert!(script.tcp.deadline() > script.now, "it would be woken for ever");
            }
            let board = &script.tcp.board;
            prop_assert!(board.again <= board.lost && board.lost <= board.out());
            prop_assert!(board.sacked <= board.out());
        }
    }
}
