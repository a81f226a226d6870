//! Any tree, any numbers: nothing panics or wraps, the sums are what follows from the parts after
//! every packet and every change, and steady loads end where the exact answer is.

use proptest::prelude::*;
use weir_share::{Gone, LINK, Node, Options, Place, Weir};
use weir_units::{Instant, Rate, Span};

use crate::traffic::{Dice, LEN, Sender, steady, through, wanted, windows};

/// A tree of some nodes, drawn.
fn tree(dice: &mut Dice, count: u32, rate: impl Fn(&mut Dice) -> Rate) -> Vec<Node> {
    let mut nodes = vec![Node::link(rate(dice))];
    let mut depth = vec![0];
    for _ in 1..count {
        let mut parent = dice.below(nodes.len() as u64) as usize;
        while nodes[parent].is_leaf {
            parent = nodes[parent].parent as usize;
        }
        let is_leaf = depth[parent] == 7 || dice.below(3) > 0;
        let weight = 1 << dice.below(5);
        let mut node = if is_leaf {
            Node::leaf(parent as u32, weight)
        } else {
            Node::inner(parent as u32, weight)
        };
        node.is_spare = is_leaf && dice.below(8) == 0;
        if dice.below(3) == 0 {
            node.floor = rate(dice);
        }
        if dice.below(3) == 0 {
            node.peak = rate(dice);
        }
        nodes.push(node);
        depth.push(depth[parent] + 1);
    }
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sums_hold_after_every_packet_and_change(seed: u64) {
        let mut dice = Dice(seed);
        let any = |dice: &mut Dice| Rate::from_bps(dice.next() >> dice.below(64));
        let nodes = tree(&mut dice, 2 + (seed % 40) as u32, any);
        let marks = dice.below(2) == 0;
        let credit = Span::from_ns(dice.next() >> dice.below(64));
        let options = Options { credit, marks, ..Options::TCP };
        let (mut weir, places) = Weir::new(&nodes, options).unwrap();
        let mut now = dice.next() >> dice.below(64);
        for _ in 0..300 {
            // mostly forward, at times back or far
            now = match dice.below(20) {
                0 => now.saturating_sub(dice.next() >> dice.below(64)),
                1 => now.saturating_add(dice.next() >> dice.below(64)),
                _ => now.saturating_add(dice.below(100_000)),
            };
            let at = Instant::from_ns(now);
            let node = dice.below(nodes.len() as u64) as u32;
            let place = places.of(node);
            match dice.below(30) {
                0 => weir.set_weight(place, dice.next() as u32),
                1 => { let rate = any(&mut dice); weir.set_floor(place, rate); }
                2 => { let rate = any(&mut dice); weir.set_peak(place, rate); }
                3 => { weir.remove(place); }
                4 => if let Place::Inner(parent) = place {
                    let ask = dice.below(2) == 0;
                    if let Some(leaf) = weir.join(at, parent, ask) && dice.below(2) == 0 {
                        weir.approve(leaf);
                    }
                },
                5 => weir.age(at, Span::from_us(dice.below(10_000)), 5),
                6 => weir.sweep(at, 5),
                _ => if let Place::Leaf(leaf) = place {
                    weir.packet(at, leaf, dice.next() as u32 >> dice.below(32));
                    prop_assert!(nodes[node as usize].peak == Rate::MAX
                        || weir.share(leaf) <= Rate::MAX);
                },
            }
            while weir.next_event().is_some() {}
            if let Err(why) = weir.audit() {
                prop_assert!(false, "{}", why);
            }
        }
    }

    #[test]
    fn no_share_is_above_its_peak(seed: u64) {
        let mut dice = Dice(seed);
        let any = |dice: &mut Dice| Rate::from_bps((dice.next() >> dice.below(64)).max(1_000));
        let nodes = tree(&mut dice, 20, any);
        let (mut weir, places) = Weir::new(&nodes, Options::TCP).unwrap();
        let mut now = 0;
        for _ in 0..500 {
            now += dice.below(50_000);
            let node = dice.below(nodes.len() as u64) as u32;
            let Some(leaf) = places.leaf(node) else { continue };
            weir.packet(Instant::from_ns(now), leaf, 1_000);
            let (share, peak) = (weir.share(leaf), nodes[node as usize].peak.min(nodes[0].peak));
            prop_assert!(share.bps() <= peak.bps() + 1, "{} above {}", share, peak);
        }
    }
}

