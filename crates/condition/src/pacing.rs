//! When an acknowledgement is let go: as long after the last one as its bytes take at the
//! connection's rate, so that the sender's next segments come evenly. And how long the answer to a
//! SYN waits where a turn takes long, so that neither side takes its first segment for lost.

/// The part of the rate by which acknowledgements are faster than data can be: a queue that runs
/// empty costs more than one that holds a frame.
const FASTER: u64 = 16;
/// An acknowledgement waits at most so long, in microseconds; less where the round trip is less.
const LONGEST: u32 = 1_000_000;
/// Microseconds that are not worth waiting.
const SHORTEST: u32 = 200;
/// A host asks again after a second.
const SYN_ANSWER: u64 = 900_000;

/// How many microseconds from `at` on an acknowledgement of `fresh` bytes waits, and the moment
/// from which the next one counts.
pub(crate) fn wait(at: u32, paced: u32, fresh: u32, rate: u64, round_trip: u32) -> (u32, u32) {
    let rate = rate.saturating_add(rate / FASTER);
    let apart = u64::from(fresh) * 8_000_000 / rate.max(1);
    let apart = u32::try_from(apart).unwrap_or(LONGEST).min(LONGEST);
    let due = paced.wrapping_add(apart);
    let ahead = due.wrapping_sub(at);
    // what seems to lie farther ahead than anything can is the past of a clock that came around
    if ahead <= SHORTEST || ahead > 2 * LONGEST {
        // a sender that was late is not owed what it did not use
        return (0, if ahead <= SHORTEST { due } else { at });
    }
    let wait = ahead.min(round_trip.min(LONGEST));
    (wait, at.wrapping_add(wait))
}

/// When the last acknowledgement of one that has none yet was let go.
pub(crate) const fn long_before(at: u32) -> u32 {
    at.wrapping_sub(LONGEST)
}

/// How long after its SYN a SYN-ACK should pass, in microseconds, where a connection waits so long
/// for its turn. A host's first timeout is three of the round trip that it saw.
pub(crate) fn syn_answer(turn: u64) -> u32 {
    u32::try_from((turn * 3 / 8).min(SYN_ANSWER)).unwrap_or(0)
}
