//! The rates, ceilings and weights of a class, and those of the leaves it makes.

use weir_units::{ByWay, Rate};

use super::{Above, Build};
use crate::amount::Amount;
use crate::class::{Class, Weight};
use crate::each::{Each, Unknown};
use crate::plan::{EachPlan, NodeKind, Shares, Target};
use crate::problem::At;

impl Build<'_> {
    /// The rates a class says, parts resolved.
    pub(super) fn said_rates(&mut self, class: &Class, above: &Above) -> ByWay<Option<Rate>> {
        self.part_of_nothing("\"rate\"", class.rate, above);
        class.rate.zip(above.rate).map(|(said, above)| match (said?.value, above) {
            (Amount::Rate(rate), _) => Some(rate),
            (part @ Amount::Part(_), above) => Some(part.of(above?)),
        })
    }

    /// Says that `said` is a part of a rate that nobody wrote. A rate that was written and could
    /// not be read, or is itself such a part, has been said.
    fn part_of_nothing(&mut self, what: &str, said: ByWay<Option<At<Amount>>>, above: &Above) {
        let parts = said.zip(above.rate.zip(above.says_rate));
        for (direction, (said, (rate, written))) in parts.named() {
            if let (Some(At { value: Amount::Part(_), place }), None, false) = (said, rate, written)
            {
                let parent = &self.plan.nodes[above.id as usize].path;
                let what = format!(
                    "{what} is a percentage of the rate of \"{parent}\", which has no rate for \
                     \"{direction}\""
                );
                let help = format!("add rate = ... to \"{parent}\", or write a rate here");
                self.problems.error(*place, what, help);
                return;
            }
        }
    }

    /// Says that a ceiling lets nothing pass.
    fn nothing(&mut self, what: &str, said: ByWay<Option<At<Amount>>>, above: ByWay<Rate>) {
        for (direction, (said, above)) in said.zip(above).named() {
            if let Some(At { value, place }) = said
                && value.of(*above) == Rate::ZERO
                && *above > Rate::ZERO
            {
                let what = match value {
                    Amount::Part(_) => {
                        format!("{what} {value} of {above} {direction} is less than 1 bit/s")
                    }
                    Amount::Rate(_) => format!("{what} is zero: no frame could ever leave"),
                };
                let help = "use \"police\" to refuse traffic, or raise the ceiling";
                self.problems.error(*place, what, help);
                return;
            }
        }
    }

    /// What a class may have at most.
    pub(super) fn ceilings(&mut self, class: &Class, above: &Above) -> ByWay<Rate> {
        let mut higher: Vec<(At<Rate>, String)> = Vec::new();
        for (direction, (said, above_ceil)) in class.ceil.zip(above.ceil).named() {
            if let Some(At { value: Amount::Rate(said), place }) = said
                && said > above_ceil
            {
                let above = format!("{above_ceil} {direction}");
                match higher.last_mut() {
                    // one value for both directions is one mistake
                    Some((first, ways)) if first.place == *place => {
                        *ways += &format!(" and {above}");
                    }
                    _ => higher.push((At { value: *said, place: *place }, above)),
                }
            }
        }
        for (At { value: said, place }, ways) in higher {
            let parent = &self.plan.nodes[above.id as usize].path;
            let what = format!(
                "\"ceil\" {said} of \"{}\" is above the {ways} of \"{parent}\"",
                class.path
            );
            self.problems.warning(place, what, "it never gets more than its parent");
        }
        self.nothing(&format!("\"ceil\" of \"{}\"", class.path), class.ceil, above.ceil);
        class
            .ceil
            .zip(above.ceil)
            .map(|(said, above)| said.map_or(above, |s| s.value.of(above)).min(above))
    }

    /// Makes a class one that makes leaves.
    pub(super) fn each(&mut self, class: &Class, each: &Each, above: &Above) -> Target {
        let others = self.spare(&format!("{}/(others)", class.path), above, class.place);
        self.part_of_nothing("\"rate\" in \"each\"", each.rate, above);
        let name = format!("\"ceil\" in \"each\" of \"{}\"", class.path);
        self.nothing(&name, each.ceil, above.ceil);
        let ceil = each
            .ceil
            .zip(above.ceil)
            .map(|(said, above)| said.map_or(above, |s| s.value.of(above)).min(above));
        let rate = each.rate.zip(above.rate).map(|(said, above)| {
            said.map_or(Rate::ZERO, |s| s.value.of(above.unwrap_or_default()))
        });
        // that all leaves together are promised more than there is, is normal: few are there
        for (direction, (rate, (ceil, whole))) in rate.zip(ceil.zip(above.rate)).named() {
            let what = format!("each leaf of \"{}\" is guaranteed {rate} {direction}", class.path);
            if rate > ceil {
                let what = format!("{what} but has a ceiling of {ceil}");
                self.problems.error(each.place, what, "raise the ceil or lower the rate");
                break;
            }
            if let Some(whole) = whole.filter(|whole| rate > whole) {
                let what = format!("{what}, and the class {whole}");
                self.problems.error(each.place, what, "lower it, or raise the rate of the class");
                break;
            }
        }
        let shares =
            rate.zip(ceil).map(|(rate, ceil)| Shares { rate, ceil, weight: 1, burst: None });
        let (by, count, age) = (each.by, each.count, each.age);
        let known = (each.unknown == Unknown::Ask).then(|| each.known.clone());
        self.plan.nodes[above.id as usize].kind =
            NodeKind::Each(Box::new(EachPlan { by, count, age, shares, known, others }));
        Target::Each(above.id)
    }

    /// A weight that is a bare number cannot be compared with a rate in bits per second.
    pub(super) fn check_weights(&mut self, siblings: &[usize]) {
        let classes = || siblings.iter().map(|&at| &self.policy.classes[at]);
        let by_rate = classes().find(|c| match c.weight {
            None => c.rate.down.is_some() || c.rate.up.is_some(),
            Some(weight) => matches!(weight.value, Weight::Rate(_)),
        });
        let Some(by_rate) = by_rate else { return };
        for class in classes() {
            if let Some(At { value: Weight::Parts(parts), place }) = class.weight {
                let what = format!(
                    "\"weight\" {parts} of \"{}\" is a number, but the weight of its sibling \
                     \"{}\" is a rate",
                    class.path, by_rate.path
                );
                let help = "use numbers for all siblings, or write the weight as a rate: weight = \
                     \"2mbit\"";
                self.problems.warning(place, what, help);
            }
        }
    }
}
