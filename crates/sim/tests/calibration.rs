//! The model against Linux 6.18 in network namespaces, same task: five classes of four bulk flows,
//! each class a FIFO of 20 packets at its rate (of IP packets), 50 ms one way, measured from 30 to
//! 230 s of 250. Goodput and retransmissions are means over 5 seeds and must lie within 0.05 of the
//! kernel's; the spread among the four flows is chaotic in so short a queue (two runs of the same
//! kernel gave 0.015 and 0.203), so the kernel's must lie within what 20 seeds give, or 0.05 of it.
//! What is further apart stands in a list, and must be.
//!
//! `cargo test -p weir-sim --test calibration -- --nocapture` prints the table.

use weir_shape::{FrameCost, Layer};
use weir_sim::impair::{Impairments, Loss};
use weir_sim::{FlowSpec, LinkSpec, Queue, Random, Source, TcpSpec, World};
use weir_units::{Instant, Rate, Span};

const CLASSES: [u64; 5] = [20_000, 40_000, 128_000, 256_000, 1_100_000];
const SEEDS: u64 = 20;
/// Seeds that goodput and retransmissions are the mean of.
const MEAN_OF: usize = 5;
const BAND: f64 = 0.05;

/// What one class gave: goodput by rate, the spread (deviation by mean) among its flows,
/// retransmitted packets by sent ones.
#[derive(Clone, Copy, Debug)]
struct Row {
    accuracy: f64,
    spread: f64,
    again: f64,
}

const fn row(accuracy: f64, spread: f64, again: f64) -> Row {
    Row { accuracy, spread, again }
}

/// One run each of the kernel; and of smoltcp 0.14 in another simulator, which says more of ours
/// than of it.
const KERNEL: [(&str, [Row; 5]); 7] = [
    (
        "linux-reno-2001",
        [
            row(0.967, 0.03, 0.035),
            row(0.974, 0.02, 0.035),
            row(0.970, 0.00, 0.035),
            row(0.969, 0.00, 0.033),
            row(0.973, 0.03, 0.034),
        ],
    ),
    (
        "linux-cubic-2001",
        [
            row(0.91, 0.19, 0.105),
            row(0.90, 0.15, 0.130),
            row(0.95, 0.12, 0.158),
            row(0.97, 0.13, 0.094),
            row(0.97, 0.08, 0.035),
        ],
    ),
    (
        "linux-reno",
        [
            row(1.02, 0.48, 0.111),
            row(0.97, 0.26, 0.078),
            row(0.96, 0.01, 0.041),
            row(0.97, 0.02, 0.039),
            row(0.97, 0.06, 0.039),
        ],
    ),
    (
        "linux-now",
        [
            row(1.02, 0.60, 0.194),
            row(0.98, 0.52, 0.161),
            row(0.97, 0.18, 0.130),
            row(0.97, 0.22, 0.091),
            row(0.97, 0.06, 0.037),
        ],
    ),
    (
        "bbr",
        [
            row(0.86, 0.15, 0.591),
            row(0.97, 0.27, 0.478),
            row(0.97, 0.47, 0.169),
            row(0.96, 0.15, 0.180),
            row(0.97, 0.22, 0.130),
        ],
    ),
    (
        "smoltcp-reno",
        [
            row(0.943, 0.30, 0.040),
            row(0.938, 0.00, 0.042),
            row(0.973, 0.06, 0.040),
            row(0.974, 0.11, 0.036),
            row(0.972, 0.10, 0.022),
        ],
    ),
    (
        "smoltcp-cubic",
        [
            row(0.765, 0.45, 0.153),
            row(0.845, 0.22, 0.134),
            row(0.879, 0.14, 0.198),
            row(0.895, 0.03, 0.136),
            row(0.971, 0.11, 0.028),
        ],
    ),
];

/// What does not fit: preset, class, measure.
///
/// Reno of 2001: below 256 kbit/s the kernel's four flows end up equal, ours keep for minutes what
/// they won at the start. Without F-RTO they do not, so it lies in how the first timeouts, which
/// are needless, are taken back. CUBIC of 2001: the kernel wasted more at 40 kbit/s than at 20.
/// BBR: where a packet takes 0.3 s or more, the kernel's sends twice what the link takes; ours does
/// not see as high a rate. Its spread is a matter of which flow probes when. smoltcp: without any
/// luck of its own, its flows fall into a pattern that the first packets decide.
const APART: &[(&str, usize, &str)] = &[
    ("linux-reno-2001", 0, "spread"),
    ("linux-reno-2001", 1, "spread"),
    ("linux-reno-2001", 2, "spread"),
    ("linux-cubic-2001", 1, "accuracy"),
    ("bbr", 0, "accuracy"),
    ("bbr", 0, "retransmission"),
    ("bbr", 1, "retransmission"),
    ("bbr", 2, "spread"),
    ("bbr", 4, "spread"),
    ("smoltcp-reno", 0, "spread"),
    ("smoltcp-reno", 1, "spread"),
    ("smoltcp-reno", 4, "spread"),
    ("smoltcp-cubic", 0, "retransmission"),
    ("smoltcp-cubic", 0, "spread"),
    ("smoltcp-cubic", 1, "retransmission"),
    ("smoltcp-cubic", 4, "spread"),
];

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Span::from_secs(seconds)
}

