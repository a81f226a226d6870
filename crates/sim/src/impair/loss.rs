//! Which packets are lost.

use crate::random::{Chance, Random};

/// A rule of loss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// None is lost.
    #[default]
    None,
    /// Each with the same chance. With a correlation c, a packet shares the fate of the one before
    /// with chance c, and has a new one otherwise: the loss stays the same, its bursts grow.
    Random {
        /// How many.
        chance: Chance,
        /// How often a packet shares the fate of the one before.
        correlation: Chance,
    },
    /// Every n-th packet: the packets number n - phase, 2n - phase and so on, counted from 1.
    Periodic {
        /// n.
        every: u64,
        /// How much earlier the first is.
        phase: u64,
    },
    /// Exactly these packets, counted from 1, in rising order.
    List(Vec<u64>),
    /// Gilbert and Elliott: a good and a bad state, each with its own chance of loss.
    Bursts {
        /// From good to bad (p).
        worse: Chance,
        /// From bad to good (r).
        better: Chance,
        /// Lost in the good state (1 - k).
        in_good: Chance,
        /// Lost in the bad state (1 - h).
        in_bad: Chance,
    },
    /// The four states of netem: 1 good, 2 good within a burst, 3 lost within a burst, 4 lost
    /// alone.
    FourStates {
        /// From 1 to 3.
        p13: Chance,
        /// From 3 to 1.
        p31: Chance,
        /// From 3 to 2.
        p32: Chance,
        /// From 2 to 3.
        p23: Chance,
        /// From 1 to 4.
        p14: Chance,
    },
}

/// A rule of loss with its memory.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    rule: Loss,
    /// Fate of the packet before, or whether the state is bad.
    before: Option<bool>,
    state: u8,
    /// How many entries of the list are past.
    listed: usize,
}

impl Losses {
    pub(crate) fn new(rule: &Loss) -> Losses {
        Losses { rule: rule.clone(), before: None, state: 1, listed: 0 }
    }

    /// Whether packet number `n` is chosen.
    pub(crate) fn hits(&mut self, n: u64, random: &mut Random) -> bool {
        match &self.rule {
            Loss::None => false,
            Loss::Random { chance, correlation } => {
                let fate = match self.before {
                    Some(before) if random.happens(*correlation) => before,
                    _ => random.happens(*chance),
                };
                self.before = Some(fate);
                fate
            }
            Loss::Periodic { every, phase } => {
                *every > 0 && n.wrapping_add(*phase).is_multiple_of(*every)
            }
            Loss::List(list) => {
                while list.get(self.listed).is_some_and(|&at| at < n) {
                    self.listed += 1;
                }
                list.get(self.listed) == Some(&n)
            }
            Loss::Bursts { worse, better, in_good, in_bad } => {
                let bad = self.before.unwrap_or(false);
                let bad = bad != random.happens(if bad { *better } else { *worse });
                self.before = Some(bad);
                random.happens(if bad { *in_bad } else { *in_good })
            }
            Loss::FourStates { p13, p31, p32, p23, p14 } => {
                // two ways out of a state share one draw
                let draw = random.unit();
                let among = |first: Chance, second: Chance| {
                    (draw <= first.part(), draw <= first.part() + second.part())
                };
                self.state = match self.state {
                    1 => match among(*p14, *p13) {
                        (true, _) => 4,
                        (_, true) => 3,
                        _ => 1,
                    },
                    2 => 2 + u8::from(draw <= p23.part()),
                    3 => match among(*p32, *p31) {
                        (true, _) => 2,
                        (_, true) => 1,
                        _ => 3,
                    },
                    _ => 1,
                };
                self.state >= 3
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rule: &Loss, packets: u64) -> Vec<bool> {
        let (mut losses, mut random) = (Losses::new(rule), Random::new(11, 3));
        (1..=packets).map(|n| losses.hits(n, &mut random)).collect()
    }

    /// Share of lost packets, and the mean length of a run of them.
    fn share_and_burst(fates: &[bool]) -> (f64, f64) {
        let lost = fates.iter().filter(|lost| **lost).count();
        let first = usize::from(fates[0]);
        let bursts = first + fates.windows(2).filter(|two| !two[0] && two[1]).count();
        #[expect(clippy::cast_precision_loss)]
        let [lost, bursts, all] = [lost as f64, bursts as f64, fates.len() as f64];
        (lost / all, lost / bursts)
    }

    #[test]
    fn periodic_loss_is_exact() {
        let fates = run(&Loss::Periodic { every: 200, phase: 0 }, 1_000);
        let lost: Vec<usize> = (1..=1_000).filter(|n| fates[n - 1]).collect();
        assert_eq!(lost, [200, 400, 600, 800, 1_000]);
        let fates = run(&Loss::Periodic { every: 12, phase: 5 }, 24);
        assert_eq!((1..=24).filter(|n| fates[n - 1]).collect::<Vec<_>>(), [7, 19]);
        assert!(!run(&Loss::Periodic { every: 0, phase: 0 }, 9).contains(&true));
    }

    #[test]
    fn a_list_names_its_packets() {
        let fates = run(&Loss::List(vec![1, 4, 5]), 6);
        assert_eq!(fates, [true, false, false, true, true, false]);
    }

    #[test]
    fn correlation_makes_bursts_and_leaves_the_share() {
        let random = |correlation| Loss::Random { chance: Chance::percent(5), correlation };
        let (share, burst) = share_and_burst(&run(&random(Chance::NEVER), 400_000));
        assert!(
            (share - 0.05).abs() < 0.002 && (burst - 1.0 / 0.95).abs() < 0.02,
            "{share} {burst}"
        );
        let (share, burst) = share_and_burst(&run(&random(Chance::percent(50)), 400_000));
        // a run ends with chance (1 - c)(1 - p)
        assert!((share - 0.05).abs() < 0.003 && (burst - 1.0 / 0.475).abs() < 0.06, "{burst}");
    }

    #[test]
    fn bursts_are_as_long_as_gilbert_and_elliott_say() {
        let fates = run(
            &Loss::Bursts {
                worse: Chance::percent(1),
                better: Chance::percent(20),
                in_good: Chance::NEVER,
                in_bad: Chance::ALWAYS,
            },
            400_000,
        );
        let (share, burst) = share_and_burst(&fates);
        assert!((share - 0.01 / 0.21).abs() < 0.003, "{share}");
        assert!((burst - 5.0).abs() < 0.2, "{burst}");
    }

    #[test]
    fn four_states_lose_what_their_chain_says() {
        let fates = run(
            &Loss::FourStates {
                p13: Chance::percent(2),
                p31: Chance::percent(30),
                p32: Chance::percent(10),
                p23: Chance::percent(40),
                p14: Chance::percent(1),
            },
            600_000,
        );
        // the balance of the chain: state 3 = p13/p31, 2 = 3 x p32/p23, 4 = p14, each per state 1
        let (three, four) = (0.02 / 0.3, 0.01);
        let expected = (three + four) / (1.0 + three + three * 0.1 / 0.4 + four);
        let (share, _) = share_and_burst(&fates);
        assert!((share - expected).abs() < 0.003, "{share} {expected}");
    }
}
