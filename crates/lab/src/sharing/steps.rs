//! How soon all shares are right after somebody begins or ends, in packets of one flow at the
//! link's rate: at the first packet at which all are, and at the first from which nine of ten
//! moments of the next hundred packets find them so.

use super::traffic::{send, wanted};
use super::{Enforce, Numbers, Sharing, bits, whole};

/// A share is right within a twentieth.
const BAND: f64 = 0.05;
/// Where nothing is ever right.
const NEVER: f64 = 9_999.0;

pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Numbers {
    let Sharing { nodes, loads, bytes, .. } = sharing;
    let Some(mut gate) = sharing.gate(nodes, enforce, seed) else { return Vec::new() };
    if loads.iter().any(|load| gate.share(load.node).is_none()) {
        return Vec::new();
    }
    let tau = f64::from(*bytes) * 8e9 / bits(nodes[0].peak);
    let mut events: Vec<(u64, bool)> = loads
        .iter()
        .flat_map(|load| [(load.times.0, true), (load.times.1, false)])
        .filter(|(at, _)| *at > 0 && *at < sharing.run.ns())
        .collect();
    events.sort_unstable();
    events.dedup();
    let mut seen: Vec<Vec<(u64, bool)>> = vec![Vec::new(); events.len()];
    let mut exact = (u64::MAX, Vec::new());
    send(loads, *bytes, seed, |now, at, _| {
        let _ = gate.packet(now, loads[at].node, *bytes);
        let Some(event) = events.iter().rposition(|(from, _)| *from <= now) else { return };
        let from = events[event].0;
        if exact.0 != from {
            exact = (from, wanted(nodes, loads, now));
        }
        let is_right =
            loads.iter().zip(&exact.1).filter(|(load, _)| load.is_on(now)).all(|(load, exact)| {
                let share = gate.share(load.node).unwrap_or(0.0);
                let is_enough = share >= (1.0 - BAND) * exact;
                is_enough && (*exact >= 0.999 * load.rate || share <= (1.0 + BAND) * exact)
            });
        seen[event].push((now, is_right));
    });
    let mut sums = [[0.0, 0.0], [0.0, 0.0]];
    let mut counts = [0.0, 0.0];
    for ((from, begins), seen) in events.iter().zip(&seen) {
        let kind = usize::from(!begins);
        let packets = |now: u64| whole(now - from) / tau;
        let hit = seen.iter().find(|(_, is_right)| *is_right);
        let holds = |at: &usize| {
            let until = seen[*at].0 + super::number(100.0 * tau);
            let next: Vec<bool> =
                seen[*at..].iter().take_while(|(now, _)| *now < until).map(|s| s.1).collect();
            let right = next.iter().filter(|is_right| **is_right).count();
            seen[*at].1 && right * 10 >= next.len() * 9
        };
        let hold = (0..seen.len()).find(holds);
        sums[kind][0] += hit.map_or(NEVER, |(now, _)| packets(*now));
        sums[kind][1] += hold.map_or(NEVER, |at| packets(seen[at].0));
        counts[kind] += 1.0;
    }
    let mean = |kind: usize, which: usize| sums[kind][which] / f64::max(counts[kind], 1.0);
    vec![
        ("start_hit".to_owned(), mean(0, 0)),
        ("start_hold".to_owned(), mean(0, 1)),
        ("end_hit".to_owned(), mean(1, 0)),
        ("end_hold".to_owned(), mean(1, 1)),
    ]
}
