//! From what runs have shown to the figures that a scenario asks for: each per run, then its mean
//! and deviation over the runs.

use weir_units::Span;

use crate::metrics::{cov, deviation, jain, late, mean, percentile, voice};
use crate::run::{ClassSeen, Run, Seen, ms};
use crate::scenario::{Kind, Metric, PLAY_OUT, Scenario, Side, Window};

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
            Kind::Apart(of) => by_place(&by_run, of, apart),
            Kind::Lowest(of) => by_place(&by_run, &made(scenario, &by_run, of), least),
            Kind::Highest(of) => by_place(&by_run, &made(scenario, &by_run, of), worst),
            _ => runs.iter().map(|run| one(scenario, run, metric)).collect(),
        };
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        if let (Some(mean), Some(sd)) = (mean(&known), deviation(&known)) {
            figures.push((metric.name.clone(), Figure { mean, sd }));
        }
        by_run.push(values);
    }
    figures
}

/// Those of several metrics that count: of allocators, cases that a profile leaves out do not.
fn made(scenario: &Scenario, by_run: &[Vec<Option<f64>>], of: &[usize]) -> Vec<usize> {
    let is_made = |of: &usize| by_run[*of].iter().any(Option::is_some);
    of.iter().copied().filter(|of| scenario.sharing.is_none() || is_made(of)).collect()
}

/// Of each run, one of the values of several metrics; none if one of them has none.
fn by_place(
    by_run: &[Vec<Option<f64>>],
    of: &[usize],
    choose: fn(std::vec::IntoIter<f64>) -> Option<f64>,
) -> Vec<Option<f64>> {
    let runs = of.iter().map(|&of| by_run[of].len()).min().unwrap_or(0);
    let each = |run: usize| of.iter().map(|&of| by_run[of][run]).collect::<Option<Vec<f64>>>();
    (0..runs).map(|run| choose(each(run)?.into_iter())).collect()
}

/// A metric of one run.
fn one(scenario: &Scenario, run: &Run, metric: &Metric) -> Option<f64> {
    let (scenario, run) = (scenario.case(metric.case), run.case(metric.case));
    let window = metric.during.unwrap_or(scenario.measure);
    let view = View { scenario, run, window, is_whole: metric.during.is_none() };
    let kind = &metric.kind;
    view.of_bytes(kind)
        .or_else(|| view.of_bins(kind))
        .or_else(|| of_packets(run, kind))
        .or_else(|| of_answers(scenario, run, kind))
        .or_else(|| of_lines(run, kind))
}

/// A part of a run.
#[derive(Clone, Copy)]
struct View<'r> {
    scenario: &'r Scenario,
    run: &'r Run,
    window: Window,
    /// Whether it is all that counts; that is counted without bins.
    is_whole: bool,
}

