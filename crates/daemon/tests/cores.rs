//! One link on several cores, as the memory, the rings and the classifier lay it out: whoever owns
//! a receive queue hands a frame to the core whose engine has its host, which sends it. The cores
//! are polled in an order drawn from a seed, so that a run can be had again; and once they are
//! threads.

#![expect(clippy::unwrap_used, reason = "this is a test")]

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_classify::Homes;
use weir_engine::{Config, Driver, Engine, Exchange, Planner};
use weir_io::{FrameSize, Umem};
use weir_packet::{
    Build, Burst, BySide, Consumer, Frame, Headers, Member, Pool, Producer, Side, Spares, ring,
};
use weir_policy::{Source, read};
use weir_units::limits::HANDOVER_FRAMES;
use weir_units::{Instant, Span};

const POLICY: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"1gbit\"\n\
     margin = \"100%\"\n[class.\"/a\"]\nmatch = \"udp\"\n";
const HOSTS: u8 = 12;
const FLOWS: u8 = 3;
/// Buffers of the memory: fewer than the queue of a leaf holds, so that no engine has to drop any.
const BUFFERS: usize = 512;
/// When a part of them is short.
const LOW: usize = 64;
/// A MAC of the LAN side behind which there are hosts by their addresses.
const ROUTER: [u8; 6] = [2, 9, 0, 0, 0, 1];
const GATEWAY: [u8; 6] = [2, 8, 0, 0, 0, 1];

/// Random numbers (Knuth's linear congruence).
#[derive(Clone)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most as u64) as usize
    }
}

/// One direction of a connection; its frames arrive at one queue, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stream {
    host: u8,
    flow: u8,
    side: Side,
}

impl Stream {
    fn all() -> impl Iterator<Item = Stream> {
        (0..HOSTS).flat_map(|host| {
            (0..FLOWS).flat_map(move |flow| Side::ALL.map(|side| Stream { host, flow, side }))
        })
    }

    /// Its frame with this number; the bytes say both. Every third host is behind a router, and
    /// every third flow comes in pieces: of few packet numbers, because a piece is known to be of
    /// its flow only while there is room to remember the first one.
    fn frame(self, number: u32) -> Vec<u8> {
        let Stream { host, flow, side } = self;
        let mac = if host.is_multiple_of(3) { ROUTER } else { [2, 0, 0, 0, 0, host] };
        let near = ([10, 0, 0, host], 1_000 + u16::from(flow)).into();
        let far = ([192, 0, 2, flow], 80).into();
        let build = match side {
            Side::Lan => Build::udp(near, far).macs(mac, GATEWAY),
            Side::Wan => Build::udp(far, near).macs(GATEWAY, mac),
        };
        let [a, b, c, d] = number.to_be_bytes();
        let payload = [host, flow, u8::from(side == Side::Wan), a, b, c, d];
        let build = build.payload(&payload).frame_len(80 + usize::from(d));
        match flow {
            0 => build.fragment(8 * u16::from(d & 1), d & 1 == 0, number / 2 % 4).to_vec(),
            _ => build.to_vec(),
        }
    }

    /// What `frame` wrote.
    fn read(bytes: &[u8]) -> (Stream, u32) {
        // a later piece has no header of UDP, and its first eight bytes are payload too
        let headers = Headers::parse(bytes);
        let at = usize::from(headers.payload_at);
        let [host, flow, side, a, b, c, d] = *bytes[at..].first_chunk().unwrap();
        let side = if side == 1 { Side::Wan } else { Side::Lan };
        (Stream { host, flow, side }, u32::from_be_bytes([a, b, c, d]))
    }
}

/// What a core has but its engine: queues of its own at both netdevs, and the rings.
struct Ports {
    me: usize,
    homes: Homes,
    arriving: BySide<VecDeque<Vec<u8>>>,
    /// By core; nothing goes by the own place.
    to: Vec<BySide<Producer>>,
    from: Vec<BySide<Consumer>>,
    /// Frames that the kernel has and has not sent.
    sending: VecDeque<(Side, Frame)>,
    left: Vec<(Side, Vec<u8>)>,
    dropped: Vec<Stream>,
    /// Arrivals that had to wait for a free buffer.
    waited: usize,
    draw: Draw,
    done: Arc<AtomicUsize>,
}

impl Ports {
    /// One frame that has arrived: it is for the own engine, or goes to another core.
    fn sort(&mut self, side: Side, pool: &mut Pool, frame: Frame, into: &mut Burst) {
        let home = self.homes.core(side, pool.bytes(&frame)) as usize;
        if home == self.me {
            return into.push(frame).unwrap();
        }
        if let Err(frame) = self.to[home][side].push(pool, frame) {
            self.dropped.push(Stream::read(pool.bytes(&frame)).0);
            self.done.fetch_add(1, Ordering::Relaxed);
            pool.give(frame);
        }
    }
}

