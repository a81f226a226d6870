//! Random frames under random and changing policies: nothing is lost, nothing is invented, frames
//! of a flow keep their order. A failure prints the smallest case and stores it beside this file,
//! from where every later run tries it first.

use proptest::prelude::*;
use weir_engine::{Config, Engine, LeafBooks, Planner, Report, Snapshot};
use weir_packet::{Build, Burst, Pool, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{ByWay, Instant, Span, Way};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    /// A frame of a flow, with its size.
    Frame { side: bool, flow: u8, size: u16 },
    /// A segment of a TCP connection: its flags, and how many bytes it brings and answers.
    Segment { side: bool, flow: u8, flags: u8, brings: u16, answers: u16 },
    /// Bytes that are no frame.
    Garbage { side: bool, bytes: Vec<u8> },
    /// Time passes, and what may leave leaves.
    Pass { us: u32 },
    /// Another policy.
    Policy(Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (any::<bool>(), 0u8..24, 0u16..1_400)
            .prop_map(|(side, flow, size)| Step::Frame { side, flow, size }),
        6 => segment(),
        1 => (any::<bool>(), prop::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(side, bytes)| Step::Garbage { side, bytes }),
        3 => (0u32..200_000).prop_map(|us| Step::Pass { us }),
        1 => prop::collection::vec(any::<u8>(), 0..8).prop_map(Step::Policy),
    ];
    prop::collection::vec(step, 1..400)
}

fn segment() -> impl Strategy<Value = Step> {
    // SYN, its answer, acknowledgements, ends, and once in a while a reset
    let flags = prop::sample::select(vec![0x02u8, 0x12, 0x10, 0x10, 0x10, 0x10, 0x18, 0x11, 0x04]);
    let brings = prop_oneof![Just(0u16), 1u16..1_000];
    (any::<bool>(), 0u8..4, flags, brings, 0u16..2_000).prop_map(
        |(side, flow, flags, brings, answers)| Step::Segment { side, flow, flags, brings, answers },
    )
}

/// A policy of classes chosen by `choice`; all of them valid together.
fn plan(choice: &[u8]) -> Plan {
    // slow enough that queues fill
    let rate = 100 + choice.len() * 300;
    let mut text =
        format!("[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"{rate}kbit\"\nup = \"{rate}kbit\"\n");
    let enforced = ["", "enforce = \"weir\"\n", "enforce = \"hsdba\"\n", "enforce = \"queue\"\n"];
    text += enforced[usize::from(choice.first().copied().unwrap_or(0)) / 7 % 4];
    let classes = [
        "[class.\"/voice\"]\nmatch = \"dscp ef\"\n\
         police = { rate = \"50kbit\", burst = \"3kb\" }\n",
        "[class.\"/web\"]\nmatch = [\"tcp wan port 80\", \"tcp wan port 443\"]\n",
        "[class.\"/lan\"]\nmatch = \"lan 10.0.0.0/8\"\n",
        "[class.\"/lan\"]\nmatch = \"lan 10.0.0.0/8\"\n\
         [class.\"/lan/small\"]\nmatch = \"length 0-200\"\n",
        "[class.\"/hosts\"]\nmatch = \"udp\"\n\
         each = { by = \"lan-host\", count = 3, age = \"20ms\" }\n\
         police = { rate = \"80kbit\", burst = \"3kb\", excess = \"af12\" }\n",
        "[class.\"/nets\"]\nmatch = \"tcp port 1-1000\"\n\
         each = { by = \"lan-prefix\", v4 = 30, count = 2 }\n",
        "[class.\"/big\"]\nmatch = \"length 1000-2000\"\ndscp = \"le\"\n",
        "[class.\"/narrow\"]\nmatch = \"lan 172.16.0.0/25\"\nceil = \"20kbit\"\n\
         [class.\"/narrow/one\"]\nmatch = \"tcp port 5000-5001\"\n",
        "[class.\"/steady\"]\nmatch = \"lan 172.16.0.0/24\"\nceil = \"64kbit\"\n\
         tcp = { window = true, pace-acks = true, mss = 500, least = 2 }\n",
    ];
    for (at, class) in classes.iter().enumerate() {
        // /lan is once a leaf and once a class with a child
        let is_twice = at == 3 && text.contains("/lan");
        if choice.iter().any(|c| usize::from(*c) % classes.len() == at) && !is_twice {
            text += class;
            let how = choice.iter().find(|c| usize::from(**c) % classes.len() == at);
            text += enforced[usize::from(how.copied().unwrap_or(0)) / 28 % 4];
        }
    }
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.into_iter().next().expect("has a link")
}