impl View<'_> {
    /// Of how many bytes have come.
    fn of_bytes(&self, kind: &Kind) -> Option<f64> {
        match kind {
            Kind::Goodput(flows) => Some(self.each(flows).iter().sum()),
            Kind::Bytes(flows) => {
                let kbit: f64 = self.each(flows).iter().sum();
                Some(kbit * 125.0 * seconds(self.window.1.since(self.window.0)))
            }
            Kind::Rate(flows) => Some(self.rate(flows)),
            Kind::Mean(flows) => Some(self.rate(flows) / bytes(self.each(flows).len())),
            Kind::Used(flows, of) => Some(self.rate(flows) / mbit(*of)),
            Kind::Excess(flows, beyond) => Some((self.rate(flows) - mbit(*beyond)).max(0.0)),
            Kind::Unused(flows, of) => Some(1.0 - self.rate(flows) / mbit(*of)),
            Kind::Accuracy(flows, rate) => {
                Some(self.each(flows).iter().sum::<f64>() / (mbit(*rate) * 1e3))
            }
            Kind::Cov(flows) => cov(&self.each(flows)),
            Kind::Jain(flows) => jain(&self.each(flows)),
            _ => None,
        }
    }

    /// Of when they have come.
    fn of_bins(&self, kind: &Kind) -> Option<f64> {
        match kind {
            Kind::Extreme(flows, Side::There) => least(self.bins(flows).into_iter()),
            Kind::Extreme(flows, Side::Back) => worst(self.bins(flows).into_iter()),
            Kind::BinCov(flows) => cov(&self.bins(flows)),
            Kind::SessionCov(flows) => {
                let of_one = |seen| cov(&series(self.scenario, [seen].into_iter(), self.window));
                let covs: Option<Vec<f64>> = all(self.run, flows).map(of_one).collect();
                worst(covs?.into_iter())
            }
            Kind::Dent(flows, of, percent) => {
                let least = mbit(*of) * f64::from(*percent) / 100.0;
                let below = self.bins(flows).into_iter().filter(|bin| *bin < least).count();
                Some(bytes(below) * ms(self.scenario.bin))
            }
            Kind::Taken(flows, freed, before) => {
                let then = View { window: *before, ..*self };
                let (was, is) = (mean(&then.bins(flows))?, mean(&self.bins(flows))?);
                Some((is - was) / mean(&then.bins(freed)).filter(|freed| *freed > 0.0)?)
            }
            _ => None,
        }
    }

    /// What each of these flows got, in kbit/s of payload.
    fn each(&self, flows: &[usize]) -> Vec<f64> {
        all(self.run, flows).map(|seen| self.kbit(seen)).collect()
    }

    /// What they got together, in Mbit/s at the IP layer.
    fn rate(&self, flows: &[usize]) -> f64 {
        all(self.run, flows).map(|seen| self.kbit(seen) * at_ip(seen) / 1e3).sum()
    }

    fn kbit(&self, seen: &Seen) -> f64 {
        let (skip, count) = places(self.scenario, self.window);
        let bytes = match self.is_whole {
            true => seen.receiver.measured,
            false => seen.receiver.bins.iter().skip(skip).take(count).sum(),
        };
        whole(bytes) * 8e-3 / seconds(self.window.1.since(self.window.0))
    }

    fn bins(&self, flows: &[usize]) -> Vec<f64> {
        series(self.scenario, all(self.run, flows), self.window)
    }
}

/// Of what became of packets.
fn of_packets(run: &Run, kind: &Kind) -> Option<f64> {
    match kind {
        Kind::Retransmission(flows) => {
            let sent: u64 = all(run, flows).map(|s| s.sender.measured_sent).sum();
            let again: u64 = all(run, flows).map(|s| s.sender.measured_again).sum();
            (sent > 0).then(|| whole(again) / whole(sent))
        }
        Kind::Delay(flows, 0) => mean(&delays(run, flows)),
        Kind::Delay(flows, percent) => percentile(&delays(run, flows), f64::from(*percent)),
        Kind::Queueing(flows) => {
            let delays = delays(run, flows);
            Some(worst(delays.iter().copied())? - least(delays.iter().copied())?)
        }
        Kind::Jitter(flows) => worst(all(run, flows).map(|s| ms(s.receiver.jitter))),
        Kind::Loss(flows) => {
            let sent: u64 = all(run, flows).map(|s| s.sender.sent).sum();
            let got: u64 = all(run, flows).map(|s| s.receiver.received).sum();
            (sent > 0).then(|| whole(sent.saturating_sub(got)) / whole(sent))
        }
        Kind::Mos(flows) => least(all(run, flows).filter_map(|s| call(s).map(voice::mos))),
        Kind::RFactor(flows) => least(all(run, flows).filter_map(call)),
        _ => None,
    }
}

