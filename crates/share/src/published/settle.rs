//! How the level of a node follows what its children want, by law. Ours is exact in each round. The
//! others do once a round what they do with packets or epochs: HSDBA takes one step of its
//! recurrence, HCSFQ moves the fair rate by what was accepted, AHAB the threshold of a
//! slice by what three of them pass.

use super::{Core, Inner, OPEN, PART, Published, SCARCE, SHORT, Terms};
use crate::level::{self, Kid, Level};
use crate::plain::part;
use crate::scale::narrow;
use crate::{ahab, hcsfq, hsdba};

/// By which law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// Ours: the exact answer to what is wanted.
    Exact,
    /// HSDBA, corrected: one step a round.
    Hsdba,
    /// HCSFQ, in any depth. Knows no guarantees.
    Hcsfq,
    /// AHAB, with thresholds 2^-this away: exact between slices, one step a round in each. Knows
    /// no guarantees.
    Ahab(u32),
}

impl Settling {
    pub(super) fn knows_guarantees(self) -> bool {
        matches!(self, Settling::Exact | Settling::Hsdba)
    }
}

/// The law, and what it keeps of each node beside the level.
#[derive(Debug)]
pub(super) enum Rule {
    Exact,
    Hsdba,
    Hcsfq(Box<[hcsfq::Fair]>),
    /// How near the thresholds are, and the rate of the link.
    Ahab(u32, u64),
}

impl Rule {
    pub(super) fn new(settling: Settling, nodes: usize, capacity: u64) -> Rule {
        match settling {
            Settling::Exact => Rule::Exact,
            Settling::Hsdba => Rule::Hsdba,
            Settling::Hcsfq => Rule::Hcsfq(vec![hcsfq::Fair::new(capacity); nodes].into()),
            Settling::Ahab(nearness) => Rule::Ahab(nearness.min(32), capacity),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        if let Rule::Hcsfq(fair) = self { size_of_val(&**fair) } else { 0 }
    }
}

impl Published {
    /// Moves the level of a node; whether it may move again though nothing else does.
    pub(super) fn settle(&mut self, at: u32) -> bool {
        let node = self.inner[at as usize];
        let (level, is_restless) = match &self.rule {
            Rule::Exact => (self.exact(&node), false),
            Rule::Ahab(..) if node.inner[0] < node.inner[1] => (self.exact(&node), false),
            Rule::Ahab(nearness, most) => (self.threshold(&node, *nearness, *most), true),
            Rule::Hsdba => {
                let level = self.step(&node);
                (level, level != node.level)
            }
            Rule::Hcsfq(_) => (self.fair(at), true),
        };
        self.inner[at as usize].level = level;
        is_restless
    }

    /// What a child with children has.
    pub(super) fn budget(&self, at: u32, level: Level, kid: Kid, terms: Terms) -> u64 {
        let node = &self.inner[at as usize];
        let share = level.share(kid, terms, node.budget);
        match (&self.rule, level) {
            // with room on the link a slice may grow by all of it
            (Rule::Ahab(..), Level::Open) => {
                let spare = node.budget.saturating_sub(node.wants);
                kid.most.saturating_add(spare).min(share)
            }
            (Rule::Ahab(..), _) => share.min(kid.most),
            _ => share,
        }
    }

    /// What a node accepted since the last round: for the law that asks.
    pub(super) fn accept(&mut self, at: u32, cores: &[Core]) {
        let Rule::Hcsfq(fair) = &mut self.rule else { return };
        let node = &self.inner[at as usize];
        let [from, to] = node.inner.map(|at| at as usize);
        let inner = fair[from..to].iter().map(|fair| fair.accepted);
        let leaves = self.active.within(node.leaves).map(|leaf| {
            let cell = cores.first().and_then(|core| core.cells.get(leaf as usize));
            let passes = cell.map_or(1 << PART, |cell| cell.part);
            let demand = u128::from(self.leaves[leaf as usize].demand);
            narrow((demand * u128::from(passes)) >> PART)
        });
        fair[at as usize].accepted = inner.chain(leaves).fold(0, u64::saturating_add);
    }

    fn exact(&self, node: &Inner) -> u64 {
        let was = if node.level >= SCARCE { 0 } else { node.level };
        match level::follow(node.budget, was, &self.kids(node)) {
            Level::Open => OPEN,
            Level::Short(_) => SHORT,
            Level::At(level) => level,
            Level::Scarce { level, .. } => SCARCE | level,
        }
    }

    /// One step of HSDBA: how all stand to the level as it is, then the level that follows.
    fn step(&self, node: &Inner) -> u64 {
        let mut sums = hsdba::Sums::new(if node.level == SHORT { 0 } else { node.level });
        let kids = self.kids(node).filter(|kid| kid.most > 0);
        kids.for_each(|kid| sums.add(kid.most, kid.least, kid.weight, node.budget));
        let least = self.kids(node).map(|kid| kid.least).fold(0, u64::saturating_add);
        if least > node.budget { SHORT } else { sums.next(node.budget) }
    }

    fn fair(&mut self, at: u32) -> u64 {
        let node = self.inner[at as usize];
        let by_weight = |kid: Kid| kid.most / u64::from(kid.weight);
        let largest = self.kids(&node).map(by_weight).max().unwrap_or(0);
        let Rule::Hcsfq(fair) = &mut self.rule else { return OPEN };
        let fair = &mut fair[at as usize];
        fair.round(node.wants, node.budget, largest) << 16
    }

    /// The threshold of a slice, in 2^-16.
    fn threshold(&self, node: &Inner, nearness: u32, most: u64) -> u64 {
        let threshold = if node.level >= SHORT { most.max(1) } else { node.level >> 16 };
        let mut slice = ahab::Slice::new(threshold, node.budget);
        slice.passed = slice.thresholds(nearness).map(|threshold| {
            let parts = self.kids(node).map(|kid| part(kid.weight, threshold << 16).min(kid.most));
            parts.fold(0, u64::saturating_add)
        });
        slice.adjust(nearness, most);
        slice.threshold << 16
    }
}
