//! An edit takes effect, between two frames, in one call or several.

use weir_packet::Label;
use weir_units::Instant;

use super::{Edit, Limit, Own, Parent, Tables};
use crate::tree::ceiling::Clock;
use crate::tree::interior::WOKEN;
use crate::tree::node::{Flags, Kind};
use crate::tree::queues::Kept;
use crate::tree::spec::NodeSpec;
use crate::tree::{LINK, Tree};

/// Frames of leaves that are gone that one edit moves to others at most.
const MOVES: u32 = 64;

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
        self.set_rate(now, edit.rate);
        self.link = edit.link;
        // an earlier, larger tree may have left more room than the edit could know
        if let Some(tables) = &mut edit.tables
            && tables.nodes.capacity() > self.nodes.len()
        {
            self.move_into(tables);
        }
        self.empty_leaves(edit);
        std::mem::swap(&mut self.cares, &mut edit.cares);
        for parent in &mut edit.parents {
            self.open(now, parent);
        }
        for &number in &edit.removed {
            let _ = self.unlist(now, number);
        }
        for &number in &edit.removed {
            let node = &mut self.nodes[number as usize];
            let due = &mut self.clocks.dues[number as usize];
            self.interiors[node.parent as usize].gives_up(now, node, due);
            self.clocks.releases(number, node);
            if !edit.tells(number)
                && let Some(limit) = self.limits.get_mut(number as usize)
            {
                *limit = Limit::default();
            }
            node.kind = Kind::None;
            (node.share.flags, node.share.s) = (node.share.flags.only_noted(), 0);
            edit.old.push(std::mem::take(&mut self.interiors[number as usize]));
        }
        for (told, own) in &mut edit.changed {
            self.write(now, told, own.take());
            if self.nodes[told.number as usize].share.flags.has(Flags::PARKED) {
                edit.parked.push(told.number);
            }
        }
        self.move_frames(now, edit, &successor, moved);
        for parent in &mut edit.parents {
            if parent.steps.is_some() {
                self.change_some(now, parent, 0);
            } else {
                self.sort_anew(now, parent);
            }
        }
        for (told, _) in &edit.changed {
            self.wake_anew(now, told.number);
        }
        for &number in &edit.removed {
            // an heir that had nothing has something now
            self.wake_anew(now, successor(number));
        }
        // last: who has something again keeps its place
        for parent in &edit.parents {
            self.falls_silent(now, parent.number);
        }
    }

    /// What is left of an edit that is in effect: children of nodes with very many get their new
    /// places, and queues of leaves that are gone are emptied, some with each call. Whether all is
    /// done; only then may the next edit come.
    #[must_use = "call again until it is done"]
    pub fn goes_on(&mut self, now: Instant, edit: &mut Edit) -> bool {
        let mut budget = edit.at_most;
        for parent in &mut edit.parents {
            if !self.is_sorted(now, parent, &mut budget) {
                return false;
            }
        }
        if !self.disband(&mut edit.dying, &mut budget) {
            return false;
        }
        while let Some(number) = edit.parked.pop() {
            self.nodes[number as usize].share.flags.clear(Flags::PARKED);
            self.wake_anew(now, number);
        }
        true
    }

    /// Whether a parent with very many children has them all in their new places.
    fn is_sorted(&mut self, now: Instant, parent: &mut Parent, budget: &mut usize) -> bool {
        let Some(before) = parent.steps.as_ref().filter(|steps| !steps.is_over) else {
            return true;
        };
        let before = before.done;
        self.change_some(now, parent, *budget);
        let Some(steps) = &mut parent.steps else { return true };
        *budget -= steps.done - before;
        if steps.done < parent.shares.len() {
            return false;
        }
        let interior = &mut self.interiors[parent.number as usize];
        let tables = (&mut self.nodes[..], &self.clocks.dues[..]);
        if !interior.reviews(budget, tables, &mut parent.interior) {
            return false;
        }
        interior.closes(&mut steps.after, steps.has_clocks, &mut steps.clocks);
        steps.is_over = true;
        true
    }

    /// Children that are new have their share at once, others as many as `most` says.
    fn change_some(&mut self, now: Instant, parent: &mut Parent, most: usize) {
        let Some(steps) = &mut parent.steps else { return };
        let to = steps.new.max(steps.done + most).min(parent.shares.len());
        let interior = &mut self.interiors[parent.number as usize];
        interior.comes_to_order(now, &mut self.nodes, &mut self.clocks.dues);
        for (child, share, due) in &parent.shares[steps.done..to] {
            let tables = (&mut self.nodes[..], &mut self.clocks.dues[..]);
            interior.changes(now, *child, tables, (share, due));
        }
        steps.done = to;
    }

    /// The frames of leaves that go, or that wait otherwise from now on, in one chain each; where
    /// they are too many to be moved, they stay for now.
    fn empty_leaves(&mut self, edit: &mut Edit) {
        let mut room = MOVES;
        for &number in &edit.removed {
            let node = &mut self.nodes[number as usize];
            if !node.is_leaf() {
                continue;
            }
            let left = room.checked_sub(node.chain.frames());
            if left.is_none() && !node.is_plain() && !edit.tells(number) {
                self.queues.longest.forget(number, node);
                self.order.has_new_rules();
                edit.dying.push(number);
                continue;
            }
            room = left.unwrap_or(room);
            self.queues.flatten(number, node);
        }
        for &number in &edit.cared {
            let node = &mut self.nodes[number as usize];
            if node.is_leaf() {
                self.queues.flatten(number, node);
            }
        }
    }

    /// Empties queues of leaves that are gone. Whether that is done.
    fn disband(&mut self, dying: &mut Vec<u32>, budget: &mut usize) -> bool {
        while let Some(&number) = dying.last() {
            let node = &mut self.nodes[number as usize];
            let (chain, is_empty) = self.queues.disband(number, node, budget);
            self.waiting -= chain.frames() as usize;
            self.queues.store.splice(&mut self.left_behind, chain);
            if !is_empty {
                return false;
            }
            dying.pop();
        }
        true
    }

    /// A parent is about to have other children.
    fn open(&mut self, now: Instant, parent: &mut Parent) {
        let (number, dues) = (parent.number, &mut self.clocks.dues[..]);
        if parent.steps.is_some() {
            let interior = &mut self.interiors[number as usize];
            interior.opens(now, &mut parent.interior, &mut self.nodes, dues);
        } else {
            parent.waiting = self.unlist(now, number);
        }
    }

    /// What waits in leaves that are gone waits in others now; where it is too much it goes.
    fn move_frames(
        &mut self,
        now: Instant,
        edit: &Edit,
        successor: &impl Fn(u32) -> u32,
        mut moved: impl FnMut(u32, &Label, usize),
    ) {
        let (mut room, mut dying) = (MOVES, edit.dying.iter().peekable());
        for &number in &edit.removed {
            if dying.next_if_eq(&&number).is_some() {
                continue;
            }
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
    pub(in crate::tree) fn wake_anew(&mut self, now: Instant, number: u32) {
        let flags = &mut self.nodes[number as usize].share.flags;
        let has_moved = flags.has(Flags::MOVED) && !flags.has(Flags::PARKED);
        if has_moved {
            flags.clear(Flags::MOVED);
        }
        if flags.has(Flags::ACTIVE) || !self.has_something(number) {
            return;
        }
        let node = &mut self.nodes[number as usize];
        let parent = &mut self.interiors[node.parent as usize];
        if !has_moved || !parent.is_active() {
            return self.wake::<WOKEN>(now, number);
        }
        let must_wait =
            node.is_held() || node.has_ceiling() && self.clocks.holds(now, number, node);
        if !must_wait {
            parent.takes_in(now, number, &mut self.nodes, &mut self.clocks.dues);
        }
    }

    /// The larger tables take over; the smaller ones are left in their place.
    fn move_into(&mut self, tables: &mut Tables) {
        take_over(&mut tables.nodes, &mut self.nodes);
        take_over(&mut tables.interiors, &mut self.interiors);
        take_over(&mut tables.clocks.ceilings, &mut self.clocks.ceilings);
        take_over(&mut tables.clocks.dues, &mut self.clocks.dues);
        self.clocks.timer.moves_into(&mut tables.clocks.timer);
        take_over(&mut tables.limits, &mut self.limits);
        self.queues.move_into(&mut tables.queues);
    }

    fn write(&mut self, now: Instant, told: &NodeSpec, own: Option<Own>) {
        let number = told.number;
        let node = &mut self.nodes[number as usize];
        let is_new = node.kind == Kind::None;
        if node.kind != Kind::None && node.parent != told.parent {
            let due = &mut self.clocks.dues[number as usize];
            self.interiors[node.parent as usize].gives_up(now, node, due);
        }
        if node.share.flags.noted() != 0 && (is_new || node.parent != told.parent) {
            // the parent that it had forgets it first
            node.share.flags.set(Flags::PARKED);
        }
        let own = match self.limits.get_mut(number as usize) {
            Some(limit) => limit.tells(own),
            None => own,
        };
        self.sets_ceiling(now, number, own, is_new);
        let node = &mut self.nodes[number as usize];
        node.parent = told.parent;
        node.most_frames = told.frames;
        node.most_bytes = u32::try_from(told.bytes.get()).unwrap_or(u32::MAX);
        node.care = told.care;
        let is_plain = self.cares.get(usize::from(told.care)).is_none_or(Kept::is_plain);
        match (told.is_leaf, is_plain) {
            (false, _) => node.kind = Kind::Interior,
            (true, true) => {
                node.kind = Kind::Plain;
                // it may have had queues, and has what waited in them
                self.queues.longest.grew(number, node);
            }
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

    /// A node gets another ceiling, or none.
    pub(super) fn sets_ceiling(
        &mut self,
        now: Instant,
        number: u32,
        own: Option<Own>,
        is_new: bool,
    ) {
        let node = &mut self.nodes[number as usize];
        let (old, clock) = &mut self.clocks.ceilings[number as usize];
        let (had_ceiling, free_at) = (node.has_ceiling(), clock.free_at());
        node.share.flags.clear(Flags::CEILING);
        if let Some(own) = own.filter(|own| own.is_needed || had_ceiling) {
            let new = own.ceiling();
            if had_ceiling {
                clock.goes_on(now, old, &new);
            } else {
                // one that has sent without a bound has no burst saved
                *clock = if is_new { Clock::default() } else { Clock::from(now) };
            }
            *old = new;
            node.share.flags.set(Flags::CEILING);
        }
        let is_held = node.share.flags.has(Flags::HELD);
        if is_held && (!node.has_ceiling() || clock.free_at() != free_at) {
            // whoever waited for another ceiling asks this one
            self.clocks.releases(number, node);
        }
    }

    /// A parent gets a new order of its children, which goes on where the old one was.
    fn sort_anew(&mut self, now: Instant, parent: &mut Parent) {
        let Parent { number, interior: new, shares, waiting, .. } = parent;
        let at = *number as usize;
        if *number == LINK {
            self.nodes[at].kind = Kind::Interior;
        }
        new.continues(&self.interiors[at]);
        for (child, share, due) in shares.iter() {
            let node = &mut self.nodes[*child as usize];
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
        std::mem::swap(&mut self.interiors[at], new);
    }
}

/// `large` gets what `small` has, and the two change places.
fn take_over<T: Default>(large: &mut Vec<T>, small: &mut Vec<T>) {
    large.append(small);
    large.resize_with(large.capacity(), T::default);
    std::mem::swap(large, small);
}