impl Exchange for Ports {
    fn receive(&mut self, port: Member, pool: &mut Pool, into: &mut Burst) -> usize {
        let side = port.side;
        let mut came: usize = self.from.iter_mut().map(|from| from[side].receive(pool, into)).sum();
        while !into.is_full()
            && let Some(bytes) = self.arriving[side].front()
        {
            let Some(frame) = pool.fill(bytes) else {
                self.waited += 1;
                break;
            };
            self.arriving[side].pop_front();
            self.sort(side, pool, frame, into);
            came += 1;
        }
        self.to.iter().for_each(|to| to[side].publish());
        came
    }

    fn transmit(&mut self, port: Member, pool: &mut Pool, out: &mut Burst) {
        for _ in 0..self.draw.below(90) {
            let Some(frame) = out.pop() else { break };
            self.sending.push_back((port.side, frame));
        }
        for _ in 0..self.draw.below(90) {
            let Some((side, frame)) = self.sending.pop_front() else { break };
            self.left.push((side, pool.bytes(&frame).to_vec()));
            self.done.fetch_add(1, Ordering::Relaxed);
            pool.give(frame);
        }
    }
}

/// One core: its engine with its part of the memory, and its ports.
struct Core {
    driver: Driver,
    ports: Ports,
    spares: Spares,
    now: Instant,
    has_moved: bool,
}

impl Core {
    fn poll(&mut self) {
        // a thread that has nothing to do polls often: its time must not run away from the others'
        let most = if self.has_moved { 200 } else { 4 };
        self.now += Span::from_us(1 + self.ports.draw.below(most) as u64);
        self.spares.balance(self.driver.engine_mut().pool_mut());
        self.has_moved = self.driver.poll(self.now, &mut self.ports);
    }
}

/// So many cores of one link over one memory, with rings of so many slots from each to each.
fn cores(count: usize, slots: usize, seed: u64) -> Vec<Core> {
    let plan = read(Source::new("p", POLICY.to_owned()), &mut |_| Err(String::new()));
    let mut plan = plan.expect("is text").plans.remove(0);
    plan.routers = vec![ROUTER];
    let (_, pools) = Umem::with_pools(BUFFERS, FrameSize::Large, count).unwrap();
    let spares = Spares::among(&pools, LOW);
    let memory = pools[0].memory();
    let of_all = u32::try_from(count).ok().and_then(NonZeroU32::new).unwrap();
    let mut froms: Vec<Vec<BySide<Consumer>>> = (0..count).map(|_| Vec::new()).collect();
    let done = Arc::new(AtomicUsize::new(0));
    let mut cores = Vec::new();
    for (me, (pool, spares)) in pools.into_iter().zip(spares).enumerate() {
        let config = Config { queue_frames: BUFFERS, flows: 256, seed: 5, ..Config::default() };
        let first = Planner::new().prepare(&plan).expect("fits");
        let engine = Engine::new(config, pool, first, Instant::ZERO);
        let mut to = Vec::new();
        for from in &mut froms {
            let BySide { lan, wan } = BySide::SIDES.map(|_| ring(memory, slots));
            to.push(BySide { lan: lan.0, wan: wan.0 });
            from.push(BySide { lan: lan.1, wan: wan.1 });
        }
        let ports = Ports {
            me,
            homes: engine.classifier().homes(of_all),
            arriving: BySide::default(),
            to,
            from: Vec::new(),
            sending: VecDeque::new(),
            left: Vec::new(),
            dropped: Vec::new(),
            waited: 0,
            draw: Draw(seed + me as u64),
            done: done.clone(),
        };
        let driver = Driver::new(engine, &Member::ONE_EACH);
        cores.push(Core { driver, ports, spares, now: Instant::ZERO, has_moved: true });
    }
    cores.iter_mut().zip(froms).for_each(|(core, from)| core.ports.from = from);
    cores
}

/// The next frames of some streams, each at its queue. With `to_one`, all queues are the first
/// core's, as where all frames have one hash.
struct Wire {
    sent: BTreeMap<Stream, u32>,
    to_one: bool,
}

impl Wire {
    fn send(&mut self, cores: &mut [Core], draw: &mut Draw, frames: usize) {
        let streams: Vec<Stream> = Stream::all().collect();
        for _ in 0..frames {
            let at = draw.below(streams.len());
            let number = self.sent.entry(streams[at]).or_insert(0);
            let bytes = streams[at].frame(*number);
            *number += 1;
            // a hash of a connection has nothing to do with the number of its host
            let queue = if self.to_one { 0 } else { at * 7 % 5 % cores.len() };
            cores[queue].ports.arriving[streams[at].side].push_back(bytes);
        }
    }
}

