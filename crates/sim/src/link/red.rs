//! Random early detection (Floyd and Jacobson 1993): the longer the queue has been on average, the
//! more frames are hit. The average is kept in integers, with 16 bits behind the point.

use weir_units::{Bytes, Instant, Rate};

use crate::random::{Chance, Random};

/// Random early detection as plain data; lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    /// Below this average nothing is hit.
    pub least: usize,
    /// Above this average everything is; in the gentle form, above twice this.
    pub most: usize,
    /// How many are hit at `most`.
    pub chance: Chance,
    /// The average moves by 1/2^weight of the distance.
    pub weight: u8,
    /// From `most` to twice that the chance rises to 1 instead of jumping.
    pub gentle: bool,
}

#[derive(Debug)]
pub(crate) struct State {
    red: Red,
    /// The average, x 2^16.
    average: u64,
    /// Frames since one was hit.
    since_hit: u64,
    idle_since: Option<Instant>,
    rate: Rate,
    random: Random,
}

impl State {
    pub(crate) fn new(red: Red, rate: Rate, seed: u64, stream: u64) -> State {
        // apart from the luck of the path behind the same link
        let random = Random::new(seed, stream ^ 0x7265_6400_0000_0000);
        State { red, average: 0, since_hit: 0, idle_since: None, rate, random }
    }

    /// Whether the frame that comes now is hit.
    pub(crate) fn hits(&mut self, now: Instant, bytes: usize, frames: usize, next: usize) -> bool {
        self.decay(now, frames, next);
        let weight = u32::from(self.red.weight.min(31));
        let length = (bytes as u64) << 16;
        self.average = self.average - (self.average >> weight) + (length >> weight);
        let average = usize::try_from(self.average >> 16).unwrap_or(usize::MAX);
        let (least, most) = (self.red.least, self.red.most.max(self.red.least + 1));
        let top = f64::from(u32::try_from(average).unwrap_or(u32::MAX));
        let part = |from: usize, to: usize| {
            let [from, to] = [from, to].map(|x| f64::from(u32::try_from(x).unwrap_or(u32::MAX)));
            (top - from) / (to - from)
        };
        let chance = self.red.chance.part();
        let hit = if average < least {
            self.since_hit = 0;
            return false;
        } else if average < most {
            chance * part(least, most)
        } else if self.red.gentle && average < 2 * most {
            chance + (1.0 - chance) * part(most, 2 * most)
        } else {
            1.0
        };
        self.since_hit += 1;
        // spread evenly: the longer since the last hit, the likelier the next
        let since = f64::from(u32::try_from(self.since_hit).unwrap_or(u32::MAX));
        let left = 1.0 - since * hit;
        let is_hit = left <= 0.0 || self.random.unit() <= hit / left;
        if is_hit {
            self.since_hit = 0;
        }
        is_hit
    }

    /// The queue has been empty: the average falls as if small frames had passed.
    pub(crate) fn idle_since(&mut self, at: Instant) {
        self.idle_since = Some(at);
    }

    fn decay(&mut self, now: Instant, frames: usize, next: usize) {
        let Some(since) = self.idle_since.take() else { return };
        if frames > 0 {
            return;
        }
        let each = self.rate.time_for(Bytes::new(next as u64)).ns().max(1);
        let steps = (now.since(since).ns() / each).min(4_096);
        for _ in 0..steps {
            self.average -= self.average >> self.red.weight.min(31);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_queues_are_spared_and_long_ones_hit_in_proportion() {
        let chance = Chance::percent(10);
        let red = Red { least: 10_000, most: 30_000, chance, weight: 2, gentle: false };
        let hits = |bytes| {
            let mut state = State::new(red, Rate::from_bps(1_000_000), 1, 1);
            (0..20_000).filter(|_| state.hits(Instant::ZERO, bytes, 9, 1_500)).count()
        };
        assert_eq!(hits(9_000), 0);
        // p = 5 %; counted since the last hit, gaps are even from 1 to 1/p - 1
        assert!((1_950..2_050).contains(&hits(20_000)), "{}", hits(20_000));
        assert!(hits(40_000) > 19_900);
    }
}
