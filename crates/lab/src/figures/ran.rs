//! What metrics are computed of: a case of a run, flows of it, and what these had during a part of
//! it.

use weir_units::{Instant, Rate, Span};

use crate::run::{Run, Seen, ms};
use crate::scenario::{Scenario, Window};

/// A case of a run, and what it was a run of.
#[derive(Clone, Copy)]
pub(crate) struct Ran<'r> {
    pub(crate) scenario: &'r Scenario,
    pub(crate) run: &'r Run,
}

impl<'r> Ran<'r> {
    /// Some of its flows, by their places.
    pub(crate) fn flows(self, places: &'r [usize]) -> Flows<'r> {
        Flows { ran: self, places }
    }
}

/// Some flows of a run, from its beginning to its end.
#[derive(Clone, Copy)]
pub(crate) struct Flows<'r> {
    ran: Ran<'r>,
    places: &'r [usize],
}

impl<'r> Flows<'r> {
    /// What they had from when up to when; without that, while the scenario says that it counts.
    pub(crate) fn during(self, window: Option<Window>) -> Part<'r> {
        let is_whole = window.is_none();
        Part { flows: self, window: window.unwrap_or(self.ran.scenario.measure), is_whole }
    }

    /// What was seen of each.
    pub(super) fn seen(&self) -> impl Iterator<Item = &'r Seen> {
        let Flows { ran, places } = *self;
        places.iter().flat_map(|&place| &ran.run.flows[place])
    }

    /// How long data took, in ms, of all of them.
    pub(super) fn delays(&self) -> Vec<f64> {
        self.seen().flat_map(delays).collect()
    }

    /// How long answers took to come back, in ms, of all of them.
    pub(super) fn answers(&self) -> Vec<f64> {
        self.seen().flat_map(|seen| seen.answers.iter().map(|d| ms(*d))).collect()
    }

    /// From when each may start to its first byte at the other end, in ms, of those that got so
    /// far.
    pub(super) fn starts(&self) -> impl Iterator<Item = f64> {
        let Flows { ran, places } = *self;
        places.iter().flat_map(move |&place| {
            let start = Instant::ZERO + ran.scenario.flows[place].start;
            let first = ran.run.flows[place].iter().filter_map(|seen| seen.receiver.first);
            first.map(move |first| ms(first.since(start)))
        })
    }
}

/// How long data of a flow took, in ms.
pub(super) fn delays(seen: &Seen) -> impl Iterator<Item = f64> {
    seen.receiver.delays.kept.iter().map(|d| ms(*d))
}

/// Some flows during a part of a run.
#[derive(Clone, Copy)]
pub(crate) struct Part<'r> {
    flows: Flows<'r>,
    window: Window,
    /// Whether it is all that counts; that is counted without bins.
    is_whole: bool,
}

impl Part<'_> {
    /// What each got, in kbit/s of payload.
    pub(super) fn each(&self) -> Vec<f64> {
        self.flows.seen().map(|seen| self.kbit(seen)).collect()
    }

    /// What they got together, in kbit/s of payload.
    pub(super) fn goodput(&self) -> f64 {
        self.each().iter().sum()
    }

    /// What they got together, in Mbit/s at the IP layer.
    pub(super) fn rate(&self) -> f64 {
        self.flows.seen().map(|seen| self.kbit(seen) * at_ip(seen) / 1e3).sum()
    }

    /// What they got together in each bin, in Mbit/s at the IP layer.
    pub(super) fn bins(&self) -> Vec<f64> {
        self.series(self.flows.seen())
    }

    /// What each of them got in each bin.
    pub(super) fn bins_of_each(&self) -> impl Iterator<Item = Vec<f64>> {
        self.flows.seen().map(|seen| self.series([seen].into_iter()))
    }

    /// How long it lasts.
    pub(super) fn lasts(&self) -> Span {
        self.window.1.since(self.window.0)
    }

    /// How long a bin is.
    pub(super) fn bin(&self) -> Span {
        self.flows.ran.scenario.bin
    }

    fn kbit(&self, seen: &Seen) -> f64 {
        let (skip, count) = self.places();
        let bytes = match self.is_whole {
            true => seen.receiver.measured,
            false => seen.receiver.bins.iter().skip(skip).take(count).sum(),
        };
        whole(bytes) * 8e-3 / seconds(self.lasts())
    }

    fn series<'s>(&self, seen: impl Iterator<Item = &'s Seen>) -> Vec<f64> {
        let (skip, count) = self.places();
        let mut sums = vec![0.0; count];
        for seen in seen {
            let factor = at_ip(seen) * 8e-6 / seconds(self.bin());
            for (sum, bin) in sums.iter_mut().zip(seen.receiver.bins.iter().skip(skip)) {
                *sum += whole(*bin) * factor;
            }
        }
        sums
    }

    /// How many bins lie before it, and how many in it.
    fn places(&self) -> (usize, usize) {
        let bin = self.bin().ns().max(1);
        let bins = |span: Span| usize::try_from(span.ns() / bin).unwrap_or(0);
        (bins(self.window.0.since(Instant::ZERO)), bins(self.lasts()))
    }
}

/// Bytes of IP packets by bytes of their payload.
fn at_ip(seen: &Seen) -> f64 {
    let payload = seen.receiver.delivered.max(1);
    1.0 + whole(seen.receiver.received * seen.headers) / whole(payload)
}

pub(super) fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

pub(super) fn greatest(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().max_by(f64::total_cmp)
}

pub(super) fn mbit(rate: Rate) -> f64 {
    whole(rate.bps()) / 1e6
}

pub(super) fn seconds(span: Span) -> f64 {
    whole(span.ns()) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
pub(super) fn whole(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
pub(super) fn count(number: usize) -> f64 {
    number as f64
}
