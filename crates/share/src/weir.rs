//! The allocator of weir: HSDBA's idea, that each packet moves the shares on its way by a step,
//! with what measuring it has taught.
//!
//! - Only leaves measure and only leaves drop; what a node wants is the sum of what its children
//!   want, each capped by its peak.
//! - The sums are exact after every packet, so the level is.
//! - A leaf passes by credit at the rate of its share, not by a random number.
//! - A virtual queue at the rate of the link takes a little from the shares until it is empty.
//! - Who falls silent is noticed by the packets of others.

mod audit;
mod change;
mod child;
mod inner;
mod leaf;
mod over;
mod sweep;

use weir_units::{Bytes, Instant, Rate, Span, limits};

use crate::fate::Fate;
use crate::flows::{Admission, Flows, Limit, Room, Who};
use crate::scale::{CREDIT, LONGEST, Packed, rate, units};
use crate::tree::{Layout, Node, Place, Places, Unfit, number};
use child::{Child, Flags, Sums};
use inner::{Inner, LEAF, NONE};
use leaf::Leaf;

use change::Joining;
pub use change::{Event, Gone};

/// How the leaves enforce what they have.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How much unused share a leaf may save: about one round trip of its senders.
    pub credit: Span,
    /// Saved credit beyond sixteen packets is good only while the virtual queue is shorter.
    pub gate: Span,
    /// Whether packets of leaves in debt are marked before they are dropped.
    pub marks: bool,
}

impl Options {
    /// For TCP: a round trip of credit.
    pub const TCP: Options =
        Options { credit: Span::from_ms(20), gate: Span::from_ms(2), marks: false };
    /// For the shortest queue: sixteen packets of credit.
    pub const SHORT: Options =
        Options { credit: Span::ZERO, gate: Span::from_us(200), marks: false };
}

/// What waits behind the allocator, and what a packet can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// How many levels below the link the node is that has a queue of its own: through it goes all
    /// that passes below it.
    pub level: u32,
    /// What waits there.
    pub waiting: Bytes,
    /// Whether the packet can carry a mark.
    pub can_mark: bool,
}

/// Part of the rate by which a queue is drained, at most: the virtual one, and that of a node. Both
/// together hold back less than 1/200.
const HELD_BACK: [u64; 2] = [256, 1024];
/// Part of the rate that is held back in addition, at most, for the moments in which the virtual
/// queue stands. The link sends what stands there meanwhile, so none of it is lost.
const STANDING: u64 = 32;
/// Part of the rate that is shared out in addition while the virtual queue is nearly empty.
const RAISED: u64 = 256;
/// The nodes from the link to a leaf.
const PATH: usize = limits::TREE_DEPTH + 1;

/// The allocator: a tree, and who has how much of it now.
#[derive(Debug)]
pub struct Weir {
    inner: Vec<Inner>,
    leaves: Vec<Leaf>,
    joining: Joining,
    options: Options,
    capacity: u64,
    /// Bytes that have passed and that the link has not carried yet, in 2^-33.
    queue: u64,
    /// When the queue was last drained, in ns.
    last: u64,
    /// The longest of the latest packets.
    longest: u32,
    /// How long the virtual queue may be.
    gate: Gate,
    /// What a burst may take of the link beyond its least.
    burst: i64,
}

