//! One limit over several members: the cores of a box, the links of a bond, the boxes of a cluster.
//! Each reports what it was offered; a plan gives each its part. `Pba` is proportional to what came
//! (the cluster paper's rule); `MaxMin` fills by what each really wants, since who has a queue
//! wants all it can get, however little it was offered.
//!
//! Limits in force never add up to more than the whole: a decrease is sent at once, an increase
//! only from what others have confirmed to have given up.

use weir_units::{Instant, Rate, Span};

use crate::level::{self, Kid, Level};
use crate::scale::{narrow, rate, units};

/// How the limit is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Everyone the same.
    Equal,
    /// In proportion to what came before limiting.
    Pba,
    /// Water-filling, with weights.
    MaxMin,
}

/// What a member says of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// What came, before limiting.
    pub rate: Rate,
    /// Whether some of it waits or was dropped.
    pub is_backlogged: bool,
    /// Its part beside the others: 1, its hosts, or its active flows; 0 counts as 1.
    pub weight: u32,
}

/// Periods for which the last report of a member holds.
const HOLDS: u64 = 3;

/// A member's part of the limit.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    offered: Offered,
    at: Option<u64>,
    /// What it may use, as far as it has been told.
    told: u64,
    /// What it may still be using, since it has not confirmed to have less.
    held: u64,
}

/// One limit over several members.
#[derive(Clone, Debug)]
pub struct Members {
    rule: Rule,
    total: u64,
    period: u64,
    members: Vec<Member>,
    wanted: Vec<u64>,
}

impl Members {
    /// A limit of `total` over `count` members that report every `period`. All begin with the
    /// same part, as somebody does who hears nobody.
    #[must_use]
    pub fn new(rule: Rule, total: Rate, period: Span, count: usize) -> Members {
        let total = units(total);
        let part = total / (count as u64).max(1);
        let member = Member { told: part, held: part, ..Member::default() };
        let (members, wanted) = (vec![member; count], vec![0; count]);
        Members { rule, total, period: period.ns(), members, wanted }
    }

    /// What a member says of the last period.
    pub fn report(&mut self, now: Instant, member: usize, offered: Offered) {
        if let Some(member) = self.members.get_mut(member) {
            (member.offered, member.at) = (offered, Some(now.ns()));
        }
    }

    /// A member says that it uses its limit as told, and no more.
    pub fn confirm(&mut self, member: usize) {
        if let Some(member) = self.members.get_mut(member) {
            member.held = member.told;
        }
    }

    /// Computes all limits: once a period, after the reports.
    pub fn plan(&mut self, now: Instant) {
        self.want(now.ns());
        // decreases first: they hold at once
        for (member, &wanted) in self.members.iter_mut().zip(&self.wanted) {
            member.told = member.told.min(wanted);
        }
        let used = self.members.iter().map(|m| m.held.max(m.told)).fold(0, u64::saturating_add);
        let mut free = self.total.saturating_sub(used);
        for (member, &wanted) in self.members.iter_mut().zip(&self.wanted) {
            // what it holds unconfirmed it may have back at once
            let own = member.held.max(member.told).min(wanted);
            let more = (wanted - own).min(free);
            free -= more;
            member.told = own + more;
            member.held = member.held.max(member.told);
        }
    }

    /// The limit of a member.
    #[must_use]
    pub fn limit(&self, member: usize) -> Rate {
        self.members.get(member).map_or(Rate::ZERO, |member| rate(member.told))
    }

    /// What all may use together at most, by what was told and confirmed.
    #[cfg(test)]
    fn in_force(&self) -> Rate {
        let sum = self.members.iter().map(|m| m.held.max(m.told)).fold(0, u64::saturating_add);
        rate(sum)
    }

