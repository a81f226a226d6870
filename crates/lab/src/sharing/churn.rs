//! How shares follow senders that come and go: each leaf is on with seven of ten chances for 2 ms
//! and then some, at a rate drawn anew; windows of a millisecond against the exact answer.

use weir_share::Allocator;
use weir_sim::Random;

use super::traffic::{Gaps, Load, send, unit, wanted};
use super::{Enforce, Gate, Numbers, Sharing, bits, number, whole};

/// A window where nothing is slower, in ns, and the moments of it at which the exact answer is
/// computed.
const WINDOW: u64 = 1_000_000;
const MOMENTS: u64 = 20;
/// Windows that do not count.
const SKIP: usize = 10;
/// What all ask for in the mean, by what the link carries, were rates not limited.
const OFFERED: f64 = 2.8;

pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Numbers {
    let Sharing { nodes, bytes, .. } = sharing;
    let run = sharing.run.ns();
    let line = bits(nodes[0].peak);
    let segments = segments(sharing, line, seed);
    let Some(mut gate) = sharing.gate(nodes, enforce, seed) else { return Vec::new() };
    let wide = WINDOW * sharing.slower;
    let windows = usize::try_from(run / wide).unwrap_or(0);
    let mut passed = vec![vec![0.0; nodes.len()]; windows];
    let is_engine = matches!(enforce, Enforce::Engine(_));
    let mut count = |at: u64, node: u32, bytes: u32| {
        if let Some(window) = passed.get_mut(usize::try_from(at / wide).unwrap_or(0)) {
            window[node as usize] += f64::from(bytes) * 8.0;
        }
    };
    send(&segments, *bytes, seed, |now, at, len| {
        let node = segments[at].node;
        if gate.packet(now, node, len) && !is_engine {
            count(now, node, len);
        }
        gate.sent().iter().for_each(|sent| count(sent.left, sent.node, sent.bytes));
    });
    let (mut off, mut above, mut right) = (0.0, 0.0, 0.0);
    for (number, passed) in (0_u64..).zip(&passed).skip(SKIP) {
        let mut exact = vec![0.0; nodes.len()];
        for moment in 0..MOMENTS {
            let now = number * wide + (2 * moment + 1) * wide / (2 * MOMENTS);
            let on: Vec<Load> = segments.iter().filter(|s| s.is_on(now)).cloned().collect();
            for (load, share) in on.iter().zip(wanted(nodes, &on, now)) {
                exact[load.node as usize] += share * whole(wide) / 1e9 / whole(MOMENTS);
            }
        }
        off += passed.iter().zip(&exact).map(|(is, exact)| (is - exact).abs()).sum::<f64>();
        above += (passed.iter().sum::<f64>() - line * whole(wide) / 1e9).max(0.0);
        right += exact.iter().sum::<f64>();
    }
    let right = f64::max(right, 1.0);
    let mut shown =
        vec![("l1_error".to_owned(), off / right), ("above_capacity".to_owned(), above / right)];
    if let Gate::Law(allocator, _) = &gate
        && let Allocator::Hsdba(hsdba) = &**allocator
    {
        let work = whole(hsdba.work()) * 1e9 / whole(run);
        shown.push(("control_work_per_s".to_owned(), work));
    }
    shown
}

/// What the leaves send: one load for each time that one of them is on.
fn segments(sharing: &Sharing, line: f64, seed: u64) -> Vec<Load> {
    let Sharing { loads, slower, .. } = sharing;
    let run = sharing.run.ns();
    let mut random = Random::new(seed, 0xc0);
    let mut segments = Vec::new();
    let each = 0.15 * OFFERED * line / f64::max(1.0, whole(loads.len() as u64));
    for load in loads {
        let mut now = 0;
        while now < run {
            let lasts = whole(*slower) * (2e6 - 3e7 * (1.0 - unit(&mut random)).ln());
            let end = (now + number(lasts)).min(run);
            if unit(&mut random) < 0.7 {
                let rate = each * unit(&mut random).max(1e-9).powf(-0.9);
                let rate = rate.clamp(1e-4 * line, 0.9 * line);
                let gaps = Gaps::Jitter(0.2);
                segments.push(Load { rate, gaps, times: (now, end), ..load.clone() });
            }
            now = end;
        }
    }
    segments
}
