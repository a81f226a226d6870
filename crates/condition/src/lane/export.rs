//! What a leaf gives its connections, on its way to another conditioner. A leaf that has carried
//! nothing there yet takes it; one that has knows better.

use super::Lane;

/// What is known of a leaf, for the data of one direction. Moments are told as microseconds before
/// the moment of export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneState {
    /// What it may have, in bits per second, and whether windows are sized for just that.
    pub base: u64,
    /// See `base`.
    pub fixed: bool,
    /// What it has, in bits per second.
    pub rate: u64,
    /// How long ago the measurement that is under way began.
    pub since_ago: u32,
    /// Bytes that came in it.
    pub came: u32,
    /// Bytes that waited when it began.
    pub waited: u32,
    /// Bytes that waited at least.
    pub least: u32,
    /// How long ago its connections were last counted anew.
    pub counted_ago: u32,
    /// Connections that were counted since.
    pub sessions: u16,
    /// Connections that were counted before.
    pub sessions_before: u16,
}

impl Lane {
    /// What is known of it at `at`; `None`: no data have come yet.
    pub(crate) fn export(&self, at: u32) -> Option<LaneState> {
        (!self.is_fresh()).then(|| LaneState {
            base: self.base,
            fixed: self.fixed,
            rate: self.rate,
            since_ago: at.wrapping_sub(self.since),
            came: self.came,
            waited: self.waited,
            least: self.least,
            counted_ago: at.wrapping_sub(self.counted_at),
            sessions: self.sessions,
            sessions_before: self.sessions_before,
        })
    }

    /// Whether a connection is among those that are counted now.
    pub(crate) const fn counts(&self, counted: u8) -> bool {
        counted != 0 && counted == self.round
    }

    /// Goes on from what was told at `at`, by the clock here, if nothing has come yet. As after an
    /// edit, a rate holds only for a leaf that may have as much as it might.
    pub(crate) fn go_on(&mut self, at: u32, told: &LaneState) {
        if !self.is_fresh() {
            return;
        }
        self.since = at.wrapping_sub(told.since_ago);
        self.counted_at = at.wrapping_sub(told.counted_ago);
        (self.came, self.waited, self.least) = (told.came, told.waited, told.least);
        (self.sessions, self.sessions_before) = (told.sessions, told.sessions_before);
        self.brought = told.sessions;
        if (self.base, self.fixed) == (told.base, told.fixed) {
            let most = self.base.saturating_mul(4);
            self.rate = told.rate.clamp((self.base / 64 + 1).min(most), most);
        }
        self.divide();
    }

    /// A connection comes that its leaf elsewhere counted.
    pub(crate) fn takes_in(&mut self, counted: &mut u8) {
        *counted = self.round;
        if self.brought > 0 {
            self.brought -= 1;
            return;
        }
        self.sessions = self.sessions.saturating_add(1);
        self.divide();
    }

    const fn is_fresh(&self) -> bool {
        self.since == 0 && self.counted_at == 0 && self.came == 0 && self.sessions == 0
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Rate;

    use super::*;
    use crate::told::Leaf;

    fn lane(bps: u64) -> Lane {
        let mut lane = Lane::default();
        lane.tell(&Leaf { number: 1, told: 1, rate: Rate::from_bps(bps), fixed: false });
        lane
    }

    /// A leaf with two connections that finds it carries more than it may.
    fn busy(lane: &mut Lane, from: u32, frames: u32) -> [u64; 3] {
        let mut counted = [0; 2];
        for n in 1..=frames {
            let at = from.wrapping_add(n * 20_000);
            lane.came(at, 1_000, 0, &mut counted[n as usize % 2]);
        }
        [lane.rate, lane.each, lane.sessions().into()]
    }

    #[test]
    fn what_was_found_holds_by_another_clock_and_is_found_on() {
        let (mut one, mut other) = (lane(100_000), lane(100_000));
        busy(&mut one, 1 << 30, 500);
        let (at, there) = ((1 << 30) + 500 * 20_000 + 7, 3_000_000_000);
        other.go_on(there, &one.export(at).expect("data came"));
        assert!(one.rate > 200_000, "{}", one.rate);
        assert_eq!(
            (one.rate, one.each, one.sessions()),
            (other.rate, other.each, other.sessions())
        );
        assert_eq!(busy(&mut one, at, 300), busy(&mut other, there, 300));
    }

    #[test]
    fn who_has_carried_data_knows_better_and_who_may_have_less_begins_with_that() {
        let (mut one, mut narrow) = (lane(100_000), lane(50_000));
        assert_eq!(one.export(9), None, "nothing came");
        busy(&mut one, 1 << 30, 500);
        let found = one.export(1 << 30).expect("data came");
        narrow.go_on(5, &found);
        assert_eq!((narrow.rate, narrow.sessions()), (50_000, one.sessions()));
        let mut own = lane(100_000);
        let before = busy(&mut own, 77, 3);
        own.go_on(500_000, &found);
        assert_eq!([own.rate, own.each, own.sessions().into()], before);
    }

    #[test]
    fn connections_that_were_counted_are_counted_once() {
        let (mut one, mut other) = (lane(100_000), lane(100_000));
        busy(&mut one, 1 << 30, 2);
        let mut counted = [0; 3];
        other.go_on(5, &one.export(1 << 30).expect("data came"));
        for (connection, sessions) in counted.iter_mut().zip([2, 2, 3]) {
            other.takes_in(connection);
            assert_eq!(other.sessions(), sessions);
            assert!(other.counts(*connection));
        }
    }
}
