//! From words to numbers: parts become rates, defaults become values, and what can never work is
//! said.
//!
//! Rates go down where they are parts of the parent's (`40%`), and up where a class says none: it
//! then promises what its children promise. Weights default to rates; classes without one share
//! evenly what their parent has not promised, so that the weights of siblings add up to the
//! parent's rate.

mod rates;
mod rows;
mod size;
mod sums;

use std::sync::Arc;

use weir_units::{ByWay, Priority, Rate};

use crate::class::{Class, Enforce, Weight};
use crate::leaf::LeafWords;
use crate::link::LinkTable;
use crate::matching::When;
use crate::plan::{Asked, Node, NodeId, NodeKind, Plan, Rule, Shares, Target};
use crate::policy::Policy;
use crate::problem::{Position, Problems};
use crate::rest::Rest;
use crate::subscribers::Subscriber;
use crate::tree::Tree;
use crate::weights;
pub(crate) use size::check_size;
use sums::{Owner, Promise};

/// Makes the plan of one link; problems tell what is wrong with it.
pub(crate) fn resolve(
    policy: &Policy,
    tree: &Tree,
    link: &LinkTable,
    problems: &mut Problems,
) -> Plan {
    let rows = policy.subscribers.as_ref().map_or(0, |table| table.rows.len());
    // the link, its rest, and what classes with rules of their own need
    let nodes = rows + 2 * policy.classes.len() + 2;
    let mut build = Build {
        policy,
        tree,
        link,
        problems,
        below: rows::below(policy),
        plan: Plan {
            name: link.name.clone(),
            lan: link.lan.clone(),
            wan: link.wan.clone(),
            counts: link.counts,
            overhead: link.overhead,
            finds: link.finds,
            observes: false,
            routers: link.routers.clone(),
            nodes: Vec::with_capacity(nodes),
            words: Vec::new(),
            asked: Vec::new(),
            subscribers: Vec::new(),
            subscriber_macs: Vec::new(),
            rest: 0,
        },
    };
    build.root();
    let mut plan = build.plan;
    weights::set(&mut plan);
    plan.subscribers.sort_unstable();
    plan.subscriber_macs.sort_unstable();
    plan
}

struct Build<'a> {
    policy: &'a Policy,
    tree: &'a Tree,
    link: &'a LinkTable,
    problems: &'a mut Problems,
    below: Vec<(&'a str, &'a Subscriber)>,
    plan: Plan,
}

/// What a child takes from above.
#[derive(Clone)]
struct Above {
    id: NodeId,
    depth: u8,
    /// The rate that parts are parts of; none when the parent does not say one.
    rate: ByWay<Option<Rate>>,
    /// Whether the parent writes a rate, readable or not.
    says_rate: ByWay<bool>,
    ceil: ByWay<Rate>,
    priority: Priority,
    enforce: Enforce,
    words: LeafWords,
    /// The nearest class above that has rules.
    within: Option<u32>,
}

impl<'a> Build<'a> {
    fn root(&mut self) {
        let rate = self
            .link
            .line
            .zip(self.link.margin)
            .map(|(line, part)| line.part(part).max(Rate::from_bps(1)));
        let shares = rate.map(|r| Shares { rate: r, ceil: r, weight: 1, burst: None });
        let enforce = self.link.enforce;
        let words = self.link.leaf.clone();
        let root = self.node("/", 0, 0, NodeKind::Interior, shares, &words, self.link.place);
        self.plan.nodes[root as usize].enforce = enforce;
        let above = Above {
            id: root,
            depth: 0,
            rate: rate.map(Some),
            says_rate: ByWay::same(true),
            ceil: rate,
            priority: Priority::NORMAL,
            enforce,
            words,
            within: None,
        };
        let mut promised = Promise::default();
        for &child in &self.tree.top {
            let class = &self.policy.classes[child];
            let any = self.policy.links.is_empty();
            if any || class.link.as_ref().is_none_or(|l| l.value == self.link.name) {
                promised = sums::add(promised, self.class(child, &above));
            }
        }
        self.check_weights(&self.tree.top);
        promised = sums::add(promised, self.rows("", &above));
        self.plan.rest = self.rest("", &above, self.link.place);
        let owner = Owner {
            name: format!("link \"{}\"", self.link.name),
            is_link: true,
            place: ByWay::same(self.link.place),
            follows: ByWay::same(false),
            allocates: enforce == Enforce::Weir,
            at_best: self.link.finds.map(|finds| if finds { sums::FOUND } else { 1_000_000 }),
            bare: self.bare(root),
        };
        self.check_promise(&owner, rate, promised);
        self.ask_subscribers("", &above);
    }

