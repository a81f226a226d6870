//! A tree that goes on where another is.

use super::child::{SATISFIED, WANTING};
use super::*;

/// Two branches on 10 Mbit/s: one has a leaf that wants little, the other has two that want more,
/// and one that is silent. And when the last packet came.
fn old() -> (Vec<Node>, Weir) {
    let mut nodes = branches().to_vec();
    nodes[0].peak = mbit(10);
    nodes.push(Node::leaf(2, 1));
    let mut weir = made(&nodes, Options::SHORT);
    send(&mut weir, MS, 400, &[(0, 8_000), (2, 500), (3, 800)]);
    (nodes, weir)
}

fn all(weir: &Weir) -> Vec<(Place, Place)> {
    let inner = (0..weir.inner.len()).map(|at| Place::Inner(number(at)));
    let leaves = (0..weir.leaves()).map(Place::Leaf);
    inner.chain(leaves).map(|place| (place, place)).collect()
}

#[test]
fn the_queue_and_what_is_sized_by_the_longest_packet_go_on() {
    let (nodes, old) = old();
    let mut new = made(&nodes, Options::SHORT);
    new.take_over(&old, &[]);
    assert!(old.queue > 0 && old.longest == 1_000);
    assert_eq!((new.queue, new.last, new.longest), (old.queue, old.last, old.longest));
    // sixteen packets are more than 200 us of 10 Mbit/s
    assert_eq!((bytes(new.gate.rest), bytes(new.gate.long)), (8_000, 16_000));
}

#[test]
fn levels_standings_and_shares_are_as_they_were() {
    let (nodes, old) = old();
    let mut new = made(&nodes, Options::SHORT);
    new.take_over(&old, &all(&old));
    new.audit().expect("the sums are what follows");
    let standing = |weir: &Weir, at: usize| weir.leaves[at].child.flags.standing();
    assert_eq!([2, 3].map(|leaf| standing(&new, leaf)), [WANTING; 2]);
    assert_eq!([1, 2].map(|at: usize| new.inner[at].child.flags.standing()), [SATISFIED, WANTING]);
    for (new, old) in new.inner.iter().zip(&old.inner) {
        assert_eq!(new.sums.level, old.sums.level);
        let sums = |node: &Inner| (node.sums.fixed, node.sums.demand, node.sums.wanting);
        assert_eq!(sums(new), sums(old));
    }
    for leaf in 0..4 {
        assert_eq!(new.limited(leaf), old.limited(leaf));
        assert_eq!(new.demand(leaf), old.demand(leaf));
        let credit = |weir: &Weir| weir.leaves[leaf as usize].credit;
        assert_eq!(credit(&new), credit(&old));
    }
    // the small leaf is alone in its branch, which is not limited
    assert!(new.limited(0).0 > new.demand(0));
}
