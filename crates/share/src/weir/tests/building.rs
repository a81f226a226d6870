//! A tree as it is made: weights, sizes, depth.

use super::*;

#[test]
fn a_leaf_takes_64_bytes_and_a_node_with_children_128() {
    assert_eq!(made(&branches(), Options::TCP).bytes(), 4 * 64 + 3 * 128);
}

#[test]
fn weights_are_scaled_where_their_sum_could_be_too_large_and_only_there() {
    let leaves = |parent, count, weight| vec![Node::leaf(parent, weight); count];
    let nodes = [
        vec![Node::link(mbit(1_000)), Node::inner(0, 1), Node::inner(0, 1)],
        // with the two above 8 194 siblings: 2^32 - 1 over that is 524 159
        leaves(0, 1, 1 << 20),
        leaves(0, 8_191, 1 << 19),
        // 4 096 siblings: 1 048 575 each
        leaves(1, 4_096, 1_048_575),
        leaves(2, 1, 1 << 20),
        leaves(2, 1, 3),
    ];
    let weir = made(&nodes.concat(), Options::TCP);
    let weights: Vec<u32> = weir.leaves.iter().map(|leaf| leaf.child.weight).collect();
    // 2^20 / 2 is still too much, so all are a quarter of what was given
    assert_eq!(weights[0], 1 << 18);
    assert!(weights[1..8_192].iter().all(|&weight| weight == 1 << 17));
    assert_eq!((weir.inner[1].child.weight, weir.inner[2].child.weight), (1, 1));
    // what just fits stays as it is, and so does what has few siblings
    assert!(weights[8_192..12_288].iter().all(|&weight| weight == 1_048_575));
    assert_eq!(weights[12_288..], [1 << 20, 3]);
}

#[test]
fn of_n_siblings_each_may_have_a_weight_of_2_32_over_n() {
    let nodes = [
        vec![Node::link(mbit(1_000)), Node::inner(0, 1), Node::inner(0, 1), Node::inner(0, 1)],
        vec![Node::inner(2, 1); 3_000],
        vec![Node::leaf(0, 1); 6_000],
        vec![Node::leaf(2, 1); 3_000],
        vec![Node::leaf(3, 1); 5_000],
    ];
    let mut weir = made(&nodes.concat(), Options::TCP);
    let most = |place| weir.weight_most(place);
    // nodes with children first, then leaves: 3 + 6 000, 3 000 + 3 000 and 5 000 siblings
    let last = u32::MAX / 6_003;
    assert_eq!([Place::Inner(1), Place::Inner(3), Place::Leaf(0)].map(most), [last; 3]);
    let middle = u32::MAX / 6_000;
    assert_eq!([Place::Inner(4), Place::Leaf(6_000)].map(most), [middle; 2]);
    assert_eq!(most(Place::Leaf(9_000)), u32::MAX / 5_000);
    weir.set_weight(Place::Leaf(9_000), u32::MAX);
    assert_eq!(weir.leaves[9_000].child.weight, 858_993);
    // of few: as much as any may have
    assert_eq!(flat(2, Options::TCP).weight_most(Place::Leaf(0)), 1 << 20);
}

#[test]
fn leaves_below_eight_levels_are_limited_by_the_link_and_swept() {
    // two chains of eight classes, and a leaf below each
    let mut nodes = vec![Node::link(mbit(1_000))];
    for level in 0..8_u32 {
        let above = |chain| if level == 0 { 0 } else { 2 * level - 1 + chain };
        nodes.extend([0, 1].map(|chain| Node::inner(above(chain), 1)));
    }
    nodes.extend([Node::leaf(15, 1), Node::leaf(16, 1)]);
    let mut weir = made(&nodes, Options::SHORT);
    let (now, fates) = send(&mut weir, MS, 30, &[(0, 4), (1, 4)]);
    assert!(is_near(shares(&weir, [0, 1]), [500, 500]), "{:?}", shares(&weir, [0, 1]));
    assert!(fates.iter().all(|fate| !fate.passes()), "{fates:?}");
    send(&mut weir, now, 30, &[(1, 10)]);
    assert_eq!(weir.demand(0), Rate::ZERO);
}
