//! Metrics of what became of packets, questions and calls.

use weir_units::Span;

use super::ran::{count, delays, greatest, least, whole};
use super::table::{Of, Row};
use crate::metrics::{mean, percentile, voice};
use crate::run::{Seen, ms};

pub(super) const ROWS: [Row; 12] = [
    Row {
        word: "retransmission",
        unit: "share",
        about: "packets retransmitted, divided by packets sent",
        of: Of::Flows(|flows| {
            let sent: u64 = flows.seen().map(|s| s.sender.measured_sent).sum();
            let again: u64 = flows.seen().map(|s| s.sender.measured_again).sum();
            (sent > 0).then(|| whole(again) / whole(sent))
        }),
    },
    Row {
        word: "delay",
        unit: "ms",
        about: "one-way delay at the percentile `percent` (0: the mean, 100: the maximum)",
        of: Of::Percentile(99, |flows, percent| at_percent(&flows.delays(), percent)),
    },
    Row {
        word: "answer",
        unit: "s",
        about: "time until a response is back (an echoed letter, a page, a call set up), at the \
                percentile `percent` as for `delay`",
        of: Of::Percentile(99, |flows, percent| {
            at_percent(&flows.answers(), percent).map(|ms| ms / 1e3)
        }),
    },
    Row {
        word: "answer-ms",
        unit: "ms",
        about: "`answer` in milliseconds",
        of: Of::Percentile(99, |flows, percent| at_percent(&flows.answers(), percent)),
    },
    Row {
        word: "answered",
        unit: "share",
        about: "flows that got at least one response, divided by all",
        of: Of::Flows(|flows| {
            let answered = flows.seen().filter(|s| !s.answers.is_empty()).count();
            Some(count(answered) / count(flows.seen().count().max(1)))
        }),
    },
    Row {
        word: "start-delay",
        unit: "s",
        about: "time from `start` of the flow to the first byte at the receiver; the longest",
        of: Of::Flows(|flows| greatest(flows.starts().map(|ms| ms / 1e3))),
    },
    Row {
        word: "queueing",
        unit: "ms",
        about: "maximum one-way delay minus the minimum",
        of: Of::Flows(|flows| {
            let delays = flows.delays();
            Some(greatest(delays.iter().copied())? - least(delays)?)
        }),
    },
    Row {
        word: "jitter",
        unit: "ms",
        about: "interarrival jitter (RFC 3550); the flow with the most",
        of: Of::Flows(|flows| greatest(flows.seen().map(|s| ms(s.receiver.jitter)))),
    },
    Row {
        word: "loss",
        unit: "share",
        about: "packets that did not arrive, divided by packets sent",
        of: Of::Flows(|flows| {
            let sent: u64 = flows.seen().map(|s| s.sender.sent).sum();
            let got: u64 = flows.seen().map(|s| s.receiver.received).sum();
            (sent > 0).then(|| whole(sent.saturating_sub(got)) / whole(sent))
        }),
    },
    Row {
        word: "mos",
        unit: "1 to 4.5",
        about: "mean opinion score (ITU-T G.107) of a G.729A call with a play-out buffer of \
                60 ms; the worst call",
        of: Of::Flows(|flows| least(flows.seen().filter_map(|s| call(s).map(voice::mos)))),
    },
    Row {
        word: "r",
        unit: "0 to 100",
        about: "the rating factor R behind `mos`; the worst call",
        of: Of::Flows(|flows| least(flows.seen().filter_map(call))),
    },
    Row {
        word: "legibility",
        unit: "share",
        about: "listeners who would not rate the worst call poor or worse (G.107)",
        of: Of::Flows(|flows| {
            let poor = least(flows.seen().filter_map(call)).map(voice::poor_or_worse)?;
            Some(1.0 - poor / 100.0)
        }),
    },
];

/// How long a call may be delayed by its play-out buffer.
const PLAY_OUT: Span = Span::from_ms(60);
/// What the codec and the packets of a G.729 call take before the network, in ms.
const G729_MS: f64 = 25.0;

/// A percentile, or the mean.
fn at_percent(samples: &[f64], percent: u32) -> Option<f64> {
    if percent == 0 { mean(samples) } else { percentile(samples, f64::from(percent)) }
}

/// R of a G.729A call: what came too late for the play-out buffer counts as lost.
fn call(seen: &Seen) -> Option<f64> {
    let delays: Vec<f64> = delays(seen).collect();
    let fastest = least(delays.iter().copied())?;
    let sent = seen.sender.sent.max(1);
    let lost = sent.saturating_sub(seen.receiver.received);
    let too_late = delays.iter().filter(|delay| **delay > fastest + ms(PLAY_OUT)).count();
    let loss = 100.0 * (whole(lost) + count(too_late)) / whole(sent);
    let delay = fastest + ms(PLAY_OUT) + G729_MS;
    let codec = voice::codec("G.729A+VAD")?;
    Some(voice::EModel::call(codec, delay, loss).rate().r)
}
