//! Fairness inside a leaf without queues: each flow has a phantom queue, a counter of what it has
//! sent and its part of the leaf's share has not yet served (Tahir et al., SIGCOMM 2024, police by
//! such counters). A frame is dropped where its flow's counter is full, so who sends more than its
//! part is limited to it, and who sends less loses nothing.
//!
//! All counters of a leaf are served as a fluid would be, by one virtual time: it advances by the
//! leaf's service over the weight of its busy flows, and a flow whose finish has passed is empty.
//! That is noticed late, by the frames of others, which look at two flows each; what was served
//! beyond the end of a flow is given to the others then, so nothing is lost. Only busy flows have a
//! place in the table. With fairness by host a flow weighs one by the busy flows of its host.

use weir_units::limits;

use crate::scale::CREDIT;

/// Whose a frame is, in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Stands for the flow; whoever sends cannot choose it.
    pub flow: u32,
    /// Stands for its host; nothing where each flow counts by itself.
    pub host: Option<u32>,
}

/// Phantom queues for the flows of all leaves.
#[derive(Debug, Default)]
pub struct Flows {
    places: Box<[Flow]>,
    leaves: Box<[Leaf]>,
}

/// A busy flow, or the busy flows of a host.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// The virtual time at which it is empty.
    finish: u64,
    /// Whose: `NONE` for a free place.
    leaf: u32,
    key: u32,
    /// The next busy flow of the leaf.
    next: u32,
    /// The place of its host.
    host: u32,
    /// The busy flows of its host, as it weighs; of a host, as they are.
    among: u32,
    is_host: bool,
}

/// What is known of a leaf.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    /// In 2^-9 bytes of a flow of weight one.
    virtual_time: u64,
    /// What waits in all phantom queues, in 2^-9 bytes.
    backlog: u64,
    /// What was served beyond the ends of flows.
    spare: u64,
    last: u64,
    /// Of its busy flows, in 2^-16.
    weight: u64,
    /// What was left when the virtual time was last advanced.
    rest: u64,
    /// What its share serves in `DEPTH`, in the mean of some time.
    mean: u64,
    /// What all phantom queues may hold: the mean as it was when it last was far off. A share that
    /// falls for a moment, so that a real queue drains, gives and takes nothing.
    depth: u64,
    /// The flow before the one that is looked at next.
    hand: u32,
}

/// What a leaf may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) share: u64,
    pub(crate) room: Room,
    pub(crate) can_mark: bool,
}

/// How much of its room a flow has, by the real queue behind. Flows that are all held to a few
/// frames as soon as it is long do not share a link well: CUBIC loses in each burst of BBR, which
/// does not care. So part of it goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    All,
    /// The queue is long.
    Quarter,
    /// It is too long: a few frames.
    Least,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Pass,
    Mark,
    Drop,
}

const NONE: u32 = u32::MAX;
const WAYS: usize = 4;
/// Bits behind the byte.
const POINT: u32 = 9;
const ONE: u64 = 1 << 16;
/// What all phantom queues of a leaf hold at most: what its share serves in so many ns.
const DEPTH: u64 = 50_000_000;
/// The depth follows the share within so many ns, as a power of two.
const FOLLOWS: u32 = 26;
/// A flow may fill so many times what is free.
const FREE: u64 = 2;
/// So one that is alone in its leaf may have what its share serves in this time, in ns.
pub const AHEAD: u64 = DEPTH * FREE / (FREE + 1);
/// Frames that a flow may have in its phantom queue whatever the others have.
const LEAST: u64 = 2;
/// All phantom queues of a leaf hold no more than this: 2 GiB.
const MOST: u64 = 1 << 40;
/// A full frame of Ethernet.
const LONGEST: u64 = 1_514 << POINT;
/// What all phantom queues of a leaf hold at least, and those of one that begins.
const SHALLOW: u64 = 4 * LONGEST;

const NOBODY: Flow =
    Flow { finish: 0, leaf: NONE, key: 0, next: NONE, host: NONE, among: 1, is_host: false };
const IDLE: Leaf = Leaf {
    virtual_time: 0,
    backlog: 0,
    spare: 0,
    last: 0,
    weight: 0,
    rest: 0,
    mean: SHALLOW,
    depth: SHALLOW,
    hand: NONE,
};

impl Flows {
    /// For so many leaves. Nothing is allocated after this.
    #[must_use]
    pub fn new(leaves: u32) -> Flows {
        let places = vec![NOBODY; limits::SHARE_FLOWS].into();
        Flows { places, leaves: vec![IDLE; leaves as usize].into() }
    }

