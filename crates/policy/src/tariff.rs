//! `[plan.NAME]`: what subscribers have who are on one plan. A row of the table names its plan, and
//! what the row says itself goes before it.

use weir_units::{ByWay, Priority};

use crate::amount::{Amount, Burst, both};
use crate::class::{BURST, PRIORITY, RATE, Weight, weight};
use crate::leaf::{self, LeafWords};
use crate::problem::{At, Position, Problems};
use crate::reader::Entry;

/// A plan that an operator sells.
#[derive(Clone, Debug)]
pub struct Tariff {
    /// Its name, which rows of the table refer to.
    pub name: String,
    /// Where its table starts.
    pub place: Position,
    /// The guaranteed rate.
    pub rate: ByWay<Option<At<Amount>>>,
    /// What a subscriber may borrow up to.
    pub ceil: ByWay<Option<At<Amount>>>,
    /// A subscriber's part among its siblings.
    pub weight: Option<At<Weight>>,
    /// How much may leave at once.
    pub burst: ByWay<Option<At<Burst>>>,
    /// Who goes first within what each may have.
    pub priority: Option<Priority>,
    /// Queue, AQM, sessions, TCP, marks.
    pub leaf: LeafWords,
}

const WORDS: [&str; 5] = ["rate", "ceil", "weight", "priority", "burst"];

/// All words of a plan, in the order `weir fmt` gives them.
pub(crate) fn words() -> Vec<&'static str> {
    WORDS.into_iter().chain(leaf::WORDS).collect()
}

pub(crate) fn read(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Option<Tariff> {
    let mut table = entry.table(&format!("plan \"{name}\""), problems)?;
    let tariff = Tariff {
        name: name.to_owned(),
        place: entry.key,
        rate: both(table.take("rate"), "rate", RATE, problems),
        ceil: both(table.take("ceil"), "ceil", RATE, problems),
        weight: table.take("weight").and_then(|e| weight(e, problems)),
        burst: both(table.take("burst"), "burst", BURST, problems),
        priority: table.take("priority").and_then(|e| e.word("priority", &PRIORITY, problems)),
        leaf: leaf::read(&mut table, problems),
    };
    table.finish(&words(), problems);
    for (direction, (rate, ceil)) in tariff.rate.zip(tariff.ceil).named() {
        if let (Some(At { value: Amount::Rate(rate), .. }), Some(At { value, place })) =
            (rate, ceil)
            && let Amount::Rate(ceil) = value
            && rate > ceil
        {
            let what = format!(
                "plan \"{name}\" guarantees {rate} {direction} but has a ceiling of {ceil}"
            );
            problems.error(*place, what, "raise the ceil or lower the rate");
            break;
        }
    }
    Some(tariff)
}

/// A weight that is a number cannot be compared with the rates of plans that say none.
pub(crate) fn check_weights(tariffs: &[Tariff], problems: &mut Problems) {
    let by_rate = tariffs.iter().find(|tariff| match tariff.weight {
        None => tariff.rate.down.is_some() || tariff.rate.up.is_some(),
        Some(weight) => matches!(weight.value, Weight::Rate(_)),
    });
    let Some(by_rate) = by_rate else { return };
    for tariff in tariffs {
        if let Some(At { value: Weight::Parts(parts), place }) = tariff.weight {
            let what = format!(
                "\"weight\" {parts} of plan \"{}\" is a number, but the weight of plan \"{}\" is a \
                 rate",
                tariff.name, by_rate.name
            );
            let help = "use numbers for all plans, or write the weight as a rate: weight = \
                 \"2mbit\"";
            problems.warning(place, what, help);
        }
    }
}
