//! From one tree to another while frames wait: made off the packet thread by comparing two specs,
//! put into effect between two frames. Only nodes that differ are written, and only parents whose
//! children differ sort these anew, all with the credit that they have (interior/carry.rs).

use std::collections::{BTreeMap, BTreeSet};

use weir_packet::Label;
use weir_units::{Bytes, Instant, Rate};

use super::ceiling::{self, Ceiling, Clock};
use super::clocks::Clocks;
use super::interior::Interior;
use super::kinds::{Child, sorted};
use super::node::{Flags, Kind, NONE, Node, Share};
use super::owed::Due;
use super::queues::{self, Kept};
use super::spec::{NodeSpec, Spec};
use super::{LINK, Tree};
use crate::Link;

/// Frames of leaves that are gone that one edit moves to others at most.
const MOVES: u32 = 64;

/// What makes one tree of another.
#[derive(Debug, Default)]
pub struct Edit {
    rate: Rate,
    link: Link,
    /// Tables that are large enough, where the old ones are not.
    tables: Option<Tables>,
    /// How the frames of leaves wait.
    cares: Box<[Kept]>,
    /// Numbers that are no node any more, or are another kind of node.
    removed: Vec<u32>,
    /// Leaves whose frames wait otherwise from now on.
    cared: Vec<u32>,
    changed: Vec<(NodeSpec, Option<Ceiling>)>,
    /// Parents with their children, the deepest first.
    parents: Vec<Parent>,
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
}

/// Room for all numbers.
#[derive(Debug, Default)]
struct Tables {
    nodes: Vec<Node>,
    interiors: Vec<Interior>,
    clocks: Clocks,
    queues: queues::Tables,
}

impl Edit {
    /// What makes the tree of `new` from that of `old`; an empty spec is a tree of nothing.
    #[must_use]
    pub fn between(old: &Spec, new: &Spec) -> Edit {
        let (before, after) = (by_number(old), by_number(new));
        let (old_ceilings, ceilings) = (ceilings(old), ceilings(new));
        let mut touched = Touched::default();
        let cares = new.cares.iter().map(|&care| Kept::new(care, new.link)).collect();
        let mut edit = Edit { rate: new.rate, link: new.link, cares, ..Edit::default() };
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
            let made = ceiling.copied().flatten().map(|rate| Ceiling::new(rate, told.burst));
            edit.changed.push((**told, made));
            touched.note(was.copied(), told);
        }
        if old.rate != new.rate || old.nodes.is_empty() {
            touched.parents.insert(LINK);
        }
        edit.old.reserve(edit.removed.len());
        edit.parents(new, &after, &touched);
        edit.room(old, new);
        edit
    }

    /// The parents that sort their children anew: those touched.
    fn parents(&mut self, new: &Spec, nodes: &BTreeMap<u32, &NodeSpec>, touched: &Touched) {
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
        let mut children: BTreeMap<u32, Vec<&NodeSpec>> = BTreeMap::new();
        for node in &new.nodes {
            children.entry(node.parent).or_default().push(node);
        }
        for (_, number) in order {
            let rate = nodes.get(&number).map_or(new.rate, |node| node.rate);
            let below = children.get(&number).map_or(&[][..], |list| list);
            let told: Vec<Child> = below
                .iter()
                .map(|c| Child { weight: c.weight, priority: c.priority, rate: c.rate })
                .collect();
            let (interior, shares) = sorted(&told, rate);
            let shares = below.iter().zip(shares).map(|(c, (share, due))| (c.number, share, due));
            let shares = shares.collect();
            self.parents.push(Parent { number, interior, shares, waiting: NONE });
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
            });
        }
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

/// The ceiling that each node needs for itself: none where the line or the next one above allows no
/// more in the long run, and no more at once.
fn ceilings(spec: &Spec) -> BTreeMap<u32, Option<Rate>> {
    let line = (spec.rate, Bytes::ZERO);
    let mut nearest: BTreeMap<u32, (Rate, Bytes)> = BTreeMap::new();
    let mut own = BTreeMap::new();
    for node in &spec.nodes {
        let above = nearest.get(&node.parent).copied().unwrap_or(line);
        let burst = node.burst.unwrap_or(ceiling::usual_burst(node.ceil));
        let is_needed = node.ceil < spec.rate && (node.ceil < above.0 || burst < above.1);
        nearest.insert(node.number, if is_needed { (node.ceil, burst) } else { above });
        own.insert(node.number, is_needed.then_some(node.ceil));
    }
    own
}

