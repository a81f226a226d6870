//! What hosts send, decided before any engine sees it, and engines that take it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_engine::{Config, Cursor, Engine, Exported, Imported, Planner};
use weir_packet::{Build, Burst, Pool, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Span};

/// Connections of TCP, then as many of UDP.
pub(crate) const TCP_FLOWS: u8 = 6;

/// What a host does next.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// A connection opens with three segments.
    Open { flow: u8 },
    /// A segment with data, or some of before again.
    Data { flow: u8, side: bool, bytes: u16, again: bool },
    /// An acknowledgement of all that came, but for so many bytes.
    Ack { flow: u8, side: bool, behind: u16, window: u16 },
    /// Anything with these flags.
    Flags { flow: u8, side: bool, flags: u8 },
    /// A datagram.
    Datagram { flow: u8, side: bool, bytes: u16 },
}

/// A frame, when it comes, and where.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    pub(crate) after: Span,
    pub(crate) side: Side,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn acts() -> impl Strategy<Value = Vec<(u32, Act)>> {
    let tcp = || 0..TCP_FLOWS;
    let act = prop_oneof![
        3 => tcp().prop_map(|flow| Act::Open { flow }),
        8 => (tcp(), any::<bool>(), 1u16..800, prop::bool::weighted(0.1))
            .prop_map(|(flow, side, bytes, again)| Act::Data { flow, side, bytes, again }),
        8 => (tcp(), any::<bool>(), prop_oneof![4 => Just(0u16), 1 => 0u16..3_000], any::<u16>())
            .prop_map(|(flow, side, behind, window)| Act::Ack { flow, side, behind, window }),
        1 => (tcp(), any::<bool>(), any::<u8>())
            .prop_map(|(flow, side, flags)| Act::Flags { flow, side, flags }),
        3 => (0..TCP_FLOWS, any::<bool>(), 8u16..800)
            .prop_map(|(flow, side, bytes)| Act::Datagram { flow, side, bytes }),
    ];
    let gap = prop_oneof![8 => 5_000u32..40_000, 1 => 40_000u32..3_000_000];
    prop::collection::vec((gap, act), 20..250)
}

/// Where the two sides of a connection are: number and clock, of the LAN first.
#[derive(Clone, Copy, Default)]
struct Ends {
    next: [u32; 2],
    clock: [u32; 2],
}

/// Writes the frames of all acts.
pub(crate) fn script(acts: &[(u32, Act)]) -> Vec<Coming> {
    let mut ends = [Ends { next: [u32::MAX - 2_000, 77], clock: [0, 0] }; TCP_FLOWS as usize];
    let mut script: Vec<Coming> = Vec::new();
    for (number, (gap, act)) in (1u32..).zip(acts) {
        let mut come = |after: u32, is_lan: bool, bytes: Vec<u8>| {
            let side = if is_lan { Side::Lan } else { Side::Wan };
            script.push(Coming { after: Span::from_us(after.into()), side, bytes });
        };
        match *act {
            Act::Open { flow } => {
                let at = &mut ends[usize::from(flow)];
                let is_lan = flow % 3 != 2;
                come(*gap, is_lan, segment(at, flow, is_lan, (0x02, 0, 0, 60_000), number));
                come(20_000, !is_lan, segment(at, flow, !is_lan, (0x12, 0, 0, 60_000), number));
                come(6_000, is_lan, segment(at, flow, is_lan, (0x10, 0, 0, 60_000), number));
            }
            Act::Data { flow, side, bytes, again } => {
                let at = &mut ends[usize::from(flow)];
                let all = *at;
                if again {
                    let own = &mut at.next[usize::from(!side)];
                    *own = own.wrapping_sub(bytes.into());
                }
                let made = segment(at, flow, side, (0x10, bytes, 0, 50_000), number);
                if again {
                    *at = all;
                }
                come(*gap, side, made);
            }
            Act::Ack { flow, side, behind, window } => {
                let at = &mut ends[usize::from(flow)];
                come(*gap, side, segment(at, flow, side, (0x10, 0, behind, window), number));
            }
            Act::Flags { flow, side, flags } => {
                let at = &mut ends[usize::from(flow)];
                come(*gap, side, segment(at, flow, side, (flags, 0, 0, 9_000), number));
            }
            Act::Datagram { flow, side, bytes } => {
                let (lan, wan) = addresses(TCP_FLOWS + flow);
                let (lan, wan) =
                    (lan.parse().expect("an address"), wan.parse().expect("an address"));
                let build = if side { Build::udp(lan, wan) } else { Build::udp(wan, lan) };
                let mut payload = vec![0; usize::from(bytes)];
                payload[..4].copy_from_slice(&number.to_be_bytes());
                come(*gap, side, build.payload(&payload).to_vec());
            }
        }
    }
    script
}

fn addresses(flow: u8) -> (String, String) {
    match flow % 4 {
        0 | 1 => (
            format!("172.16.0.{}:{}", 1 + flow % 2, 5_000 + u16::from(flow)),
            "192.0.2.1:80".into(),
        ),
        2 => (format!("10.0.0.{}:{}", 1 + flow, 1_000), "192.0.2.7:6000".into()),
        _ => (format!("[fd00::{}]:2000", 1 + flow), "[2001:db8::1]:443".into()),
    }
}

