//! Shares against the exact answer: the trees and loads of the HSDBA paper, in a hundredth of its
//! time.

use weir_share::{LINK, Node, Options, Weir};
use weir_units::Rate;

use crate::traffic::{deviation, gbit, intervals, six, steady, through, windows};

const UNIT: f64 = 0.1;

fn hold(nodes: &[Node], senders: &[crate::traffic::Sender], times: &[(f64, f64)], most: [f64; 2]) {
    let (mut weir, places) = Weir::new(nodes, Options::SHORT).unwrap();
    let found = deviation(nodes, senders, times, through(&mut weir, &places));
    weir.audit().unwrap();
    let text = format!("mean {:.5} most {:.5} use {:.5}", found.mean, found.most, found.used);
    assert!(found.mean <= most[0] && found.most <= most[1] && found.used >= 0.995, "{text}");
}

#[test]
fn six_flows_on_a_link() {
    for weights in [[1; 6], [1, 1, 2, 1, 1, 2]] {
        let (nodes, senders) = six(weights, None, UNIT);
        hold(&nodes, &senders, &intervals(UNIT), [0.001, 0.005]);
    }
}

#[test]
fn six_flows_in_two_groups() {
    for groups in [[1, 1], [1, 2]] {
        for weights in [[1; 6], [1, 1, 2, 1, 1, 2]] {
            let (nodes, senders) = six(weights, Some(groups), UNIT);
            hold(&nodes, &senders, &intervals(UNIT), [0.001, 0.005]);
        }
    }
}

/// A link, halved five times; twelve leaves want 100 Mbit/s, twenty 500.
pub(crate) fn binary() -> (Vec<Node>, Vec<crate::traffic::Sender>) {
    let mut nodes = vec![Node::link(gbit(10.0))];
    for at in 1..31_u32 {
        nodes.push(Node::inner((at - 1) / 2, 1));
    }
    let mut senders = Vec::new();
    for at in 0..32_u32 {
        nodes.push(Node::leaf(15 + at / 2, 1));
        senders.push(steady(31 + at, if at < 12 { 1e8 } else { 5e8 }, 0.0, 0.5));
    }
    (nodes, senders)
}

#[test]
fn thirty_two_flows_five_levels_down() {
    let (nodes, senders) = binary();
    hold(&nodes, &senders, &[(0.2, 0.5)], [0.003, 0.01]);
}

#[test]
fn what_capped_children_leave_is_for_the_others() {
    let capped = |parent| Node { peak: gbit(0.5), ..Node::leaf(parent, 1) };
    let nodes = [
        Node::link(gbit(10.0)),
        Node::inner(LINK, 1),
        Node::inner(LINK, 1),
        capped(1),
        capped(1),
        Node::leaf(2, 1),
        Node::leaf(2, 1),
    ];
    let senders: Vec<_> =
        (0..4).map(|at| steady(3 + at, if at < 2 { 3e9 } else { 6e9 }, 0.0, 0.3)).collect();
    hold(&nodes, &senders, &[(0.1, 0.3)], [0.005, 0.01]);
}

#[test]
fn guarantees_hold_beside_weights() {
    // a keeps 6 of 10 Gbit/s whatever the weights; b and c share the rest one to three
    let kept = Node { floor: gbit(6.0), ..Node::leaf(LINK, 1) };
    let nodes = [Node::link(gbit(10.0)), kept, Node::leaf(LINK, 1), Node::leaf(LINK, 3)];
    let all =
        |a: f64| vec![steady(1, a, 0.0, 0.3), steady(2, 8e9, 0.0, 0.3), steady(3, 8e9, 0.0, 0.3)];
    hold(&nodes, &all(8e9), &[(0.1, 0.3)], [0.005, 0.01]);
    hold(&nodes, &all(5e9), &[(0.1, 0.3)], [0.005, 0.01]);
    hold(&nodes, &all(1e9), &[(0.1, 0.3)], [0.005, 0.01]);
}

#[test]
fn guarantees_above_the_link_leave_a_hundredth_to_those_without() {
    let kept = |floor| Node { floor: gbit(floor), ..Node::leaf(LINK, 1) };
    let nodes = [Node::link(gbit(10.0)), kept(8.0), kept(6.0), kept(0.0), kept(0.0)];
    let senders: Vec<_> = (1..5).map(|at| steady(at, 1e10, 0.0, 0.3)).collect();
    hold(&nodes, &senders, &[(0.1, 0.3)], [0.01, 0.02]);
    // nobody without one: all of it
    hold(&nodes, &senders[..2], &[(0.1, 0.3)], [0.005, 0.01]);
    // who is guaranteed a little beside much has its part of what there is
    let nodes = [Node::link(gbit(9.0)), kept(7.0), kept(2.9), kept(0.1)];
    hold(&nodes, &senders[..3], &[(0.1, 0.3)], [0.005, 0.01]);
}

