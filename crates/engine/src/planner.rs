//! Gives every class a number that it keeps while policies change, and makes changes ready. It
//! lives beside the engine, off the packet thread, and may allocate and take its time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use weir_classify::Index;
use weir_condition::police;
use weir_policy::Plan;
use weir_policy::plan::{NodeId, NodeKind};
use weir_shape::tree::Edit;
use weir_units::{By, ByWay, limits as bounds};

use crate::change::{Below, Change, Layout};
use crate::enforce;
use crate::engine::Config;
use crate::ledger::{CHUNK, chunk};
use crate::limits;
use crate::lower::{self, Lowered, Table};
use crate::margin::Margin;
use crate::names::Names;

/// Who has which number, now.
#[derive(Debug, Default)]
pub struct Planner {
    held: BTreeMap<Box<str>, Held>,
    free: Vec<Range<u32>>,
    /// Given back by the last change; free for the change after it.
    leaving: Vec<Range<u32>>,
    next: u32,
    chunks: usize,
    /// What the stages have been told.
    told: Lowered,
    /// How many connections the engine remembers, and whether its nodes take limits.
    flows: usize,
    takes_limits: bool,
}

#[derive(Clone, Debug)]
struct Held {
    slot: u32,
    is_leaf: bool,
    each: Option<(By, Range<u32>)>,
}

/// A plan with its numbers.
struct Numbered {
    /// What is free then.
    numbers: Numbers,
    held: BTreeMap<Box<str>, Held>,
    layout: Layout,
    /// Numbers that nobody has any more.
    gone: Vec<Range<u32>>,
    /// Numbers that somebody has anew.
    fresh: Vec<Range<u32>>,
    /// Leaves that have children now, and the leaf that takes over.
    parted: Vec<(u32, u32)>,
}

/// The policy needs more numbers than an engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the policy needs more than {} classes and leaves; a restart frees those that are gone",
            most()
        )
    }
}

impl std::error::Error for NoRoom {}

/// Numbers that an engine can give: twice the classes of one policy, so that a policy can replace
/// another.
pub(crate) const fn most() -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "2^21")]
    {
        2 * bounds::CLASSES as u32
    }
}

/// Pieces of memory that the numbers need at most.
pub(crate) const CHUNKS: usize = most() as usize / CHUNK;

impl Planner {
    /// A planner for an engine that has no policy yet, and remembers as many connections as
    /// [`Config::default`] says.
    #[must_use]
    pub fn new() -> Planner {
        Planner::of(&Config::default())
    }

    /// A planner for an engine of this config that has no policy yet.
    #[must_use]
    pub fn of(config: &Config) -> Planner {
        Planner { flows: config.flows.max(8), takes_limits: config.limits, ..Planner::default() }
    }

    /// Makes `plan` ready. Changes are applied in the order in which they were prepared, each until
    /// it is done before the next is prepared.
    ///
    /// # Errors
    /// [`NoRoom`]; nothing has changed then.
    pub fn prepare(&mut self, plan: &Plan) -> Result<Change, NoRoom> {
        let Numbered { numbers, held, layout, gone, fresh, parted } = self.number(plan)?;
        let needed = (numbers.next as usize).div_ceil(CHUNK);
        let table = Table::of(plan, &layout).taking_limits(self.takes_limits);
        let (before, told) = (&self.told, Lowered::after(&self.told, &table));
        let change = Change {
            index: Some(Index::compile(&told.rules)),
            has_new_rules: before.rules != told.rules,
            old: None,
            trees: ByWay::WAYS.map(|way| Edit::between(&before.trees[way], &told.trees[way])),
            enforced: ByWay::WAYS
                .map(|way| enforce::Edit::between(&before.enforced[way], &told.enforced[way])),
            condition: weir_condition::Edit::between(&before.steadied, &told.steadied, self.flows),
            treatments: police::Edit::between(&before.policed, &told.policed),
            chunks: (self.chunks..needed).map(|_| chunk()).collect(),
            limits: match self.takes_limits {
                true => (self.chunks..needed).map(|_| limits::chunk()).collect(),
                false => Vec::new(),
            },
            fresh,
            margins: ByWay::WAYS.map(|way| Margin::of(plan, way)),
            observes: plan.observes,
            gone: gone.clone(),
            closed: (0, 0),
            rest: layout.slots[plan.rest as usize],
            parted,
            layout: Arc::new(layout),
        };
        *self = Planner {
            held,
            free: numbers.free,
            leaving: gone,
            next: numbers.next,
            chunks: needed.max(self.chunks),
            told,
            flows: self.flows,
            takes_limits: self.takes_limits,
        };
        Ok(change)
    }

