//! Who may have how much, measured: an allocator alone, with packets of 1024 bytes whose leaf is
//! drawn uniformly, on a link that is offered half as much again as it carries. `packet`: each
//! packet moves the shares. `published`: a core counts and passes its part; what computing the
//! shares costs is apart, since it happens every 2 ms whatever the packets, for the leaves that
//! count.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use weir_share::{Allocator, Core, LINK, Law, Node, Options, Place, Places, Published, Settling};
use weir_share::{ahab, hsdba};
use weir_units::{Instant, Rate, Span, limits};

use super::{Figures, Rounds, per, timed, within};
use crate::out::problem;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leaves
    #[arg(long, default_value_t = 4_096, value_parser = within(1..=1_048_000))]
    leaves: u32,
    /// Levels below the link: 1 are the leaves alone
    #[arg(long, default_value_t = 3, value_parser = within(1..=8))]
    levels: u32,
    /// The allocator
    #[arg(long, value_enum, default_value_t = Profile::Weir)]
    profile: Profile,
    /// Shares with each packet, or every 2 ms
    #[arg(long, value_enum, default_value_t = Form::Packet)]
    form: Form,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Profile {
    Weir,
    Hsdba,
    HsdbaPrinted,
    Hcsfq,
    Ahab,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Packet,
    Published,
}

const RATE: Rate = Rate::from_bps(10_000_000_000);
const LEN: u32 = 1_024;
/// From one packet to the next, in ns: one and a half times what the link carries.
const GAP: u64 = 546;
/// Packets that are drawn, and then timed, together.
const CHUNK: u32 = 256;
/// A chunk that took longer met something else on this core.
const DISTURBED: Duration = Duration::from_micros(400);
/// How often shares are published.
const PERIOD: Span = Span::from_ms(2);

