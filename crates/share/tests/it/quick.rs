//! How soon shares are right after somebody begins or ends, in packets of one flow.

use weir_share::{Allocator, LINK, Law, Node, Options, Weir};
use weir_units::{Instant, Rate, Span};

use crate::traffic::{Dice, Gaps, LEN, Sender, gbit, send, wanted};

/// When all shares are right first, in packets of one flow, after somebody begins and after
/// somebody ends. Table 4 of the HSDBA paper: four flows of 100 Mbit/s on a link of 100.
fn hits(law: Law) -> (f64, f64) {
    let link = Node::link(Rate::from_bps(100_000_000));
    let nodes: Vec<Node> = [link].into_iter().chain([Node::leaf(LINK, 1); 4]).collect();
    let (mut start, mut end) = (0.0, 0.0);
    for seed in 1..=8 {
        let sender = |at: u32| {
            let from = u64::from(at) * 500_000_000;
            let times = vec![(from, 2_000_000_000 + from)];
            Sender { node: 1 + at, rate: 1e8, gaps: Gaps::Jitter(0.1), times }
        };
        let senders: Vec<Sender> = (0..4).map(sender).collect();
        let (mut allocator, places) = Allocator::new(&nodes, law).unwrap();
        let mut hits = [9_999.0_f64; 8];
        send(&senders, seed, |now, at| {
            let leaf = places.leaf(senders[at].node).unwrap();
            allocator.packet(Instant::from_ns(now), leaf, LEN);
            let event = (now / 500_000_000) as usize;
            let is_on = |s: &&Sender| s.times[0].0 <= now && now < s.times[0].1;
            let on: Vec<&Sender> = senders.iter().filter(is_on).collect();
            let exact = 1e8 / on.len() as f64;
            let is_right = on.iter().all(|sender| {
                let is = allocator.share(places.leaf(sender.node).unwrap()).bps() as f64;
                is >= 0.95 * exact && (on.len() == 1 || is <= 1.05 * exact)
            });
            if is_right && hits[event] > 9_998.0 {
                hits[event] = (now - event as u64 * 500_000_000) as f64 / 81_920.0;
            }
        });
        start += hits[1..4].iter().sum::<f64>() / 24.0;
        end += hits[4..7].iter().sum::<f64>() / 24.0;
    }
    (start, end)
}

#[test]
fn shares_are_right_within_so_many_packets_and_in_this_order() {
    let weir = hits(Law::Weir(Options::SHORT));
    assert!(weir.0 <= 3.0 && weir.1 <= 12.0);
    let hsdba = hits(Law::Hsdba(weir_share::hsdba::Options::default()));
    assert!((24.0..=27.0).contains(&hsdba.0) && (24.0..=27.0).contains(&hsdba.1));
    let ahab = hits(Law::Ahab(weir_share::ahab::Options::default()));
    assert!((25.0..=80.0).contains(&ahab.0));
    let hcsfq = hits(Law::Hcsfq(Span::from_ms(10), 1));
    assert!((350.0..=700.0).contains(&hcsfq.0));
    assert!(weir.0 < hsdba.0 && hsdba.0 < ahab.0 && ahab.0 < hcsfq.0);
}

/// Senders that come and go: each on for some ms with seven of ten chances, at a rate drawn anew.
fn churn(first: u32, leaves: u32, dice: &mut Dice) -> Vec<(Sender, Vec<f64>)> {
    let sender = |at| {
        let (mut now, mut times, mut rates) = (0.0, Vec::new(), Vec::new());
        while now < 0.3 {
            let end = now + 0.002 - 0.03 * (1.0 - dice.unit()).ln();
            if dice.unit() < 0.7 {
                let rate = 0.15 * 28e9 / f64::from(leaves) * dice.unit().max(1e-9).powf(-0.9);
                times.push(((now * 1e9) as u64, (end.min(0.3) * 1e9) as u64));
                rates.push(rate.clamp(1e6, 9e9));
            }
            now = end;
        }
        (Sender { node: first + at, rate: 1e9, gaps: Gaps::Jitter(0.2), times }, rates)
    };
    (0..leaves).map(sender).collect()
}

/// Windows of 1 ms against the exact answer: how far off the bits are, and how many were above what
/// the link carries, both by the exact answer's.
fn error_of_churn(nodes: &[Node], first: u32, leaves: u32, seed: u64) -> (f64, f64) {
    let mut dice = Dice(seed);
    let churn = churn(first, leaves, &mut dice);
    // a sender of each segment, since each has its own rate
    let segments: Vec<Sender> = churn
        .iter()
        .flat_map(|(sender, rates)| {
            let one = |(&times, &rate): (&(u64, u64), &f64)| Sender {
                rate,
                times: vec![times],
                ..sender.clone()
            };
            sender.times.iter().zip(rates).map(one).collect::<Vec<_>>()
        })
        .collect();
    let (mut weir, places) = Weir::new(nodes, Options::SHORT).unwrap();
    let mut bits = vec![vec![0.0; leaves as usize]; 300];
    send(&segments, seed, |now, at| {
        let node = segments[at].node;
        if weir.packet(Instant::from_ns(now), places.leaf(node).unwrap(), LEN).passes() {
            bits[(now / 1_000_000) as usize][(node - first) as usize] += f64::from(LEN) * 8.0;
        }
    });
    let (mut off, mut above, mut right) = (0.0, 0.0, 0.0);
    for (window, bits) in bits.iter().enumerate().skip(10) {
        let mut exact = vec![0.0; leaves as usize];
        // shares are of the moment: the mean of twenty moments in the window
        for part in 0..20 {
            let moment = window as u64 * 1_000_000 + part * 50_000 + 25_000;
            let on: Vec<Sender> = segments
                .iter()
                .filter(|s| s.times[0].0 <= moment && moment < s.times[0].1)
                .cloned()
                .collect();
            for (sender, share) in on.iter().zip(wanted(nodes, &on, |sender| sender.rate)) {
                exact[(sender.node - first) as usize] += share * 1e-3 / 20.0;
            }
        }
        off += bits.iter().zip(&exact).map(|(is, exact)| (is - exact).abs()).sum::<f64>();
        above += (bits.iter().sum::<f64>() - 1e7).max(0.0);
        right += exact.iter().sum::<f64>();
    }
    (off / right, above / right)
}

#[test]
fn shares_follow_senders_that_come_and_go() {
    let weights = |at: u32| 1 + at % 3;
    let mut flat = vec![Node::link(gbit(10.0))];
    flat.extend((0..64).map(|at| Node::leaf(LINK, weights(at))));
    let mut groups = vec![Node::link(gbit(10.0))];
    groups.extend((0..8).map(|at| Node::inner(LINK, 1 + at % 2)));
    groups.extend((0..64).map(|at| Node::leaf(1 + at / 8, weights(at))));
    for (nodes, first) in [(flat, 1), (groups, 9)] {
        // one draw differs from the next by a tenth
        let found = [1, 2, 3].map(|seed| error_of_churn(&nodes, first, 64, seed));
        let off = found.iter().map(|found| found.0).sum::<f64>() / 3.0;
        let above = found.iter().map(|found| found.1).sum::<f64>() / 3.0;
        assert!(off <= 0.05 && above <= 0.01, "{off} {above}");
    }
}
