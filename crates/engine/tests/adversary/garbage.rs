//! Any bytes, any clock, any edit in between: nothing panics, and the books balance.

use std::net::Ipv4Addr;

use weir_engine::{Change, Config, Engine, Planner, Report, Snapshot};
use weir_packet::{Build, Burst, Pool, Side, tcp};
use weir_units::{Instant, Rate};

use crate::world::{SECOND, datagram, mac, plan};

const CLASSES: [&str; 9] = [
    "",
    "[class.\"/b\"]\nmatch = \"any\"\neach = { by = \"lan-mac\", ceil = \"8kbit\" }\n",
    "[class.\"/b\"]\nmatch = \"any\"\neach = { by = \"wan-host\", count = 3 }\n",
    "[class.\"/b\"]\nmatch = \"any\"\nqueue = \"fair\"\naqm = \"cobalt\"\necn = true\n",
    "[class.\"/b\"]\nmatch = \"udp\"\nqueue = \"fifo\"\naqm = \"pie\"\nlimit = \"9kb\"\n",
    "[class.\"/b\"]\nmatch = \"any\"\n\
     session = { min = \"50kbit\", max = \"200kbit\", count = 9, next = \"wait\" }\n",
    "[class.\"/c\"]\nceil = \"4mbit\"\n[class.\"/c/d\"]\nmatch = \"any\"\neach = \"vlan\"\n",
    "[class.\"/b\"]\nmatch = \"any\"\nenforce = \"weir\"\n",
    "[class.\"/b\"]\nmatch = \"tcp\"\n\
     tcp = { window = true, pace-acks = true, mss = \"auto\" }\n",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.below(256).to_le_bytes()[0]
    }

    fn frame(&mut self, side: Side) -> Vec<u8> {
        let host = self.byte() % 40;
        let port = 1_000 + u16::from(self.byte());
        let far = (Ipv4Addr::new(203, 0, 113, self.byte() % 8), 53);
        let length = 64 + usize::try_from(self.below(1_400)).expect("fits");
        let mut build = datagram(side, host, port, far);
        if self.below(3) == 0 {
            let lan = (Ipv4Addr::new(10, 0, 0, host), port).into();
            build = match side {
                Side::Lan => Build::tcp(lan, far.into()).macs(mac(host), [9; 6]),
                Side::Wan => Build::tcp(far.into(), lan).macs([9; 6], mac(host)),
            };
            let flags = self.byte() & (tcp::SYN | tcp::FIN | tcp::RST | tcp::ACK);
            let number = u32::try_from(self.below(1 << 32)).expect("fits");
            build = build.tcp_flags(flags).tcp_seq(number).tcp_ack(!number);
        }
        for _ in 0..self.below(12).saturating_sub(8) {
            build = build.vlan(u16::from(self.byte()));
        }
        let mut frame = build.frame_len(length.max(140)).to_vec();
        for _ in 0..self.below(12).saturating_sub(6) {
            let at = usize::try_from(self.below(80)).expect("fits").min(frame.len() - 1);
            frame[at] = self.byte();
        }
        if self.below(20) == 0 {
            frame.truncate(usize::try_from(self.below(80)).expect("fits"));
        }
        frame
    }

    /// The clock goes on, mostly a little; stands, goes back, or jumps.
    fn clock(&mut self, now: u64) -> u64 {
        match self.below(400) {
            0 => self.below(u64::MAX),
            1 => u64::MAX - self.below(3),
            2 => now.saturating_sub(self.below(900 * SECOND)),
            3 => now.saturating_add(self.below(5_000 * SECOND)),
            4 => self.below(SECOND),
            5..50 => now,
            _ => now.saturating_add(self.below(2_000_000)),
        }
    }
}

#[test]
fn nothing_panics_and_the_books_balance() {
    for seed in 1..=6_u64 {
        round(Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
}

fn round(mut dice: Dice) {
    let pick = |dice: &mut Dice| CLASSES[usize::from(dice.byte()) % CLASSES.len()];
    let config = Config { flows: 256, queue_frames: 150, watch: true, seed: 3, limits: true };
    let mut planner = Planner::of(&config);
    let mut told = plan(10_000_000, pick(&mut dice));
    let first = planner.prepare(&told).expect("fits");
    let mut engine = Engine::new(config, Pool::new(420, 1_600), first, Instant::ZERO);
    let (mut now, mut books) = (0, Snapshot::with_room());
    let mut change: Option<Change> = None;
    for step in 0..6_000 {
        now = dice.clock(now);
        let at = Instant::from_ns(now);
        let side = if dice.below(2) == 0 { Side::Lan } else { Side::Wan };
        match dice.below(30) {
            0..16 => {
                let mut burst = Burst::new();
                for _ in 0..dice.below(9) {
                    let Some(frame) = engine.pool_mut().fill(&dice.frame(side)) else { break };
                    burst.push(frame).expect("room");
                }
                engine.receive(at, side, &mut burst);
            }
            16..27 => {
                let mut out = Burst::new();
                engine.transmit(at, side, &mut out);
                out.drain().for_each(|frame| engine.pool_mut().give(frame));
            }
            27 => engine.age(at),
            28 if dice.below(20) == 0 => engine.forget_waiting(at),
            28 if dice.below(20) == 0 => {
                let rate = Rate::from_bps(1 << dice.below(40));
                assert_eq!(engine.limits(at, &[(0, side.way_out(), rate)]), 1);
                // of a class or a leaf, if there is one of that number
                let node = u32::try_from(dice.below(64)).unwrap_or(0) + 1;
                assert!(engine.limits(at, &[(node, side.way_out(), rate)]) <= 1);
            }
            _ if change.is_none() => {
                let rate = 1 << (20 + dice.below(14));
                told = plan(rate, pick(&mut dice));
                change = Some(planner.prepare(&told).expect("fits"));
            }
            _ => {}
        }
        if let Some(mut going) = change.take()
            && !engine.apply(at, &mut going)
        {
            change = Some(going);
        }
        let _ = engine.next_wakeup();
        if step % 500 == 0 {
            let _ = engine.snapshot(0, &mut books);
            for row in &Report::of(&engine, &told).rows {
                let is_balanced = [Side::Lan, Side::Wan].map(|s| row.from(s).balance());
                assert_eq!(is_balanced, [true; 2], "{} at step {step}", row.path);
            }
        }
    }
    drain(&mut engine, change, now);
}

/// The clock goes on as usual: all leaves.
fn drain(engine: &mut Engine, mut change: Option<Change>, mut now: u64) {
    for _ in 0..40_000 {
        for side in [Side::Lan, Side::Wan] {
            let mut out = Burst::new();
            engine.transmit(Instant::from_ns(now), side, &mut out);
            out.drain().for_each(|frame| engine.pool_mut().give(frame));
        }
        if let Some(mut going) = change.take()
            && !engine.apply(Instant::from_ns(now), &mut going)
        {
            change = Some(going);
        }
        match engine.next_wakeup() {
            Some(at) => now = now.max(at.ns()).saturating_add(1_000),
            None => break,
        }
    }
    if now < u64::MAX - SECOND {
        assert_eq!(engine.pool().free(), engine.pool().capacity(), "some wait for ever");
    }
}
