//! What changes in a link and in each of its classes. What only follows the class above is said
//! there and not again of everything below.

use super::pairs::Pairs;
use super::{Change, change, word};
use crate::leaf::LeafWords;
use crate::plan::{Node, NodeId, NodeKind, Plan, Shares};
use crate::say;
use weir_units::ByWay;

pub(super) fn link(old: &Plan, new: &Plan, changes: &mut Vec<Change>) {
    let subject = format!("link {}", new.name);
    word(&subject, "lan", &old.lan, &new.lan, changes);
    word(&subject, "wan", &old.wan, &new.wan, changes);
    let counts = |p: &Plan| say::name_of(&crate::link::COUNTS, &p.counts).to_owned();
    word(&subject, "counts", counts(old), counts(new), changes);
    word(&subject, "overhead", old.overhead.to_string(), new.overhead.to_string(), changes);
    let shaped = |p: &Plan| say::pair(&p.nodes[0].shares.map(|s| s.rate));
    word(&subject, "shaped to", shaped(old), shaped(new), changes);
    let found = |p: &Plan| {
        let word = |finds| if finds { "auto" } else { "fixed" };
        match p.finds {
            ByWay { down, up: false } => word(down).to_owned(),
            ByWay { down, up } => format!("down {}, up {}", word(down), word(up)),
        }
    };
    word(&subject, "margin", found(old), found(new), changes);
    let enforce = |p: &Plan| say::enforce(p.nodes[0].enforce);
    word(&subject, "enforce", enforce(old), enforce(new), changes);
    word(&subject, "routers", say::macs(&old.routers), say::macs(&new.routers), changes);
}

/// A new node in words.
pub(super) fn describe(plan: &Plan, node: &Node) -> String {
    let rate = say::pair(&node.shares.map(|s| s.rate));
    let ceil = say::pair(&node.shares.map(|s| s.ceil));
    let said = format!("is new: rate {rate}, ceil {ceil}");
    match &node.kind {
        NodeKind::Each(each) => format!("{said}, each {}", say::each(each)),
        NodeKind::Interior => said,
        NodeKind::Leaf => {
            let words = say::leaf(&plan.words[node.words as usize]);
            let words: String = words.iter().map(|(w, v)| format!(", {w} {v}")).collect();
            format!("{said}{words}")
        }
    }
}

/// A node before and after.
#[derive(Clone, Copy)]
struct Twice<'p> {
    old: &'p Node,
    new: &'p Node,
    words: (&'p LeafWords, &'p LeafWords),
}

impl<'p> Twice<'p> {
    fn new(old: &'p Plan, new: &'p Plan, (from, to): (NodeId, NodeId)) -> Twice<'p> {
        let words = (old.words_of(from), new.words_of(to));
        Twice { old: old.node(from), new: new.node(to), words }
    }
}

/// Compares a node that both plans have.
pub(super) fn compare(
    old: &Plan,
    new: &Plan,
    pairs: &Pairs,
    (from, to): (NodeId, NodeId),
    changes: &mut Vec<Change>,
) {
    let node = Twice::new(old, new, (from, to));
    let above = (node.old.parent, node.new.parent);
    let same_parent = pairs.old(above.1) == Some(above.0);
    let above = same_parent.then(|| Twice::new(old, new, above));
    shares(node, above, changes);
    let path = &*node.new.path;
    let follow = |of: &dyn Fn(&Node) -> &'static str, name: &str, changes: &mut Vec<Change>| {
        let change = |node: Twice<'_>| (of(node.old), of(node.new));
        if above.map(change) != Some(change(node)) {
            word(path, name, of(node.old), of(node.new), changes);
        }
    };
    follow(&|n| say::priority(n.priority), "priority", changes);
    follow(&|n| say::enforce(n.enforce), "enforce", changes);
    let each = |node: &Node| match &node.kind {
        NodeKind::Each(each) => say::each(each),
        NodeKind::Leaf | NodeKind::Interior => "none".to_owned(),
    };
    word(path, "each", each(node.old), each(node.new), changes);
    leaf_words(node, above, changes);
    word(path, "name", name_of(node.old), name_of(node.new), changes);
}

fn name_of(node: &Node) -> &str {
    node.name.as_deref().unwrap_or("none")
}

fn shares(node: Twice<'_>, above: Option<Twice<'_>>, changes: &mut Vec<Change>) {
    let path = &*node.new.path;
    let mut both = |name: &str, of: &dyn Fn(&Shares) -> String| {
        let text = |node: &Node| say::pair(&node.shares.map(|s| of(&s)));
        word(path, name, text(node.old), text(node.new), changes);
    };
    both("rate", &|s| s.rate.to_string());
    let ceils = |node: Twice<'_>| node.old.shares.zip(node.new.shares);
    let step = |both: ByWay<(Shares, Shares)>| both.map(|(old, new)| (old.ceil, new.ceil));
    let own = step(ceils(node));
    let follows = above.is_some_and(|above| {
        let above = step(ceils(above));
        own.zip(above).named().iter().all(|(_, (own, above))| own.0 == own.1 || own == above)
    });
    if !follows {
        both("ceil", &|s| s.ceil.to_string());
    }
    // default weights follow the rates of the class and its siblings and say nothing new
    if node.old.says_weight || node.new.says_weight {
        both("weight", &|s| s.weight.to_string());
    }
    both("burst", &|s| s.burst.map_or_else(|| "default".to_owned(), |b| b.to_string()));
}

fn leaf_words(node: Twice<'_>, above: Option<Twice<'_>>, changes: &mut Vec<Change>) {
    // most leaves have no words, and comparing is quicker than writing down
    if node.words.0 == node.words.1 {
        return;
    }
    type Said = (Vec<(&'static str, String)>, Vec<(&'static str, String)>);
    let said = |node: Twice<'_>| -> Said { (say::leaf(node.words.0), say::leaf(node.words.1)) };
    let find = |list: &[(&str, String)], name: &str| {
        let found = list.iter().find(|(word, _)| *word == name);
        found.map_or_else(|| "default".to_owned(), |(_, value)| value.clone())
    };
    let (own, above) = (said(node), above.map(said));
    for name in crate::leaf::WORDS {
        let step = |said: &Said| (find(&said.0, name), find(&said.1, name));
        let (old, new) = step(&own);
        // these are a class's own
        let inherits = !matches!(name, "session" | "police");
        let follows = above.as_ref().is_some_and(|above| step(above) == (old.clone(), new.clone()));
        if !inherits || !follows {
            word(&node.new.path, name, old, new, changes);
        }
    }
}

/// Writes down that a rule came or went.
pub(super) fn rule(mark: char, path: &str, text: &str, changes: &mut Vec<Change>) {
    changes.push(change('~', path, format!("match {mark} \"{text}\"")));
}
