//! Which child of a node is next: worst-case fair weighted fair queueing (WF2Q+, Bennett and Zhang
//! 1996) among the children that have something to send.
//!
//! Each child carries the virtual time `s` at which its next frame should start, each node the
//! virtual time `v` up to which it has served. Children with `s <= v` are within their share; of
//! them the one of the highest priority goes next, among equals the one that should finish first.
//! Children of like weight and priority share a calendar, so that finding the next looks at one
//! child per kind. A child that was served moves on by its frame's bytes over its weight: shares
//! are exact whatever the order.
//!
//! A child that is served leaves its calendar and is noted again. Two may stay noted where they no
//! longer belong, and are put right when their day comes: one that is alone (nobody competes, so
//! nothing is looked up), and one that was served because its guarantee was due (owed.rs).

use weir_units::Instant;

use super::calendar::Calendar;
use super::heap::before;
use super::node::{Flags, NONE, Node};
use super::owed::{Due, Owed};

/// Virtual time per byte of a child that has all the weight of its node: 2^16.
pub(crate) const UNIT: u32 = 16;
/// Bytes of the frame by which it is decided who should finish first.
pub(crate) const FRAME: u64 = 1_536;

/// A node with children.
#[derive(Debug, Default)]
pub(crate) struct Interior {
    v: u64,
    active_weight: u64,
    total_weight: u64,
    /// Virtual time per byte of the node as a whole; 0: to be computed anew.
    per_byte: u64,
    /// Children that have something to send.
    active: u32,
    /// One alone: which, if it is known. Several: bytes of the frame that is on the line, for which
    /// `v` has not moved on yet.
    slot: Slot,
    kinds: Box<[Calendar]>,
    owed: Option<Box<Owed>>,
}

/// A child's number and 1, or bytes; 0: none.
#[derive(Clone, Copy, Debug, Default)]
struct Slot(u32);

/// Which child is next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Next {
    pub(crate) number: u32,
    /// It is no longer noted in its calendar.
    taken: bool,
    /// It is next because its guarantee was due.
    owed: bool,
}

const _: () = assert!(size_of::<Interior>() == 64);

impl Interior {
    pub(crate) fn new(kinds: Box<[Calendar]>, owed: Option<Box<Owed>>, total: u64) -> Interior {
        Interior { kinds, owed, total_weight: total, ..Interior::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.kinds) + self.owed.as_ref().map_or(0, |owed| owed.bytes())
    }

