//! Calls and whoever types are protected with no rule written. They cannot wait, and send no faster
//! when they may: small frames at a low rate. As long as a connection keeps to that, its frames go
//! before the others and cost it no credit. All of them together may take as many bytes of a leaf
//! as large frames do; what is more, of a connection or of all, is like everything else. So a flood
//! gains the rate of a call and no more, and n bulk connections among m in all keep n / (n + m) of
//! the leaf, whatever the calls want: as much as they send goes first, and of what is left they
//! have their turns, n of m.
//!
//! Where hosts take turns, calls go before the other connections of their host, and cost the host
//! no credit as long as all of them together keep to the rate of one. A host that has more of them
//! pays for the rest: however many it has, no other host has less by more than that.

use weir_units::{Bytes, Instant, Rate};

use super::{Crowd, Queue, Queues};
use crate::tree::node::NONE;
use crate::tree::ring::{Member, QUANTUM};

/// Bytes of the largest small frame: 20 ms of speech without compression, and what some add.
pub(super) const LARGEST: usize = 300;
/// Speech without compression, with all headers, and a little.
const FASTEST: Rate = Rate::from_bps(96_000);
/// Microseconds that frames may be early together: a network has brought them unevenly.
const EARLY: u32 = 60_000;
/// Bytes that small frames may go first at once, when they had not for a while.
pub(super) const MOST: i16 = 24_608;

const _: () = assert!(MOST as i32 == 16 * QUANTUM);

impl Queue {
    /// One more small frame of so many bytes: whether they keep to the rate of a call.
    #[inline(never)]
    pub(super) fn is_calm(&mut self, now: Instant, bytes: usize) -> bool {
        keeps_to_it(&mut self.moment, now, bytes)
    }
}

/// One more small frame of so many bytes: whether they keep to the rate of a call. `moment` is up
/// to when the frames so far have been spared, in microseconds.
fn keeps_to_it(moment: &mut u32, now: Instant, bytes: usize) -> bool {
    #[expect(clippy::cast_possible_truncation, reason = "only differences are looked at")]
    let now = (now.ns() / 1_000) as u32;
    let ahead = moment.wrapping_sub(now).cast_signed();
    // what lies further ahead than it can is from before the clock came around
    let ahead = if (0..1_000_000).contains(&ahead) { ahead.unsigned_abs() } else { 0 };
    if ahead > EARLY {
        return false;
    }
    let takes = bytes as u64 * 8_000_000 / FASTEST.bps();
    *moment = now.wrapping_add(ahead + u32::try_from(takes).unwrap_or(0));
    true
}

impl Crowd {
    /// Whether small frames may still go first, with one more of so many bytes.
    #[inline]
    pub(super) fn lets_go_first(&mut self, bytes: usize) -> bool {
        let is_in = self.calm > 0;
        if is_in {
            self.calm -= i16::try_from(bytes).unwrap_or(0);
        }
        is_in
    }

    /// What large frames have had, small ones may have as well.
    #[inline]
    pub(super) fn has_sent(&mut self, bytes: u16) {
        if usize::from(bytes) > LARGEST {
            let more = i16::try_from(bytes).unwrap_or(MOST);
            self.calm = self.calm.saturating_add(more).min(MOST);
        }
    }
}

impl Queues {
    /// A frame that goes first costs its connection no credit, and its host none while the host
    /// has no more of them than one call.
    #[inline]
    pub(super) fn spare(&mut self, now: Instant, id: u32, bytes: usize, cost: Bytes) {
        let credit = i32::try_from(cost.get()).unwrap_or(0);
        let (host, leaf) = (self.queues[id].turns_of(), self.queues[id].leaf);
        let turn = &mut self.queues[id].turn;
        turn.credit = turn.credit.saturating_add(credit);
        if host != NONE
            && keeps_to_it(&mut self.hosts[host].moment, now, bytes)
            && self.crowds[leaf as usize].lets_go_first(bytes)
        {
            let turn = self.hosts[host].turn();
            turn.credit = turn.credit.saturating_add(credit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many frames of 200 bytes, so many milliseconds apart, are calm in a second.
    fn calm(apart: u64) -> usize {
        let mut queue = Queue::default();
        let at = |n: u64| Instant::from_ns(n * apart * 1_000_000);
        (0..1_000 / apart).filter(|n| queue.is_calm(at(*n), 200)).count()
    }

    #[test]
    fn a_call_is_calm_and_a_flood_no_more_than_a_call() {
        // 80 kbit/s: all of it; 1.6 Mbit/s: what a call at 96 kbit/s would be
        assert_eq!(calm(20), 50);
        let (each_second, early) = (96_000 / 1_600, 96 * 60 / 1_600);
        assert!((each_second..=each_second + early + 1).contains(&calm(1)), "{}", calm(1));
    }

    #[test]
    fn a_clock_that_comes_around_ends_nothing() {
        let mut queue = Queue::default();
        let day = 86_400_000_000_000;
        for at in [0, day, day + 20_000_000, 2 * day] {
            assert!(queue.is_calm(Instant::from_ns(at), 200), "{at}");
        }
    }
}
