//! After start nothing allocates: not for a new flow, not for a new host, not for a change of
//! policy.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use weir_engine::{Config, Engine, Planner};
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
    let config = Config { flows: 1_024, ..Config::default() };
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