    /// Adds a class and all below it; returns what it promises.
    fn class(&mut self, at: usize, above: &Above) -> Promise {
        let class = &self.policy.classes[at];
        let said = self.said_rates(class, above);
        let ceil = self.ceilings(class, above);
        let shares = said.zip(ceil).map(|(rate, ceil)| Shares {
            rate: rate.unwrap_or_default(),
            ceil,
            weight: 0,
            burst: None,
        });
        let words = class.leaf.or(&above.words);
        let depth = above.depth + 1;
        let id =
            self.node(&class.path, above.id, depth, NodeKind::Leaf, shares, &words, class.place);
        let node = &mut self.plan.nodes[id as usize];
        node.priority = class.priority.unwrap_or(above.priority);
        node.enforce = class.enforce.map_or(above.enforce, |e| e.value);
        node.was = class.was.as_ref().map(|w| w.value.as_str().into());
        let weight = class.weight.map(|w| match w.value {
            Weight::Parts(parts) => parts,
            Weight::Rate(rate) => rate.bps(),
        });
        node.says_weight = weight.is_some();
        for (shares, burst) in
            [(&mut node.shares.down, class.burst.down), (&mut node.shares.up, class.burst.up)]
        {
            shares.weight = weight.unwrap_or(0);
            shares.burst = burst.map(|burst| burst.value.at(shares.ceil));
        }
        let mut below = Above {
            id,
            depth,
            rate: said,
            says_rate: class.says_rate,
            ceil,
            priority: node.priority,
            enforce: node.enforce,
            words,
            within: above.within,
        };
        let promised = self.below(at, class, &mut below);
        let promise = sums::of_class(said, promised);
        let node = &mut self.plan.nodes[id as usize];
        let most = promise.zip(ceil).map(|(sum, ceil)| sums::rate(sum.all()).min(ceil));
        // what a class says and cannot have is a mistake of its own
        let rate = said.zip(most).map(|(said, most)| said.unwrap_or(most));
        node.shares.down.rate = rate.down;
        node.shares.up.rate = rate.up;
        // of a subtree that weir's allocator holds, the top
        let allocates = node.enforce == Enforce::Weir && above.enforce != Enforce::Weir;
        self.check_class(class, id, said, ceil, promised, allocates);
        // what is above the ceiling has been said and shall not be said again of every class above
        promise.zip(ceil).map(|(promise, ceil)| promise.min(ceil.bps().into()))
    }

    /// Adds what lies below a class and asks it; returns what its children promise.
    fn below(&mut self, at: usize, class: &'a Class, above: &mut Above) -> Promise {
        // its children are asked before it, but they lie within it
        let place_in_order = self.plan.asked.len();
        let within = above.within;
        let own = !class.matches.is_empty();
        if own {
            // a stand-in, moved behind the children below
            above.within = Some(u32::MAX);
        }
        let mut promised = Promise::default();
        for &child in &self.tree.children[at] {
            promised = sums::add(promised, self.class(child, above));
        }
        self.check_weights(&self.tree.children[at]);
        promised = sums::add(promised, self.rows(&class.path, above));
        self.ask_subscribers(&class.path, above);
        self.ask(class, above, within, place_in_order);
        promised
    }

