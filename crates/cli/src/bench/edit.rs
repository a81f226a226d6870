//! How long the packet thread stands still for an edit of the policy: the thread's CPU time of the
//! longest single call of `Engine::apply`, over many edits of a large tree in which every leaf has
//! a frame waiting, and over the removal of a class in which very many wait.
//!
//! CPU time, not time on the wall: what another thread of this core takes is no cost of the edit.
//! Interrupts are in it all the same; how much that may be is measured beside it.

mod plans;

use std::process::ExitCode;

use rustix::time::{ClockId, clock_gettime};
use weir_engine::{Config, Engine, Planner};
use weir_packet::{Build, Burst, Pool, Side};
use weir_units::{Instant, Span, Way};

use super::{Figures, Json, within};
use crate::out::problem;
use plans::{BULK, KINDS, Plans};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Children of one class, or with --shape isp of classes with 100 each
    #[arg(long, default_value_t = 100_000, value_parser = within(200..=1_000_000))]
    children: u32,
    /// How the tree is built
    #[arg(long, value_enum, default_value_t = Shape::Flat)]
    shape: Shape,
    /// Edits per round: weights, rates, ceilings, leaves added, removed and moved, in turn
    #[arg(long, default_value_t = 1_000, value_parser = within(6..=1_000_000))]
    edits: u32,
    /// Frames queued in the class that is removed once per round
    #[arg(long, default_value_t = 500_000, value_parser = within(1..=2_000_000))]
    frames: u32,
    /// Number of rounds; the result is their median
    #[arg(long, default_value_t = 5, value_parser = within(1..=1_000))]
    rounds: u32,
    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Shape {
    /// All children under one class
    Flat,
    /// A hundred children under each of many classes
    Isp,
}

/// The last names of the table: the removal of the class, the largest of all, calls of one edit.
const REMOVAL: &str = "removal_us";
const LARGEST: &str = "largest_us";
const CALLS: &str = "calls";
const PREPARE: &str = "prepare_ms";
/// What the machine adds: the largest of as many pieces of work of which each is the same.
const MACHINE: &str = "machine_us";

/// Between two edits.
const PAUSE: Span = Span::from_us(100);

pub(crate) fn run(args: &Args) -> ExitCode {
    match measured(args) {
        Ok(figures) => {
            let title = format!(
                "edit: {} children, {} edits a round, {} frames in the class removed, {} rounds; \
                 largest CPU time of one call",
                args.children, args.edits, args.frames, args.rounds
            );
            figures.show(&title, &args.json)
        }
        Err(why) => problem(&why),
    }
}

fn measured(args: &Args) -> Result<Figures, String> {
    let names: Vec<&'static str> = KINDS.iter().map(|kind| kind.name()).collect();
    let names = [&names[..], &[REMOVAL, LARGEST, CALLS, PREPARE, MACHINE]].concat();
    let mut figures = Figures::new(&names);
    let mut bench = Bench::new(args)?;
    for _ in 0..args.rounds {
        let (mut most, mut all, mut calls, mut prepare) = ([0.0_f64; KINDS.len()], 0.0, 0.0, 0.0);
        let mut in_all = 0.0;
        for edit in 0..args.edits as usize {
            let at = edit % KINDS.len();
            bench.now += PAUSE;
            bench.fill(edit);
            bench.plans.change(KINDS[at], edit / KINDS.len());
            let took = bench.apply()?;
            most[at] = most[at].max(took.largest);
            calls = took.calls.max(calls);
            in_all += took.calls;
            prepare = took.prepare.max(prepare);
        }
        for (kind, most) in KINDS.iter().zip(most) {
            figures.add(kind.name(), most);
            all = most.max(all);
        }
        bench.fill_bulk(args.frames);
        bench.plans.remove_bulk();
        let took = bench.apply()?;
        figures.add(REMOVAL, took.largest);
        figures.add(LARGEST, took.largest.max(all));
        figures.add(CALLS, took.calls.max(calls));
        figures.add(PREPARE, prepare);
        figures.add(MACHINE, disturbance(in_all + took.calls));
        bench.drain();
        bench.plans.add_bulk();
        bench.apply()?;
    }
    Ok(figures)
}

