//! The way of one packet in words, without sending it: which class, by which rule, and which
//! classes above limit it. The same tables answer that carry the traffic, so the answer is what
//! would happen.

mod scaled;

use std::fmt::Write as _;

use weir_classify::Owner;
use weir_packet::{Fault, Headers, Reason, Side, show};
use weir_policy::plan::{Node, NodeId, NodeKind};
use weir_policy::{Plan, Position, say};
use weir_units::{Rate, Way};

use crate::lower::{self, Table};
use crate::{Engine, enforce};
use scaled::{Scaled, scaled};

/// What would become of a packet.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The packet in one line.
    pub packet: String,
    /// Which way it travels.
    pub way: Way,
    /// What is wrong with it.
    pub fault: Option<Fault>,
    /// Why it goes no further, whatever its class would be.
    pub dropped: Option<Reason>,
    /// The class that takes it among those asked, and the rule by which; `None`: nobody's.
    pub by: Option<(u32, u32)>,
    /// The leaf, or the class that makes a leaf for it.
    pub node: NodeId,
    /// Whom the made leaf stands for.
    pub owner: Option<Owner>,
    /// Frames that wait before it.
    pub ahead: usize,
    /// Where its class has no queue: what its leaf may send now, and who limits it.
    pub share: Option<(Rate, NodeId)>,
    /// What the link carries now towards where the packet goes.
    pub line: Rate,
}

impl Engine {
    /// Tells what would become of a packet that came in on the port of `side`. `plan` must be the
    /// one that was applied last. Changes nothing.
    #[must_use]
    pub fn trace(&self, plan: &Plan, side: Side, bytes: &[u8]) -> Trace {
        let headers = Headers::parse(bytes);
        let explained = self.classifier.explain(side, &headers, bytes);
        let by = explained.rule.and_then(|rule| self.layout().rule(rule));
        let node = match (explained.leaf, explained.owner, by) {
            // its own leaf would be made, or has been
            (_, Some(_), Some((asked, _))) => plan.asked[asked as usize].node,
            (Some(leaf), ..) => self.layout().node_of(leaf).unwrap_or(plan.rest),
            _ => plan.rest,
        };
        Trace {
            packet: show(bytes).to_string(),
            way: side.way(),
            fault: headers.fault,
            dropped: Reason::of(&headers),
            by,
            node,
            owner: explained.owner,
            ahead: self.waiting(side.way()).0,
            share: self.share(plan, side.way(), explained.leaf),
            line: self.rate(side.way()),
        }
    }

    /// What a leaf of this number may send now on this way by its share; none where it has queues.
    #[must_use]
    pub fn may_send(&self, way: Way, leaf: u32) -> Option<Rate> {
        Some(self.enforcers[way].share(leaf)?.rate)
    }

    /// What a leaf may send now on this way by its share, and the node that limits it.
    fn share(&self, plan: &Plan, way: Way, leaf: Option<u32>) -> Option<(Rate, NodeId)> {
        let leaf = leaf.or_else(|| self.layout().slot(plan.rest))?;
        let share = self.enforcers[way].share(leaf)?;
        let spec = lower::allocators(&Table::of(plan, self.layout()), way);
        let by = enforce::limiter(&spec, &share)?;
        Some((share.rate, self.layout().node_of(by)?))
    }
}

