//! HSDBA (Ran et al. 2024): each packet moves the share of each node on its way, and is dropped at
//! random. As printed it does not work; `Reading::Printed` does to the letter what Algorithm 1
//! says, so that this can be seen, and `Reading::Corrected` what it must mean:
//!
//! - a packet is dropped when the random number is *below* the probability;
//! - a rate is compared with weight times level, and counts as no more than the peak, in the nodes
//!   above as well;
//! - only leaves drop: what several levels drop multiplies;
//! - the satisfied are summed exactly, each with what it last added, not by one average for all;
//! - a node has its part of the level, not what it was measured to send;
//! - nobody unsatisfied: no limit if all fits, else the even split, below which no level falls;
//! - who is silent counts no longer at its parent, but keeps its rate and its place.
//!
//! The paper's guarantees are weights. Here they may also be rates: a child has the larger of its
//! guarantee and its part of the level, counts with its guarantee while that is the larger, and
//! guarantees above what there is are scaled down to it. There is no even split to
//! hold on to then, and a step may swing, so it goes half the way.

use weir_units::{Instant, Rate, Span};

use crate::estimate::{Window, follow};
use crate::fate::Fate;
use crate::plain::{Dice, Path, Plain, part};
use crate::scale::{CREDIT, LONGEST, PERIOD, narrow, rate, units};
use crate::tree::{Node, Place, Places, Unfit, number};

/// How Algorithm 1 is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As it must be meant.
    Corrected,
    /// To the letter.
    Printed,
}

/// How silent nodes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// All nodes are looked at eight times in each idle time.
    Poll,
    /// Each active leaf is looked at when its time is up.
    Timeout,
    /// Leaves have four times as long, nodes with children are polled.
    Hybrid,
    /// Each packet looks at the next leaf.
    Sweep,
}

/// What may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How Algorithm 1 is read.
    pub reading: Reading,
    /// How long rates are counted before they are known; zero takes an average over 2.1 ms.
    pub window: Span,
    /// Who sends nothing for so long is silent.
    pub idle: Span,
    /// How that is found.
    pub silence: Silence,
    /// Of the dice.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        let two = Span::from_ms(2);
        let (reading, silence) = (Reading::Corrected, Silence::Poll);
        Options { reading, window: two, idle: two, silence, seed: 1 }
    }
}

/// A node as its parent sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    window: Window,
    last: u64,
    /// What it adds to the satisfied of its parent.
    adds: u64,
    is_active: bool,
    standing: Standing,
    len: u32,
}

/// How a child stands to the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Unsatisfied,
    /// Wants more than its guarantee, which is more than its part.
    Kept,
    Satisfied,
}

/// What a parent keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    /// What the satisfied send, and what those have that have only their guarantee.
    satisfied: u64,
    unsatisfied: u64,
    active: u64,
    /// In 2^-16; `u64::MAX` for no limit.
    level: u64,
    /// When the average of the satisfied was last told, as printed.
    last: u64,
    /// Weight of those that have only their guarantee.
    kept: u64,
    /// Whether a child has a guarantee.
    keeps: bool,
}

/// The allocator.
#[derive(Debug)]
pub struct Hsdba {
    tree: Plain,
    /// Of nodes with children: as parents, and as children.
    sums: Vec<Sums>,
    inner: Vec<Known>,
    leaves: Vec<Known>,
    options: Options,
    dice: Dice,
    polled: u64,
    next: u32,
    /// When the time of a leaf is up, the next first.
    due: std::collections::VecDeque<(u64, u32)>,
    work: u64,
}

