//! Who has how much: in each stretch of constant load, what passed of each sender against the
//! exact answer, and how long the queue behind is.

use super::traffic::{send, wanted};
use super::{Enforce, Numbers, Sharing, Shown, bits, whole};
use crate::Series;

/// When shares have long settled, in ns; in a short stretch after two fifths of it.
const SETTLED: u64 = 1_000_000_000;
/// With more leaves than this, what each has is not told.
const FEW: usize = 32;
/// Of what each has over time, so many points are in a stretch.
const POINTS: u64 = 20;

pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Shown {
    let seen = seen(sharing, enforce, seed, settled(sharing));
    seen.map_or_else(Shown::default, |seen| shown(sharing, seen))
}

/// Of a stretch, what comes before does not count, in ns.
pub(super) fn settled(sharing: &Sharing) -> u64 {
    (sharing.unit.ns().max(1) / 5 * 2).min(SETTLED * sharing.slower)
}

/// What was seen, against the exact answer.
pub(super) fn shown(sharing: &Sharing, mut seen: Seen) -> Shown {
    let Sharing { nodes, loads, .. } = sharing;
    let (unit, settled) = (sharing.unit.ns().max(1), settled(sharing));
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
    let mut shown: Numbers = vec![
        ("dev_mean".to_owned(), sum / f64::max(count, 1.0)),
        ("dev_max".to_owned(), most),
        ("utilisation".to_owned(), used / f64::max(right, 1.0)),
        ("total".to_owned(), total / 1e6),
        ("queue_us_p99".to_owned(), p99),
    ];
    if small < f64::MAX {
        shown.push(("small_flow_min".to_owned(), small));
    }
    let means = seen.means(seconds);
    shown.extend(means.iter().zip(1..).map(|(mean, n)| (format!("share.{n}"), *mean)));
    Shown { numbers: shown, series: seen.series(&means, whole(unit) / 1e9) }
}

/// What came of a run.
pub(super) struct Seen {
    /// By stretch and load: bits that were sent, and that passed.
    pub(super) stretches: Vec<Vec<[f64; 2]>>,
    /// By load: bits that passed, in each part of a stretch; empty where loads are many.
    over: Vec<Vec<f64>>,
    /// How long packets were on their way up to their last bit on the link, in us.
    waits: Vec<f64>,
}

impl Seen {
    /// What each has in the mean of all stretches, of which so many seconds count, in Mbit/s;
    /// nothing where there are many.
    fn means(&self, seconds: f64) -> Vec<f64> {
        let count = f64::max(1.0, whole(self.stretches.len() as u64));
        let rate = |leaf: usize| {
            let rates = self.stretches.iter().map(|seen| seen[leaf][1] / seconds / 1e6);
            rates.sum::<f64>() / count
        };
        (0..self.over.len()).map(rate).collect()
    }

    /// What each has over time, and beside the others.
    fn series(&self, means: &[f64], unit: f64) -> Vec<(String, Series)> {
        let y = "rate (Mbit/s)";
        let series = |x: &str, points| Series { x: x.to_owned(), y: y.to_owned(), points };
        let part = unit / whole(POINTS);
        let mut all: Vec<_> = (1..)
            .zip(&self.over)
            .map(|(number, bits)| {
                let point = |(at, bits): (u64, &f64)| (part * (whole(at) + 0.5), bits / part / 1e6);
                let points = (0..).zip(bits).map(point).collect();
                (format!("share.{number}"), series("time (s)", points))
            })
            .collect();
        let points = (1..).map(whole).zip(means.iter().copied()).collect();
        all.push(("shares".to_owned(), series("leaf", points)));
        all.retain(|(_, series)| !series.points.is_empty());
        all
    }

    fn wait_us_p99(&mut self) -> f64 {
        self.waits.sort_by(f64::total_cmp);
        self.waits.get(self.waits.len() * 99 / 100).copied().unwrap_or(0.0)
    }
}

/// Counts, in each stretch of a run, what comes `settled` ns and more after its beginning.
pub(super) fn seen(sharing: &Sharing, enforce: Enforce, seed: u64, settled: u64) -> Option<Seen> {
    let Sharing { nodes, loads, bytes, .. } = sharing;
    let mut gate = sharing.gate(nodes, enforce, seed)?;
    let is_engine = matches!(enforce, Enforce::Engine(_));
    let mut account = Account::new(sharing, settled);
    let mut senders = vec![0; nodes.len()];
    for (at, load) in loads.iter().enumerate() {
        senders[load.node as usize] = at;
    }
    let line = bits(nodes[0].peak) / 1e9;
    let (mut queue, mut last) = (0.0_f64, 0);
    send(loads, *bytes, seed, |now, at, len| {
        let packet = f64::from(len) * 8.0;
        let passes = gate.packet(now, loads[at].node, len) && !is_engine;
        queue = (queue - whole(now - last) * line).max(0.0);
        last = now;
        account.sent(at, now, packet);
        if passes {
            queue += packet;
            account.passes(at, now, packet, queue / line / 1e3);
        }
        for sent in gate.sent() {
            let wait = whole(sent.left - sent.came) / 1e3;
            let bits = f64::from(sent.bytes) * 8.0;
            account.passes(senders[sent.node as usize], sent.left, bits, wait);
        }
    });
    Some(account.seen)
}

/// Counts what is sent and what passes, as it happens.
pub(super) struct Account {
    unit: u64,
    settled: u64,
    /// A stretch has so many of these.
    part: u64,
    pub(super) seen: Seen,
}

impl Account {
    pub(super) fn new(sharing: &Sharing, settled: u64) -> Account {
        let (unit, loads) = (sharing.unit.ns().max(1), sharing.loads.len());
        let part = (unit / POINTS).max(1);
        let fits = |span: u64| usize::try_from(sharing.run.ns().div_ceil(span)).unwrap_or(1);
        let few = if loads <= FEW { loads } else { 0 };
        let stretches = vec![vec![[0.0_f64; 2]; loads]; fits(unit)];
        let seen = Seen { stretches, over: vec![vec![0.0; fits(part)]; few], waits: Vec::new() };
        Account { unit, settled, part, seen }
    }

    /// Bits of a load are sent.
    pub(super) fn sent(&mut self, load: usize, at: u64, bits: f64) {
        if let Some(stretch) = self.stretch(at) {
            stretch[load][0] += bits;
        }
    }

    /// Bits of a load have passed, after so many us.
    pub(super) fn passes(&mut self, load: usize, at: u64, bits: f64, wait_us: f64) {
        let part = usize::try_from(at / self.part).unwrap_or(usize::MAX);
        if let Some(sum) = self.seen.over.get_mut(load).and_then(|over| over.get_mut(part)) {
            *sum += bits;
        }
        if let Some(stretch) = self.stretch(at) {
            stretch[load][1] += bits;
            self.seen.waits.push(wait_us);
        }
    }

    /// Where in the run a moment is, if it counts.
    fn stretch(&mut self, at: u64) -> Option<&mut Vec<[f64; 2]>> {
        let counts = at % self.unit >= self.settled;
        let stretch = usize::try_from(at / self.unit).unwrap_or(usize::MAX);
        self.seen.stretches.get_mut(stretch).filter(|_| counts)
    }
}
