//! What changes from one policy to another, in the policy's own words and by the path of the class.
//! It compares what the policies mean (the plans), so that another way to write the same is no
//! change.

use std::collections::BTreeMap;

use crate::amount::Both;
use crate::plan::{Kind, Node, Plan, Shares, Target};
use crate::say;

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
    link(old, new, changes);
    let before: BTreeMap<&str, u32> = paths(old);
    let after: BTreeMap<&str, u32> = paths(new);
    let mut renamed: BTreeMap<&str, &str> = BTreeMap::new();
    for node in &new.nodes {
        if let Some(was) = node.was.as_deref()
            && before.contains_key(was)
            && !before.contains_key(&*node.path)
        {
            renamed.insert(was, &node.path);
        }
    }
    // what lies below a renamed class moves with it
    let moved = |path: &str| -> Option<String> {
        let mut prefix = path;
        loop {
            if let Some(to) = renamed.get(prefix) {
                return Some(format!("{to}{}", &path[prefix.len()..]));
            }
            prefix = &prefix[..prefix.rfind('/').filter(|&n| n > 0)?];
        }
    };
    let mut gone = Listed::new('-');
    let mut came = Listed::new('+');
    for node in old.nodes.iter().skip(1) {
        let there = after.contains_key(&*node.path)
            || moved(&node.path).is_some_and(|to| after.contains_key(to.as_str()));
        if !there {
            gone.add(&node.path, "is gone; frames that wait there go to /(rest)", changes);
        }
    }
    gone.rest(changes);
    let origin: BTreeMap<String, &str> =
        old.nodes.iter().filter_map(|n| Some((moved(&n.path)?, &*n.path))).collect();
    for node in new.nodes.iter().skip(1) {
        let from = before.get(&*node.path).copied().or_else(|| {
            let from = origin.get(&*node.path)?;
            if node.was.as_deref() == Some(*from) {
                changes.push(change('>', &*node.path, format!("was {from}")));
            }
            before.get(from).copied()
        });
        match from {
            Some(from) => nodes((old, old.node(from)), (new, node), changes),
            None => came.add(&node.path, &describe(new, node), changes),
        }
    }
    came.rest(changes);
    rules(old, new, changes);
    subscribers(old, new, changes);
}

