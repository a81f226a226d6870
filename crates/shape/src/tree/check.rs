//! What must be so at any moment between two calls, whatever came before: what a tree says of
//! itself in two places agrees. For tests; it looks at everything.

use std::collections::BTreeMap;

use super::node::{Flags, Kind, Node};
use super::{LINK, Tree};

impl Tree {
    /// Whether the tree agrees with itself. `is_done`: no edit is under way.
    ///
    /// # Errors
    /// All that does not.
    #[doc(hidden)]
    pub fn check(&self, is_done: bool) -> Result<(), String> {
        let mut wrong = Wrong::default();
        let waiting: u32 = self.nodes.iter().map(|node| node.chain.frames()).sum();
        wrong.unless(waiting as usize == self.waiting, || {
            format!("{waiting} frames wait in leaves, and {} are counted", self.waiting)
        });
        let held = self.nodes.iter().filter(|node| node.share.flags.has(Flags::HELD)).count();
        wrong.unless(self.clocks.timer.len() == held, || {
            format!("{held} nodes are held, and {} are in the timer", self.clocks.timer.len())
        });
        let mut families: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, node) in (0..).zip(&self.nodes) {
            if node.kind == Kind::None {
                let has_frames = is_done && !node.chain.is_empty();
                wrong.unless(!has_frames, || format!("{number} is gone and has frames"));
                let is_known = is_done && node.share.flags.noted() != 0;
                wrong.unless(!is_known, || format!("{number} is gone and is noted"));
            } else if number != LINK {
                families.entry(node.parent).or_default().push(number);
                self.check_node(number, node, is_done, &mut wrong);
            }
        }
        for (number, interior) in (0..).zip(&self.interiors) {
            let is_parent = self.nodes[number as usize].kind == Kind::Interior;
            let children = families.remove(&number).filter(|_| is_parent).unwrap_or_default();
            let is_silent = is_parent || !interior.is_active();
            wrong.unless(is_silent, || format!("{number} is no parent and has children awake"));
            let told = interior.check((&self.nodes, &self.clocks.dues), &children, is_done);
            wrong.0.extend(told.into_iter().map(|what| format!("below {number}: {what}")));
        }
        wrong.0.extend(families.keys().map(|number| format!("{number} has children, and is none")));
        if wrong.0.is_empty() { Ok(()) } else { Err(wrong.0.join("\n")) }
    }

    fn check_node(&self, number: u32, node: &Node, is_done: bool, wrong: &mut Wrong) {
        let flags = node.share.flags;
        let sends = flags.has(Flags::ACTIVE);
        let (has, is_held) = (self.has_something(number), node.is_held());
        wrong.unless(!has || sends || is_held, || format!("{number} has frames and sleeps"));
        wrong.unless(!(sends && is_held), || format!("{number} is awake and held"));
        let is_parent = node.kind == Kind::Interior;
        wrong.unless(!(is_parent && sends) || has, || format!("{number} is awake for nobody"));
        wrong.unless(!(is_done && flags.has(Flags::PARKED)), || format!("{number} is parked"));
        if flags.has(Flags::HELD) {
            let until = self.clocks.ceilings[number as usize].1.free_at().ns();
            let is_known = self.clocks.timer.is_until(number, until);
            wrong.unless(is_known, || format!("{number} is held for ever"));
        }
        let is_in_ring = self.queues.longest.has(number, node.ring);
        wrong.unless(is_in_ring, || format!("{number} is not in its ring {}", node.ring));
        let is_leaf_with_frames = node.is_leaf() && node.chain.frames() > 0;
        wrong.unless(is_leaf_with_frames || !is_parent || node.ring == 0, || {
            format!("{number} is no leaf and in ring {}", node.ring)
        });
        let is_low = is_leaf_with_frames && self.queues.longest.is_low(node);
        wrong.unless(!is_low, || format!("{number} is in a ring too low"));
    }
}

/// All that does not agree.
#[derive(Default)]
pub(super) struct Wrong(pub(super) Vec<String>);

impl Wrong {
    pub(super) fn unless(&mut self, is_right: bool, what: impl FnOnce() -> String) {
        if !is_right {
            self.0.push(what());
        }
    }
}
