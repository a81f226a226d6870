//! Who sends next, measured: the tree alone, with frames of 64 bytes and leaves drawn uniformly.
//! Virtual time advances as a link of 100 Gbit/s would. `idle`: a burst goes in and out again.
//! `backlog`: frames stand in every leaf, as many leave as come. `binding`: every leaf has a
//! ceiling, half of what is offered passes.

use std::hint::black_box;
use std::process::ExitCode;

use weir_packet::{Headers, Label, Pool, Side};
use weir_shape::Link;
use weir_shape::tree::{Edit, LINK, NodeSpec, Spec, Tree};
use weir_units::{Instant, Rate, Span};

use super::{Figures, Json, per, timed, within};
use crate::out::problem;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leaves
    #[arg(long, default_value_t = 4_096, value_parser = within(1..=1_048_576))]
    leaves: u32,
    /// Levels below the link: 1 are leaves alone, 2 tops and leaves, 3 nodes of 16 leaves between
    /// them
    #[arg(long, default_value_t = 3, value_parser = within(1..=3))]
    levels: u32,
    /// Nodes right below the link
    #[arg(long, default_value_t = 1, value_parser = within(1..=65_536))]
    tops: u32,
    /// What the tree goes through
    #[arg(long, value_enum, default_value_t = State::Backlog)]
    state: State,
    /// Queue management in the leaves
    #[arg(long, value_enum, default_value_t = Aqm::None)]
    aqm: Aqm,
    /// Frames handed over at once
    #[arg(long, default_value_t = 32, value_parser = within(1..=64))]
    burst: u32,
    /// Frames that stand in each leaf under backlog
    #[arg(long, default_value_t = 16, value_parser = within(1..=64))]
    standing: u32,
    /// Frames offered per round
    #[arg(long, default_value_t = 1_000_000, value_parser = within(1..=100_000_000))]
    packets: u32,
    /// Rounds of which the median is taken
    #[arg(long, default_value_t = 9, value_parser = within(1..=1_000))]
    rounds: u32,
    #[command(flatten)]
    json: Json,
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

pub(crate) fn run(args: &Args) -> ExitCode {
    if args.aqm == Aqm::Codel {
        return problem("queues per flow and CoDel are not in the tree yet: --aqm none");
    }
    let mut bench = Bench::new(args);
    bench.fill(args);
    let mut figures = Figures::new(&["ns_per_packet", "accepted", "bytes_per_leaf"]);
    for _ in 0..args.rounds {
        let before = bench.counts;
        let time = timed(|| bench.round(args));
        let [offered, accepted, left] = [0, 1, 2].map(|n| bench.counts[n] - before[n]);
        figures.add("ns_per_packet", per(time, left));
        figures.add("accepted", ratio(accepted, offered));
        figures.add("bytes_per_leaf", ratio(bench.tree.bytes(), args.leaves as usize));
    }
    let state = match args.state {
        State::Idle => "idle",
        State::Backlog => "backlog",
        State::Binding => "binding",
    };
    let title = format!(
        "sched: {state}, {} leaves in {} levels below {} tops, bursts of {}, {} rounds",
        args.leaves, args.levels, args.tops, args.burst, args.rounds
    );
    figures.show(&title, args.json.json.as_deref())
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
fn ratio(of: usize, by: usize) -> f64 {
    of as f64 / by.max(1) as f64
}

struct Bench {
    tree: Tree,
    pool: Pool,
    leaves: Vec<u32>,
    random: u64,
    now: Instant,
    /// Offered, accepted, left.
    counts: [usize; 3],
    label: Label,
}

impl Bench {
    fn new(args: &Args) -> Bench {
        let spec = spec(args);
        let standing = if args.state == State::Idle { 1 } else { args.standing as usize };
        let buffers = args.leaves as usize * standing + 2 * args.burst as usize;
        let mut tree = Tree::new(buffers, usize::MAX, 0, Instant::ZERO);
        let mut edit = Edit::between(&Spec::default(), &spec);
        tree.apply(Instant::ZERO, &mut edit, |leaf| leaf, |_, _, _| {});
        Bench {
            tree,
            pool: Pool::new(buffers, 64),
            leaves: spec.nodes.iter().filter(|n| n.is_leaf).map(|n| n.number).collect(),
            random: 0x5eed,
            now: Instant::ZERO,
            counts: [0; 3],
            label: Label::new(Side::Lan, &Headers::EMPTY),
        }
    }

    fn fill(&mut self, args: &Args) {
        if args.state == State::Idle {
            return;
        }
        for _ in 0..args.standing {
            for at in 0..self.leaves.len() {
                self.push(self.leaves[at]);
            }
        }
    }

    fn push(&mut self, leaf: u32) {
        let Some(mut frame) = self.pool.take() else { return };
        let _ = self.pool.resize(&mut frame, 0, FRAME);
        self.counts[0] += 1;
        match self.tree.push(self.now, frame, Label { leaf, ..self.label }) {
            Ok(_) => self.counts[1] += 1,
            Err((frame, _)) => self.pool.give(frame),
        }
    }

    fn round(&mut self, args: &Args) {
        // the time that a burst takes on the line
        let span = Span::from_ns(u64::from(args.burst) * 64 * 8 / 100);
        for _ in 0..args.packets / args.burst {
            self.now += span;
            for _ in 0..args.burst {
                let leaf = self.draw();
                self.push(leaf);
            }
            for _ in 0..args.burst {
                let Some(waiting) = self.tree.pop(self.now) else { break };
                self.counts[2] += 1;
                self.pool.give(black_box(waiting).frame);
            }
        }
    }

    /// A leaf drawn from the high bits of a multiplicative generator.
    fn draw(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (u128::from(self.random) * self.leaves.len() as u128) >> 64;
        self.leaves[usize::try_from(at).unwrap_or(0)]
    }
}

fn spec(args: &Args) -> Spec {
    let mut nodes = Vec::new();
    let mut next = LINK + 1;
    let mut add = |parent: u32, is_leaf: bool, nodes: &mut Vec<NodeSpec>| {
        let mut node = NodeSpec::new(next, parent, is_leaf);
        if is_leaf && args.state == State::Binding {
            node.ceil = Rate::from_bps(RATE.bps() / 2 / u64::from(args.leaves));
            node.frames = args.standing;
        }
        nodes.push(node);
        next += 1;
        next - 1
    };
    if args.levels == 1 {
        (0..args.leaves).for_each(|_| _ = add(LINK, true, &mut nodes));
        return Spec { rate: RATE, link: Link::default(), nodes };
    }
    let tops: Vec<u32> = (0..args.tops).map(|_| add(LINK, false, &mut nodes)).collect();
    let mut parent = LINK;
    for leaf in 0..args.leaves {
        let top = tops[leaf as usize / (args.leaves.div_ceil(args.tops)) as usize];
        let is_first = (leaf % args.leaves.div_ceil(args.tops)).is_multiple_of(16);
        parent = match args.levels {
            2 => top,
            _ if is_first => add(top, false, &mut nodes),
            _ => parent,
        };
        add(parent, true, &mut nodes);
    }
    Spec { rate: RATE, link: Link::default(), nodes }
}