fn paths(plan: &Plan) -> BTreeMap<&str, u32> {
    plan.nodes.iter().zip(0..).map(|(node, id)| (&*node.path, id)).collect()
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
        if let Some(more) = self.count.checked_sub(LISTED + 1) {
            let verb = if self.mark == '+' { "new" } else { "gone" };
            changes.push(change(self.mark, "...", format!("and {} more are {verb}", more + 1)));
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

fn link(old: &Plan, new: &Plan, changes: &mut Vec<Change>) {
    let subject = format!("link {}", new.name);
    word(&subject, "lan", &old.lan, &new.lan, changes);
    word(&subject, "wan", &old.wan, &new.wan, changes);
    let counts = |p: &Plan| say::name_of(&crate::link::COUNTS, &p.counts).to_owned();
    word(&subject, "counts", counts(old), counts(new), changes);
    word(&subject, "overhead", old.overhead.to_string(), new.overhead.to_string(), changes);
    let shaped = |p: &Plan| say::pair(&p.nodes[0].shares.map(|s| s.rate));
    word(&subject, "shaped to", shaped(old), shaped(new), changes);
    let enforce = |p: &Plan| say::enforce(p.nodes[0].enforce);
    word(&subject, "enforce", enforce(old), enforce(new), changes);
}

fn describe(plan: &Plan, node: &Node) -> String {
    let said = shares(&node.shares);
    match &node.kind {
        Kind::Each(each) => format!("is new: {said}, each {}", say::each(each)),
        Kind::Interior => format!("is new: {said}"),
        Kind::Leaf => {
            let words = say::leaf(&plan.words[node.words as usize]);
            let words: String = words.iter().map(|(w, v)| format!(", {w} {v}")).collect();
            format!("is new: {said}{words}")
        }
    }
}

fn shares(shares: &Both<Shares>) -> String {
    let rate = say::pair(&shares.map(|s| s.rate));
    let ceil = say::pair(&shares.map(|s| s.ceil));
    format!("rate {rate}, ceil {ceil}")
}

fn nodes((old_plan, old): (&Plan, &Node), (plan, new): (&Plan, &Node), changes: &mut Vec<Change>) {
    let path = &*new.path;
    let mut both = |name: &str, of: &dyn Fn(&Shares) -> String| {
        let text = |node: &Node| {
            let both = node.shares.map(|s| of(&s));
            say::pair(&both)
        };
        word(path, name, text(old), text(new), changes);
    };
    both("rate", &|s| s.rate.to_string());
    both("ceil", &|s| s.ceil.to_string());
    // default weights follow the rates of the class and its siblings and say nothing new
    if old.says_weight || new.says_weight {
        both("weight", &|s| s.weight.to_string());
    }
    both("burst", &|s| s.burst.map_or_else(|| "default".to_owned(), |b| b.to_string()));
    word(path, "priority", say::priority(old.priority), say::priority(new.priority), changes);
    word(path, "enforce", say::enforce(old.enforce), say::enforce(new.enforce), changes);
    let each = |node: &Node| match &node.kind {
        Kind::Each(each) => say::each(each),
        Kind::Leaf | Kind::Interior => "none".to_owned(),
    };
    word(path, "each", each(old), each(new), changes);
    let words = |plan: &Plan, node: &Node| say::leaf(&plan.words[node.words as usize]);
    let (before, after) = (words(old_plan, old), words(plan, new));
    for name in crate::leaf::WORDS {
        let find = |list: &[(&str, String)]| {
            let found = list.iter().find(|(word, _)| *word == name);
            found.map_or_else(|| "default".to_owned(), |(_, value)| value.clone())
        };
        word(path, name, find(&before), find(&after), changes);
    }
    word(path, "name", name_of(old), name_of(new), changes);
}

fn name_of(node: &Node) -> &str {
    node.name.as_deref().unwrap_or("none")
}

fn rules(old: &Plan, new: &Plan, changes: &mut Vec<Change>) {
    let of = |plan: &Plan| -> Vec<(String, Vec<String>)> {
        let asked = plan.asked.iter().filter(|a| a.target != Target::Subscriber);
        asked
            .map(|a| {
                let rules =
                    a.rules.iter().map(|r| r.text.split_whitespace().collect::<Vec<_>>().join(" "));
                (plan.node(a.node).path.to_string(), rules.collect())
            })
            .collect()
    };
    let (before, after) = (of(old), of(new));
    for (path, rules) in &after {
        let Some((_, old_rules)) = before.iter().find(|(p, _)| p == path) else {
            for rule in rules {
                changes.push(change('~', path, format!("match + \"{rule}\"")));
            }
            continue;
        };
        for rule in old_rules.iter().filter(|r| !rules.contains(r)) {
            changes.push(change('~', path, format!("match - \"{rule}\"")));
        }
        for rule in rules.iter().filter(|r| !old_rules.contains(r)) {
            changes.push(change('~', path, format!("match + \"{rule}\"")));
        }
    }
    groups(old, new, changes);
    // the order of asking decides where classes overlap
    let common = |a: &[(String, Vec<String>)], b: &[(String, Vec<String>)]| -> Vec<String> {
        let known = |path: &String| b.iter().any(|(p, _)| p == path);
        a.iter().map(|(p, _)| p.clone()).filter(known).collect()
    };
    let (first, second) = (common(&before, &after), common(&after, &before));
    if let Some(at) = first.iter().zip(&second).position(|(a, b)| a != b) {
        let words = format!("is asked before {} now", first[at]);
        changes.push(change('~', &second[at], words));
    }
}

/// The same line can mean other addresses when a group has changed.
fn groups(old: &Plan, new: &Plan, changes: &mut Vec<Change>) {
    for asked in &new.asked {
        let path = &new.node(asked.node).path;
        let Some(before) = old.asked.iter().find(|a| old.node(a.node).path == *path) else {
            continue;
        };
        for rule in &asked.rules {
            let same_text = before.rules.iter().find(|r| r.text == rule.text);
            if same_text.is_some_and(|r| r.when != rule.when) {
                let words = format!("match \"{}\" names other addresses now", rule.text);
                changes.push(change('~', &**path, words));
            }
        }
    }
}

fn subscribers(old: &Plan, new: &Plan, changes: &mut Vec<Change>) {
    let of = |plan: &Plan| -> BTreeMap<weir_units::Prefix, String> {
        let leaf = |id: u32| plan.node(id).path.to_string();
        plan.subscribers.iter().map(|&(block, id)| (block, leaf(id))).collect()
    };
    let (before, after) = (of(old), of(new));
    let mut listed = Listed::new('~');
    for (block, leaf) in &after {
        if let Some(was) = before.get(block).filter(|was| *was != leaf) {
            listed.add(leaf, &format!("has {block} now, which {was} had"), changes);
        }
    }
}