impl Hsdba {
    /// An allocator for this tree.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn new(nodes: &[Node], options: Options) -> Result<(Hsdba, Places), Unfit> {
        let (tree, places) = Plain::new(nodes)?;
        let (mut inner, mut leaves) =
            (vec![Known::default(); tree.inner.len()], vec![Known::default(); tree.leaves.len()]);
        let level = if options.reading == Reading::Printed { 0 } else { u64::MAX };
        let mut sums = vec![Sums::new(level); tree.inner.len()];
        for terms in tree.inner.iter().skip(1).chain(&tree.leaves) {
            sums[terms.parent as usize].keeps |= terms.floor > 0;
        }
        if options.reading == Reading::Printed {
            // all begin unsatisfied, and count
            for terms in tree.inner.iter().skip(1).chain(&tree.leaves) {
                sums[terms.parent as usize].unsatisfied += u64::from(terms.weight);
            }
            inner.iter_mut().chain(&mut leaves).for_each(|known| known.is_active = true);
        }
        let due = std::collections::VecDeque::with_capacity(tree.leaves.len());
        let dice = Dice::new(options.seed);
        let (polled, next, work) = (0, 0, 0);
        Ok((Hsdba { tree, sums, inner, leaves, options, dice, polled, next, due, work }, places))
    }

    /// A packet of a leaf.
    pub fn packet(&mut self, now: Instant, leaf: u32, len: u32) -> Fate {
        let (now, len) = (now.ns(), len.clamp(1, LONGEST));
        if leaf as usize >= self.leaves.len() {
            return Fate::Drop { by: Place::Inner(0) };
        }
        let path = self.tree.path(leaf);
        if self.options.reading == Reading::Printed {
            return self.printed(now, leaf, len, &path);
        }
        self.look_for_silence(now);
        let mut budget = self.tree.capacity();
        let (mut share, mut by) = (budget, Place::Inner(0));
        // what a node may not send, none above it is asked for
        let mut asked = self.measure(now, Place::Leaf(leaf), len);
        for &at in path.nodes().iter().skip(1).rev() {
            asked = self.measure(now, Place::Inner(at), asked);
        }
        let children = path.nodes().iter().skip(1).map(|&at| Place::Inner(at));
        let children = children.chain([Place::Leaf(leaf)]);
        for (&parent, child) in path.nodes().iter().zip(children) {
            share = self.entitled(parent, child, budget);
            self.judge(parent, child, share, budget);
            let entitled = self.entitled(parent, child, budget);
            if entitled < budget {
                by = Place::Inner(parent);
            }
            budget = entitled;
        }
        let known = &self.leaves[leaf as usize];
        let rate = known.window.rate;
        if rate > share && !self.dice.falls(share, rate) {
            return Fate::Drop { by };
        }
        Fate::Pass
    }

    /// What a leaf may send now.
    #[must_use]
    pub fn share(&self, leaf: u32) -> Rate {
        self.limited(leaf).0
    }

    /// What a leaf may send now, and who limits it.
    #[must_use]
    pub fn limited(&self, leaf: u32) -> (Rate, Place) {
        let mut by = Place::Inner(0);
        if leaf as usize >= self.leaves.len() {
            return (Rate::ZERO, by);
        }
        let path = self.tree.path(leaf);
        let children = path.nodes().iter().skip(1).map(|&at| Place::Inner(at));
        let mut budget = self.tree.capacity();
        for (&parent, child) in path.nodes().iter().zip(children.chain([Place::Leaf(leaf)])) {
            let entitled = self.entitled(parent, child, budget);
            if entitled < budget {
                let is_peak = entitled == self.terms(child).peak;
                by = if is_peak { child } else { Place::Inner(parent) };
            }
            budget = entitled;
        }
        (rate(budget), by)
    }

    /// Another rate for the link.
    pub fn set_capacity(&mut self, most: Rate) {
        self.tree.inner[0].peak = units(most);
    }

    /// Goes on where `old` is: `kept` says which leaf of the old tree is which of this one. Each
    /// joins with its next packet, at the rate that it is known to have.
    pub fn take_over(&mut self, old: &Hsdba, kept: &[(Place, Place)]) {
        self.dice = old.dice;
        (self.polled, self.next) = (old.polled, 0);
        for &(from, to) in kept {
            if let (Place::Leaf(from), Place::Leaf(to)) = (from, to)
                && let Some(&was) = old.leaves.get(from as usize)
                && let Some(known) = self.leaves.get_mut(to as usize)
            {
                let standing = Standing::default();
                *known = Known { is_active: false, standing, adds: 0, ..was };
            }
        }
    }

    /// A leaf is another's from now on: what was known of it is forgotten.
    pub fn begin_anew(&mut self, leaf: u32) {
        if (leaf as usize) < self.leaves.len() {
            self.rest(Place::Leaf(leaf));
            self.leaves[leaf as usize] = Known::default();
        }
    }

    /// How often nodes were looked at for silence.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The level below the link, in bit/s for a unit of weight; the most a rate can be for none.
    #[must_use]
    pub fn level(&self) -> Rate {
        let level = self.sums[0].level;
        if level == u64::MAX { Rate::MAX } else { rate(level >> 16) }
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_inner = size_of::<Sums>() + size_of::<Known>() + size_of::<crate::plain::Terms>();
        let of_leaf = size_of::<Known>() + size_of::<crate::plain::Terms>();
        of_inner * self.inner.len() + of_leaf * self.leaves.len()
    }

    fn known(&mut self, place: Place) -> &mut Known {
        match place {
            Place::Inner(at) => &mut self.inner[at as usize],
            Place::Leaf(at) => &mut self.leaves[at as usize],
        }
    }

    fn terms(&self, place: Place) -> crate::plain::Terms {
        match place {
            Place::Inner(at) => self.tree.inner[at as usize],
            Place::Leaf(at) => self.tree.leaves[at as usize],
        }
    }

    /// How fast it sends now, and that it does; what its parent counts of this packet.
    fn measure(&mut self, now: u64, place: Place, len: u32) -> u32 {
        self.count(now, place, len);
        let peak = self.terms(place).peak;
        let rate = self.known(place).window.rate;
        if rate <= peak {
            return len;
        }
        // to the nearest byte, so that small packets count right in the mean
        let counted =
            (u128::from(len) * u128::from(peak) + u128::from(rate / 2)) / u128::from(rate);
        u32::try_from(counted).unwrap_or(len)
    }

    fn count(&mut self, now: u64, place: Place, len: u32) {
        let (window, idle) = (self.options.window.ns(), self.options.idle.ns());
        let known = self.known(place);
        if window > 0 {
            known.window.count(now, len, window);
        } else {
            let gap = now.saturating_sub(known.last);
            known.window.rate = follow(known.window.rate, len, gap, PERIOD);
        }
        (known.last, known.len) = (known.last.max(now), len);
        if known.is_active {
            return;
        }
        (known.is_active, known.standing, known.adds) = (true, Standing::Unsatisfied, 0);
        let terms = self.terms(place);
        let sums = &mut self.sums[terms.parent as usize];
        sums.unsatisfied += u64::from(terms.weight);
        sums.active += u64::from(terms.weight);
        if let Place::Leaf(leaf) = place {
            let patience = if self.options.silence == Silence::Hybrid { 4 } else { 1 };
            match self.options.silence {
                Silence::Timeout | Silence::Hybrid => {
                    self.due.push_back((now + patience * idle, leaf));
                }
                Silence::Poll | Silence::Sweep => {}
            }
        }
    }

    /// What a child may have by the level as it is.
    fn entitled(&self, parent: u32, child: Place, budget: u64) -> u64 {
        let terms = self.terms(child);
        let sums = &self.sums[parent as usize];
        let mut share = part(terms.weight, sums.level).max(terms.floor);
        if sums.keeps && sums.level == 0 && sums.satisfied > budget {
            // only guarantees, and these are more than there is
            let adds = match child {
                Place::Inner(at) => self.inner[at as usize].adds,
                Place::Leaf(at) => self.leaves[at as usize].adds,
            };
            let wide = u128::from(adds.min(terms.floor)) * u128::from(budget);
            share = narrow(wide / u128::from(sums.satisfied));
        }
        share.min(terms.peak).min(budget)
    }

    /// How a child stands to the level, and the level that follows.
    fn judge(&mut self, parent: u32, child: Place, share: u64, budget: u64) {
        let terms = self.terms(child);
        let sums = self.sums[parent as usize];
        let known = self.known(child);
        let rate = known.window.rate.min(terms.peak);
        let is = if rate <= share {
            Standing::Satisfied
        } else if part(terms.weight, sums.level) < terms.floor {
            Standing::Kept
        } else {
            Standing::Unsatisfied
        };
        let adds = match is {
            Standing::Satisfied => rate,
            Standing::Kept => rate.min(terms.floor),
            Standing::Unsatisfied => 0,
        };
        let before = std::mem::replace(&mut known.adds, adds);
        let was = std::mem::replace(&mut known.standing, is);
        let sums = &mut self.sums[parent as usize];
        sums.satisfied = sums.satisfied - before + adds;
        if was != is {
            sums.weigh(was, false, terms.weight);
            sums.weigh(is, true, terms.weight);
        }
        sums.level = sums.next(budget);
    }
}