impl Tree {
    /// Puts an edit into effect. `successor` says which leaf takes the frames of a leaf that is
    /// gone; `moved` is told of each of these frames, with the label that it has from now on. Of
    /// leaves with more than can be moved at once all have to go: they come back from
    /// [`Tree::take_left_behind`] with the label that they had.
    ///
    /// What was replaced stays in `edit`, to be freed elsewhere. Nothing is allocated here.
    pub fn apply(
        &mut self,
        now: Instant,
        edit: &mut Edit,
        successor: impl Fn(u32) -> u32,
        moved: impl FnMut(u32, &Label, usize),
    ) {
        self.line_waits(now);
        self.line.set_rate(edit.rate, now);
        self.link = edit.link;
        // an earlier, larger tree may have left more room than the edit could know
        if let Some(tables) = &mut edit.tables
            && tables.nodes.capacity() > self.nodes.len()
        {
            self.move_into(tables);
        }
        for &number in edit.removed.iter().chain(&edit.cared) {
            let node = &mut self.nodes[number as usize];
            if node.is_leaf() {
                self.queues.flatten(number, node);
            }
        }
        std::mem::swap(&mut self.cares, &mut edit.cares);
        for parent in &mut edit.parents {
            parent.waiting = self.unlist(now, parent.number);
        }
        for &number in &edit.removed {
            let _ = self.unlist(now, number);
        }
        for &number in &edit.removed {
            let node = &mut self.nodes[number as usize];
            self.interiors[node.parent as usize].gives_up(node);
            node.kind = Kind::None;
            (node.share.flags, node.share.s) = (Flags::default(), 0);
            edit.old.push(std::mem::take(&mut self.interiors[number as usize]));
        }
        for (told, ceiling) in &mut edit.changed {
            self.write(now, told, ceiling.take());
        }
        self.move_frames(now, &edit.removed, &successor, moved);
        let nodes = &self.nodes;
        self.clocks.timer.retain(|entry| nodes.get(entry.node as usize).is_some_and(Node::is_held));
        for parent in &mut edit.parents {
            self.sort_anew(now, parent);
        }
        for parent in &edit.parents {
            self.falls_silent(now, parent.number);
            parent.shares.iter().for_each(|(child, ..)| self.wake_anew(now, *child));
        }
        for (told, _) in &edit.changed {
            self.wake_anew(now, told.number);
        }
        for &number in &edit.removed {
            // an heir that had nothing has something now
            self.wake_anew(now, successor(number));
        }
    }

    /// What waits in leaves that are gone waits in others now; where it is too much it goes.
    fn move_frames(
        &mut self,
        now: Instant,
        removed: &[u32],
        successor: &impl Fn(u32) -> u32,
        mut moved: impl FnMut(u32, &Label, usize),
    ) {
        let mut room = MOVES;
        for &number in removed {
            let chain = std::mem::take(&mut self.nodes[number as usize].chain);
            let Some(left) = room.checked_sub(chain.frames()) else {
                self.leave_behind(chain);
                continue;
            };
            room = left;
            let chain = self.without_left_behind(chain);
            let to = successor(number);
            let heir = &mut self.nodes[to as usize];
            let dropped = self.queues.fill(now, to, heir, &self.cares, chain, |label, bytes| {
                label.leaf = to;
                self.order.moved(label);
                moved(number, label, bytes);
            });
            self.waiting -= dropped;
        }
    }

    /// Takes the children of a node out of its calendars, as a chain.
    fn unlist(&mut self, now: Instant, number: u32) -> u32 {
        let interior = &mut self.interiors[number as usize];
        interior.unlist(now, &mut self.nodes, &mut self.clocks.dues)
    }

    /// A node may have nothing more to send because of an edit, and so may those above it.
    fn falls_silent(&mut self, now: Instant, mut number: u32) {
        while self.nodes[number as usize].share.flags.has(Flags::ACTIVE)
            && !self.has_something(number)
        {
            let parent = self.nodes[number as usize].parent;
            let interior = &mut self.interiors[parent as usize];
            interior.ends(now, number, &mut self.nodes, &mut self.clocks.dues);
            number = parent;
        }
    }