/// Frames left in order, through their host's core, and each once; all buffers are back.
fn judge(cores: Vec<Core>, sent: &BTreeMap<Stream, u32>) -> usize {
    let mut next: BTreeMap<Stream, u32> = BTreeMap::new();
    let mut homes: BTreeMap<u8, usize> = BTreeMap::new();
    let mut lost = 0;
    for Core { ports, .. } in &cores {
        assert_eq!(
            ports.dropped.len() as u64,
            ports.to.iter().flat_map(BySide::values).map(Producer::refused).sum::<u64>()
        );
        lost += ports.dropped.len();
        for stream in &ports.dropped {
            *next.entry(*stream).or_insert(0) += 1;
        }
        for (side, bytes) in &ports.left {
            let (stream, _) = Stream::read(bytes);
            assert_eq!(*side, stream.side.other());
            assert_eq!(ports.me, *homes.entry(stream.host).or_insert(ports.me), "{stream:?}");
            *next.entry(stream).or_insert(0) += 1;
        }
    }
    assert_eq!(&next, sent, "as many of each stream as were sent");
    for Core { ports, .. } in &cores {
        let mut last: BTreeMap<Stream, u32> = BTreeMap::new();
        for (_, bytes) in &ports.left {
            let (stream, number) = Stream::read(bytes);
            assert_eq!(bytes, &stream.frame(number), "{stream:?} {number}");
            let before = last.insert(stream, number);
            // a piece whose first one was lost is of no known flow, and keeps to nobody's order
            let is_kept = lost == 0 || stream.flow != 0;
            let is_behind = before.is_none_or(|before| before < number);
            assert!(is_behind || !is_kept, "{stream:?} {number}");
        }
    }
    let mut ends = Vec::new();
    for Core { driver, mut ports, spares, .. } in cores {
        let mut engine = driver.into_engine();
        ports.sending.drain(..).for_each(|(_, frame)| engine.pool_mut().give(frame));
        ends.push((engine, ports, spares));
    }
    let mut numbers = vec![0; BUFFERS];
    for (engine, ports, spares) in &mut ends {
        let pool = engine.pool_mut();
        spares.reclaim(pool);
        let under_way = ports.from.iter_mut().flat_map(BySide::values_mut);
        assert_eq!(under_way.map(|from| from.reclaim(pool)).sum::<usize>(), 0);
        while let Some(frame) = pool.take() {
            numbers[frame.index() as usize] += 1;
        }
    }
    assert!(numbers.iter().all(|&times| times == 1), "a buffer is lost or doubled");
    lost
}

/// Polls the cores in an order drawn from the seed until all frames have left; says how many were
/// lost to full rings, and how often frames waited for a buffer.
fn in_virtual_order(count: usize, slots: usize, to_one: bool, seed: u64) -> (usize, usize) {
    let mut cores = cores(count, slots, seed);
    let mut draw = Draw(seed);
    let mut wire = Wire { sent: BTreeMap::new(), to_one };
    for _ in 0..400 {
        let frames = draw.below(40);
        wire.send(&mut cores, &mut draw, frames);
        for _ in 0..draw.below(4) {
            let at = draw.below(count);
            cores[at].poll();
        }
    }
    let all: usize = wire.sent.values().map(|&sent| sent as usize).sum();
    let done = cores[0].ports.done.clone();
    let mut polls = 0;
    while done.load(Ordering::Relaxed) < all {
        let at = draw.below(count);
        cores[at].poll();
        polls += 1;
        assert!(polls < 100_000, "{} of {all} have left", done.load(Ordering::Relaxed));
    }
    let waited = cores.iter().map(|core| core.ports.waited).sum();
    (judge(cores, &wire.sent), waited)
}

#[test]
fn both_directions_of_a_host_meet_in_one_engine_and_nothing_is_lost() {
    for (seed, count) in (0..12).zip([2, 3, 4].into_iter().cycle()) {
        let (lost, _) = in_virtual_order(count, HANDOVER_FRAMES, false, seed);
        assert_eq!(lost, 0, "seed {seed}");
    }
}

#[test]
fn one_queue_feeds_all_cores_and_gets_its_buffers_back() {
    let mut waited = 0;
    for seed in 0..6 {
        let (lost, seed_waited) = in_virtual_order(2, HANDOVER_FRAMES, true, seed);
        assert_eq!(lost, 0, "seed {seed}");
        waited += seed_waited;
    }
    println!("{waited} times a frame waited for a buffer");
}

#[test]
fn a_full_ring_costs_frames_that_are_counted_and_no_buffers() {
    let lost: usize = (0..6).map(|seed| in_virtual_order(2, 8, false, seed).0).sum();
    assert!(lost > 0, "the rings were never full");
}

#[test]
fn two_threads_carry_a_link() {
    let mut cores = cores(2, HANDOVER_FRAMES, 9);
    let mut wire = Wire { sent: BTreeMap::new(), to_one: false };
    wire.send(&mut cores, &mut Draw(3), 20_000);
    let threads = cores.into_iter().map(|mut core| {
        std::thread::spawn(move || {
            let mut polls = 0u32;
            while core.ports.done.load(Ordering::Relaxed) < 20_000 {
                core.poll();
                polls += 1;
                assert!(polls < 50_000_000, "frames are lost");
                std::thread::yield_now();
            }
            core
        })
    });
    let threads: Vec<_> = threads.collect();
    let cores = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    judge(cores, &wire.sent);
}
