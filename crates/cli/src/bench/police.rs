//! What policing costs: the table of leaves and meters alone, as the engine asks it. Frames of 300
//! bytes under two rates that none exceeds, leaves drawn uniformly beforehand, as in
//! `bench/peers/rte_bench.c` with `mode=meter`. Only one of a leaf's two directions is used, which
//! is the dearer way: no two meters share a cache line.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use weir_condition::meter::{Colour, Terms};
use weir_condition::police::{Action, Edit, Police, Policer, Spec, Treatment};
use weir_packet::{Headers, Label, Side};
use weir_units::limits::BURST_FRAMES;
use weir_units::{Bytes, Instant, Rate, Span, Way};

use super::{Figures, Rounds, per, timed, within};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leaves, all policed
    #[arg(long, default_value_t = 4_096, value_parser = within(1..=1_048_576))]
    leaves: u32,
    /// Frames handed over at once
    #[arg(long, default_value_t = 32, value_parser = within(1..=64))]
    burst: u32,
    #[command(flatten)]
    rounds: Rounds,
}

/// Leaves drawn beforehand.
const DRAWN: usize = 1 << 20;
const FRAME: Bytes = Bytes::new(300);
/// Bursts between two looks at the clock.
const BURSTS: usize = 64;
/// What took longer met something else on this core.
const DISTURBED: Duration = Duration::from_micros(200);

pub(crate) fn run(args: &Args) -> ExitCode {
    let mut bench = Bench::new(args);
    let mut figures = Figures::new(&["ns_per_packet", "accepted"]);
    if args.rounds.count > 1 {
        // every line of the table has been touched
        bench.round(args.rounds.packets.max(args.leaves * 2) as usize, args.burst as usize);
    }
    for _ in 0..args.rounds.count {
        let (time, measured, accepted) =
            bench.round(args.rounds.packets as usize, args.burst as usize);
        figures.add("ns_per_packet", per(time, measured));
        figures.add("accepted", ratio(accepted, measured));
    }
    let title = format!(
        "police: two rates, {} leaves, bursts of {}, {} rounds",
        args.leaves, args.burst, args.rounds.count
    );
    figures.show(&title, &args.rounds.json)
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
fn ratio(of: usize, by: usize) -> f64 {
    of as f64 / by.max(1) as f64
}

struct Bench {
    policer: Policer,
    drawn: Vec<u32>,
    next: usize,
    labels: [Label; BURST_FRAMES],
    now: Instant,
}

impl Bench {
    fn new(args: &Args) -> Bench {
        let (rate, burst) = (Rate::from_bps(10_000_000_000), Bytes::new(64 << 10));
        let terms = Terms::two_rates(rate, burst, rate.plus(rate), burst);
        let fates = [
            Action::Forward(Colour::Green, None),
            Action::Forward(Colour::Yellow, None),
            Action::Drop,
        ];
        let police = Treatment::Police(Police { terms, fates, aware: false });
        let leaves = (0..args.leaves).map(|leaf| (leaf, 0)).collect();
        let spec = Spec { treatments: vec![police], leaves };
        let mut policer = Policer::new();
        policer.apply(Instant::ZERO, &mut Edit::between(&Spec::default(), &spec));
        let mut random = 0x5eed_u64;
        let mut draw = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from((u128::from(random) * u128::from(args.leaves)) >> 64).unwrap_or(0)
        };
        let drawn = (0..DRAWN).map(|_| draw()).collect();
        let labels = [Label::new(Side::Lan, &Headers::EMPTY); BURST_FRAMES];
        Bench { policer, drawn, next: 0, labels, now: Instant::ZERO }
    }

    /// Time, frames, and how many of these were accepted.
    fn round(&mut self, packets: usize, burst: usize) -> (Duration, usize, usize) {
        let (mut all, mut measured, mut accepted) = (Duration::ZERO, 0, 0);
        for _ in 0..packets.div_ceil(burst * BURSTS) {
            let mut passed = 0;
            let time = timed(|| passed = self.bursts(burst));
            if time < DISTURBED {
                all += time;
                measured += burst * BURSTS;
                accepted += passed;
            }
        }
        (all, measured, accepted)
    }

    /// Not inlined: instructions are counted within it.
    #[inline(never)]
    fn bursts(&mut self, burst: usize) -> usize {
        let (mut passed, mut bytes) = (0, black_box([0; 64]));
        for _ in 0..BURSTS {
            if self.next + burst > self.drawn.len() {
                self.next = 0;
            }
            let labels = &mut self.labels[..burst];
            for (label, &leaf) in labels.iter_mut().zip(&self.drawn[self.next..]) {
                label.leaf = leaf;
            }
            self.next += burst;
            self.now += Span::from_ns(100);
            self.policer.expect(Way::Up, labels);
            for label in labels {
                let judged = self.policer.treat(self.now, FRAME, &mut bytes, label);
                passed += usize::from(judged.is_ok() && label.colour == 0);
            }
        }
        passed
    }
}