/// A segment: flags, bytes of data, bytes that are not acknowledged yet, the window.
fn segment(
    ends: &mut Ends,
    flow: u8,
    is_lan: bool,
    (flags, bytes, behind, window): (u8, u16, u16, u16),
    clock: u32,
) -> Vec<u8> {
    let (lan, wan) = addresses(flow);
    let (lan, wan) = (lan.parse().expect("an address"), wan.parse().expect("an address"));
    let build = if is_lan { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) };
    let (own, theirs) = (usize::from(!is_lan), usize::from(is_lan));
    let ack = ends.next[theirs].wrapping_sub(behind.into());
    let mut options: Vec<u8> = match flags & 2 {
        0 => vec![],
        _ => vec![2, 4, 5, 0xb4, 1, 3, 3, flow % 4],
    };
    if flow % 2 == 1 {
        ends.clock[own] = clock;
        options.extend([1, 1, 8, 10]);
        options.extend(clock.to_be_bytes());
        options.extend(ends.clock[theirs].to_be_bytes());
    }
    let made = build.tcp_flags(flags).tcp_seq(ends.next[own]).tcp_ack(ack).tcp_window(window);
    let counts = u32::from(flags & 1) + u32::from(flags >> 1 & 1);
    ends.next[own] = ends.next[own].wrapping_add(u32::from(bytes) + counts);
    made.tcp_options(&options).payload_len(bytes.into()).to_vec()
}

pub(crate) fn plan(text: &str) -> Plan {
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.into_iter().next().expect("has a link")
}

/// Frames that left, in order, of each connection and direction; with the moment of each.
pub(crate) type Left = BTreeMap<Vec<u8>, Vec<(u64, Vec<u8>)>>;

/// An engine and its clock.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) planner: Planner,
    pub(crate) now: Instant,
    /// How far its clock is ahead of that of the script.
    pub(crate) ahead: Span,
    pub(crate) left: Left,
}

pub(crate) const CONFIG: Config =
    Config { queue_frames: 2_000, flows: 256, seed: 7, watch: true, limits: false };

impl World {
    pub(crate) fn new(config: Config, text: &str, now: Instant) -> World {
        let mut planner = Planner::of(&config);
        let first = planner.prepare(&plan(text)).expect("fits");
        let engine = Engine::new(config, Pool::new(2_500, 2_048), first, now);
        World { engine, planner, now, ahead: Span::ZERO, left: Left::new() }
    }

    pub(crate) fn change(&mut self, text: &str) {
        let mut change = self.planner.prepare(&plan(text)).expect("fits");
        while !self.engine.apply(self.now, &mut change) {}
    }

    pub(crate) fn come(&mut self, side: Side, bytes: &[u8]) {
        let frame = self.engine.pool_mut().fill(bytes).expect("has room");
        let mut burst = Burst::new();
        burst.push(frame).expect("has room");
        self.engine.receive(self.now, side, &mut burst);
        self.leave();
    }

    /// Time passes, and everything leaves in its time.
    pub(crate) fn pass(&mut self, span: Span) {
        let to = self.now + span;
        while let Some(at) = self.engine.next_wakeup().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            if !self.leave() {
                self.now += Span::from_ns(100);
            }
        }
        self.now = self.now.max(to);
        self.leave();
        self.engine.age(self.now);
    }

    /// Everything leaves that waits.
    pub(crate) fn drain(&mut self) {
        while let Some(at) = self.engine.next_wakeup() {
            self.now = self.now.max(at);
            if !self.leave() {
                self.now += Span::from_ns(100);
            }
        }
    }

    fn leave(&mut self) -> bool {
        let mut any = false;
        for side in [Side::Lan, Side::Wan] {
            let mut out = Burst::new();
            self.engine.transmit(self.now, side, &mut out);
            while let Some(frame) = out.pop() {
                any = true;
                let bytes = self.engine.pool().bytes(&frame).to_vec();
                let moment = self.now.since(Instant::ZERO + self.ahead).ns();
                self.left.entry(connection(&bytes)).or_default().push((moment, bytes));
                self.engine.pool_mut().give(frame);
            }
        }
        any
    }

    pub(crate) fn run(&mut self, script: &[Coming]) {
        for Coming { after, side, bytes } in script {
            self.pass(*after);
            self.come(*side, bytes);
        }
    }

    /// All connections, batch by batch, as bytes.
    pub(crate) fn export(&mut self) -> Vec<Vec<u8>> {
        let (mut batch, mut batches) = (Exported::with_room(), Vec::new());
        let mut cursor = Some(Cursor::START);
        while let Some(from) = cursor {
            cursor = self.engine.export(self.now, from, &mut batch);
            let mut bytes = Vec::new();
            batch.write(&mut bytes);
            batches.push(bytes);
        }
        batches
    }

    /// The only batch of connections.
    pub(crate) fn flows(&mut self) -> Vec<u8> {
        self.export().pop().expect("there is one")
    }

    pub(crate) fn import(&mut self, batches: &[Vec<u8>]) -> Imported {
        let (mut batch, mut sum) = (Exported::with_room(), Imported::default());
        for bytes in batches {
            batch.read(bytes).expect("is a batch");
            let mut again = Vec::new();
            batch.write(&mut again);
            assert_eq!(bytes, &again, "what is read is what was written");
            sum.join(self.engine.import(self.now, &batch));
        }
        sum
    }
}

/// Addresses and ports of a frame, from its source to its target.
fn connection(bytes: &[u8]) -> Vec<u8> {
    let h = weir_packet::Headers::parse(bytes);
    let mut key = [h.source.to_be_bytes(), h.target.to_be_bytes()].concat();
    key.extend([h.source_port, h.target_port].map(u16::to_be_bytes).concat());
    key.push(h.protocol);
    key
}
