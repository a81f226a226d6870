//! Which child of a node is next: worst-case fair weighted fair queueing (WF2Q+, Bennett and Zhang
//! 1996) among the children that have something to send.
//!
//! Each child carries the virtual time `s` at which its next frame should start, each node the
//! virtual time `v` up to which it has served. Children with `s <= v` are within their share; of
//! them the one of the highest priority goes next, among equals the one that should finish first.
//! Children of like weight and priority lie in one heap by `s`, so that finding the next looks at
//! one child per kind. A child that was served moves on by its frame's bytes over its weight:
//! shares are exact whatever the order.
//!
//! A child whose guarantee is more than its weight may give it has a second clock, in real time:
//! when that is due the child goes before all others. Such a child may lie anywhere in the heap of
//! its kind; its entry is put right when it comes to the top.

use weir_units::{Instant, Rate};

use super::heap::{Entry, Heap, before};
use super::node::Node;

/// Virtual time per byte of a child that has all the weight of its node: 2^16.
const UNIT: u32 = 16;
/// Weights below this part of the node's (2^-26) count as this part: virtual time must stay within
/// half a turn of its circle.
const LEAST_PART: u32 = 26;
/// Bytes of the frame by which it is decided who should finish first.
const FRAME: u64 = 1_536;
/// Real time of guarantees, in parts of a nanosecond.
const PARTS: u64 = 16;

/// What a node knows of one of its children.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// When its next frame should start, in the parent's virtual time.
    s: u64,
    /// Virtual time per byte.
    per_byte: u64,
    weight: u64,
    /// When the guarantee is due, in sixteenths of a nanosecond.
    due: u64,
    /// Sixteenths of a nanosecond per byte, 16 bits behind the point, of a guarantee that the
    /// weight alone would not keep; 0: none.
    owed: u64,
    group: u16,
    /// It has something to send.
    active: bool,
    /// It has an entry in the heap of its kind; in the heap of guarantees.
    listed: bool,
    listed_owed: bool,
}

/// Children of like weight and priority.
#[derive(Debug)]
struct Group {
    priority: u8,
    /// Virtual time that a full frame takes.
    frame: u64,
    heap: Heap,
}

/// A node with children.
#[derive(Debug, Default)]
pub(crate) struct Interior {
    v: u64,
    groups: Box<[Group]>,
    /// Children whose guarantee has a clock of its own, by when it is due.
    owed: Heap,
    has_owed: bool,
    active: u32,
    active_weight: u64,
    total_weight: u64,
    /// Virtual time per byte of the node as a whole.
    per_byte: u64,
}

/// A child as it is told.
pub(crate) struct Child {
    pub(crate) weight: u64,
    pub(crate) priority: u8,
    pub(crate) rate: Rate,
}

/// Which child is next, and whether its guarantee was due.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Next {
    pub(crate) node: u32,
    pub(crate) owed: bool,
}

impl Share {
    /// Whether its parent knows that it has something to send.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        self.active
    }
}

impl Interior {
    /// A node with room for these children, and what it knows of each. `rate` is what the node
    /// itself is guaranteed.
    pub(crate) fn new(children: &[Child], rate: Rate) -> (Interior, Vec<Share>) {
        let total = children.iter().map(|c| c.weight).fold(0, u64::saturating_add).max(1);
        let needs_clock = above_their_weight(children, rate);
        let mut kinds: Vec<(u8, u64)> = Vec::new();
        let mut shares = Vec::with_capacity(children.len());
        for (child, needs_clock) in children.iter().zip(needs_clock) {
            let weight = child.weight.max(total >> LEAST_PART).max(1);
            let per_byte = u64::try_from((u128::from(total) << UNIT) / u128::from(weight));
            let per_byte = per_byte.unwrap_or(u64::MAX).max(1);
            let kind = (child.priority, kind(per_byte));
            let at = kinds.iter().position(|k| *k == kind);
            let group = at.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            let owed = if needs_clock { owed_per_byte(child.rate) } else { 0 };
            let group = u16::try_from(group).unwrap_or(u16::MAX);
            shares.push(Share { per_byte, weight, group, owed, ..Share::default() });
        }
        let groups = kinds.iter().zip(0u16..).map(|(&(priority, _), number)| {
            let per_byte = shares.iter().filter(|s| s.group == number).map(|s| s.per_byte);
            let frame = per_byte.clone().min().unwrap_or(1).saturating_mul(FRAME);
            Group { priority, frame, heap: Heap::with_capacity(per_byte.count()) }
        });
        let groups = groups.collect();
        let owed = shares.iter().filter(|s| s.owed > 0).count();
        let interior = Interior {
            groups,
            owed: Heap::with_capacity(owed),
            has_owed: owed > 0,
            total_weight: total,
            ..Interior::default()
        };
        (interior, shares)
    }

