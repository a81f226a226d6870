//! The form for many at once: cores, boxes, the kernel. Each core counts the bytes of its
//! leaves and passes the part of them that was published last; every few milliseconds somebody sums
//! the counters, computes all shares, and publishes anew. Between two such moments nobody
//! waits for anybody.
//!
//! A core passes its part by carrying what was rounded from packet to packet, so all cores together
//! are right to a packet each, however the packets are spread over them. The price is one period: a
//! newcomer is not limited before its first is over, and who sends more than in the last has the
//! same part of more.
//!
//! A round looks at who has sent something and at the nodes above those whose demand is another
//! than before (`round`); how the level of a node follows is the law's (`Settling`).

mod marks;
mod round;
mod settle;

use weir_units::{Instant, Rate, limits};

use crate::fate::Fate;
use crate::level::{Kid, Level, Scale};
use crate::scale::{CREDIT, LONGEST, MOST, Packed, narrow, rate, units};
use crate::tree::{Layout, Node, Place, Places, Unfit, number};
use marks::Marks;
use round::Stage;
use settle::Rule;
pub use settle::Settling;

/// Bits behind the point of a part.
const PART: u32 = 24;
/// A rate is known anew after so many bytes.
const ENOUGH: u32 = 12_000;
/// Or after so long, in ns.
const LONG: u64 = 1 << 26;

/// What one core knows of one leaf.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Bytes that came since the last publication.
    bytes: u32,
    /// The part that passes, in 2^-24.
    part: u32,
    /// What is carried from packet to packet.
    carried: i64,
}

/// The counters of one core, and what was published for it.
#[derive(Clone, Debug)]
pub struct Core {
    cells: Box<[Cell]>,
    /// Whose counters are not zero.
    counted: Marks,
}

impl Core {
    /// A packet of a leaf.
    pub fn packet(&mut self, leaf: u32, len: u32) -> Fate {
        let Some(cell) = self.cells.get_mut(leaf as usize) else {
            return Fate::Drop { by: Place::Inner(0) };
        };
        let len = len.clamp(1, LONGEST);
        if cell.bytes == 0 {
            self.counted.set(leaf);
        }
        cell.bytes = cell.bytes.saturating_add(len);
        let whole = i64::from(len) << PART;
        let carried = cell.carried + i64::from(len) * i64::from(cell.part);
        let passes = carried >= whole / 2;
        cell.carried = if passes { carried - whole } else { carried };
        if passes { Fate::Pass } else { Fate::Drop { by: Place::Leaf(leaf) } }
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.cells) + self.counted.bytes()
    }
}

/// A node with children.
#[derive(Clone, Copy, Debug)]
struct Inner {
    terms: Terms,
    /// What its children want.
    wants: u64,
    /// What its parent knows that it wants.
    demand: u64,
    budget: u64,
    /// What a unit of weight has, in 2^-16; `OPEN`, `SHORT`, or with `SCARCE`.
    level: u64,
    /// Its children: those with children, and leaves, from and up to where.
    inner: [u32; 2],
    leaves: [u32; 2],
}

/// There is enough for all.
const OPEN: u64 = u64::MAX;
/// Guarantees are more than there is.
const SHORT: u64 = u64::MAX - 1;
/// The level of those without a guarantee, where guarantees are too much; no level is as high.
const SCARCE: u64 = 1 << 62;

#[derive(Clone, Copy, Debug)]
struct Terms {
    parent: u32,
    weight: u32,
    floor: Packed,
    peak: Packed,
}

#[derive(Clone, Copy, Debug)]
struct Leaf {
    terms: Terms,
    demand: u64,
    /// Bytes since its rate was known last, and for how long they were counted, in 2^6 ns.
    pending: u32,
    age: u32,
}

/// Sums counters and publishes shares.
#[derive(Debug)]
pub struct Published {
    inner: Box<[Inner]>,
    leaves: Box<[Leaf]>,
    rule: Rule,
    /// Leaves that count.
    active: Marks,
    /// Nodes whose level is to be found again in this round, and in the next.
    stirred: Marks,
    restless: Marks,
    /// When each 64 leaves were counted last, in ns.
    counted: Box<[u64]>,
    stage: Stage,
}