    /// What each should have.
    fn want(&mut self, now: u64) {
        let count = self.members.len() as u64;
        let total = self.total;
        // half a per cent for everyone, ten in all at most: the first packets pass at once
        let floor = (total / 200).min(total / 10 / count.max(1));
        let rest = total - floor * count;
        let late = HOLDS.saturating_mul(self.period);
        let heard = |member: &Member| {
            let is_heard = member.at.is_some_and(|at| now.saturating_sub(at) <= late);
            if is_heard { member.offered } else { Offered::default() }
        };
        let sum = self.members.iter().map(|m| u128::from(units(heard(m).rate))).sum::<u128>();
        let is_equal = self.rule == Rule::Equal || self.rule == Rule::Pba && sum == 0;
        let kid = |at: usize| {
            let offered = heard(&self.members[at]);
            let most = if offered.is_backlogged { total } else { units(offered.rate) };
            let most = most.saturating_sub(floor);
            Kid { floor: 0, least: 0, most, weight: offered.weight.max(1) }
        };
        let level = match self.rule {
            Rule::MaxMin => level::find(rest, &(0..self.members.len()).map(kid)),
            Rule::Equal | Rule::Pba => Level::Open,
        };
        let kids = (0..self.members.len()).map(kid);
        let wants: u64 = kids.clone().map(|kid| kid.most).fold(0, u64::saturating_add);
        let weights: u64 = kids.clone().map(|kid| u64::from(kid.weight)).sum();
        for (at, kid) in kids.enumerate() {
            self.wanted[at] = if is_equal {
                total / count.max(1)
            } else if self.rule == Rule::Pba {
                let own = u128::from(units(heard(&self.members[at]).rate));
                floor + narrow(u128::from(rest) * own / sum)
            } else {
                // what nobody wants is spread by weight
                let spare = u128::from(rest.saturating_sub(wants));
                let spare = spare * u128::from(kid.weight) / u128::from(weights.max(1));
                floor + level.entitle(rest, kid, 0, u64::MAX).min(kid.most) + narrow(spare)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(rate: u64) -> Rate {
        Rate::from_bps(rate * 1_000_000)
    }

    /// Plans twice, with all confirmed between: decreases, then increases.
    fn settled(rule: Rule, offered: &[(u64, bool)]) -> Vec<u64> {
        let mut members = Members::new(rule, mbit(100), Span::from_ms(200), offered.len());
        for turn in 0..3 {
            for (at, &(rate, is_backlogged)) in offered.iter().enumerate() {
                let offered = Offered { rate: mbit(rate), is_backlogged, weight: 1 };
                members.report(Instant::from_ns(turn), at, offered);
            }
            members.plan(Instant::from_ns(turn));
            (0..offered.len()).for_each(|at| members.confirm(at));
        }
        (0..offered.len()).map(|at| (members.limit(at).bps() + 500_000) / 1_000_000).collect()
    }

    #[test]
    fn overload_by_three_rules() {
        let offered = [(20, false), (60, true), (120, true), (40, true)];
        assert_eq!(settled(Rule::Equal, &offered), [25, 25, 25, 25]);
        // proportional: 8, 25, 50, 17, less the half per cent that everyone has
        assert_eq!(settled(Rule::Pba, &offered), [9, 25, 50, 17]);
        assert_eq!(settled(Rule::MaxMin, &offered), [20, 27, 27, 27]);
    }

    #[test]
    fn who_has_a_queue_is_not_judged_by_how_little_came() {
        let flood = [(5, true), (400, true)];
        assert_eq!(settled(Rule::Pba, &flood), [2, 98]);
        assert_eq!(settled(Rule::MaxMin, &flood), [50, 50]);
    }

    #[test]
    fn limits_in_force_are_never_above_the_whole() {
        let total = mbit(1_000);
        for rule in [Rule::Equal, Rule::Pba, Rule::MaxMin] {
            let mut members = Members::new(rule, total, Span::from_ms(200), 7);
            let mut dice = 1_u64;
            let mut roll = |most: u64| {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (dice >> 33) % most
            };
            for turn in 0..2_000 {
                let now = Instant::from_ns(turn * 200_000_000);
                for at in 0..7 {
                    if roll(4) > 0 {
                        let is_backlogged = roll(2) == 0;
                        let rate = mbit(roll(2_000));
                        let weight = u32::try_from(roll(9)).unwrap();
                        members.report(now, at, Offered { rate, is_backlogged, weight });
                    }
                    if roll(3) > 0 {
                        members.confirm(at);
                    }
                }
                members.plan(now);
                assert!(members.in_force().bps() <= total.bps() + 7, "{rule:?} {turn}");
            }
        }
    }

    #[test]
    fn who_is_not_heard_counts_as_idle() {
        let mut members = Members::new(Rule::MaxMin, mbit(100), Span::from_ms(200), 2);
        let all = Offered { rate: mbit(90), is_backlogged: true, weight: 1 };
        members.report(Instant::ZERO, 0, all);
        for turn in 0..10 {
            let now = Instant::from_ns(turn * 200_000_000);
            members.report(now, 1, all);
            members.plan(now);
            (0..2).for_each(|at| members.confirm(at));
        }
        assert!(members.limit(0) <= mbit(1) && members.limit(1) >= mbit(99));
    }

    #[test]
    fn a_report_holds_for_three_periods() {
        let period = Span::from_ms(200);
        let has_at = |ns: u64| {
            let mut members = Members::new(Rule::MaxMin, mbit(100), period, 2);
            let all = Offered { rate: mbit(90), is_backlogged: true, weight: 1 };
            members.report(Instant::ZERO, 0, all);
            for _ in 0..2 {
                members.report(Instant::from_ns(ns), 1, all);
                members.plan(Instant::from_ns(ns));
                (0..2).for_each(|at| members.confirm(at));
            }
            (members.limit(0).bps() + 5_000) / 10_000
        };
        // then it counts as idle, and has the half per cent that everyone has
        assert_eq!([200, 599, 600].map(|ms| has_at(ms * 1_000_000)), [5_000; 3]);
        assert_eq!(has_at(600_000_001), 50);
    }
}
