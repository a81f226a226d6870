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

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 80_000;
    /// Microseconds that 1 000 bytes take at the rate and a sixteenth.
    const APART: u32 = 94_117;

    #[test]
    fn acknowledgements_at_once_leave_evenly() {
        let (at, mut paced) = (5_000_000, 5_000_000);
        for n in 1..=5 {
            let (wait, next) = wait(at, paced, 1_000, RATE, 1_000_000);
            assert_eq!((wait, next), (n * APART, at + n * APART));
            paced = next;
        }
    }

    #[test]
    fn what_comes_evenly_does_not_wait() {
        let mut paced = 1_000_000;
        for n in 1..100 {
            let at = 1_000_000 + n * 100_000;
            let (wait, next) = wait(at, paced, 1_000, RATE, 1_000_000);
            assert_eq!((wait, next), (0, at));
            paced = next;
        }
    }

    #[test]
    fn nobody_waits_longer_than_a_round_trip_or_a_second() {
        assert_eq!(wait(100, 100, 60_000, RATE, 300_000).0, 300_000);
        assert_eq!(wait(100, 100, u32::MAX, 1, u32::MAX).0, 1_000_000);
        assert_eq!(wait(100, 100, 1_000, 0, 0).0, 0);
        // the fastest rate there is
        assert_eq!(wait(100, 100, 1_000, u64::MAX, 1_000_000), (0, 100));
    }

    #[test]
    fn a_clock_that_comes_around_makes_nobody_wait() {
        let at = 50_000u32;
        let (wait_a, _) = wait(at, at.wrapping_sub(100_000), 1_000, RATE, 1_000_000);
        assert_eq!(wait_a, 0);
        // half an hour and longer ago
        for ago in [1u32 << 30, 1 << 31, 3 << 30, u32::MAX - 2_000_000] {
            assert_eq!(wait(at, at.wrapping_sub(ago), 1_000, RATE, 1_000_000), (0, at), "{ago}");
        }
    }

    #[test]
    fn the_answer_to_a_syn_waits_less_than_a_second() {
        assert_eq!([syn_answer(0), syn_answer(800_000)], [0, 300_000]);
        assert_eq!(syn_answer(u64::MAX / 8), 900_000);
    }
}