struct Bench {
    engine: Engine,
    planner: Planner,
    plans: Plans,
    burst: Burst,
    now: Instant,
    children: u32,
}

/// What one edit took.
struct Took {
    /// Microseconds of the longest call.
    largest: f64,
    calls: f64,
    /// Milliseconds to make it ready, off the packet thread.
    prepare: f64,
}

impl Bench {
    fn new(args: &Args) -> Result<Bench, String> {
        let plans = Plans::new(args.children, args.shape == Shape::Isp)?;
        let most = (args.children + args.frames) as usize + 4_096;
        let config = Config { queue_frames: most, flows: 65_536, ..Config::default() };
        let mut planner = Planner::of(&config);
        let first = planner.prepare(plans.plan()).map_err(|why| why.to_string())?;
        let engine = Engine::new(config, Pool::new(most, 128), first, Instant::ZERO);
        let (burst, now) = (Burst::new(), Instant::from_ns(1));
        let mut bench = Bench { engine, planner, plans, burst, now, children: args.children };
        (0..args.children).for_each(|child| bench.come(plans::address(child), 7));
        Ok(bench)
    }

    /// A frame to one subscriber.
    fn come(&mut self, to: std::net::Ipv4Addr, port: u16) {
        let from = ([192, 0, 2, 1], 53).into();
        let frame = Build::udp(from, (to, port).into()).payload_len(60).to_vec();
        if let Some(frame) = self.engine.pool_mut().fill(&frame)
            && let Err(frame) = self.burst.push(frame)
        {
            self.engine.pool_mut().give(frame);
        }
        self.engine.receive(self.now, Side::Wan, &mut self.burst);
    }

    /// A burst leaves, and as many come: everyone goes on having something to send.
    fn fill(&mut self, edit: usize) {
        self.engine.transmit(self.now, Side::Lan, &mut self.burst);
        let left = self.burst.len();
        while let Some(frame) = self.burst.pop() {
            self.engine.pool_mut().give(frame);
        }
        for at in 0..left {
            #[expect(clippy::cast_possible_truncation, reason = "below the children")]
            let child = ((edit * 7_919 + at * 104_729) % self.children as usize) as u32;
            self.come(plans::address(child), 7);
        }
    }

    /// Connections that bring so many frames to the class that will go.
    fn fill_bulk(&mut self, frames: u32) {
        for frame in 0..frames {
            let port = 1_000 + u16::try_from(frame % 1_000).unwrap_or(0);
            self.come(BULK, port);
        }
    }

    /// What the removal left goes.
    fn drain(&mut self) {
        let most = 4 * self.engine.waiting(Way::Down).0;
        for _ in 0..most {
            let Some(at) = self.engine.next_wakeup() else { return };
            if self.engine.waiting(Way::Down).0 <= self.children as usize {
                return;
            }
            self.now = self.now.max(at);
            self.engine.transmit(self.now, Side::Lan, &mut self.burst);
            while let Some(frame) = self.burst.pop() {
                self.engine.pool_mut().give(frame);
            }
        }
    }

    fn apply(&mut self) -> Result<Took, String> {
        let before = cpu();
        let change = self.planner.prepare(self.plans.plan());
        let mut change = change.map_err(|why| why.to_string())?;
        let prepare = since(before) / 1_000.0;
        let (mut largest, mut calls) = (0.0_f64, 0.0);
        loop {
            let before = cpu();
            let is_done = self.engine.apply(self.now, &mut change);
            largest = largest.max(since(before));
            calls += 1.0;
            if is_done {
                return Ok(Took { largest, calls, prepare });
            }
        }
    }
}

/// Microseconds that the longest of so many equal pieces of work took more than the shortest:
/// interrupts count as the thread's CPU time.
fn disturbance(pieces: f64) -> f64 {
    let (mut least, mut most, mut done) = (f64::MAX, 0.0_f64, 0.0);
    while done < pieces {
        let before = cpu();
        (0..10_000_u32).for_each(|step| _ = std::hint::black_box(step));
        let took = since(before);
        (least, most) = (took.min(least), took.max(most));
        done += 1.0;
    }
    most - least
}

/// What this thread has had of a core, in nanoseconds.
fn cpu() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Microseconds since then.
fn since(before: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    {
        (cpu() - before) as f64 / 1_000.0
    }
}
