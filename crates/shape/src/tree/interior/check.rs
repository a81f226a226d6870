//! Whether what a parent says of its children agrees with what they say of themselves.

use std::collections::BTreeSet;

use super::{Calendar, Due, Flags, Interior, Node};
use crate::tree::check::Wrong;

impl Interior {
    /// What does not agree, of these children.
    pub(in crate::tree) fn check(
        &self,
        (nodes, dues): (&[Node], &[Due]),
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
        wrong.unless(!is_done || self.all_are_among_their_kind(nodes), || {
            "somebody is noted among those of another kind".to_owned()
        });
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
                wrong.unless(!is_done || !needs || !owed.misses(*number, dues), || {
                    format!("{number} is noted later than its clock is due")
                });
                wrong.unless(!needs || is_noted, || format!("{number} waits for no clock"));
                let is_known = is_noted == flags.has(Flags::LISTED_OWED);
                wrong.unless(is_known || flags.has(Flags::PARKED), || {
                    format!("{number} has its clock noted: {is_noted}, and does not know")
                });
            }
        }
        wrong.0
    }

    fn all_are_among_their_kind(&self, nodes: &[Node]) -> bool {
        let is_of =
            |kind: u16, all: &[u32]| all.iter().all(|n| nodes[*n as usize].share.group == kind);
        self.kinds.iter().all(|calendar| is_of(calendar.kind, &calendar.all(nodes)))
    }
}

#[cfg(test)]
mod tests {
    use weir_packet::{Headers, Label, Pool, Side};
    use weir_units::{Instant, Rate};

    use super::*;
    use crate::FrameCost;
    use crate::tree::owed::Owed;
    use crate::tree::{Edit, LINK, NodeSpec, Spec, Tree};

    /// Leaves 1 to 3 have frames, the first and the second a guarantee; 4 is a class without any.
    fn tree() -> Tree {
        let node = |number| NodeSpec::new(number, LINK, number < 4);
        let mut nodes: Vec<NodeSpec> = (1..=4).map(node).collect();
        nodes[..2].iter_mut().for_each(|node| node.rate = Rate::from_bps(3_000_000));
        let (rate, link) = (Rate::from_bps(10_000_000), FrameCost::default());
        let spec = Spec { rate, link, nodes, cares: vec![], ..Spec::default() };
        let mut tree = Tree::new(10, 10, 0, Instant::ZERO);
        let mut edit = Edit::between(&Spec::default(), &spec);
        tree.apply(Instant::ZERO, &mut edit, |leaf| leaf, |_, _, _| {});
        let mut pool = Pool::new(10, 100);
        for leaf in [1, 2, 3] {
            let frame = pool.fill(&[0; 100]).expect("a buffer");
            let label = Label { leaf, ..Label::new(Side::Lan, &Headers::EMPTY) };
            assert!(tree.push(Instant::ZERO, frame, label).is_ok());
        }
        tree
    }

    /// What the check says of a tree that was changed so.
    fn told(change: impl FnOnce(&mut Interior, &mut [Node])) -> String {
        let mut tree = tree();
        assert_eq!(tree.check(true), Ok(()));
        change(&mut tree.interiors[LINK as usize], &mut tree.nodes);
        tree.check(true).expect_err("it does not agree with itself")
    }

    #[test]
    fn whatever_does_not_agree_is_told() {
        let is_told = |words: &str, told: String| assert!(told.contains(words), "{told}");
        is_told("4 awake, and that are [1, 2, 3]", told(|link, _| link.count += 1));
        is_told("weight 4 of 3", told(|link, _| link.active_weight += 1));
        is_told("weight 2 of 3", told(|link, _| link.gone_weight += 1));
        let first = |link: &mut Interior| link.kinds[0].first().expect("all are noted");
        is_told(
            "somebody is noted twice",
            told(|link, nodes| {
                let number = first(link);
                link.kinds[0].note(number, &mut nodes[number as usize]);
            }),
        );
        is_told(
            "is awake and noted nowhere",
            told(|link, nodes| {
                let number = first(link);
                link.kinds[0].take_first(&mut nodes[number as usize]);
            }),
        );
        is_told("where it was before an edit", told(|link, _| link.kinds[0].is_closing = true));
        is_told("1 are noted that are no children", told(|_, nodes| nodes[3].parent = 4));
        is_told(
            "clocks noted twice: [1, 2, 1]",
            told(|link, nodes| {
                let mut owed = Owed::with_capacity(3);
                for number in [1, 2, 1] {
                    let node = &mut nodes[number as usize];
                    node.share.flags.clear(Flags::LISTED_OWED);
                    owed.comes(number, node, &Due::default());
                }
                link.owed = Some(Box::new(owed));
            }),
        );
        is_told(
            "1 waits for no clock",
            told(|link, _| link.owed = Some(Box::new(Owed::with_capacity(2)))),
        );
        is_told(
            "1 have no guarantee, 0 are counted",
            told(|link, _| link.owed = Some(Box::new(Owed::with_capacity(2)))),
        );
    }
}
