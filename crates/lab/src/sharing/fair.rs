//! Who has how much: in each stretch of constant load, what passed of each sender against the
//! exact answer, and how long the queue behind is.

use super::traffic::{send, wanted};
use super::{Enforce, Gate, Sharing, Shown, bits, whole};

/// When shares have long settled, in ns; in a short stretch after two fifths of it.
const SETTLED: u64 = 1_000_000_000;
/// With more leaves than this, what each has is not told.
const FEW: usize = 32;

pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Shown {
    let Sharing { nodes, loads, .. } = sharing;
    let unit = sharing.unit.ns().max(1);
    // of a stretch, what comes before does not count
    let settled = (unit / 5 * 2).min(SETTLED * sharing.slower);
    let Some(mut seen) = seen(sharing, enforce, seed, settled) else { return Vec::new() };
    let seconds = whole(unit - settled) / 1e9;
    let (mut sum, mut count, mut most, mut used, mut right) = (0.0, 0.0, 0.0_f64, 0.0, 0.0);
    let (mut total, mut small) = (0.0_f64, f64::MAX);
    for (stretch, seen) in seen.stretches.iter().enumerate() {
        let exact = wanted(nodes, loads, stretch as u64 * unit + unit / 2);
        let mut all = 0.0;
        for ((load, seen), exact) in loads.iter().zip(seen).zip(&exact) {
            if *exact <= 0.0 {
                continue;
            }
            // who is satisfied is held to what it really sent
            let exact = exact.min(seen[0] / seconds).max(1.0);
            let rate = seen[1] / seconds;
            let off = (rate / exact - 1.0).abs();
            (sum, count, most) = (sum + off, count + 1.0, most.max(off));
            (used, right, all) = (used + rate, right + exact, all + rate);
            if load.rate <= exact * 1.001 {
                small = small.min(rate / load.rate.min(seen[0] / seconds).max(1.0));
            }
        }
        total = total.max(all);
    }
    let p99 = seen.wait_us_p99();
    let mut shown = vec![
        ("dev_mean".to_owned(), sum / f64::max(count, 1.0)),
        ("dev_max".to_owned(), most),
        ("utilisation".to_owned(), used / f64::max(right, 1.0)),
        ("total".to_owned(), total / 1e6),
        ("queue_us_p99".to_owned(), p99),
    ];
    if small < f64::MAX {
        shown.push(("small_flow_min".to_owned(), small));
    }
    if loads.len() <= FEW {
        for (leaf, number) in (0..loads.len()).zip(1..) {
            let rates = seen.stretches.iter().map(|seen| seen[leaf][1] / seconds / 1e6);
            let mean = rates.sum::<f64>() / f64::max(1.0, whole(seen.stretches.len() as u64));
            shown.push((format!("share.{number}"), mean));
        }
    }
    shown
}

/// What came of a run.
pub(super) struct Seen {
    /// By stretch and load: bits that were sent, and that passed.
    pub(super) stretches: Vec<Vec<[f64; 2]>>,
    /// How long packets were on their way up to their last bit on the link, in us.
    waits: Vec<f64>,
}

impl Seen {
    fn wait_us_p99(&mut self) -> f64 {
        self.waits.sort_by(f64::total_cmp);
        self.waits.get(self.waits.len() * 99 / 100).copied().unwrap_or(0.0)
    }
}

/// Counts, in each stretch of a run, what comes `settled` ns and more after its beginning.
pub(super) fn seen(sharing: &Sharing, enforce: Enforce, seed: u64, settled: u64) -> Option<Seen> {
    let Sharing { nodes, loads, bytes, .. } = sharing;
    let mut gate = Gate::new(nodes, enforce, seed)?;
    let is_engine = matches!(enforce, Enforce::Engine(_));
    let unit = sharing.unit.ns().max(1);
    let count = usize::try_from(sharing.run.ns().div_ceil(unit)).unwrap_or(1);
    let mut stretches = vec![vec![[0.0_f64; 2]; loads.len()]; count];
    let mut senders = vec![0; nodes.len()];
    for (at, load) in loads.iter().enumerate() {
        senders[load.node as usize] = at;
    }
    // where in the run a moment is, if it counts
    let place = |at: u64| (at % unit >= settled).then(|| usize::try_from(at / unit).unwrap_or(0));
    let line = bits(nodes[0].peak) / 1e9;
    let (mut queue, mut last, mut waits) = (0.0_f64, 0, Vec::new());
    send(loads, *bytes, seed, |now, at, len| {
        let packet = f64::from(len) * 8.0;
        let passes = gate.packet(now, loads[at].node, len) && !is_engine;
        queue = (queue - whole(now - last) * line).max(0.0);
        last = now;
        if passes {
            queue += packet;
        }
        if let Some(seen) = place(now).and_then(|stretch| stretches.get_mut(stretch)) {
            seen[at][0] += packet;
            if passes {
                seen[at][1] += packet;
                waits.push(queue / line / 1e3);
            }
        }
        for sent in gate.sent() {
            if let Some(seen) = place(sent.left).and_then(|stretch| stretches.get_mut(stretch)) {
                seen[senders[sent.node as usize]][1] += f64::from(sent.bytes) * 8.0;
                waits.push(whole(sent.left - sent.came) / 1e3);
            }
        }
    });
    Some(Seen { stretches, waits })
}
