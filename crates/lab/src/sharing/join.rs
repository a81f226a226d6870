//! How a node joins with its first packet, has its weight changed and goes again, under load: in
//! packets, since an allocator that packets drive has no other clock. And Newton's method by hand.

use weir_share::{Law, Node, Place, Weir};
use weir_units::Instant;

use super::traffic::{Load, send, wanted};
use super::{Enforce, Numbers, Sharing, bits, whole};

/// A share is right within a twentieth.
const BAND: f64 = 0.05;

/// Three children that want 10, 20 and 30 of 50.
pub(super) fn example() -> Numbers {
    let demands = [10.0, 20.0, 30.0];
    let mut level = 0.0;
    let mut shown = Numbers::new();
    for step in 1..=3 {
        let satisfied = || demands.iter().filter(|demand| **demand <= level);
        let wanting = whole((demands.len() - satisfied().count()) as u64);
        level = (50.0 - satisfied().sum::<f64>()) / f64::max(wanting, 1.0);
        shown.push((format!("alpha.{step}"), level));
    }
    shown
}

/// The last load joins at a third of the run; at half of it the first gets three times its weight;
/// at two thirds the newcomer is removed.
pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Numbers {
    let Enforce::Law(Law::Weir(options)) = enforce else { return Vec::new() };
    let mut nodes = sharing.nodes.clone();
    let Some((last, others)) = sharing.loads.split_last() else { return Vec::new() };
    nodes[last.node as usize].is_spare = true;
    let Ok((mut weir, places)) = Weir::new(&nodes, options) else { return Vec::new() };
    let Place::Inner(parent) = places.of(nodes[last.node as usize].parent) else {
        return Vec::new();
    };
    let run = sharing.run.ns();
    let (joins, changes, goes) = (run / 3, run / 2, run / 3 * 2);
    let newcomer = Load { times: (joins, run), ..last.clone() };
    let loads: Vec<Load> = others.iter().cloned().chain([newcomer]).collect();
    let first = others.first().map_or(0, |load| load.node);
    let mut state = State::default();
    send(&loads, sharing.bytes, seed, |now, at, _| {
        let time = Instant::from_ns(now);
        let is_new = at + 1 == loads.len();
        if now >= changes && !state.is_changed {
            state.is_changed = true;
            nodes[first as usize].weight *= 3;
            weir.set_weight(places.of(first), nodes[first as usize].weight);
        }
        if now >= goes && !state.is_gone {
            state.is_gone = true;
            if let Some(leaf) = state.leaf.take() {
                weir.remove(Place::Leaf(leaf));
            }
        }
        if is_new && state.leaf.is_none() && !state.is_gone {
            state.leaf = weir.join(time, parent, false);
        }
        let leaf = if is_new { state.leaf } else { places.leaf(loads[at].node) };
        let Some(leaf) = leaf else { return };
        let passes = weir.packet(time, leaf, sharing.bytes).passes();
        let is_satisfied = loads[at].rate < 0.5 * share_of(&nodes, &loads, at, now);
        state.lost += u32::from(!passes && is_satisfied);
        let among = if state.is_gone { others } else { &loads };
        let wanted = wanted(&nodes, among, now);
        let is_right = among.iter().zip(&wanted).enumerate().all(|(other, (load, exact))| {
            let leaf = if other + 1 == loads.len() { state.leaf } else { places.leaf(load.node) };
            let share = leaf.map_or(0.0, |leaf| bits(weir.share(leaf)));
            share >= (1.0 - BAND) * exact
                && (*exact >= 0.999 * load.rate || share <= (1.0 + BAND) * exact)
        });
        state.count(is_new, is_right);
    });
    vec![
        ("join_packets".to_owned(), f64::from(state.join_packets)),
        ("update_packets".to_owned(), f64::from(state.update_packets)),
        ("remove_packets".to_owned(), f64::from(state.remove_packets)),
        ("lost".to_owned(), f64::from(state.lost)),
    ]
}

#[derive(Default)]
struct State {
    leaf: Option<u32>,
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
        if at == 0 && self.leaf.is_none() || self.is_done[at] {
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
