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
    /// Bytes of guarantees for which nothing went by weight yet; below zero what went by weight in
    /// advance.
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
            let by_weight = BY_CLOCK * by_weight.cast_signed();
            // what is more than a full frame of the largest has its hundred times as much too
            let least = BY_CLOCK * (FRAME.cast_signed() - self.largest.cast_signed());
            (self.by_clock + by_clock - by_weight).max(least)
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
mod tests {
    use super::*;

    /// A child's byte at 1 Mbit/s.
    const BYTE: u64 = 8_000 * PARTS;

    /// Some children, by their clock; those without one have no guarantee.
    struct World {
        owed: Owed,
        nodes: Vec<Node>,
        dues: Vec<Due>,
        now: Instant,
    }

    impl World {
        fn new(rates: &[u64]) -> World {
            let mut nodes = vec![Node::default(); rates.len()];
            for (node, &rate) in nodes.iter_mut().zip(rates) {
                node.share.flags.set(Flags::ACTIVE | Flags::CLOCKS);
                if rate > 0 {
                    node.share.flags.set(Flags::OWED);
                }
            }
            let dues = rates.iter().map(|&rate| Due::new(Rate::from_bps(rate), false)).collect();
            let mut world = World {
                owed: Owed::with_capacity(rates.len()),
                nodes,
                dues,
                now: Instant::from_ns(1_000_000_000),
            };
            for (number, at) in (0..).zip(0..rates.len()) {
                let (node, due) = (&mut world.nodes[at], &mut world.dues[at]);
                world.owed.joins::<WOKEN>(world.now, number, node, due);
            }
            world
        }

        fn due(&mut self) -> Option<u32> {
            self.owed.due(self.now, &mut self.nodes, &self.dues)
        }

        fn sent(&mut self, number: usize, bytes: u64) {
            let sent = (bytes, &Carried::default());
            self.owed.sent(self.now, &self.nodes[number], &mut self.dues[number], sent);
        }

        fn after(&mut self, us: u64) {
            self.now += weir_units::Span::from_us(us);
        }
    }

    #[test]
    fn who_is_due_goes_by_when_its_frame_should_be_gone() {
        let mut world = World::new(&[1_000_000, 4_000_000]);
        assert_eq!(world.due(), Some(1));
        world.sent(1, 1_000);
        assert_eq!(world.due(), Some(0));
        world.sent(0, 1_000);
        assert_eq!(world.due(), None);
        // 1000 bytes take 2 ms and 8 ms
        world.after(1_999);
        assert_eq!(world.due(), None);
        world.after(1);
        assert_eq!(world.due(), Some(1));
        // one that has nothing to send is not due, and wakes without what it missed
        world.nodes[1].share.flags.clear(Flags::ACTIVE);
        assert_eq!(world.due(), None);
        world.after(6_000);
        assert_eq!(world.due(), Some(0));
        world.nodes[1].share.flags.set(Flags::ACTIVE);
        let (node, due) = (&mut world.nodes[1], &mut world.dues[1]);
        world.owed.joins::<WOKEN>(world.now, 1, node, due);
        assert_eq!(world.dues[1].at, world.owed.time(world.now));
        assert_eq!(world.due(), Some(1));
    }

    #[test]
    fn time_waits_for_one_that_is_two_frames_late() {
        let mut world = World::new(&[1_000_000]);
        world.after(8 * 2 * 1_536);
        assert_eq!((world.due(), world.owed.behind), (Some(0), 0));
        world.after(5);
        assert_eq!((world.due(), world.owed.behind), (Some(0), 5_000 * PARTS));
        world.after(5);
        assert_eq!((world.due(), world.owed.behind), (Some(0), 10_000 * PARTS));
        // frames of its node may be larger
        world.sent(0, 9_000);
        world.after(8 * (9_000 + 2 * 9_000 - 2 * 1_536));
        assert_eq!((world.due(), world.owed.behind), (Some(0), 10_000 * PARTS));
    }

    #[test]
    fn a_clock_that_begins_after_a_pause_is_not_ahead() {
        let mut world = World::new(&[1_000_000, 1_000_000]);
        world.sent(1, 1_000);
        world.nodes[1].share.flags.clear(Flags::ACTIVE);
        // a thousand frames' time, of which the first child is late for all but two
        world.after(8 * 1_536 * 1_000);
        world.owed.waits(world.now, &mut world.nodes, &world.dues);
        assert_eq!(world.owed.behind, 998 * FRAME * BYTE);
        world.nodes[1].share.flags.set(Flags::ACTIVE);
        let (node, due) = (&mut world.nodes[1], &mut world.dues[1]);
        world.owed.joins::<WOKEN>(world.now, 1, node, due);
        assert_eq!(world.dues[1].at, world.dues[0].at + 2 * FRAME * BYTE);
        assert_eq!(world.due(), Some(0));
        assert_eq!(world.owed.behind, 998 * FRAME * BYTE);
    }

