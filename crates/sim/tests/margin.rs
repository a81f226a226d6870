//! A margin that is found, behind a line that changes while it is full.

use std::net::IpAddr;

use weir_engine::Config;
use weir_policy::{Source as Text, read};
use weir_shape::{FrameCost, Layer};
use weir_sim::impair::{Impairments, Limit};
use weir_sim::tcp::TcpSpec;
use weir_sim::{FlowSpec, LinkSpec, Queue, Source, World};
use weir_units::{Instant, Rate, Span, Way};

const IP: FrameCost = FrameCost { layer: Layer::Ip, overhead: 0 };

fn wire(ms: u64) -> LinkSpec {
    let path = Impairments { delay: Span::from_ms(ms), ..Impairments::default() };
    LinkSpec { path, ..LinkSpec::default() }
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

/// A box behind a line, told 100 Mbit/s, with transfers from 10 and 40 ms away.
struct Behind {
    world: World,
    line: usize,
    now: Instant,
}

impl Behind {
    fn new(line: u64, bulk: u16) -> Behind {
        let text = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100mbit\"\nup = \"40mbit\"\n\
                    counts = \"ip\"\nmargin = \"auto\"\n[class.\"/all\"]\nmatch = \"any\"\n";
        let reading = read(Text::new("p", text), &mut |_| Err(String::new())).expect("is text");
        let plan = reading.plans.into_iter().next().expect("has a link");
        let mut world = World::new(1);
        let host = |n| IpAddr::from([10, 0, 0, n]);
        let (lan, near, far) = (world.host(host(1)), world.host(host(2)), world.host(host(3)));
        let inner = world.engine(&plan, Config::default()).expect("fits");
        let isp = world.switch();
        world.connect(lan, inner, &wire(0), &wire(0));
        let up = LinkSpec { rate: Some(mbit(40)), layers: IP, ..wire(0) };
        let limit = Limit::Bytes(1_000_000);
        let queue = Queue { limit, ..Queue::default() };
        let down = LinkSpec { rate: Some(mbit(line)), layers: IP, queue, ..wire(0) };
        let (_, line) = world.connect(inner, isp, &up, &down);
        world.connect(isp, near, &wire(5), &wire(5));
        world.connect(isp, far, &wire(20), &wire(20));
        for n in 0..bulk {
            let from = if n % 2 == 0 { near } else { far };
            let tcp = TcpSpec::preset("linux-now").expect("is known");
            let spec = FlowSpec::new(from, lan, Source::Bulk { bytes: None });
            let start = Instant::ZERO + Span::from_ms(u64::from(n) * 150);
            world.flow(&FlowSpec { start, tcp: Box::new([tcp.clone(), tcp]), ..spec });
        }
        Behind { world, line, now: Instant::ZERO }
    }

    /// So many seconds: the mean wait at the provider in ms, and Mbit/s that came over the line.
    fn run(&mut self, seconds: u64) -> (u64, u64) {
        let before = *self.world.link(self.line);
        self.now += Span::from_secs(seconds);
        self.world.run_until(self.now);
        let after = self.world.link(self.line);
        let frames = after.sent - before.sent;
        let waits = (after.wait_ns_sum - before.wait_ns_sum) / frames.max(1);
        (waits / 1_000_000, (after.sent_bytes - before.sent_bytes) * 8 / seconds / 1_000_000)
    }
}

#[test]
fn a_bottleneck_elsewhere_does_not_hold_the_link_once_others_come() {
    let mut behind = Behind::new(100, 0);
    let lan = 0;
    let remote = behind.world.host(IpAddr::from([10, 0, 0, 9]));
    let slow = LinkSpec { rate: Some(mbit(52)), layers: IP, ..wire(5) };
    // the box is node 3, the provider's switch node 4
    behind.world.connect(4, remote, &wire(5), &slow);
    let mut add = |from, start| {
        let tcp = TcpSpec::preset("linux-now").expect("is known");
        let spec = FlowSpec::new(from, lan, Source::Bulk { bytes: None });
        let start = Instant::ZERO + Span::from_secs(start);
        behind.world.flow(&FlowSpec { start, tcp: Box::new([tcp.clone(), tcp]), ..spec });
    };
    (0..3).for_each(|_| add(remote, 0));
    (0..4).for_each(|n| add(1 + n % 2, 15));
    behind.run(19);
    let (waits, came) = behind.run(5);
    assert!(waits <= 10 && came >= 90, "{waits} ms, {came} Mbit/s");
}

#[test]
fn a_line_that_changes_is_followed() {
    let mut behind = Behind::new(80, 6);
    for (line, finds) in [(80, 10), (60, 10), (90, 40)] {
        behind.world.set_rate(behind.line, mbit(line));
        behind.run(finds);
        let (waits, came) = behind.run(20);
        assert!(waits <= 10 && came * 100 >= line * 94, "{line}: {waits} ms, {came} Mbit/s");
    }
}

/// The queue would be gone if all slowed down: it is not taken for another's because one does not.
#[test]
fn a_stream_that_does_not_slow_down_holds_nobody_above_a_line_that_falls() {
    for stream in [15, 20] {
        let mut behind = Behind::new(80, 3);
        let source = Source::Cbr { rate: mbit(stream), bytes: 1_500 };
        let start = Instant::ZERO + Span::from_secs(3);
        behind.world.flow(&FlowSpec { start, ..FlowSpec::new(1, 0, source) });
        behind.run(10);
        behind.world.set_rate(behind.line, mbit(40));
        behind.run(1);
        let mut above = 0;
        let waits: u64 = (0..30)
            .map(|_| {
                let (waits, came) = behind.run(1);
                assert!(came >= 36, "{stream}: {came} Mbit/s of 40");
                let margin = behind
                    .world
                    .engine_of(3)
                    .and_then(|engine| engine.margin(Way::Down))
                    .expect("finds");
                above += u64::from(margin.rate() > mbit(40));
                waits
            })
            .sum();
        assert!(waits / 30 <= 40 && above == 0, "{stream}: {} ms, {above} s above", waits / 30);
    }
}

/// A box before a line upstream, told 40 Mbit/s; the modem before the line, and the provider's
/// switch behind it.
fn before(line: u64, margin: &str) -> (World, [usize; 4]) {
    let text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100mbit\"\nup = \"40mbit\"\n\
         counts = \"ip\"\nmargin = {margin}\n[class.\"/all\"]\nmatch = \"any\"\n"
    );
    let reading = read(Text::new("p", text), &mut |_| Err(String::new())).expect("is text");
    let mut world = World::new(1);
    let lan = world.host(IpAddr::from([10, 0, 0, 1]));
    let inner = world.engine(&reading.plans[0], Config::default()).expect("fits");
    let isp = world.switch();
    world.connect(lan, inner, &wire(0), &wire(0));
    let queue = Queue { limit: Limit::Bytes(1_000_000), ..Queue::default() };
    let up = LinkSpec { rate: Some(mbit(line)), layers: IP, queue, ..wire(0) };
    let down = LinkSpec { rate: Some(mbit(100)), layers: IP, ..wire(0) };
    let (modem, _) = world.connect(inner, isp, &up, &down);
    (world, [lan, inner, isp, modem])
}

