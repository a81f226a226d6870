//! How long packets take from their coming to their last bit on the link, by their length, and how
//! much less that is than behind queues of 16, 64 and 256 frames for each leaf, served in turns.

use super::traffic::send;
use super::{Enforce, Gate, Numbers, Sharing, bits, number, queue::Queues, whole};

/// Lengths of packets, in bytes.
const LENGTHS: [u32; 7] = [200, 400, 600, 800, 1_000, 1_200, 1_400];
const DEPTHS: [u32; 3] = [16, 64, 256];

pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Numbers {
    let mut shown = Numbers::new();
    let (mut lowest, mut frames) = ([f64::MAX; 3], 0.0_f64);
    for len in LENGTHS {
        let waits = waits(sharing, enforce, seed, len);
        let ours = mean(&waits);
        shown.push((format!("latency_us.{len}"), ours / 1e3));
        let frame = f64::from(len) * 8e9 / bits(sharing.nodes[0].peak);
        let mut sorted = waits;
        sorted.sort_by(f64::total_cmp);
        let p99 = sorted.get(sorted.len() * 99 / 100).copied().unwrap_or(0.0);
        frames = frames.max(p99 / frame);
        for (depth, least) in DEPTHS.into_iter().zip(&mut lowest) {
            let theirs = mean(&self::waits(sharing, Enforce::Dwrr(depth), seed, len));
            *least = least.min(1.0 - ours / theirs.max(1.0));
        }
    }
    // without more words: 64 frames; how many the paper's queues had it does not say
    shown.push(("reduction".to_owned(), lowest[1]));
    for (depth, least) in DEPTHS.into_iter().zip(lowest) {
        shown.push((format!("reduction.{depth}"), least));
    }
    shown.push(("frames_p99".to_owned(), frames));
    shown
}

fn waits(sharing: &Sharing, enforce: Enforce, seed: u64, len: u32) -> Vec<f64> {
    let Sharing { nodes, loads, .. } = sharing;
    let Some(mut gate) = sharing.gate(nodes, enforce, seed) else { return Vec::new() };
    let from = sharing.run.ns() / 5;
    if let Enforce::Open = enforce {
        return vec![f64::from(len) * 8e9 / bits(nodes[0].peak)];
    }
    let mut behind = None;
    if let Gate::Law(_, places) = &gate {
        let queues = Queues::new(nodes, places, nodes[0].peak, u32::MAX, true);
        behind = Some((queues, places.clone()));
    }
    let mut sent = Vec::new();
    send(loads, len, seed, |now, at, _| {
        let node = loads[at].node;
        let passes = gate.packet(now, node, len);
        sent.extend(gate.sent().iter().map(|sent| (sent.came, sent.left - sent.came)));
        if passes && let Some((queues, places)) = &mut behind {
            queues.arrive(now, places.leaf(node).unwrap_or(0), len);
        }
    });
    let late = number(whole(sharing.run.ns()) * 1.1);
    let waits = match (behind, gate) {
        (Some((mut queues, _)), _) | (None, Gate::Queue(mut queues, _)) => {
            queues.serve(late);
            queues.waits
        }
        (None, Gate::Engine(mut boxed)) => {
            boxed.serve(late);
            sent.extend(boxed.sent().iter().map(|sent| (sent.came, sent.left - sent.came)));
            sent
        }
        (None, Gate::Law(..)) => return Vec::new(),
    };
    waits.iter().filter(|(came, _)| *came >= from).map(|(_, wait)| whole(*wait)).collect()
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / f64::max(1.0, whole(figures.len() as u64))
}
