//! After start nothing allocates: not for a new flow, not for a new host, not for a change of
//! policy, not for a connection that is steadied, not for a flood of SYNs, not for connections that
//! move to another engine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use weir_engine::{Config, Cursor, Engine, Exported, Planner};
use weir_packet::{Build, Burst, Pool, Side};
use weir_policy::{Source, read};
use weir_units::{Instant, Span};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; only a counter is added.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|c| c.set(c.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One host's connections are steadied, or all of them go by.
fn steady(is_steady: bool) -> weir_policy::Plan {
    let tcp = if is_steady { "tcp = { window = true, pace-acks = true, mss = 500 }" } else { "" };
    let text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10mbit\"\nup = \"10mbit\"\n\
         [class.\"/all\"]\nmatch = \"tcp\"\nceil = \"1mbit\"\n{tcp}\n"
    );
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    reading.plans.into_iter().next().expect("has a link")
}

/// Segments of connections between hosts behind a port each and one far server.
struct Hosts {
    engine: Engine,
    planner: Planner,
    now: Instant,
    burst: Burst,
    frame: Vec<u8>,
    /// Windows of acknowledgements that left towards the LAN.
    windows: Vec<u16>,
}

impl Hosts {
    fn new(flows: usize) -> Hosts {
        let config = Config { flows, watch: true, ..Config::default() };
        let mut planner = Planner::of(&config);
        let first = planner.prepare(&steady(true)).expect("fits");
        let engine = Engine::new(config, Pool::new(8_192, 2_048), first, Instant::ZERO);
        let (now, burst) = (Instant::ZERO, Burst::new());
        let windows = Vec::with_capacity(100_000);
        Hosts { engine, planner, now, burst, frame: Vec::new(), windows }
    }

    /// Makes a segment; this allocates.
    fn build(&mut self, host: u32, side: Side, flags: u8, fields: (u32, u32, usize)) {
        let host = std::net::SocketAddr::from((std::net::Ipv4Addr::from_bits(host), 4_000));
        let far = "192.0.2.1:80".parse().expect("an address");
        let build = if side == Side::Lan { Build::tcp(host, far) } else { Build::tcp(far, host) };
        let build = build.tcp_flags(flags).tcp_seq(fields.0).tcp_ack(fields.1);
        let options: &[u8] = if flags & 2 != 0 { &[2, 4, 5, 0xb4] } else { &[] };
        self.frame = build.tcp_options(options).payload_len(fields.2).to_vec();
    }

    /// The segment arrives, and what may leave leaves; returns how often this allocated.
    fn send(&mut self, side: Side, after: Span) -> u64 {
        let before = COUNT.with(Cell::get);
        self.now += after;
        if let Some(frame) = self.engine.pool_mut().fill(&self.frame) {
            let _ = self.burst.push(frame);
        }
        self.engine.receive(self.now, side, &mut self.burst);
        self.leave();
        self.engine.age(self.now);
        COUNT.with(Cell::get) - before
    }

    fn leave(&mut self) {
        for side in [Side::Lan, Side::Wan] {
            self.engine.transmit(self.now, side, &mut self.burst);
            while let Some(frame) = self.burst.pop() {
                let bytes = self.engine.pool().bytes(&frame);
                if side == Side::Lan && bytes[47] == 0x10 {
                    self.windows.push(u16::from_be_bytes([bytes[48], bytes[49]]));
                }
                self.engine.pool_mut().give(frame);
            }
        }
    }

    /// Everything leaves.
    fn settle(&mut self) {
        while let Some(at) = self.engine.next_wakeup() {
            self.now = self.now.max(at);
            self.leave();
        }
    }

    /// A connection opens, sends ten segments, and all are acknowledged at once.
    fn talk(&mut self, host: u32, from: u32) -> u64 {
        let mut allocated = 0;
        let mut say = |hosts: &mut Hosts, side, flags, fields, ms| {
            hosts.build(host, side, flags, fields);
            allocated += hosts.send(side, Span::from_ms(ms));
        };
        if from == 1 {
            say(self, Side::Lan, 0x02, (0, 0, 0), 1);
            say(self, Side::Wan, 0x12, (0, 1, 0), 20);
            say(self, Side::Lan, 0x10, (1, 1, 0), 5);
        }
        for n in 0..10 {
            say(self, Side::Lan, 0x10, (from + n * 500, 1, 500), 0);
        }
        for n in 1..=10 {
            say(self, Side::Wan, 0x10, (1, from + n * 500, 0), u64::from(n == 1) * 20);
        }
        allocated
    }
}

#[test]
fn nothing_allocates_for_connections_that_are_steadied() {
    let mut hosts = Hosts::new(256);
    let mut allocated = 0;
    for n in 0..400 {
        allocated += hosts.talk(0x0a00_0000 + n, 1);
        if n % 50 == 49 {
            // with acknowledgements that wait
            let mut change = hosts.planner.prepare(&steady(n % 100 == 99)).expect("fits");
            let before = COUNT.with(Cell::get);
            while !hosts.engine.apply(hosts.now, &mut change) {}
            allocated += COUNT.with(Cell::get) - before;
        }
    }
    assert_eq!(allocated, 0, "allocations on the packet path");
    let counters = hosts.engine.conditioner().counters();
    assert!(counters.paced > 500 && counters.sized > 500, "{counters:?}");
}

