//! A whole turn, measured: segments of open connections come in at one port of the engine and leave
//! through the other, data up and their acknowledgements down, in bursts, on a link that has room
//! for all of them. With and without somebody who watches TCP's numbers.
//!
//! The clock runs while a burst goes in and comes out; making it is left out. So are bursts during
//! which the thread was off the core.

use std::process::ExitCode;
use std::time::Duration;

use weir_engine::{Config, Engine, Planner, Snapshot};
use weir_packet::{Build, Burst, Pool, Side, tcp};
use weir_policy::{Source, read};
use weir_units::{Instant, Span};

use super::condition::step;
use super::{Figures, Rounds, per, timed, within};
use crate::out::problem;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of connections
    #[arg(long, default_value_t = 10_000, value_parser = within(1..=60_000))]
    connections: u32,
    /// Which frames arrive
    #[arg(long, value_enum, default_value_t = What::Data)]
    only: What,
    /// Count retransmitted and out-of-order TCP data
    #[arg(long, value_enum, default_value_t = Watch::On)]
    watch: Watch,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Segments with data
    Data,
    /// Plain acknowledgements
    Acks,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Watch {
    On,
    Off,
}

/// Frames handed over at once.
const BURST: usize = 32;
/// Data of a segment.
const DATA: u32 = 1_000;
/// Between two bursts; the link carries ten times as much.
const PAUSE: Span = Span::from_us(30);
/// A burst that took longer met something else on this core.
const DISTURBED: Duration = Duration::from_micros(200);

pub(crate) fn run(args: &Args) -> ExitCode {
    let mut bench = match Bench::new(args) {
        Ok(bench) => bench,
        Err(why) => return problem(&why),
    };
    (0..(args.connections as usize).div_ceil(BURST)).for_each(|_| bench.next());
    let mut figures = Figures::new(&["ns_per_frame"]);
    for _ in 0..args.rounds.count {
        let (mut time, mut frames) = (Duration::ZERO, 0);
        for _ in 0..(args.rounds.packets as usize).div_ceil(BURST) {
            bench.draw();
            let took = timed(|| bench.turn());
            bench.put_back();
            if took < DISTURBED {
                time += took;
                frames += BURST;
            }
        }
        figures.add("ns_per_frame", per(time, frames));
    }
    if let Err(why) = bench.check() {
        return problem(&why);
    }
    let title = format!(
        "turn: {} connections, bursts of {BURST}, {} rounds",
        args.connections, args.rounds.count
    );
    figures.show(&title, &args.rounds.json)
}

struct Bench {
    engine: Engine,
    side: Side,
    /// Where the data of each connection are.
    numbers: Vec<u32>,
    stride: usize,
    at: usize,
    bytes: Vec<u8>,
    data: u32,
    into: Burst,
    out: Burst,
    now: Instant,
}

impl Bench {
    fn new(args: &Args) -> Result<Bench, String> {
        let text = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100gbit\"\nup = \"100gbit\"\n\
                    [class.\"/all\"]\nmatch = \"any\"\n";
        let reading = read(Source::new("bench", text), &mut |_| Err(String::new()))
            .map_err(|why| format!("the policy of the benchmark cannot be read: {why:?}"))?;
        let plan = reading.plans.first().ok_or("the policy of the benchmark has no link")?;
        let config = Config { watch: args.watch == Watch::On, ..Config::default() };
        let first = Planner::of(&config).prepare(plan).map_err(|why| why.to_string())?;
        let data = if args.only == What::Data { DATA } else { 0 };
        let (lan, wan) = (([10, 0, 0, 1], 0).into(), ([192, 0, 2, 1], 80).into());
        let build = Build::tcp(lan, wan).tcp_flags(tcp::ACK).payload_len(data as usize);
        Ok(Bench {
            engine: Engine::new(config, Pool::new(4_096, 2_048), first, Instant::ZERO),
            side: Side::Lan,
            numbers: vec![1; args.connections as usize],
            stride: step(args.connections as usize),
            at: 0,
            bytes: build.to_vec(),
            data,
            into: Burst::new(),
            out: Burst::new(),
            now: Instant::from_ns(1_000_000_000),
        })
    }

    fn next(&mut self) {
        self.draw();
        self.turn();
        self.put_back();
    }

    /// The next burst.
    fn draw(&mut self) {
        self.now += PAUSE;
        for _ in 0..BURST {
            // an order that no processor foresees
            self.at = (self.at + self.stride) % self.numbers.len();
            let number = &mut self.numbers[self.at];
            let port = u16::try_from(self.at).unwrap_or(0) + 1_024;
            self.bytes[34..36].copy_from_slice(&port.to_be_bytes());
            self.bytes[38..42].copy_from_slice(&number.to_be_bytes());
            *number = number.wrapping_add(self.data);
            if let Some(frame) = self.engine.pool_mut().fill(&self.bytes)
                && let Err(frame) = self.into.push(frame)
            {
                self.engine.pool_mut().give(frame);
            }
        }
    }

    /// Not inlined: instructions are counted within it.
    #[inline(never)]
    fn turn(&mut self) {
        self.engine.receive(self.now, self.side, &mut self.into);
        self.engine.transmit(self.now + PAUSE, self.side.other(), &mut self.out);
    }

    fn put_back(&mut self) {
        while let Some(frame) = self.out.pop() {
            self.engine.pool_mut().give(frame);
        }
    }

    /// All frames were forwarded, and no new data was counted as retransmitted or out of order.
    fn check(&self) -> Result<(), String> {
        let mut snapshot = Snapshot::default();
        let _ = self.engine.snapshot(0, &mut snapshot);
        let counters = snapshot.total[self.side.way()];
        let lost = counters.dropped_in_all().frames;
        let again = counters.repeated.frames + counters.late.frames;
        if lost > 0 || again > 0 {
            return Err(format!(
                "the measurement is not valid: {lost} frames were dropped, and {again} were \
                 counted as retransmitted or out of order"
            ));
        }
        Ok(())
    }
}
