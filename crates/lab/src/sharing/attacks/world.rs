//! The engine, who sends through it, and what is seen of the victim.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};

use weir_engine::{Config, Driver, Engine, Planner, Single};
use weir_packet::{Build, Member, Pool, Side};
use weir_policy::Source;
use weir_sim::Random;
use weir_units::Instant;

use super::list::{Attack, Policy};

/// A moment in nanoseconds.
type Time = u64;

pub(super) const SECOND: Time = 1_000_000_000;
/// What everyone has to settle, and how long it counts then.
const SETTLES: Time = 3 * SECOND;
pub(super) const COUNTS: Time = 10 * SECOND;

/// Bytes of a full frame, and of a sparse one.
const FULL: u64 = 1_514;
const SPARSE: usize = 64;
/// Sparse frames a second.
const A_SECOND: u64 = 20;
/// What frames begin with that are watched, behind the time at which they came: the victim's, and
/// those of honest hosts.
const SIGNS: [&[u8; 4]; 3] = [b"bulk", b"thin", b"hons"];
const BULK: usize = 0;
const SPARSE_ONE: usize = 1;
const HONEST: usize = 2;
/// Frames under way of a flow that wants all it can get: it sends the next as soon as one arrives.
const WINDOW: u64 = 32;
/// After so long without any it takes all for lost: so soon that its queue is never empty for long.
const PATIENCE: Time = 5_000_000;
/// Bytes of a frame before its payload.
const HEADERS: usize = 42;
/// Where its sender and its number are, of those with a window.
const NUMBERS: usize = HEADERS + 12;

/// Bytes of a frame that are looked at when it leaves.
const LOOKED_AT: usize = NUMBERS + 16;

pub(super) const VICTIM: u8 = 2;
pub(super) const ATTACKER: u8 = 66;

/// Makes the n-th frame of a sender.
type Make = Box<dyn Fn(u64) -> Vec<u8>>;

/// A frame that leaves.
struct Left {
    len: usize,
    /// As much of it as matters.
    head: [u8; LOOKED_AT],
}

struct Sender {
    side: Side,
    every: Time,
    until: Time,
    /// Sends for as long, and is silent for as long, in turns; zero: always.
    on: Time,
    sent: u64,
    make: Make,
    pace: Pace,
}

/// When a sender sends.
enum Pace {
    /// Whatever becomes of its frames.
    Blind,
    /// The same, and the time goes into each frame.
    Timed,
    /// A window's worth of frames is always under way: so many have arrived or are lost, and then
    /// it loses patience.
    Window { done: u64, until: Time, alarm: Time, is_asked: bool },
}

pub(super) struct World {
    driver: Driver,
    /// What leaves in a poll.
    left: Vec<Left>,
    senders: Vec<Sender>,
    due: BinaryHeap<Reverse<(Time, usize)>>,
    noise: Random,
    from: Side,
    rate: u64,
    wanted: u64,
    /// When the victim comes.
    begins: Time,
    end: Time,
    /// When the engine was driven last.
    then: Instant,
    bytes: u64,
    /// Sparse frames that were sent while it counted, and how long those waited that came.
    sparse: usize,
    waits: Vec<Time>,
}

/// What the victim had.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) bytes: u64,
    pub(super) p99_ms: f64,
}