    /// Whether no leaf can have flows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// Goes on where `old` is, whose leaves have the same numbers.
    ///
    /// Cost: a look at each leaf and at each place; nothing is allocated.
    pub fn take_over(&mut self, old: &mut Flows) {
        if old.places.len() != self.places.len() {
            return;
        }
        std::mem::swap(&mut self.places, &mut old.places);
        for (leaf, was) in self.leaves.iter_mut().zip(&old.leaves) {
            *leaf = *was;
        }
        let leaves = self.leaves.len();
        for place in &mut self.places {
            if place.leaf as usize >= leaves {
                *place = NOBODY;
            }
        }
    }

    /// Whether a frame of `len` bytes may pass.
    pub(crate) fn admit(
        &mut self,
        now: u64,
        leaf: u32,
        who: Who,
        len: u32,
        limit: Limit,
    ) -> Admission {
        if leaf as usize >= self.leaves.len() {
            return Admission::Pass;
        }
        self.serve(now, leaf, limit.share);
        self.look(leaf);
        self.look(leaf);
        let Some(at) = self.find(leaf, who.flow, false) else {
            // no place for its flow: it passes while the leaf has room
            return self.admit_to(leaf, None, len, limit);
        };
        if self.places[at].leaf == NONE {
            self.begin(leaf, at, who);
        } else {
            self.moves(leaf, at, who);
            self.weigh(leaf, at);
        }
        self.admit_to(leaf, Some(at), len, limit)
    }

    /// Serves the flows of a leaf up to now.
    fn serve(&mut self, now: u64, leaf: u32, share: u64) {
        let leaf = &mut self.leaves[leaf as usize];
        let gap = now.saturating_sub(leaf.last).min(1 << 34);
        leaf.last = leaf.last.max(now);
        let depth = share.saturating_mul(DEPTH) >> (CREDIT - POINT);
        let forgiven = leaf.follow(depth.clamp(SHALLOW, MOST), gap);
        let served = (share.saturating_mul(gap) >> (CREDIT - POINT)) + leaf.spare + forgiven;
        let served = served.min(leaf.backlog).min(2 * MOST);
        leaf.spare = 0;
        let served_for_one = (served << 16) + leaf.rest;
        let Some(advance) = served_for_one.checked_div(leaf.weight) else { return };
        leaf.backlog -= served;
        leaf.virtual_time = leaf.virtual_time.saturating_add(advance);
        leaf.rest = served_for_one - advance * leaf.weight;
    }

    /// Looks at the next busy flow of a leaf: one that is empty gives its place back.
    fn look(&mut self, number: u32) {
        let leaf = self.leaves[number as usize];
        if leaf.hand == NONE {
            return;
        }
        let before = leaf.hand as usize;
        let at = self.places[before].next as usize;
        if self.places[at].finish > leaf.virtual_time {
            self.leaves[number as usize].hand = self.places[before].next;
            return;
        }
        let flow = self.places[at];
        let leaf = &mut self.leaves[number as usize];
        leaf.weight -= weight(flow.among);
        let beyond = amount(leaf.virtual_time - flow.finish, flow.among);
        leaf.spare += beyond;
        leaf.backlog += beyond;
        if leaf.weight == 0 {
            // nobody is busy: the virtual time begins again
            *leaf = Leaf { mean: leaf.mean, depth: leaf.depth, last: leaf.last, ..IDLE };
        } else {
            self.places[before].next = flow.next;
        }
        self.places[at] = NOBODY;
        self.leave_host(flow.host);
    }

    /// A host has one busy flow less.
    fn leave_host(&mut self, at: u32) {
        if let Some(host) = self.places.get_mut(at as usize) {
            host.among -= 1;
            if host.among == 0 {
                *host = NOBODY;
            }
        }
    }

    /// A host has one more busy flow: its place, and how many they are; `None`: it has no place.
    fn join_host(&mut self, number: u32, who: Who) -> Option<(u32, u32)> {
        let host = who.host?;
        let found = self.find(number, host, true)?;
        let entry = &mut self.places[found];
        if entry.leaf == NONE {
            *entry = Flow { leaf: number, key: host, among: 0, is_host: true, ..NOBODY };
        }
        entry.among += 1;
        Some((u32::try_from(found).unwrap_or(NONE), entry.among))
    }

    /// The place of a flow, or a free one for it.
    fn find(&self, leaf: u32, key: u32, is_host: bool) -> Option<usize> {
        let mixed = u64::from(leaf ^ if is_host { 0x8000_0000 } else { 0 }) << 32 | u64::from(key);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let buckets = self.places.len() / WAYS;
        let bucket = usize::try_from(mixed >> 40).unwrap_or(0) & (buckets - 1);
        let first = bucket * WAYS;
        let mut free = None;
        for at in first..first + WAYS {
            let flow = &self.places[at];
            if flow.leaf == leaf && flow.key == key && flow.is_host == is_host {
                return Some(at);
            }
            if flow.leaf == NONE {
                free = Some(at);
            }
        }
        free
    }

