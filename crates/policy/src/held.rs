//! The last good row holds: a subscriber whose row has a mistake keeps the row that was in effect
//! before, so that a slip of the pen makes nobody unlimited. What is held is a table like any
//! other, so that it can be kept beside the policy and read again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use weir_units::{ByWay, Prefix, Rate};

use crate::columns::COLUMNS;
use crate::problem::{Position, Problems};
use crate::say;
use crate::source::Source;
use crate::subscribers::{Subscriber, Subscribers, read_held};

/// The number of the file of held rows among the policy's sources.
pub(crate) const FILE: u16 = 2;

/// What is known of a subscriber whose row was skipped.
pub(crate) struct Want {
    /// Its number among the skipped rows.
    pub(crate) skip: usize,
    pub(crate) id: Option<Box<str>>,
    pub(crate) parent: Option<Box<str>>,
    pub(crate) blocks: Vec<Prefix>,
}

impl Want {
    pub(crate) fn of(row: &Subscriber, skip: usize) -> Want {
        let (id, parent) = (Some(row.id.clone()), Some(row.parent.clone()));
        Want { skip, id, parent, blocks: row.blocks.clone() }
    }
}

/// The rows that a policy held when it was put into effect, from the file that was kept of them.
#[must_use]
pub fn held_rows(source: &Source) -> Vec<Subscriber> {
    read_held(source, FILE)
}

/// Rows that were in effect, and how to find one again.
pub(crate) struct Before<'b> {
    rows: &'b [Subscriber],
    ids: BTreeMap<&'b str, Vec<usize>>,
    blocks: BTreeMap<Prefix, usize>,
}

impl<'b> Before<'b> {
    pub(crate) fn new(rows: &'b [Subscriber]) -> Before<'b> {
        let mut ids: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut blocks = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            ids.entry(&row.id).or_default().push(at);
            blocks.extend(row.blocks.iter().map(|&block| (block, at)));
        }
        Before { rows, ids, blocks }
    }

    /// The row that a subscriber had: by the id, and by the addresses where that cannot be read.
    fn row_of(&self, want: &Want) -> Option<usize> {
        let by_address = || want.blocks.iter().find_map(|block| self.blocks.get(block).copied());
        let Some(id) = &want.id else { return by_address() };
        let same = self.ids.get(&**id)?;
        let has_parent = |at: &&usize| Some(&self.rows[**at].parent) == want.parent.as_ref();
        let by_parent = same.iter().find(has_parent).copied();
        by_parent.or_else(|| by_address().filter(|at| same.contains(at))).or(match same[..] {
            [only] => Some(only),
            _ => None,
        })
    }
}

/// The rows that are held, as a table of their own.
#[derive(Default)]
pub(crate) struct Held {
    text: String,
    /// Which skipped row each of them stands for.
    of: BTreeMap<Position, usize>,
}

impl Held {
    /// Adds the rows that subscribers had whose rows were skipped. A parent that is gone, an id or
    /// an address that another has now, are not taken back. Returns whether a row was added.
    pub(crate) fn hold(
        &mut self,
        table: &mut Subscribers,
        before: &Before<'_>,
        wants: &[Want],
        classes: &BTreeMap<&str, usize>,
        problems: &mut Problems,
    ) -> bool {
        let mut held: Vec<Subscriber> = Vec::new();
        let mut ids: BTreeSet<(&str, &str)> =
            table.rows.iter().map(|row| (&*row.parent, &*row.id)).collect();
        let mut taken: BTreeSet<Prefix> =
            table.rows.iter().flat_map(|row| row.blocks.iter().copied()).collect();
        let mut macs: BTreeSet<[u8; 6]> =
            table.rows.iter().flat_map(|row| row.macs().iter().copied()).collect();
        for want in wants {
            let Some(row) = before.row_of(want).map(|at| &before.rows[at]) else { continue };
            let is_there = row.parent.is_empty() || classes.contains_key(&*row.parent);
            let path = format!("{}/{}", row.parent, row.id);
            let blocks = row.blocks.iter().copied().filter(|block| !taken.contains(block));
            let blocks: Vec<Prefix> = blocks.collect();
            let of_row = row.macs().iter().copied().filter(|mac| !macs.contains(mac));
            let of_row: Vec<[u8; 6]> = of_row.collect();
            let is_found = !blocks.is_empty() || !of_row.is_empty();
            let is_free = !classes.contains_key(path.as_str()) && is_found;
            let has_plan = row.plan().is_none_or(|plan| table.plans.iter().any(|p| p == plan));
            if !has_plan || !is_there || !is_free || !ids.insert((&row.parent, &row.id)) {
                continue;
            }
            taken.extend(&blocks);
            macs.extend(of_row.iter().copied());
            let mut kept = Subscriber { blocks, ..row.clone() };
            if let Some(more) = &mut kept.more {
                more.macs = of_row;
            }
            held.push(self.add(kept, want.skip));
            problems.skipped.mark_held(want.skip, true);
        }
        drop((ids, taken));
        let is_new = !held.is_empty();
        table.rows.extend(held);
        is_new
    }

    /// Writes a row down and gives it its place there.
    fn add(&mut self, row: Subscriber, skip: usize) -> Subscriber {
        if self.text.is_empty() {
            self.text = format!("{}\n", COLUMNS.join(","));
        }
        let start = self.text.len();
        write(&row, &mut self.text);
        let place = Position::in_file(FILE, &(start..self.text.len() - 1));
        self.of.insert(place, skip);
        // the first line names the columns
        let line = u32::try_from(self.of.len() + 1).unwrap_or(u32::MAX);
        Subscriber { place, line, ..row }
    }

    /// Takes note that held rows do not fit any more, among the rows at these places.
    pub(crate) fn let_go(&self, unfit: &BTreeSet<Position>, problems: &mut Problems) {
        for skip in unfit.iter().filter_map(|place| self.of.get(place)) {
            problems.skipped.mark_held(*skip, false);
        }
    }

    /// The file of the held rows; none if none is held.
    pub(crate) fn into_source(self) -> Option<Source> {
        (!self.text.is_empty()).then(|| Source::new("last good rows", self.text))
    }
}

fn write(row: &Subscriber, text: &mut String) {
    let parent = if row.parent.is_empty() { "/" } else { &*row.parent };
    let name = row.name.replace('"', "\"\"");
    let blocks: Vec<String> = row.blocks.iter().map(ToString::to_string).collect();
    let _ = write!(text, "{},\"{name}\",{parent},{}", row.id, blocks.join(";"));
    let ByWay { down, up } = row.rate.zip(row.ceil);
    let said = |rate: Option<Rate>| rate.map_or_else(String::new, |rate| rate.to_string());
    for (rate, ceil) in [down, up] {
        let _ = write!(text, ",{},{}", said(rate), said(ceil));
    }
    let burst = row.burst().map_or_else(String::new, |burst| burst.to_string());
    let macs: Vec<String> = row.macs().iter().map(say::mac).collect();
    let plan = row.plan().unwrap_or_default();
    let _ = writeln!(text, ",\"{}\",{burst},{}", plan.replace('"', "\"\""), macs.join(";"));
}