impl Published {
    /// The exact law for this tree.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn new(nodes: &[Node]) -> Result<(Published, Places), Unfit> {
        Published::under(nodes, Settling::Exact)
    }

    /// Another law for this tree.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn under(nodes: &[Node], settling: Settling) -> Result<(Published, Places), Unfit> {
        let layout = Layout::new(nodes)?;
        let terms = |&at: &u32| {
            let node = &nodes[at as usize];
            let floor = if settling.knows_guarantees() { node.floor } else { Rate::ZERO };
            Terms {
                parent: layout.parent(nodes, at),
                weight: node.weight.clamp(1, limits::SHARE_WEIGHT),
                floor: Packed::new(units(floor)),
                peak: Packed::new(units(node.peak)),
            }
        };
        let none = |terms| {
            let (wants, demand, budget, level) = (0, 0, 0, OPEN);
            Inner { terms, wants, demand, budget, level, inner: [0; 2], leaves: [0; 2] }
        };
        let mut inner: Box<[Inner]> = layout.inner.iter().map(terms).map(none).collect();
        let leaf = |terms| Leaf { terms, demand: 0, pending: 0, age: 0 };
        let leaves: Box<[Leaf]> = layout.leaves.iter().map(terms).map(leaf).collect();
        inner[0].budget = inner[0].terms.peak.get();
        for at in 1..inner.len() {
            let Terms { parent, peak, .. } = inner[at].terms;
            extend(&mut inner[parent as usize].inner, at);
            inner[at].budget = peak.get().min(inner[parent as usize].budget);
        }
        for (at, leaf) in leaves.iter().enumerate() {
            extend(&mut inner[leaf.terms.parent as usize].leaves, at);
        }
        let active = Marks::new(leaves.len());
        let published = Published {
            rule: Rule::new(settling, inner.len(), inner[0].terms.peak.get()),
            stirred: Marks::new(inner.len()),
            restless: Marks::new(inner.len()),
            counted: vec![0; active.words() as usize].into(),
            active,
            inner,
            leaves,
            stage: Stage::default(),
        };
        Ok((published, layout.places))
    }

    /// The counters of another core.
    #[must_use]
    pub fn core(&self) -> Core {
        let cell = Cell { bytes: 0, part: 1 << PART, carried: 0 };
        let cells = vec![cell; self.leaves.len()].into();
        Core { cells, counted: Marks::new(self.leaves.len()) }
    }

    /// Sums what the cores counted, computes all shares, and publishes them: every few ms.
    pub fn publish(&mut self, now: Instant, cores: &mut [Core]) {
        while !self.publish_some(now, cores, u32::MAX) {}
    }

    /// Takes demands that somebody else has measured, and computes all shares.
    pub fn set_demands(&mut self, demands: impl IntoIterator<Item = (u32, Rate)>) {
        for (at, demand) in demands {
            if let Some(leaf) = self.leaves.get_mut(at as usize) {
                let before = leaf.kid().most;
                leaf.demand = units(demand);
                self.active.set(at);
                self.hear(at, before);
            }
        }
        self.stage = Stage::heard(&self.inner);
        while !self.publish_some(Instant::ZERO, &mut [], u32::MAX) {}
    }

    /// What a leaf may send.
    #[must_use]
    pub fn share(&self, leaf: u32) -> Rate {
        let Some(leaf) = self.leaves.get(leaf as usize) else { return Rate::ZERO };
        let parent = &self.inner[leaf.terms.parent as usize];
        rate(self.level(parent).share(leaf.kid(), leaf.terms, parent.budget))
    }

    /// How fast a leaf sends, as far as is known.
    #[must_use]
    pub fn demand(&self, leaf: u32) -> Rate {
        self.leaves.get(leaf as usize).map_or(Rate::ZERO, |leaf| rate(leaf.demand))
    }

    /// Bytes that it keeps, without the cores.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let marks = [&self.active, &self.stirred, &self.restless];
        size_of_val(&*self.inner)
            + size_of_val(&*self.leaves)
            + size_of_val(&*self.counted)
            + marks.map(Marks::bytes).iter().sum::<usize>()
            + self.rule.bytes()
    }

    fn level(&self, node: &Inner) -> Level {
        match node.level {
            OPEN => Level::Open,
            SHORT => Level::Short(Scale::fit(node.budget, &self.kids(node))),
            level if level & SCARCE > 0 => {
                let scale = Scale::of(node.budget, &self.kids(node));
                Level::Scarce { scale, level: level & !SCARCE }
            }
            level => Level::At(level),
        }
    }

    /// The children of a node, without leaves that do not count.
    fn kids(&self, node: &Inner) -> impl Iterator<Item = Kid> + Clone + '_ {
        let [from, to] = node.inner.map(|at| at as usize);
        let inner = self.inner[from..to].iter().map(Inner::kid);
        let leaves = self.active.within(node.leaves);
        inner.chain(leaves.map(|at| self.leaves[at as usize].kid()))
    }
}

impl Level {
    fn share(self, kid: Kid, terms: Terms, budget: u64) -> u64 {
        self.entitle(budget, kid, terms.floor.get(), terms.peak.get())
    }
}

