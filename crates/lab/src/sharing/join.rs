//! How a node joins with its first packet, has its weight changed and goes again, under load: in
//! packets, since an allocator that packets drive has no other clock. And Newton's method by hand.

use weir_share::{Hsdba, Law, Node, Place, Places, Weir, hsdba};
use weir_units::Instant;

use super::traffic::{Load, send, wanted};
use super::{Enforce, Numbers, Sharing, bits, fair, number, whole};

/// A share is right within a twentieth.
const BAND: f64 = 0.05;

/// The levels that the search for a level tries, for the children of the link, and what an
/// allocator then gives them when they send what they want.
pub(super) fn example(sharing: &Sharing, enforce: Enforce, seed: u64) -> Numbers {
    let Sharing { loads, .. } = sharing;
    let nodes = sharing.told.of(&sharing.nodes);
    let mut shown = Numbers::new();
    if let Enforce::Law(Law::Weir(_)) = enforce {
        let want = |load: &Load| (number(load.rate), nodes[load.node as usize].weight);
        let wants: Vec<(u64, u32)> = loads.iter().map(want).collect();
        let scale = f64::from(wants.iter().map(|(_, weight)| *weight).min().unwrap_or(1));
        let levels = weir_share::levels_tried(nodes[0].peak.bps(), &wants);
        let named = (1..).zip(levels);
        shown.extend(
            named.map(|(step, level)| (format!("alpha.{step}"), whole(level) * scale / 1e6)),
        );
    }
    let passed = fair::run(sharing, enforce, seed).numbers;
    shown.extend(passed.into_iter().filter(|(name, _)| name.starts_with("share.")));
    shown
}

/// The last load joins at a third of the run; at half of it the first gets three times its weight;
/// at two thirds the newcomer is removed. With HSDBA, which has an entry for it from the start, it
/// begins and ends, and no weight changes.
pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Numbers {
    let mut nodes = sharing.nodes.clone();
    let Some((last, others)) = sharing.loads.split_last() else { return Vec::new() };
    let Some(mut tree) = Tree::new(sharing, enforce, last.node, seed) else { return Vec::new() };
    let run = sharing.run.ns();
    let (joins, changes, goes) = (run / 3, run / 2, run / 3 * 2);
    let newcomer = Load { times: (joins, run), ..last.clone() };
    let loads: Vec<Load> = others.iter().cloned().chain([newcomer]).collect();
    let first = others.first().map_or(0, |load| load.node);
    let mut state = State::default();
    send(&loads, sharing.bytes, seed, |now, at, _| {
        let time = Instant::from_ns(now);
        let is_new = at + 1 == loads.len();
        if now >= changes && !state.is_changed && tree.changes_weights() {
            state.is_changed = true;
            nodes[first as usize].weight *= 3;
            tree.set_weight(first, sharing.told.of(&nodes)[first as usize].weight);
        }
        if now >= goes && !state.is_gone {
            state.is_gone = true;
            tree.remove();
        }
        if is_new && !state.is_gone {
            tree.join(time);
        }
        state.has_joined |= is_new;
        let Some(leaf) = tree.leaf(loads[at].node) else { return };
        if is_new && state.is_gone {
            return;
        }
        let passes = tree.packet(time, leaf, sharing.bytes);
        let is_satisfied = loads[at].rate < 0.5 * share_of(&nodes, &loads, at, now);
        state.lost += u32::from(!passes && is_satisfied);
        let among = if state.is_gone { others } else { &loads };
        let wanted = wanted(&nodes, among, now);
        let is_right = among.iter().zip(&wanted).all(|(load, exact)| {
            let share = tree.leaf(load.node).map_or(0.0, |leaf| tree.share(leaf));
            share >= (1.0 - BAND) * exact
                && (*exact >= 0.999 * load.rate || share <= (1.0 + BAND) * exact)
        });
        state.count(is_new, is_right);
    });
    let mut shown = vec![("join_packets".to_owned(), f64::from(state.join_packets))];
    if tree.changes_weights() {
        shown.push(("update_packets".to_owned(), f64::from(state.update_packets)));
    }
    shown.push(("remove_packets".to_owned(), f64::from(state.remove_packets)));
    shown.push(("lost".to_owned(), f64::from(state.lost)));
    shown
}

