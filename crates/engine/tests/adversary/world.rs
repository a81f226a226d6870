//! An engine, a victim, and whoever is against it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};

use weir_engine::{Change, Config, Engine, Planner, Report};
use weir_packet::{Build, Burst, Pool, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Way};

pub(crate) type Time = u64;
pub(crate) const SECOND: Time = 1_000_000_000;
pub(crate) const MS: Time = 1_000_000;

/// Where the payload of a datagram begins: eight bytes say when it came, four what it is.
const PAYLOAD: usize = 42;
const BULK: &[u8] = b"bulk";
const SPARSE: &[u8] = b"thin";
const VICTIM: u8 = 2;
pub(crate) const ROUTER: [u8; 6] = [2, 0, 0, 0, 1, 1];
pub(crate) const OUTSIDE: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 1), 443);

type Make = Box<dyn FnMut(u64) -> Vec<u8>>;
type Edit = (Time, String);

struct Sender {
    side: Side,
    every: Time,
    sent: u64,
    make: Make,
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) planner: Planner,
    pub(crate) plan: Plan,
    senders: Vec<Sender>,
    due: BinaryHeap<Reverse<(Time, usize)>>,
    pub(crate) side: Side,
    pub(crate) edits: Vec<Edit>,
    change: Option<Change>,
    random: u64,
    counts: Time,
    ends: Time,
    aged: Time,
    pub(crate) seen: Seen,
    waits: Vec<Time>,
}

/// What the victim had while it counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) bulk: u64,
    pub(crate) sparse: u64,
    pub(crate) lost: u64,
    pub(crate) p99: Time,
    pub(crate) longest: Time,
}

pub(crate) const fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

pub(crate) fn plan(rate: u64, classes: &str) -> Plan {
    let link = format!("[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"{rate}bit\"\n");
    let text = format!("{link}up = \"{rate}bit\"\n{classes}");
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.into_iter().next().expect("has a link")
}

/// A datagram between a host of the LAN and one outside, from the side that is said.
pub(crate) fn datagram(from: Side, number: u8, port: u16, outside: (Ipv4Addr, u16)) -> Build {
    let lan = SocketAddr::from((Ipv4Addr::new(10, 0, 0, number), port));
    let wan = SocketAddr::from(outside);
    match from {
        Side::Lan => Build::udp(lan, wan).macs(mac(number), ROUTER),
        Side::Wan => Build::udp(wan, lan).macs(ROUTER, mac(number)),
    }
}

/// A port and somebody outside, of which no two are the same within 2^32.
pub(crate) fn fresh(n: u64) -> (u16, (Ipv4Addr, u16)) {
    let port = u16::try_from(1_024 + n % 60_000).expect("fits");
    let far = u32::try_from(n / 60_000 % (1 << 16)).expect("fits");
    (port, (Ipv4Addr::from_bits(0xcb00_0000 + far), 443))
}

/// Weir has been running for two seconds when the first frame comes.
const BEGINS: Time = 2 * SECOND;

fn at(now: Time) -> Instant {
    Instant::from_ns(BEGINS + now)
}

fn time(at: Instant) -> Time {
    at.ns().saturating_sub(BEGINS)
}

impl World {
    pub(crate) fn new(rate: u64, classes: &str, side: Side) -> World {
        let plan = plan(rate, classes);
        let config = Config::default();
        let mut planner = Planner::of(&config);
        let first = planner.prepare(&plan).expect("fits");
        let pool = Pool::new(2 * config.queue_frames + 64, 9_100);
        let mut world = World {
            engine: Engine::new(config, pool, first, Instant::ZERO),
            planner,
            plan,
            senders: Vec::new(),
            due: BinaryHeap::new(),
            side,
            edits: Vec::new(),
            change: None,
            random: 0x2545_f491_4f6c_dd1d,
            counts: Time::MAX,
            ends: Time::MAX,
            aged: 0,
            seen: Seen::default(),
            waits: Vec::new(),
        };
        // what is seen in the first second of all is known at once, so that must be over
        let frame = datagram(Side::Lan, 1, 9_000, OUTSIDE).to_vec();
        let mut burst = Burst::new();
        burst.push(world.engine.pool_mut().fill(&frame).expect("free")).expect("room");
        world.engine.receive(Instant::ZERO, Side::Lan, &mut burst);
        world.serve(0);
        world
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end.max(1)
    }

    /// Somebody sends frames of so many bytes at so many bit/s from a moment on.
    pub(crate) fn add(
        &mut self,
        side: Side,
        (rate, bytes): (u64, u64),
        from: Time,
        make: impl FnMut(u64) -> Vec<u8> + 'static,
    ) {
        let every = (8 * bytes * SECOND / rate).max(1);
        let first = from + self.below(every.min(SECOND));
        self.due.push(Reverse((first, self.senders.len())));
        self.senders.push(Sender { side, every, sent: 0, make: Box::new(make) });
    }

    /// A host that always has something to send.
    pub(crate) fn honest(&mut self, number: u8, rate: u64, from: Time) {
        let side = self.side;
        self.answers(number, 9_000, from);
        self.add(side, (rate, 1_514), from, move |_| {
            datagram(side, number, 9_000, (Ipv4Addr::new(192, 0, 2, number), 443))
                .frame_len(1_514)
                .to_vec()
        });
    }

    /// A host of the LAN answers what comes for it.
    fn answers(&mut self, number: u8, port: u16, from: Time) {
        if self.side == Side::Wan {
            let far = (Ipv4Addr::new(192, 0, 2, number), 443);
            let frame = datagram(Side::Lan, number, port, far).padded_to(64).to_vec();
            self.add(Side::Lan, (20 * 512, 64), from, move |_| frame.clone());
        }
    }

