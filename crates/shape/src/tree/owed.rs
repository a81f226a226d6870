//! Guarantees that weights alone would not keep: each such child has a clock, and when that is due
//! the child goes before all others. Of those that are due the one goes first whose frame should be
//! gone first, so that one with a high rate need not wait for all that have low ones and are due
//! since earlier.
//!
//! The clocks of a node's children follow a time of the node's own. That goes as real time does
//! while the node has what its children are promised. Where it has less, for whatever reason, the
//! first of those that are due comes late; from some frames on the node's time waits for it, and so
//! all guarantees are scaled alike. What was missing then is not made up for later. A node that is
//! served in a row, with pauses in which its siblings are, has what it is promised all the same:
//! its children may be late by the longest of its pauses too (pauses.rs).
//!
//! While a child without a guarantee wants something too, clocks take 99 % at most.

mod due;

use weir_units::{Instant, Rate};

use super::heap::{Entry, Heap, before};
use super::interior::{FREED, MOVED, WOKEN, within};
use super::node::{Flags, Node};
use super::pauses::{Carried, Pauses};
pub(crate) use due::Due;

/// The time of guarantees, in parts of a nanosecond.
pub(super) const PARTS: u64 = 16;
/// Bits behind the point of the time that a byte takes.
const FRACTION: u32 = 16;
/// Bytes of the frame by which it is decided who should finish first.
const FRAME: u64 = 1_536;
/// Frames, the largest of its node, that a child is late when time begins to wait for it, where its
/// node is served all the time.
const LATE: u64 = 2;
/// How far virtual time may run on while children are due.
const FARTHEST: u64 = 1 << 60;
/// Bytes that clocks may take for one that goes by weight, while a child has no guarantee.
const BY_CLOCK: i64 = 99;

/// The children of one node that have such a clock, and its time.
#[derive(Debug)]
pub(crate) struct Owed {
    /// Those that are not due yet, by when they are.
    coming: Heap,
    /// Those that are, by when their frame should be gone.
    due: Heap,
    /// How far the node's time is behind real time.
    pub(super) behind: u64,
    /// Bytes of guarantees for which nothing went by weight yet; below zero what a large frame had
    /// by weight in advance.
    pub(super) by_clock: i64,
    /// The largest frame that any child has sent: while it is on the line, others come late.
    pub(super) largest: u64,
    /// The node's virtual time when a child was last chosen by weight, and whether others have gone
    /// before since.
    pub(super) chosen_at: u64,
    runs_on: bool,
    /// The pauses in which others of the tree are served.
    pub(super) pauses: Pauses,
    /// When the frame of the first that is due should be gone.
    first: Option<u64>,
    /// Children without a guarantee that have something to send.
    others: u32,
}

/// How long a byte takes, in parts of a nanosecond with 16 bits behind the point.
pub(super) fn time_per_byte(rate: Rate) -> u64 {
    let parts = (8_000_000_000 * u128::from(PARTS)) << FRACTION;
    u64::try_from(parts / u128::from(rate.bps().max(8))).unwrap_or(u64::MAX)
}

/// The time of so many bytes, in parts of a nanosecond.
pub(super) const fn time_for(bytes: u64, per_byte: u64) -> u64 {
    bytes.saturating_mul(per_byte) >> FRACTION
}

