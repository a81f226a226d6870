//! Branches of a policy that have no queues of their own: each frame passes by the share of its
//! leaf, or is dropped. What passes goes through one plain queue of the branch, so that the tree
//! paces it and accounts for it as for any other leaf.

use std::collections::BTreeMap;

use weir_packet::Label;
use weir_share::{Behind, Fate, Flows, Hsdba, Options, Place, Places, Weir, Who, hsdba};
use weir_units::{Bytes, Instant, Rate};

use crate::lower::{Among, Held, LAWS, Law, Spec, Tree};

/// The allocators of one port.
#[derive(Debug, Default)]
pub(crate) struct Enforcer {
    /// By the law.
    allocators: [Option<Allocator>; 2],
    /// By the number of the leaf; empty where nobody is enforced.
    seats: Box<[Seat]>,
    /// The leaves that hold the frames of branches; sorted.
    queues: Box<[u32]>,
    /// The nodes of the allocators, by number; sorted.
    nodes: Box<[Limited]>,
    /// What the flows of a leaf have had.
    flows: Flows,
    /// The last frame that was judged is to be marked.
    has_marked: bool,
}

#[derive(Debug)]
enum Allocator {
    Weir(Box<Weir>),
    Hsdba(Box<Hsdba>),
}

/// A node of an allocator.
#[derive(Clone, Copy, Debug)]
struct Limited {
    number: u32,
    law: Law,
    place: Place,
    /// What its policy lets it have.
    peak: Rate,
}

/// What is known of a leaf.
#[derive(Clone, Copy, Debug)]
struct Seat {
    /// Its place in the tree of each law.
    places: [u32; 2],
    /// Whose queue its frames join; `NONE`: its own.
    queue: u32,
    law: Law,
    /// How many levels below the link that one is.
    level: u8,
    ecn: bool,
    among: Among,
}

const NONE: u32 = u32::MAX;
const NOBODY: Seat = Seat {
    places: [NONE; 2],
    queue: NONE,
    law: Law::Weir,
    level: 0,
    ecn: false,
    among: Among::Frames,
};

/// What makes the enforcer of one spec out of that of another.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    rate: Rate,
    /// Nothing where it stays as it is.
    new: Option<Enforcer>,
    /// Which node of the old tree is which of the new, by the law.
    kept: [Vec<(Place, Place)>; 2],
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// It joins the queue of this leaf.
    Queue(u32),
    /// The same, and it says that there is too much.
    Mark(u32),
    Drop,
}

/// What is known of the share of a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) rate: Rate,
    pub(crate) law: Law,
    /// The place of the node that limits it, among those of [`Spec`].
    pub(crate) by: Place,
}

