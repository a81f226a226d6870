//! The allocators of the papers: what each reaches, and where it fails.

use weir_share::hsdba::{Options, Reading};
use weir_share::{Hsdba, LINK, Law, Node, ahab};
use weir_units::{Instant, Span};

use crate::fair::binary;
use crate::traffic::{Deviation, LEN, Sender, deviation, gbit, intervals, six, steady};
use crate::traffic::{under, wanted, windows};
use crate::trees::case;

const UNIT: f64 = 0.1;

fn of(law: Law, nodes: &[Node], senders: &[Sender], times: &[(f64, f64)]) -> Deviation {
    deviation(nodes, senders, times, under(nodes, law))
}

fn cases() -> Vec<(Vec<Node>, Vec<Sender>)> {
    let mut cases = Vec::new();
    for weights in [[1; 6], [1, 1, 2, 1, 1, 2]] {
        cases.push(six(weights, None, UNIT));
        cases.push(six(weights, Some([1, 1]), UNIT));
        cases.push(six(weights, Some([1, 2]), UNIT));
    }
    cases
}

#[test]
fn hsdba_corrected_is_within_one_per_cent() {
    for (nodes, senders) in cases() {
        let found = of(Law::Hsdba(Options::default()), &nodes, &senders, &intervals(UNIT));
        assert!(found.mean <= 0.01 && found.most <= 0.03 && found.used >= 0.995);
    }
    let (nodes, senders) = binary();
    let found = of(Law::Hsdba(Options::default()), &nodes, &senders, &[(0.2, 0.5)]);
    assert!(found.mean <= 0.01 && found.used >= 0.99);
}

/// Demands are capped by peaks on their way up: what a leaf may not send, its class does not want.
#[test]
fn hsdba_leaves_nothing_where_leaves_have_peaks() {
    let capped = |parent| Node { peak: gbit(0.5), ..Node::leaf(parent, 1) };
    let (a, b) = (1, 2);
    let inner = |parent| Node::inner(parent, 1);
    let nodes = [
        Node::link(gbit(10.0)),
        inner(LINK),
        inner(LINK),
        capped(a),
        capped(a),
        Node::leaf(b, 1),
        Node::leaf(b, 1),
    ];
    let senders: Vec<Sender> =
        (3..7).map(|node| steady(node, if node < 5 { 3e9 } else { 6e9 }, 0.0, 0.3)).collect();
    let found = of(Law::Hsdba(Options::default()), &nodes, &senders, &[(0.1, 0.3)]);
    assert!(found.used >= 0.99 && found.most <= 0.02, "{}, {}", found.used, found.most);
}

#[test]
fn hsdba_as_printed_fails() {
    let printed = Law::Hsdba(Options { reading: Reading::Printed, ..Options::default() });
    for (nodes, senders) in cases() {
        let found = of(printed, &nodes, &senders, &intervals(UNIT));
        assert!(found.mean >= 0.3, "{}", found.mean);
    }
    let (nodes, senders) = binary();
    let found = of(printed, &nodes, &senders, &[(0.2, 0.5)]);
    assert!(found.mean >= 0.9 && found.used <= 0.1);
}

#[test]
fn hcsfq_is_exact_on_two_levels_and_not_on_five() {
    let law = Law::Hcsfq(Span::from_ms(2), 1);
    for (nodes, senders) in cases() {
        let found = of(law, &nodes, &senders, &intervals(UNIT));
        assert!(found.mean <= 0.01 && found.most <= 0.05);
    }
    let (nodes, senders) = binary();
    let found = of(law, &nodes, &senders, &[(0.2, 0.5)]);
    assert!(found.used < 0.98, "{}", found.used);
}

#[test]
fn ahab_keeps_room_for_a_slice_that_is_silent() {
    let law = Law::Ahab(ahab::Options::default());
    let (nodes, senders) = six([1; 6], None, UNIT);
    let found = of(law, &nodes, &senders, &intervals(UNIT));
    assert!(found.mean <= 0.01 && found.most <= 0.03);
    // from 80 to 90 the first group is silent, and the second has only its seven
    let (nodes, senders) = six([1; 6], Some([1, 1]), UNIT);
    let silent = 8;
    let found = of(law, &nodes, &senders, &intervals(UNIT)[silent..=silent]);
    assert!(found.used <= 0.85, "{}", found.used);
}

#[test]
fn hsdba_keeps_guarantees_beside_weights() {
    let kept = Node { floor: gbit(6.0), ..Node::leaf(LINK, 1) };
    let nodes = [Node::link(gbit(10.0)), kept, Node::leaf(LINK, 1), Node::leaf(LINK, 3)];
    for a in [8e9, 5e9, 1e9] {
        let senders = [steady(1, a, 0.0, 0.3), steady(2, 8e9, 0.0, 0.3), steady(3, 8e9, 0.0, 0.3)];
        let law = Law::Hsdba(Options::default());
        let found = of(law, &nodes, &senders, &[(0.1, 0.3)]);
        assert!(found.mean <= 0.01 && found.most <= 0.03, "{} {}", found.mean, found.most);
    }
}

#[test]
fn hsdba_scales_guarantees_above_the_link() {
    let kept = |floor| Node { floor: gbit(floor), ..Node::leaf(LINK, 1) };
    let nodes = [Node::link(gbit(10.0)), kept(15.0), kept(5.0), kept(0.0)];
    let senders: Vec<_> = (1..3).map(|at| steady(at, 2e10, 0.0, 0.2)).collect();
    let found = of(Law::Hsdba(Options::default()), &nodes, &senders, &[(0.1, 0.2)]);
    assert!(found.mean <= 0.02, "{}", found.mean);
}

/// Drawn trees with weights, guarantees and peaks: who wants more than the exact answer guarantees
/// has that, whatever the others send.
#[test]
fn hsdba_keeps_guarantees_in_drawn_trees() {
    for seed in 1..=25 {
        let (nodes, senders) = case(seed);
        let seen = windows(&senders, &[(0.3, 0.6)], seed, {
            let (mut hsdba, places) = Hsdba::new(&nodes, Options::default()).unwrap();
            move |now, node| {
                let leaf = places.leaf(node).unwrap();
                hsdba.packet(Instant::from_ns(now), leaf, LEN).passes()
            }
        });
        // what each has of its guarantees alone: the exact answer if nobody wanted more
        let least: Vec<_> = senders
            .iter()
            .map(|sender| {
                let floor = nodes[sender.node as usize].floor.bps() as f64;
                Sender { rate: sender.rate.min(floor), ..sender.clone() }
            })
            .collect();
        let exact = wanted(&nodes, &senders, |sender| sender.rate);
        let kept = wanted(&nodes, &least, |sender| sender.rate);
        for (at, (&exact, kept)) in exact.iter().zip(kept).enumerate() {
            let rate = seen[0].passed[at] / 0.3;
            let wants = kept.min(exact);
            // dice, and rates from windows of some packets
            let room = 0.06 * wants + 4.0 * f64::from(LEN) * 8.0 / 0.3;
            assert!(rate >= wants - room, "tree {seed}: {at} has {rate} of {wants}");
        }
    }
}