/// A frame of flow number `flow` that carries `sequence`.
fn frame(flow: u8, lan_side: bool, size: u16, sequence: u32) -> Vec<u8> {
    let host = format!("10.0.0.{}:{}", 1 + flow % 6, 1_000 + u16::from(flow));
    let far = format!("192.0.2.1:{}", if flow.is_multiple_of(4) { 80 } else { 5_060 });
    let (host, far) = (host.parse().expect("an address"), far.parse().expect("an address"));
    let (from, to) = if lan_side { (host, far) } else { (far, host) };
    let build = if flow.is_multiple_of(2) { Build::tcp(from, to) } else { Build::udp(from, to) };
    let mut payload = vec![0; 8 + usize::from(size)];
    payload[..4].copy_from_slice(&sequence.to_be_bytes());
    payload[4] = flow;
    payload[5] = 0xa5;
    build.dscp(if flow.is_multiple_of(5) { 46 } else { 0 }).payload(&payload).to_vec()
}

/// A segment of TCP connection number `flow` that goes on from where its sides are.
fn segment_of(at: &mut [u32; 2], flow: u8, side: bool, flags: u8, brings: u16) -> Vec<u8> {
    let host = format!("172.16.0.1:{}", 5_000 + u16::from(flow)).parse().expect("an address");
    let far = "192.0.2.1:6000".parse().expect("an address");
    let build = if side { Build::tcp(host, far) } else { Build::tcp(far, host) };
    let (own, others) = (usize::from(!side), usize::from(side));
    let build = build.tcp_flags(flags).tcp_seq(at[own]).tcp_ack(at[others]);
    at[own] = at[own].wrapping_add(u32::from(brings) + u32::from(flags & 3 != 0));
    let options: &[u8] = if flags & 2 != 0 { &[2, 4, 5, 0xb4, 1, 3, 3, 2] } else { &[] };
    build.tcp_options(options).payload_len(brings.into()).to_vec()
}

/// The flow and sequence number of a frame that `frame` made.
fn mark(bytes: &[u8]) -> Option<(u8, u32)> {
    let headers = weir_packet::Headers::parse(bytes);
    let payload = bytes.get(usize::from(headers.payload_at)..).filter(|_| headers.is_ip())?;
    (payload.len() >= 8 && payload[5] == 0xa5)
        .then(|| (payload[4], u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]])))
}

struct World {
    engine: Engine,
    planner: Planner,
    plan: Plan,
    now: Instant,
    into: ByWay<u64>,
    out: ByWay<u64>,
    last: std::collections::BTreeMap<(u8, bool), u32>,
    /// Where both sides of the TCP connections are.
    numbers: [[u32; 2]; 4],
}

impl World {
    fn new(choice: &[u8]) -> World {
        let config = Config { queue_frames: 120, flows: 256, seed: 7, watch: true, limits: false };
        let mut planner = Planner::of(&config);
        let plan = plan(choice);
        let first = planner.prepare(&plan).expect("fits");
        let engine = Engine::new(config, Pool::new(260, 2_048), first, Instant::ZERO);
        let (into, out) = (ByWay::same(0), ByWay::same(0));
        let now = Instant::ZERO;
        let (last, numbers) = (Default::default(), [[u32::MAX - 900; 2]; 4]);
        World { engine, planner, plan, now, into, out, last, numbers }
    }

    fn arrive(&mut self, lan_side: bool, bytes: &[u8]) {
        let Some(frame) = self.engine.pool_mut().fill(bytes) else { return };
        let side = if lan_side { Side::Lan } else { Side::Wan };
        self.into[side.way()] += bytes.len() as u64;
        let mut burst = Burst::new();
        burst.push(frame).expect("has room");
        self.engine.receive(self.now, side, &mut burst);
        assert!(burst.is_empty());
    }

