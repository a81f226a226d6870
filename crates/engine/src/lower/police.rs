//! From the words about policing and marking to what condition is told. Leaves with the same words
//! share one treatment, and a treatment keeps its place from policy to policy.

use std::collections::BTreeMap;

use weir_condition::meter::{Colour, Terms};
use weir_condition::police::{Action, Police, Spec, Treatment};
use weir_policy::{self as policy, LeafWords, Mark};
use weir_units::{Bytes, Rate, Span};

use super::{Own, Table};

/// Treatments that are kept for leaves that may come back; then the list starts anew.
const KEPT: usize = 1_024;
/// What may come at once, unless the policy says otherwise: what the rate brings in this time, so
/// that a TCP with a usual round trip is not held below its rate, and four full frames at least.
const BURST: Span = Span::from_ms(100);
const BURST_LEAST: Bytes = Bytes::new(4 * 1_518);

/// What condition is told; `told` is what it has been told so far.
pub(super) fn spec(table: &Table<'_>, told: &Spec) -> Spec {
    let kept = if told.treatments.len() > KEPT { &[][..] } else { &told.treatments };
    let mut spec = Spec { treatments: kept.to_vec(), leaves: BTreeMap::new() };
    let mut known: BTreeMap<u32, Option<u32>> = BTreeMap::new();
    for row in table.rows.iter().filter(|row| !matches!(row.own, Own::None)) {
        let list = &mut spec.treatments;
        let place = known.entry(row.node.words).or_insert_with(|| place(list, row.words));
        let Some(place) = *place else { continue };
        // whoever finds no leaf of its own is no better off for it
        let others = match row.own {
            Own::Made { others, .. } => Some(others),
            Own::None | Own::Itself => None,
        };
        spec.leaves.extend(row.leaves().chain(others).map(|leaf| (leaf, place)));
    }
    if spec.leaves.is_empty() { Spec::default() } else { spec }
}

/// The place of what these words mean; `None`: nothing is done.
fn place(list: &mut Vec<Treatment>, words: &LeafWords) -> Option<u32> {
    let dscp = words.dscp.and_then(|mark| match mark {
        Mark::Keep => None,
        Mark::Set(dscp) => Some(dscp),
    });
    let treatment = match (words.police, dscp) {
        (Some(police), dscp) => Treatment::Police(policed(police, dscp)),
        (None, Some(dscp)) => Treatment::Mark(dscp),
        (None, None) => return None,
    };
    let at = list.iter().position(|t| *t == treatment).unwrap_or_else(|| {
        list.push(treatment);
        list.len() - 1
    });
    u32::try_from(at).ok()
}

/// `dscp` is what the class writes on its frames.
fn policed(said: policy::Police, dscp: Option<u8>) -> Police {
    let burst = burst(said.burst, said.rate);
    let terms = match (said.peak, said.peak_burst) {
        (Some(peak), excess) => Terms::two_rates(said.rate, burst, peak, self::burst(excess, peak)),
        (None, Some(excess)) => Terms::single_rate(said.rate, burst, excess),
        (None, None) => Terms::single_rate(said.rate, burst, Bytes::ZERO),
    };
    let between =
        said.excess.map_or(Action::Drop, |dscp| Action::Forward(Colour::Yellow, Some(dscp)));
    let has_second = said.peak.is_some() || said.peak_burst.is_some();
    // without a second bound all that is not within the rate is between
    let above = if has_second { Action::Drop } else { between };
    let fates = match said.colours {
        Some([green, yellow, red]) => [
            Action::Forward(Colour::Green, Some(green)),
            Action::Forward(Colour::Yellow, Some(yellow)),
            Action::Forward(Colour::Red, Some(red)),
        ],
        None => [Action::Forward(Colour::Green, dscp), between, above],
    };
    Police { terms, fates, aware: said.aware }
}

fn burst(said: Option<Bytes>, rate: Rate) -> Bytes {
    said.unwrap_or_else(|| rate.bytes_in(BURST).max(BURST_LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Planner;
    use weir_policy::{Source, read};

    #[test]
    fn up_to_1_024_treatments_are_kept_for_leaves_that_may_come_back() {
        let text = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"1gbit\"\n\
                    [class.\"/a\"]\nmatch = \"tcp\"\npolice = { rate = \"10mbit\" }\n";
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).unwrap();
        let plan = &reading.plans[0];
        let layout = Planner::new().prepare(plan).unwrap().layout();
        let known = |count: u32| {
            let burst = Bytes::new(10_000);
            let old = |n: u32| {
                let rate = Rate::from_bps(u64::from(n) * 1_000);
                let terms = Terms::single_rate(rate, burst, Bytes::ZERO);
                let fates = [Action::Drop; 3];
                Treatment::Police(Police { terms, fates, aware: false })
            };
            let told = Spec { treatments: (1..=count).map(old).collect(), ..Spec::default() };
            spec(&Table::of(plan, &layout), &told).treatments.len()
        };
        assert_eq!([known(0), known(1_023), known(1_024), known(1_025)], [1, 1_024, 1_025, 1]);
    }
}
