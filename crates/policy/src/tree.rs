//! The classes as a tree: who is whose child, in the order of the file, and what is wrong with
//! that.

use std::collections::BTreeMap;

use crate::class::Class;
use crate::link::LinkTable;
use crate::nearest::nearest;
use crate::problem::{At, Problems};

/// Which classes are children of which; indices into the policy's classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// Children of the link itself.
    pub(crate) top: Vec<usize>,
    /// Children of each class.
    pub(crate) children: Vec<Vec<usize>>,
}

/// The path of the class above; empty for one that hangs on the link.
pub(crate) fn parent_path(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The classes by their path.
pub(crate) fn by_path(classes: &[Class]) -> BTreeMap<&str, usize> {
    classes.iter().enumerate().map(|(at, class)| (class.path.as_str(), at)).collect()
}

impl Tree {
    pub(crate) fn new(classes: &[Class], links: &[LinkTable], problems: &mut Problems) -> Tree {
        let paths = by_path(classes);
        let mut tree = Tree { top: Vec::new(), children: vec![Vec::new(); classes.len()] };
        for (at, class) in classes.iter().enumerate() {
            let parent = parent_path(&class.path);
            if parent.is_empty() {
                tree.top.push(at);
            } else if let Some(&parent) = paths.get(parent) {
                tree.children[parent].push(at);
            } else {
                let what =
                    format!("\"{}\" has no parent: there is no class \"{parent}\"", class.path);
                // not the class itself, nor one that has no parent either
                let others = paths.keys().copied().filter(|path| has_parent(path, &paths));
                let help = match nearest(parent, others) {
                    Some(near) => {
                        format!(
                            "did you mean \"{near}/{}\"? Or add [class.\"{parent}\"]",
                            last(&class.path)
                        )
                    }
                    None => format!("add [class.\"{parent}\"]; it may be empty"),
                };
                problems.error(class.place, what, help);
            }
            check_link(class, parent, links, problems);
            check_was(class, &paths, problems);
        }
        for (class, children) in classes.iter().zip(&tree.children) {
            if let (Some(each), false) = (&class.each, children.is_empty()) {
                let what = format!("\"{}\" has \"each\" and classes below it", class.path);
                problems.error(each.place, what, "create the leaves in a class of their own");
            }
        }
        twice_from_one(classes, problems);
        tree
    }
}

fn has_parent(path: &str, paths: &BTreeMap<&str, usize>) -> bool {
    let parent = parent_path(path);
    parent.is_empty() || paths.contains_key(parent) && has_parent(parent, paths)
}

fn check_link(class: &Class, parent: &str, links: &[LinkTable], problems: &mut Problems) {
    let Some(link) = &class.link else { return };
    if !parent.is_empty() {
        let what = format!("\"{}\" has \"link\", but only top-level classes can", class.path);
        let top = class.path.split('/').nth(1).unwrap_or_default();
        problems.error(link.place, what, format!("write it in [class.\"/{top}\"]"));
    }
    // that there is no link at all has been said
    if !links.is_empty() && !links.iter().any(|l| l.name == link.value) {
        let what = format!("there is no link \"{}\"", link.value);
        let names = links.iter().map(|l| l.name.as_str()).collect::<Vec<_>>();
        problems.error(
            link.place,
            what,
            crate::nearest::instead(&link.value, names.iter().copied()),
        );
    }
}

fn check_was(class: &Class, paths: &BTreeMap<&str, usize>, problems: &mut Problems) {
    if let Some(was) = &class.was
        && paths.contains_key(was.value.as_str())
    {
        let what =
            format!("\"{}\" says was = \"{}\", but that class still exists", class.path, was.value);
        problems.error(was.place, what, "remove \"was\", or rename the other class too");
    }
}

fn twice_from_one(classes: &[Class], problems: &mut Problems) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for class in classes {
        let Some(At { value, place }) = &class.was else { continue };
        if let Some(other) = seen.insert(value, &class.path) {
            let what = format!("\"{other}\" and \"{}\" both say was = \"{value}\"", class.path);
            problems.error(*place, what, "queued frames can move to only one of them");
        }
    }
}