    fn leave(&mut self) {
        for side in [Side::Lan, Side::Wan] {
            let mut out = Burst::new();
            self.engine.transmit(self.now, side, &mut out);
            while let Some(frame) = out.pop() {
                let bytes = self.engine.pool().bytes(&frame).to_vec();
                self.out[side.way_out()] += bytes.len() as u64;
                if let Some((flow, sequence)) = mark(&bytes) {
                    let before = self.last.insert((flow, side == Side::Lan), sequence);
                    assert!(before.is_none_or(|b| b < sequence), "flow {flow} out of order");
                }
                self.engine.pool_mut().give(frame);
            }
        }
        self.engine.age(self.now);
    }

    fn change(&mut self, choice: &[u8]) {
        self.plan = plan(choice);
        let mut change = self.planner.prepare(&self.plan).expect("fits");
        while !self.engine.apply(self.now, &mut change) {}
    }

    fn check(&self) {
        let mut snapshot = Snapshot::default();
        let mut sum = ByWay::<weir_engine::Counters>::default();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = self.engine.snapshot(from, &mut snapshot);
            for LeafBooks { leaf, counters, .. } in &snapshot.leaves {
                for (way, counters) in counters.iter() {
                    assert!(counters.balance(), "leaf {leaf}: {counters:?}");
                    sum[way].join(counters);
                }
            }
        }
        let mut waiting = 0;
        for way in Way::ALL {
            let sum = &mut sum[way];
            sum.join(&snapshot.gone[way]);
            let total = &snapshot.total[way];
            assert!(total.balance(), "{total:?}");
            assert_eq!(total.received.bytes, self.into[way]);
            assert_eq!(total.sent.bytes, self.out[way]);
            assert_eq!((sum.received, sum.sent), (total.received, total.sent));
            assert_eq!((sum.held, sum.dropped), (total.held, total.dropped));
            assert_eq!(sum.moved_in, sum.moved_out);
            waiting += usize::try_from(total.held.frames).expect("is small");
        }
        assert_eq!(self.engine.pool().free() + waiting, self.engine.pool().capacity());
        assert_eq!(self.engine.next_wakeup().is_some(), waiting > 0);
        let report = Report::of(&self.engine, &self.plan);
        for (way, link) in report.rows[0].counters.iter() {
            let total = &snapshot.total[way];
            assert_eq!((link.received, link.sent), (total.received, total.sent));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn nothing_is_lost_and_flows_keep_their_order(
        first in prop::collection::vec(any::<u8>(), 0..8),
        steps in steps(),
    ) {
        let mut world = World::new(&first);
        for (sequence, step) in steps.into_iter().enumerate() {
            match step {
                Step::Frame { side, flow, size } => {
                    let sequence = u32::try_from(sequence).expect("is small");
                    world.arrive(side, &frame(flow, side, size, sequence));
                }
                Step::Segment { side, flow, flags, brings, answers } => {
                    let at = &mut world.numbers[usize::from(flow)];
                    // what is answered is not always all that was sent
                    let all = at[usize::from(side)];
                    at[usize::from(side)] = all.wrapping_sub(answers.into());
                    let bytes = segment_of(at, flow, side, flags, brings);
                    at[usize::from(side)] = all;
                    world.arrive(side, &bytes);
                }
                Step::Garbage { side, bytes } => world.arrive(side, &bytes),
                Step::Pass { us } => {
                    world.now += Span::from_us(u64::from(us));
                    world.leave();
                }
                Step::Policy(choice) => world.change(&choice),
            }
            world.check();
        }
        // nobody waits for ever
        for _ in 0..10_000 {
            let Some(at) = world.engine.next_wakeup() else { break };
            world.now = world.now.max(at);
            world.leave();
        }
        world.check();
        prop_assert!(world.engine.next_wakeup().is_none(), "somebody still waits");
        prop_assert_eq!(world.engine.pool().free(), world.engine.pool().capacity());
    }
}
