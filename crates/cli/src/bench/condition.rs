//! TCP rate control, measured: data and acknowledgements of open connections, which take turns in
//! an order that no processor foresees, in bursts from one side and then the other. Windows are
//! sized and acknowledgements paced; each comes late enough not to have to wait.
//!
//! The clock runs while a burst goes through the stage; making it and reading its headers is left
//! out. So are bursts during which the thread was off the core.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use weir_condition::{Conditioner, Counters, Edit, Leaf, Pacing, Spec, Told};
use weir_packet::{Build, Flow, Headers, Label, Side, tcp};
use weir_units::{ByWay, Instant, Rate, Span};

use super::{Figures, Rounds, per, timed, within};
use crate::out::problem;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of connections
    #[arg(long, default_value_t = 100_000, value_parser = within(1..=1_000_000))]
    connections: u32,
    #[command(flatten)]
    rounds: Rounds,
}

/// Frames handed over at once.
const BURST: usize = 32;
/// Connections of one leaf, and what it may have.
const SHARING: u32 = 100;
const RATE: Rate = Rate::from_bps(100_000_000);
/// Data of a segment.
const DATA: u32 = 1_000;
/// The time in which every connection sends once and is answered once.
const ROUND: Span = Span::from_ms(200);
/// A burst that took longer met something else on this core.
const DISTURBED: Duration = Duration::from_micros(200);

pub(crate) fn run(args: &Args) -> ExitCode {
    let mut bench = Bench::new(args.connections);
    bench.open();
    let mut figures = Figures::new(&["ns_per_frame", "bytes_per_connection", "sized"]);
    let bursts = (args.rounds.packets as usize).div_ceil(BURST);
    for _ in 0..args.rounds.count {
        let before = *bench.stage.counters();
        let (mut time, mut frames) = (Duration::ZERO, 0);
        for at in 0..bursts {
            let side = if at % 2 == 0 { Side::Lan } else { Side::Wan };
            bench.draw(side);
            let took = timed(|| bench.pass(side));
            if took < DISTURBED {
                time += took;
                frames += BURST;
            }
        }
        let after = bench.stage.counters();
        let other = |c: &Counters| c.paced + c.unknown + c.rejected;
        if other(after) != other(&before) {
            return problem(
                "frames waited, were unknown or rejected: this measures something else",
            );
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
        let (sized, bytes) = (
            (after.sized - before.sized) as f64 / (bursts * BURST) as f64,
            bench.stage.bytes_of_connections() as f64 / f64::from(args.connections),
        );
        figures.add("ns_per_frame", per(time, frames));
        figures.add("bytes_per_connection", bytes);
        figures.add("sized", sized);
    }
    let title = format!(
        "condition: {} connections, {SHARING} to a leaf, bursts of {BURST}, {} rounds",
        args.connections, args.rounds.count
    );
    figures.show(&title, &args.rounds.json)
}

struct Bench {
    stage: Conditioner,
    /// Where the data of each connection are.
    numbers: Vec<u32>,
    /// The turn of data and of acknowledgements, which are half a round behind.
    turns: [usize; 2],
    step: usize,
    frames: Vec<Vec<u8>>,
    headers: [Headers; BURST],
    labels: [Label; BURST],
    now: Instant,
}

impl Bench {
    fn new(connections: u32) -> Bench {
        let leaves = connections.div_ceil(SHARING);
        let mut stage = Conditioner::new(leaves as usize);
        let told = Told { window: true, pace_acks: true, least: 4, ..Told::default() };
        let leaf = |number| Leaf { number, told: 1, rate: RATE, fixed: true };
        let leaves = ByWay { up: (0..leaves).map(leaf).collect(), down: Vec::new() };
        let spec = Spec { told: vec![Told::default(), told], leaves };
        stage.apply(&mut Edit::between(&Spec::default(), &spec, connections as usize));
        Bench {
            stage,
            numbers: vec![1; connections as usize],
            turns: [connections as usize / 2, 0],
            step: step(connections as usize),
            frames: vec![Vec::new(); BURST],
            headers: [Headers::EMPTY; BURST],
            labels: [Label::new(Side::Lan, &Headers::EMPTY); BURST],
            now: Instant::from_ns(1_000_000_000),
        }
    }

    /// All connections open, and have sent once.
    fn open(&mut self) {
        let syn = [2, 4, 5, 0xb4];
        for connection in 0..self.numbers.len() {
            for (side, flags) in [(Side::Lan, tcp::SYN), (Side::Wan, tcp::SYN | tcp::ACK)] {
                let build = segment(side).tcp_flags(flags).tcp_options(&syn);
                self.frames[0] = build.tcp_ack(1).to_vec();
                self.label(0, connection, side);
                self.one(0);
            }
        }
        for side in [Side::Lan, Side::Wan] {
            self.prepare(side);
            for connection in 0..self.numbers.len() {
                self.write(0, connection, side);
                self.one(0);
            }
            self.now += Span::from_ms(100);
        }
    }

    fn one(&mut self, at: usize) -> Pacing {
        let (bytes, headers) = (&mut self.frames[at], &self.headers[at]);
        self.stage.frame(self.now, bytes, headers, &self.labels[at], 0)
    }

    /// Fresh frames of a side: their windows are those that a host writes.
    fn prepare(&mut self, side: Side) {
        let data = if side == Side::Lan { DATA as usize } else { 0 };
        let build = segment(side).tcp_flags(tcp::ACK).tcp_seq(1).tcp_ack(1);
        let bytes = build.payload_len(data).to_vec();
        for frame in &mut self.frames {
            frame.clone_from(&bytes);
        }
    }

    fn label(&mut self, at: usize, connection: usize, side: Side) {
        self.headers[at] = Headers::parse(&self.frames[at]);
        let index = u32::try_from(connection).unwrap_or(0);
        let label = Label::new(side, &self.headers[at]);
        let flow = Flow { index, generation: 1 };
        self.labels[at] = Label { flow, leaf: index / SHARING, ..label };
    }

    /// Makes a frame the next one of its connection: new data, or the answer to all of them.
    fn write(&mut self, at: usize, connection: usize, side: Side) {
        let next = &mut self.numbers[connection];
        let (place, number) = match side {
            Side::Lan => (38..42, std::mem::replace(next, next.wrapping_add(DATA))),
            Side::Wan => (42..46, *next),
        };
        self.frames[at][place].copy_from_slice(&number.to_be_bytes());
        self.label(at, connection, side);
    }

    /// The next burst.
    fn draw(&mut self, side: Side) {
        let connections = self.numbers.len();
        self.now += Span::from_ns(ROUND.ns() * BURST as u64 / 2 / connections as u64);
        self.prepare(side);
        for at in 0..BURST {
            let turn = &mut self.turns[side as usize];
            *turn = (*turn + self.step) % connections;
            let connection = *turn;
            self.write(at, connection, side);
        }
    }

    /// Not inlined: instructions are counted within it.
    #[inline(never)]
    fn pass(&mut self, side: Side) {
        self.stage.expect(side.way(), &self.labels);
        for at in 0..BURST {
            black_box(self.one(at));
            black_box(self.stage.take(self.now));
        }
    }
}

/// The golden section of a number, or a little more, so that it shares no divisor with it.
pub(super) fn step(of: usize) -> usize {
    fn gcd(a: usize, b: usize) -> usize {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    (of * 5 / 8..).find(|&step| gcd(step, of) == 1).unwrap_or(1)
}

fn segment(side: Side) -> Build {
    let [lan, wan] = [([10, 0, 0, 1], 4_000).into(), ([192, 0, 2, 1], 80).into()];
    if side == Side::Lan { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) }
}
