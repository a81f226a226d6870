//! The engine: any frames in any order under changing policies. The first bytes choose, the rest
//! are frames: a length, a side, and that many bytes, with time passing in between.

use weir_engine::{Config, Driver, Engine, Exchange, Planner, Single, Snapshot};
use weir_packet::{Burst, Member, Pool, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Span};

/// Nothing is lost and nothing is invented, whatever comes.
pub fn engine(data: &[u8]) {
    let Some((&choice, mut rest)) = data.split_first() else { return };
    let mut planner = Planner::new();
    let first = planner.prepare(&plan(choice)).expect("a small policy fits");
    let config = Config { queue_frames: 8, flows: 16, seed: 3, watch: true, ..Config::default() };
    let engine = Engine::new(config, Pool::new(20, 2_048), first, Instant::ZERO);
    let mut driver = Driver::new(engine, &Member::ONE_EACH);
    let mut now = Instant::ZERO;
    while let [what, length, more @ ..] = rest {
        let length = usize::from(*length) * if what & 4 == 0 { 1 } else { 6 };
        let (bytes, behind) = more.split_at(length.min(more.len()));
        rest = behind;
        now += Span::from_us(u64::from(*what) * 37);
        if what & 0xe0 == 0xe0 {
            driver.change(planner.prepare(&plan(*what)).expect("a small policy fits").into());
        }
        let side = if what & 1 == 0 { Side::Lan } else { Side::Wan };
        let mut ports = Ports { came: Some((side, bytes)), is_blocked: what & 2 != 0 };
        driver.poll(now, &mut ports);
        while driver.is_changing() {
            driver.poll(now, &mut ports);
        }
        drop(driver.changed());
        balance(&driver);
    }
}

/// A frame comes, and what leaves goes away, unless the ports are blocked.
struct Ports<'f> {
    came: Option<(Side, &'f [u8])>,
    is_blocked: bool,
}

impl Exchange for Ports<'_> {
    fn receive(&mut self, port: Member, pool: &mut Pool, into: &mut Burst) -> usize {
        Single { came: self.came.take_if(|(side, _)| *side == port.side), left: |_, _: &[u8]| {} }
            .receive(port, pool, into)
    }

    fn transmit(&mut self, _: Member, pool: &mut Pool, out: &mut Burst) {
        if !self.is_blocked {
            out.drain().for_each(|frame| pool.give(frame));
        }
    }
}

fn balance(driver: &Driver) {
    let engine = driver.engine();
    let mut snapshot = Snapshot::default();
    let mut cursor = Some(0);
    while let Some(from) = cursor {
        cursor = engine.snapshot(from, &mut snapshot);
        assert!(snapshot.leaves.iter().all(|leaf| leaf.counters.iter().all(|(_, c)| c.balance())));
    }
    assert!(snapshot.total.iter().all(|(_, c)| c.balance()));
    let held: u64 = snapshot.total.iter().map(|(_, c)| c.held.frames).sum();
    let held = held + driver.unsent() as u64;
    assert_eq!(engine.pool().free() as u64 + held, engine.pool().capacity() as u64);
}

fn plan(choice: u8) -> Plan {
    let text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"{0}mbit\"\nup = \"{0}mbit\"\n\
         [class.\"/a\"]\nmatch = \"dscp ef\"\ndscp = {3}\n\
         [class.\"/h{1}\"]\nmatch = \"udp\"\n\
         each = {{ by = \"lan-host\", count = 2, age = \"1ms\" }}\n\
         police = {{ rate = \"{0}mbit\", peak-burst = \"2kb\", burst = \"2kb\", {4} }}\n\
         [class.\"/b\"]\nmatch = [\"tcp\", \"length 0-{2}\"]\n[class.\"/b/c\"]\n\
         match = {{ when = \"tcp\", bytes = {{ at = \"payload 0\", value = {choice} }} }}\n",
        u32::from(choice & 31) + 1,
        choice & 3,
        u32::from(choice) + 60,
        choice & 63,
        if choice & 32 == 0 { "excess = 12" } else { "colours = [10, 0, 14], aware = true" },
    );
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    reading.plans.into_iter().next().expect("the policy is right")
}