    /// A flow is busy from now on.
    fn begin(&mut self, number: u32, at: usize, who: Who) {
        let place = u32::try_from(at).unwrap_or(NONE);
        self.places[at] = Flow { leaf: number, key: who.flow, ..NOBODY };
        if let Some((host, among)) = self.join_host(number, who) {
            (self.places[at].host, self.places[at].among) = (host, among);
        }
        let leaf = &mut self.leaves[number as usize];
        leaf.weight += weight(self.places[at].among);
        self.places[at].finish = leaf.virtual_time;
        if leaf.hand == NONE {
            leaf.hand = place;
            self.places[at].next = place;
        } else {
            let before = leaf.hand as usize;
            self.places[at].next = self.places[before].next;
            self.places[before].next = place;
        }
    }

    /// A busy flow may be another host's from now on: what is not served yet goes with it.
    fn moves(&mut self, number: u32, at: usize, who: Who) {
        let old = self.places[at].host;
        let is_another = |host: &Flow| who.host.is_some_and(|key| key != host.key);
        if self.places.get(old as usize).is_some_and(is_another)
            && let Some((host, _)) = self.join_host(number, who)
        {
            self.places[at].host = host;
            self.leave_host(old);
        }
    }

    /// A busy flow weighs by the busy flows of its host as they are now; an empty one goes on from
    /// the virtual time.
    fn weigh(&mut self, number: u32, at: usize) {
        let flow = self.places[at];
        let among = self.places.get(flow.host as usize).map_or(flow.among, |host| host.among);
        let leaf = &mut self.leaves[number as usize];
        let flow = &mut self.places[at];
        let now = leaf.virtual_time;
        if flow.finish < now {
            let beyond = amount(now - flow.finish, flow.among);
            leaf.spare += beyond;
            leaf.backlog += beyond;
            flow.finish = now;
        }
        if among != flow.among {
            leaf.weight = leaf.weight - weight(flow.among) + weight(among);
            let ahead = flow.finish - now;
            let ahead = ahead.saturating_mul(u64::from(among)) / u64::from(flow.among.max(1));
            flow.finish = now.saturating_add(ahead);
            flow.among = among;
        }
    }

    fn admit_to(&mut self, number: u32, at: Option<usize>, len: u32, limit: Limit) -> Admission {
        let leaf = &mut self.leaves[number as usize];
        let len = u64::from(len) << POINT;
        let free = FREE * leaf.depth.saturating_sub(leaf.backlog);
        let Some(at) = at else {
            return if free > len { Admission::Pass } else { Admission::Drop };
        };
        let flow = &mut self.places[at];
        let weight = weight(flow.among);
        let waits = amount(flow.finish - leaf.virtual_time, flow.among);
        let part = (free * weight) >> 16;
        let room = match limit.room {
            Room::All => part,
            Room::Quarter => (part / 4).max(part.min(SHALLOW)),
            // the flows of a leaf together what it is served in 0.4 ms
            Room::Least => (leaf.depth >> 7) * weight / leaf.weight.max(1),
        };
        let room = room.max(LEAST * LONGEST);
        let admission = if waits + len <= room {
            Admission::Pass
        } else if limit.can_mark && waits + len <= 2 * room {
            Admission::Mark
        } else {
            return Admission::Drop;
        };
        flow.finish = flow.finish.saturating_add((len << 16) / weight);
        leaf.backlog += len;
        admission
    }
}

impl Room {
    /// Behind a queue in which so much waits, of which so much is long.
    pub(crate) fn behind(waiting: u64, long: u64) -> Room {
        if waiting <= long.saturating_add(long / 4 * 3) {
            Room::All
        } else if waiting <= long.saturating_mul(2) {
            Room::Quarter
        } else {
            Room::Least
        }
    }
}

impl Leaf {
    /// The share was this for so many ns. Where the depth is another then, what waits is as well:
    /// what it is less by.
    fn follow(&mut self, to: u64, gap: u64) -> u64 {
        let gap = gap.min(1 << FOLLOWS) >> 8;
        let part = |change: u64| ((change >> 8) * gap) >> (FOLLOWS - 16);
        self.mean = if to > self.mean {
            self.mean + part(to - self.mean)
        } else {
            self.mean - part(self.mean - to)
        };
        if self.mean > self.depth * 2 {
            self.depth = self.mean;
        } else if self.mean < self.depth / 2 {
            let before = std::mem::replace(&mut self.depth, self.mean);
            let left = u128::from(self.backlog) * u128::from(self.depth) / u128::from(before);
            return self.backlog - crate::scale::narrow(left);
        }
        0
    }
}