impl Weir {
    /// An allocator for this tree. Nothing is allocated after this.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn new(nodes: &[Node], options: Options) -> Result<(Weir, Places), Unfit> {
        let layout = Layout::new(nodes)?;
        let child = |&at: &u32| {
            let node = &nodes[at as usize];
            let mut flags = Flags::default();
            flags.set(Flags::FREE, node.is_leaf && node.is_spare);
            let weight = node.weight.clamp(1, limits::SHARE_WEIGHT);
            let (floor, peak) = (Packed::new(units(node.floor)), peak(node.peak));
            Child { parent: layout.parent(nodes, at), weight, floor, peak, flags }
        };
        let inner = layout.inner.iter().map(child).map(|child| Inner {
            sums: Sums::NONE,
            hand: NONE,
            first: [NONE; 2],
            child,
        });
        let mut weir = Weir {
            inner: inner.collect(),
            leaves: layout.leaves.iter().map(child).map(Leaf::new).collect(),
            joining: Joining::default(),
            options,
            capacity: units(nodes[0].peak),
            queue: 0,
            last: 0,
            longest: 0,
            gate: Gate { rest: 0, long: 0 },
            burst: 0,
        };
        weir.size();
        // the link itself has no peak but its rate, which the budget is
        weir.inner[0].child.peak = Packed::INFINITE;
        weir.link();
        weir.weigh();
        Ok((weir, layout.places))
    }

    /// Tells each node where its children begin and end.
    fn link(&mut self) {
        for at in (1..self.inner.len()).rev() {
            let Child { parent, floor, .. } = self.inner[at].child;
            let is_last = self.inner[parent as usize].first[0] == NONE;
            self.inner[at].child.flags.set(Flags::LAST, is_last);
            let node = &mut self.inner[parent as usize];
            node.first[0] = number(at);
            node.hand = number(at);
            node.keeps(floor);
        }
        for at in (0..self.leaves.len()).rev() {
            let Child { parent, floor, .. } = self.leaves[at].child;
            let node = &mut self.inner[parent as usize];
            self.leaves[at].child.flags.set(Flags::LAST, node.first[1] == NONE);
            node.first[1] = number(at);
            node.keeps(floor);
            if node.first[0] == NONE {
                node.hand = number(at) | LEAF;
            }
        }
        self.chain();
    }

    /// Scales the weights of siblings down where their sum could be too large.
    fn weigh(&mut self) {
        let inner = (1..self.inner.len()).map(|at| Place::Inner(number(at)));
        let leaves = (0..self.leaves.len()).map(|at| Place::Leaf(number(at)));
        let mut shifts = vec![0; self.inner.len()];
        let places: Vec<Place> = inner.chain(leaves).collect();
        for &place in &places {
            let most = self.weight_most(place);
            let Some(child) = self.child(place) else { continue };
            let over = (0..32).find(|&shift| child.weight >> shift <= most).unwrap_or(0);
            let shift = &mut shifts[child.parent as usize];
            *shift = over.max(*shift);
        }
        let inner = self.inner.iter_mut().skip(1).map(|node| &mut node.child);
        for child in inner.chain(self.leaves.iter_mut().map(|leaf| &mut leaf.child)) {
            child.weight = (child.weight >> shifts[child.parent as usize]).max(1);
        }
    }

    /// A packet of a leaf: it moves the shares on its way, and passes or not.
    pub fn packet(&mut self, now: Instant, leaf: u32, len: u32) -> Fate {
        let behind = Behind { can_mark: self.options.marks, ..Behind::default() };
        self.packet_before(now, leaf, len, behind)
    }

    /// The same where a queue is known that all that passes here, or below a node, goes through:
    /// what waits there is taken from what that node has, so that the queue stays short also where
    /// less leaves it than this allocator knows.
    pub fn packet_before(&mut self, now: Instant, leaf: u32, len: u32, behind: Behind) -> Fate {
        let way = match self.way(now, leaf, len, behind) {
            Ok(way) => way,
            Err(by) => return Fate::Drop { by },
        };
        self.enforce(leaf, len.clamp(1, LONGEST), &way, behind.can_mark)
    }

    /// The same where the leaf divides what it has among its flows; `number` is its number there.
    pub fn packet_among(
        &mut self,
        now: Instant,
        (leaf, number): (u32, u32),
        len: u32,
        behind: Behind,
        (flows, who): (&mut Flows, Who),
    ) -> Fate {
        let way = match self.way(now, leaf, len, behind) {
            Ok(way) => way,
            Err(by) => return Fate::Drop { by },
        };
        let len = len.clamp(1, LONGEST);
        let room = way.room.max(Room::behind(self.queue, self.gate.long));
        let limit = Limit { share: way.share, room, can_mark: behind.can_mark };
        let fate = match flows.admit(now.ns(), number, who, len, limit) {
            Admission::Pass => Fate::Pass,
            Admission::Mark => Fate::Mark,
            Admission::Drop => return Fate::Drop { by: way.by },
        };
        self.queue = self.queue.saturating_add(leaf::cost(len).unsigned_abs());
        fate
    }

    /// Counts a packet, and moves the levels on its way.
    #[inline(always)]
    fn way(&mut self, now: Instant, leaf: u32, len: u32, behind: Behind) -> Result<Way, Place> {
        let (now, len) = (now.ns(), len.clamp(1, LONGEST));
        let Some(flags) = self.leaves.get(leaf as usize).map(|l| l.child.flags) else {
            return Err(Place::Inner(0));
        };
        if flags.0 & (Flags::FREE | Flags::WAITING) != 0 {
            return Err(Place::Leaf(leaf));
        }
        self.step(now, leaf);
        let gap = self.leaves[leaf as usize].last;
        let gap = if gap == 0 { 0 } else { now.saturating_sub(gap) };
        self.arrive(now, leaf, len);
        let longest = len.max(self.longest - (self.longest >> 8));
        if longest != self.longest {
            self.longest = longest;
            self.size();
        }
        self.drain(now);
        Ok(Way { gap, ..self.descend(leaf, behind) })
    }

    /// What a leaf may send now; the link's rate while nothing limits it.
    #[must_use]
    pub fn share(&self, leaf: u32) -> Rate {
        self.limited(leaf).0
    }

    /// What a leaf may send now, and who limits it.
    #[must_use]
    pub fn limited(&self, number: u32) -> (Rate, Place) {
        let mut by = Place::Inner(0);
        let Some(leaf) = self.leaves.get(number as usize) else { return (Rate::ZERO, by) };
        let (path, depth) = self.path(leaf.child.parent);
        let mut budget = self.capacity;
        for step in (0..depth).rev() {
            let node = &self.inner[path[step] as usize];
            let ((share, is_level), place) = if step == 0 {
                (node.entitle(&leaf.child, budget), Place::Leaf(number))
            } else {
                let next = &self.inner[path[step - 1] as usize];
                (node.entitle(&next.child, budget), Place::Inner(path[step - 1]))
            };
            if share < budget {
                by = if is_level { Place::Inner(path[step]) } else { place };
            }
            budget = share;
        }
        (rate(budget), by)
    }

    /// How fast a leaf sends, as far as is known.
    #[must_use]
    pub fn demand(&self, leaf: u32) -> Rate {
        let leaf = self.leaves.get(leaf as usize);
        let active = leaf.filter(|leaf| leaf.child.flags.has(Flags::ACTIVE));
        active.map_or(Rate::ZERO, |leaf| rate(leaf.rate))
    }

    /// Bytes that it keeps for so many nodes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.inner.as_slice()) + size_of_val(self.leaves.as_slice())
    }

    /// Looks at `steps` leaves for silence: what a timer calls on a link that has few packets.
    pub fn sweep(&mut self, now: Instant, steps: u32) {
        (0..steps).for_each(|_| self.step(now.ns(), NONE));
    }

    /// The nodes from a parent up to the link.
    fn path(&self, parent: u32) -> ([u32; PATH], usize) {
        let (mut path, mut depth, mut at) = ([0; PATH], 0, parent);
        while depth < PATH {
            path[depth] = at;
            depth += 1;
            if at == 0 {
                break;
            }
            at = self.inner[at as usize].child.parent;
        }
        (path, depth)
    }

    /// Counts the packet in its leaf, and what the leaf wants now on its way up.
    fn arrive(&mut self, now: u64, number: u32, len: u32) {
        let leaf = &mut self.leaves[number as usize];
        if leaf.child.flags.has(Flags::ACTIVE) {
            let before = leaf.demand();
            leaf.count(now, len);
            let after = leaf.demand();
            if after != before {
                let node = &mut self.inner[leaf.child.parent as usize];
                let (was, at) = (node.demand(), leaf.child.parent);
                node.sums.change(&leaf.child, before, after);
                self.rise(at, was);
            }
        } else {
            leaf.begin(now, len, self.burst);
            let node = &mut self.inner[leaf.child.parent as usize];
            let (was, at) = (node.demand(), leaf.child.parent);
            let demand = leaf.demand();
            node.sums.join(&mut leaf.child, demand);
            self.rise(at, was);
        }
    }

    /// A leaf counts no longer.
    fn retire(&mut self, number: u32) {
        let leaf = &mut self.leaves[number as usize];
        let node = &mut self.inner[leaf.child.parent as usize];
        let (was, at) = (node.demand(), leaf.child.parent);
        let demand = leaf.demand();
        node.sums.leave(&mut leaf.child, demand);
        self.rise(at, was);
    }

    /// Tells the nodes above that this one, which wanted `was`, wants something else.
    fn rise(&mut self, mut at: u32, mut was: u64) {
        let mut wants = self.inner[at as usize].demand();
        while at != 0 {
            let Inner { child, sums: Sums { weight, .. }, .. } = self.inner[at as usize];
            let node = &mut self.inner[child.parent as usize];
            let most = node.child.peak.get();
            let before = node.sums.demand.min(most);
            match (child.flags.has(Flags::ACTIVE), weight > 0) {
                (true, true) if wants == was => return,
                (true, true) => node.sums.change(&child, was, wants),
                (false, false) => return,
                (_, joins) => self.turn(at, if joins { wants } else { was }),
            }
            wants = self.inner[child.parent as usize].sums.demand.min(most);
            (at, was) = (child.parent, before);
        }
    }

    /// A node with children begins to count at its parent, or counts no longer.
    #[cold]
    fn turn(&mut self, at: u32, demand: u64) {
        let parent = self.inner[at as usize].child.parent;
        let (above, below) = self.inner.split_at_mut(at as usize);
        let (node, child) = (&mut above[parent as usize], &mut below[0].child);
        if child.flags.has(Flags::ACTIVE) {
            node.sums.leave(child, demand);
        } else {
            node.sums.join(child, demand);
        }
    }

    /// Looks again how a child that counts stands to its parent's level.
    #[cold]
    fn look(&mut self, place: Place) -> Flags {
        match place {
            Place::Inner(at) => {
                let parent = self.inner[at as usize].child.parent;
                let (above, below) = self.inner.split_at_mut(at as usize);
                let demand = below[0].demand();
                above[parent as usize].sums.look(&mut below[0].child, demand);
                below[0].child.flags
            }
            Place::Leaf(at) => {
                let leaf = &mut self.leaves[at as usize];
                let demand = leaf.demand();
                self.inner[leaf.child.parent as usize].sums.look(&mut leaf.child, demand);
                leaf.child.flags
            }
        }
    }

    /// Lets the virtual queue go at the rate of the link.
    fn drain(&mut self, now: u64) {
        let gap = now.saturating_sub(self.last).min(leaf::PAUSE);
        self.last = self.last.max(now);
        self.queue = self.queue.saturating_sub(self.capacity.saturating_mul(gap));
    }

    /// Sizes what depends on the link's rate and on the longest packets.
    fn size(&mut self) {
        self.gate = Gate::new(self.capacity, self.options.gate, self.longest);
        self.burst = leaf::burst_of(self.capacity);
    }

    /// What the link shares out: its rate, a little more while the virtual queue is nearly empty,
    /// so that what nobody used in time is not lost, and a little less while it is long.
    fn budget(&self) -> u64 {
        let rest = self.gate.rest;
        if self.queue < rest / 4 {
            return self.capacity + self.capacity / RAISED;
        }
        // what has queued is given 2^24 ns to go, and a part of the rate at most: with 2^22 a load
        // of just the rate lost 0.65 % instead of 0.32 %, and the queue under overload was the same
        let over = self.queue.saturating_sub(rest);
        let drained = (over >> 24).min(self.capacity / HELD_BACK[0]);
        // a queue twice as long stands: with no more than that part it went in half a second
        let standing = over.saturating_sub(rest) >> 22;
        self.capacity - drained - standing.min(self.capacity / STANDING)
    }

    /// Moves the levels on the way to a leaf; what it may send, and who limits it.
    fn descend(&mut self, number: u32, behind: Behind) -> Way {
        let mut budget = self.budget();
        let mut by = Place::Inner(0);
        let (path, depth) = self.path(self.leaves[number as usize].child.parent);
        let mut queue = Queue::new(behind, depth);
        for step in (0..depth).rev() {
            let at = path[step];
            if step + 1 == queue.above {
                budget = queue.hold(budget, Gate::new(budget, self.options.gate, self.longest));
            }
            let (mut child, demand, place) = if step == 0 {
                let leaf = &self.leaves[number as usize];
                (leaf.child, leaf.demand(), Place::Leaf(number))
            } else {
                let next = &self.inner[path[step - 1] as usize];
                (next.child, next.demand(), Place::Inner(path[step - 1]))
            };
            if !self.inner[at as usize].sums.knows(&child, demand) {
                child.flags = self.look(place);
            }
            let node = &mut self.inner[at as usize];
            node.settle(budget);
            let (share, is_level) = node.entitle(&child, budget);
            if share < budget {
                by = if is_level { Place::Inner(at) } else { place };
            }
            budget = share;
        }
        if queue.above == 0 {
            budget = queue.hold(budget, Gate::new(budget, self.options.gate, self.longest));
        }
        Way { share: budget, by, is_crowded: queue.is_long, room: queue.room, gap: 0 }
    }

    /// Lets a packet pass by the credit of its leaf.
    fn enforce(&mut self, number: u32, len: u32, way: &Way, can_mark: bool) -> Fate {
        let &Way { share, by, is_crowded, gap, .. } = way;
        let gate = self.gate.long;
        let leaf = &mut self.leaves[number as usize];
        let cost = leaf::cost(len);
        // what a burst is depends on its longest packets, not on this one
        let burst = leaf::burst(leaf.longest(), self.burst);
        if by == Place::Inner(0) && self.inner[0].sums.level.is_infinite() && !is_crowded {
            // nothing limits it
            leaf.earn(gap, share, self.options.credit.ns(), burst);
            leaf.credit = leaf.credit.max(burst);
            leaf.small = burst.unsigned_abs();
            self.queue = self.queue.saturating_add(cost.unsigned_abs());
            return Fate::Pass;
        }
        leaf.earn(gap, share, self.options.credit.ns(), burst);
        if self.queue > gate {
            // bursts are what has made it long: less of them, the longer it is
            let is_long = self.queue > gate.saturating_mul(2);
            let one = leaf::cost(leaf.longest()).unsigned_abs();
            leaf.small = leaf.small.min(one << if is_long { 0 } else { 2 });
        }
        let is_open = (self.queue <= gate && !is_crowded) || leaf.small >= cost.unsigned_abs();
        let fate = if leaf.credit >= cost && is_open {
            Fate::Pass
        } else if can_mark
            && is_open
            && leaf.credit - cost > -leaf::depth_of(share, self.options.credit.ns(), burst)
        {
            Fate::Mark
        } else {
            return Fate::Drop { by };
        };
        leaf.pay(cost);
        self.queue = self.queue.saturating_add(cost.unsigned_abs());
        fate
    }
}

