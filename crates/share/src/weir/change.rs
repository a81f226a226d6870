//! Nodes come, change and go while packets flow. A leaf joins by taking a place that the tree has
//! room for beneath its parent; whoever watches is told, and may have to approve. Who falls silent
//! gives back its share at once and its place when it has been silent for long.

use std::collections::VecDeque;

use weir_units::{Instant, Rate, Span, limits};

use super::child::{Child, Flags};
use super::inner::{Inner, NONE};
use super::leaf::Leaf;
use super::{Weir, peak};
use crate::scale::{Packed, units};
use crate::tree::{Place, number};

/// Something that happened to the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A leaf has joined, and has a share from its next packet on.
    Joined(u32),
    /// A leaf has appeared and waits for approval.
    Asks(u32),
    /// A leaf could not join: its parent, of those with children, has no room.
    Full(u32),
    /// A leaf that had joined was silent for long; its place is free.
    Aged(u32),
}

/// How many leaves have gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone(pub u32);

/// Who may join, and what has happened.
#[derive(Debug, Default)]
pub(super) struct Joining {
    /// The first free leaf of each parent that has had one, by parent.
    free: Box<[(u32, u32)]>,
    events: VecDeque<Event>,
    /// Events that nobody fetched in time.
    lost: u64,
    /// Which leaf is looked at next for its age.
    next: u32,
}

impl Joining {
    fn tell(&mut self, event: Event) {
        if self.events.len() == limits::SHARE_EVENTS {
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back(event);
    }

    fn head(&mut self, parent: u32) -> Option<&mut u32> {
        let at = self.free.binary_search_by_key(&parent, |&(parent, _)| parent).ok()?;
        Some(&mut self.free[at].1)
    }
}

impl Weir {
    /// Makes the lists of free leaves, and room for events.
    pub(super) fn chain(&mut self) {
        let mut parents: Vec<u32> = self.leaves.iter().map(|leaf| leaf.child.parent).collect();
        parents.dedup();
        self.joining.free = parents.into_iter().map(|parent| (parent, NONE)).collect();
        self.joining.events = VecDeque::with_capacity(limits::SHARE_EVENTS);
        for at in (0..self.leaves.len()).rev() {
            if self.leaves[at].child.flags.has(Flags::FREE) {
                self.put(number(at));
            }
        }
    }

    /// Puts a leaf on the list of its parent's free ones.
    fn put(&mut self, at: u32) {
        let leaf = &mut self.leaves[at as usize];
        if let Some(head) = self.joining.head(leaf.child.parent) {
            leaf.child.flags.set(Flags::WAITING | Flags::JOINED, false);
            leaf.child.flags.set(Flags::FREE, true);
            leaf.link(*head);
            *head = at;
        }
    }

    /// The leaf of one nobody knows: the first free one below this node with children. With
    /// `ask` its packets wait outside until `approve`.
    pub fn join(&mut self, now: Instant, parent: u32, ask: bool) -> Option<u32> {
        let head = self.joining.head(parent).filter(|head| **head != NONE);
        let Some(head) = head else {
            self.joining.tell(Event::Full(parent));
            return None;
        };
        let at = *head;
        let leaf = &mut self.leaves[at as usize];
        *head = leaf.linked();
        *leaf = Leaf::new(leaf.child);
        // its age counts from here
        leaf.last = now.ns();
        let flags = &mut leaf.child.flags;
        flags.set(Flags::FREE, false);
        flags.set(Flags::JOINED, true);
        flags.set(Flags::WAITING, ask);
        self.joining.tell(if ask { Event::Asks(at) } else { Event::Joined(at) });
        Some(at)
    }

    /// Lets a leaf in that waits.
    pub fn approve(&mut self, leaf: u32) {
        let Some(known) = self.leaves.get_mut(leaf as usize) else { return };
        if known.child.flags.has(Flags::WAITING) {
            known.child.flags.set(Flags::WAITING, false);
            self.joining.tell(Event::Joined(leaf));
        }
    }

    /// Takes out a leaf, or all leaves below a node. What they held is free with the next packet.
    pub fn remove(&mut self, place: Place) -> Gone {
        let mut from = match place {
            Place::Leaf(leaf) => return Gone(self.take_out(leaf)),
            Place::Inner(at) if (at as usize) < self.inner.len() => at,
            Place::Inner(_) => return Gone(0),
        };
        let (mut to, mut gone) = (from + 1, 0);
        // children lie side by side, so those of a range of nodes are a range as well
        while from < to {
            let [first, last] = [from, to]
                .map(|parent| self.leaves.partition_point(|leaf| leaf.child.parent < parent));
            gone += (first..last).map(|at| self.take_out(number(at))).sum::<u32>();
            let below = &self.inner[1..];
            [from, to] = [from, to]
                .map(|parent| 1 + number(below.partition_point(|node| node.child.parent < parent)));
        }
        Gone(gone)
    }

    fn take_out(&mut self, at: u32) -> u32 {
        let Some(leaf) = self.leaves.get(at as usize) else { return 0 };
        let flags = leaf.child.flags;
        if flags.has(Flags::FREE) {
            return 0;
        }
        if flags.has(Flags::ACTIVE) {
            self.retire(at);
        }
        self.put(at);
        1
    }

