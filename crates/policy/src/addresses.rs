//! Sets of addresses: blocks merged into sorted ranges, so that "covers" and "overlaps" of
//! thousands of blocks are quick; and the named groups of a policy.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use weir_units::{Prefix, limits};

use crate::blocks::{between, blocks_or_group};
use crate::problem::{Position, Problems};
use crate::reader::{Entry, Table};

/// A set of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    blocks: Vec<Prefix>,
    v4: Vec<(u128, u128)>,
    v6: Vec<(u128, u128)>,
}

impl Addresses {
    /// The set of all addresses in `blocks`.
    #[must_use]
    pub fn new(mut blocks: Vec<Prefix>) -> Self {
        blocks.sort_unstable();
        blocks.dedup();
        let ranges = |v4: bool| {
            let mut ranges: Vec<(u128, u128)> =
                blocks.iter().filter(|b| b.address().is_ipv4() == v4).map(range).collect();
            ranges.sort_unstable();
            let mut merged: Vec<(u128, u128)> = Vec::new();
            for (start, end) in ranges {
                match merged.last_mut() {
                    Some(last) if start <= last.1.saturating_add(1) => last.1 = last.1.max(end),
                    _ => merged.push((start, end)),
                }
            }
            merged
        };
        let (v4, v6) = (ranges(true), ranges(false));
        Addresses { blocks, v4, v6 }
    }

    /// The blocks as they were given, sorted.
    #[must_use]
    pub fn blocks(&self) -> &[Prefix] {
        &self.blocks
    }

    /// Whether `address` is one of them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ranges, bits) = match address {
            IpAddr::V4(v4) => (&self.v4, u128::from(v4.to_bits())),
            IpAddr::V6(v6) => (&self.v6, v6.to_bits()),
        };
        covers(ranges, &[(bits, bits)])
    }

    /// Whether every address of `other` is in this set.
    #[must_use]
    pub fn covers(&self, other: &Addresses) -> bool {
        covers(&self.v4, &other.v4) && covers(&self.v6, &other.v6)
    }

    /// All addresses that are not in this set.
    #[must_use]
    pub(crate) fn complement(&self) -> Addresses {
        let others = |ranges: &[(u128, u128)], width: u32| {
            let most = if width == 32 { u32::MAX.into() } else { u128::MAX };
            let mut blocks = Vec::new();
            let mut next = Some(0);
            for &(first, last) in ranges {
                if let Some(from) = next.filter(|from| *from < first) {
                    blocks.extend(between(from, first - 1, width));
                }
                next = last.checked_add(1).filter(|next| *next <= most);
            }
            blocks.extend(next.into_iter().flat_map(|from| between(from, most, width)));
            blocks
        };
        let mut blocks = others(&self.v4, 32);
        blocks.extend(others(&self.v6, 128));
        Addresses::new(blocks)
    }

    /// The addresses that are in both sets.
    #[must_use]
    pub(crate) fn common(&self, other: &Addresses) -> Addresses {
        let meet = |a: &[(u128, u128)], b: &[(u128, u128)], width| {
            let mut blocks = Vec::new();
            let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
            while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
                let (first, last) = (x.0.max(y.0), x.1.min(y.1));
                if first <= last {
                    blocks.extend(between(first, last, width));
                }
                if x.1 < y.1 {
                    a.next()
                } else {
                    b.next()
                };
            }
            blocks
        };
        let mut blocks = meet(&self.v4, &other.v4, 32);
        blocks.extend(meet(&self.v6, &other.v6, 128));
        Addresses::new(blocks)
    }

    /// Whether the two have an address in common.
    #[must_use]
    pub fn overlaps(&self, other: &Addresses) -> bool {
        overlaps(&self.v4, &other.v4) || overlaps(&self.v6, &other.v6)
    }
}

/// First and last address of a block.
fn range(block: &Prefix) -> (u128, u128) {
    let (start, bits) = match block.address() {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let hosts = 1u128.checked_shl(bits - u32::from(block.len())).map_or(u128::MAX, |n| n - 1);
    (start, start | hosts)
}

fn covers(outer: &[(u128, u128)], inner: &[(u128, u128)]) -> bool {
    inner.iter().all(|&(start, end)| {
        let after = outer.partition_point(|o| o.0 <= start);
        after > 0 && outer[after - 1].1 >= end
    })
}

fn overlaps(a: &[(u128, u128)], b: &[(u128, u128)]) -> bool {
    let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    few.iter().any(|&(start, end)| {
        let after = many.partition_point(|m| m.0 <= end);
        after > 0 && many[after - 1].1 >= start
    })
}

/// Groups within groups, at most: nobody can follow more, and the stack has an end.
const DEPTH: usize = 64;

/// The named groups of a policy.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    sets: BTreeMap<String, Arc<Addresses>>,
}

/// Builds the groups out of what is written, each once.
struct Build<'t> {
    written: BTreeMap<&'t str, Entry<'t>>,
    groups: Groups,
    /// How many groups lie within each other in a group that has been built.
    depths: BTreeMap<&'t str, usize>,
    /// Whether it has been said that they lie too deep.
    too_deep: bool,
}

