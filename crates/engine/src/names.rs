//! Names of leaves that hold from one engine to another. Numbers do not: each planner gives its
//! own. A class has a hash of its path for a name. 64 bits are enough: among 2^20 classes two have
//! the same one in one of 2^25 policies, and then a connection begins with what is known of
//! another leaf, until its next data come.

use std::collections::BTreeMap;

use weir_policy::Plan;
use weir_policy::plan::NodeId;

use crate::change::Layout;

/// What a class is called, whatever its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class {
    pub(crate) name: u64,
    /// Its number.
    pub(crate) number: u32,
    /// The first of the leaves that it makes; its own number where it makes none.
    pub(crate) first: u32,
}

/// The classes of a policy by their numbers and by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Numbers, the first and how many, each with the place of its class; sorted.
    ranges: Vec<(u32, u32, u32)>,
    /// Sorted by name.
    classes: Vec<Class>,
}

impl Names {
    pub(crate) fn of(plan: &Plan, layout: &Layout) -> Names {
        let nodes = plan.nodes.iter().zip(0 as NodeId..);
        let class = |(node, id): (&weir_policy::plan::Node, NodeId)| {
            let number = layout.slot(id)?;
            let first = layout.each(id).map_or(number, |(first, _)| first);
            Some(Class { name: hash(&node.path), number, first })
        };
        let mut classes: Vec<Class> = nodes.filter_map(class).collect();
        classes.sort_unstable();
        let made: BTreeMap<u32, u32> = layout.each.values().copied().collect();
        let mut ranges = Vec::with_capacity(classes.len() + made.len());
        for (class, at) in classes.iter().zip(0..) {
            ranges.push((class.number, 1, at));
            if class.first != class.number
                && let Some(&count) = made.get(&class.first)
            {
                ranges.push((class.first, count, at));
            }
        }
        ranges.sort_unstable();
        Names { ranges, classes }
    }

    /// The class that a number is of, and whether the class has made a leaf with it.
    pub(crate) fn of_number(&self, number: u32) -> Option<(Class, bool)> {
        let behind = self.ranges.partition_point(|(first, ..)| *first <= number);
        let (first, count, at) = *self.ranges.get(behind.checked_sub(1)?)?;
        let class = *self.classes.get(at as usize).filter(|_| number - first < count)?;
        Some((class, number != class.number))
    }

    /// The class of a name.
    pub(crate) fn find(&self, name: u64) -> Option<Class> {
        let at = self.classes.binary_search_by_key(&name, |class| class.name).ok()?;
        Some(self.classes[at])
    }
}

/// FNV-1a, of 64 bits.
fn hash(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