/// What a leaf has.
struct Way {
    share: u64,
    by: Place,
    /// A queue behind is so long that only small bursts pass.
    is_crowded: bool,
    room: Room,
    /// Since the last packet of the leaf, in ns.
    gap: u64,
}

/// A queue behind a node on the way.
struct Queue {
    /// How many nodes with children are on the way below and including that node; one that is no
    /// number of nodes where there is no queue.
    above: usize,
    /// What waits, as an amount.
    waiting: u64,
    is_long: bool,
    room: Room,
}

impl Queue {
    /// `depth`: nodes with children on the way.
    fn new(behind: Behind, depth: usize) -> Queue {
        let waiting = behind.waiting.get().min(1 << 30) << CREDIT;
        let above = depth.saturating_sub(behind.level as usize);
        Queue {
            above: if waiting == 0 { usize::MAX } else { above },
            waiting,
            is_long: false,
            room: Room::All,
        }
    }

    /// What is left of a budget: a queue that is short is given time to go, as the virtual one is;
    /// what is beyond the gate goes soon, whatever that takes.
    fn hold(&mut self, budget: u64, gate: Gate) -> u64 {
        let Gate { rest, long } = gate;
        let over = self.waiting.saturating_sub(long);
        self.is_long = over > 0;
        self.room = Room::behind(self.waiting, long);
        let short = self.waiting.saturating_sub(rest) >> 24;
        let drained = short.min(budget / HELD_BACK[1]) + (over >> 22);
        budget.saturating_sub(drained).max(budget / 64)
    }
}

/// How long a queue may be.
#[derive(Clone, Copy, Debug)]
struct Gate {
    /// What may stand in it.
    rest: u64,
    /// From here on bursts are cut.
    long: u64,
}

impl Gate {
    /// For a queue that is served at `rate`, with packets of this length.
    fn new(rate: u64, gate: Span, longest: u32) -> Gate {
        let (time, one) = (rate.saturating_mul(gate.ns()), leaf::cost(longest).unsigned_abs());
        Gate { rest: (time / 32).max(8 * one), long: time.max(16 * one) }
    }
}

/// A peak; none at all where it is the most a rate can be.
fn peak(rate: Rate) -> Packed {
    if rate == Rate::MAX { Packed::INFINITE } else { Packed::new(units(rate)) }
}

const _: () = assert!(size_of::<Leaf>() == 64 && size_of::<Inner>() == 128);
const _: () = assert!(CREDIT == 33, "an amount over ns is a rate");

#[cfg(test)]
mod tests;
