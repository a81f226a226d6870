//! Levels on the way of a packet, who is limited by whom, and the sweep.

use super::child::{KEPT, SATISFIED, WANTING};
use super::*;

fn standing(weir: &Weir, leaf: u32) -> u32 {
    weir.leaves[leaf as usize].child.flags.standing()
}

#[test]
fn a_packet_is_told_who_limits_it() {
    let mut nodes = branches();
    let by = |nodes: &[Node], leaves: &[(u32, u64)]| {
        let mut weir = made(nodes, Options::SHORT);
        let (_, fates) = send(&mut weir, MS, 30, leaves);
        let limited = weir.limited(leaves[0].0).1;
        let drop = fates.iter().find_map(|&fate| match fate {
            Fate::Drop { by } => Some(by),
            _ => None,
        });
        (limited, drop)
    };
    // the level of the branch that is full, of the link where it has no branch of its own
    let (link, branch) = (Place::Inner(0), Place::Inner(1));
    assert_eq!(by(&nodes, &[(0, 5), (1, 5), (2, 5)]), (branch, Some(branch)));
    let plain = [nodes[0], Node::leaf(0, 1), Node::leaf(0, 1)];
    assert_eq!(by(&plain, &[(0, 5), (1, 5)]), (link, Some(link)));
    // the peak of its branch, then the level there
    nodes[1].peak = mbit(100);
    assert_eq!(by(&nodes, &[(0, 20)]), (branch, Some(branch)));
    assert_eq!(by(&nodes, &[(0, 20), (1, 20)]), (branch, Some(branch)));
    // its own peak
    nodes[3].peak = mbit(50);
    let own = Place::Leaf(0);
    assert_eq!(by(&nodes, &[(0, 20)]), (own, Some(own)));
    assert_eq!(by(&nodes, &[(0, 20), (2, 5), (3, 5)]).0, own);
    // nobody
    nodes[1].peak = Rate::MAX;
    nodes[3].peak = Rate::MAX;
    assert_eq!(by(&nodes, &[(0, 20)]), (link, None));
}

#[test]
fn a_node_that_hands_on_all_it_has_limits_nobody() {
    // the link limits the first branch to half, and that one leaf there wants less
    let mut weir = made(&branches(), Options::SHORT);
    send(&mut weir, MS, 30, &[(0, 100), (2, 5), (3, 5)]);
    assert_eq!(weir.limited(0).1, Place::Inner(0));
    assert_eq!(weir.descend(0, Behind::default()).by, Place::Inner(0));
    assert!(is_near(shares(&weir, [0, 2, 3]), [920, 460, 460]), "{:?}", shares(&weir, [0, 2, 3]));
}

#[test]
fn a_packet_looks_how_its_leaf_stands_before_it_moves_the_level() {
    let mut weir = flat(2, Options::TCP);
    // 8 Mbit/s, and 8 Gbit/s
    for (now, leaf) in [(MS, 0), (2 * MS, 0), (2 * MS, 1), (2 * MS + 1_000, 1)] {
        weir.arrive(now, leaf, 1_000);
    }
    let small = weir.leaves[0].demand();
    assert_eq!(small, (1_000 << 33) / MS);
    let none = Behind::default();
    weir.descend(1, none);
    weir.descend(1, none);
    assert_eq!([0, 1].map(|leaf| standing(&weir, leaf)), [WANTING, WANTING]);
    // it wants less than half of the link: the other has all that it leaves, with its next packet
    weir.descend(0, none);
    assert_eq!([0, 1].map(|leaf| standing(&weir, leaf)), [SATISFIED, WANTING]);
    let rest = GBIT + GBIT / 256 - small;
    assert!(rest.abs_diff(weir.descend(1, none).share) <= rest >> 25);
    weir.audit().expect("the sums are what follows");
}

#[test]
fn a_branch_that_may_have_nothing_goes_when_its_leaves_are_silent() {
    let mut nodes = branches();
    nodes[1].peak = Rate::ZERO;
    let mut weir = made(&nodes, Options::TCP);
    weir.packet(at(MS), 0, 1_000);
    weir.audit().expect("the sums are what follows");
    assert_eq!(weir.inner[0].sums.weight, 1);
    weir.sweep(at(2_000 * MS), 4);
    weir.audit().expect("the sums are what follows");
    assert_eq!(weir.inner[0].sums.weight, 0);
}

