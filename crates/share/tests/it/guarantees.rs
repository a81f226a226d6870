//! Guarantees beside each other and beside classes without one, held to figures by hand.

use weir_share::{Fate, Node, Options, Weir, exact};
use weir_units::{Instant, Rate};

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

/// A link of 100 Mbit/s and leaves with a guarantee, a weight and what they want, in Mbit/s.
type Told<'a> = &'a [(u64, u32, u64)];

fn nodes(told: Told) -> Vec<Node> {
    let leaf = |&(floor, weight, _): &(u64, u32, u64)| Node {
        floor: mbit(floor),
        ..Node::leaf(0, weight)
    };
    [Node::link(mbit(100))].into_iter().chain(told.iter().map(leaf)).collect()
}

/// What passes of each in five seconds, in Mbit/s.
fn passed(told: Told) -> Vec<f64> {
    let (mut weir, places) = Weir::new(&nodes(told), Options::SHORT).unwrap();
    let mut next: Vec<u64> = (0..told.len() as u64).map(|n| 1_000_000_000 + n * 7_919).collect();
    let mut passed = vec![0_u64; told.len()];
    loop {
        let of = (0..told.len()).min_by_key(|&n| next[n]).unwrap();
        let now = next[of];
        if now > 9_000_000_000 {
            break;
        }
        next[of] += 8_000_000 / told[of].2;
        let leaf = places.leaf(of as u32 + 1).unwrap();
        let fate = weir.packet(Instant::from_ns(now), leaf, 1_000);
        passed[of] += u64::from(now > 4_000_000_000 && !matches!(fate, Fate::Drop { .. }));
    }
    weir.audit().unwrap();
    passed.into_iter().map(|n| n as f64 * 8e-3 / 5.0).collect()
}

fn due(told: Told) -> Vec<f64> {
    let wants: Vec<Rate> = [0].into_iter().chain(told.iter().map(|t| t.2)).map(mbit).collect();
    let shares = exact::shares(&nodes(told), &wants).unwrap();
    shares[1..].iter().map(|rate| rate.bps() as f64 / 1e6).collect()
}

/// Both are within half a percent, and what one packet in a second is.
fn assert_near(told: Told, law: &[f64]) {
    for (what, are) in [("the exact answer", due(told)), ("what passes", passed(told))] {
        let is_near = |(are, law): (&f64, &f64)| (are - law).abs() <= 0.005 * law + 0.008;
        assert!(are.iter().zip(law).all(is_near), "{told:?}: {what} is {are:.3?}, not {law:?}");
    }
}

#[test]
fn who_wants_less_than_its_scaled_guarantee_has_all_it_wants() {
    // 98 to two that are guaranteed 160
    assert_near(&[(100, 10, 150), (60, 6, 150), (40, 4, 2)], &[61.25, 36.75, 2.0]);
    // and a hundredth to one without: 97
    let law = [60.625, 36.375, 2.0, 1.0];
    assert_near(&[(100, 10, 150), (60, 6, 150), (40, 4, 2), (0, 1, 50)], &law);
}

#[test]
fn guarantees_that_fit_are_whole_beside_great_weights_without_one() {
    let law = [45.0, 45.0, 10.0 / 51.0, 500.0 / 51.0];
    assert_near(&[(45, 1, 90), (45, 1, 90), (0, 1, 20), (0, 50, 20)], &law);
    let (one, few) = ((0, 1, 60), (0, 10, 3));
    let law = [90.0, 1.961, 1.961, 1.961, 1.961, 1.961, 0.196];
    assert_near(&[(90, 1, 190), few, few, few, few, few, one], &law);
}