    /// Gives each node of a plan its number.
    fn number(&self, plan: &Plan) -> Result<Numbered, NoRoom> {
        let mut numbers = Numbers { free: self.free.clone(), next: self.next };
        numbers.free.extend(self.leaving.iter().cloned());
        numbers.merge();
        let mut held = BTreeMap::new();
        let mut layout = Layout::default();
        let mut kept = BTreeSet::new();
        let (mut fresh, mut parted) = (Vec::new(), Vec::new());
        let renamed = Renamed::of(plan);
        for (node, id) in plan.nodes.iter().zip(0 as NodeId..) {
            let before = self.before(&node.path, &renamed);
            let before = before.filter(|before| !kept.contains(&before.slot));
            let slot = match before {
                Some(before) => before.slot,
                None => {
                    let slot = numbers.take(1)?;
                    fresh.push(slot.clone());
                    slot.start
                }
            };
            let is_leaf = node.kind == NodeKind::Leaf;
            if before.is_some_and(|before| before.is_leaf) && !is_leaf {
                parted.push((slot, id));
            }
            let each = match &node.kind {
                NodeKind::Each(each) => {
                    let same = before.and_then(|before| before.each.clone());
                    let same =
                        same.filter(|(by, range)| *by == each.by && each_len(range) == each.count);
                    let range = match same {
                        Some((_, range)) => range,
                        None => {
                            let range = numbers.take(each.count)?;
                            fresh.push(range.clone());
                            range
                        }
                    };
                    layout.each.insert(id, (range.start, each.count));
                    kept.insert(range.start);
                    Some((each.by, range))
                }
                NodeKind::Leaf | NodeKind::Interior => None,
            };
            layout.slots.push(slot);
            kept.insert(slot);
            held.insert(node.path.clone(), Held { slot, is_leaf, each });
        }
        layout.rules = lower::numbers(plan);
        layout.below = Below::of(plan, &layout);
        layout.names = Names::of(plan, &layout);
        layout.asked = plan.asked.iter().map(|a| layout.slots[a.node as usize]).collect();
        let parted = heirs(plan, &layout, &parted);
        Ok(Numbered { numbers, held, layout, gone: self.gone(&kept), fresh, parted })
    }

    /// What the class had before: by its path, by the path it says it had, or by that of a class
    /// above.
    fn before(&self, path: &str, renamed: &Renamed<'_>) -> Option<&Held> {
        if let Some(held) = self.held.get(path) {
            return Some(held);
        }
        if let Some(held) = renamed.was.get(path).and_then(|was| self.held.get(*was)) {
            return Some(held);
        }
        let mut prefix = path;
        while let Some(at) = prefix.rfind('/').filter(|&at| at > 0) {
            prefix = &path[..at];
            if let Some(was) = renamed.was.get(prefix) {
                let old = format!("{was}{}", &path[at..]);
                // unless another class says that it was that one
                return self.held.get(old.as_str()).filter(|_| !renamed.taken.contains(&*old));
            }
        }
        None
    }

    /// Numbers that were held and are not any more, merged and sorted.
    fn gone(&self, kept: &BTreeSet<u32>) -> Vec<Range<u32>> {
        let mut gone: Vec<Range<u32>> = Vec::new();
        for held in self.held.values() {
            let one = held.slot..held.slot + 1;
            let made = held.each.as_ref().map(|(_, range)| range.clone());
            let ranges = [Some(one), made].into_iter().flatten();
            gone.extend(ranges.filter(|r| !kept.contains(&r.start)));
        }
        merge(gone)
    }
}

/// What the classes of a plan say that they were.
struct Renamed<'p> {
    /// The old path by the new.
    was: BTreeMap<&'p str, &'p str>,
    /// The old paths.
    taken: BTreeSet<&'p str>,
}

impl<'p> Renamed<'p> {
    fn of(plan: &'p Plan) -> Renamed<'p> {
        let pairs = plan.nodes.iter().filter_map(|n| Some((&*n.path, n.was.as_deref()?)));
        let was: BTreeMap<&str, &str> = pairs.collect();
        Renamed { taken: was.values().copied().collect(), was }
    }
}

/// Leaves that have children now, and the leaf that takes over; sorted.
fn heirs(plan: &Plan, layout: &Layout, parted: &[(u32, NodeId)]) -> Vec<(u32, u32)> {
    let heir = |&(slot, node): &(u32, NodeId)| (slot, layout.slots[spare(plan, node) as usize]);
    let mut heirs: Vec<(u32, u32)> = parted.iter().map(heir).collect();
    heirs.sort_unstable();
    heirs
}

/// The leaf that takes what a class's children or made leaves do not.
fn spare(plan: &Plan, node: NodeId) -> NodeId {
    if let NodeKind::Each(each) = &plan.node(node).kind {
        return each.others;
    }
    plan.find(&format!("{}/(rest)", plan.node(node).path)).unwrap_or(plan.rest)
}

fn each_len(range: &Range<u32>) -> u32 {
    range.end - range.start
}

fn merge(mut ranges: Vec<Range<u32>>) -> Vec<Range<u32>> {
    ranges.sort_by_key(|r| r.start);
    let mut merged: Vec<Range<u32>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => merged.push(range),
        }
    }
    merged
}

/// Free numbers.
struct Numbers {
    free: Vec<Range<u32>>,
    next: u32,
}

impl Numbers {
    /// Makes one range of neighbours, and gives back what lies at the end.
    fn merge(&mut self) {
        self.free = merge(std::mem::take(&mut self.free));
        if let Some(last) = self.free.pop_if(|last| last.end == self.next) {
            self.next = last.start;
        }
    }

    /// `count` numbers in a row.
    fn take(&mut self, count: u32) -> Result<Range<u32>, NoRoom> {
        // the smallest that is large enough: large ranges stay whole for those who need them
        let fits = |(_, range): &(usize, &Range<u32>)| each_len(range) >= count;
        let best = self.free.iter().enumerate().filter(fits).min_by_key(|(_, r)| each_len(r));
        if let Some((at, _)) = best {
            let start = self.free[at].start;
            self.free[at].start += count;
            if self.free[at].is_empty() {
                self.free.swap_remove(at);
            }
            return Ok(start..start + count);
        }
        let end = self.next.checked_add(count).filter(|&end| end <= most()).ok_or(NoRoom)?;
        let range = self.next..end;
        self.next = end;
        Ok(range)
    }
}