impl Enforcer {
    /// Whether nobody is enforced.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.seats.is_empty()
    }

    fn seat(&self, leaf: u32) -> &Seat {
        self.seats.get(leaf as usize).unwrap_or(&NOBODY)
    }

    /// The leaf of the tree that the frames of a leaf join.
    pub(crate) fn queue_of(&self, leaf: u32) -> u32 {
        match self.seat(leaf).queue {
            NONE => leaf,
            queue => queue,
        }
    }

    /// The leaf of a frame of which `told` is the one that classify says and `waits` the one that
    /// frames of its connection wait in: where both have one queue, none is overtaken.
    pub(crate) fn leaf_of(&self, told: u32, waits: u32) -> u32 {
        if self.queue_of(told) == self.queue_of(waits) { told } else { waits }
    }

    /// Judges a frame of which `cost` counts; `waiting` says how much waits in a leaf of the tree.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        label: &Label,
        cost: Bytes,
        waiting: impl Fn(u32) -> u32,
    ) -> Ruling {
        let seat = *self.seat(label.leaf);
        let len = u32::try_from(cost.get()).unwrap_or(u32::MAX);
        let mut ruling = Ruling::Queue(label.leaf);
        for ((allocator, leaf), law) in self.allocators.iter_mut().zip(seat.places).zip(LAWS) {
            let Some(allocator) = allocator.as_mut().filter(|_| leaf != NONE) else { continue };
            let is_held = seat.queue != NONE && seat.law == law;
            let behind = if is_held {
                let waiting = Bytes::new(u64::from(waiting(seat.queue)));
                let can_mark = seat.ecn && label.ecn() != 0;
                Behind { level: u32::from(seat.level), waiting, can_mark }
            } else {
                Behind::default()
            };
            let fate = match allocator {
                Allocator::Weir(weir) if is_held && seat.among != Among::Frames => {
                    let who = who(label, seat.among);
                    let flows = (&mut self.flows, who);
                    weir.packet_among(now, (leaf, label.leaf), len, behind, flows)
                }
                Allocator::Weir(weir) => weir.packet_before(now, leaf, len, behind),
                Allocator::Hsdba(hsdba) => hsdba.packet(now, leaf, len),
            };
            if is_held {
                ruling = match fate {
                    Fate::Pass => Ruling::Queue(seat.queue),
                    Fate::Mark => Ruling::Mark(seat.queue),
                    Fate::Drop { .. } => Ruling::Drop,
                };
            }
        }
        self.has_marked = matches!(ruling, Ruling::Mark(_));
        ruling
    }

    /// Whether the last frame that was judged is to be marked; never where nobody is enforced.
    pub(crate) fn has_marked(&self) -> bool {
        self.has_marked
    }

    /// What a leaf may send now; nothing is known of one that has queues.
    pub(crate) fn share(&self, leaf: u32) -> Option<Share> {
        let seat = self.seat(leaf);
        if seat.queue == NONE {
            return None;
        }
        let at = seat.law as usize;
        let (rate, by) = match self.allocators[at].as_ref()? {
            Allocator::Weir(weir) => weir.limited(seat.places[at]),
            Allocator::Hsdba(hsdba) => hsdba.limited(seat.places[at]),
        };
        Some(Share { rate, law: seat.law, by })
    }

    /// The link carries another rate from now on.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        for allocator in self.allocators.iter_mut().flatten() {
            match allocator {
                Allocator::Weir(weir) => weir.set_peak(Place::Inner(0), rate),
                Allocator::Hsdba(hsdba) => hsdba.set_capacity(rate),
            }
        }
    }

    /// From now on a node may have no more than this, nor more than its policy says. Whether there
    /// is such a node in an allocator that can limit it: HSDBA, as published, cannot.
    pub(crate) fn limit(&mut self, number: u32, rate: Rate) -> bool {
        let first = self.nodes.partition_point(|node| node.number < number);
        let of_it = self.nodes[first..].iter().take_while(|node| node.number == number);
        let mut obeys = false;
        for node in of_it {
            if let Some(Allocator::Weir(weir)) = &mut self.allocators[node.law as usize] {
                weir.set_peak(node.place, rate.min(node.peak));
                obeys = true;
            }
        }
        obeys
    }

    /// A leaf that was made for one is made for another from now on.
    pub(crate) fn begin_anew(&mut self, leaf: u32) {
        let places = self.seat(leaf).places;
        for (allocator, leaf) in self.allocators.iter_mut().zip(places) {
            match allocator {
                Some(Allocator::Weir(weir)) => weir.begin_anew(leaf),
                Some(Allocator::Hsdba(hsdba)) => hsdba.begin_anew(leaf),
                None => {}
            }
        }
    }

    /// Whether the frames of everything under the link wait in this leaf.
    pub(crate) fn is_queue_of_link(&self, leaf: u32) -> bool {
        let seat = self.seat(leaf);
        (seat.queue, seat.level) == (leaf, 0)
    }

    /// The leaves that hold the frames of branches.
    pub(crate) fn queues(&self) -> &[u32] {
        &self.queues
    }

    /// Puts an edit into effect; what was replaced stays in it.
    pub(crate) fn apply(&mut self, edit: &mut Edit) {
        if let Some(new) = &mut edit.new {
            for ((new, old), kept) in
                new.allocators.iter_mut().zip(&self.allocators).zip(&edit.kept)
            {
                match (new, old) {
                    (Some(Allocator::Weir(new)), Some(Allocator::Weir(old))) => {
                        new.take_over(old, kept);
                    }
                    (Some(Allocator::Hsdba(new)), Some(Allocator::Hsdba(old))) => {
                        new.take_over(old, kept);
                    }
                    _ => {}
                }
            }
            new.flows.take_over(&mut self.flows);
            std::mem::swap(self, new);
        }
        self.set_rate(edit.rate);
    }
}

impl Edit {
    /// Whether there is another enforcer then.
    pub(crate) const fn is_another(&self) -> bool {
        self.new.is_some()
    }

