//! From words to numbers: parts become rates, defaults become values, and what can never work is
//! said.
//!
//! Rates go down where they are parts of the parent's (`40%`), and up where a class says none: it
//! then promises what its children promise. Weights default to rates; classes without one share
//! evenly what their parent has not promised, so that the weights of siblings add up to the
//! parent's rate.

use weir_units::{Prefix, Rate, limits};

use crate::amount::{Amount, Both, Burst};
use crate::class::{Class, Enforce, Priority, Weight};
use crate::each::Each;
use crate::leaf::{LeafWords, Session};
use crate::link::Link;
use crate::plan::{Asked, EachPlan, Kind, Node, NodeId, Plan, Rule, Shares, Target};
use crate::policy::Policy;
use crate::problem::{At, Place, Problems};
use crate::say::pair;
use crate::subscribers::Subscriber;
use crate::tree::Tree;
use crate::weights;

/// Makes the plan of one link; problems tell what is wrong with it.
pub(crate) fn resolve(policy: &Policy, tree: &Tree, link: &Link, problems: &mut Problems) -> Plan {
    let mut build = Build {
        policy,
        tree,
        link,
        problems,
        below: rows_below(policy),
        plan: Plan {
            name: link.name.clone(),
            lan: link.lan.clone(),
            wan: link.wan.clone(),
            counts: link.counts,
            overhead: link.overhead,
            nodes: Vec::new(),
            words: Vec::new(),
            asked: Vec::new(),
            subscribers: Vec::new(),
            rest: 0,
        },
    };
    build.root();
    let mut plan = build.plan;
    weights::set(&mut plan);
    plan.subscribers.sort_unstable();
    plan
}

/// The rows of each class, by the class's path; sorted so that look-ups are quick.
fn rows_below(policy: &Policy) -> Vec<(&str, &Subscriber)> {
    let rows = policy.subscribers.iter().flat_map(|s| &s.rows);
    let mut rows: Vec<(&str, &Subscriber)> = rows.map(|r| (&*r.parent, r)).collect();
    rows.sort_by_key(|(parent, row)| (*parent, row.place));
    rows
}

