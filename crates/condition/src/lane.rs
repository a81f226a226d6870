//! What a leaf gives its connections now: its present rate, found from what it carries, and how
//! many share it. A leaf whose queue never ran empty got what it could have; one that ran empty
//! although it carried nearly its rate may be able to have more.

mod export;

use weir_units::Rate;

use crate::told::Leaf;

pub use export::LaneState;

/// Lanes in one piece of memory.
pub(crate) const CHUNK: usize = 1_024;

/// What is known of a leaf, for the data of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    /// What it may have, and what it has, in bits per second.
    base: u64,
    rate: u64,
    /// What one connection has of it.
    each: u64,
    /// When the measurement that is under way began, in microseconds.
    since: u32,
    /// Bytes that came in it, that waited when it began, and that waited at least.
    came: u32,
    waited: u32,
    least: u32,
    /// When connections were last counted anew.
    counted_at: u32,
    sessions: u16,
    sessions_before: u16,
    /// Of `sessions`, those that came with an import and whose connections have yet to come.
    brought: u16,
    pub(crate) told: u16,
    round: u8,
    fixed: bool,
}

const _: () = assert!(size_of::<Lane>() == 56);

/// Frames of this size take turns.
const FULL_FRAME: u64 = 1_514;
/// Microseconds that a measurement takes at least, and a count of connections.
const MEASURE: u64 = 100_000;
const COUNT: u64 = 2_000_000;
/// Microseconds that a count takes at most, however long a turn of all that were counted would.
const LONGEST_COUNT: u64 = 60_000_000;

impl Lane {
    pub(crate) fn tell(&mut self, leaf: &Leaf) {
        let rate = leaf.rate.bps().max(1_000);
        if self.told == 0 {
            // another leaf had this number once; nobody is counted as one of this
            let round = next(self.round);
            *self = Lane { round, ..Lane::default() };
        }
        if self.base != rate || self.fixed != leaf.fixed {
            (self.base, self.rate, self.fixed) = (rate, rate, leaf.fixed);
            self.divide();
        }
        self.told = leaf.told;
    }

    /// A frame with data of a connection comes while `waiting` bytes wait in the leaf. `counted`
    /// is when the connection was last counted.
    #[inline]
    pub(crate) fn came(&mut self, at: u32, bytes: u32, waiting: u32, counted: &mut u8) {
        self.count(at, counted);
        self.came = self.came.saturating_add(bytes);
        self.least = self.least.min(waiting);
        let frames = u64::from(at.wrapping_sub(self.since));
        if frames >= MEASURE && frames >= self.frame_time() * 16 {
            self.measure(at, waiting);
        }
    }

    #[inline]
    fn count(&mut self, at: u32, counted: &mut u8) {
        let since = u64::from(at.wrapping_sub(self.counted_at));
        if since >= COUNT && since >= (4 * self.turn_time()).min(LONGEST_COUNT) {
            self.sessions_before = self.sessions;
            (self.sessions, self.brought) = (0, 0);
            self.counted_at = at;
            self.round = next(self.round);
            self.divide();
        }
        if *counted != self.round {
            *counted = self.round;
            self.sessions = self.sessions.saturating_add(1);
            if self.sessions > self.sessions_before {
                self.divide();
            }
        }
    }

    /// A connection has no more to send.
    pub(crate) fn ended(&mut self, counted: &mut u8) {
        if *counted == self.round {
            self.sessions = self.sessions.saturating_sub(1);
            self.sessions_before = self.sessions_before.saturating_sub(1);
            *counted = 0;
            self.divide();
        }
    }

    fn measure(&mut self, at: u32, waiting: u32) {
        let took = u64::from(at.wrapping_sub(self.since)).max(1);
        let sent =
            (u64::from(self.came) + u64::from(self.waited)).saturating_sub(u64::from(waiting));
        let measured = sent.saturating_mul(8_000_000) / took;
        if !self.fixed {
            if self.least > 0 {
                self.rate = self.rate - self.rate / 4 + measured / 4;
            } else if measured >= self.rate / 4 * 3 {
                self.rate = self.rate.saturating_add(self.rate / 8);
            }
            self.rate = self.rate.clamp(self.base / 64 + 1, self.base.saturating_mul(4));
            self.divide();
        }
        (self.since, self.came, self.waited, self.least) = (at, 0, waiting, waiting);
    }

    fn divide(&mut self) {
        // room to show that there is more, up to what the leaf may have
        let reach = self.rate.saturating_mul(2).min(self.base).max(self.rate);
        self.each = (reach / u64::from(self.sessions())).max(1);
    }

    /// How many share it.
    pub(crate) fn sessions(&self) -> u16 {
        self.sessions.max(self.sessions_before).max(1)
    }

    /// What one connection has, in bits per second.
    #[inline]
    pub(crate) const fn each(&self) -> u64 {
        self.each
    }

    /// The same, for who explains.
    #[must_use]
    pub const fn share(&self) -> Rate {
        Rate::from_bps(self.each)
    }

    /// Something in it, to have it fetched.
    #[inline]
    pub(crate) const fn peek(&self) -> u32 {
        self.since
    }

    /// What all connections have together.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// Microseconds that a full frame takes.
    pub(crate) fn frame_time(&self) -> u64 {
        FULL_FRAME * 8_000_000 / self.rate.max(1)
    }

    /// Microseconds until everyone had a full frame.
    pub(crate) fn turn_time(&self) -> u64 {
        self.frame_time().saturating_mul(u64::from(self.sessions()))
    }

    /// The same for a connection that comes now, with those that may come while it still learns
    /// how long a turn takes.
    pub(crate) fn turn_of_a_new_one(&self) -> u64 {
        let sessions = u64::from(self.sessions()) + 1;
        self.frame_time().saturating_mul(sessions.max(4))
    }
}

