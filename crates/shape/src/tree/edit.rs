//! From one tree to another while frames wait: made off the packet thread by comparing two specs,
//! put into effect between two frames (effect.rs). Only nodes that differ are written, and only
//! parents whose children differ sort these anew, all with the credit that they have
//! (interior/carry.rs); where they are very many, some at a time (interior/steps.rs).

mod effect;
mod limit;

use std::collections::{BTreeMap, BTreeSet};

use weir_units::{Bytes, Rate};

use super::LINK;
use super::calendar::Calendar;
use super::ceiling::{self, Ceiling};
use super::clocks::Clocks;
use super::interior::Interior;
use super::kinds::{Child, sorted};
use super::node::{NONE, Node, Share};
use super::owed::{Due, Owed};
use super::queues::{self, Kept};
use super::spec::{NodeSpec, Spec};
use crate::FrameCost;
pub(crate) use limit::Limit;

/// Children of one node that are sorted at once; of more, each call sorts half as many. Nodes that
/// nobody has looked at for long take the processor a tenth of a microsecond and more each.
const AT_ONCE: usize = 64;

/// What makes one tree of another.
#[derive(Debug, Default)]
pub struct Edit {
    rate: Rate,
    link: FrameCost,
    /// Children that one call gives new places at most, and queues that it empties.
    at_most: usize,
    /// Tables that are large enough, where the old ones are not.
    tables: Option<Tables>,
    /// How the frames of leaves wait.
    cares: Box<[Kept]>,
    /// Numbers that are no node any more, or are another kind of node.
    removed: Vec<u32>,
    /// Leaves whose frames wait otherwise from now on.
    cared: Vec<u32>,
    changed: Vec<(NodeSpec, Option<Own>)>,
    /// Parents with their children, the deepest first.
    parents: Vec<Parent>,
    /// Nodes that wait until the parents that they had have forgotten them.
    parked: Vec<u32>,
    /// Leaves that are gone whose frames go some at a time.
    dying: Vec<u32>,
    /// What was replaced, to be freed with the edit.
    old: Vec<Interior>,
}

#[derive(Debug)]
struct Parent {
    number: u32,
    interior: Interior,
    shares: Vec<(u32, Share, Due)>,
    /// The first of a chain of children, in the order in which they waited.
    waiting: u32,
    steps: Option<Steps>,
}

/// A ceiling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    rate: Rate,
    burst: Bytes,
    /// Whether the line and those above allow more. If not, a node that has a clock keeps it all
    /// the same: begun anew whenever an edit raises those above, it would let through a burst of
    /// theirs each time.
    is_needed: bool,
}

impl Own {
    fn new(rate: Rate, burst: Option<Bytes>, is_needed: bool) -> Own {
        Own { rate, burst: burst.unwrap_or(ceiling::usual_burst(rate)), is_needed }
    }

    fn ceiling(&self) -> Ceiling {
        Ceiling::new(self.rate, Some(self.burst))
    }
}

/// What a parent needs that sorts its children some at a time: `shares` are those that change then.
#[derive(Debug)]
struct Steps {
    /// How many of them are new here: they come first, and at once.
    new: usize,
    /// How many have their new share.
    done: usize,
    /// The calendars without those of before.
    after: Box<[Calendar]>,
    /// Whether anyone has a clock of his guarantee; else those of before are left in `clocks`.
    has_clocks: bool,
    clocks: Option<Box<Owed>>,
    is_over: bool,
}

/// Room for all numbers.
#[derive(Debug, Default)]
struct Tables {
    nodes: Vec<Node>,
    interiors: Vec<Interior>,
    clocks: Clocks,
    queues: queues::Tables,
    limits: Vec<Limit>,
}

impl Edit {
    /// Whether it writes a node of this number. One that it removes as well is of another kind
    /// afterwards.
    fn tells(&self, number: u32) -> bool {
        self.changed.binary_search_by_key(&number, |(told, _)| told.number).is_ok()
    }

    /// What makes the tree of `new` from that of `old`; an empty spec is a tree of nothing.
    #[must_use]
    pub fn between(old: &Spec, new: &Spec) -> Edit {
        Edit::in_steps(old, new, AT_ONCE)
    }