struct Build<'a> {
    policy: &'a Policy,
    tree: &'a Tree,
    link: &'a Link,
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
    rate: Both<Option<Rate>>,
    ceil: Both<Rate>,
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
        let words = LeafWords::default();
        let root = self.node("/", 0, 0, Kind::Interior, shares, &words, self.link.place);
        self.plan.nodes[root as usize].enforce = enforce;
        let above = Above {
            id: root,
            depth: 0,
            rate: rate.map(Some),
            ceil: rate,
            priority: Priority::Normal,
            enforce,
            words,
            within: None,
        };
        let mut promised = Both::same(Rate::ZERO);
        for &child in &self.tree.top {
            let class = &self.policy.classes[child];
            if class.link.as_ref().is_none_or(|l| l.value == self.link.name) {
                let child = self.class(child, &above);
                promised = promised.zip(child).map(|(a, b)| a.plus(b));
            }
        }
        self.check_weights(&self.tree.top);
        promised = promised.zip(self.rows("", &above)).map(|(a, b)| a.plus(b));
        self.plan.rest = self.spare("/(rest)", &above, self.link.place);
        let whole = format!("link \"{}\"", self.link.name);
        self.check_promise(&whole, self.link.place, rate, promised, enforce);
        self.ask_subscribers("", &above);
    }

    /// Adds a class and all below it; returns what it promises.
    fn class(&mut self, at: usize, above: &Above) -> Both<Rate> {
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
        let id = self.node(&class.path, above.id, depth, Kind::Leaf, shares, &words, class.place);
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
            shares.burst = burst.map(|b| match b.value {
                Burst::Bytes(bytes) => bytes,
                Burst::Time(time) => shares.ceil.bytes_in(time),
            });
        }
        let mut below = Above {
            id,
            depth,
            rate: said,
            ceil,
            priority: node.priority,
            enforce: node.enforce,
            words,
            within: above.within,
        };
        let promised = self.below(at, class, &mut below);
        let rate = said.zip(promised).map(|(said, promised)| said.unwrap_or(promised));
        let node = &mut self.plan.nodes[id as usize];
        node.shares.down.rate = rate.down;
        node.shares.up.rate = rate.up;
        self.check_class(class, said, rate, ceil, promised);
        // what is above the ceiling has been said and shall not be said again of every class above
        rate.zip(ceil).map(|(rate, ceil)| rate.min(ceil))
    }

    /// Adds what lies below a class and asks it; returns what its children promise.
    fn below(&mut self, at: usize, class: &'a Class, above: &mut Above) -> Both<Rate> {
        // its children are asked before it, but they lie within it
        let place_in_order = self.plan.asked.len();
        let within = above.within;
        let own = !class.matches.is_empty();
        if own {
            // a stand-in, moved behind the children below
            above.within = Some(u32::MAX);
        }
        let mut promised = Both::same(Rate::ZERO);
        for &child in &self.tree.children[at] {
            let child = self.class(child, above);
            promised = promised.zip(child).map(|(a, b)| a.plus(b));
        }
        self.check_weights(&self.tree.children[at]);
        promised = promised.zip(self.rows(&class.path, above)).map(|(a, b)| a.plus(b));
        self.ask_subscribers(&class.path, above);
        let has_children = self.plan.nodes.len() > above.id as usize + 1;
        let target = if let Some(each) = &class.each {
            self.each(class, each, above)
        } else if has_children {
            self.plan.nodes[above.id as usize].kind = Kind::Interior;
            if own {
                Target::Leaf(self.spare(&format!("{}/(rest)", class.path), above, class.place))
            } else {
                Target::Leaf(above.id)
            }
        } else {
            Target::Leaf(above.id)
        };
        if own {
            let number = u32::try_from(self.plan.asked.len()).unwrap_or(u32::MAX);
            for asked in &mut self.plan.asked[place_in_order..] {
                if asked.within == Some(u32::MAX) {
                    asked.within = Some(number);
                }
            }
            let rules = class.matches.iter().map(|m| Rule {
                when: m.when.clone(),
                text: m.text.as_str().into(),
                place: m.place,
            });
            let rules = rules.collect();
            self.plan.asked.push(Asked { node: above.id, within, target, rules });
        } else if class.says_match {
            // its lines are at fault, and that has been said
        } else if !has_children && class.each.is_none() {
            if self.policy.subscribers.as_ref().is_some_and(|s| !s.known) {
                // the table that nobody could read may have rows for it
                return promised;
            }
            let what = format!("no frame can reach \"{}\": it says no \"match\"", class.path);
            self.problems.warning(class.place, what, "add match = [\"lan 10.0.0.0/24\"]");
        } else if let Some(each) = &class.each {
            let what = format!("\"{}\" makes leaves for frames, but says no \"match\"", class.path);
            self.problems.error(each.place, what, "add match = [\"any\"] or name its addresses");
        }
        promised
    }

    fn each(&mut self, class: &Class, each: &Each, above: &Above) -> Target {
        let others = self.spare(&format!("{}/(others)", class.path), above, class.place);
        let ceil = each
            .ceil
            .zip(above.ceil)
            .map(|(said, above)| said.map_or(above, |s| s.value.of(above)).min(above));
        let rate = each.rate.zip(above.rate).map(|(said, above)| {
            said.map_or(Rate::ZERO, |s| s.value.of(above.unwrap_or_default()))
        });
        for (direction, (rate, ceil)) in rate.zip(ceil).named() {
            if rate > ceil {
                let what = format!(
                    "each leaf of \"{}\" is guaranteed {rate} {direction} but may have {ceil}",
                    class.path
                );
                self.problems.error(each.place, what, "raise the ceil or lower the rate");
            }
        }
        let shares =
            rate.zip(ceil).map(|(rate, ceil)| Shares { rate, ceil, weight: 1, burst: None });
        let (by, count, age) = (each.by, each.count, each.age);
        self.plan.nodes[above.id as usize].kind =
            Kind::Each(EachPlan { by, count, age, shares, others });
        Target::Each(above.id)
    }

    /// Adds the leaves of the subscribers of a class; returns what they are promised.
    fn rows(&mut self, path: &str, above: &Above) -> Both<Rate> {
        let start = self.below.partition_point(|(p, _)| *p < path);
        let end = self.below.partition_point(|(p, _)| *p <= path);
        let mut promised = Both::same(Rate::ZERO);
        let mut more = (0, None);
        for at in start..end {
            let row = self.below[at].1;
            let ceil =
                row.ceil.zip(above.ceil).map(|(said, above)| said.unwrap_or(above).min(above));
            let asks_more = row
                .ceil
                .zip(above.ceil)
                .named()
                .iter()
                .any(|(_, (said, above))| said.is_some_and(|said| said > *above));
            if asks_more {
                more.0 += 1;
                more.1.get_or_insert(row.place);
            }
            let shares = row.rate.zip(ceil).map(|(rate, ceil)| Shares {
                rate,
                ceil,
                weight: 0,
                burst: None,
            });
            let path = format!("{path}/{}", row.id);
            let words = above.words.or(&LeafWords::default());
            let words = LeafWords::default().or(&words);
            let id =
                self.node(&path, above.id, above.depth + 1, Kind::Leaf, shares, &words, row.place);
            let node = &mut self.plan.nodes[id as usize];
            node.name = (!row.name.is_empty()).then(|| row.name.clone());
            node.priority = above.priority;
            node.enforce = above.enforce;
            let leaves = row.blocks.iter().map(|&block: &Prefix| (block, id));
            self.plan.subscribers.extend(leaves);
            promised = promised.zip(row.rate).map(|(a, b)| a.plus(b));
        }
        if let (count, Some(place)) = more {
            let (above, way) = (pair(&above.ceil), if path.is_empty() { "the link" } else { path });
            let what = format!(
                "{count} subscribers, of which this is the first, may have more than passes \
                 above them: {above} by way of {way}"
            );
            self.problems.warning(place, what, "they get what passes");
        }
        promised
    }

    /// The table is asked where the class is that it hangs under.
    fn ask_subscribers(&mut self, path: &str, above: &Above) {
        let Some(table) = &self.policy.subscribers else { return };
        let under = table.under.as_ref().map_or("", |u| u.value.trim_end_matches('/'));
        if under != path || self.plan.subscribers.is_empty() {
            return;
        }
        let rule = Rule {
            when: crate::matching::When::default(),
            text: format!("lan address in {}", table.file.value).into(),
            place: table.file.place,
        };
        let (node, within) = (above.id, above.within);
        self.plan.asked.push(Asked { node, within, target: Target::Subscriber, rules: vec![rule] });
    }

    /// A leaf that nobody wrote but that is needed, with no promise and its parent's ceiling.
    fn spare(&mut self, path: &str, above: &Above, place: Place) -> NodeId {
        let shares =
            above.ceil.map(|ceil| Shares { rate: Rate::ZERO, ceil, weight: 0, burst: None });
        let words = LeafWords::default().or(&above.words);
        let id = self.node(path, above.id, above.depth + 1, Kind::Leaf, shares, &words, place);
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
        kind: Kind,
        shares: Both<Shares>,
        words: &LeafWords,
        place: Place,
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
            priority: Priority::Normal,
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

impl Build<'_> {
    /// The rates a class says, parts resolved.
    fn said_rates(&mut self, class: &Class, above: &Above) -> Both<Option<Rate>> {
        let mut nothing_to_part = None;
        let rates = class.rate.zip(above.rate).map(|(said, above)| match (said?, above) {
            (At { value: Amount::Rate(rate), .. }, _) => Some(rate),
            (At { value: part @ Amount::Part(_), .. }, Some(above)) => Some(part.of(above)),
            (At { value: Amount::Part(_), .. }, None) => None,
        });
        for said in [(class.rate.down, above.rate.down), (class.rate.up, above.rate.up)] {
            if let (Some(At { value: Amount::Part(_), place }), None) = said {
                nothing_to_part = Some(place);
            }
        }
        let parent = &self.plan.nodes[above.id as usize].path;
        let parent_broken = self.policy.classes.iter().any(|c| *c.path == **parent && c.says_rate);
        if let (Some(place), false) = (nothing_to_part, parent_broken) {
            let what = format!("\"rate\" is a part of the rate of \"{parent}\", which says none");
            self.problems.error(
                place,
                what,
                format!("add rate = ... to \"{parent}\", or write a rate here"),
            );
        }
        rates
    }

    fn ceilings(&mut self, class: &Class, above: &Above) -> Both<Rate> {
        for (direction, (said, above_ceil)) in class.ceil.zip(above.ceil).named() {
            if let Some(At { value: Amount::Rate(said), place }) = said
                && said > above_ceil
            {
                let parent = &self.plan.nodes[above.id as usize].path;
                let what = format!(
                    "\"ceil\" {said} of \"{}\" is above the {above_ceil} {direction} of \
                     \"{parent}\"",
                    class.path
                );
                self.problems.warning(*place, what, "it never gets more than passes above it");
            }
        }
        class
            .ceil
            .zip(above.ceil)
            .map(|(said, above)| said.map_or(above, |s| s.value.of(above)).min(above))
    }

    fn check_class(
        &mut self,
        class: &Class,
        said: Both<Option<Rate>>,
        rate: Both<Rate>,
        ceil: Both<Rate>,
        promised: Both<Rate>,
    ) {
        for (direction, (rate, ceil)) in rate.zip(ceil).named() {
            if rate > ceil {
                let (said, above) = match direction {
                    "down" => (class.rate.down, class.ceil.down),
                    _ => (class.rate.up, class.ceil.up),
                };
                let place = said.or(above).map_or(class.place, |at| at.place);
                let what = format!(
                    "\"{}\" is guaranteed {rate} {direction} but can have {ceil} at most",
                    class.path
                );
                self.problems.error(
                    place,
                    what,
                    "lower the rate, or raise its ceil or that of a class above",
                );
                break;
            }
        }
        let whole = said.map(Option::unwrap_or_default);
        if said.down.is_some() || said.up.is_some() {
            let name = format!("\"{}\"", class.path);
            let place = class.rate.down.or(class.rate.up).map_or(class.place, |r| r.place);
            let enforce = class.enforce.map_or(Enforce::Auto, |e| e.value);
            self.check_promise(&name, place, whole, promised, enforce);
        }
        if let Some(session) = &class.leaf.session {
            self.check_session(class, session, ceil);
        }
    }

    /// A weight that is a bare number cannot be compared with a rate in bits per second.
    fn check_weights(&mut self, siblings: &[usize]) {
        let classes = || siblings.iter().map(|&at| &self.policy.classes[at]);
        let by_rate = classes().find(|c| match c.weight {
            None => c.rate.down.is_some() || c.rate.up.is_some(),
            Some(weight) => matches!(weight.value, Weight::Rate(_)),
        });
        let Some(by_rate) = by_rate else { return };
        for class in classes() {
            if let Some(At { value: Weight::Parts(parts), place }) = class.weight {
                let what = format!(
                    "\"weight\" {parts} of \"{}\" is a bare number, but its sibling \"{}\" \
                     weighs a rate",
                    class.path, by_rate.path
                );
                let help =
                    "give all of them numbers, or write the weight as a rate: weight = \"2mbit\"";
                self.problems.warning(place, what, help);
            }
        }
    }

    fn check_session(&mut self, class: &Class, session: &Session, ceil: Both<Rate>) {
        let Some(count) = session.count else { return };
        for (direction, (min, ceil)) in session.min.zip(ceil).named() {
            let Some(min) = min else { continue };
            let sum = Rate::from_bps(min.bps().saturating_mul(u64::from(count)));
            if sum > *ceil {
                let what = format!(
                    "{count} sessions of at least {min} are {sum} {direction}, and \"{}\" has \
                     {ceil} at most",
                    class.path
                );
                self.problems.error(
                    session.place,
                    what,
                    "lower \"count\" or \"min\", or raise the ceil",
                );
                return;
            }
        }
    }

    /// What children are promised must fit into what their parent has; under weir's allocator, into
    /// 31/32 of it, because its virtual queue holds back up to 1/32.
    fn check_promise(
        &mut self,
        name: &str,
        place: Place,
        whole: Both<Rate>,
        promised: Both<Rate>,
        enforce: Enforce,
    ) {
        for (direction, (whole, promised)) in whole.zip(promised).named() {
            let admitted = match enforce {
                Enforce::Weir => whole.minus(Rate::from_bps(whole.bps().div_ceil(32))),
                _ => *whole,
            };
            if *promised <= admitted {
                continue;
            }
            let mut what = format!(
                "the classes below {name} are promised {promised} {direction}, it has {whole}"
            );
            if enforce == Enforce::Weir {
                what += &format!(" and enforce = \"weir\" admits 31/32 of it, {admitted}");
            }
            let over = promised.minus(admitted);
            self.problems.error(
                place,
                what,
                format!("take {over} off their rates, or raise its own"),
            );
            return;
        }
    }
}

/// Whether a plan is larger than the engine takes.
pub(crate) fn check_size(plan: &Plan, place: Place, problems: &mut Problems) {
    let each = plan.nodes.iter().map(|n| match &n.kind {
        Kind::Each(each) => each.count as usize,
        _ => 0,
    });
    let nodes = plan.nodes.len() + each.sum::<usize>();
    let rules: usize = plan.asked.iter().map(|a| a.rules.len()).sum();
    let raw = plan.asked.iter().flat_map(|a| &a.rules).filter(|r| r.when.raw.is_some()).count();
    for (what, is, most) in [
        ("classes, subscribers and leaves made at run time", nodes, limits::CLASSES),
        ("match lines", rules, limits::RULES),
        ("raw byte matches", raw, limits::RAW_MATCHES),
    ] {
        if is > most {
            let what =
                format!("link \"{}\" has {is} {what}, and at most {most} are possible", plan.name);
            problems.error(place, what, "merge some, or split the link over several boxes");
        }
    }
}