    #[test]
    fn who_is_noted_later_than_it_is_due_would_be_missed() {
        for is_due in [false, true] {
            let mut world = World::new(&[1_000_000, 2_000_000]);
            if is_due {
                assert_eq!(world.due(), Some(1));
            }
            assert!(!world.owed.misses(0, &world.dues) && !world.owed.misses(1, &world.dues));
            world.dues[0].at += 1;
            assert!(!world.owed.misses(0, &world.dues));
            world.dues[0].at -= 2;
            assert!(world.owed.misses(0, &world.dues) && !world.owed.misses(1, &world.dues));
        }
    }

    #[test]
    fn who_gets_company_lacks_no_more_than_two_frames() {
        let mut world = World::new(&[1_000_000]);
        let at = world.dues[0].at;
        world.after(8 * 2 * 1_536);
        world.owed.is_joined(world.now, &mut world.dues[0]);
        assert_eq!(world.dues[0].at, at);
        world.after(8);
        world.owed.is_joined(world.now, &mut world.dues[0]);
        assert_eq!(world.dues[0].at, at + BYTE);
    }

    #[test]
    fn a_child_without_a_guarantee_keeps_a_hundredth() {
        // more than any line carries: it is due all the time
        let mut world = World::new(&[1_000_000_000_000, 0]);
        let mut by_clock = 0;
        for _ in 0..10_000 {
            world.after(12);
            if world.due() == Some(0) {
                world.sent(0, 1_536);
                by_clock += 1;
            } else {
                world.sent(1, 1_536);
            }
        }
        assert!((9_898..=9_902).contains(&by_clock), "{by_clock}");
        // nor is anything kept for one that has nothing to send
        world.nodes[1].share.flags.clear(Flags::ACTIVE);
        world.owed.sleeps(&world.nodes[1]);
        for _ in 0..1_000 {
            world.after(12);
            assert_eq!(world.due(), Some(0));
            world.sent(0, 1_536);
        }
        assert_eq!(world.owed.by_clock, 0);
    }

    #[test]
    fn clocks_take_99_of_a_hundred_frames_and_then_one_goes_by_weight() {
        let mut world = World::new(&[1_000_000_000_000, 0]);
        for _ in 0..3 {
            for _ in 0..99 {
                world.after(12);
                assert_eq!(world.due(), Some(0));
                world.sent(0, 1_536);
            }
            world.after(12);
            assert_eq!(world.due(), None);
            world.sent(1, 1_536);
        }
        for _ in 0..99 {
            world.after(12);
            world.sent(0, 1_536);
        }
        world.after(12);
        assert_eq!(world.due(), None);
        // and none once nobody is left for whom it would be kept
        world.owed.sleeps(&world.nodes[1]);
        assert_eq!(world.due(), Some(0));
    }

    /// The clocks of all are noted anew, so many at a time.
    fn reviews(world: &mut World, memory: &mut Owed, mut budget: usize) -> (bool, usize) {
        let tables = (&mut world.nodes[..], &world.dues[..]);
        let is_over = world.owed.reviews(&mut budget, tables, memory);
        (is_over, budget)
    }

    fn noted(world: &World) -> Vec<u32> {
        let mut noted: Vec<u32> = world.owed.noted().collect();
        noted.sort_unstable();
        noted
    }

    #[test]
    fn clocks_that_are_due_are_noted_anew_as_well() {
        let mut world = World::new(&[4_000_000, 1_000_000, 2_000_000]);
        // all are due, the first soonest
        assert_eq!(world.due(), Some(0));
        let mut memory = Owed::with_capacity(3);
        world.owed.begins_anew(&mut memory);
        world.nodes[1].share.flags.clear(Flags::OWED);
        assert_eq!(reviews(&mut world, &mut memory, 2), (false, 0));
        assert_eq!(reviews(&mut world, &mut memory, 2), (true, 1));
        assert_eq!(noted(&world), [0, 2]);
        assert!(!world.nodes[1].share.flags.has(Flags::LISTED_OWED));
        // their memory is there again
        assert_eq!((memory.coming.capacity(), memory.due.capacity()), (3, 3));
    }

    #[test]
    fn clocks_that_were_lost_meanwhile_go_some_at_a_time() {
        for (budget, is_over, left) in [(2, false, 3), (4, false, 1), (5, true, 0), (6, true, 0)] {
            let mut world = World::new(&[1_000_000; 5]);
            world.nodes.iter_mut().for_each(|node| node.share.flags.clear(Flags::OWED));
            let mut memory = Owed::with_capacity(5);
            let spent = budget.min(5);
            assert_eq!(reviews(&mut world, &mut memory, budget), (is_over, budget - spent));
            assert_eq!(noted(&world).len(), left, "{budget}");
        }
    }
}