    /// The same, with at most so many children of a node sorted at once: where there are more, half
    /// as many take their new places in each call of [`super::Tree::goes_on`]. The number is the
    /// same for all edits of a tree.
    #[must_use]
    pub fn in_steps(old: &Spec, new: &Spec, at_once: usize) -> Edit {
        let (before, after) = (by_number(old), by_number(new));
        let (old_ceilings, ceilings) = (ceilings(old), ceilings(new));
        let mut touched = Touched::default();
        let cares = new.cares.iter().map(|&care| Kept::new(care, new.link)).collect();
        let at_most = (at_once / 2).max(1);
        let mut edit = Edit { rate: new.rate, link: new.link, cares, at_most, ..Edit::default() };
        for (number, told) in &before {
            let same_kind = after.get(number).is_some_and(|n| n.is_leaf == told.is_leaf);
            if !same_kind {
                edit.removed.push(*number);
                touched.parents.insert(told.parent);
            }
        }
        for (number, told) in &after {
            let (ceiling, old_ceiling) = (ceilings.get(number), old_ceilings.get(number));
            let was = before.get(number);
            let (care, old_care) = (new.care(told), was.map(|was| old.care(was)));
            let is_cared = told.is_leaf && old_care.is_some_and(|old| old != care);
            if was == Some(told) && ceiling == old_ceiling && !is_cared {
                continue;
            }
            if is_cared && was.is_some_and(|was| was.is_leaf) {
                edit.cared.push(*number);
            }
            let own = ceiling
                .copied()
                .flatten()
                .map(|is_needed| Own::new(told.ceil, told.burst, is_needed));
            edit.changed.push((**told, own));
            touched.note(was.copied(), told);
        }
        if old.rate != new.rate || old.nodes.is_empty() {
            touched.parents.insert(LINK);
        }
        edit.old.reserve(edit.removed.len());
        edit.parked.reserve(edit.changed.len());
        edit.dying.reserve(edit.removed.len());
        edit.parents((old, new), &after, &touched, at_once);
        edit.room(old, new);
        edit
    }

    /// Whether [`super::Tree::goes_on`] has something to do.
    #[must_use]
    pub fn has_steps(&self) -> bool {
        self.parents.iter().any(|parent| parent.steps.is_some()) || !self.dying.is_empty()
    }

    /// The parents that sort their children anew: those touched.
    fn parents(
        &mut self,
        (old, new): (&Spec, &Spec),
        nodes: &BTreeMap<u32, &NodeSpec>,
        touched: &Touched,
        at_once: usize,
    ) {
        let mut depths: BTreeMap<u32, usize> = BTreeMap::new();
        for &number in &touched.parents {
            if nodes.get(&number).is_some_and(|node| node.is_leaf) {
                // it was a parent
                continue;
            }
            let (mut last, mut depth) = (number, 0);
            while let Some(node) = nodes.get(&last) {
                (last, depth) = (node.parent, depth + 1);
            }
            // one that is gone has nothing above it, and is none
            if last == LINK {
                depths.insert(number, depth);
            }
        }
        let mut order: Vec<(usize, u32)> =
            depths.into_iter().map(|(n, depth)| (depth, n)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let (before, after) = (Families::of(old), Families::of(new));
        let is_another = |number: &u32| self.removed.binary_search(number).is_ok();
        for (_, number) in order {
            let mut old = before.sorted(number, at_once);
            let new = after.sorted(number, at_once);
            // one that was a leaf and has children now, or the other way around, is new
            old.shares.retain(|(child, ..)| !is_another(child));
            self.parents.push(Parent::between(number, &old, new));
        }
    }

    fn room(&mut self, old: &Spec, new: &Spec) {
        let needed = |spec: &Spec| {
            let most = spec.nodes.iter().map(|n| n.number as usize + 1).max();
            // steps of an eighth, so that few edits need larger tables
            let most = most.unwrap_or(1) + 64;
            most.next_multiple_of((most.next_power_of_two() / 16).max(1))
        };
        if old.nodes.is_empty() || needed(new) > needed(old) {
            self.tables = Some(Tables {
                nodes: Vec::with_capacity(needed(new)),
                interiors: Vec::with_capacity(needed(new)),
                clocks: Clocks::with_capacity(needed(new)),
                queues: queues::Tables::with_capacity(needed(new)),
                limits: Vec::with_capacity(if new.takes_limits { needed(new) } else { 0 }),
            });
        }
    }
}

/// The children of each node.
struct Families<'a> {
    link: Rate,
    parents: BTreeMap<u32, &'a NodeSpec>,
    children: BTreeMap<u32, Vec<&'a NodeSpec>>,
}

