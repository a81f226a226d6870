//! The form for many: counters summed and shares published every two milliseconds.

use weir_share::{Core, Published};
use weir_units::{Instant, Rate};

use crate::fair::binary;
use crate::traffic::{LEN, deviation, intervals, six, wanted};
use crate::trees::case;

const PERIOD: u64 = 2_000_000;

/// Packets go to three cores in turn.
fn published(nodes: &[weir_share::Node]) -> impl FnMut(u64, u32) -> bool {
    let (mut published, places) = Published::new(nodes).unwrap();
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
        let found = deviation(&nodes, &senders, &intervals(0.1), published(&nodes));
        assert!(found.mean <= 0.001 && found.most <= 0.005, "{} {}", found.mean, found.most);
    }
    let (nodes, senders) = binary();
    let found = deviation(&nodes, &senders, &[(0.2, 0.5)], published(&nodes));
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
