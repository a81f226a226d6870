//! Who sends next, measured: the tree alone, with frames of 64 bytes; leaf and connection are drawn
//! uniformly. Virtual time advances as a link of 100 Gbit/s would. `idle`: a burst goes in and out
//! again. `backlog`: frames stand in every leaf, as many leave as come. `binding`: every leaf has a
//! ceiling, half of what is offered passes.
//!
//! The clock runs while a burst goes in and while one comes out, as in `bench/peers/rte_bench.c`;
//! the drawing and what the frames are made of is left out. So are bursts during which the thread
//! was off the core.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use weir_packet::{Flow, Frame, Headers, Label, Pool, Side};
use weir_shape::FrameCost;
use weir_shape::aqm::{self, Codel};
use weir_shape::tree::{Care, Edit, LINK, NodeSpec, Queueing, Spec, Tree};
use weir_units::{Instant, Rate, Span};

use super::{Figures, Rounds, per, timed, within};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leaves
    #[arg(long, default_value_t = 4_096, value_parser = within(1..=1_048_576))]
    leaves: u32,
    /// Levels of the tree, the link and the leaves among them: 2 are these alone, 3 have the tops
    /// between, 4 nodes of 16 leaves below the tops
    #[arg(long, default_value_t = 3, value_parser = within(2..=4))]
    levels: u32,
    /// Nodes right below the link
    #[arg(long, default_value_t = 1, value_parser = within(1..=65_536))]
    tops: u32,
    /// The state of the tree
    #[arg(long, value_enum, default_value_t = State::Backlog)]
    state: State,
    /// Queue management in the leaves
    #[arg(long, value_enum, default_value_t = Aqm::None)]
    aqm: Aqm,
    /// Frames handed over at once
    #[arg(long, default_value_t = 32, value_parser = within(1..=64))]
    burst: u32,
    /// Frames queued in each leaf under backlog [default: 64, fewer if that exceeds 256 Ki in all]
    #[arg(long, value_parser = within(1..=1_024))]
    standing: Option<u32>,
    /// Connections of each leaf, where there are queues per connection
    #[arg(long, default_value_t = 16, value_parser = within(1..=1_024))]
    flows: u32,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum State {
    Idle,
    Backlog,
    Binding,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Aqm {
    None,
    Codel,
}

const RATE: Rate = Rate::from_bps(100_000_000_000);
/// Bytes of a frame without its check sequence; it costs 64.
const FRAME: usize = 60;
/// Frames that stand in all leaves together at most, unless told otherwise.
const STANDING: u32 = 256 << 10;
/// A burst that took longer met something else on this core.
const DISTURBED: Duration = Duration::from_micros(200);

impl Args {
    fn standing(&self) -> u32 {
        self.standing.unwrap_or((STANDING / self.leaves).clamp(1, 64))
    }

    /// Queues of connections.
    fn queues(&self) -> usize {
        if self.aqm == Aqm::None { 0 } else { self.leaves as usize * self.flows as usize }
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let mut bench = Bench::new(args);
    bench.fill(args);
    let mut names = vec!["ns_per_packet", "accepted", "bytes_per_leaf"];
    names.extend((args.aqm != Aqm::None).then_some("bytes_per_flow"));
    let mut figures = Figures::new(&names);
    // until everything that stood there has been replaced by what came at random
    let warm_up = if args.rounds.count > 1 {
        2 * bench.tree.len() / args.rounds.packets as usize + 1
    } else {
        0
    };
    (0..warm_up).for_each(|_| bench.round(args));
    for _ in 0..args.rounds.count {
        bench.counts = Counts::default();
        bench.round(args);
        let counts = bench.counts;
        figures.add("ns_per_packet", per(counts.time, counts.left));
        figures.add("accepted", ratio(counts.accepted, counts.offered));
        figures.add("bytes_per_leaf", ratio(bench.tree.bytes(), args.leaves as usize));
        figures.add("bytes_per_flow", ratio(bench.tree.bytes_of_flows(), args.queues()));
    }
    let state = match args.state {
        State::Idle => "idle",
        State::Backlog => "backlog",
        State::Binding => "binding",
    };
    let title = format!(
        "sched: {state}, {} leaves, {} levels, {} tops, bursts of {}, {} standing, {} rounds",
        args.leaves,
        args.levels,
        args.tops,
        args.burst,
        if args.state == State::Idle { 0 } else { args.standing() },
        args.rounds.count
    );
    figures.show(&title, &args.rounds.json)
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
fn ratio(of: usize, by: usize) -> f64 {
    of as f64 / by.max(1) as f64
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

struct Bench {
    tree: Tree,
    pool: Pool,
    leaves: Vec<u32>,
    random: u64,
    now: Instant,
    counts: Counts,
    label: Label,
    coming: Vec<(Frame, Label)>,
    leaving: Vec<Frame>,
}

/// What one round did.
#[derive(Clone, Copy, Default)]
struct Counts {
    offered: usize,
    accepted: usize,
    left: usize,
    /// Taken by queue management.
    managed: usize,
    time: Duration,
}

impl Bench {
    fn new(args: &Args) -> Bench {
        let spec = spec(args);
        let standing = if args.state == State::Idle { 1 } else { args.standing() as usize };
        let buffers = args.leaves as usize * standing + 2 * args.burst as usize;
        let mut tree = Tree::new(buffers, usize::MAX, args.queues(), Instant::ZERO);
        let mut edit = Edit::between(&Spec::default(), &spec);
        tree.apply(Instant::ZERO, &mut edit, |leaf| leaf, |_, _, _| {});
        Bench {
            tree,
            pool: Pool::new(buffers, 64),
            leaves: spec.nodes.iter().filter(|n| n.is_leaf).map(|n| n.number).collect(),
            random: 0x5eed,
            now: Instant::ZERO,
            counts: Counts::default(),
            label: Label::new(Side::Lan, &Headers::EMPTY),
            coming: Vec::new(),
            leaving: Vec::new(),
        }
    }

    fn fill(&mut self, args: &Args) {
        if args.state == State::Idle {
            return;
        }
        // in no order that a processor could foresee: the step shares no divisor with the leaves
        let leaves = self.leaves.len();
        let step = (leaves * 5 / 8..).find(|&step| gcd(step, leaves) == 1).unwrap_or(1);
        for turn in 0..args.standing() {
            for at in 0..leaves {
                self.prepare(at * step % leaves, turn % args.flows, args);
                self.push_all();
            }
        }
    }

    /// A frame for this leaf, of this of its connections.
    fn prepare(&mut self, leaf: usize, flow: u32, args: &Args) {
        let Some(mut frame) = self.pool.take() else { return };
        let _ = self.pool.resize(&mut frame, 0, FRAME);
        let mut label = Label { leaf: self.leaves[leaf], ..self.label };
        if args.aqm != Aqm::None {
            let index = u32::try_from(leaf).unwrap_or(0) * args.flows + flow;
            label.flow = Flow { index, generation: 0 };
        }
        self.coming.push((frame, label));
    }

    /// Not inlined, nor is what takes them out: instructions are counted within these two.
    #[inline(never)]
    fn push_all(&mut self) {
        self.counts.offered += self.coming.len();
        self.coming.iter().for_each(|(_, label)| self.tree.expect(label));
        for (frame, label) in self.coming.drain(..) {
            match self.tree.push(self.now, frame, label) {
                Ok(_) => self.counts.accepted += 1,
                Err((frame, _)) => self.leaving.push(frame),
            }
        }
    }

    #[inline(never)]
    fn pop_all(&mut self, burst: u32) {
        let leaving = &mut self.leaving;
        let most = burst as usize;
        self.tree.pop_burst(self.now, most, |waiting| leaving.push(black_box(waiting).frame));
        while let Some(dropped) = self.tree.take_dropped() {
            self.counts.managed += 1;
            leaving.push(dropped.frame);
        }
    }

    fn round(&mut self, args: &Args) {
        // the time that a burst takes on the line
        let span = Span::from_ns(u64::from(args.burst) * 64 * 8 / 100);
        for _ in 0..args.rounds.packets / args.burst {
            self.now += span;
            for _ in 0..args.burst {
                let (leaf, flow) = self.draw(args.flows);
                self.prepare(leaf, flow, args);
            }
            let before = self.counts;
            let time = timed(|| self.push_all());
            let refused = self.leaving.len();
            let time = time + timed(|| self.pop_all(args.burst));
            if time < DISTURBED {
                let managed = self.counts.managed - before.managed;
                self.counts.left += self.leaving.len() - refused - managed;
                self.counts.time += time;
            } else {
                self.counts = before;
            }
            self.leaving.drain(..).for_each(|frame| self.pool.give(frame));
        }
    }

    /// A leaf and one of its connections, drawn from the high bits of a multiplicative generator.
    fn draw(&mut self, flows: u32) -> (usize, u32) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = u128::from(self.random) * self.leaves.len() as u128;
        let rest = u128::from(u64::try_from(at & u128::from(u64::MAX)).unwrap_or(0));
        let flow = (rest * u128::from(flows)) >> 64;
        (usize::try_from(at >> 64).unwrap_or(0), u32::try_from(flow).unwrap_or(0))
    }
}

fn spec(args: &Args) -> Spec {
    let codel = Care {
        queue: Queueing::Fair,
        aqm: aqm::Aqm::Codel(Codel::for_rate(RATE, None, None)),
        ..Care::default()
    };
    let cares = if args.aqm == Aqm::Codel { vec![codel] } else { vec![] };
    let mut nodes = Vec::new();
    let mut next = LINK + 1;
    let mut add = |parent: u32, is_leaf: bool, nodes: &mut Vec<NodeSpec>| {
        let mut node = NodeSpec::new(next, parent, is_leaf);
        if is_leaf && args.state == State::Binding {
            node.ceil = Rate::from_bps(RATE.bps() / 2 / u64::from(args.leaves));
            node.frames = args.standing();
        }
        nodes.push(node);
        next += 1;
        next - 1
    };
    if args.levels == 2 {
        (0..args.leaves).for_each(|_| _ = add(LINK, true, &mut nodes));
        return Spec { rate: RATE, link: FrameCost::default(), nodes, cares, ..Spec::default() };
    }
    let tops: Vec<u32> = (0..args.tops).map(|_| add(LINK, false, &mut nodes)).collect();
    let mut parent = LINK;
    for leaf in 0..args.leaves {
        let top = tops[leaf as usize / (args.leaves.div_ceil(args.tops)) as usize];
        let is_first = (leaf % args.leaves.div_ceil(args.tops)).is_multiple_of(16);
        parent = match args.levels {
            3 => top,
            _ if is_first => add(top, false, &mut nodes),
            _ => parent,
        };
        add(parent, true, &mut nodes);
    }
    Spec { rate: RATE, link: FrameCost::default(), nodes, cares, ..Spec::default() }
}