impl Groups {
    /// The group of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Addresses>> {
        self.sets.get(name)
    }

    /// Names and sets, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Addresses>)> {
        self.sets.iter().map(|(name, set)| (name.as_str(), set))
    }

    /// Reads `[group]`: each name is a list of blocks and of other groups.
    pub(crate) fn read(entry: Option<Entry<'_>>, problems: &mut Problems) -> Groups {
        let Some(table) = entry.and_then(|e| e.table("[group]", problems)) else {
            return Groups::default();
        };
        let written: BTreeMap<&str, Entry<'_>> = table.all().collect();
        let names: Vec<&str> = written.keys().copied().collect();
        let (groups, depths) = (Groups::default(), BTreeMap::new());
        let mut build = Build { written, groups, depths, too_deep: false };
        for name in names {
            build.group(name, &mut Vec::new(), problems);
        }
        let groups = build.groups;
        let total: usize = groups.sets.values().map(|set| set.blocks.len()).sum();
        if total > limits::PREFIXES {
            let what = format!("the groups contain {total} address blocks");
            problems.error(
                entry.map_or_else(Position::default, |e| e.key),
                what,
                "use fewer than 2 million",
            );
        }
        groups
    }
}

impl<'t> Build<'t> {
    /// Builds one group and those it names; returns how many lie within each other.
    fn group(
        &mut self,
        name: &'t str,
        inside: &mut Vec<&'t str>,
        problems: &mut Problems,
    ) -> usize {
        if let Some(&depth) = self.depths.get(name) {
            return depth;
        }
        let entry = self.written[name];
        check_name(name, entry.key, problems);
        inside.push(name);
        let mut blocks = Vec::new();
        let mut depth = 1;
        for member in entry.list() {
            let Some(text) = member.text(name, "a block such as \"10.0.0.0/8\"", problems) else {
                continue;
            };
            if let Some((&other, _)) = self.written.get_key_value(text) {
                if inside.contains(&other) {
                    let what = format!("the group \"{name}\" contains itself through \"{other}\"");
                    problems.error(member.place, what, "remove one of them");
                    continue;
                }
                let below = match inside.len() {
                    DEPTH.. => DEPTH,
                    _ => self.group(other, inside, problems),
                };
                depth = depth.max(1 + below);
                if depth > DEPTH {
                    self.too_deep(name, member.place, problems);
                    depth = 1;
                }
                let inner = self.groups.get(other).map(|set| set.blocks.clone());
                blocks.extend(inner.into_iter().flatten());
                continue;
            }
            match blocks_or_group(text, self.written.keys().copied()) {
                Ok(of_text) => blocks.extend(of_text),
                Err((what, help)) => problems.error(member.place, what, help),
            }
        }
        if entry.list().is_empty() {
            let what = format!("the group \"{name}\" is empty");
            problems.warning(entry.key, what, "it matches nothing");
        }
        inside.pop();
        self.groups.sets.insert(name.to_owned(), Arc::new(Addresses::new(blocks)));
        self.depths.insert(name, depth);
        depth
    }

    /// Said of the first: the others are links of the same chain.
    fn too_deep(&mut self, name: &str, place: Position, problems: &mut Problems) {
        if !self.too_deep {
            let what = format!("more than {DEPTH} groups are nested, among them \"{name}\"");
            problems.error(place, what, "write the address blocks themselves in one of them");
        }
        self.too_deep = true;
    }
}

/// A group's name must not be taken for something else in a match.
fn check_name(name: &str, place: Position, problems: &mut Problems) {
    let is_block = name.parse::<Prefix>().is_ok();
    if is_block || crate::matching::is_word(name) || name.contains([' ', ',']) {
        let help = "choose a name that is not an address, has no spaces and is not a word of \
            \"match\"";
        problems.error(place, format!("a group cannot be called \"{name}\""), help);
    }
}

/// Reads groups out of `[group]`, whatever else the file holds.
pub(crate) fn groups_of(top: &mut Table<'_>, problems: &mut Problems) -> Groups {
    Groups::read(top.take("group"), problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(blocks: &[&str]) -> Addresses {
        Addresses::new(blocks.iter().map(|b| b.parse().unwrap()).collect())
    }

    #[test]
    fn halves_cover_their_whole() {
        let halves = set(&["10.0.0.0/25", "10.0.0.128/25"]);
        assert!(halves.covers(&set(&["10.0.0.0/24"])));
        assert!(!halves.covers(&set(&["10.0.0.0/23"])));
        assert!(set(&["::/0"]).covers(&set(&["2001:db8::1"])));
        assert!(!set(&["::/0"]).covers(&set(&["10.0.0.1"])));
    }

    #[test]
    fn what_is_in_both_sets_and_what_is_in_none() {
        let (a, b) = (set(&["10.0.0.0/24", "10.0.9.7", "2001:db8::/32"]), set(&["10.0.0.128/25"]));
        assert_eq!(a.common(&b), b);
        assert_eq!(a.common(&a.complement()), set(&[]));
        let halves = set(&["10.0.0.0/25", "10.0.0.128/25"]);
        assert!(a.common(&halves).covers(&halves));
        for set in [&a, &b, &set(&[]), &set(&["::/0", "0.0.0.0/0"])] {
            let others = set.complement();
            assert!(!set.overlaps(&others));
            let all = Addresses::new([set.blocks(), others.blocks()].concat());
            assert!(all.covers(&Addresses::new(vec!["::/0".parse().unwrap()])));
            assert!(all.covers(&Addresses::new(vec!["0.0.0.0/0".parse().unwrap()])));
            assert_eq!(others.complement().blocks().is_empty(), set.blocks().is_empty());
        }
    }

    #[test]
    fn overlap_needs_one_common_address() {
        let a = set(&["10.0.0.0/24", "10.0.9.0/24", "2001:db8::/32"]);
        assert!(a.overlaps(&set(&["10.0.9.7"])));
        assert!(a.overlaps(&set(&["2001:db8:7::/48"])));
        assert!(!a.overlaps(&set(&["10.0.1.0/24", "fe80::/10"])));
    }
}