/// A tree with guarantees and peaks, and a sender for each leaf.
pub(crate) fn case(seed: u64) -> (Vec<Node>, Vec<Sender>) {
    let mut dice = Dice(seed * 77);
    let rate = |dice: &mut Dice| Rate::from_bps((50 + dice.below(950)) * 1_000_000);
    let mut nodes = tree(&mut dice, 12, rate);
    nodes[0].peak = Rate::from_bps(1_000_000_000);
    nodes.iter_mut().for_each(|node| {
        node.is_spare = false;
        // guarantees that mean something beside each other
        node.floor = Rate::from_bps(node.floor.bps() / 4);
    });
    let leaves = (1..).zip(&nodes[1..]).filter(|(_, node)| node.is_leaf);
    let senders: Vec<_> =
        leaves.map(|(at, _)| steady(at, (20 + dice.below(800)) as f64 * 1e6, 0.0, 0.6)).collect();
    (nodes, senders)
}

#[test]
fn drawn_trees_end_where_the_exact_answer_is() {
    for seed in 1..=60 {
        let (nodes, senders) = case(seed);
        let (mut weir, places) = Weir::new(&nodes, Options::SHORT).unwrap();
        let seen = windows(&senders, &[(0.3, 0.6)], seed, through(&mut weir, &places));
        let exact = wanted(&nodes, &senders, |sender| sender.rate);
        for (at, exact) in exact.iter().enumerate() {
            let rate = seen[0].passed[at] / 0.3;
            // beside 1 %: two packets, and what the virtual queue and noise take of the link, which
            // whoever is above its guarantee pays alone
            let off = (rate - exact).abs() - 2.0 * f64::from(LEN) * 8.0 / 0.3 - 4e6;
            assert!(off <= 0.01 * exact, "tree {seed}: {at} has {rate}, exact {exact}");
        }
    }
}

#[test]
fn a_leaf_joins_with_its_first_packet_and_goes_when_silent() {
    let nodes = [Node::link(Rate::from_bps(1_000_000_000)), Node::leaf(LINK, 1), Node::spare(LINK)];
    let (mut weir, _) = Weir::new(&nodes, Options::SHORT).unwrap();
    use weir_share::Event;
    let at = Instant::from_ns;
    let leaf = weir.join(at(0), 0, true).unwrap();
    assert_eq!(weir.next_event(), Some(Event::Asks(leaf)));
    assert!(!weir.packet(at(5), leaf, 1_000).passes());
    weir.approve(leaf);
    assert_eq!(weir.next_event(), Some(Event::Joined(leaf)));
    assert!(weir.packet(at(10), leaf, 1_000).passes());
    assert_eq!(weir.join(at(20), 0, false), None);
    assert_eq!(weir.next_event(), Some(Event::Full(0)));
    weir.age(at(1_000), Span::from_ms(1), 10);
    assert_eq!(weir.next_event(), None);
    weir.age(at(2_000_000), Span::from_ms(1), 10);
    assert_eq!(weir.next_event(), Some(Event::Aged(leaf)));
    assert!(!weir.packet(at(2_000_001), leaf, 1_000).passes());
    assert_eq!(weir.join(at(3_000_000), 0, false), Some(leaf));
    weir.audit().unwrap();
}

#[test]
fn a_branch_goes_with_all_below_it_and_nothing_else() {
    for seed in 1..=40 {
        let mut dice = Dice(seed);
        let rate = |_: &mut Dice| Rate::from_bps(1_000_000_000);
        let nodes = tree(&mut dice, 40, rate);
        for branch in (0..40).filter(|&at| !nodes[at as usize].is_leaf) {
            let (mut weir, places) = Weir::new(&nodes, Options::TCP).unwrap();
            let is_below = |leaf: u32| {
                let mut at = leaf;
                while at != branch && at != LINK {
                    at = nodes[at as usize].parent;
                }
                at == branch
            };
            let leaves = (0..40).filter(|&at| nodes[at as usize].is_leaf);
            let leaves: Vec<u32> = leaves.filter(|&at| !nodes[at as usize].is_spare).collect();
            let own = leaves.iter().filter(|&&leaf| is_below(leaf)).count();
            assert_eq!(weir.remove(places.of(branch)), Gone(own as u32));
            for &leaf in &leaves {
                let passes = weir.packet(Instant::from_ns(9), places.leaf(leaf).unwrap(), 100);
                assert_eq!(passes.passes(), !is_below(leaf), "tree {seed}: {leaf} of {branch}");
            }
            weir.audit().unwrap();
        }
    }
}