    /// The leaf of the tree that the frames of a leaf join from now on; `old`: until now.
    pub(crate) fn queue_of(&self, old: &Enforcer, leaf: u32) -> u32 {
        self.new.as_ref().unwrap_or(old).queue_of(leaf)
    }

    pub(crate) fn between(old: &Spec, new: &Spec) -> Edit {
        let mut edit = Edit { rate: new.rate, ..Edit::default() };
        if old.trees == new.trees && old.seats == new.seats {
            return edit;
        }
        let mut enforcer = Enforcer::default();
        // each tree that has nodes knows all leaves
        let last = new.trees.iter().find_map(|tree| tree.leaves.last());
        let mut seats = vec![NOBODY; last.map_or(0, |(number, _)| *number as usize + 1)];
        let mut nodes: Vec<Limited> = Vec::new();
        for (at, law) in LAWS.into_iter().enumerate() {
            let (tree, before) = (&new.trees[at], &old.trees[at]);
            let Some((allocator, places)) = made(law, tree) else { continue };
            enforcer.allocators[at] = Some(allocator);
            let all = tree.numbers.iter().zip(&tree.nodes).zip(places.iter()).skip(1);
            nodes.extend(all.map(|((&number, node), place)| Limited {
                number,
                law,
                place,
                peak: node.peak,
            }));
            for &(number, node) in &tree.leaves {
                seats[number as usize].places[at] = places.leaf(node).unwrap_or(NONE);
            }
            if let Ok(old_places) = Places::new(&before.nodes) {
                edit.kept[at] = kept(before, &old_places, tree, &places);
            }
        }
        for &(number, Held { law, queue, level, ecn, among }) in &new.seats {
            if let Some(seat) = seats.get_mut(number as usize) {
                *seat = Seat { law, queue, level, ecn, among, ..*seat };
            }
        }
        let mut queues: Vec<u32> = new.seats.iter().map(|(_, held)| held.queue).collect();
        queues.sort_unstable();
        queues.dedup();
        if new.seats.iter().any(|(_, held)| held.among != Among::Frames) {
            enforcer.flows = Flows::new(u32::try_from(seats.len()).unwrap_or(u32::MAX));
        }
        nodes.sort_by_key(|node| node.number);
        enforcer.nodes = nodes.into();
        (enforcer.seats, enforcer.queues) = (seats.into(), queues.into());
        edit.new = Some(enforcer);
        edit
    }
}

/// Whose a frame is in its leaf. Both the place of a flow and the number of a host come of a keyed
/// hash, so nobody can choose to share with another.
fn who(label: &Label, among: Among) -> Who {
    let host = (among == Among::Hosts).then_some(label.turns_with());
    // frames of no connection that is known are one flow of their host
    let flow = if label.flow.is_none() { label.turns_with() | 1 << 31 } else { label.flow.index };
    Who { flow, host }
}

/// The allocator of a tree; none for one without nodes. A plan is never larger than a tree may be.
fn made(law: Law, tree: &Tree) -> Option<(Allocator, Places)> {
    match law {
        Law::Weir => {
            let (weir, places) = Weir::new(&tree.nodes, Options::TCP).ok()?;
            Some((Allocator::Weir(Box::new(weir)), places))
        }
        Law::Hsdba => {
            // each packet looks at one other leaf: polling all costs more, the more there are
            let silence = hsdba::Silence::Sweep;
            let options = hsdba::Options { silence, ..hsdba::Options::default() };
            let (hsdba, places) = Hsdba::new(&tree.nodes, options).ok()?;
            Some((Allocator::Hsdba(Box::new(hsdba)), places))
        }
    }
}

/// The number of the node that limits a share, by what its allocator was told.
pub(crate) fn limiter(spec: &Spec, share: &Share) -> Option<u32> {
    let tree = &spec.trees[share.law as usize];
    let places = Places::new(&tree.nodes).ok()?;
    let at = places.iter().position(|place| place == share.by)?;
    tree.numbers.get(at).copied()
}

