//! From the words about a leaf's queue to what shape is told. Leaves with the same words and about
//! the same rate share one entry, and an entry keeps its place from policy to policy.

use std::collections::BTreeMap;

use weir_policy::{self as policy, AqmKind, LeafWords};
use weir_shape::aqm::{Aqm, Cobalt, Codel, Pie, Red, Wred};
use weir_shape::tree::{Care, NextSession, Queueing, Sessions};
use weir_units::{Rate, Span, Way};

use super::tcp;

/// Entries that are kept for leaves that may come back; then the list starts anew.
const KEPT: usize = 1_024;

/// What a connection's own queue may hold without being told anything, behind its first frame.
const THREE_FRAMES: u32 = 3 * 1_538;

/// The cares of one tree while it is being compiled.
pub(super) struct Cares {
    list: Vec<Care>,
    /// By the words' place in the plan and the rate.
    known: BTreeMap<(u32, Rate), u16>,
}

impl Cares {
    /// Those of the policy before keep their places.
    pub(super) fn after(before: &[Care]) -> Cares {
        let kept = if before.len() > KEPT { &[] } else { before };
        Cares { list: kept.to_vec(), known: BTreeMap::new() }
    }

    pub(super) fn into_list(self) -> Vec<Care> {
        self.list
    }

    /// The place of what these words mean for a leaf that may have `ceil`.
    pub(super) fn of(&mut self, words_at: u32, words: &LeafWords, ceil: Rate, way: Way) -> u16 {
        let rate = about(ceil);
        if let Some(&at) = self.known.get(&(words_at, rate)) {
            return at;
        }
        let care = care(words, rate, way);
        let at = self.list.iter().position(|c| *c == care).unwrap_or_else(|| {
            self.list.push(care);
            self.list.len() - 1
        });
        // more than 65 535 different ones are a policy that nobody wrote; they share the last
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        self.known.insert((words_at, rate), at);
        at
    }
}

/// A rate to a sixteenth: queue management does not need to know better, and thousands of customers
/// share a few entries.
fn about(rate: Rate) -> Rate {
    let bits = rate.bps();
    let low = bits.checked_ilog2().unwrap_or(0).saturating_sub(4);
    Rate::from_bps(bits >> low << low)
}

/// A leaf that says nothing has a queue per connection under COBALT, by host: whoever sends little
/// is never delayed by whoever sends much, in however many connections.
fn care(words: &LeafWords, rate: Rate, way: Way) -> Care {
    let queue = match words.queue.unwrap_or_default() {
        policy::Queue::Fifo => Queueing::Fifo,
        policy::Queue::Fair => Queueing::Fair,
        policy::Queue::FairHost => Queueing::FairHost,
    };
    // who asks for one plain queue gets just that
    let silent = if queue == Queueing::Fifo { AqmKind::None } else { AqmKind::Cobalt };
    let sessions = words.session.as_ref().map(|session| Sessions {
        max: session.max[way].unwrap_or(Rate::MAX),
        count: session.count.unwrap_or(u32::MAX),
        host: places_of_a_host(session),
        first: places_for_the_first(session),
        next: match session.next {
            policy::Next::Share => NextSession::Share,
            policy::Next::Wait => NextSession::Wait,
            policy::Next::Reject => NextSession::Reject,
        },
    });
    Care {
        queue,
        aqm: aqm(words.aqm, silent, rate, (queue != Queueing::Fifo).then(|| spared(words, rate))),
        ecn: words.ecn.unwrap_or(false),
        sessions,
    }
}

/// How many places of sessions one host may have: three of four, if nothing is said, so that
/// nobody has all.
fn places_of_a_host(session: &policy::Session) -> u32 {
    let of_all = session.count.map_or(u32::MAX, |count| count - count / 4);
    session.host.unwrap_or(of_all)
}

/// How many places are for hosts that have none: the others, if nothing is said of hosts, so that
/// two hosts do not have all either.
fn places_for_the_first(session: &policy::Session) -> u32 {
    let of_all = session.count.map_or(0, |count| count / 4);
    if session.host.is_none() { of_all } else { 0 }
}

/// What a connection may have waiting in its own queue without being told anything. Where windows
/// are sized, that is what a sized one may come to: a drop would only undo it.
fn spared(words: &LeafWords, rate: Rate) -> u32 {
    if !tcp::sizes_windows(words, rate) {
        return THREE_FRAMES;
    }
    let round_trip = rate.bytes_in(Span::from_ms(100)).get();
    u32::try_from(round_trip).unwrap_or(u32::MAX).saturating_add(2 * THREE_FRAMES)
}

/// `spared`: of each connection's own queue, where each has one.
fn aqm(said: Option<policy::Aqm>, silent: AqmKind, rate: Rate, spared: Option<u32>) -> Aqm {
    let kind = said.map_or(silent, |said| said.kind);
    let time = |of: fn(&policy::Aqm) -> _| said.as_ref().and_then(of);
    let (target, interval) = (time(|a| a.target), time(|a| a.interval));
    let (min, max) = match said {
        Some(said) => (said.min, said.max),
        None => (None, None),
    };
    let probability = said.and_then(|said| said.probability);
    let codel = Codel::for_rate(rate, target, interval);
    let cobalt = Cobalt::for_rate(rate, target, interval);
    match kind {
        AqmKind::None => Aqm::None,
        AqmKind::Red => Aqm::Red(Red::for_rate(rate, min, max, probability)),
        AqmKind::Wred => Aqm::Wred(Wred::for_rate(rate, min, max, probability)),
        // the delay of one connection's own queue is its own doing, and a TCP that is left with
        // fewer than four packets under way can only learn of a loss by its timer
        AqmKind::Codel => Aqm::Codel(spared.map_or(codel, |spared| codel.sparing(spared))),
        AqmKind::Cobalt => Aqm::Cobalt(spared.map_or(cobalt, |spared| cobalt.sparing(spared))),
        AqmKind::Pie => Aqm::Pie(Pie::for_rate(rate, target, interval)),
    }
}
