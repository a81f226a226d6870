//! A round: count who has sent something, tell the nodes above what is wanted, find the levels
//! downwards and publish what follows. Only nodes below which something is new are looked at. A
//! round may be spread over calls; each word of 64 leaves remembers when it was counted, so
//! the rates are right however the calls are spaced.

use weir_units::Instant;

use super::marks::{Bits, WORD};
use super::{Core, Inner, PART, Published};
use crate::scale::bits;
use crate::tree::number;

/// Where a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The word of leaves that is counted next.
    Count(u32),
    /// Words of nodes with children below this one have not been told what their children want.
    Rise(u32),
    /// The word of nodes whose levels are found next.
    Fall(u32),
}

impl Default for Stage {
    fn default() -> Stage {
        Stage::Count(0)
    }
}

impl Stage {
    /// All has been counted.
    pub(super) fn heard(inner: &[Inner]) -> Stage {
        Stage::Rise(number(inner.len()).div_ceil(WORD))
    }
}

impl Published {
    /// A part of what `publish` does: stops when it has looked at `looks` leaves and nodes, or a
    /// few more, and goes on there next time. Whether the round is over. The children of one node
    /// are always looked at together.
    pub fn publish_some(&mut self, now: Instant, cores: &mut [Core], looks: u32) -> bool {
        let mut left = i64::from(looks);
        while left > 0 {
            let (stage, looked) = match self.stage {
                Stage::Count(word) if word < self.active.words() => {
                    (Stage::Count(word + 1), self.count(now.ns(), word, cores))
                }
                Stage::Count(_) => {
                    // what moves by itself moves once a round
                    self.stirred.add(&self.restless);
                    (0..self.restless.words()).for_each(|word| _ = self.restless.take(word));
                    (Stage::heard(&self.inner), 1)
                }
                Stage::Rise(0) => {
                    self.inner[0].budget = self.inner[0].terms.peak.get();
                    (Stage::Fall(0), 1)
                }
                Stage::Rise(word) => (Stage::Rise(word - 1), self.rise(word - 1, cores)),
                Stage::Fall(word) if word < self.stirred.words() => {
                    match self.stirred.word(word).trailing_zeros() {
                        WORD => (Stage::Fall(word + 1), 1),
                        bit => (Stage::Fall(word), self.fall(word * WORD + bit, cores)),
                    }
                }
                Stage::Fall(_) => {
                    self.stage = Stage::default();
                    return true;
                }
            };
            self.stage = stage;
            left -= looked;
        }
        false
    }

    /// Counts a word of leaves; at how many it looked.
    fn count(&mut self, now: u64, word: u32, cores: &mut [Core]) -> i64 {
        let gap = now.saturating_sub(self.counted[word as usize]);
        if gap == 0 {
            return 1;
        }
        self.counted[word as usize] = now;
        let sent = cores.iter_mut().fold(0, |sum, core| sum | core.counted.take(word));
        let marks = sent | self.active.word(word);
        for bit in Bits(marks) {
            let at = word * WORD + bit;
            let cells = cores.iter_mut().filter_map(|core| core.cells.get_mut(at as usize));
            let bytes =
                cells.fold(0_u32, |sum, cell| sum.saturating_add(std::mem::take(&mut cell.bytes)));
            let leaf = &mut self.leaves[at as usize];
            let (before, was) = (leaf.kid().most, leaf.demand);
            leaf.count(bytes, gap);
            let is_new = leaf.demand != was;
            if leaf.demand > 0 || leaf.pending > 0 {
                self.active.set(at);
            } else {
                self.active.clear(at);
                publish(cores, at, 1 << PART);
            }
            if is_new {
                self.hear(at, before);
            }
        }
        1 + i64::from(marks.count_ones())
    }

    /// Tells the parent of a leaf that this wants something else than `before`.
    pub(super) fn hear(&mut self, at: u32, before: u64) {
        let leaf = &self.leaves[at as usize];
        let parent = &mut self.inner[leaf.terms.parent as usize];
        parent.wants = parent.wants - before + leaf.kid().most;
        self.stirred.set(leaf.terms.parent);
    }

    /// Tells the parents of a word of nodes what these want.
    fn rise(&mut self, word: u32, cores: &[Core]) -> i64 {
        let mut seen = 0;
        let mut marks = self.stirred.word(word);
        while marks != 0 {
            let bit = WORD - 1 - marks.leading_zeros();
            let at = word * WORD + bit;
            let node = &mut self.inner[at as usize];
            let demand = node.wants.min(node.terms.peak.get());
            let before = std::mem::replace(&mut node.demand, demand);
            let parent = node.terms.parent;
            self.accept(at, cores);
            if at > 0 && before != demand {
                let parent_of = &mut self.inner[parent as usize];
                parent_of.wants = parent_of.wants - before + demand;
                self.stirred.set(parent);
            }
            // parents stand before their children, at times in the same word
            marks = self.stirred.word(word) & !(u64::MAX << bit);
            seen += 1;
        }
        1 + seen
    }

    /// Finds the level of a node, and gives its children what they have.
    fn fall(&mut self, at: u32, cores: &mut [Core]) -> i64 {
        self.stirred.clear(at);
        if self.settle(at) && self.inner[at as usize].wants > 0 {
            self.restless.set(at);
        }
        let node = self.inner[at as usize];
        let level = self.level(&node);
        for child in node.inner[0]..node.inner[1] {
            let inner = &self.inner[child as usize];
            let budget = self.budget(at, level, inner.kid(), inner.terms);
            if inner.budget != budget {
                self.inner[child as usize].budget = budget;
                self.stirred.set(child);
            }
        }
        let mut seen = i64::from(node.inner[1] - node.inner[0]);
        for leaf in self.active.within(node.leaves) {
            let known = &self.leaves[leaf as usize];
            let share = level.share(known.kid(), known.terms, node.budget);
            publish(cores, leaf, part(share, known.demand));
            seen += 1;
        }
        1 + seen
    }
}

/// Tells all cores the part of a leaf that passes.
fn publish(cores: &mut [Core], leaf: u32, part: u32) {
    for core in cores {
        if let Some(cell) = core.cells.get_mut(leaf as usize)
            && cell.part != part
        {
            cell.part = part;
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
