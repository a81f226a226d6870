//! What did not come, or came too late to be of use.

/// Counts packets with 16-bit sequence numbers as RFC 3550 does: what was expected is what lies
/// between the first and the highest number seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    span: Option<(i64, i64)>,
    received: u64,
}

impl Arrivals {
    /// A packet has come. A number stands for the one nearest to the highest so far.
    pub fn add(&mut self, sequence: u16) {
        self.received += 1;
        let Some((_, highest)) = &mut self.span else {
            self.span = Some((i64::from(sequence), i64::from(sequence)));
            return;
        };
        let ahead = i64::from(sequence) - highest.rem_euclid(1 << 16);
        let ahead = (ahead + (1 << 15)).rem_euclid(1 << 16) - (1 << 15);
        *highest += ahead.max(0);
    }

    /// How many there should have been.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.span.map_or(0, |(first, highest)| highest.abs_diff(first) + 1)
    }

    /// The share of the expected that did not come; none before the first. Packets that came
    /// twice stand for missing ones; the share is not below zero for that.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "below 2^53 packets")]
    pub fn loss(&self) -> Option<f64> {
        let expected = self.expected();
        let missing = expected.saturating_sub(self.received);
        (expected > 0).then(|| missing as f64 / expected as f64)
    }
}

/// How many packets miss their turn at a play-out buffer that waits `buffer` beyond the least
/// delay. To the ear they are lost.
#[must_use]
pub fn late(delays: &[f64], buffer: f64) -> usize {
    let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
    delays.iter().filter(|delay| **delay > least + buffer).count()
}

/// BurstR of G.107: how long bursts of loss are, over how long they would be if losses were
/// independent. 1 where nothing or everything is lost.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "below 2^53 packets")]
pub fn burst_ratio(lost: &[bool]) -> f64 {
    let losses = lost.iter().filter(|lost| **lost).count();
    if losses == 0 || losses == lost.len() {
        return 1.0;
    }
    let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
    let share = losses as f64 / lost.len() as f64;
    losses as f64 / bursts as f64 * (1.0 - share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_come_out_of_order() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.loss(), None);
        [65_534, 0, 65_535, 3].into_iter().for_each(|sequence| arrivals.add(sequence));
        assert_eq!(arrivals.expected(), 6);
        assert_eq!(arrivals.loss(), Some(2.0 / 6.0));
        let next = |last: &u16| Some(last.wrapping_add(1));
        std::iter::successors(Some(4), next).take(200_000).for_each(|at| arrivals.add(at));
        assert_eq!(arrivals.expected(), 200_006);
    }

    #[test]
    fn what_came_twice_is_not_less_than_no_loss() {
        let mut arrivals = Arrivals::default();
        [7, 7, 7, 8].into_iter().for_each(|sequence| arrivals.add(sequence));
        assert_eq!(arrivals.loss(), Some(0.0));
    }

    #[test]
    fn a_packet_at_the_end_of_the_buffer_is_in_time() {
        assert_eq!(late(&[50.0, 110.0, 110.1, 60.0, 300.0], 60.0), 2);
        assert_eq!(late(&[], 60.0), 0);
    }

    #[test]
    fn losses_in_pairs_have_a_burst_ratio_of_two_less_their_share() {
        let pairs: Vec<bool> = (0..100).map(|at| at % 10 < 2).collect();
        assert!((burst_ratio(&pairs) - 2.0 * 0.8).abs() < 1e-12);
        assert_eq!(burst_ratio(&[false; 9]), 1.0);
        assert_eq!(burst_ratio(&[true; 9]), 1.0);
        assert_eq!(burst_ratio(&[]), 1.0);
    }
}
