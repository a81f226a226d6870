//! From what runs have shown to the figures that a scenario asks for: each per run, then its mean
//! and deviation over the runs.

use weir_units::Span;

use crate::metrics::{cov, deviation, jain, late, mean, percentile, voice};
use crate::run::{Run, Seen, ms};
use crate::scenario::{Kind, PLAY_OUT, Scenario, Side};

/// A figure over all runs of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Its mean.
    pub mean: f64,
    /// Its deviation.
    pub sd: f64,
}

/// Frames per second of a G.729 call, and what its codec and packets take before the network.
const G729_MS: f64 = 25.0;

/// The figures of one profile in the order of the metrics; those that nothing can be said about
/// are left out.
#[must_use]
pub fn figures(scenario: &Scenario, runs: &[Run]) -> Vec<(String, Figure)> {
    let mut by_run: Vec<Vec<Option<f64>>> = Vec::new();
    let mut figures = Vec::new();
    for metric in &scenario.metrics {
        let over_runs = |of: usize| -> Vec<f64> { by_run[of].iter().copied().flatten().collect() };
        let values: Vec<Option<f64>> = match &metric.kind {
            Kind::Stability(of) => vec![cov(&over_runs(*of))],
            Kind::Spread(of) => vec![deviation(&over_runs(*of))],
            Kind::Ratio(of, by) => {
                let pairs = by_run[*of].iter().zip(&by_run[*by]);
                pairs.map(|(a, b)| Some((*a)? / (*b).filter(|b| *b != 0.0)?)).collect()
            }
            kind => runs.iter().map(|run| one(scenario, run, kind)).collect(),
        };
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        if let (Some(mean), Some(sd)) = (mean(&known), deviation(&known)) {
            figures.push((metric.name.clone(), Figure { mean, sd }));
        }
        by_run.push(values);
    }
    figures
}

/// A metric of one run.
fn one(scenario: &Scenario, run: &Run, kind: &Kind) -> Option<f64> {
    let seconds = seconds(scenario.measure.1.since(scenario.measure.0));
    let kbit = |seen: &Seen| whole(seen.receiver.measured) * 8e-3 / seconds;
    let each = |flows: &[usize]| -> Vec<f64> { all(run, flows).map(kbit).collect() };
    let sum = |flows: &[usize]| -> f64 { each(flows).iter().sum() };
    match kind {
        Kind::Goodput(flows) => Some(sum(flows)),
        Kind::Rate(flows) => Some(all(run, flows).map(|s| kbit(s) * at_ip(s) / 1e3).sum()),
        Kind::Accuracy(flows, rate) => Some(sum(flows) / (whole(rate.bps()) / 1e3)),
        Kind::Cov(flows) => cov(&each(flows)),
        Kind::Jain(flows) => jain(&each(flows)),
        Kind::Retransmission(flows) => {
            let sent: u64 = all(run, flows).map(|s| s.sender.measured_sent).sum();
            let again: u64 = all(run, flows).map(|s| s.sender.measured_again).sum();
            (sent > 0).then(|| whole(again) / whole(sent))
        }
        Kind::Delay(flows, percent) => {
            let delays = delays(run, flows);
            match percent {
                0 => mean(&delays),
                percent => percentile(&delays, f64::from(*percent)),
            }
        }
        Kind::Jitter(flows) => worst(all(run, flows).map(|s| ms(s.receiver.jitter))),
        Kind::Loss(flows) => {
            let sent: u64 = all(run, flows).map(|s| s.sender.sent).sum();
            let got: u64 = all(run, flows).map(|s| s.receiver.received).sum();
            (sent > 0).then(|| whole(sent.saturating_sub(got)) / whole(sent))
        }
        Kind::Mos(flows) => least(all(run, flows).filter_map(|s| call(s).map(voice::mos))),
        Kind::RFactor(flows) => least(all(run, flows).filter_map(call)),
        Kind::Extreme(flows, side) => {
            let bins = bins(scenario, run, flows).into_iter();
            if *side == Side::There { least(bins) } else { worst(bins) }
        }
        Kind::BinCov(flows) => cov(&bins(scenario, run, flows)),
        Kind::QueueBytes(link, way) => Some(bytes(run.links[*link][*way as usize].queue_bytes_max)),
        Kind::QueueMs(link, way) => {
            let counts = &run.links[*link][*way as usize];
            Some(whole(counts.wait_ns_sum) / 1e6 / whole(counts.sent.max(1)))
        }
        Kind::Dropped(link, way) => {
            let counts = &run.links[*link][*way as usize];
            Some(whole(counts.dropped + counts.lost) / whole(counts.offered.max(1)))
        }
        Kind::BoxMs => Some(run.box_ms),
        Kind::Stability(_) | Kind::Spread(_) | Kind::Ratio(..) => None,
    }
}

fn all<'r>(run: &'r Run, flows: &'r [usize]) -> impl Iterator<Item = &'r Seen> {
    flows.iter().flat_map(|&flow| &run.flows[flow])
}

/// Bytes of IP packets by bytes of their payload.
fn at_ip(seen: &Seen) -> f64 {
    let payload = seen.receiver.delivered.max(1);
    1.0 + whole(seen.receiver.received * seen.headers) / whole(payload)
}

fn delays(run: &Run, flows: &[usize]) -> Vec<f64> {
    all(run, flows).flat_map(|s| s.receiver.delays.kept.iter().map(|d| ms(*d))).collect()
}

/// Goodput at the IP layer in each bin of the time that counts, in Mbit/s, of all flows together.
pub(crate) fn bins(scenario: &Scenario, run: &Run, flows: &[usize]) -> Vec<f64> {
    let bin = seconds(scenario.bin);
    let place = |at: weir_units::Instant, flow: usize| {
        let start = scenario.flows[flow].start;
        usize::try_from(at.ns().saturating_sub(start.ns()) / scenario.bin.ns().max(1)).unwrap_or(0)
    };
    let (from, to) = scenario.measure;
    let count = usize::try_from(to.since(from).ns() / scenario.bin.ns().max(1)).unwrap_or(0);
    let mut sums = vec![0.0; count];
    for &flow in flows {
        let first = place(from, flow);
        for seen in &run.flows[flow] {
            let factor = at_ip(seen) * 8e-6 / bin;
            for (sum, at) in sums.iter_mut().zip(first..) {
                *sum += whole(seen.receiver.bins.get(at).copied().unwrap_or(0)) * factor;
            }
        }
    }
    sums
}

/// R of a G.729A call: what came too late for the play-out buffer counts as lost.
fn call(seen: &Seen) -> Option<f64> {
    let delays: Vec<f64> = seen.receiver.delays.kept.iter().map(|d| ms(*d)).collect();
    let fastest = least(delays.iter().copied())?;
    let sent = seen.sender.sent.max(1);
    let lost = sent.saturating_sub(seen.receiver.received);
    let too_late = late(&delays, ms(PLAY_OUT));
    let loss = 100.0 * (whole(lost) + bytes(too_late)) / whole(sent);
    let delay = fastest + ms(PLAY_OUT) + G729_MS;
    let codec = voice::codec("G.729A+VAD")?;
    Some(voice::EModel::call(codec, delay, loss).rate().r)
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

fn worst(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.max_by(f64::total_cmp)
}

fn seconds(span: Span) -> f64 {
    whole(span.ns()) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
fn whole(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
fn bytes(number: usize) -> f64 {
    number as f64
}