/// One more, of a LAN host of its own.
fn upload(world: &mut World, from: usize, to: usize, n: u8) {
    let tcp = TcpSpec::preset("linux-now").expect("is known");
    let spec = FlowSpec::new(from, to, Source::Bulk { bytes: None });
    let spec = FlowSpec { from_address: Some(IpAddr::from([10, 0, 0, 100 + n])), ..spec };
    let start = Instant::ZERO + Span::from_ms(u64::from(n) * 150);
    world.flow(&FlowSpec { start, tcp: Box::new([tcp.clone(), tcp]), ..spec });
}

/// With uploads to a host 20 ms away: the mean wait before the line in ms, and kbit/s that it
/// carried, from 3 s to 20 s.
fn uploads(line: u64, bulk: u8, margin: &str) -> (u64, u64) {
    let (mut world, [lan, _, isp, modem]) = before(line, margin);
    let far = world.host(IpAddr::from([10, 0, 0, 2]));
    world.connect(isp, far, &wire(10), &wire(10));
    (0..bulk).for_each(|n| upload(&mut world, lan, far, n));
    world.run_until(Instant::ZERO + Span::from_secs(3));
    let before = *world.link(modem);
    world.run_until(Instant::ZERO + Span::from_secs(20));
    let after = world.link(modem);
    let frames = (after.sent - before.sent).max(1);
    let waits = (after.wait_ns_sum - before.wait_ns_sum) / frames / 1_000_000;
    (waits, (after.sent_bytes - before.sent_bytes) * 8 / 17 / 1_000)
}

#[test]
fn a_line_upstream_that_carries_less_is_found() {
    let (waits, _) = uploads(4, 1, "{ up = \"100%\" }");
    assert!(waits > 500, "without, the modem fills: {waits} ms");
    for line in [40, 32, 20, 4] {
        for bulk in [1, 4] {
            let (waits, came) = uploads(line, bulk, "{ up = \"auto\" }");
            assert!(waits <= 10, "{bulk} on {line}: {waits} ms");
            assert!(came >= line * 920, "{bulk} on {line}: {came} kbit/s");
        }
    }
}