impl Trace {
    /// The packet's way, a line per stage; `position` tells `file:line:column` of a place.
    #[must_use]
    pub fn words(&self, plan: &Plan, position: impl Fn(Position) -> String) -> Vec<String> {
        let (from, to) = match self.way {
            Way::Up => (&plan.lan, &plan.wan),
            Way::Down => (&plan.wan, &plan.lan),
        };
        let mut lines = vec![format!("port      in {from}, out {to}: {}", self.way.name())];
        lines.push(format!("packet    {}", self.packet));
        if let Some(reason) = self.dropped {
            lines.push(format!("dropped   {}", reason.meaning()));
            return lines;
        }
        if let Some(fault) = self.fault {
            lines.push(format!("          {fault}; what was parsed before it counts"));
        }
        lines.push(format!("classify  {}", self.class(plan, &position)));
        let words = say::leaf(plan.words_of(self.node));
        let is_condition = |word: &&str| matches!(*word, "dscp" | "police" | "tcp");
        let (treated, waits): (Vec<_>, Vec<_>) =
            words.into_iter().partition(|(word, _)| is_condition(word));
        lines.extend(treated.iter().map(|(word, value)| format!("condition {word} {value}")));
        let steadied = lower::in_words(plan, self.node, self.way);
        lines.extend(steadied.map(|words| format!("condition {words}")));
        lines.extend(self.allocated(plan));
        lines.push(format!("shape     {}", self.waits(plan, &waits)));
        for node in plan.way_up(self.node).skip(usize::from(self.owner.is_none())) {
            lines.push(format!("          {}", limit(plan, node, self.way)));
        }
        lines.extend(self.scaled(plan));
        lines
    }

    /// The path of the leaf, also of one that is made at run time.
    #[must_use]
    pub fn leaf(&self, plan: &Plan) -> String {
        let path = &plan.node(self.node).path;
        match &self.owner {
            Some(owner) => format!("{path}/{owner}"),
            None => path.to_string(),
        }
    }

    fn class(&self, plan: &Plan, position: &impl Fn(Position) -> String) -> String {
        let Some((asked, rule)) = self.by else {
            return format!("{}: no rule matches", self.leaf(plan));
        };
        let rule = &plan.asked[asked as usize].rules[rule as usize];
        format!("{} by \"{}\" ({})", self.leaf(plan), rule.text, position(rule.place))
    }

    fn allocated(&self, plan: &Plan) -> Option<String> {
        let (share, by) = self.share?;
        let law = say::enforce(plan.node(self.node).enforce);
        let limiter = match by {
            0 => format!("link {}", plan.name),
            by => plan.node(by).path.to_string(),
        };
        Some(format!("allocate  by {law}, without a queue: {share} now, limited by {limiter}"))
    }

    /// The guarantees on the way that are not whole when all beside them are asked for too.
    fn scaled(&self, plan: &Plan) -> Vec<String> {
        let found = scaled(plan, self.node, self.line, self.way);
        let is_guaranteed = |(_, scaled): &&(_, Scaled)| scaled.rate > Rate::ZERO;
        let words = |(node, Scaled { rate, factor }): &(NodeId, Scaled)| {
            let path = &plan.node(*node).path;
            format!(
                "          {path}: {rate} of its guarantee while all its siblings have traffic, \
                 scaled by 0.{factor:03}"
            )
        };
        found.iter().filter(is_guaranteed).map(words).collect()
    }

    fn waits(&self, plan: &Plan, words: &[(&str, String)]) -> String {
        let node = plan.node(self.node);
        let mut text = match &node.kind {
            NodeKind::Each(each) => {
                let shares = shares(&each.shares[self.way]);
                format!("a leaf of its own: {shares}")
            }
            NodeKind::Leaf | NodeKind::Interior => limit(plan, node, self.way),
        };
        for (word, value) in words {
            let _ = write!(text, ", {word} {value}");
        }
        match self.ahead {
            0 => text,
            frames => format!("{text}; {frames} frames are queued before it"),
        }
    }
}

fn limit(plan: &Plan, node: &Node, way: Way) -> String {
    let said = &node.shares[way];
    if node.depth == 0 {
        return format!("/ (link {}): {}", plan.name, said.rate);
    }
    let priority = say::priority(node.priority);
    format!("{}: {}, priority {priority}", node.path, shares(said))
}

fn shares(shares: &weir_policy::plan::Shares) -> String {
    format!("guaranteed {}, ceiling {}", shares.rate, shares.ceil)
}