/// The round after this one; 0 is for connections that were never counted.
const fn next(round: u8) -> u8 {
    if round == u8::MAX { 1 } else { round + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(bps: u64, fixed: bool) -> Lane {
        let mut lane = Lane::default();
        lane.tell(&Leaf { number: 1, told: 1, rate: Rate::from_bps(bps), fixed });
        lane
    }

    /// Frames of 1 000 bytes arrive as fast as `arrives` while `drains` leave, for so many seconds.
    fn run(lane: &mut Lane, arrives: u64, drains: u64, secs: u64) {
        let (mut waiting, mut counted, mut drained) = (0u64, 0, 0);
        let apart = 8_000_000_000 / arrives;
        for n in 1..=secs * 1_000_000 / apart {
            let at = n * apart;
            waiting = waiting.saturating_sub((at - drained) * drains / 8_000_000);
            drained = at;
            let [at, waiting_now] = [at, waiting].map(|n| u32::try_from(n).expect("is small"));
            lane.came(at, 1_000, waiting_now, &mut counted);
            waiting += 1_000;
        }
    }

    #[test]
    fn under_backlog_the_rate_is_what_leaves() {
        let mut lane = lane(1_000_000, false);
        run(&mut lane, 400_000, 300_000, 20);
        let found = lane.rate().bps();
        assert!((290_000..=310_000).contains(&found), "{found}");
    }

    #[test]
    fn without_backlog_more_is_tried_up_to_four_times() {
        let mut lane = lane(100_000, false);
        run(&mut lane, 300_000, 1_000_000, 20);
        // it carries 300 000, and three quarters of the rate are tried higher
        let found = lane.rate().bps();
        assert!((300_000..=400_000).contains(&found), "{found}");
        run(&mut lane, 2_000_000, 10_000_000, 20);
        assert_eq!(lane.rate().bps(), 400_000);
    }

    #[test]
    fn one_that_is_hardly_used_keeps_its_rate() {
        let mut lane = lane(1_000_000, false);
        run(&mut lane, 100_000, 1_000_000, 20);
        assert_eq!(lane.rate().bps(), 1_000_000);
    }

    #[test]
    fn a_rate_that_was_said_stays() {
        let mut lane = lane(1_000_000, true);
        run(&mut lane, 400_000, 300_000, 20);
        assert_eq!(lane.rate().bps(), 1_000_000);
    }

    #[test]
    fn connections_that_send_share_it_and_those_that_ended_do_not() {
        let mut lane = lane(1_000_000, true);
        let mut counted = [0u8; 5];
        for counted in &mut counted {
            lane.came(10, 1_000, 0, counted);
            lane.came(20, 1_000, 0, counted);
        }
        assert_eq!((lane.sessions(), lane.share().bps()), (5, 200_000));
        lane.ended(&mut counted[0]);
        lane.ended(&mut counted[0]);
        assert_eq!((lane.sessions(), lane.share().bps()), (4, 250_000));
        // one goes on alone: the others are believed for one more round
        for round in 1..=3 {
            lane.came(round * 2_000_000 + 20, 1_000, 0, &mut counted[4]);
            assert_eq!(lane.sessions(), if round == 1 { 4 } else { 1 }, "round {round}");
        }
        // counted before and again: the end of one takes it out of both
        lane.came(9_000_000, 1_000, 0, &mut counted[3]);
        lane.came(9_000_001, 1_000, 0, &mut counted[4]);
        lane.came(11_100_000, 1_000, 0, &mut counted[3]);
        lane.ended(&mut counted[3]);
        assert_eq!(lane.sessions(), 1);
    }

    #[test]
    fn a_crowd_that_has_gone_is_forgotten_within_two_minutes() {
        let mut lane = lane(64_000, false);
        // a full frame of each takes 25 minutes
        for _ in 0..8_000 {
            lane.came(10, 1_000, 0, &mut 0);
        }
        assert_eq!(lane.sessions(), 8_000);
        let mut counted = 0;
        for second in 1..=121 {
            lane.came(second * 1_000_000, 1_000, 0, &mut counted);
        }
        assert_eq!(lane.sessions(), 1);
    }

    #[test]
    fn another_rate_keeps_the_count_and_another_leaf_does_not() {
        let mut lane = lane(1_000_000, false);
        let mut counted = [0u8; 3];
        counted.iter_mut().for_each(|counted| lane.came(10, 1_000, 0, counted));
        let leaf = |told, bps| Leaf { number: 1, told, rate: Rate::from_bps(bps), fixed: false };
        lane.tell(&leaf(2, 600_000));
        assert_eq!((lane.sessions(), lane.share().bps()), (3, 200_000));
        lane.tell(&leaf(0, 600_000));
        lane.tell(&leaf(1, 600_000));
        assert_eq!(lane.sessions(), 1);
        counted.iter_mut().for_each(|counted| lane.came(20, 1_000, 0, counted));
        assert_eq!(lane.sessions(), 3);
    }

    #[test]
    fn no_rate_and_no_time_panics() {
        for bps in [0, 1, 1_000, u64::MAX / 2, u64::MAX] {
            let mut lane = lane(bps, false);
            let mut counted = 0;
            for (at, waiting) in [(0, 0), (u32::MAX, u32::MAX), (7, 0), (1 << 31, 5), (3, 1)] {
                lane.came(at, u32::MAX, waiting, &mut counted);
                lane.came(at.wrapping_add(1), u32::MAX, waiting, &mut counted);
                lane.ended(&mut counted);
                assert!(lane.each() > 0 && lane.turn_of_a_new_one() > 0 || bps > 1_000);
            }
        }
    }
}