pub(crate) fn run(args: &Args) -> ExitCode {
    if args.form == Form::Published && settling(args.profile).is_none() {
        return problem(
            "\"hsdba-printed\" has no published form: as printed, each level drops \
             probabilistically, packet by packet; use \"--profile hsdba\"",
        );
    }
    let count = nodes(args).len();
    if count > limits::CLASSES {
        return problem(&format!(
            "--levels {} and --leaves {} are {count} classes with those between, and a link has at \
             most {}: choose fewer leaves or levels",
            args.levels,
            args.leaves,
            limits::CLASSES
        ));
    }
    let mut bench = Bench::new(args);
    let mut names = vec!["ns_per_packet", "bytes_per_leaf", "passed"];
    names.extend((args.form == Form::Published).then_some("publish_us"));
    let mut figures = Figures::new(&names);
    let warm_up = if args.rounds.count > 1 { 4 * args.leaves / args.rounds.packets + 1 } else { 0 };
    (0..warm_up).for_each(|_| _ = bench.round(args));
    for _ in 0..args.rounds.count {
        let (time, packets, passed) = bench.round(args);
        figures.add("ns_per_packet", per(time, packets));
        figures.add("bytes_per_leaf", ratio(bench.bytes(), args.leaves as usize));
        figures.add("passed", ratio(passed * 1_000, args.rounds.packets as usize) / 1_000.0);
        let (time, times) = std::mem::take(&mut bench.published);
        if times > 0 {
            figures.add("publish_us", per(time, 1_000 * times));
        }
    }
    let form = if args.form == Form::Packet { "packet" } else { "published" };
    let (leaves, levels, rounds) = (args.leaves, args.levels, args.rounds.count);
    let title = format!("share: {form}, {leaves} leaves, {levels} levels, {rounds} rounds");
    figures.show(&title, &args.rounds.json)
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
fn ratio(of: usize, by: usize) -> f64 {
    of as f64 / by.max(1) as f64
}

/// What is measured.
enum Measured {
    Packet(Allocator),
    Published(Published, Core),
}

struct Bench {
    law: Measured,
    leaves: Vec<u32>,
    drawn: Vec<u32>,
    now: Instant,
    next: Instant,
    random: u64,
    passed: usize,
    /// How long publishing took, and how often that was.
    published: (Duration, usize),
}

impl Bench {
    fn new(args: &Args) -> Bench {
        let nodes = nodes(args);
        let fits = "the tree is made to fit";
        let (law, places): (Measured, Places) = if args.form == Form::Published {
            let settling = settling(args.profile).unwrap_or(Settling::Exact);
            let (published, places) = Published::under(&nodes, settling).expect(fits);
            let core = published.core();
            (Measured::Published(published, core), places)
        } else {
            let (allocator, places) = Allocator::new(&nodes, law(args.profile)).expect(fits);
            (Measured::Packet(allocator), places)
        };
        let leaves = places.iter().filter_map(|place| match place {
            Place::Leaf(leaf) => Some(leaf),
            Place::Inner(_) => None,
        });
        Bench {
            law,
            leaves: leaves.collect(),
            drawn: Vec::new(),
            now: Instant::ZERO,
            next: Instant::ZERO + PERIOD,
            random: 0x5eed,
            passed: 0,
            published: (Duration::ZERO, 0),
        }
    }

    fn bytes(&self) -> usize {
        match &self.law {
            Measured::Packet(allocator) => allocator.bytes(),
            Measured::Published(published, core) => published.bytes() + core.bytes(),
        }
    }

    fn round(&mut self, args: &Args) -> (Duration, usize, usize) {
        let (mut time, mut packets) = (Duration::ZERO, 0);
        self.passed = 0;
        for _ in 0..args.rounds.packets.div_ceil(CHUNK) {
            self.draw();
            if let Measured::Published(published, core) = &mut self.law
                && self.now >= self.next
            {
                let took = timed(|| published.publish(self.now, std::slice::from_mut(core)));
                self.published = (self.published.0 + took, self.published.1 + 1);
                self.next = self.now + PERIOD;
            }
            let took = timed(|| self.packets());
            if took < DISTURBED {
                time += took;
                packets += self.drawn.len();
            }
        }
        (time, packets, self.passed)
    }

    /// Not inlined: instructions are counted within it.
    #[inline(never)]
    fn packets(&mut self) {
        match &mut self.law {
            Measured::Packet(allocator) => {
                for &leaf in &self.drawn {
                    self.now += Span::from_ns(GAP);
                    let fate = allocator.packet(self.now, leaf, LEN);
                    self.passed += usize::from(black_box(fate).passes());
                }
            }
            Measured::Published(_, core) => {
                for &leaf in &self.drawn {
                    self.now += Span::from_ns(GAP);
                    let fate = core.packet(leaf, LEN);
                    self.passed += usize::from(black_box(fate).passes());
                }
            }
        }
    }

    fn draw(&mut self) {
        self.drawn.clear();
        for _ in 0..CHUNK {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (u128::from(self.random) * self.leaves.len() as u128) >> 64;
            self.drawn.push(self.leaves[usize::try_from(at).unwrap_or(0)]);
        }
    }
}

fn law(profile: Profile) -> Law {
    match profile {
        Profile::Weir => Law::Weir(Options::TCP),
        Profile::Hsdba => Law::Hsdba(hsdba::Options {
            // to look at all of a million leaves so often is not what is measured
            silence: hsdba::Silence::Sweep,
            ..hsdba::Options::default()
        }),
        Profile::HsdbaPrinted => Law::Hsdba(hsdba::Options {
            reading: hsdba::Reading::Printed,
            ..hsdba::Options::default()
        }),
        Profile::Hcsfq => Law::Hcsfq(Span::from_ms(2), 1),
        Profile::Ahab => Law::Ahab(ahab::Options::default()),
    }
}

/// How published shares follow; none for what has no such form.
fn settling(profile: Profile) -> Option<Settling> {
    match profile {
        Profile::Weir => Some(Settling::Exact),
        Profile::Hsdba => Some(Settling::Hsdba),
        Profile::HsdbaPrinted => None,
        Profile::Hcsfq => Some(Settling::Hcsfq),
        Profile::Ahab => Some(Settling::Ahab(ahab::Options::default().nearness)),
    }
}

/// A tree of so many levels, each node with as many children.
fn nodes(args: &Args) -> Vec<Node> {
    let width = (1..).find(|w: &u64| w.pow(args.levels) >= u64::from(args.leaves)).unwrap_or(1);
    let width = u32::try_from(width).unwrap_or(1);
    let mut nodes = vec![Node::link(RATE)];
    // how many leaves a node of this level holds, and where the nodes of the level above begin
    let (mut holds, mut above) = (width.saturating_pow(args.levels - 1), LINK);
    for level in 1..=args.levels {
        let begin = u32::try_from(nodes.len()).unwrap_or(0);
        let count = args.leaves.div_ceil(holds.max(1));
        for at in 0..count {
            let parent = above + at / width;
            let leaf = level == args.levels;
            nodes.push(if leaf { Node::leaf(parent, 1) } else { Node::inner(parent, 1) });
        }
        above = begin;
        holds = holds.div_ceil(width);
    }
    nodes
}