impl Sums {
    pub(crate) fn new(level: u64) -> Sums {
        let (satisfied, unsatisfied, active, kept) = (0, 0, 0, 0);
        Sums { satisfied, unsatisfied, active, level, last: 0, kept, keeps: false }
    }

    /// Counts a child that wants `most` and has `least` in any case.
    pub(crate) fn add(&mut self, most: u64, least: u64, weight: u32, budget: u64) {
        let own = part(weight, self.level);
        self.active += u64::from(weight);
        self.keeps |= least > 0;
        let (standing, adds) = if most <= own.max(least).min(budget) {
            (Standing::Satisfied, most)
        } else if own < least {
            (Standing::Kept, least)
        } else {
            (Standing::Unsatisfied, 0)
        };
        self.satisfied = self.satisfied.saturating_add(adds);
        self.weigh(standing, true, weight);
    }

    /// A child of this standing counts, or no longer.
    fn weigh(&mut self, standing: Standing, counts: bool, weight: u32) {
        let sum = match standing {
            Standing::Unsatisfied => &mut self.unsatisfied,
            Standing::Kept => &mut self.kept,
            Standing::Satisfied => return,
        };
        let weight = u64::from(weight);
        *sum = if counts { *sum + weight } else { *sum - weight };
    }

    /// The level that follows.
    pub(crate) fn next(&self, budget: u64) -> u64 {
        let even = narrow((u128::from(budget) << 16) / u128::from(self.active.max(1)));
        if self.keeps {
            self.approach(budget, even)
        } else if self.unsatisfied > 0 {
            self.rest(budget).max(even)
        } else if self.satisfied <= budget {
            u64::MAX
        } else {
            even
        }
    }

