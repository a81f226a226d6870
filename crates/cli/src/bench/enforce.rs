//! What holding a whole link to shares costs a frame in the engine, beside the same classes with
//! queues, and what an edit there costs: UDP from a host for each class, in bursts, on a link that
//! is offered half as much again as it carries.
//!
//! The clock runs while a burst goes in and while what may leave does; making frames is left out.

use std::process::ExitCode;
use std::time::Duration;

use weir_engine::{Config, Engine, Planner};
use weir_packet::{Build, Burst, Pool, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Span};

use super::{Figures, Rounds, per, timed, within};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which mechanism enforces the shares of the classes
    #[arg(long, value_enum, default_value_t = By::Weir)]
    by: By,
    /// Classes, sixteen in a group
    #[arg(long, default_value_t = 256, value_parser = within(1..=4_000))]
    classes: u32,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Queue,
    Weir,
    Hsdba,
}

/// Frames handed over at once.
const BURST: u32 = 32;
const LEN: usize = 1_000;
/// From one burst to the next: 15 Gbit/s.
const GAP: Span = Span::from_ns(BURST as u64 * 533);
/// A burst that took longer met something else on this core.
const DISTURBED: Duration = Duration::from_micros(200);

pub(crate) fn run(args: &Args) -> ExitCode {
    let mut bench = Bench::new(args);
    let mut figures = Figures::new(&["ns_per_frame", "passed", "prepare_us", "apply_us"]);
    for round in 0..args.rounds.count {
        let (mut time, mut frames) = (Duration::ZERO, 0);
        let before = bench.left;
        let bursts = args.rounds.packets.div_ceil(BURST);
        for _ in 0..bursts {
            bench.draw();
            let took = timed(|| bench.turn());
            if took < DISTURBED {
                time += took;
                frames += BURST as usize;
            }
        }
        figures.add("ns_per_frame", per(time, frames));
        figures.add("passed", per(Duration::from_nanos(bench.left - before), bursts as usize * 32));
        let [prepare, apply] = bench.edit(args, round + 2);
        figures.add("prepare_us", per(prepare, 1_000));
        figures.add("apply_us", per(apply, 1_000));
    }
    let title = format!("enforce: {} classes, {} rounds", args.classes, args.rounds.count);
    figures.show(&title, &args.rounds.json)
}

struct Bench {
    engine: Engine,
    planner: Planner,
    frames: Vec<Vec<u8>>,
    burst: Burst,
    now: Instant,
    random: u64,
    left: u64,
}

impl Bench {
    fn new(args: &Args) -> Bench {
        let config = Config { flows: 65_536, ..Config::default() };
        let mut planner = Planner::of(&config);
        let first = planner.prepare(&plan(args, 1)).expect("fits");
        let engine = Engine::new(config, Pool::new(65_536, 1_100), first, Instant::ZERO);
        let frame = |class| {
            let from = format!("{}:7", address(class)).parse().expect("an address");
            let to = "192.0.2.1:53".parse().expect("an address");
            Build::udp(from, to).payload_len(LEN - 42).to_vec()
        };
        let frames = (0..args.classes).map(frame).collect();
        let (burst, now) = (Burst::new(), Instant::ZERO);
        Bench { engine, planner, frames, burst, now, random: 0x5eed, left: 0 }
    }

    fn draw(&mut self) {
        for _ in 0..BURST {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (u128::from(self.random) * self.frames.len() as u128) >> 64;
            let frame = &self.frames[usize::try_from(at).unwrap_or(0)];
            if let Some(frame) = self.engine.pool_mut().fill(frame) {
                self.burst.push(frame).expect("as many as a burst holds");
            }
        }
    }

    fn turn(&mut self) {
        self.now += GAP;
        self.engine.receive(self.now, Side::Lan, &mut self.burst);
        self.engine.transmit(self.now, Side::Wan, &mut self.burst);
        while let Some(frame) = self.burst.pop() {
            self.left += 1;
            self.engine.pool_mut().give(frame);
        }
    }

    /// The first class weighs something else from now on: to make that ready, and to put it into
    /// effect.
    fn edit(&mut self, args: &Args, weight: u32) -> [Duration; 2] {
        let plan = plan(args, weight);
        let mut change = None;
        let prepare = timed(|| change = self.planner.prepare(&plan).ok());
        let mut change = change.expect("fits as the first did");
        let apply = timed(|| while !self.engine.apply(self.now, &mut change) {});
        [prepare, apply]
    }
}

fn address(class: u32) -> std::net::Ipv4Addr {
    std::net::Ipv4Addr::from_bits(0x0a00_0001 + class)
}

/// A link of 10 Gbit/s and its classes, the first of which has this weight.
fn plan(args: &Args, weight: u32) -> Plan {
    let by = match args.by {
        By::Queue => "queue",
        By::Weir => "weir",
        By::Hsdba => "hsdba",
    };
    let mut text = format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10gbit\"\nup = \"10gbit\"\n\
         enforce = \"{by}\"\n"
    );
    for class in 0..args.classes {
        let (group, address) = (class / 16, address(class));
        if class % 16 == 0 {
            text += &format!("[class.\"/g{group}\"]\nweight = 1\n");
        }
        let weight = if class == 0 { weight } else { 1 };
        text += &format!(
            "[class.\"/g{group}/c{class}\"]\nmatch = \"lan {address}\"\nweight = {weight}\n"
        );
    }
    let reading = read(Source::new("bench", text), &mut |_| Err(String::new()));
    let reading = reading.expect("is text");
    reading.plans.into_iter().next().expect("has a link")
}