/// A node's children as they are sorted.
struct Sorted {
    interior: Interior,
    shares: Vec<(u32, Share, Due)>,
    is_large: bool,
}

impl Families<'_> {
    fn of(spec: &Spec) -> Families<'_> {
        let parents = spec.nodes.iter().filter(|n| !n.is_leaf).map(|n| (n.number, n)).collect();
        let mut children: BTreeMap<u32, Vec<&NodeSpec>> = BTreeMap::new();
        for node in &spec.nodes {
            children.entry(node.parent).or_default().push(node);
        }
        Families { link: spec.rate, parents, children }
    }

    fn sorted(&self, number: u32, at_once: usize) -> Sorted {
        let rate = self.parents.get(&number).map_or(self.link, |node| node.rate);
        let below = self.children.get(&number).map_or(&[][..], |list| list);
        let told: Vec<Child> = below
            .iter()
            .map(|c| Child { weight: c.weight, priority: c.priority.0, rate: c.rate })
            .collect();
        let is_large = told.len() > at_once;
        let (interior, shares) = sorted(&told, rate, is_large);
        let shares = below.iter().zip(shares).map(|(c, (share, due))| (c.number, share, due));
        Sorted { interior, shares: shares.collect(), is_large }
    }
}

impl Parent {
    /// Where there are very many children before and after, only those that have another share.
    fn between(number: u32, old: &Sorted, new: Sorted) -> Parent {
        let Sorted { mut interior, mut shares, .. } = new;
        let is_same_scale = old.interior.scale() == interior.scale();
        if !(old.is_large && new.is_large && is_same_scale) {
            return Parent { number, interior, shares, waiting: NONE, steps: None };
        }
        let has_clocks = interior.has_clocks();
        let after = interior.makes_room_for(&old.interior);
        let before: BTreeMap<u32, (Share, Due)> =
            old.shares.iter().map(|(child, share, due)| (*child, (*share, *due))).collect();
        shares.retain(|(child, share, due)| before.get(child) != Some(&(*share, *due)));
        shares.sort_by_key(|(child, ..)| before.contains_key(child));
        let new = shares.iter().filter(|(child, ..)| !before.contains_key(child)).count();
        let steps = Steps { new, done: 0, after, has_clocks, clocks: None, is_over: false };
        Parent { number, interior, shares, waiting: NONE, steps: Some(steps) }
    }
}

/// Parents whose children are sorted anew. Those above them only learn whether they have something
/// to send.
#[derive(Default)]
struct Touched {
    parents: BTreeSet<u32>,
}

impl Touched {
    /// A node is told something else, or is new.
    fn note(&mut self, was: Option<&NodeSpec>, told: &NodeSpec) {
        let Some(was) = was.filter(|was| was.is_leaf == told.is_leaf) else {
            self.parents.insert(told.parent);
            if !told.is_leaf {
                self.parents.insert(told.number);
            }
            return;
        };
        if was.parent != told.parent {
            self.parents.extend([was.parent, told.parent]);
        }
        if (was.weight, was.priority, was.rate) != (told.weight, told.priority, told.rate) {
            self.parents.insert(told.parent);
        }
        if was.rate != told.rate && !told.is_leaf {
            self.parents.insert(told.number);
        }
    }
}

fn by_number(spec: &Spec) -> BTreeMap<u32, &NodeSpec> {
    spec.nodes.iter().map(|n| (n.number, n)).collect()
}

