//! Whether what a parent says of its children agrees with what they say of themselves.

use std::collections::BTreeSet;

use super::{Calendar, Flags, Interior, Node};
use crate::tree::check::Wrong;

impl Interior {
    /// What does not agree, of these children.
    pub(in crate::tree) fn check(
        &self,
        nodes: &[Node],
        children: &[u32],
        is_done: bool,
    ) -> Vec<String> {
        let mut wrong = Wrong::default();
        let of = |number: &u32| &nodes[*number as usize].share;
        let awake: Vec<u32> =
            children.iter().copied().filter(|n| of(n).flags.has(Flags::ACTIVE)).collect();
        let alone = self.alone();
        let count = if alone.is_some() { 1 } else { self.count as usize };
        wrong.unless(count == awake.len(), || format!("{count} awake, and that are {awake:?}"));
        wrong.unless(alone.is_none_or(|alone| awake == [alone]), || {
            format!("{alone:?} is not alone: {awake:?}")
        });
        let weight: u64 = awake.iter().map(|n| of(n).weight).sum();
        let counted = self.active_weight.wrapping_sub(self.gone_weight);
        wrong.unless(counted == weight, || format!("weight {counted} of {weight}"));
        let noted_in = |c: &Calendar| c.all(nodes).into_iter().map(|n| (n, c.is_closing)).collect();
        let noted: Vec<(u32, bool)> =
            self.kinds.iter().flat_map(|c| -> Vec<_> { noted_in(c) }).collect();
        let places: BTreeSet<u32> = noted.iter().map(|(number, _)| *number).collect();
        wrong.unless(places.len() == noted.len(), || "somebody is noted twice".to_owned());
        for number in children {
            let flags = of(number).flags;
            let is_noted = places.contains(number);
            let is_another = flags.has(Flags::PARKED);
            wrong.unless(is_another || is_noted == flags.has(Flags::LISTED), || {
                format!("{number} is noted: {is_noted}, and does not know")
            });
            let needs = flags.has(Flags::ACTIVE) && alone != Some(*number);
            wrong.unless(!needs || is_noted, || format!("{number} is awake and noted nowhere"));
        }
        let is_closed = !is_done || noted.iter().all(|(_, is_closing)| !is_closing);
        wrong.unless(is_closed, || "somebody is noted where it was before an edit".to_owned());
        let strangers = places.iter().filter(|n| is_done && !children.contains(n)).count();
        wrong.unless(strangers == 0, || format!("{strangers} are noted that are no children"));
        if let Some(owed) = self.owed.as_deref() {
            // while an edit is under way some do not know yet that siblings have clocks
            let is_other = |n: &&u32| {
                let flags = of(n).flags;
                !flags.has(Flags::OWED) && (is_done || flags.has(Flags::CLOCKS))
            };
            let others = awake.iter().filter(is_other).count();
            wrong.unless(owed.others() as usize == others, || {
                format!("{others} have no guarantee, {} are counted", owed.others())
            });
            let waiting: Vec<u32> = owed.noted().collect();
            let is_once = waiting.iter().collect::<BTreeSet<_>>().len() == waiting.len();
            wrong.unless(is_once || !is_done, || format!("clocks noted twice: {waiting:?}"));
            for number in children {
                let flags = of(number).flags;
                let is_noted = waiting.contains(number);
                let needs = flags.has_all(Flags::ACTIVE | Flags::OWED);
                wrong.unless(!needs || is_noted, || format!("{number} waits for no clock"));
                let is_known = is_noted == flags.has(Flags::LISTED_OWED);
                wrong.unless(is_known || flags.has(Flags::PARKED), || {
                    format!("{number} has its clock noted: {is_noted}, and does not know")
                });
            }
        }
        wrong.0
    }
}