    /// The victim: a bulk flow at this rate, and a sparse one of 20 frames a second.
    pub(crate) fn victim(&mut self, rate: u64, from: Time) {
        let side = self.side;
        let make = move |port, sign: &'static [u8], len: usize| {
            move |_| {
                let mut payload = vec![0; len - PAYLOAD];
                payload[8..12].copy_from_slice(sign);
                let far = (Ipv4Addr::new(192, 0, 2, VICTIM), 443);
                datagram(side, VICTIM, port, far).payload(&payload).to_vec()
            }
        };
        if rate > 0 {
            self.answers(VICTIM, 7_001, from);
            self.add(side, (rate, 1_514), from, make(7_001, BULK, 1_514));
        }
        self.answers(VICTIM, 7_002, from);
        self.add(side, (20 * 512, 64), from, make(7_002, SPARSE, 64));
    }

    /// Lets all of them send until `end`. From `counts` to then what leaves of the bulk flow counts
    /// and what comes of the sparse one.
    pub(crate) fn run(&mut self, counts: Time, end: Time) -> Seen {
        (self.counts, self.ends) = (counts, end);
        self.edits.sort();
        while let Some(Reverse((now, at))) = self.due.pop() {
            self.serve(now);
            if now >= end {
                self.due.push(Reverse((now, at)));
                break;
            }
            let noise = self.below(self.senders[at].every / 4 + 1);
            let sender = &mut self.senders[at];
            let next = now + sender.every - sender.every / 8 + noise;
            self.due.push(Reverse((next.max(now + 1), at)));
            let mut frame = (sender.make)(sender.sent);
            sender.sent += 1;
            let side = sender.side;
            self.edit(now);
            self.receive(now, side, &mut frame);
        }
        self.serve(end + SECOND);
        self.seen.lost = self.seen.sparse - self.waits.len() as u64;
        self.waits
            .resize(self.waits.len() + usize::try_from(self.seen.lost).expect("fits"), 10 * SECOND);
        self.waits.sort_unstable();
        let at = (self.waits.len() * 99).div_ceil(100).saturating_sub(1);
        self.seen.p99 = self.waits.get(at).copied().unwrap_or(0);
        self.seen.longest = self.waits.last().copied().unwrap_or(0);
        self.balance();
        self.seen
    }

    /// The books of all classes balance, and no buffer is lost.
    pub(crate) fn balance(&self) {
        let report = Report::of(&self.engine, &self.plan);
        for row in &report.rows {
            for side in [Side::Lan, Side::Wan] {
                assert!(row.from(side).balance(), "{}", row.path);
            }
        }
        let waiting: usize = Way::ALL.map(|way| self.engine.waiting(way).0).iter().sum();
        let pool = self.engine.pool();
        assert_eq!(pool.free() + waiting, pool.capacity(), "buffers are lost");
    }

    fn edit(&mut self, now: Time) {
        if self.change.is_none() && self.edits.first().is_some_and(|(at, _)| *at <= now) {
            let (_, classes) = self.edits.remove(0);
            self.plan = plan(self.engine.rate(self.side.way()).bps(), &classes);
            self.change = Some(self.planner.prepare(&self.plan).expect("fits"));
        }
        if let Some(mut change) = self.change.take()
            && !self.engine.apply(at(now), &mut change)
        {
            self.change = Some(change);
        }
    }

    fn receive(&mut self, now: Time, side: Side, bytes: &mut [u8]) {
        let sign = bytes.get(PAYLOAD + 8..PAYLOAD + 12).unwrap_or_default();
        let is_sparse = sign == SPARSE;
        if is_sparse || sign == BULK {
            bytes[PAYLOAD..PAYLOAD + 8].copy_from_slice(&now.to_be_bytes());
        }
        self.seen.sparse += u64::from(is_sparse && now >= self.counts);
        if let Some(frame) = self.engine.pool_mut().fill(bytes) {
            let mut burst = Burst::new();
            burst.push(frame).expect("room");
            self.engine.receive(at(now), side, &mut burst);
        }
        if now >= self.aged + MS {
            self.engine.age(at(now));
            self.aged = now;
        }
        self.transmit(now);
    }

    /// Sends what leaves up to then.
    fn serve(&mut self, end: Time) {
        let mut now = 0;
        while let Some(at) = self.engine.next_wakeup().map(time).filter(|at| *at <= end) {
            now = at.max(now);
            if now > end || !self.transmit(now) {
                now += 1_000;
            }
            if now > end {
                return;
            }
        }
    }

    fn transmit(&mut self, now: Time) -> bool {
        let mut has_sent = false;
        for side in [Side::Lan, Side::Wan] {
            let mut out = Burst::new();
            self.engine.transmit(at(now), side, &mut out);
            for frame in out.drain() {
                has_sent = true;
                let bytes = self.engine.pool().bytes(&frame);
                let sign = bytes.get(PAYLOAD + 8..PAYLOAD + 12).unwrap_or_default();
                if side != self.side && (sign == SPARSE || sign == BULK) {
                    let came = bytes[PAYLOAD..PAYLOAD + 8].try_into().expect("eight");
                    let came = u64::from_be_bytes(came);
                    if sign == BULK && (self.counts..self.ends).contains(&now) {
                        self.seen.bulk += bytes.len() as u64;
                    } else if sign == SPARSE && came >= self.counts {
                        self.waits.push(now - came);
                    }
                }
                self.engine.pool_mut().give(frame);
            }
        }
        has_sent
    }
}