/// The nodes that have a ceiling, and whether each needs it: not where the line or the next one
/// above allows no more in the long run, and no more at once.
fn ceilings(spec: &Spec) -> BTreeMap<u32, Option<bool>> {
    let line = (spec.rate, Bytes::ZERO);
    let mut nearest: BTreeMap<u32, (Rate, Bytes)> = BTreeMap::new();
    let mut own = BTreeMap::new();
    for node in &spec.nodes {
        let above = nearest.get(&node.parent).copied().unwrap_or(line);
        let burst = node.burst.unwrap_or(ceiling::usual_burst(node.ceil));
        let is_needed = node.ceil < spec.rate && (node.ceil < above.0 || burst < above.1);
        nearest.insert(node.number, if is_needed { (node.ceil, burst) } else { above });
        own.insert(node.number, (node.ceil < Rate::MAX).then_some(is_needed));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Care;

    const fn mbit(mbit: u64) -> Rate {
        Rate::from_bps(mbit * 1_000_000)
    }

    /// Class 1 with leaves 2 and 3, and leaf 4 beside it; the ceiling of 2 is above that of 1.
    fn spec() -> Spec {
        let node = |number, parent, is_leaf| NodeSpec::new(number, parent, is_leaf);
        let nodes = vec![
            NodeSpec { ceil: mbit(10), ..node(1, LINK, false) },
            NodeSpec { ceil: mbit(20), ..node(2, 1, true) },
            node(3, 1, true),
            node(4, LINK, true),
        ];
        Spec {
            rate: mbit(100),
            link: FrameCost::default(),
            nodes,
            cares: vec![Care::default()],
            ..Spec::default()
        }
    }

    /// Nodes that are told something, that are removed, whose frames wait otherwise, and parents.
    fn touched(change: impl FnOnce(&mut Spec)) -> [Vec<u32>; 4] {
        let mut new = spec();
        change(&mut new);
        let edit = Edit::between(&spec(), &new);
        let changed = edit.changed.iter().map(|(node, _)| node.number).collect();
        let mut parents: Vec<u32> = edit.parents.iter().map(|parent| parent.number).collect();
        parents.sort_unstable();
        [changed, edit.removed, edit.cared, parents]
    }

    #[test]
    fn an_edit_touches_what_it_changes() {
        let is = |[changed, removed, cared, parents]: [&[u32]; 4]| {
            [changed.to_vec(), removed.to_vec(), cared.to_vec(), parents.to_vec()]
        };
        assert_eq!(touched(|_| {}), is([&[], &[], &[], &[]]));
        assert_eq!(touched(|spec| spec.rate = mbit(90)), is([&[], &[], &[], &[0]]));
        assert_eq!(touched(|spec| spec.nodes[1].weight = 2), is([&[2], &[], &[], &[1]]));
        assert_eq!(touched(|spec| spec.nodes[0].rate = mbit(5)), is([&[1], &[], &[], &[0, 1]]));
        // now it is lower than that of its parent
        assert_eq!(touched(|spec| spec.nodes[0].ceil = mbit(50)), is([&[1, 2], &[], &[], &[]]));
        assert_eq!(touched(|spec| spec.nodes[2].parent = LINK), is([&[3], &[], &[], &[0, 1]]));
        assert_eq!(touched(|spec| _ = spec.nodes.remove(2)), is([&[], &[3], &[], &[1]]));
        let new = |number, is_leaf| {
            move |spec: &mut Spec| {
                spec.nodes.push(NodeSpec::new(number, 1, is_leaf));
            }
        };
        assert_eq!(touched(new(5, true)), is([&[5], &[], &[], &[1]]));
        assert_eq!(touched(new(5, false)), is([&[5], &[], &[], &[1, 5]]));
        let ecn = Care { ecn: true, ..Care::default() };
        let cared = touched(|spec| {
            spec.cares.push(ecn);
            spec.nodes[1].care = 1;
            // it has no frames
            spec.nodes[0].care = 1;
        });
        assert_eq!(cared, is([&[1, 2], &[], &[2], &[]]));
    }

    #[test]
    fn a_leaf_that_becomes_a_class_is_another_node() {
        let becomes = |spec: &mut Spec| {
            spec.cares.push(Care { ecn: true, ..Care::default() });
            spec.nodes[3] = NodeSpec { care: 1, ..NodeSpec::new(4, LINK, false) };
        };
        let [changed, removed, cared, parents] = touched(becomes);
        assert_eq!((changed, removed, cared, parents), (vec![4], vec![4], vec![], vec![0, 4]));
    }

    #[test]
    fn where_children_are_many_a_call_takes_half_of_them() {
        let leaves = |weight| {
            let leaf = |number| NodeSpec { weight, ..NodeSpec::new(number, LINK, true) };
            Spec { nodes: (1..=40).map(leaf).collect(), ..spec() }
        };
        let edit = Edit::in_steps(&leaves(1), &leaves(1), 16);
        assert_eq!((edit.at_most, edit.has_steps()), (8, false));
        let mut new = leaves(1);
        new.nodes[7].weight = 2;
        assert!(Edit::in_steps(&leaves(1), &new, 39).has_steps());
        assert!(!Edit::in_steps(&leaves(1), &new, 40).has_steps());
        assert_eq!(Edit::in_steps(&leaves(1), &new, 1).at_most, 1);
    }

    #[test]
    fn parents_are_sorted_from_below_and_putting_it_into_effect_allocates_nothing() {
        let node = |number, parent, is_leaf| NodeSpec::new(number, parent, is_leaf);
        let nodes = vec![node(3, LINK, false), node(1, 3, false), node(2, 1, true)];
        let deep = Spec { nodes, ..spec() };
        let edit = Edit::between(&Spec::default(), &deep);
        let parents: Vec<u32> = edit.parents.iter().map(|parent| parent.number).collect();
        assert_eq!(parents, [1, 3, LINK]);
        assert!(edit.parked.capacity() >= 3);
        let edit = Edit::between(&deep, &Spec::default());
        assert_eq!(edit.removed, [1, 2, 3]);
        assert!(edit.old.capacity() >= 3 && edit.dying.capacity() >= 3);
    }

    #[test]
    fn of_many_children_only_those_with_another_share_have_a_new_place() {
        let leaf = |number| NodeSpec { weight: 10, ..NodeSpec::new(number, LINK, true) };
        let old = Spec { nodes: (1..=40).map(leaf).collect(), ..spec() };
        let mut new = old.clone();
        new.nodes[7].weight = 5;
        new.nodes.push(leaf(41));
        let edit = Edit::in_steps(&old, &new, 16);
        let of_link = &edit.parents[0];
        let numbers: Vec<u32> = of_link.shares.iter().map(|(child, ..)| *child).collect();
        // the new one first
        assert_eq!(
            (numbers, of_link.steps.as_ref().map(|steps| steps.new)),
            (vec![41, 8], Some(1))
        );
        assert!(edit.has_steps());
    }

    #[test]
    fn a_tree_has_room_for_all_its_numbers_and_for_more_only_where_it_is_needed() {
        let leaves = |most| {
            let nodes = (1..=most).map(|number| NodeSpec::new(number, LINK, true)).collect();
            Spec { nodes, ..spec() }
        };
        for most in [1, 7, 64, 1_000, 5_000] {
            let edit = Edit::between(&Spec::default(), &leaves(most));
            let tables = edit.tables.expect("there were none");
            assert!(tables.nodes.capacity() > most as usize, "{most}");
            assert!(tables.nodes.capacity() < 2 * most as usize + 100, "{most}");
            // each node may wait for its ceiling
            assert!(tables.clocks.timer.has_room_for(tables.nodes.capacity()));
        }
        assert!(Edit::between(&leaves(1_000), &leaves(1_001)).tables.is_none());
        assert!(Edit::between(&leaves(1_000), &leaves(2_000)).tables.is_some());
        assert!(Edit::between(&leaves(2_000), &leaves(1_000)).tables.is_none());
    }

    #[test]
    fn a_ceiling_is_needed_where_it_allows_less_than_those_above() {
        let node = |number, parent, ceil, burst| NodeSpec {
            ceil: mbit(ceil),
            burst: Some(Bytes::new(burst)),
            ..NodeSpec::new(number, parent, false)
        };
        let nodes = vec![
            node(1, LINK, 100, 1),
            node(2, LINK, 10, 5_000),
            node(3, 2, 10, 5_000),
            node(4, 2, 20, 4_000),
            node(5, 2, 9, 9_000),
            node(6, 4, 15, 4_000),
            node(7, 5, 10, 8_000),
            node(8, 3, 8, 8_000),
            // the line's
            node(9, 2, 100, 1_000),
            NodeSpec::new(10, 2, true),
        ];
        let own = ceilings(&Spec { nodes, ..spec() });
        let with = |which| own.iter().filter(move |&(_, own)| *own == which).map(|(n, _)| *n);
        assert_eq!(with(Some(true)).collect::<Vec<_>>(), [2, 4, 5, 6, 7, 8]);
        assert_eq!(with(Some(false)).collect::<Vec<_>>(), [1, 3, 9]);
        assert_eq!(with(None).collect::<Vec<_>>(), [10]);
    }
}