/// An allocator in which the last leaf comes and goes.
enum Tree {
    /// The parent of the newcomer, and its leaf once it has one.
    Weir(Box<Weir>, Places, (u32, u32), Option<u32>),
    Hsdba(Box<Hsdba>, Places),
}

impl Tree {
    fn new(sharing: &Sharing, enforce: Enforce, newcomer: u32, seed: u64) -> Option<Tree> {
        let mut nodes = sharing.told.of(&sharing.nodes);
        match enforce {
            Enforce::Law(Law::Weir(options)) => {
                nodes[newcomer as usize].is_spare = true;
                let (weir, places) = Weir::new(&nodes, options).ok()?;
                let parent = nodes[newcomer as usize].parent;
                let Place::Inner(parent) = places.of(parent) else { return None };
                Some(Tree::Weir(Box::new(weir), places, (newcomer, parent), None))
            }
            Enforce::Law(Law::Hsdba(options)) => {
                let options = hsdba::Options { seed, ..options };
                let (hsdba, places) = Hsdba::new(&nodes, options).ok()?;
                Some(Tree::Hsdba(Box::new(hsdba), places))
            }
            _ => None,
        }
    }

    fn changes_weights(&self) -> bool {
        matches!(self, Tree::Weir(..))
    }

    fn set_weight(&mut self, node: u32, weight: u32) {
        if let Tree::Weir(weir, places, ..) = self {
            weir.set_weight(places.of(node), weight);
        }
    }

    fn join(&mut self, now: Instant) {
        if let Tree::Weir(weir, _, (_, parent), leaf @ None) = self {
            *leaf = weir.join(now, *parent, false);
        }
    }

    fn remove(&mut self) {
        if let Tree::Weir(weir, .., leaf) = self
            && let Some(leaf) = leaf.take()
        {
            weir.remove(Place::Leaf(leaf));
        }
    }

    fn leaf(&self, node: u32) -> Option<u32> {
        match self {
            Tree::Weir(_, _, (newcomer, _), leaf) if node == *newcomer => *leaf,
            Tree::Weir(_, places, ..) | Tree::Hsdba(_, places) => places.leaf(node),
        }
    }

    fn packet(&mut self, now: Instant, leaf: u32, bytes: u32) -> bool {
        match self {
            Tree::Weir(weir, ..) => weir.packet(now, leaf, bytes).passes(),
            Tree::Hsdba(hsdba, _) => hsdba.packet(now, leaf, bytes).passes(),
        }
    }

    fn share(&self, leaf: u32) -> f64 {
        bits(match self {
            Tree::Weir(weir, ..) => weir.share(leaf),
            Tree::Hsdba(hsdba, _) => hsdba.share(leaf),
        })
    }
}

#[derive(Default)]
struct State {
    has_joined: bool,
    is_changed: bool,
    is_gone: bool,
    /// Which of the three waits no longer for right shares.
    is_done: [bool; 3],
    /// Of the newcomer; of all.
    join_packets: u32,
    update_packets: u32,
    remove_packets: u32,
    /// Packets of satisfied senders that did not pass.
    lost: u32,
}

impl State {
    fn count(&mut self, is_new: bool, is_right: bool) {
        let at = match (self.is_gone, self.is_changed) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        };
        if at == 0 && !self.has_joined || self.is_done[at] {
            return;
        }
        match at {
            0 => self.join_packets += u32::from(is_new),
            1 => self.update_packets += 1,
            _ => self.remove_packets += 1,
        }
        self.is_done[at] = is_right;
    }
}

/// What a sender would have if it wanted all.
fn share_of(nodes: &[Node], loads: &[Load], at: usize, now: u64) -> f64 {
    if loads[at].rate > 1e8 {
        return 0.0;
    }
    wanted(nodes, loads, now).get(at).map_or(0.0, |share| share * 2.5)
}
