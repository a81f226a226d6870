//! Connections that say they come from another engine: any bytes are refused, or imported into an
//! engine whose traffic goes on afterwards.

use weir_engine::{Config, Cursor, Engine, Exported, Planner};
use weir_packet::{Build, Burst, Pool, Side, tcp};
use weir_policy::{Source, read};
use weir_units::{Instant, Span};

const POLICY: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"9gbit\"\nup = \"9gbit\"\n\
    [class.\"/narrow\"]\nmatch = \"lan 172.16.0.0/24\"\nceil = \"2mbit\"\n\
    tcp = { window = true, pace-acks = true, mss = 500, least = 2 }\n\
    [class.\"/hosts\"]\nmatch = \"tcp\"\nceil = \"2mbit\"\n\
    each = { by = \"lan-host\", count = 4 }\n\
    tcp = { window = true, pace-acks = true, mss = 700, loss = \"release\" }\n";

/// What is read is what was written, all records have their fate, and every frame still leaves.
pub fn export(data: &[u8]) {
    let mut batch = Exported::with_room();
    if batch.read(data).is_err() {
        assert!(batch.flows.is_empty() && batch.leaves.is_empty());
        return;
    }
    let (mut bytes, mut again) = (Vec::new(), Exported::with_room());
    batch.write(&mut bytes);
    assert_eq!((again.read(&bytes), &again), (Ok(()), &batch));

    let mut engine = engine();
    let mut now = Instant::from_ns(1 << 40);
    let imported = engine.import(now, &batch);
    assert_eq!(imported.in_all() as usize, batch.flows.len());
    assert!(engine.classifier().flows() <= engine.classifier().flow_capacity());
    for (number, record) in (0..).zip(&batch.flows) {
        now += Span::from_ms(3);
        talk(&mut engine, now, number, record.flow.ends);
    }
    while let Some(at) = engine.next_wakeup() {
        now = now.max(at) + Span::from_ns(100);
        leave(&mut engine, now);
    }
    assert_eq!(engine.pool().free(), engine.pool().capacity(), "a frame stayed somewhere");
    let mut cursor = Some(Cursor::START);
    while let Some(from) = cursor {
        cursor = engine.export(now, from, &mut batch);
        batch.write(&mut bytes);
    }
    engine.release(now, &batch);
}

fn engine() -> Engine {
    let reading = read(Source::new("p", POLICY), &mut |_| Err(String::new())).expect("is text");
    let plan = reading.plans.into_iter().next().expect("the policy is right");
    let config = Config { queue_frames: 64, flows: 64, seed: 7, watch: true, limits: false };
    let first = Planner::of(&config).prepare(&plan).expect("a small policy fits");
    Engine::new(config, Pool::new(100, 2_048), first, Instant::ZERO)
}

/// Both sides of a connection of the seeds say something, with numbers of any kind.
fn talk(engine: &mut Engine, now: Instant, number: u32, ends: u64) {
    let [a, b, c, d, ..] = ends.to_be_bytes();
    let [lan, wan] = [[a, b], [c, d]].map(u16::from_be_bytes);
    let (lan, wan) = (([172, 16, 0, 1], lan).into(), ([192, 0, 2, 1], wan).into());
    for (side, seq, ack) in [(Side::Lan, number * 400, 1), (Side::Wan, 1, number * 400 + 400)] {
        let build = if side == Side::Lan { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) };
        let build = build.tcp_flags(tcp::ACK).tcp_seq(seq).tcp_ack(ack).tcp_window(50_000);
        let data = if side == Side::Lan { 400 } else { 0 };
        let frame = engine.pool_mut().fill(&build.payload_len(data).to_vec()).expect("has room");
        let mut burst = Burst::new();
        burst.push(frame).expect("has room");
        engine.receive(now, side, &mut burst);
        leave(engine, now);
    }
}

fn leave(engine: &mut Engine, now: Instant) {
    for side in Side::ALL {
        let mut out = Burst::new();
        engine.transmit(now, side, &mut out);
        out.drain().for_each(|frame| engine.pool_mut().give(frame));
    }
}