fn wire(rate: Option<u64>, queue: usize, loss: Loss) -> LinkSpec {
    LinkSpec {
        rate: rate.map(Rate::from_bps),
        layers: FrameCost { layer: Layer::Ip, overhead: 0 },
        queue: Queue::frames(queue),
        path: Impairments { delay: Span::from_ms(50), loss, ..Impairments::default() },
    }
}

/// The five classes with one seed, which shifts the starts of flows within 100 ms.
fn classes(tcp: &TcpSpec, seed: u64) -> Vec<Row> {
    let mut world = World::new(seed);
    let mut random = Random::new(seed, u64::MAX);
    let mut flows = Vec::new();
    for (class, rate) in (0_u8..).zip(CLASSES) {
        let [a, b] = [0, 1].map(|side| world.host([10, side, class, 1].into()));
        world.connect(a, b, &wire(Some(rate), 20, Loss::None), &wire(None, 0, Loss::None));
        for _ in 0..4 {
            flows.push(world.flow(&FlowSpec {
                start: Instant::ZERO + Span::from_us(random.below(100_000)),
                measure: (at(30), at(230)),
                tcp: Box::new([tcp.clone(), tcp.clone()]),
                ..FlowSpec::new(a, b, Source::Bulk { bytes: None })
            }));
        }
    }
    world.run_until(at(250));
    CLASSES
        .iter()
        .zip(flows.chunks(4))
        .map(|(rate, flows)| {
            let ends: Vec<_> = flows.iter().map(|flow| &world.report(*flow).ends).collect();
            let bits: Vec<f64> = ends.iter().map(|ends| number(ends[1].measured * 8)).collect();
            let mean = bits.iter().sum::<f64>() / 4.0;
            let variance = bits.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / 4.0;
            let sent: u64 = ends.iter().map(|ends| ends[0].measured_sent).sum();
            let again: u64 = ends.iter().map(|ends| ends[0].measured_again).sum();
            Row {
                accuracy: 4.0 * mean / 200.0 / number(*rate),
                spread: variance.sqrt() / mean,
                again: number(again) / number(sent),
            }
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn number(n: u64) -> f64 {
    n as f64
}

/// What is apart from the kernel in one class, and the row of the table.
fn compare(ours: &[Row], kernel: &Row) -> (Vec<(&'static str, String)>, String) {
    let first = &ours[..MEAN_OF];
    let mean = |f: fn(&Row) -> f64| first.iter().map(f).sum::<f64>() / number(first.len() as u64);
    let least = ours.iter().map(|row| row.spread).fold(f64::MAX, f64::min);
    let most = ours.iter().map(|row| row.spread).fold(0.0, f64::max);
    let (accuracy, again) = (mean(|row| row.accuracy), mean(|row| row.again));
    let mut apart = Vec::new();
    if (accuracy - kernel.accuracy).abs() > BAND {
        apart.push(("accuracy", format!("{accuracy:.3}, kernel {:.3}", kernel.accuracy)));
    }
    if (again - kernel.again).abs() > BAND {
        apart.push(("retransmission", format!("{again:.3}, kernel {:.3}", kernel.again)));
    }
    if kernel.spread < least - BAND || kernel.spread > most + BAND {
        let spread = format!("{least:.3} to {most:.3}, kernel {:.3}", kernel.spread);
        apart.push(("spread", spread));
    }
    let line = format!(
        "  {accuracy:.3} ({:.3})  {again:.3} ({:.3})  {least:.2}..{most:.2} ({:.2})",
        kernel.accuracy, kernel.again, kernel.spread
    );
    (apart, line)
}

#[test]
fn the_model_does_what_the_kernel_does() {
    let mut found = Vec::new();
    let mut said = String::new();
    for (name, kernel) in &KERNEL {
        let tcp = TcpSpec::preset(name).expect("a preset");
        let runs: Vec<Vec<Row>> = (0..SEEDS).map(|seed| classes(&tcp, seed)).collect();
        println!("{name}: goodput by rate, retransmission, spread (the kernel's)");
        for (class, kernel) in kernel.iter().enumerate() {
            let ours: Vec<Row> = runs.iter().map(|run| run[class]).collect();
            let (apart, line) = compare(&ours, kernel);
            println!("{line}");
            for (what, how) in apart {
                found.push((*name, class, what));
                said += &format!("{name}, {} bit/s: {what} {how}\n", CLASSES[class]);
            }
        }
    }
    assert_eq!(found, APART, "\n{said}");
}

/// Goodput of one flow in kbit/s at 200 kbit/s when every n-th packet is lost: n, then the kernel.
const LOSSES: [u64; 5] = [200, 100, 50, 25, 12];
const LOSSY_KERNEL: [(&str, [f64; 5]); 3] = [
    ("linux-reno-2001", [193.7, 192.7, 190.7, 186.8, 178.2]),
    ("linux-now", [192.2, 191.2, 189.9, 185.4, 176.8]),
    ("bbr", [192.1, 191.1, 189.2, 185.3, 177.1]),
];

/// What is more than 1 % apart. NewReno recovers from a window of 4 or 5 with 2, and two do not
/// fill the path; why the kernel's does is not known (smoltcp's gives 159). CUBIC fills the queue
/// once at the start; how long the kernel's was is not known, here it has 50 packets.
const LOSSY_APART: &[(&str, u64)] = &[("linux-reno-2001", 12), ("linux-now", 200)];

#[test]
fn loss_costs_what_it_costs_the_kernel() {
    let mut apart = Vec::new();
    for (name, kernel) in LOSSY_KERNEL {
        let tcp = TcpSpec::preset(name).expect("a preset");
        for (every, kernel) in LOSSES.into_iter().zip(kernel) {
            let mut world = World::new(1);
            let [a, b] = [0, 1].map(|side| world.host([10, side, 0, 1].into()));
            let loss = Loss::Periodic { every, phase: 0 };
            world.connect(a, b, &wire(Some(200_000), 50, loss), &wire(None, 0, Loss::None));
            let flow = world.flow(&FlowSpec {
                measure: (at(30), at(230)),
                tcp: Box::new([tcp.clone(), tcp.clone()]),
                ..FlowSpec::new(a, b, Source::Bulk { bytes: None })
            });
            world.run_until(at(250));
            let goodput = number(world.report(flow).ends[1].measured * 8) / 200_000.0;
            println!("{name}, every {every}: {goodput:.1} kbit/s ({kernel:.1})");
            if (goodput / kernel - 1.0).abs() > 0.01 {
                apart.push((name, every));
            }
        }
    }
    assert_eq!(apart, LOSSY_APART);
}

/// The survey's Fig. 12: four systems at 80 kbit/s with every hundredth packet lost. With a large
/// window they are the same; with three segments a loss cannot make three duplicates, so that it
/// takes a timer, and the coarsest timer loses. Windows 2000 needs two.
#[test]
fn systems_fan_out_where_a_window_is_three_segments() {
    let run = |name: &str, window: u32| {
        let from = TcpSpec::preset(name).expect("a preset");
        let to = TcpSpec { window, ..TcpSpec::preset("linux-2.2").expect("a preset") };
        let mut world = World::new(1);
        let [a, b] = [0, 1].map(|side| world.host([10, side, 0, 1].into()));
        let loss = Loss::Periodic { every: 100, phase: 0 };
        world.connect(a, b, &wire(Some(80_000), 50, loss), &wire(None, 0, Loss::None));
        let bulk = Source::Bulk { bytes: None };
        let flow = world.flow(&FlowSpec { tcp: Box::new([from, to]), ..FlowSpec::new(a, b, bulk) });
        world.run_until(at(240));
        let ends = &world.report(flow).ends;
        println!("{name}, {window} bytes: {} delivered", ends[1].delivered);
        (ends[1].delivered, ends[0].timeouts)
    };
    let systems = ["linux-2.2", "win2000", "freebsd-4", "solaris-8"];
    for name in systems {
        assert_eq!(run(name, 32 << 10), run("linux-2.2", 32 << 10));
    }
    let [linux, windows, freebsd, solaris] = systems.map(|name| run(name, 3 * 1_460));
    assert_eq!(windows.1, 0);
    for fine in [linux, windows, solaris] {
        assert!(freebsd.0 * 100 < fine.0 * 97, "{freebsd:?} {fine:?}");
    }
}