    /// Whether any child has something to send.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active > 0
    }

    /// A child has something to send.
    #[inline]
    pub(crate) fn wake(&mut self, now: Instant, number: u32, nodes: &mut [Node], dues: &mut [Due]) {
        if self.active == 1 {
            self.is_joined(nodes);
        }
        let node = &mut nodes[number as usize];
        let share = &mut node.share;
        debug_assert!(!share.flags.has(Flags::ACTIVE), "a child that is awake was woken");
        if before(share.s, self.v) {
            share.s = self.v;
        }
        share.flags.set(Flags::ACTIVE);
        self.active_weight += share.weight;
        self.per_byte = 0;
        self.active += 1;
        if share.flags.has(Flags::OWED)
            && let Some(owed) = &mut self.owed
        {
            owed.wake(now, number, node, &mut dues[number as usize]);
        }
        if self.active == 1 {
            self.slot = Slot(number + 1);
        } else if !node.share.flags.has(Flags::LISTED) {
            self.calendar(node.share.group).note(number, node);
        }
    }

    /// The child that was alone gets company: its place counts again. Time is where it began its
    /// last frame.
    fn is_joined(&mut self, nodes: &mut [Node]) {
        let Some(number) = std::mem::take(&mut self.slot).0.checked_sub(1) else { return };
        let node = &mut nodes[number as usize];
        if !node.share.flags.has(Flags::LISTED) {
            self.calendar(node.share.group).note(number, node);
        }
    }

    /// The child that goes next; `None` when none has anything to send.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, nodes: &mut [Node], dues: &[Due]) -> Option<Next> {
        if self.active > 1 {
            self.move_on();
        } else if let Some(number) = self.slot.0.checked_sub(1) {
            return Some(Next { number, taken: false, owed: false });
        }
        if let Some(owed) = &mut self.owed
            && let Some(number) = owed.due(now, nodes, dues)
        {
            return Some(Next { number, taken: false, owed: true });
        }
        if let [calendar] = &mut *self.kinds {
            let number = first(calendar, nodes)?;
            let least = calendar.start();
            self.v = within(self.v, least, least.wrapping_add(calendar.frame));
            calendar.take_first(&mut nodes[number as usize]);
            return Some(Next { number, taken: true, owed: false });
        }
        self.next_of_kinds(nodes)
    }

    /// The child that is likely to go after the one just told; a guess.
    #[inline]
    pub(crate) fn follower(&self) -> u32 {
        self.kinds.first().map_or(NONE, Calendar::guess)
    }

    fn next_of_kinds(&mut self, nodes: &mut [Node]) -> Option<Next> {
        let (mut least_s, mut least_f) = (None, None);
        for calendar in &mut self.kinds {
            if first(calendar, nodes).is_none() {
                continue;
            }
            let (s, f) = (calendar.start(), calendar.start().wrapping_add(calendar.frame));
            if least_s.is_none_or(|least| before(s, least)) {
                least_s = Some(s);
            }
            if least_f.is_none_or(|least| before(f, least)) {
                least_f = Some(f);
            }
        }
        // nobody is within its share: time moves on to the first that will be; and it never runs
        // past the moment by which somebody should have finished
        self.v = within(self.v, least_s?, least_f?);
        let mut best: Option<(u8, u64, usize)> = None;
        for (at, calendar) in self.kinds.iter().enumerate() {
            if calendar.is_empty() || before(self.v, calendar.start()) {
                continue;
            }
            let (priority, f) = (calendar.priority, calendar.start().wrapping_add(calendar.frame));
            let is_better = best
                .is_none_or(|(p, least, _)| priority < p || (priority == p && before(f, least)));
            if is_better {
                best = Some((priority, f, at));
            }
        }
        let calendar = &mut self.kinds[best?.2];
        let number = calendar.first()?;
        calendar.take_first(&mut nodes[number as usize]);
        Some(Next { number, taken: true, owed: false })
    }

    /// A frame of `bytes` of the child that was next has been sent; `stays`: it can send more now.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        next: Next,
        node: &mut Node,
        dues: &mut [Due],
        bytes: u64,
        stays: bool,
    ) {
        let share = &mut node.share;
        if self.active > 1 {
            // what a guarantee took is not what weights share: time stands still for it
            if !next.owed {
                self.move_on();
                self.slot = Slot(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
        } else if before(self.v, share.s) {
            // a child that is alone takes virtual time along
            self.v = share.s;
        }
        share.s = share.s.wrapping_add(bytes.wrapping_mul(share.per_byte));
        if share.flags.has(Flags::OWED) {
            dues[next.number as usize].sent(now, bytes);
            // what the guarantee gave is not held against the child for long
            let most = self.v.wrapping_add(2 * FRAME * share.per_byte);
            if next.owed && before(most, share.s) {
                share.s = most;
            }
        }
        if !stays {
            if self.active > 1 {
                self.move_on();
            }
            share.flags.clear(Flags::ACTIVE);
            self.active_weight -= share.weight;
            self.per_byte = 0;
            self.active -= 1;
            self.slot = Slot::default();
        } else if self.active == 1 {
            self.slot = Slot(next.number + 1);
        } else if next.taken {
            self.calendar(node.share.group).note(next.number, node);
        }
    }

    /// The frame that was on the line has gone.
    #[inline]
    fn move_on(&mut self) {
        let bytes = std::mem::take(&mut self.slot).0;
        if bytes > 0 {
            self.v = self.v.wrapping_add(u64::from(bytes).wrapping_mul(self.per_byte()));
        }
    }

    /// Virtual time per byte; computed anew only when other children have something to send.
    #[inline]
    fn per_byte(&mut self) -> u64 {
        if self.per_byte == 0 {
            // weights of more than 2^48 in all lose bits that do not matter; a wide division would
            // cost more than everything else here
            let spare = self.total_weight.leading_zeros().min(UNIT);
            let whole = self.total_weight << spare;
            self.per_byte = (whole / (self.active_weight >> (UNIT - spare)).max(1)).max(1);
        }
        self.per_byte
    }

    /// The calendar of a kind of children.
    #[inline]
    fn calendar(&mut self, kind: u16) -> &mut Calendar {
        let at = match self.kinds.len() {
            1 => 0,
            _ => self.kinds.iter().position(|c| c.kind == kind).unwrap_or(0),
        };
        &mut self.kinds[at]
    }
}

/// The first child of a calendar that has something to send and is noted where it belongs. Who is
/// not is put right on the way.
#[inline]
fn first(calendar: &mut Calendar, nodes: &mut [Node]) -> Option<u32> {
    loop {
        let number = calendar.first()?;
        let node = &mut nodes[number as usize];
        if node.share.flags.has(Flags::ACTIVE) && !calendar.is_late(node) {
            return Some(number);
        }
        put_right(calendar, number, node);
    }
}

#[cold]
fn put_right(calendar: &mut Calendar, number: u32, node: &mut Node) {
    calendar.take_first(node);
    if node.share.flags.has(Flags::ACTIVE) {
        calendar.note(number, node);
    }
}

/// `v`, but not before `least` nor behind `most`.
#[inline]
const fn within(v: u64, least: u64, most: u64) -> u64 {
    if before(v, least) {
        least
    } else if before(most, v) {
        most
    } else {
        v
    }
}