/// What a flow, one of so many of its host, is served in so much virtual time.
fn amount(time: u64, among: u32) -> u64 {
    (time.saturating_mul(weight(among)) >> 16).min(MOST)
}

/// What one of so many flows of a host weighs.
fn weight(among: u32) -> u64 {
    if among <= 1 {
        return ONE;
    }
    (ONE / u64::from(among.max(1))).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 8_000_000;

    /// Bytes that pass in a second of so many Mbit/s, by flow; each is its key, its host, and the
    /// Mbit/s that it sends.
    fn pass(share: u64, flows: &[(u32, Option<u32>, u64)]) -> Vec<u64> {
        let mut table = Flows::new(1);
        let share = crate::scale::units(weir_units::Rate::from_bps(share * 1_000_000));
        let limit = Limit { share, room: Room::All, can_mark: false };
        let mut next: Vec<u64> = (0..flows.len() as u64).map(|at| at * 7_919).collect();
        let mut passed = vec![0; flows.len()];
        loop {
            let at = (0..flows.len()).min_by_key(|&at| next[at]).unwrap();
            let (flow, host, rate) = flows[at];
            let now = next[at];
            if now > 2_000_000_000 {
                return passed;
            }
            next[at] += 1_000 * MBIT / rate / 1_000;
            let admission = table.admit(now, 0, Who { flow, host }, 1_000, limit);
            if admission == Admission::Pass && now > 1_000_000_000 {
                passed[at] += 1_000;
            }
        }
    }

    /// To one in a hundred; in kbit/s.
    fn near(is: &[u64], kbit: &[u64]) {
        for (is, kbit) in is.iter().zip(kbit) {
            let is = is * 8 / 1_000;
            assert!(is.abs_diff(*kbit) * 100 < *kbit, "{is} of {kbit}");
        }
    }

    #[test]
    fn flows_have_the_same_and_what_one_leaves_the_others_have() {
        near(&pass(50, &[(1, None, 60), (2, None, 200), (3, None, 30)]), &[16_667; 3]);
        let less = [(1, None, 60), (2, None, 200), (3, None, 10)];
        near(&pass(50, &less), &[20_000, 20_000, 10_000]);
        near(&pass(50, &[(1, None, 20), (2, None, 25)]), &[20_000, 25_000]);
    }

    #[test]
    fn hosts_have_the_same_and_then_their_flows() {
        let of = |flow, host| (flow, Some(host), 60);
        let flows = [of(1, 1), of(2, 1), of(3, 2), of(4, 2), of(5, 2), of(6, 2)];
        near(&pass(50, &flows), &[12_500, 12_500, 6_250, 6_250, 6_250, 6_250]);
    }

    #[test]
    fn more_flows_than_there_is_room_for_and_any_numbers_are_harmless() {
        let mut table = Flows::new(3);
        let mut draw = 1_u64;
        let mut now = 0_u64;
        for at in 0..200_000_u64 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mix = u32::try_from(draw >> 33).unwrap();
            now = match draw >> 20 & 63 {
                0 => now.saturating_add(1 << (mix % 40)),
                1 => now.saturating_sub(1_000_000),
                _ => now.saturating_add(u64::from(mix % 1_000)),
            };
            let share = if mix % 97 == 0 { u64::MAX } else { u64::from(mix) << (at % 12) };
            let room = [Room::All, Room::Quarter, Room::Least][usize::try_from(at % 3).unwrap()];
            let limit = Limit { share, room, can_mark: mix % 3 == 0 };
            let host = (mix % 2 == 0).then_some(mix % 50);
            let who = Who { flow: mix % 40_000, host };
            table.admit(now, mix % 4, who, mix % 65_536, limit);
        }
        let busy = table.places.iter().filter(|place| place.leaf != NONE && !place.is_host);
        for (number, leaf) in (0..).zip(&table.leaves) {
            let own = busy.clone().filter(|place| place.leaf == number);
            assert_eq!(leaf.weight, own.map(|place| weight(place.among)).sum::<u64>());
        }
        const { assert!(size_of::<Flow>() == 32 && size_of::<Leaf>() == 72) };
    }

    #[test]
    fn each_packet_looks_at_two_busy_flows() {
        let mut table = Flows::new(1);
        let share = crate::scale::units(weir_units::Rate::from_bps(1_000_000_000));
        let limit = Limit { share, room: Room::All, can_mark: false };
        let mut send = |now, flow| {
            table.admit(now, 0, Who { flow, host: None }, 1_000, limit);
            table.places.iter().filter(|place| place.leaf != NONE).count()
        };
        let begun: Vec<usize> = (0..10).map(|flow| send(0, flow)).collect();
        assert_eq!(begun, (1..=10).collect::<Vec<_>>());
        // after a second all are empty: two go, and one comes
        assert_eq!(send(1_000_000_000, 10), 9);
    }
}
