//! Who has how much: in each stretch of constant load, what passed of each sender against the
//! exact answer, and how long the queue behind is.

use super::traffic::{send, wanted};
use super::{Enforce, Gate, Sharing, Shown, bits, whole};

/// When shares have long settled, in ns; in a short stretch after two fifths of it.
const SETTLED: u64 = 1_000_000_000;

pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Shown {
    let Sharing { nodes, loads, bytes, .. } = sharing;
    let Some(mut gate) = Gate::new(nodes, enforce, seed) else { return Vec::new() };
    let unit = sharing.unit.ns().max(1);
    let stretches = usize::try_from(sharing.run.ns().div_ceil(unit)).unwrap_or(1);
    let mut passed = vec![vec![[0.0_f64; 2]; loads.len()]; stretches];
    let packet = f64::from(*bytes) * 8.0;
    // of a stretch, what comes before does not count
    let settled = (unit / 5 * 2).min(SETTLED);
    let line = bits(nodes[0].peak) / 1e9;
    let (mut queue, mut last, mut waits) = (0.0_f64, 0, Vec::new());
    send(loads, *bytes, seed, |now, at| {
        let passes = gate.packet(now, loads[at].node, *bytes);
        queue = (queue - whole(now - last) * line).max(0.0);
        last = now;
        let stretch = usize::try_from(now / unit).unwrap_or(0);
        let counts = now % unit >= settled;
        if passes {
            queue += packet;
        }
        if counts && let Some(seen) = passed.get_mut(stretch) {
            seen[at][0] += packet;
            if passes {
                seen[at][1] += packet;
                waits.push(queue / line / 1e3);
            }
        }
    });
    let seconds = whole(unit - settled) / 1e9;
    let (mut sum, mut count, mut most, mut used, mut right) = (0.0, 0.0, 0.0_f64, 0.0, 0.0);
    let (mut total, mut small) = (0.0_f64, f64::MAX);
    for (stretch, seen) in passed.iter().enumerate() {
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
    waits.sort_by(f64::total_cmp);
    let p99 = waits.get(waits.len() * 99 / 100).copied().unwrap_or(0.0);
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
    shown
}