/// A million addresses each send one SYN while twenty connections are open.
#[test]
fn a_flood_of_syns_takes_no_place_from_who_is_alive() {
    let mut hosts = Hosts::new(1_024);
    for n in 0..20 {
        hosts.talk(0x0a00_0000 + n, 1);
    }
    hosts.settle();
    let (mut allocated, mut random) = (0, 1u32);
    hosts.build(0x0b00_0000, Side::Lan, 0x02, (7, 0, 0));
    for n in 0..1_000_000u32 {
        random = random.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        // its address and port; nobody looks at the checksum
        hosts.frame[27..30].copy_from_slice(&random.to_be_bytes()[..3]);
        hosts.frame[34..36].copy_from_slice(&random.to_be_bytes()[2..]);
        allocated += hosts.send(Side::Lan, Span::from_us(u64::from(n % 5)));
    }
    assert_eq!(allocated, 0, "allocations on the packet path");
    assert_eq!(hosts.engine.conditioner().held(), 0);
    assert!(hosts.engine.classifier().flow_capacity() <= 1_024);
    hosts.settle();
    // all that were open still are, and are steadied
    let before = *hosts.engine.conditioner().counters();
    hosts.windows.clear();
    for n in 0..20 {
        hosts.talk(0x0a00_0000 + n, 5_001);
        hosts.settle();
    }
    let after = hosts.engine.conditioner().counters();
    assert_eq!(after.unknown, before.unknown, "one was forgotten");
    assert_eq!(hosts.windows.len(), 200);
    assert!(hosts.windows.iter().all(|&window| window < 65_535), "{:?}", hosts.windows);
}

/// Connections move to another engine and back, with acknowledgements that wait.
#[test]
fn nothing_allocates_for_connections_that_move() {
    let (mut from, mut to) = (Hosts::new(1_024), Hosts::new(1_024));
    for n in 0..100 {
        from.talk(0x0a00_0000 + n, 1);
    }
    let (mut batch, mut bytes) = (Exported::with_room(), Vec::with_capacity(1 << 20));
    let before = COUNT.with(Cell::get);
    let (mut cursor, mut placed) = (Some(Cursor::START), 0);
    while let Some(at) = cursor {
        cursor = from.engine.export(from.now, at, &mut batch);
        bytes.clear();
        batch.write(&mut bytes);
        batch.read(&bytes).expect("is a batch");
        placed += to.engine.import(from.now, &batch).placed;
        from.engine.release(from.now, &batch);
    }
    assert_eq!(COUNT.with(Cell::get) - before, 0, "allocations");
    assert_eq!(placed, 100);
}

fn plan(rate: &str) -> weir_policy::Plan {
    let text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"{rate}\"\nup = \"{rate}\"\n\
         [class.\"/voice\"]\nmatch = \"dscp ef\"\nqueue = \"fifo\"\ndscp = \"ef\"\n\
         [class.\"/web\"]\nmatch = \"lan port 2000-3000\"\nqueue = \"fair-host\"\n\
         session = {{ min = \"10kbit\", max = \"1mbit\", count = 3, next = \"wait\" }}\n\
         [class.\"/hosts\"]\nmatch = \"lan 10.0.0.0/8\"\n\
         each = {{ by = \"lan-host\", count = 100 }}\npolice = {{ rate = \"{rate}\" }}\n\
         [class.\"/free\"]\nmatch = \"lan 11.0.0.0/8\"\nenforce = \"weir\"\n\
         each = {{ by = \"lan-host\", count = 100, rate = \"10kbit\" }}\nrate = \"1mbit\"\n\
         [class.\"/other\"]\nmatch = \"lan 12.0.0.0/8\"\nenforce = \"hsdba\"\n\
         each = {{ by = \"lan-host\", count = 100 }}\n"
    );
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    reading.plans.into_iter().next().expect("has a link")
}

#[test]
fn nothing_allocates_after_start() {
    let mut planner = Planner::new();
    let first = planner.prepare(&plan("10mbit")).unwrap();
    let config = Config { flows: 1_024, watch: true, ..Config::default() };
    let mut engine = Engine::new(config, Pool::new(4_096, 2_048), first, Instant::ZERO);
    let mut change = planner.prepare(&plan("20mbit")).unwrap();
    let frames: Vec<Vec<u8>> = (0..4_000u32)
        .map(|n| {
            let host = std::net::Ipv4Addr::from_bits(0x0a00_0000 + ((n % 3) << 24) + n % 300);
            let from = std::net::SocketAddr::from((host, 1_000 + (n % 60_000) as u16));
            Build::udp(from, "192.0.2.1:53".parse().unwrap()).payload_len(100).to_vec()
        })
        .collect();
    let mut burst = Burst::new();
    let mut out = Burst::new();
    let mut now = Instant::ZERO;

    let before = COUNT.with(Cell::get);
    for (n, bytes) in frames.iter().enumerate() {
        if let Some(frame) = engine.pool_mut().fill(bytes) {
            let _ = burst.push(frame);
        }
        if burst.is_full() {
            now += Span::from_us(50);
            engine.receive(now, Side::Lan, &mut burst);
            engine.transmit(now, Side::Wan, &mut out);
            while let Some(frame) = out.pop() {
                engine.pool_mut().give(frame);
            }
            engine.age(now);
        }
        if n == 2_000 {
            while !engine.apply(now, &mut change) {}
        }
    }
    let after = COUNT.with(Cell::get);
    assert_eq!(after - before, 0, "allocations on the packet path");
    assert!(engine.classifier().counters().hosts_made >= 100, "hosts were made on the way");
}
