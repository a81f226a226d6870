//! The leaves of subscribers.

use weir_units::{ByWay, Prefix};

use super::sums::{self, Promise};
use super::{Above, Build};
use crate::amount::Amount;
use crate::class::Weight;
use crate::held;
use crate::leaf::LeafWords;
use crate::plan::{Asked, NodeKind, Rule, Shares, Target};
use crate::policy::Policy;
use crate::problem::At;
use crate::say::pair;
use crate::subscribers::Subscriber;
use crate::tariff::Tariff;

/// The rows of each class, by the class's path; sorted so that look-ups are quick.
pub(super) fn below(policy: &Policy) -> Vec<(&str, &Subscriber)> {
    let rows = policy.subscribers.iter().flat_map(|s| &s.rows);
    let mut rows: Vec<(&str, &Subscriber)> = rows.map(|r| (&*r.parent, r)).collect();
    rows.sort_by_key(|(parent, row)| (*parent, row.place));
    rows
}

/// What a subscriber gets.
struct Given<'p> {
    tariff: Option<&'p Tariff>,
    shares: ByWay<Shares>,
    says_weight: bool,
    /// Whether its ceiling is above that of its class.
    asks_more: bool,
}

impl<'a> Build<'a> {
    /// Adds the leaves of the subscribers of a class; returns what they are promised.
    pub(super) fn rows(&mut self, path: &str, above: &Above) -> Promise {
        let start = self.below.partition_point(|(p, _)| *p < path);
        let end = self.below.partition_point(|(p, _)| *p <= path);
        let mut promised = Promise::default();
        let mut more = (0, None);
        for at in start..end {
            let row = self.below[at].1;
            let Some(given) = self.given(row, path, above) else { continue };
            if given.asks_more {
                more.0 += 1;
                more.1.get_or_insert(row.place);
            }
            promised = sums::add(promised, sums::of_row(given.shares.map(|shares| shares.rate)));
            self.leaf_of(row, &given, path, above);
        }
        if let (count, Some(place)) = more {
            let (above, way) = (pair(&above.ceil), if path.is_empty() { "the link" } else { path });
            let what = format!(
                "{count} subscribers, of which this is the first, have a higher ceiling than \
                 {way}, which has {above}"
            );
            self.problems.warning(place, what, "they get at most that");
        }
        promised
    }

    /// What a row and its plan give; the row is named and skipped if that does not fit, so that one
    /// row does not cost the class.
    fn given(&mut self, row: &Subscriber, path: &str, above: &Above) -> Option<Given<'a>> {
        let policy = self.policy;
        let tariff = row.plan().and_then(|name| policy.tariff(name));
        let of_plan = |of: fn(&Tariff) -> ByWay<Option<At<Amount>>>| {
            tariff.map_or(ByWay::same(None), |tariff| of(tariff).map(|at| at.map(|at| at.value)))
        };
        let whole = above.rate.zip(above.ceil).map(|(rate, ceil)| rate.unwrap_or(ceil).min(ceil));
        let rate = row.rate.zip(of_plan(|t| t.rate).zip(whole));
        let rate = rate.map(|(said, (plan, whole))| {
            said.or(plan.map(|plan| plan.of(whole))).unwrap_or_default()
        });
        let said = row.ceil.zip(of_plan(|t| t.ceil).zip(above.ceil));
        let said = said.map(|(said, (plan, above))| said.or(plan.map(|plan| plan.of(above))));
        let ceil = said.zip(above.ceil).map(|(said, above)| said.unwrap_or(above).min(above));
        for (direction, (rate, (said, whole))) in rate.zip(said.zip(whole)).named() {
            let way = if path.is_empty() { "the link" } else { path };
            let (what, help) = if rate > whole {
                let what = format!("it is guaranteed {rate} {direction}, and {way} has {whole}");
                (what, "lower the guarantee, or raise what the class has")
            } else if let Some(ceil) = said.filter(|ceil| rate > ceil) {
                let what =
                    format!("it is guaranteed {rate} {direction} but has a ceiling of {ceil}");
                (what, "raise the ceil or lower the rate, in the row or in its plan")
            } else {
                continue;
            };
            self.skip(row, what, help);
            return None;
        }
        let burst = tariff.map_or(ByWay::same(None), |tariff| tariff.burst);
        let burst = burst.map(|burst| row.burst().or(burst.map(|at| at.value)));
        let weight = tariff.and_then(|tariff| tariff.weight).map(|weight| match weight.value {
            Weight::Parts(parts) => parts,
            Weight::Rate(rate) => rate.bps(),
        });
        let shares = rate.zip(ceil.zip(burst)).map(|(rate, (ceil, burst))| Shares {
            rate,
            ceil,
            weight: weight.unwrap_or(0),
            burst: burst.map(|burst| burst.at(ceil)),
        });
        let asks_more = said
            .zip(above.ceil)
            .named()
            .iter()
            .any(|(_, (said, above))| said.is_some_and(|said| said > *above));
        Some(Given { tariff, shares, says_weight: weight.is_some(), asks_more })
    }

    /// Names a row that does not fit.
    fn skip(&mut self, row: &Subscriber, what: String, help: &str) {
        // each link asks again; of a held row the skipped one has been named
        if self.problems.unfit.insert(row.place) && row.place.file != held::FILE {
            self.problems.skipped.add(row.place, row.line, what, help.to_owned());
        }
    }

    /// Adds the leaf of a row.
    fn leaf_of(&mut self, row: &Subscriber, given: &Given<'_>, path: &str, above: &Above) {
        let own = given.tariff.map_or_else(LeafWords::default, |tariff| tariff.leaf.clone());
        let words = own.or(&above.words);
        let path = format!("{path}/{}", row.id);
        let (depth, shares) = (above.depth + 1, given.shares);
        let id = self.node(&path, above.id, depth, NodeKind::Leaf, shares, &words, row.place);
        let node = &mut self.plan.nodes[id as usize];
        node.name = (!row.name.is_empty()).then(|| row.name.clone());
        node.priority = given.tariff.and_then(|t| t.priority).unwrap_or(above.priority);
        node.enforce = above.enforce;
        node.says_weight = given.says_weight;
        let leaves = row.blocks.iter().map(|&block: &Prefix| (block, id));
        self.plan.subscribers.extend(leaves);
        self.plan.subscriber_macs.extend(row.macs().iter().map(|&mac| (mac, id)));
    }

    /// The table is asked where the class is that it hangs under.
    pub(super) fn ask_subscribers(&mut self, path: &str, above: &Above) {
        let Some(table) = &self.policy.subscribers else { return };
        if table.under() != path || !self.plan.has_subscribers() {
            return;
        }
        let rule = Rule {
            when: crate::matching::When::default(),
            text: format!("lan address in {}", table.file.value).into(),
            place: table.file.place,
        };
        let (node, within) = (above.id, above.within);
        self.plan.asked.push(Asked { node, within, target: Target::Subscriber, rules: vec![rule] });
    }
}