/// The address of a host of the LAN, and its MAC.
pub(super) fn host(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

pub(super) fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

/// The box's neighbour towards the WAN.
pub(super) const ROUTER: [u8; 6] = [2, 0, 0, 0, 1, 1];

/// A datagram between a host of the LAN and one outside, from the side that is said.
pub(super) fn datagram(from: Side, number: u8, port: u16, outside: (Ipv4Addr, u16)) -> Build {
    let (lan, wan) = (SocketAddr::from((host(number), port)), SocketAddr::from(outside));
    match from {
        Side::Lan => Build::udp(lan, wan).macs(mac(number), ROUTER),
        Side::Wan => Build::udp(wan, lan).macs(ROUTER, mac(number)),
    }
}

impl World {
    pub(super) fn new(
        attack: &Attack,
        ((policy, rows), told): (Policy, u64),
        seed: u64,
    ) -> Option<World> {
        let text = policy.replace("LINE", &format!("{told}bit"));
        let mut load = |name: &str| Ok(Source::new(name, rows));
        let reading = weir_policy::read(Source::new("attacks", text), &mut load).ok()?;
        let plan = Some(reading).filter(|reading| !reading.is_at_fault())?.plans.pop()?;
        let config = Config { seed: u128::from(seed), ..Config::default() };
        let pool = Pool::new(2 * config.queue_frames + 64, attack.frame.max(1_600));
        let first = Planner::of(&config).prepare(&plan).ok()?;
        let begins = attack.before * SECOND;
        Some(World {
            driver: Driver::new(Engine::new(config, pool, first, Instant::ZERO), &Member::ONE_EACH),
            left: Vec::new(),
            senders: Vec::new(),
            due: BinaryHeap::new(),
            noise: Random::new(seed, 0xa7),
            from: attack.from,
            rate: attack.rate,
            wanted: attack.wanted,
            begins,
            end: begins + SETTLES + COUNTS,
            then: Instant::ZERO,
            bytes: 0,
            sparse: 0,
            waits: Vec::new(),
        })
    }

    /// Somebody sends frames of so many bytes at so many bit/s from a moment on.
    pub(super) fn add(
        &mut self,
        side: Side,
        (rate, bytes): (u64, u64),
        make: impl Fn(u64) -> Vec<u8> + 'static,
    ) {
        self.starts(side, (rate, bytes), (0, 0), Pace::Blind, Box::new(make));
    }

    /// The same, on and off for as long.
    pub(super) fn add_bursts(
        &mut self,
        side: Side,
        (rate, bytes): (u64, u64),
        on: Time,
        make: impl Fn(u64) -> Vec<u8> + 'static,
    ) {
        self.starts(side, (rate, bytes), (0, on), Pace::Blind, Box::new(make));
    }

    fn starts(
        &mut self,
        side: Side,
        (rate, bytes): (u64, u64),
        (from, on): (Time, Time),
        pace: Pace,
        make: Make,
    ) {
        let every = (8 * bytes * SECOND / rate.max(1)).max(1);
        let first = from + self.noise.below(every.min(SECOND));
        self.due.push(Reverse((first, self.senders.len())));
        self.senders.push(Sender { side, every, until: self.end, on, sent: 0, make, pace });
    }

    /// Hosts of which each wants all of the line, in the attacker's place.
    pub(super) fn honest(&mut self, count: u8) {
        for number in 10..10 + count {
            let (from, all) = (self.from, (self.rate, FULL));
            self.answers(number, 9_000);
            let outside = (Ipv4Addr::new(198, 51, 100, number), 443);
            let frame = signed(&datagram(from, number, 9_000, outside), SIGNS[HONEST], 1_514);
            let make = Box::new(move |_| frame.clone());
            self.starts(from, all, (self.begins, 0), Pace::window(), make);
        }
    }

    /// The victim: a bulk flow, and a sparse one.
    pub(super) fn victim(&mut self) {
        let outside = (Ipv4Addr::new(192, 0, 2, 1), 443);
        let from = self.from;
        let flow = move |port, sign, len| {
            let frame = signed(&datagram(from, VICTIM, port, outside), sign, len);
            Box::new(move |_| frame.clone())
        };
        let times = (self.begins, 0);
        if self.wanted > 0 {
            let pace = if self.wanted < self.rate { Pace::Timed } else { Pace::window() };
            self.answers(VICTIM, 7_001);
            self.starts(from, (self.wanted, FULL), times, pace, flow(7_001, SIGNS[BULK], 1_514));
        }
        self.answers(VICTIM, 7_002);
        let rate = (A_SECOND * 8 * SPARSE as u64, SPARSE as u64);
        self.starts(from, rate, times, Pace::Timed, flow(7_002, SIGNS[SPARSE_ONE], SPARSE));
    }

    /// A host of the LAN has asked for what comes for it, and answers.
    fn answers(&mut self, number: u8, port: u16) {
        if self.from == Side::Wan {
            let outside = match number {
                VICTIM => (Ipv4Addr::new(192, 0, 2, 1), 443),
                number => (Ipv4Addr::new(198, 51, 100, number), 443),
            };
            let frame = datagram(Side::Lan, number, port, outside).padded_to(SPARSE).to_vec();
            let make = Box::new(move |_| frame.clone());
            let rate = (A_SECOND * 512, SPARSE as u64);
            self.starts(Side::Lan, rate, (self.begins, 0), Pace::Blind, make);
        }
    }

    pub(super) fn run(mut self) -> Seen {
        while let Some(Reverse((now, at))) = self.due.pop() {
            self.serve(now);
            let sender = &mut self.senders[at];
            if let Pace::Window { .. } = sender.pace {
                self.fill_window(now, at);
                continue;
            }
            let phase = now.checked_div(sender.on).unwrap_or(0) % 2;
            if phase == 1 {
                let next = (now / sender.on + 1) * sender.on;
                self.due.push(Reverse((next, at)));
                continue;
            }
            // nobody's clock is exact
            let every = sender.every;
            let next = now + every - every / 8 + self.noise.below(every / 4 + 1);
            if next < sender.until {
                self.due.push(Reverse((next, at)));
            }
            self.send(now, at);
        }
        // what has not left within another second never comes, and waits for ever
        self.serve(self.end + SECOND);
        let mut waits = std::mem::take(&mut self.waits);
        waits.resize(waits.len().max(self.sparse), COUNTS);
        waits.sort_unstable();
        let p99 = waits.get((waits.len() * 99).div_ceil(100) - 1).copied().unwrap_or(COUNTS);
        Seen { bytes: self.bytes, p99_ms: super::whole(p99) / 1e6 }
    }

    /// A flow sends until a window's worth is under way.
    fn fill_window(&mut self, now: Time, at: usize) {
        let sender = &mut self.senders[at];
        let Pace::Window { done, until, alarm, is_asked } = &mut sender.pace else { return };
        if now >= *until {
            *done = sender.sent;
        }
        let count = WINDOW.saturating_sub(sender.sent - *done);
        if count > 0 {
            *until = now + PATIENCE;
        }
        *is_asked = false;
        if now >= sender.until {
            return;
        }
        if now >= *alarm {
            *alarm = (*until).max(now + 1);
            self.due.push(Reverse((*alarm, at)));
        }
        (0..count).for_each(|_| self.send(now, at));
    }

    /// A sender's next frame comes to the box.
    fn send(&mut self, now: Time, at: usize) {
        let sender = &mut self.senders[at];
        let mut frame = (sender.make)(sender.sent);
        if !matches!(sender.pace, Pace::Blind) {
            frame[HEADERS..HEADERS + 8].copy_from_slice(&now.to_be_bytes());
        }
        let is_sparse = frame.get(HEADERS + 8..NUMBERS) == Some(&SIGNS[SPARSE_ONE][..]);
        self.sparse += usize::from(is_sparse && now >= self.begins + SETTLES);
        if let Pace::Window { .. } = sender.pace {
            frame[NUMBERS..NUMBERS + 8].copy_from_slice(&(at as u64).to_be_bytes());
            frame[NUMBERS + 8..NUMBERS + 16].copy_from_slice(&sender.sent.to_be_bytes());
        }
        sender.sent += 1;
        let side = sender.side;
        self.receive(now, side, &frame);
    }

    fn receive(&mut self, now: Time, side: Side, bytes: &[u8]) {
        self.poll(now, Some((side, bytes)));
    }

    /// Sends what leaves up to then.
    fn serve(&mut self, now: Time) {
        while let Some(at) = self.driver.next_at(self.then).filter(|at| at.ns() <= now) {
            self.poll(at.ns(), None);
        }
    }

    fn poll(&mut self, now: Time, came: Option<(Side, &[u8])>) {
        let (from, left) = (self.from, &mut self.left);
        let left = |side: Side, bytes: &[u8]| {
            if side != from {
                left.push(Left::of(bytes));
            }
        };
        self.then = Instant::from_ns(now);
        self.driver.poll(self.then, &mut Single { came, left });
        let left = std::mem::take(&mut self.left);
        left.iter().for_each(|left| self.look(now, left));
        self.left = left;
        self.left.clear();
    }

    fn look(&mut self, now: Time, left: &Left) {
        let bytes = &left.head[..left.len.min(LOOKED_AT)];
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u64::from_be_bytes)
        };
        let sign = bytes.get(HEADERS + 8..NUMBERS);
        let sign = SIGNS.iter().position(|known| sign == Some(&known[..]));
        let (came, len) = (word(HEADERS), left.len as u64);
        let (at, number) = (word(NUMBERS), word(NUMBERS + 8));
        if matches!(sign, Some(BULK | HONEST)) {
            self.arrived(now, at, number);
        }
        if came < self.begins + SETTLES || !matches!(sign, Some(BULK | SPARSE_ONE)) {
            return;
        }
        self.bytes += len;
        if sign == Some(SPARSE_ONE) {
            self.waits.push(now - came);
        }
    }

    /// A frame of a flow with a window has arrived: those sent before have, or are lost.
    fn arrived(&mut self, now: Time, at: u64, number: u64) {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let Some(sender) = self.senders.get_mut(at) else { return };
        let Pace::Window { done, is_asked, .. } = &mut sender.pace else { return };
        *done = (number + 1).max(*done);
        if !*is_asked {
            *is_asked = true;
            self.due.push(Reverse((now, at)));
        }
    }
}

impl Left {
    fn of(bytes: &[u8]) -> Left {
        let mut head = [0; LOOKED_AT];
        let len = bytes.len().min(LOOKED_AT);
        head[..len].copy_from_slice(&bytes[..len]);
        Left { len: bytes.len(), head }
    }
}

impl Pace {
    const fn window() -> Pace {
        Pace::Window { done: 0, until: Time::MAX, alarm: 0, is_asked: false }
    }
}

/// A datagram of so many bytes with room for when it came, and a sign.
fn signed(build: &Build, sign: &[u8; 4], len: usize) -> Vec<u8> {
    let mut payload = vec![0; len - HEADERS];
    payload[8..12].copy_from_slice(sign);
    build.clone().payload(&payload).to_vec()
}
