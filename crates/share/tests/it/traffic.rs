//! Packets of several senders in the order of their times, and what became of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_share::{Allocator, LINK, Law, Node, Places, Weir, exact};
use weir_units::{Instant, Rate};

/// A generator that is as good as these tests need.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(most)) >> 64) as u64
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Gaps {
    /// The same gap, by so many parts more or less.
    Jitter(f64),
    Poisson,
}

#[derive(Clone)]
pub(crate) struct Sender {
    /// Where in the list of nodes its leaf is.
    pub(crate) node: u32,
    pub(crate) rate: f64,
    pub(crate) gaps: Gaps,
    /// From and up to when it sends, in ns.
    pub(crate) times: Vec<(u64, u64)>,
}

pub(crate) const LEN: u32 = 1_024;

pub(crate) fn steady(node: u32, rate: f64, from: f64, to: f64) -> Sender {
    let times = vec![((from * 1e9) as u64, (to * 1e9) as u64)];
    Sender { node, rate, gaps: Gaps::Jitter(0.2), times }
}

/// Calls `each` with the time and the number of the sender of every packet.
pub(crate) fn send(senders: &[Sender], seed: u64, mut each: impl FnMut(u64, usize)) {
    let mut dice = Dice(seed);
    let mut heap = BinaryHeap::new();
    for (at, sender) in senders.iter().enumerate() {
        let gap = f64::from(LEN) * 8e9 / sender.rate;
        let phase = dice.unit() * gap;
        if let Some(&(from, _)) = sender.times.first() {
            heap.push(Reverse((from + phase as u64, at, 0_usize)));
        }
    }
    while let Some(Reverse((now, at, turn))) = heap.pop() {
        let sender = &senders[at];
        let gap = f64::from(LEN) * 8e9 / sender.rate;
        if now >= sender.times[turn].1 {
            if let Some(&(from, _)) = sender.times.get(turn + 1) {
                let phase = dice.unit() * gap;
                heap.push(Reverse((from.max(now) + phase as u64, at, turn + 1)));
            }
            continue;
        }
        each(now, at);
        let part = match sender.gaps {
            Gaps::Jitter(part) => 1.0 + part * (2.0 * dice.unit() - 1.0),
            Gaps::Poisson => -(1.0 - dice.unit()).ln(),
        };
        heap.push(Reverse((now + ((gap * part) as u64).max(1), at, turn)));
    }
}

/// Bits that each sender sent and that passed, in a window.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) sent: Vec<f64>,
    pub(crate) passed: Vec<f64>,
}

/// How far the rates of some windows are from the exact answer.
pub(crate) struct Deviation {
    pub(crate) mean: f64,
    pub(crate) most: f64,
    /// Bits that passed, by bits of the exact answer.
    pub(crate) used: f64,
}

/// What passed of each sender in each window (from, to).
pub(crate) fn windows(
    senders: &[Sender],
    windows: &[(f64, f64)],
    seed: u64,
    mut packet: impl FnMut(u64, u32) -> bool,
) -> Vec<Seen> {
    let none = vec![0.0; senders.len()];
    let mut seen = vec![Seen { sent: none.clone(), passed: none }; windows.len()];
    send(senders, seed, |now, at| {
        let passes = packet(now, senders[at].node);
        let time = now as f64 / 1e9;
        for (seen, _) in seen.iter_mut().zip(windows).filter(|(_, w)| w.0 <= time && time < w.1) {
            seen.sent[at] += f64::from(LEN) * 8.0;
            seen.passed[at] += f64::from(LEN) * 8.0 * f64::from(u8::from(passes));
        }
    });
    seen
}

/// The exact shares of senders that want so much each, in bit/s.
pub(crate) fn wanted(
    nodes: &[Node],
    senders: &[Sender],
    wants: impl Fn(&Sender) -> f64,
) -> Vec<f64> {
    let mut demands = vec![Rate::ZERO; nodes.len()];
    for sender in senders {
        demands[sender.node as usize] = Rate::from_bps(wants(sender) as u64);
    }
    let shares = exact::shares(nodes, &demands).unwrap();
    senders.iter().map(|s| shares[s.node as usize].bps() as f64).collect()
}

/// Holds windows of constant load to the exact answer.
pub(crate) fn deviation(
    nodes: &[Node],
    senders: &[Sender],
    times: &[(f64, f64)],
    packet: impl FnMut(u64, u32) -> bool,
) -> Deviation {
    let seen = windows(senders, times, 1, packet);
    let (mut sum, mut count, mut most, mut passed, mut right) = (0.0, 0.0, 0.0_f64, 0.0, 0.0);
    for (seen, &(from, to)) in seen.iter().zip(times) {
        let is_on = |sender: &Sender| {
            let middle = (from + to) * 5e8;
            let on = |&(a, b): &(u64, u64)| a as f64 <= middle && middle <= b as f64;
            sender.times.iter().any(on)
        };
        let exact = wanted(nodes, senders, |s| if is_on(s) { s.rate } else { 0.0 });
        for (at, exact) in exact.iter().enumerate().filter(|(_, exact)| **exact > 0.0) {
            // a sender that is satisfied is held to what it really sent
            let sent = seen.sent[at] / (to - from);
            let exact = exact.min(sent);
            let rate = seen.passed[at] / (to - from);
            let off = (rate / exact - 1.0).abs();
            (sum, count, most) = (sum + off, count + 1.0, most.max(off));
            (passed, right) = (passed + rate, right + exact);
        }
    }
    Deviation { mean: sum / count, most, used: passed / right }
}

/// What a packet of a node of the list meets.
pub(crate) fn through<'a>(
    weir: &'a mut Weir,
    places: &'a Places,
) -> impl FnMut(u64, u32) -> bool + 'a {
    |now, node| weir.packet(Instant::from_ns(now), places.leaf(node).unwrap(), LEN).passes()
}

/// The same with any allocator.
pub(crate) fn under(nodes: &[Node], law: Law) -> impl FnMut(u64, u32) -> bool {
    let (mut allocator, places) = Allocator::new(nodes, law).unwrap();
    move |now, node| {
        allocator.packet(Instant::from_ns(now), places.leaf(node).unwrap(), LEN).passes()
    }
}

pub(crate) fn gbit(rate: f64) -> Rate {
    Rate::from_bps((rate * 1e9) as u64)
}

/// Six leaves, alone or in two groups of three, with the paper's schedule: each sends 3 Gbit/s for
/// 60 of the 110 units of time, each a unit of ten later than the one before.
pub(crate) fn six(
    weights: [u32; 6],
    groups: Option<[u32; 2]>,
    unit: f64,
) -> (Vec<Node>, Vec<Sender>) {
    let mut nodes = vec![Node::link(gbit(10.0))];
    for weight in groups.into_iter().flatten() {
        nodes.push(Node::inner(LINK, weight));
    }
    let first = nodes.len() as u32;
    for (at, weight) in (0..6).zip(weights) {
        let parent = if groups.is_some() { 1 + at / 3 } else { LINK };
        nodes.push(Node::leaf(parent, weight));
    }
    let senders = (0..6).map(|at| {
        let from = f64::from(at) * unit;
        steady(first + at, 3e9, from, from + 6.0 * unit)
    });
    (nodes, senders.collect())
}

/// The last 60 % of each interval.
pub(crate) fn intervals(unit: f64) -> Vec<(f64, f64)> {
    (0..11).map(|at| ((f64::from(at) + 0.4) * unit, f64::from(at + 1) * unit)).collect()
}