#[test]
fn a_bottleneck_behind_the_line_takes_nothing_from_what_is_found_upstream() {
    let (mut world, [lan, inner, isp, _]) = before(20, "{ up = \"auto\" }");
    let near = world.host(IpAddr::from([10, 0, 0, 2]));
    world.connect(isp, near, &wire(20), &wire(20));
    // its data wait there, and their acknowledgements say 9 where 12 Mbit/s have left
    let queue = Queue { limit: Limit::Bytes(1_000_000), ..Queue::default() };
    let far = world.host(IpAddr::from([10, 0, 0, 3]));
    let slow = LinkSpec { rate: Some(mbit(9)), layers: IP, queue, ..wire(40) };
    world.connect(isp, far, &slow, &wire(40));
    (0..2).for_each(|n| upload(&mut world, lan, near, n));
    (2..5).for_each(|n| upload(&mut world, lan, far, n));
    let mut off = Vec::new();
    for tenth in 50..300 {
        world.run_until(Instant::ZERO + Span::from_ms(tenth * 100));
        let margin =
            world.engine_of(inner).and_then(|engine| engine.margin(Way::Up)).expect("finds");
        let line = margin.line().unwrap_or(mbit(20));
        if line.bps().abs_diff(20_000_000) > 600_000 {
            off.push((tenth, line));
        }
    }
    // by acknowledgements alone it was 11 % too low or 12 % too high, in 77 of 250 looks
    assert!(off.len() <= 5, "{off:?}");
}

/// Three hosts upload to servers of their own, or to one, and a fourth sends for nobody: its
/// accomplice says at once, or later, that all has arrived. The line falls to a half at 9 s. Means
/// of the wait before the modem in ms, from 7 to 9 s and from 14 to 20 s, and the worst of what was
/// carried of the line in these two, in per cent.
fn beside_a_liar(rate: u64, late: u64, has_own_servers: bool) -> ([u64; 2], u64) {
    let (mut world, [lan, _, isp, modem]) = before(20, "{ up = \"auto\" }");
    let servers = [2, 3, 4, 5].map(|n| {
        let server = world.host(IpAddr::from([10, 0, 0, n]));
        world.connect(isp, server, &wire(7 * u64::from(n)), &wire(5));
        server
    });
    for n in 0..6 {
        let server = if has_own_servers { n / 2 } else { 3 };
        upload(&mut world, lan, servers[usize::from(server)], n / 2);
    }
    let late = Span::from_ms(late);
    let source = Source::Forged { rate: mbit(rate), bytes: 1_514, late };
    let spec = FlowSpec::new(lan, servers[3], source);
    let start = Instant::ZERO + Span::from_secs(2);
    let from_address = Some(IpAddr::from([10, 0, 0, 200]));
    world.flow(&FlowSpec { from_address, start, ..spec });
    let mut waits = [0; 2];
    let mut least = 100;
    for (at, (from, to), line) in [(0, (7, 9), 20), (1, (14, 20), 10)] {
        world.run_until(Instant::ZERO + Span::from_secs(from));
        let before = *world.link(modem);
        world.run_until(Instant::ZERO + Span::from_secs(to));
        let after = *world.link(modem);
        let frames = (after.sent - before.sent).max(1);
        waits[at] = (after.wait_ns_sum - before.wait_ns_sum) / frames / 1_000_000;
        let bits = (after.sent_bytes - before.sent_bytes) * 8;
        least = least.min(bits / ((to - from) * line * 10_000));
        world.set_rate(modem, mbit(10));
    }
    (waits, least)
}

#[test]
fn who_acknowledges_what_has_not_arrived_holds_nobody_up() {
    for (rate, late) in [(5, 0), (20, 50), (40, 0), (100, 400)] {
        for has_own_servers in [false, true] {
            let (waits, least) = beside_a_liar(rate, late, has_own_servers);
            let is_held = waits.iter().all(|&ms| ms <= 15) && least >= 85;
            let who = format!("{rate} Mbit/s after {late} ms, own servers: {has_own_servers}");
            assert!(is_held, "{who}: waits {waits:?} ms, {least} % of the line");
        }
    }
}

#[test]
fn uploads_that_nobody_acknowledges_take_nothing_from_what_is_found() {
    // data of a host that is never answered: all of the line is found and used
    let (waits, least) = beside_a_liar(20, 3_600_000, true);
    assert!(waits.iter().all(|&ms| ms <= 15) && least >= 85, "{waits:?} ms, {least} %");
}