    pub(crate) fn bytes(&self) -> usize {
        let groups = self.groups.iter().map(|g| size_of::<Group>() + g.heap.bytes());
        size_of::<Interior>() + groups.sum::<usize>() + self.owed.bytes()
    }

    /// Whether any child has something to send.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active > 0
    }

    /// A child has something to send.
    #[inline]
    pub(crate) fn wake(&mut self, now: Instant, node: u32, share: &mut Share) {
        debug_assert!(!share.active, "a child that is awake was woken");
        if before(share.s, self.v) {
            share.s = self.v;
        }
        share.active = true;
        if !share.listed {
            share.listed = true;
            self.groups[usize::from(share.group)].heap.push(Entry { key: share.s, node });
        }
        self.active += 1;
        self.active_weight += share.weight;
        self.refresh();
        if share.owed > 0 {
            share.due = share.due.max(now.ns().wrapping_mul(PARTS));
            if !share.listed_owed {
                share.listed_owed = true;
                self.owed.push(Entry { key: share.due, node });
            }
        }
    }

    /// The child that goes next; `None` when none has anything to send.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, nodes: &mut [Node]) -> Option<Next> {
        if self.has_owed {
            self.put_right(nodes);
            if let Some(first) = self.owed.first()
                && first.key <= now.ns().wrapping_mul(PARTS)
            {
                return Some(Next { node: first.node, owed: true });
            }
        }
        if let [group] = &*self.groups {
            let first = group.heap.first()?;
            self.v = within(self.v, first.key, first.key.wrapping_add(group.frame));
            return Some(Next { node: first.node, owed: false });
        }
        self.next_of_kinds()
    }

    fn next_of_kinds(&mut self) -> Option<Next> {
        let heads = || {
            let heads = self.groups.iter().map(|g| (g.heap.first(), g));
            heads.filter_map(|(first, g)| Some((first?, g.frame, g.priority)))
        };
        let (mut least_s, mut least_f) = (None, None);
        for (entry, frame, _) in heads() {
            let f = entry.key.wrapping_add(frame);
            if least_s.is_none_or(|s| before(entry.key, s)) {
                least_s = Some(entry.key);
            }
            if least_f.is_none_or(|least| before(f, least)) {
                least_f = Some(f);
            }
        }
        let (least_s, least_f) = (least_s?, least_f?);
        // nobody is within its share: time moves on to the first that will be; and it never runs
        // past the moment by which somebody should have finished
        let v = within(self.v, least_s, least_f);
        let mut best: Option<(u8, u64, u32)> = None;
        for (entry, frame, priority) in heads() {
            if before(v, entry.key) {
                continue;
            }
            let f = entry.key.wrapping_add(frame);
            let is_better = best
                .is_none_or(|(p, least, _)| priority < p || (priority == p && before(f, least)));
            if is_better {
                best = Some((priority, f, entry.node));
            }
        }
        self.v = v;
        best.map(|(_, _, node)| Next { node, owed: false })
    }

    /// A frame of `bytes` of the child that was next has been sent; `stays`: it can send more now.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        next: Next,
        share: &mut Share,
        bytes: u64,
        stays: bool,
    ) {
        self.v = self.v.wrapping_add(bytes.wrapping_mul(self.per_byte));
        share.s = share.s.wrapping_add(bytes.wrapping_mul(share.per_byte));
        if next.owed {
            // what the guarantee gave is not held against the child for long
            let most = self.v.wrapping_add(2 * FRAME * share.per_byte);
            if before(most, share.s) {
                share.s = most;
            }
        } else if stays {
            self.groups[usize::from(share.group)].heap.put_back(share.s);
        } else {
            self.groups[usize::from(share.group)].heap.pop();
            share.listed = false;
        }
        if share.owed > 0 {
            let now = now.ns().wrapping_mul(PARTS);
            let frame = (2 * FRAME * share.owed) >> UNIT;
            let due = share.due.max(now.saturating_sub(frame)) + ((bytes * share.owed) >> UNIT);
            share.due = due.min(now + frame);
        }
        if !stays {
            share.active = false;
            self.active -= 1;
            self.active_weight -= share.weight;
            self.refresh();
        }
    }

    /// Removes from the tops what sleeps, and moves down what has been served in the meantime.
    fn put_right(&mut self, nodes: &mut [Node]) {
        for group in &mut self.groups {
            while let Some(first) = group.heap.first() {
                let share = &mut nodes[first.node as usize].share;
                if !share.active {
                    group.heap.pop();
                    share.listed = false;
                } else if share.s == first.key {
                    break;
                } else {
                    group.heap.put_back(share.s);
                }
            }
        }
        while let Some(first) = self.owed.first() {
            let share = &mut nodes[first.node as usize].share;
            if !share.active {
                self.owed.pop();
                share.listed_owed = false;
            } else if share.due == first.key {
                break;
            } else {
                self.owed.put_back(share.due);
            }
        }
    }

    fn refresh(&mut self) {
        // a child that is alone takes virtual time along by itself
        self.per_byte = 0;
        if self.active > 1 {
            // weights of more than 2^48 in all lose bits that do not matter; a wide division would
            // cost more than everything else here
            let spare = self.total_weight.leading_zeros().min(UNIT);
            let whole = self.total_weight << spare;
            self.per_byte = (whole / (self.active_weight >> (UNIT - spare)).max(1)).max(1);
        }
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

/// Which children's guarantees their weights would not keep if all wanted all: those that are above
/// the level at which the others share what the guarantees leave.
fn above_their_weight(children: &[Child], rate: Rate) -> Vec<bool> {
    let mut order: Vec<usize> = (0..children.len()).collect();
    let wide = |n: u64| u128::from(n);
    order.sort_by(|&a, &b| {
        let (a, b) = (&children[a], &children[b]);
        let (of_a, of_b) =
            (wide(a.rate.bps()) * wide(b.weight), wide(b.rate.bps()) * wide(a.weight));
        of_b.cmp(&of_a)
    });
    let mut left = wide(rate.bps());
    let mut weights: u128 = children.iter().map(|c| wide(c.weight)).sum();
    let mut above = vec![false; children.len()];
    for at in order {
        let (rate, weight) = (wide(children[at].rate.bps()), wide(children[at].weight));
        // a part in a thousand is what rounding may cost
        if rate * weights <= weight * left + weight * left / 1_000 {
            break;
        }
        above[at] = true;
        left = left.saturating_sub(rate);
        weights -= weight;
    }
    above
}

fn owed_per_byte(rate: Rate) -> u64 {
    let parts = (8_000_000_000 * u128::from(PARTS)) << UNIT;
    u64::try_from(parts / u128::from(rate.bps().max(8))).unwrap_or(u64::MAX)
}

/// Which of four kinds per doubling a weight is of: who should finish first is then right to a
/// fifth of a frame.
fn kind(per_byte: u64) -> u64 {
    let log = u64::from(per_byte.ilog2());
    let quarter = if log >= 2 { (per_byte >> (log - 2)) & 3 } else { 0 };
    log * 4 + quarter
}
