//! What changes from one policy to another, in the policy's own words and by the path of the class.
//! It compares what the policies mean (the plans), so that another way to write the same is no
//! change.

mod asked;
mod nodes;
mod pairs;

use crate::plan::Plan;
use pairs::Pairs;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `+` new, `-` gone, `~` changed, `>` moved or renamed.
    pub mark: char,
    /// What it is about: `link office`, or a class's path.
    pub subject: String,
    /// What changes, in words.
    pub words: String,
}

/// Nodes of one kind that are listed before the rest is only counted.
const LISTED: usize = 50;

/// Every difference between the plans of two policies.
#[must_use]
pub fn diff(before: &[Plan], after: &[Plan]) -> Vec<Change> {
    let mut changes = Vec::new();
    for old in before {
        if !after.iter().any(|new| new.name == old.name) {
            changes.push(change('-', format!("link {}", old.name), "is gone"));
        }
    }
    for new in after {
        match before.iter().find(|old| old.name == new.name) {
            Some(old) => plans(old, new, &mut changes),
            None => changes.push(change('+', format!("link {}", new.name), "is new")),
        }
    }
    changes
}

fn change(mark: char, subject: impl Into<String>, words: impl Into<String>) -> Change {
    Change { mark, subject: subject.into(), words: words.into() }
}

fn plans(old: &Plan, new: &Plan, changes: &mut Vec<Change>) {
    nodes::link(old, new, changes);
    let pairs = Pairs::new(old, new);
    let mut gone = Listed::new('-');
    for (node, to) in old.nodes.iter().zip(&pairs.to) {
        if to.is_none() {
            gone.add(&node.path, "is removed; its queued frames go to /(rest)", changes);
        }
    }
    gone.rest(changes);
    let mut came = Listed::new('+');
    for (node, id) in new.nodes.iter().zip(0..).skip(1) {
        match pairs.old(id) {
            Some(from) => {
                if node.was.as_deref() == Some(&*old.node(from).path) {
                    let words = format!("was {}", old.node(from).path);
                    changes.push(change('>', &*node.path, words));
                }
                nodes::compare(old, new, &pairs, (from, id), changes);
            }
            None => came.add(&node.path, &nodes::describe(new, node), changes),
        }
    }
    came.rest(changes);
    asked::compare(old, new, &pairs, changes);
    asked::subscribers(old, new, &pairs, changes);
}

/// A list that is cut short when it grows long.
struct Listed {
    mark: char,
    count: usize,
}

impl Listed {
    fn new(mark: char) -> Listed {
        Listed { mark, count: 0 }
    }

    fn add(&mut self, path: &str, words: &str, changes: &mut Vec<Change>) {
        self.count += 1;
        if self.count <= LISTED {
            changes.push(change(self.mark, path, words));
        }
    }

    fn rest(&self, changes: &mut Vec<Change>) {
        let more = self.count.saturating_sub(LISTED);
        let what = match self.mark {
            '+' => "are new",
            '-' => "are gone",
            _ => "such changes",
        };
        if more > 0 {
            changes.push(change(self.mark, "...", format!("and {more} more {what}")));
        }
    }
}

/// Writes down `word: old -> new` where they differ.
fn word(
    subject: &str,
    name: &str,
    old: impl Into<String>,
    new: impl Into<String>,
    changes: &mut Vec<Change>,
) {
    let (old, new) = (old.into(), new.into());
    if old != new {
        changes.push(change('~', subject, format!("{name} {old} -> {new}")));
    }
}
