//! The form for many: counters summed and shares published every two milliseconds.

use weir_share::{Core, LINK, Node, Published, Settling};
use weir_units::{Instant, Rate};

use crate::fair::binary;
use crate::traffic::{Dice, LEN, deviation, gbit, intervals, six, steady, wanted};
use crate::trees::case;

const PERIOD: u64 = 2_000_000;

/// Packets go to three cores in turn.
fn published(nodes: &[Node], settling: Settling) -> impl FnMut(u64, u32) -> bool {
    let (mut published, places) = Published::under(nodes, settling).unwrap();
    let mut cores: Vec<Core> = (0..3).map(|_| published.core()).collect();
    let (mut next, mut turn) = (PERIOD, 0);
    move |now, node| {
        while now >= next {
            published.publish(Instant::from_ns(next), &mut cores);
            next += PERIOD;
        }
        turn = (turn + 1) % 3;
        cores[turn].packet(places.leaf(node).unwrap(), LEN).passes()
    }
}

#[test]
fn shares_are_exact_with_three_cores() {
    for groups in [None, Some([1, 1]), Some([1, 2])] {
        let (nodes, senders) = six([1, 1, 2, 1, 1, 2], groups, 0.1);
        let found =
            deviation(&nodes, &senders, &intervals(0.1), published(&nodes, Settling::Exact));
        assert!(found.mean <= 0.001 && found.most <= 0.005, "{} {}", found.mean, found.most);
    }
    let (nodes, senders) = binary();
    let found = deviation(&nodes, &senders, &[(0.2, 0.5)], published(&nodes, Settling::Exact));
    assert!(found.mean <= 0.005, "{}", found.mean);
}

#[test]
fn what_is_published_is_the_exact_answer() {
    for seed in 1..=200 {
        let (nodes, senders) = case(seed);
        let (mut published, places) = Published::new(&nodes).unwrap();
        let demands =
            senders.iter().map(|s| (places.leaf(s.node).unwrap(), Rate::from_bps(s.rate as u64)));
        published.set_demands(demands);
        let exact = wanted(&nodes, &senders, |sender| sender.rate);
        for (sender, exact) in senders.iter().zip(exact) {
            let share = published.share(places.leaf(sender.node).unwrap()).bps() as f64;
            let has = share.min(sender.rate);
            let off = (has - exact).abs();
            assert!(off <= 50.0 + exact * 1e-4, "tree {seed}: {has} for {exact}");
        }
    }
}

#[test]
fn the_other_laws_reach_it_by_rounds() {
    for settling in [Settling::Hsdba, Settling::Hcsfq, Settling::Ahab(1)] {
        for groups in [None, Some([1, 1]), Some([1, 2])] {
            let (nodes, senders) = six([1, 1, 2, 1, 1, 2], groups, 0.2);
            let found = deviation(&nodes, &senders, &intervals(0.2), published(&nodes, settling));
            let text = format!("{settling:?} {groups:?}: mean {} most {}", found.mean, found.most);
            assert!(found.mean <= 0.01 && found.most <= 0.03 && found.used >= 0.99, "{text}");
        }
    }
}

#[test]
fn guarantees_are_kept_by_rounds() {
    let kept = Node { floor: gbit(6.0), ..Node::leaf(LINK, 1) };
    let nodes = [Node::link(gbit(10.0)), kept, Node::leaf(LINK, 1), Node::leaf(LINK, 3)];
    for settling in [Settling::Exact, Settling::Hsdba] {
        for a in [8e9, 5e9, 1e9] {
            let senders =
                [steady(1, a, 0.0, 0.5), steady(2, 8e9, 0.0, 0.5), steady(3, 8e9, 0.0, 0.5)];
            let through = published(&nodes, settling);
            let found = deviation(&nodes, &senders, &[(0.3, 0.5)], through);
            let text = format!("{settling:?} {a}: mean {} most {}", found.mean, found.most);
            assert!(found.mean <= 0.01 && found.most <= 0.01, "{text}");
        }
    }
}

/// Whatever came and went, what the others have after many rounds is what a new round of all would
/// give, and a round in pieces gives what a whole one gives.
#[test]
fn rounds_that_look_at_little_leave_nothing_out() {
    for seed in 1..=20 {
        let (nodes, _) = case(seed);
        let (mut whole, places) = Published::new(&nodes).unwrap();
        let (mut pieces, _) = Published::new(&nodes).unwrap();
        let mut cores = [[whole.core(), whole.core()], [pieces.core(), pieces.core()]];
        let leaves: Vec<u32> = (0..nodes.len() as u32).filter_map(|at| places.leaf(at)).collect();
        let mut dice = Dice(seed);
        let mut rates: Vec<u64> = vec![0; leaves.len()];
        for round in 1..=150 {
            for (leaf, rate) in leaves.iter().zip(&mut rates) {
                if dice.below(40) == 0 {
                    *rate = dice.below(3) * dice.below(200);
                }
                for packet in 0..*rate {
                    let core = (packet % 2) as usize;
                    cores.iter_mut().for_each(|cores| _ = cores[core].packet(*leaf, LEN));
                }
            }
            let now = Instant::from_ns(round * PERIOD);
            whole.publish(now, &mut cores[0]);
            while !pieces.publish_some(now, &mut cores[1], 1) {}
            let (mut exact, _) = Published::new(&nodes).unwrap();
            exact.set_demands(leaves.iter().map(|&leaf| (leaf, whole.demand(leaf))));
            for &leaf in &leaves {
                let (share, other) = (whole.share(leaf), pieces.share(leaf));
                assert_eq!(share, other, "tree {seed}, round {round}, leaf {leaf}");
                let exact = exact.share(leaf).bps();
                let off = share.bps().abs_diff(exact);
                let text = || format!("tree {seed}, round {round}: {} for {exact}", share.bps());
                assert!(off <= 100 + exact / 100_000, "{}", text());
            }
        }
    }
}