#[test]
fn a_sweep_goes_round_the_leaves_of_a_large_node_one_by_one() {
    let count = 40_000;
    let mut weir = flat(count as usize, Options::TCP);
    for leaf in 0..count {
        weir.arrive(MS, leaf, 1_000);
    }
    weir.sweep(at(MS), 2 * count);
    assert_eq!(weir.inner[0].sums.weight, count);
    // all of them have sent one packet long ago
    weir.sweep(at(2_000 * MS), count - 1);
    assert_eq!(weir.inner[0].sums.weight, 1);
    weir.sweep(at(2_000 * MS), 1);
    assert_eq!(weir.inner[0].sums.weight, 0);
}

#[test]
fn a_sweep_goes_first_below_branches_then_to_leaves_and_looks_at_one_child_of_each() {
    let leaf = |parent| Node::leaf(parent, 1);
    let inner = Node::inner(0, 1);
    let nodes =
        [Node::link(mbit(1_000)), inner, inner, leaf(0), leaf(0), leaf(1), leaf(1), leaf(2)];
    let mut weir = made(&nodes, Options::TCP);
    (0..5).for_each(|leaf| weir.arrive(MS, leaf, 1_000));
    let mut left = || {
        weir.sweep(at(2_000 * MS), 1);
        weir.audit().expect("the sums are what follows");
        let is_left = |leaf: &u32| weir.leaves[*leaf as usize].child.flags.has(Flags::ACTIVE);
        (0..5).filter(is_left).collect::<Vec<_>>()
    };
    // leaves of the link are 0 and 1, of the branches 2 and 3, and 4
    assert_eq!(left(), [0, 1, 3, 4]);
    assert_eq!(left(), [0, 1, 3]);
    assert_eq!(left(), [1, 3]);
    assert_eq!(left(), [3]);
    assert_eq!(left(), []);
}

/// Branches as at a finite level, which has found that all leaves and the first branch want more.
fn finite(level: u64) -> Weir {
    let mut weir = made(&branches(), Options::TCP);
    for leaf in 0..4 {
        weir.arrive(MS, leaf, 1_000);
        weir.arrive(2 * MS, leaf, 1_000);
    }
    for node in &mut weir.inner {
        node.sums.level = Packed::new(level << 16);
    }
    weir
}

#[test]
fn a_sweep_looks_how_others_stand() {
    // each leaf wants 8 Mbit/s and each branch 16, and a weight of one has 160
    let mut weir = finite(GBIT * 16 / 100);
    assert_eq!((weir.inner[0].sums.wanting, weir.inner[1].sums.wanting), (2, 2));
    weir.sweep(at(2 * MS), 4);
    weir.audit().expect("the sums are what follows");
    assert_eq!([0, 1, 2].map(|node| weir.inner[node].sums.wanting), [0; 3]);
    assert_eq!([1, 2].map(|node: usize| weir.inner[node].child.flags.standing()), [SATISFIED; 2]);
    // and back: what a weight of one has is now less than either wants
    weir.inner.iter_mut().for_each(|node| node.sums.level = Packed::new(GBIT << 8));
    weir.sweep(at(2 * MS), 4);
    weir.audit().expect("the sums are what follows");
    assert_eq!([0, 1, 2].map(|node| weir.inner[node].sums.wanting), [2; 3]);
}

#[test]
fn who_wanted_more_is_not_looked_at_while_nothing_is_limited() {
    // so the level is right at once when something is again, and need not be found anew
    let mut weir = finite(0);
    weir.inner.iter_mut().for_each(|node| node.sums.level = Packed::INFINITE);
    weir.sweep(at(2 * MS), 8);
    assert_eq!([0, 1, 2].map(|node| weir.inner[node].sums.wanting), [2; 3]);
}

#[test]
fn a_guarantee_above_the_part_is_kept() {
    let kept = Node { floor: mbit(600), ..Node::leaf(0, 1) };
    let mut weir = made(&[Node::link(mbit(1_000)), kept, Node::leaf(0, 1)], Options::SHORT);
    send(&mut weir, MS, 30, &[(0, 5), (1, 5)]);
    assert_eq!([0, 1].map(|leaf| standing(&weir, leaf)), [KEPT, WANTING]);
    assert!(is_near(shares(&weir, [0, 1]), [600, 400]));
}
