//! The same law for many at once: cores, boxes, the kernel. Each core counts the bytes of its
//! leaves and passes the part of them that was published last; every few milliseconds somebody sums
//! the counters, computes all shares exactly, and publishes anew. Between two such moments nobody
//! waits for anybody.
//!
//! A core passes its part by carrying what was rounded from packet to packet, so all cores together
//! are right to a packet each, however the packets are spread over them. The price is one period: a
//! newcomer is not limited before its first is over, and who sends more than in the last has the
//! same part of more.

use weir_units::{Instant, Rate, limits};

use crate::fate::Fate;
use crate::level::{self, Kid, Level};
use crate::scale::{CREDIT, LONGEST, MOST, Packed, bits, narrow, rate, units};
use crate::tree::{Layout, Node, Place, Places, Unfit, number};

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
pub struct Core(Vec<Cell>);

impl Core {
    /// A packet of a leaf.
    pub fn packet(&mut self, leaf: u32, len: u32) -> Fate {
        let Some(cell) = self.0.get_mut(leaf as usize) else {
            return Fate::Drop { by: Place::Inner(0) };
        };
        let len = len.min(LONGEST);
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
        size_of_val(self.0.as_slice())
    }
}

/// A node with children.
#[derive(Clone, Copy, Debug)]
struct Inner {
    terms: Terms,
    demand: u64,
    budget: u64,
    /// Its children: those with children, and leaves, from and up to where.
    inner: [u32; 2],
    leaves: [u32; 2],
}

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
    inner: Vec<Inner>,
    leaves: Vec<Leaf>,
    last: u64,
}

impl Published {
    /// The law for this tree.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn new(nodes: &[Node]) -> Result<(Published, Places), Unfit> {
        let layout = Layout::new(nodes)?;
        let terms = |&at: &u32| {
            let node = &nodes[at as usize];
            Terms {
                parent: layout.parent(nodes, at),
                weight: node.weight.clamp(1, limits::SHARE_WEIGHT),
                floor: Packed::new(units(node.floor)),
                peak: Packed::new(units(node.peak)),
            }
        };
        let none = |terms| Inner { terms, demand: 0, budget: 0, inner: [0; 2], leaves: [0; 2] };
        let mut inner: Vec<Inner> = layout.inner.iter().map(terms).map(none).collect();
        let leaf = |terms| Leaf { terms, demand: 0, pending: 0, age: 0 };
        let leaves: Vec<Leaf> = layout.leaves.iter().map(terms).map(leaf).collect();
        for at in 1..inner.len() {
            let parent = inner[at].terms.parent as usize;
            extend(&mut inner[parent].inner, at);
        }
        for (at, leaf) in leaves.iter().enumerate() {
            extend(&mut inner[leaf.terms.parent as usize].leaves, at);
        }
        Ok((Published { inner, leaves, last: 0 }, layout.places))
    }

    /// The counters of another core.
    #[must_use]
    pub fn core(&self) -> Core {
        let cell = Cell { bytes: 0, part: 1 << PART, carried: 0 };
        Core(vec![cell; self.leaves.len()])
    }

    /// Sums what the cores counted, computes all shares, and publishes them: every few ms.
    pub fn publish(&mut self, now: Instant, cores: &mut [Core]) {
        let gap = now.ns().saturating_sub(self.last);
        if gap == 0 {
            return;
        }
        self.last = now.ns();
        for (at, leaf) in self.leaves.iter_mut().enumerate() {
            let cells = cores.iter_mut().filter_map(|core| core.0.get_mut(at));
            let bytes =
                cells.fold(0_u32, |sum, cell| sum.saturating_add(std::mem::take(&mut cell.bytes)));
            leaf.count(bytes, gap);
        }
        self.solve();
        for parent in &self.inner {
            let level = self.level(parent);
            let [from, to] = parent.leaves;
            for at in from..to {
                let leaf = &self.leaves[at as usize];
                let part = part(level.share(leaf.kid(), leaf.terms, parent.budget), leaf.demand);
                for core in &mut *cores {
                    if let Some(cell) = core.0.get_mut(at as usize) {
                        cell.part = part;
                    }
                }
            }
        }
    }

    /// Takes demands that somebody else has measured, and computes all shares.
    pub fn set_demands(&mut self, demands: impl IntoIterator<Item = (u32, Rate)>) {
        for (leaf, demand) in demands {
            if let Some(leaf) = self.leaves.get_mut(leaf as usize) {
                leaf.demand = units(demand);
            }
        }
        self.solve();
    }

    /// What a leaf may send.
    #[must_use]
    pub fn share(&self, leaf: u32) -> Rate {
        let Some(leaf) = self.leaves.get(leaf as usize) else { return Rate::ZERO };
        let parent = &self.inner[leaf.terms.parent as usize];
        rate(self.level(parent).share(leaf.kid(), leaf.terms, parent.budget))
    }

    /// Bytes that it keeps, without the cores.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.inner.as_slice()) + size_of_val(self.leaves.as_slice())
    }

    /// Demands upwards, then what each node has downwards.
    fn solve(&mut self) {
        for at in (0..self.inner.len()).rev() {
            let node = self.inner[at];
            let [from, to] = node.leaves.map(|at| at as usize);
            let leaves = self.leaves[from..to].iter().map(|leaf| leaf.kid().most);
            let [from, to] = node.inner.map(|at| at as usize);
            let inner = self.inner[from..to].iter().map(|node| node.demand);
            let sum = leaves.chain(inner).fold(0, u64::saturating_add);
            self.inner[at].demand = sum.min(node.terms.peak.get());
        }
        self.inner[0].budget = self.inner[0].terms.peak.get();
        for at in 0..self.inner.len() {
            let node = self.inner[at];
            let [from, to] = node.inner;
            if from == to {
                continue;
            }
            let level = self.level(&node);
            for child in from..to {
                let child = &mut self.inner[child as usize];
                child.budget = level.share(child.kid(), child.terms, node.budget);
            }
        }
    }

    fn level(&self, node: &Inner) -> Level {
        let ([first, end], [leaf, last]) = (node.inner, node.leaves);
        let nodes = (end - first) as usize;
        let kid = |at: usize| match at.checked_sub(nodes) {
            None => self.inner[first as usize + at].kid(),
            Some(at) => self.leaves[leaf as usize + at].kid(),
        };
        level::find(node.budget, nodes + (last - leaf) as usize, kid)
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
        Kid { least: self.floor.get().min(most), most, weight: self.weight }
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

/// What part of a demand a share is, in 2^-24.
fn part(share: u64, demand: u64) -> u32 {
    if share >= demand {
        return 1 << PART;
    }
    let shift = bits(demand).saturating_sub(64 - PART - 1);
    let part = ((share >> shift) << PART) / (demand >> shift).max(1);
    u32::try_from(part).unwrap_or(1 << PART).min(1 << PART)
}

/// A range that ends behind `at`.
fn extend(range: &mut [u32; 2], at: usize) {
    let at = number(at);
    *range = if range[0] == range[1] { [at, at + 1] } else { [range[0], at + 1] };
}

const _: () = assert!(size_of::<Cell>() == 16 && size_of::<Leaf>() == 32);
const _: () = assert!(size_of::<Inner>() <= 64);