#[test]
fn guarantees_above_the_link_are_scaled() {
    let kept = |floor| Node { floor: gbit(floor), ..Node::leaf(LINK, 1) };
    let nodes = [Node::link(gbit(10.0)), kept(15.0), kept(5.0), kept(0.0)];
    let senders: Vec<_> = (1..3).map(|at| steady(at, 2e10, 0.0, 0.2)).collect();
    hold(&nodes, &senders, &[(0.1, 0.2)], [0.01, 0.01]);
}

#[test]
fn near_the_fair_share_nearly_all_passes() {
    let mut nodes = vec![Node::link(gbit(10.0))];
    nodes.extend([Node::leaf(LINK, 1); 4]);
    let parts = [-0.0075, -0.0025, 0.0025, 0.0075];
    let senders: Vec<_> = (1..)
        .zip(parts)
        .map(|(node, part)| {
            let mut sender = steady(node, 2.5e9 * (1.0 + part), 0.0, 0.5);
            sender.gaps = crate::traffic::Gaps::Poisson;
            sender
        })
        .collect();
    let (mut weir, places) = Weir::new(&nodes, Options::TCP).unwrap();
    let seen = windows(&senders, &[(0.1, 0.5)], 1, through(&mut weir, &places));
    let ratio = seen[0].passed.iter().sum::<f64>() / seen[0].sent.iter().sum::<f64>();
    assert!(ratio >= 0.995, "{ratio}");
}

#[test]
fn the_queue_behind_stays_short() {
    let (nodes, mut senders) = six([1; 6], None, 0.1);
    senders.iter_mut().for_each(|sender| sender.times = vec![(0, 300_000_000)]);
    let (mut weir, places) = Weir::new(&nodes, Options::SHORT).unwrap();
    let mut packet = through(&mut weir, &places);
    let (mut queue, mut last, mut waits, mut passed) = (0.0_f64, 0, Vec::new(), 0.0);
    let seen = windows(&senders, &[(0.1, 0.3)], 1, |now, node| {
        queue = (queue - (now - last) as f64 * 10.0).max(0.0);
        last = now;
        let passes = packet(now, node);
        if passes {
            queue += 8_192.0;
            if now > 100_000_000 {
                waits.push(queue / 10.0);
                passed += 8_192.0;
            }
        }
        passes
    });
    waits.sort_by(f64::total_cmp);
    let p99 = waits[waits.len() * 99 / 100] / 1e3;
    let used = seen[0].passed.iter().sum::<f64>() / 0.2 / 1e10;
    assert!(p99 <= 50.0 && used >= 0.995, "{p99} us, {used}");
}

#[test]
fn a_limit_is_kept_at_any_load() {
    for exponent in 5..=8 {
        for factor in [1.0, 2.0, 5.0] {
            let limit = factor * 10_f64.powi(exponent);
            let peak = Rate::from_bps(limit as u64);
            let nodes = [Node::link(gbit(10.0)), Node { peak, ..Node::leaf(LINK, 1) }];
            let run = (5_000.0 * 8_192.0 / limit).clamp(0.5, 60.0);
            for gaps in [crate::traffic::Gaps::Jitter(0.5), crate::traffic::Gaps::Poisson] {
                let mut sender = steady(1, limit * 2.0, 0.0, run);
                sender.gaps = gaps;
                let (mut weir, places) = Weir::new(&nodes, Options::SHORT).unwrap();
                let times = [(run * 0.1, run)];
                let seen = windows(&[sender], &times, 1, through(&mut weir, &places));
                let off = (seen[0].passed[0] / (run * 0.9) / limit - 1.0).abs();
                // one packet at each end of the window
                let room = 0.001 + 2.0 * 8_192.0 / (run * 0.9 * limit);
                assert!(off <= room, "{limit}: {off} beyond {room}");
            }
        }
    }
}

#[test]
fn bursts_of_many_slow_leaves_build_no_long_queue() {
    // sixteen packets of credit for each of 4096 leaves would be 54 ms of the link
    let mut nodes = vec![Node::link(Rate::from_bps(10_000_000_000))];
    nodes.extend((0..4_096).map(|_| Node::leaf(LINK, 1)));
    let senders: Vec<_> = (1..=4_096)
        .map(|at| {
            let mut sender = steady(at, 15e9 / 4_096.0, 0.0, 0.4);
            sender.gaps = crate::traffic::Gaps::Poisson;
            sender
        })
        .collect();
    let (mut weir, places) = Weir::new(&nodes, Options::SHORT).unwrap();
    let mut packet = through(&mut weir, &places);
    let (mut queue, mut last, mut longest) = (0.0_f64, 0, 0.0_f64);
    let seen = windows(&senders, &[(0.2, 0.4)], 1, |now, node| {
        queue = (queue - (now - last) as f64 * 10.0).max(0.0);
        last = now;
        let passes = packet(now, node);
        queue += f64::from(u8::from(passes)) * 8_192.0;
        if now > 200_000_000 {
            longest = longest.max(queue / 1e10);
        }
        passes
    });
    let used = seen[0].passed.iter().sum::<f64>() / 0.2 / 1e10;
    assert!(longest <= 0.002 && used >= 0.98, "{longest} s, {used}");
}
