//! The allocators of the papers: what each reaches, and where it fails.

use weir_share::hsdba::{Options, Reading};
use weir_share::{Law, Node, ahab};
use weir_units::Span;

use crate::fair::binary;
use crate::traffic::{Deviation, Sender, deviation, intervals, six, under};

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
