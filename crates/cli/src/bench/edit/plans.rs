//! The large policy of `weir bench edit`, and the edits of it. They are made in the plan itself:
//! reading a hundred thousand rows again for each would take the most of the time.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use weir_policy::plan::{Node, NodeId, Target};
use weir_policy::{Plan, Source, read};
use weir_units::Rate;

/// Edits that take turns.
#[derive(Clone, Copy)]
pub(super) enum Edit {
    Weight,
    Rate,
    Ceiling,
    Add,
    Remove,
    Move,
}

pub(super) const KINDS: [Edit; 6] =
    [Edit::Weight, Edit::Rate, Edit::Ceiling, Edit::Add, Edit::Remove, Edit::Move];

impl Edit {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Edit::Weight => "weight_us",
            Edit::Rate => "rate_us",
            Edit::Ceiling => "ceiling_us",
            Edit::Add => "add_us",
            Edit::Remove => "remove_us",
            Edit::Move => "move_us",
        }
    }
}

/// Children of a class where there are many classes.
const EACH: u32 = 100;
/// Whose frames the class has that is removed.
pub(super) const BULK: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
const CLASS: &str = "/bulk";

/// The address of a child.
pub(super) fn address(child: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + child)
}

/// The policy as it is, and with and without the class that is removed.
pub(super) struct Plans {
    plan: Plan,
    /// What the class was.
    bulk: Option<Node>,
    /// Who is asked for it.
    asked: Option<usize>,
    /// The first child, and how many there were at first.
    first: NodeId,
    children: u32,
    /// Children added so far.
    added: u32,
}

impl Plans {
    pub(super) fn new(children: u32, is_isp: bool) -> Result<Plans, String> {
        let groups = if is_isp { children.div_ceil(EACH) } else { 1 };
        let mut text = format!(
            "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10gbit\"\nup = \"10gbit\"\n\
             [class.\"{CLASS}\"]\nmatch = \"lan {BULK}\"\nlimit = \"2000000 frames\"\n\
             [subscribers]\nfile = \"s\"\nunder = \"/sites\"\n[class.\"/sites\"]\n"
        );
        for group in 0..groups {
            let _ = writeln!(text, "[class.\"/sites/g{group}\"]");
        }
        let mut rows = "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n".to_owned();
        for child in 0..children {
            let (group, address) = (child % groups, address(child));
            let _ = writeln!(rows, "s{child},S,g{group},{address},10kbit,5gbit,10kbit,5gbit");
        }
        let mut load = |name: &str| Ok(Source::new(name, rows.as_str()));
        let reading = read(Source::new("bench", text), &mut load)
            .map_err(|why| format!("the policy of the benchmark cannot be read: {why:?}"))?;
        if let Some(problem) = reading.problems.first().filter(|_| reading.is_at_fault()) {
            return Err(format!("the policy of the benchmark is at fault: {problem:?}"));
        }
        let plan = reading.plans.into_iter().next().ok_or("no link")?;
        let first = plan.subscribers.iter().map(|(_, leaf)| *leaf).min().ok_or("nobody")?;
        Ok(Plans { plan, bulk: None, asked: None, first, children, added: 0 })
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// One edit, of another child each time.
    pub(super) fn change(&mut self, kind: Edit, time: usize) {
        let at = self.child(time);
        let told = u64::try_from(time).unwrap_or(0) % 50;
        let node = &mut self.plan.nodes[at];
        let both = [&mut node.shares.down, &mut node.shares.up];
        match kind {
            Edit::Weight => both.into_iter().for_each(|shares| shares.weight += 1 + told),
            Edit::Rate => {
                both.into_iter()
                    .for_each(|shares| shares.rate = Rate::from_bps(10_000 + told * 64));
            }
            Edit::Ceiling => {
                let ceil = Rate::from_bps(1_000_000_000 - told * 1_000_000);
                both.into_iter().for_each(|shares| shares.ceil = ceil);
            }
            Edit::Add => self.add(at),
            Edit::Remove => self.cut(at),
            Edit::Move => self.moves(at),
        }
    }

    /// The place of some child that has been there from the start.
    fn child(&self, time: usize) -> usize {
        let least = self.children as usize / 2;
        self.first as usize + time * 7_919 % least
    }

    fn add(&mut self, like: usize) {
        self.added += 1;
        let added = self.added;
        let mut node = self.plan.nodes[like].clone();
        node.path = format!("{}-{added}", node.path).into();
        let address = Ipv4Addr::from_bits(0x0b00_0000 + added);
        let block = format!("{address}/32").parse().expect("a block");
        let id = NodeId::try_from(self.plan.nodes.len()).unwrap_or(0);
        self.plan.nodes.push(node);
        self.plan.subscribers.push((block, id));
    }

    /// A child goes; those behind it have another place in the plan from now on.
    fn cut(&mut self, at: usize) {
        let gone = NodeId::try_from(at).unwrap_or(0);
        self.plan.nodes.remove(at);
        let close = |id: &mut NodeId| *id -= NodeId::from(*id > gone);
        self.plan.nodes.iter_mut().for_each(|node| close(&mut node.parent));
        self.plan.subscribers.retain(|(_, leaf)| *leaf != gone);
        self.plan.subscribers.iter_mut().for_each(|(_, leaf)| close(leaf));
        self.each_asked(close);
        close(&mut self.plan.rest);
        close(&mut self.first);
    }

    fn each_asked(&mut self, mut change: impl FnMut(&mut NodeId)) {
        for asked in &mut self.plan.asked {
            change(&mut asked.node);
            match &mut asked.target {
                Target::Leaf(id) | Target::Each(id) => change(id),
                Target::Subscriber => {}
            }
        }
    }

    /// A child goes to the class above its own, which comes before both.
    fn moves(&mut self, at: usize) {
        let above = self.plan.nodes[self.plan.nodes[at].parent as usize].parent;
        self.plan.nodes[at].parent = above;
    }

    /// The class goes whose frames are many; what was its own is nobody's.
    pub(super) fn remove_bulk(&mut self) {
        let Some(id) = self.plan.find(CLASS) else { return };
        let rest = self.plan.rest;
        self.asked = self.plan.asked.iter().position(|asked| asked.node == id);
        self.point_to(rest);
        self.bulk = Some(self.plan.nodes[id as usize].clone());
        self.cut(id as usize);
    }

    /// And comes back, as the last of all.
    pub(super) fn add_bulk(&mut self) {
        let Some(node) = self.bulk.take() else { return };
        let id = NodeId::try_from(self.plan.nodes.len()).unwrap_or(0);
        self.plan.nodes.push(node);
        self.point_to(id);
    }

    fn point_to(&mut self, leaf: NodeId) {
        if let Some(asked) = self.asked.and_then(|at| self.plan.asked.get_mut(at)) {
            (asked.node, asked.target) = (leaf, Target::Leaf(leaf));
        }
    }
}
