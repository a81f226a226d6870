//! Gives every class a number that it keeps while policies change, and makes changes ready. It
//! lives beside the engine, off the packet thread, and may allocate and take its time.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use weir_classify::Index;
use weir_policy::Plan;
use weir_policy::plan::{Kind, NodeId};
use weir_units::limits;

use crate::change::{Change, Layout};
use crate::compile;
use crate::ledger::{CHUNK, chunk};

/// Who has which number, now.
#[derive(Debug, Default)]
pub struct Planner {
    held: BTreeMap<Box<str>, Held>,
    free: Vec<Range<u32>>,
    /// Given back by the last change; free for the change after it.
    leaving: Vec<Range<u32>>,
    next: u32,
    chunks: usize,
}

#[derive(Clone, Debug)]
struct Held {
    slot: u32,
    each: Option<Range<u32>>,
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
const fn most() -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "2^21")]
    {
        2 * limits::CLASSES as u32
    }
}

/// Pieces of memory that the numbers need at most.
pub(crate) const CHUNKS: usize = most() as usize / CHUNK;

impl Planner {
    /// A planner for an engine that has no policy yet.
    #[must_use]
    pub fn new() -> Planner {
        Planner::default()
    }

    /// Makes `plan` ready. Changes are applied in the order in which they were prepared, each until
    /// it is done before the next is prepared.
    ///
    /// # Errors
    /// [`NoRoom`]; nothing has changed then.
    pub fn prepare(&mut self, plan: &Plan) -> Result<Change, NoRoom> {
        let mut numbers = Numbers { free: self.free.clone(), next: self.next };
        numbers.free.append(&mut self.leaving.clone());
        let mut held = BTreeMap::new();
        let mut layout = Layout::default();
        let mut kept = BTreeMap::new();
        for (node, id) in plan.nodes.iter().zip(0 as NodeId..) {
            let before = self.before(node.path.as_ref(), node.was.as_deref(), plan);
            let slot = match before {
                Some(before) => before.slot,
                None => numbers.take(1)?.start,
            };
            let each = match &node.kind {
                Kind::Each(each) => Some(match before.and_then(|b| b.each.clone()) {
                    Some(range) if range.len() == each.count as usize => range,
                    _ => numbers.take(each.count)?,
                }),
                Kind::Leaf | Kind::Interior => None,
            };
            layout.slots.push(slot);
            if let Some(range) = &each {
                layout.each.insert(id, (range.start, each_len(range)));
                kept.insert(range.start, ());
            }
            kept.insert(slot, ());
            held.insert(node.path.clone(), Held { slot, each });
        }
        let gone = self.gone(&kept);
        let (spec, rules) = compile::spec(plan, &layout);
        layout.rules = rules;
        layout.others = compile::others(plan, &layout);
        let needed = (numbers.next as usize).div_ceil(CHUNK);
        let chunks = (self.chunks..needed).map(|_| chunk()).collect();
        let root = plan.nodes[0].shares;
        let change = Change {
            index: Some(Index::compile(&spec)),
            old: None,
            link: compile::link(plan),
            line: root.map(|s| s.rate),
            chunks,
            gone: gone.clone(),
            closed: (0, 0),
            rest: layout.slots[plan.rest as usize],
            layout: Arc::new(layout),
        };
        *self = Planner {
            held,
            free: numbers.free,
            leaving: gone,
            next: numbers.next,
            chunks: needed.max(self.chunks),
        };
        Ok(change)
    }

    /// What the class had before: by its path, by the path it says it had, or by that of a class
    /// above.
    fn before(&self, path: &str, was: Option<&str>, plan: &Plan) -> Option<&Held> {
        if let Some(held) = self.held.get(path) {
            return Some(held);
        }
        if let Some(held) = was.and_then(|was| self.held.get(was)) {
            return Some(held);
        }
        let mut prefix = path;
        while let Some(at) = prefix.rfind('/').filter(|&at| at > 0) {
            prefix = &path[..at];
            let above = plan.nodes.iter().find(|n| &*n.path == prefix && n.was.is_some());
            if let Some(was) = above.and_then(|n| n.was.as_deref()) {
                return self.held.get(format!("{was}{}", &path[at..]).as_str());
            }
        }
        None
    }

    /// Numbers that were held and are not any more, merged and sorted.
    fn gone(&self, kept: &BTreeMap<u32, ()>) -> Vec<Range<u32>> {
        let mut gone: Vec<Range<u32>> = Vec::new();
        for held in self.held.values() {
            let one = held.slot..held.slot + 1;
            let ranges = [Some(one), held.each.clone()].into_iter().flatten();
            gone.extend(ranges.filter(|r| !kept.contains_key(&r.start)));
        }
        merge(gone)
    }
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
    /// `count` numbers in a row.
    fn take(&mut self, count: u32) -> Result<Range<u32>, NoRoom> {
        let fits = |range: &Range<u32>| each_len(range) >= count;
        if let Some(at) = self.free.iter().rposition(fits) {
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