    /// Looks at `steps` leaves that have joined, and takes out those that were silent for `idle`.
    pub fn age(&mut self, now: Instant, idle: Span, steps: u32) {
        for _ in 0..steps.min(number(self.leaves.len())) {
            let at = self.joining.next;
            self.joining.next = (at + 1) % number(self.leaves.len()).max(1);
            let Some(leaf) = self.leaves.get(at as usize) else { return };
            let gap = now.ns().saturating_sub(leaf.last);
            if leaf.child.flags.has(Flags::JOINED) && gap > idle.ns() {
                self.take_out(at);
                self.joining.tell(Event::Aged(at));
            }
        }
    }

    /// What has happened, the oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.joining.events.pop_front()
    }

    /// How many events nobody fetched before there was no room for them.
    #[cfg(test)]
    pub(super) fn lost_events(&self) -> u64 {
        self.joining.lost
    }

    /// Another weight for a node. Of n siblings each may have 2^32/n at most.
    pub fn set_weight(&mut self, place: Place, weight: u32) {
        let weight = weight.clamp(1, self.weight_most(place));
        self.alter(place, |child| child.weight = weight);
    }

    /// Another guarantee for a node.
    pub fn set_floor(&mut self, place: Place, floor: Rate) {
        let floor = Packed::new(units(floor));
        self.alter(place, |child| child.floor = floor);
        if let Some(child) = self.child(place) {
            let parent = child.parent;
            self.inner[parent as usize].keeps(floor);
        }
    }

    /// Another peak for a node; for the link, another rate.
    pub fn set_peak(&mut self, place: Place, most: Rate) {
        if place == Place::Inner(0) {
            self.capacity = units(most);
            self.size();
        } else {
            self.alter(place, |child| child.peak = peak(most));
        }
    }

    pub(super) fn child(&self, place: Place) -> Option<&Child> {
        match place {
            Place::Inner(0) => None,
            Place::Inner(at) => self.inner.get(at as usize).map(|node| &node.child),
            Place::Leaf(at) => self.leaves.get(at as usize).map(|leaf| &leaf.child),
        }
    }

    /// The most weight that a node may have, so that the sum over its siblings fits.
    pub(super) fn weight_most(&self, place: Place) -> u32 {
        let parent = self.child(place).map_or(0, |child| child.parent);
        let (inner, leaves) = (&self.inner[1..], &self.leaves);
        let siblings = inner.partition_point(|n| n.child.parent <= parent)
            - inner.partition_point(|n| n.child.parent < parent)
            + leaves.partition_point(|l| l.child.parent <= parent)
            - leaves.partition_point(|l| l.child.parent < parent);
        (u32::MAX / number(siblings).max(1)).min(limits::SHARE_WEIGHT)
    }

    /// Changes a node: it leaves its parent as it was and joins it again as it is.
    fn alter(&mut self, place: Place, change: impl FnOnce(&mut Child)) {
        let Some(&Child { parent, flags, .. }) = self.child(place) else { return };
        let was = self.inner[parent as usize].demand();
        let (node, child, wants) = match place {
            Place::Leaf(at) => {
                let leaf = &mut self.leaves[at as usize];
                let wants = leaf.wants();
                (&mut self.inner[parent as usize], &mut leaf.child, wants)
            }
            Place::Inner(at) => {
                let (above, below) = self.inner.split_at_mut(at as usize);
                let here = &mut below[0];
                (&mut above[parent as usize], &mut here.child, here.sums.demand)
            }
        };
        if flags.has(Flags::ACTIVE) {
            node.sums.leave(child, wants.min(child.peak.get()));
            change(child);
            let demand = wants.min(child.peak.get());
            node.sums.join(child, demand);
            node.sums.look(child, demand);
        } else {
            change(child);
        }
        self.rise(parent, was);
    }
}

impl Inner {
    /// Notes that a child has a guarantee.
    pub(super) fn keeps(&mut self, floor: Packed) {
        if floor.get() > 0 {
            self.child.flags.set(Flags::KEEPS, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Node, Options};

    #[test]
    fn there_is_room_for_all_events_from_the_start() {
        let nodes = [Node::link(Rate::from_bps(1_000)), Node::leaf(0, 1)];
        let (weir, _) = Weir::new(&nodes, Options::TCP).expect("is a tree");
        assert!(weir.joining.events.capacity() >= limits::SHARE_EVENTS);
    }

    #[test]
    fn a_node_keeps_only_what_is_more_than_nothing() {
        let nodes = [Node::link(Rate::from_bps(1_000)), Node::leaf(0, 1)];
        let (mut weir, _) = Weir::new(&nodes, Options::TCP).expect("is a tree");
        weir.inner[0].keeps(Packed::new(0));
        assert!(!weir.inner[0].child.flags.has(Flags::KEEPS));
        weir.inner[0].keeps(Packed::new(1));
        assert!(weir.inner[0].child.flags.has(Flags::KEEPS));
    }
}