    /// What the unsatisfied have each by weight.
    fn rest(&self, budget: u64) -> u64 {
        let rest = u128::from(budget.saturating_sub(self.satisfied)) << 16;
        narrow(rest / u128::from(self.unsatisfied.max(1)))
    }

    /// The level that follows where there are guarantees.
    fn approach(&self, budget: u64, even: u64) -> u64 {
        if self.unsatisfied == 0 && self.kept == 0 && self.satisfied <= budget {
            return u64::MAX;
        }
        let old = if self.level == u64::MAX { even } else { self.level };
        let goal = if self.satisfied >= budget {
            // too high for the satisfied; where guarantees alone are too much, zero
            old / 2
        } else if self.unsatisfied == 0 {
            old.saturating_mul(2).max(even / 1_024 + 1)
        } else {
            self.rest(budget)
        };
        old.midpoint(goal)
    }
}

impl Hsdba {
    fn look_for_silence(&mut self, now: u64) {
        let idle = self.options.idle.ns();
        let silence = self.options.silence;
        let is_time = now.saturating_sub(self.polled) >= idle / 8;
        if is_time && matches!(silence, Silence::Poll | Silence::Hybrid) {
            self.polled = now;
            if silence == Silence::Poll {
                (0..number(self.leaves.len())).for_each(|leaf| self.look(now, leaf, idle));
            } else {
                self.work += self.inner.len() as u64;
                self.silence_of_inner(now);
            }
        }
        if silence == Silence::Sweep && !self.leaves.is_empty() {
            self.next = (self.next + 1) % number(self.leaves.len());
            self.look(now, self.next, idle);
        }
        while let Some(&(due, leaf)) = self.due.front().filter(|(due, _)| *due <= now) {
            self.due.pop_front();
            let patience = if silence == Silence::Hybrid { 4 * idle } else { idle };
            self.look(now, leaf, patience);
            let known = &self.leaves[leaf as usize];
            if known.is_active {
                self.due.push_back(((known.last + patience).max(due + patience), leaf));
            }
        }
    }