/// Nodes that are in both trees, by their numbers in the engine.
fn kept(old: &Tree, old_places: &Places, new: &Tree, places: &Places) -> Vec<(Place, Place)> {
    let before: BTreeMap<u32, Place> = old.numbers.iter().copied().zip(old_places.iter()).collect();
    let both = new.numbers.iter().zip(places.iter());
    both.filter_map(|(number, to)| Some((*before.get(number)?, to))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::{Flow, Headers, Side};
    use weir_share::Node;

    const MBIT_100: Rate = Rate::from_bps(100_000_000);

    /// A link with so many leaves under our law, all of which join one of two queues in turns.
    fn spec(count: u32, among: Among) -> Spec {
        let leaves = (0..count).map(|at| (at + 1, at + 1)).collect();
        let mut nodes = vec![Node::link(MBIT_100)];
        nodes.extend((0..count).map(|_| Node::leaf(0, 1)));
        let ours = Tree { nodes, numbers: (0..=count).collect(), leaves };
        let seat = |at: u32| {
            let queue = 20 - at % 2;
            (at + 1, Held { law: Law::Weir, queue, level: 1, ecn: false, among })
        };
        Spec {
            rate: MBIT_100,
            trees: [ours, Tree::default()],
            seats: (0..count).map(seat).collect(),
        }
    }

    #[test]
    fn only_another_policy_makes_another_enforcer() {
        let (old, mut new) = (spec(4, Among::Frames), spec(4, Among::Frames));
        new.rate = Rate::from_bps(50_000_000);
        assert!(Edit::between(&old, &new).new.is_none());
        new.seats[2].1.ecn = true;
        assert!(Edit::between(&old, &new).new.is_some());
        new = spec(4, Among::Frames);
        new.trees[0].nodes[3].weight = 2;
        assert!(Edit::between(&old, &new).new.is_some());
    }

    #[test]
    fn each_queue_is_there_once() {
        let edit = Edit::between(&Spec::default(), &spec(5, Among::Frames));
        assert_eq!(edit.new.unwrap().queues(), [19, 20]);
    }

    #[test]
    fn flows_are_known_only_where_they_share() {
        for (among, is_known) in [(Among::Frames, false), (Among::Flows, true)] {
            let edit = Edit::between(&Spec::default(), &spec(2, among));
            assert_eq!(edit.new.unwrap().flows.is_empty(), !is_known, "{among:?}");
        }
        // one leaf is enough
        let mut new = spec(2, Among::Frames);
        new.seats[1].1.among = Among::Flows;
        assert!(!Edit::between(&Spec::default(), &new).new.unwrap().flows.is_empty());
    }

    #[test]
    fn frames_of_no_connection_are_no_other_hosts_connection() {
        let frame = Label::new(Side::Lan, &Headers::EMPTY);
        let label = |flow, host| Label { flow, host, ..frame };
        let flow = |index| Flow { index, generation: 0 };
        let none = who(&label(Flow::NONE, 7), Among::Hosts);
        assert_eq!(none.host, Some(7));
        assert_ne!(none.flow, who(&label(flow(7), 7), Among::Hosts).flow);
        assert_ne!(none.flow, who(&label(Flow::NONE, 8), Among::Hosts).flow);
    }

    /// How many of a hundred frames pass of a flow that sends 100 Mbit/s, and of one that sends 50
    /// in the same leaf, on a link of 100.
    fn passed(among: Among) -> [u32; 2] {
        let edit = Edit::between(&Spec::default(), &spec(1, among));
        let mut enforcer = edit.new.unwrap();
        let frame = Label { leaf: 1, host: 7, ..Label::new(Side::Lan, &Headers::EMPTY) };
        let (mut passed, mut sent, mut draw) = ([0, 0], [0, 0], 1_u64);
        for step in 0..40_000_u64 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = u32::from((draw >> 33) % 3 == 0);
            let label = Label { flow: Flow { index, generation: 0 }, ..frame };
            // a thousand bytes each 53.3 us are 150 Mbit/s
            let now = Instant::from_ns(step * 53_333);
            let ruling = enforcer.judge(now, &label, Bytes::new(1_000), |_| 0);
            if step >= 20_000 {
                sent[index as usize] += 1;
                passed[index as usize] += u32::from(ruling == Ruling::Queue(20));
            }
        }
        [0, 1].map(|flow| passed[flow] * 100 / sent[flow])
    }

    #[test]
    fn flows_of_a_leaf_have_the_same_where_they_share_and_lose_alike_where_they_do_not() {
        let [more, less] = passed(Among::Flows);
        assert!((45..55).contains(&more) && less >= 97, "{more} and {less}");
        let [more, less] = passed(Among::Frames);
        assert!((62..71).contains(&more) && (62..71).contains(&less), "{more} and {less}");
    }
}
