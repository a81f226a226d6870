//! What nodes have that follow real time: ceilings, and guarantees that their weight would not keep
//! (owed.rs). Most nodes have neither, so all of it lies apart from them.

use weir_units::Instant;

use super::ceiling::{Ceiling, Clock};
use super::heap::Entry;
use super::node::{Flags, Node};
use super::owed::Due;
use super::timer::Timer;

/// The clocks of all nodes, by number.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// What nodes with a ceiling of their own have.
    pub(crate) ceilings: Vec<(Ceiling, Clock)>,
    /// What nodes have whose guarantee is more than their weight gives.
    pub(crate) dues: Vec<Due>,
    /// Nodes that wait for their ceiling, by when it lets them.
    pub(crate) timer: Timer,
}

impl Clocks {
    pub(crate) fn with_capacity(numbers: usize) -> Clocks {
        Clocks {
            ceilings: Vec::with_capacity(numbers),
            dues: Vec::with_capacity(numbers),
            timer: Timer::with_capacity(numbers),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.ceilings[..]) + size_of_val(&self.dues[..]) + self.timer.bytes()
    }

    /// A node that has a clock has sent; `stays`: it has more to send. Returns whether it may do so
    /// now.
    #[inline(never)]
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        bytes: u64,
        stays: bool,
    ) -> bool {
        if !node.has_ceiling() {
            return stays;
        }
        let (ceiling, clock) = &mut self.ceilings[number as usize];
        let held = ceiling.send(clock, now, bytes);
        // one that has nothing more to send finds out later whether it may
        let Some(until) = held.filter(|_| stays) else { return stays };
        self.hold(number, node, until);
        false
    }

    /// Whether the ceiling of a node forbids it to send: then it is held until it may.
    pub(crate) fn holds(&mut self, now: Instant, number: u32, node: &mut Node) -> bool {
        let Some(until) = self.ceilings[number as usize].1.not_before(now) else { return false };
        self.hold(number, node, until);
        true
    }

    /// Another ceiling, or an edit, lets a node that is held go: it asks again whether it may send.
    pub(crate) fn releases(&mut self, number: u32, node: &mut Node) {
        node.share.flags.clear(Flags::HELD);
        self.timer.remove(number);
    }

    fn hold(&mut self, number: u32, node: &mut Node, until: Instant) {
        node.share.flags.set(Flags::HELD);
        self.timer.push(Entry { key: until.ns(), node: number });
    }

    /// Who is held no longer, one after the other.
    #[inline]
    pub(crate) fn let_go(&mut self, now: Instant) -> Option<Entry> {
        self.timer.first().filter(|first| first.key <= now.ns())?;
        self.timer.pop()
    }

    /// When somebody is let go, if anyone is held.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.timer.first().map(|first| Instant::from_ns(first.key))
    }
}