    /// Whether a leaf is silent; eight of its packets are overdue then.
    fn look(&mut self, now: u64, leaf: u32, idle: u64) {
        self.work += 1;
        let known = &self.leaves[leaf as usize];
        let gap = now.saturating_sub(known.last);
        let eight = u128::from(known.len) << (CREDIT + 3);
        let is_late = u128::from(gap) * u128::from(known.window.rate) > eight;
        if known.is_active && gap > idle && (is_late || known.window.rate == 0) {
            self.rest(Place::Leaf(leaf));
        }
    }

    /// A node counts no longer at its parent, nor does that if it was the last.
    fn rest(&mut self, place: Place) {
        let terms = self.terms(place);
        let known = self.known(place);
        if !known.is_active {
            return;
        }
        known.is_active = false;
        let (standing, adds) =
            (std::mem::take(&mut known.standing), std::mem::take(&mut known.adds));
        let sums = &mut self.sums[terms.parent as usize];
        sums.active -= u64::from(terms.weight);
        sums.satisfied -= adds;
        sums.weigh(standing, false, terms.weight);
        if sums.active == 0 && terms.parent != 0 {
            self.rest(Place::Inner(terms.parent));
        }
    }

    fn silence_of_inner(&mut self, now: u64) {
        for at in (1..number(self.inner.len())).rev() {
            let known = &self.inner[at as usize];
            if known.is_active && now.saturating_sub(known.last) > self.options.idle.ns() {
                self.rest(Place::Inner(at));
            }
        }
    }

    /// Algorithm 1 to the letter, with the average that equation 3 must mean. Where nobody is
    /// unsatisfied the level is the largest rate, as section 4.4 says.
    fn printed(&mut self, now: u64, leaf: u32, len: u32, path: &Path) -> Fate {
        let mut budget = self.tree.capacity();
        let mut fate = Fate::Pass;
        let children = path.nodes().iter().skip(1).map(|&at| Place::Inner(at));
        for (&parent, child) in path.nodes().iter().zip(children.chain([Place::Leaf(leaf)])) {
            let terms = self.terms(child);
            let level = self.sums[parent as usize].level;
            let share = part(terms.weight, level).min(terms.peak);
            let known = self.known(child);
            let gap = now.saturating_sub(known.last);
            known.last = known.last.max(now);
            known.window.rate = follow(known.window.rate, len, gap, PERIOD);
            let rate = known.window.rate;
            let (was, is) = (known.standing == Standing::Satisfied, level >> 16 > rate);
            known.standing = if is { Standing::Satisfied } else { Standing::Unsatisfied };
            // rand > P is as likely as not P
            if !is && self.dice.falls(share.min(rate), rate) {
                fate = Fate::Drop { by: Place::Inner(parent) };
            }
            let sums = &mut self.sums[parent as usize];
            let gap = now.saturating_sub(sums.last);
            sums.last = sums.last.max(now);
            sums.satisfied = follow(sums.satisfied, if is { len } else { 0 }, gap, PERIOD);
            match (was, is) {
                (true, false) => sums.unsatisfied += u64::from(terms.weight),
                (false, true) => sums.unsatisfied -= u64::from(terms.weight),
                _ => {}
            }
            let (satisfied, unsatisfied) = (sums.satisfied, sums.unsatisfied);
            let level = if unsatisfied == 0 {
                self.largest(parent) << 16
            } else {
                let rest = u128::from(budget.saturating_sub(satisfied)) << 16;
                narrow(rest / u128::from(unsatisfied))
            };
            self.sums[parent as usize].level = level;
            budget = part(terms.weight, level).min(rate);
        }
        fate
    }

    /// The largest rate among the children of a node.
    fn largest(&self, parent: u32) -> u64 {
        let inner = self.tree.inner.iter().zip(&self.inner).skip(1);
        let all = inner.chain(self.tree.leaves.iter().zip(&self.leaves));
        let own = all.filter(|(terms, _)| terms.parent == parent);
        own.map(|(_, known)| known.window.rate).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
