//! What hosts agree on: how much longer ways are, of many round trips that were compared with the
//! shortest of their connections.
//!
//! Each host has a voice, the median of what its round trips say, and more than half decide. A host
//! of the LAN side is one with all its addresses, but addresses of the WAN side cost nothing: so a
//! host of the LAN side brings two voices to the WAN side, which those that it talks to share. A
//! host of the WAN side has one at most, however many talk to it.

use weir_packet::{BySide, Side};

use super::trips::COMPARED;

/// What one round trip says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Voice {
    /// How much longer it was than the shortest of its connection, in microseconds.
    pub(super) raised: i64,
    /// Whose it was: of the LAN and of the WAN side.
    pub(super) hosts: BySide<u32>,
    /// In intervals.
    pub(super) age: u32,
    /// Its part of its LAN host's voices on the WAN side, of [`WHOLE`]; 0 where another round trip
    /// between the same two has it.
    pub(super) part: u32,
}

/// A voice. All numbers up to 16 divide it.
const WHOLE: u32 = 720_720;

/// Shares two voices of each host of the LAN side among those of the WAN side that it talks to.
pub(super) fn split(voices: &mut [Voice]) {
    voices.sort_unstable_by_key(|voice| (voice.hosts, voice.raised));
    for own in voices.chunk_by_mut(|one, other| one.hosts.lan == other.hosts.lan) {
        let others = own.chunk_by(|one, other| one.hosts == other.hosts).count();
        let part = (2 * WHOLE / u32::try_from(others).unwrap_or(u32::MAX).max(1)).min(WHOLE);
        for pair in own.chunk_by_mut(|one, other| one.hosts == other.hosts) {
            for (at, voice) in pair.iter_mut().enumerate() {
                voice.part = if at == 0 { part } else { 0 };
            }
        }
    }
}

/// How many hosts of a side there are, and what more than half of their voices say, or more than
/// that: each says the median of its own.
pub(super) fn agreed(voices: &mut [Voice], side: Side) -> (u32, i64) {
    let key = |voice: &Voice| (voice.hosts[side], voice.hosts[side.other()], voice.raised);
    voices.sort_unstable_by_key(key);
    let (mut says, mut pairs) = ([(0, 0); COMPARED], [0; COMPARED]);
    let mut hosts = 0;
    for own in voices.chunk_by(|one, other| one.hosts[side] == other.hosts[side]) {
        let part = match side {
            Side::Lan => WHOLE,
            Side::Wan => own.iter().map(|voice| voice.part).sum::<u32>().min(WHOLE),
        };
        // of those that it talks with each counts once, however often it answers
        let mut count = 0;
        for pair in own.chunk_by(|one, other| one.hosts == other.hosts) {
            pairs[count] = middle(pair.len(), |at| pair[at].raised);
            count += 1;
        }
        pairs[..count].sort_unstable();
        says[hosts] = (middle(count, |at| pairs[at]), part);
        hosts += 1;
    }
    let says = &mut says[..hosts];
    says.sort_unstable();
    let all: u32 = says.iter().map(|(_, part)| part).sum();
    let mut heard = 0;
    let decides = says.iter().find(|(_, part)| {
        heard += part;
        heard >= all - heard
    });
    (u32::try_from(hosts).unwrap_or(u32::MAX), decides.map_or(0, |(raised, _)| *raised))
}

/// Of so many in order the one in the middle, or before it.
fn middle(count: usize, get: impl Fn(usize) -> i64) -> i64 {
    get((count - 1) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What hosts of either side say, in microseconds: each two of them, and how much.
    fn voices(said: &[([u32; 2], i64)]) -> Vec<Voice> {
        let mut voices: Vec<_> = said
            .iter()
            .map(|&([lan, wan], raised)| Voice {
                raised,
                hosts: BySide { lan, wan },
                ..Voice::default()
            })
            .collect();
        split(&mut voices);
        voices
    }

    #[test]
    fn a_host_says_the_median_of_its_own() {
        for (said, median) in [(1, 10), (2, 10), (3, 20), (5, 30), (9, 50)] {
            let own: Vec<_> = (1..=said).map(|n| ([n, 7], i64::from(n) * 10)).collect();
            assert_eq!(agreed(&mut voices(&own), Side::Wan), (1, median), "of {said}");
        }
    }

    #[test]
    fn hosts_agree_on_what_more_than_half_of_them_say_at_least() {
        for (hosts, agrees) in [(1, 10), (2, 10), (3, 20), (5, 30), (9, 50)] {
            let said: Vec<_> = (1..=hosts).map(|n| ([7, n], i64::from(n) * 10)).collect();
            assert_eq!(agreed(&mut voices(&said), Side::Wan), (hosts, agrees));
        }
    }

    #[test]
    fn a_host_with_many_addresses_outside_has_two_voices_there() {
        // three hosts with a server each say 2 ms, and one says 400 of eight
        let mut said: Vec<_> = (1..=3).map(|n| ([n, n], 2)).collect();
        said.extend((0..8).map(|n| ([9, 100 + n], 400)));
        for side in [Side::Lan, Side::Wan] {
            assert_eq!(agreed(&mut voices(&said), side).1, 2, "{side:?}");
        }
        // nor can it say that there is no queue
        said.iter_mut().for_each(|(_, raised)| *raised = 402 - *raised);
        for side in [Side::Lan, Side::Wan] {
            assert_eq!(agreed(&mut voices(&said), side).1, 400, "{side:?}");
        }
    }

    #[test]
    fn two_voices_are_worth_those_of_two_others_among_however_many_addresses() {
        for count in [2, 3, 7, 11, 16, 32] {
            // half of all say 5 ms, and all say that or more
            let mut said: Vec<_> = (0..count).map(|n| ([9, 100 + n], 5)).collect();
            said.extend((1..=2).map(|n| ([n, n], 50)));
            assert_eq!(agreed(&mut voices(&said), Side::Wan), (count + 2, 5));
        }
    }

    #[test]
    fn hosts_that_all_talk_to_the_same_are_told_apart_on_either_side() {
        // three hosts and three servers; what is said is neither in the order of these nor of those
        let says = [[50, 10, 30], [90, 70, 80], [20, 60, 40]];
        let of_host = |lan: u32| (1..).zip(says[lan as usize]).map(move |(n, us)| ([lan, n], us));
        let said: Vec<_> = (0..3).flat_map(of_host).collect();
        // the hosts say 30, 80 and 40, the servers 50, 60 and 40
        assert_eq!(agreed(&mut voices(&said), Side::Lan), (3, 40));
        assert_eq!(agreed(&mut voices(&said), Side::Wan), (3, 50));
    }

    #[test]
    fn a_server_of_many_hosts_is_one_of_all_servers() {
        // three hosts wait for one server, and another host does not, for any of four
        let mut said: Vec<_> = (1..=3).map(|n| ([n, 1], 50)).collect();
        said.extend((0..4).map(|n| ([9, 100 + n], 0)));
        assert_eq!(agreed(&mut voices(&said), Side::Lan), (4, 50));
        assert_eq!(agreed(&mut voices(&said), Side::Wan), (5, 0));
    }

    #[test]
    fn of_those_that_a_server_talks_with_each_counts_once() {
        // one of four hosts is answered ten times as often, and without any queue
        let mut said: Vec<_> = (1..=3).map(|n| ([n, 1], 50)).collect();
        said.extend((0..10).map(|_| ([9, 1], 0)));
        for side in [Side::Lan, Side::Wan] {
            assert_eq!(agreed(&mut voices(&said), side).1, 50, "{side:?}");
        }
    }
}