/// Of questions, answers and beginnings.
fn of_answers(scenario: &Scenario, run: &Run, kind: &Kind) -> Option<f64> {
    let answers = |flows: &[usize], percent: u32| {
        let all = all(run, flows).flat_map(|s| s.answers.iter().map(|d| ms(*d)));
        let all: Vec<f64> = all.collect();
        if percent == 0 { mean(&all) } else { percentile(&all, f64::from(percent)) }
    };
    match kind {
        Kind::Answer(flows, percent) => answers(flows, *percent).map(|ms| ms / 1e3),
        Kind::AnswerMs(flows, percent) => answers(flows, *percent),
        Kind::Answered(flows) => {
            let answered = all(run, flows).filter(|s| !s.answers.is_empty()).count();
            Some(bytes(answered) / bytes(all(run, flows).count().max(1)))
        }
        Kind::StartDelay(flows) => worst(flows.iter().flat_map(|&flow| {
            let start = weir_units::Instant::ZERO + scenario.flows[flow].start;
            let first = run.flows[flow].iter().filter_map(|seen| seen.receiver.first);
            first.map(move |first| ms(first.since(start)) / 1e3)
        })),
        Kind::Legibility(flows) => {
            let poor = least(all(run, flows).filter_map(call)).map(voice::poor_or_worse)?;
            Some(1.0 - poor / 100.0)
        }
        _ => None,
    }
}

/// Of links and boxes.
fn of_lines(run: &Run, kind: &Kind) -> Option<f64> {
    match kind {
        Kind::ClassQueue(path) => class(run, path).map(|seen| whole(seen.most)),
        Kind::ClassWait(path) => class(run, path).map(|seen| seen.wait_ms),
        Kind::QueueBytes(link, way) => Some(bytes(run.links[*link][*way as usize].queue_bytes_max)),
        Kind::QueueMs(link, way) => {
            let counts = &run.links[*link][*way as usize];
            Some(whole(counts.wait_ns_sum) / 1e6 / whole(counts.sent.max(1)))
        }
        Kind::Dropped(link, way) => {
            let counts = &run.links[*link][*way as usize];
            Some(whole(counts.dropped + counts.lost) / whole(counts.offered.max(1)))
        }
        Kind::Share(figure) => {
            let found = run.shares.iter().find(|(name, _)| name == figure);
            found.map(|(_, figure)| *figure)
        }
        Kind::BoxMs => Some(run.box_ms),
        Kind::BoxDropped(way) => {
            let passed = run.boxes[*way as usize];
            Some(whole(passed.dropped) / whole(passed.received.max(1)))
        }
        _ => None,
    }
}

fn class<'r>(run: &'r Run, path: &str) -> Option<&'r ClassSeen> {
    run.classes.iter().find(|seen| seen.path == path)
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
#[must_use]
pub fn bins(scenario: &Scenario, run: &Run, flows: &[usize]) -> Vec<f64> {
    series(scenario, all(run, flows), scenario.measure)
}

fn series<'r>(
    scenario: &Scenario,
    seen: impl Iterator<Item = &'r Seen>,
    window: Window,
) -> Vec<f64> {
    let (skip, count) = places(scenario, window);
    let mut sums = vec![0.0; count];
    for seen in seen {
        let factor = at_ip(seen) * 8e-6 / seconds(scenario.bin);
        for (sum, bin) in sums.iter_mut().zip(seen.receiver.bins.iter().skip(skip)) {
            *sum += whole(*bin) * factor;
        }
    }
    sums
}

/// How many bins lie before a window, and how many in it.
fn places(scenario: &Scenario, (from, to): Window) -> (usize, usize) {
    let bins = |span: Span| usize::try_from(span.ns() / scenario.bin.ns().max(1)).unwrap_or(0);
    (bins(from.since(weir_units::Instant::ZERO)), bins(to.since(from)))
}

fn mbit(rate: weir_units::Rate) -> f64 {
    whole(rate.bps()) / 1e6
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

/// The greatest less the least, by the mean.
fn apart(values: std::vec::IntoIter<f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let (least, most) = (least(values.iter().copied())?, worst(values.iter().copied())?);
    mean(&values).filter(|mean| *mean != 0.0).map(|mean| (most - least) / mean)
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