impl Owed {
    pub(crate) fn with_capacity(children: usize) -> Owed {
        Owed {
            coming: Heap::with_capacity(children),
            due: Heap::with_capacity(children),
            behind: 0,
            by_clock: 0,
            largest: FRAME,
            chosen_at: 0,
            runs_on: false,
            pauses: Pauses::default(),
            first: None,
            others: 0,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.coming.capacity()
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Owed>() + self.coming.bytes() + self.due.bytes()
    }

    /// What time it is for the clocks.
    pub(crate) fn time(&self, now: Instant) -> u64 {
        now.ns().wrapping_mul(PARTS).wrapping_sub(self.behind)
    }

    /// A child has something to send.
    #[inline]
    pub(super) fn joins<const HOW: u8>(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        due: &mut Due,
    ) {
        if HOW == MOVED {
            self.is_joined(now, due);
        }
        if !node.share.flags.has(Flags::OWED) {
            self.others += 1;
            return;
        }
        match HOW {
            WOKEN => due.begins(self.begin(now, due)),
            // it may be as late as before
            FREED => due.begins(self.time(now).wrapping_sub(self.pauses.longest())),
            _ => {}
        }
        self.comes(number, node, due);
    }

    /// When the clock of a child that wakes begins: now; or where its siblings are late, so that it
    /// goes with the first of them, neither behind all that they may be late nor before them.
    fn begin(&self, now: Instant, due: &Due) -> u64 {
        let time = self.time(now);
        let earliest = time.wrapping_sub(self.pauses.longest());
        self.first.map_or(time, |end| within(end.wrapping_sub(due.time_for(FRAME)), earliest, time))
    }

    /// This child alone has something to send.
    pub(super) fn has_only(&mut self, now: Instant, node: &Node, due: &Due) {
        let is_due = node.share.flags.has(Flags::OWED) && !before(self.time(now), due.at);
        self.first = is_due.then(|| due.end());
    }

    /// Nobody has anything to send.
    pub(super) const fn has_nobody(&mut self) {
        self.first = None;
    }

    /// A child that has something to send waits for its clock.
    pub(super) fn comes(&mut self, number: u32, node: &mut Node, due: &Due) {
        if !node.share.flags.has(Flags::LISTED_OWED) {
            node.share.flags.set(Flags::LISTED_OWED);
            self.coming.push(Entry { key: due.at, node: number });
        }
    }

    /// A child has nothing more to send.
    pub(crate) fn sleeps(&mut self, node: &Node) {
        if !node.share.flags.has(Flags::OWED) {
            self.others -= 1;
        }
    }

    /// Children without a guarantee that have something to send.
    pub(super) const fn others(&self) -> u32 {
        self.others
    }

    /// Whose clocks are noted.
    pub(super) fn noted(&self) -> impl Iterator<Item = u32> {
        self.coming.all().chain(self.due.all()).map(|entry| entry.node)
    }

    /// Whether a child is noted later than it is due: it would be found too late.
    pub(super) fn misses(&self, number: u32, dues: &[Due]) -> bool {
        let due = &dues[number as usize];
        let is_late = |heap: &Heap, at: u64| {
            heap.all().any(|entry| entry.node == number && before(at, entry.key))
        };
        is_late(&self.coming, due.at) || is_late(&self.due, due.end())
    }

    /// A child was served; with its frame the line has carried so much.
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        node: &Node,
        due: &mut Due,
        (bytes, line): (u64, &Carried),
    ) {
        self.largest = self.largest.max(bytes);
        self.pauses.sent(bytes, line);
        let is_owed = node.share.flags.has(Flags::OWED);
        let by_weight = if is_owed { due.sent(self.time(now), bytes) } else { bytes };
        self.by_clock = if self.others == 0 {
            0
        } else {
            let by_clock = (bytes - by_weight).cast_signed();
            let by_weight = by_weight.cast_signed();
            // a frame larger than a full one costs clocks no less than others do; what small ones
            // had while clocks did not want it is forgotten
            let least = self.by_clock.min(BY_CLOCK * (FRAME.cast_signed() - by_weight).min(0));
            (self.by_clock + by_clock - BY_CLOCK * by_weight).max(least)
        };
    }

    /// The clock of a child's guarantee, which has become another one. It may be as late as before,
    /// but no later than any: where it was due later because the weight kept it too, and is no
    /// more, the time would wait for it, and everyone else's clock with it.
    pub(super) fn goes_on(&self, now: Instant, new: &Due, before: &Due) -> Due {
        let mut due = new.after(before, self.time(now));
        self.is_joined(now, &mut due);
        due
    }

    /// A child that was alone gets company. What it still lacks from when it had company before is
    /// kept: it may be alone for less than that takes, each time.
    pub(crate) fn is_joined(&self, now: Instant, due: &mut Due) {
        let earliest = self.time(now).wrapping_sub(self.latest(due));
        if before(due.at, earliest) {
            due.at = earliest;
        }
    }

    /// A clock is about to begin. Where nobody has been served for a while, time has gone on and
    /// not waited for those that are due; a clock that began there would be far ahead of it once
    /// it does wait.
    #[inline(never)]
    pub(super) fn waits(&mut self, now: Instant, nodes: &mut [Node], dues: &[Due]) {
        let _ = self.due(now, nodes, dues);
    }

    /// The child that goes before others because it is due. Virtual time was `was` when the last
    /// was chosen; it runs on while children are due.
    #[inline(never)]
    pub(super) fn next(
        &mut self,
        now: Instant,
        was: u64,
        nodes: &mut [Node],
        dues: &[Due],
    ) -> Option<u32> {
        let farthest = was.wrapping_sub(FARTHEST);
        if !self.runs_on {
            self.chosen_at = was;
        } else if before(self.chosen_at, farthest) {
            // what is remembered stays on the same half of the circle
            self.chosen_at = farthest;
        }
        let due = self.due(now, nodes, dues);
        self.runs_on = due.is_some();
        due
    }