    /// A node that may have something to send because of an edit.
    pub(super) fn wake_anew(&mut self, now: Instant, number: u32) {
        let flags = self.nodes[number as usize].share.flags;
        if !flags.has(Flags::ACTIVE) && self.has_something(number) {
            self.wake(now, number);
        }
    }

    /// The larger tables take over; the smaller ones are left in their place.
    fn move_into(&mut self, tables: &mut Tables) {
        take_over(&mut tables.nodes, &mut self.nodes);
        take_over(&mut tables.interiors, &mut self.interiors);
        take_over(&mut tables.clocks.ceilings, &mut self.clocks.ceilings);
        take_over(&mut tables.clocks.dues, &mut self.clocks.dues);
        while let Some(entry) = self.clocks.timer.pop() {
            tables.clocks.timer.push(entry);
        }
        std::mem::swap(&mut self.clocks.timer, &mut tables.clocks.timer);
        self.queues.move_into(&mut tables.queues);
    }

    fn write(&mut self, now: Instant, told: &NodeSpec, ceiling: Option<Ceiling>) {
        let number = told.number;
        let node = &mut self.nodes[number as usize];
        let (old, clock) = &mut self.clocks.ceilings[number as usize];
        let (had_ceiling, is_new) = (node.has_ceiling(), node.kind == Kind::None);
        if node.kind != Kind::None && node.parent != told.parent {
            self.interiors[node.parent as usize].gives_up(node);
        }
        // whoever waited for another ceiling asks this one
        node.share.flags.clear(Flags::HELD);
        node.share.flags.clear(Flags::CEILING);
        if let Some(new) = ceiling {
            if had_ceiling {
                clock.goes_on(now, old, &new);
            } else {
                // one that has sent without a bound has no burst saved
                *clock = if is_new { Clock::default() } else { Clock::from(now) };
            }
            *old = new;
            node.share.flags.set(Flags::CEILING);
        }
        node.parent = told.parent;
        node.most_frames = told.frames;
        node.most_bytes = u32::try_from(told.bytes.get()).unwrap_or(u32::MAX);
        node.care = told.care;
        let is_plain = self.cares.get(usize::from(told.care)).is_none_or(Kept::is_plain);
        match (told.is_leaf, is_plain) {
            (false, _) => node.kind = Kind::Interior,
            (true, true) => node.kind = Kind::Plain,
            (true, false) if node.kind == Kind::WithCare => {}
            (true, false) => {
                node.kind = Kind::WithCare;
                let chain = std::mem::take(&mut node.chain);
                let chain = self.without_left_behind(chain);
                let node = &mut self.nodes[number as usize];
                let dropped = self.queues.fill(now, number, node, &self.cares, chain, |_, _| {});
                self.waiting -= dropped;
            }
        }
    }

    /// A parent gets a new order of its children, which goes on where the old one was.
    fn sort_anew(&mut self, now: Instant, parent: &mut Parent) {
        let Parent { number, interior: new, shares, waiting } = parent;
        let at = *number as usize;
        if *number == LINK {
            self.nodes[at].kind = Kind::Interior;
        }
        new.continues(&self.interiors[at]);
        for (child, share, due) in shares.iter() {
            let node = &mut self.nodes[*child as usize];
            if node.kind == Kind::Interior && !self.interiors[*child as usize].is_active() {
                new.has_none_below(node);
            }
            new.adopts(now, *child, node, (share, due), &mut self.clocks.dues[*child as usize]);
        }
        while let Some(node) = self.nodes.get_mut(*waiting as usize) {
            let (child, next) = (*waiting, node.share.next);
            // some have left for another parent, where nobody is listed yet that comes from here
            if node.parent == *number {
                new.relists(child, node);
            }
            *waiting = next;
        }
        for (child, ..) in shares.iter() {
            new.relists(*child, &mut self.nodes[*child as usize]);
        }
        std::mem::swap(&mut self.interiors[at], new);
    }
}

/// `large` gets what `small` has, and the two change places.
fn take_over<T: Default>(large: &mut Vec<T>, small: &mut Vec<T>) {
    large.append(small);
    large.resize_with(large.capacity(), T::default);
    std::mem::swap(large, small);
}
