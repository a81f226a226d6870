//! When nothing passes at all.

use weir_units::{Instant, Span};

use crate::random::Random;

/// When a path is down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// Never.
    #[default]
    Never,
    /// It goes down and comes up by chance; both times are exponential. It starts up.
    Random {
        /// How long it is up, in the mean.
        up: Span,
        /// How long it is down, in the mean.
        down: Span,
    },
    /// At these times, from and up to, in rising order.
    Scheduled(Vec<(Instant, Instant)>),
}

/// A path's ups and downs with their memory.
#[derive(Clone, Debug)]
pub(crate) struct Outages {
    rule: Outage,
    is_up: bool,
    changes_at: Instant,
    past: usize,
}

impl Outages {
    pub(crate) fn new(rule: &Outage, random: &mut Random) -> Outages {
        let changes_at = match rule {
            Outage::Random { up, .. } => Instant::ZERO + random.wait(*up),
            _ => Instant::MAX,
        };
        Outages { rule: rule.clone(), is_up: true, changes_at, past: 0 }
    }

    pub(crate) fn is_up(&mut self, now: Instant, random: &mut Random) -> bool {
        match &self.rule {
            Outage::Never => true,
            Outage::Random { up, down } => {
                while self.changes_at <= now {
                    self.is_up = !self.is_up;
                    let stays = random.wait(if self.is_up { *up } else { *down });
                    // a mean of zero must not keep us here
                    self.changes_at += stays.max(Span::from_us(1));
                }
                self.is_up
            }
            Outage::Scheduled(times) => {
                while times.get(self.past).is_some_and(|(_, until)| *until <= now) {
                    self.past += 1;
                }
                times.get(self.past).is_none_or(|(from, _)| now < *from)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_kept() {
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        let rule = Outage::Scheduled(vec![(at(10), at(20)), (at(30), at(40))]);
        let mut random = Random::new(0, 0);
        let mut outages = Outages::new(&rule, &mut random);
        let up: Vec<bool> = [0, 9, 10, 19, 20, 29, 30, 40, 99]
            .map(|ms| outages.is_up(at(ms), &mut random))
            .to_vec();
        assert_eq!(up, [true, true, false, false, true, true, false, true, true]);
    }

    #[test]
    fn chance_takes_its_share() {
        let rule = Outage::Random { up: Span::from_secs(3), down: Span::from_secs(1) };
        let mut random = Random::new(0, 0);
        let mut outages = Outages::new(&rule, &mut random);
        let up = (0..400_000)
            .filter(|n| outages.is_up(Instant::ZERO + Span::from_ms(100 * n), &mut random))
            .count();
        assert!((294_000..306_000).contains(&up), "{up}");
    }
}
