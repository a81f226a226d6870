//! What changes in whose a frame is: the rules, their order, the addresses of subscribers.

use std::collections::BTreeMap;

use super::nodes::rule;
use super::pairs::Pairs;
use super::{Change, Listed, change};
use crate::plan::{Asked, NodeId, Plan, Rule, Target};
use crate::say;

/// Compares the rules of each class, and who is asked first.
pub(super) fn compare(old: &Plan, new: &Plan, pairs: &Pairs, changes: &mut Vec<Change>) {
    let mut known: BTreeMap<NodeId, &[Rule]> = BTreeMap::new();
    for asked in classes(old) {
        if let Some(now) = pairs.new_of(asked.node) {
            known.insert(now, &asked.rules);
        }
    }
    for asked in classes(new) {
        let was = known.remove(&asked.node).unwrap_or_default();
        rules(&new.node(asked.node).path, was, &asked.rules, changes);
    }
    for (node, was) in known {
        rules(&new.node(node).path, was, &[], changes);
    }
    order(old, new, pairs, changes);
}

fn classes(plan: &Plan) -> impl Iterator<Item = &Asked> {
    plan.asked.iter().filter(|a| a.target != Target::Subscriber)
}

/// Rules are the same when they hold for the same frames, however they are written.
fn rules(path: &str, old: &[Rule], new: &[Rule], changes: &mut Vec<Change>) {
    let same = |rule: &Rule, among: &[Rule]| among.iter().any(|r| r.when == rule.when);
    let gone: Vec<&Rule> = old.iter().filter(|r| !same(r, new)).collect();
    let came: Vec<&Rule> = new.iter().filter(|r| !same(r, old)).collect();
    let named = |rule: &Rule, among: &[&Rule]| among.iter().any(|r| text(r) == text(rule));
    for old in gone.iter().filter(|r| !named(r, &came)) {
        rule('-', path, &text(old), changes);
    }
    for new in came {
        if named(new, &gone) {
            // the same line can mean other addresses when a group has changed
            let words = format!("match \"{}\" now names other addresses", text(new));
            changes.push(change('~', path, words));
        } else {
            rule('+', path, &text(new), changes);
        }
    }
}

/// The line of a rule, with single blanks.
fn text(rule: &Rule) -> String {
    rule.text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The order of asking decides where classes overlap; the subscribers have their place in it.
fn order(old: &Plan, new: &Plan, pairs: &Pairs, changes: &mut Vec<Change>) {
    let entry = |asked: &Asked, node: NodeId| (node, asked.target == Target::Subscriber);
    let before: Vec<_> =
        old.asked.iter().filter_map(|a| Some(entry(a, pairs.new_of(a.node)?))).collect();
    let after: Vec<_> = new.asked.iter().map(|a| entry(a, a.node)).collect();
    let common = |list: &[(NodeId, bool)], other: &[(NodeId, bool)]| -> Vec<(NodeId, bool)> {
        let other: std::collections::BTreeSet<_> = other.iter().collect();
        list.iter().filter(|entry| other.contains(entry)).copied().collect()
    };
    let (first, second) = (common(&before, &after), common(&after, &before));
    if let Some(at) = first.iter().zip(&second).position(|(a, b)| a != b) {
        let path = |(node, _): (NodeId, bool)| &*new.node(node).path;
        let words = format!("now comes before {}", path(first[at]));
        changes.push(change('~', path(second[at]), words));
    }
}

/// Compares whose an address is.
pub(super) fn subscribers(old: &Plan, new: &Plan, pairs: &Pairs, changes: &mut Vec<Change>) {
    let mut listed = Listed::new('~');
    let blocks = |plan: &Plan| plan.subscribers.clone();
    let macs = |plan: &Plan| {
        let named = |(mac, id): &([u8; 6], NodeId)| (say::mac(mac), *id);
        plan.subscriber_macs.iter().map(named).collect::<Vec<_>>()
    };
    owners((old, new, pairs), (blocks(old), blocks(new)), &mut listed, changes);
    owners((old, new, pairs), (macs(old), macs(new)), &mut listed, changes);
    listed.rest(changes);
}

/// Addresses and whose they are.
type Owners<A> = Vec<(A, NodeId)>;

/// Compares whose each address of one kind is.
fn owners<A: Ord + std::fmt::Display>(
    (old, new, pairs): (&Plan, &Plan, &Pairs),
    (before, after): (Owners<A>, Owners<A>),
    listed: &mut Listed,
    changes: &mut Vec<Change>,
) {
    let before: BTreeMap<A, NodeId> = before.into_iter().collect();
    let after: BTreeMap<A, NodeId> = after.into_iter().collect();
    for (address, &leaf) in &before {
        // of a subscriber who is gone, nothing more needs to be said
        if let (false, Some(now)) = (after.contains_key(address), pairs.new_of(leaf)) {
            listed.add(&new.node(now).path, &format!("address - {address}"), changes);
        }
    }
    for (address, &leaf) in &after {
        let path = &new.node(leaf).path;
        match before.get(address) {
            Some(&was) if pairs.new_of(was) != Some(leaf) => {
                let was = &old.node(was).path;
                listed.add(path, &format!("now has {address}, which {was} had"), changes);
            }
            None if pairs.old(leaf).is_some() => {
                listed.add(path, &format!("address + {address}"), changes);
            }
            Some(_) | None => {}
        }
    }
}