    /// Virtual time is where it should be.
    pub(super) const fn stands(&mut self) {
        self.runs_on = false;
    }

    /// Where virtual time was when a child was last chosen by weight, if it has run on since.
    pub(super) fn ran_on_from(&self) -> Option<u64> {
        self.runs_on.then_some(self.chosen_at)
    }

    /// The child whose guarantee is due. Entries are put right when they come to the top.
    pub(crate) fn due(&mut self, now: Instant, nodes: &mut [Node], dues: &[Due]) -> Option<u32> {
        let time = self.time(now);
        self.have_come(time, nodes, dues);
        while let Some(first) = self.due.first() {
            let flags = &mut nodes[first.node as usize].share.flags;
            let due = &dues[first.node as usize];
            if !flags.has_all(Flags::ACTIVE | Flags::OWED) {
                self.due.pop();
                flags.clear(Flags::LISTED_OWED);
            } else if before(time, due.at) {
                // it has sent since
                self.due.pop();
                self.coming.push(Entry { key: due.at, node: first.node });
            } else if due.end() == first.key {
                self.waits_for(due, time);
                self.first = Some(first.key);
                let is_enough = self.others > 0 && self.by_clock >= BY_CLOCK * FRAME.cast_signed();
                return (!is_enough).then_some(first.node);
            } else {
                self.due.put_back(due.end());
            }
        }
        self.first = None;
        None
    }

    /// How late a child may be.
    fn latest(&self, due: &Due) -> u64 {
        due.time_for(LATE * self.largest).saturating_add(self.pauses.longest())
    }

    /// The first of all that are due is never later than that.
    fn waits_for(&mut self, due: &Due, time: u64) {
        let latest = due.at.wrapping_add(self.latest(due));
        if before(latest, time) {
            self.behind = self.behind.wrapping_add(time.wrapping_sub(latest));
        }
    }

    /// Whoever is due by now is among those that are.
    fn have_come(&mut self, time: u64, nodes: &mut [Node], dues: &[Due]) {
        while let Some(first) = self.coming.first().filter(|first| !before(time, first.key)) {
            let flags = &mut nodes[first.node as usize].share.flags;
            let due = &dues[first.node as usize];
            if !flags.has_all(Flags::ACTIVE | Flags::OWED) {
                self.coming.pop();
                flags.clear(Flags::LISTED_OWED);
            } else if before(time, due.at) {
                self.coming.put_back(due.at);
            } else {
                self.coming.pop();
                self.due.push(Entry { key: due.end(), node: first.node });
            }
        }
    }

    /// From now on children are noted in the heaps of `memory`.
    pub(super) fn begins_anew(&mut self, memory: &mut Owed) {
        self.coming.begins_anew(&mut memory.coming);
        self.due.begins_anew(&mut memory.due);
    }

    /// Keeps those that have a clock and something to send, by what their clock says now.
    pub(super) fn reviews(
        &mut self,
        budget: &mut usize,
        (nodes, dues): (&mut [Node], &[Due]),
        memory: &mut Owed,
    ) -> bool {
        let mut is_wanted = |number: u32| {
            let flags = &mut nodes[number as usize].share.flags;
            let is_wanted = flags.has_all(Flags::ACTIVE | Flags::OWED);
            if !is_wanted {
                flags.clear(Flags::LISTED_OWED);
            }
            is_wanted
        };
        let due = |number: u32| &dues[number as usize];
        let is_reviewed = self.coming.reviews(budget, &mut memory.coming, |entry| {
            is_wanted(entry.node).then(|| Entry { key: due(entry.node).at, ..entry })
        }) && self.due.reviews(budget, &mut memory.due, |entry| {
            is_wanted(entry.node).then(|| Entry { key: due(entry.node).end(), ..entry })
        });
        // who came up meanwhile is noted here and may have lost its clock since
        is_reviewed
            && [&mut self.coming, &mut self.due].into_iter().all(|heap| {
                while *budget > 0 && heap.first().is_some_and(|first| !is_wanted(first.node)) {
                    let _ = heap.pop();
                    *budget -= 1;
                }
                // else there may be more of them
                *budget > 0 || heap.first().is_none()
            })
    }
}

#[cfg(test)]
mod tests;