impl Terms {
    fn kid(&self, demand: u64) -> Kid {
        let most = demand.min(self.peak.get());
        let floor = self.floor.get();
        Kid { floor, least: floor.min(most), most, weight: self.weight }
    }
}

impl Inner {
    fn kid(&self) -> Kid {
        self.terms.kid(self.demand)
    }
}

impl Leaf {
    fn kid(&self) -> Kid {
        self.terms.kid(self.demand)
    }

    /// Counts a period; the rate is known anew when there is enough to tell.
    fn count(&mut self, bytes: u32, gap: u64) {
        self.pending = self.pending.saturating_add(bytes);
        let short = u32::try_from(gap >> 6).unwrap_or(u32::MAX);
        self.age = self.age.saturating_add(short.max(1));
        let age = u64::from(self.age) << 6;
        let overdue = u128::from(self.demand) * u128::from(age);
        if self.pending == 0 && overdue > u128::from(ENOUGH) << CREDIT {
            // all that it would have sent since is missing
            (self.demand, self.age) = (0, 0);
        } else if self.pending >= ENOUGH || (self.pending > 0 && age >= LONG) {
            let counted = u128::from(self.pending) << CREDIT;
            self.demand = narrow(counted / u128::from(age)).min(MOST);
            (self.pending, self.age) = (0, 0);
        } else if self.demand == 0 && self.pending == 0 {
            self.age = 0;
        }
    }
}

/// A range that ends behind `at`.
fn extend(range: &mut [u32; 2], at: usize) {
    let at = number(at);
    *range = if range[0] == range[1] { [at, at + 1] } else { [range[0], at + 1] };
}

const _: () = assert!(size_of::<Cell>() == 16 && size_of::<Leaf>() == 32);
const _: () = assert!(size_of::<Inner>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn published(settling: Settling, leaves: usize) -> Published {
        let link = Node::link(Rate::from_bps(10 * MBIT));
        let nodes = [vec![link], vec![Node::leaf(0, 1); leaves]].concat();
        Published::under(&nodes, settling).unwrap().0
    }

    /// Shares in kbit/s when each leaf wants so many Mbit/s.
    fn shares(published: &mut Published, wanted: &[u64]) -> Vec<u64> {
        let rates = wanted.iter().map(|mbit| Rate::from_bps(mbit * MBIT));
        published.set_demands((0..).zip(rates));
        (0..number(wanted.len())).map(|leaf| (published.share(leaf).bps() + 500) / 1_000).collect()
    }

    #[test]
    fn nobody_is_limited_before_the_first_round() {
        let published = published(Settling::Exact, 1);
        let mut core = published.core();
        assert!((0..1_000).all(|_| core.packet(0, 1_514) == Fate::Pass));
    }

    #[test]
    fn demands_that_are_told_hold_at_once_wherever_a_round_is() {
        for steps in 0..12 {
            let mut nodes = vec![Node::link(Rate::from_bps(10 * MBIT))];
            nodes.extend([Node::inner(0, 1), Node::inner(0, 1)]);
            nodes.extend([Node::leaf(1, 1), Node::leaf(2, 1)]);
            let (mut published, _) = Published::new(&nodes).unwrap();
            let mut cores = [published.core()];
            for leaf in [0, 1] {
                (0..100).for_each(|_| _ = cores[0].packet(leaf, 1_500));
            }
            let now = Instant::from_ns(2_000_000);
            (0..steps).for_each(|_| _ = published.publish_some(now, &mut cores, 1));
            assert_eq!(shares(&mut published, &[2, 9])[1], 8_000, "after {steps} steps");
        }
    }

    #[test]
    fn who_has_no_cores_is_taken_to_pass_all() {
        let mut published = published(Settling::Hcsfq, 2);
        // the first round notices that there is too much, the second halves it: 20 of 10 Mbit/s
        assert_eq!(shares(&mut published, &[10, 10]), [10_000; 2]);
        assert_eq!(shares(&mut published, &[10, 10]), [5_000; 2]);
    }

    #[test]
    fn a_silent_branch_makes_no_even_split_smaller() {
        let mut nodes = vec![Node::link(Rate::from_bps(10 * MBIT))];
        nodes.extend((0..3).map(|_| Node::inner(0, 1)));
        nodes.extend((1..=3).map(|parent| Node::leaf(parent, 1)));
        let (mut published, _) = Published::under(&nodes, Settling::Hsdba).unwrap();
        // each fits, but both together do not: the even split of two
        assert_eq!(shares(&mut published, &[8, 8, 0])[..2], [5_000; 2]);
    }
}
