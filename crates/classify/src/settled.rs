//! Which hosts of the LAN are known to be there: those that have been sending for a second. An
//! address that nobody has sent from for so long, or that only strangers send to, may be an
//! invention; all of these share one host's part of a leaf, however many they are. In the first
//! second of all nobody can be told from another, and whoever sends is there.
//!
//! The table never grows. A host keeps its place until another one needs it, and for a second after
//! each of its frames in any case; those that have not been there for a second go first.

use weir_packet::Side;
use weir_units::limits::{HOST_SETTLES_SECS, HOSTS_SETTLED};
use weir_units::{Instant, Span};

const WAYS: usize = 4;

/// Hosts by what stands for them.
#[derive(Debug)]
pub(crate) struct Settled {
    buckets: Box<[[Seen; WAYS]]>,
    /// Up to when whoever sends is there.
    first: Option<Instant>,
}

/// Times are counted in 2^20 nanoseconds, about a millisecond, and come around after 52 days.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    host: u32,
    since: u32,
    last: u32,
    is_taken: bool,
    /// It has been there for long enough.
    is_settled: bool,
}

const TICK: u32 = 20;
#[expect(clippy::cast_possible_truncation, reason = "a second")]
const SETTLES: u32 = (Span::from_secs(HOST_SETTLES_SECS).ns() >> TICK) as u32;

impl Settled {
    pub(crate) fn new() -> Settled {
        Settled { buckets: vec![[Seen::default(); WAYS]; HOSTS_SETTLED / WAYS].into(), first: None }
    }

    /// A frame of a host, or to it: whether the host is known to be there.
    #[inline(never)]
    pub(crate) fn is_there(&mut self, side: Side, host: u32, now: Instant) -> bool {
        let settles = Span::from_secs(HOST_SETTLES_SECS);
        let is_first = now < *self.first.get_or_insert(now + settles);
        #[expect(clippy::cast_possible_truncation, reason = "only differences are looked at")]
        let now = (now.ns() >> TICK) as u32;
        let at = host as usize % self.buckets.len();
        let bucket = &mut self.buckets[at];
        if let Some(seen) = bucket.iter_mut().find(|seen| seen.is_taken && seen.host == host) {
            if side == Side::Lan {
                seen.sends(now);
            }
            return seen.is_settled;
        }
        let silent = |seen: &Seen| now.wrapping_sub(seen.last);
        let free = |seen: &&mut Seen| !seen.is_taken || silent(seen) > SETTLES;
        let rank = |seen: &&mut Seen| (!seen.is_taken, !seen.is_settled, silent(seen));
        if side == Side::Lan
            && let Some(place) = bucket.iter_mut().filter(free).max_by_key(rank)
        {
            *place = Seen { host, since: now, last: now, is_taken: true, is_settled: is_first };
            return is_first;
        }
        false
    }
}

impl Seen {
    /// Whoever was silent for as long as it takes to settle begins anew.
    fn sends(&mut self, now: u32) {
        if !self.is_settled && now.wrapping_sub(self.last) > SETTLES {
            self.since = now;
        }
        self.last = now;
        self.is_settled |= now.wrapping_sub(self.since) >= SETTLES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Well after the first second of all.
    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(10_000 + ms)
    }

    fn begun() -> Settled {
        let mut settled = Settled::new();
        settled.is_there(Side::Wan, 0, Instant::ZERO);
        settled
    }

    #[test]
    fn in_the_first_second_of_all_everybody_is_there() {
        let mut settled = Settled::new();
        for ms in (0..1_000).step_by(10) {
            assert!(settled.is_there(Side::Lan, 7, at(ms)));
            assert!(settled.is_there(Side::Wan, 7, at(ms)));
            assert!(!settled.is_there(Side::Wan, 8, at(ms)));
        }
        let there = [7, 8, 9].map(|host| settled.is_there(Side::Lan, host, at(1_000)));
        assert_eq!(there, [true, false, false], "who has sent, who was sent to, who comes later");
    }

    #[test]
    fn a_host_is_there_once_it_has_been_sending_for_a_second() {
        let mut settled = begun();
        for ms in (0..1_000).step_by(100) {
            assert!(!settled.is_there(Side::Lan, 7, at(ms)));
            assert!(!settled.is_there(Side::Wan, 7, at(ms)));
            assert!(!settled.is_there(Side::Wan, 8, at(ms)));
        }
        // what comes from outside settles nobody
        assert!(!settled.is_there(Side::Wan, 7, at(1_100)));
        assert!(!settled.is_there(Side::Wan, 8, at(1_100)));
        assert!(settled.is_there(Side::Lan, 7, at(1_100)));
        assert!(settled.is_there(Side::Wan, 7, at(90_000)), "nobody has needed its place");
    }

    #[test]
    fn two_frames_far_apart_settle_nobody() {
        let mut settled = begun();
        assert!((0..10).all(|n| !settled.is_there(Side::Lan, 7, at(n * 1_100))));
        assert!((0..1_000).step_by(500).all(|n| !settled.is_there(Side::Lan, 7, at(20_000 + n))));
        assert!(settled.is_there(Side::Lan, 7, at(21_001)));
    }

    #[test]
    fn inventions_take_no_place_from_those_who_are_there() {
        let same_place = |n: u64| 7 + u32::try_from(n * (HOSTS_SETTLED / WAYS) as u64).unwrap();
        let settles = |settled: &mut Settled, host: u32, from: u64| {
            (0..1_100).step_by(100).any(|n| settled.is_there(Side::Lan, host, at(from + n)))
        };
        let mut settled = begun();
        assert!(settles(&mut settled, same_place(0), 0));
        // two inventions a second in the same bucket of four
        for n in 1..5_000 {
            let now = at(1_100 + 500 * n);
            assert!(!settled.is_there(Side::Lan, same_place(n), now));
        }
        let late = 2_600_000;
        assert!(settled.is_there(Side::Lan, same_place(0), at(late)), "they go before it");
        // where all have been sending for a second, the one that is silent for longest goes
        for ms in (0..1_100).step_by(100) {
            let all = [0, 1, 2, 3].map(same_place);
            let there = all.map(|host| settled.is_there(Side::Lan, host, at(late + ms)));
            assert_eq!(there, [true, ms >= 1_000, ms >= 1_000, ms >= 1_000]);
        }
        settled.is_there(Side::Lan, same_place(0), at(late + 1_500));
        let newcomer = same_place(9);
        for ms in (1_500..2_000).step_by(100) {
            assert!(!settled.is_there(Side::Lan, newcomer, at(late + ms)));
        }
        settled.is_there(Side::Lan, same_place(0), at(late + 2_200));
        assert!(settles(&mut settled, newcomer, late + 2_200));
        let there = [0, 1, 2, 3].map(same_place);
        let there = there.map(|host| settled.is_there(Side::Wan, host, at(late + 3_300)));
        assert_eq!(there.iter().filter(|&&there| !there).count(), 1);
        assert!(there[0], "it was heard last");
    }
}