    /// Asks a class behind its children, which are asked since `first`.
    fn ask(&mut self, class: &'a Class, above: &Above, within: Option<u32>, first: usize) {
        let own = !class.matches.is_empty();
        let has_children = self.plan.nodes.len() > above.id as usize + 1;
        let target = if let Some(each) = &class.each {
            self.each(class, each, above)
        } else if has_children {
            self.plan.nodes[above.id as usize].kind = NodeKind::Interior;
            if class.leaf.police.is_some() {
                let what =
                    format!("\"{}\" has children, so its \"police\" has no effect", class.path);
                let help = "frames are policed in leaves: set it in its children";
                self.problems.warning(class.place, what, help);
            }
            if own {
                Target::Leaf(self.rest(&class.path, above, class.place))
            } else {
                Target::Leaf(above.id)
            }
        } else {
            Target::Leaf(above.id)
        };
        if own {
            let number = u32::try_from(self.plan.asked.len()).unwrap_or(u32::MAX);
            for asked in &mut self.plan.asked[first..] {
                if asked.within == Some(u32::MAX) {
                    asked.within = Some(number);
                }
            }
            let rules = class.matches.iter().flat_map(|m| {
                let text: Arc<str> = m.text.as_str().into();
                let one = move |when: &When| Rule {
                    when: when.clone(),
                    text: text.clone(),
                    place: m.place,
                };
                m.when.iter().map(one)
            });
            let rules = rules.collect();
            self.plan.asked.push(Asked { node: above.id, within, target, rules });
        } else if class.says_match {
            // its lines are at fault, and that has been said
        } else if !has_children && class.each.is_none() {
            if self.policy.subscribers.as_ref().is_some_and(|s| !s.known) {
                // the table that nobody could read may have rows for it
                return;
            }
            self.without_frames(class);
        } else if let Some(each) = &class.each {
            let what = format!("\"{}\" creates leaves, but has no \"match\"", class.path);
            self.problems.error(each.place, what, "add match = [\"any\"] or name its addresses");
        }
    }

    /// A leaf without rules. Where subscribers may hang, it is one without customers.
    fn without_frames(&mut self, class: &Class) {
        let mut what = format!("no frame can reach \"{}\": it has no \"match\"", class.path);
        let mut help = "add match = [\"lan 10.0.0.0/24\"]".to_owned();
        if let Some(table) = &self.policy.subscribers
            && let Some(parent) = class.path.strip_prefix(table.under())
            && let Some(parent) = parent.strip_prefix('/')
        {
            let file = &table.file.value;
            what += &format!(", and no row of \"{file}\" has the parent \"{parent}\"");
            help = format!("give a row the parent \"{parent}\", or remove the class");
        }
        self.problems.warning(class.place, what, help);
    }

    /// The leaf for what nothing below a class takes. Where that may be a host that the table of
    /// subscribers does not know, it has the ceiling that the link says.
    fn rest(&mut self, path: &str, above: &Above, place: Position) -> NodeId {
        let id = self.spare(&format!("{path}/(rest)"), above, place);
        let table = self.policy.subscribers.as_ref();
        if path.is_empty() || table.is_some_and(|table| table.is_below(path)) {
            let line = self.plan.nodes[0].shares;
            let said = self.link.rest.map(|said| Rest::or_default(said, table.is_some()));
            let ceil = said.zip(line.zip(above.ceil));
            let node = &mut self.plan.nodes[id as usize];
            node.shares = node.shares.zip(ceil).map(|(shares, (rest, (line, above)))| Shares {
                ceil: rest.of(line.ceil, above),
                ..shares
            });
        }
        id
    }

    /// A leaf that nobody wrote but that is needed, with no promise and its parent's ceiling.
    fn spare(&mut self, path: &str, above: &Above, place: Position) -> NodeId {
        let shares =
            above.ceil.map(|ceil| Shares { rate: Rate::ZERO, ceil, weight: 0, burst: None });
        let words = LeafWords::default().or(&above.words);
        let id = self.node(path, above.id, above.depth + 1, NodeKind::Leaf, shares, &words, place);
        let node = &mut self.plan.nodes[id as usize];
        node.priority = above.priority;
        node.enforce = above.enforce;
        id
    }

    #[expect(clippy::too_many_arguments, reason = "it writes down one row of the plan")]
    fn node(
        &mut self,
        path: &str,
        parent: NodeId,
        depth: u8,
        kind: NodeKind,
        shares: ByWay<Shares>,
        words: &LeafWords,
        place: Position,
    ) -> NodeId {
        let id = NodeId::try_from(self.plan.nodes.len()).unwrap_or(NodeId::MAX);
        let words = self.words(words);
        self.plan.nodes.push(Node {
            path: path.into(),
            name: None,
            parent,
            depth,
            kind,
            says_weight: false,
            shares,
            priority: Priority::NORMAL,
            enforce: Enforce::Auto,
            words,
            place,
            was: None,
        });
        id
    }

    /// The number of these words; the newest sets are the likeliest.
    fn words(&mut self, words: &LeafWords) -> u32 {
        let found = self.plan.words.iter().rposition(|w| w == words);
        let at = found.unwrap_or_else(|| {
            self.plan.words.push(words.clone());
            self.plan.words.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }
}
