//! Connections that come from another flow table: whose they are, and where they are counted.

use weir_classify::{
    Arrival, Class, Classifier, FlowState, Index, Limits, Rule, Seed, Spec, Target, When,
};
use weir_packet::{Build, Headers, Side};
use weir_units::{Instant, Span};

fn classifier(seed: u128) -> Classifier {
    classifier_of(seed, 64)
}

fn classifier_of(seed: u128, flows: usize) -> Classifier {
    let class = Class { parent: None, target: Target::Leaf(3) };
    let rules = vec![Rule { class: 0, when: When::default() }];
    let index = Index::compile(&Spec { rules, classes: vec![class], ..Spec::default() });
    Classifier::new(Limits { flows, fragmented: 8 }, Seed::new(seed), index)
}

/// A frame of one connection by a host of the LAN; returns its flow.
fn send(classifier: &mut Classifier, now: Instant, mac: u8) -> u32 {
    let lan = "10.0.0.1:1000".parse().expect("an address");
    let build = Build::udp(lan, "192.0.2.1:53".parse().expect("an address"));
    let bytes = build.macs([2, 0, 0, 0, 0, mac], [2, 0, 0, 0, 1, 1]).to_vec();
    classifier.one(now, Side::Lan, &Headers::parse(&bytes), &bytes).flow.index
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(100_000 + ms)
}

#[test]
fn a_connection_that_is_renewed_is_the_host_s_that_sent_last() {
    let (mut one, mut other) = (classifier(1), classifier(1));
    let here = send(&mut other, at(0), 2);
    let place = send(&mut one, at(10), 1);
    let (_, state) = one.flow_state(place, at(20)).expect("it came");
    assert!(matches!(other.bring_flow(at(20), one.seed_mark(), &state), Arrival::Renewed(_)));
    assert_eq!(send(&mut other, at(30), 1), here, "it is that host's now");
    assert_ne!(send(&mut other, at(40), 2), here, "and no other's");
    assert_eq!(other.flows(), 2);
}

#[test]
fn whose_it_is_nobody_knows_with_another_seed_until_somebody_sends() {
    for silence in [0, 3_000, 5_000, 8_000, 9_500] {
        let (mut one, mut other) = (classifier(1), classifier(2));
        let place = send(&mut one, at(0), 1);
        let (_, state) = one.flow_state(place, at(0)).expect("it came");
        let Arrival::Placed(flow) = other.bring_flow(at(0), one.seed_mark(), &state) else {
            panic!("there is room");
        };
        // by none of the turns in between it seems to be another's
        assert_eq!(send(&mut other, at(silence), 7), flow.index, "after {silence} ms");
        assert_ne!(send(&mut other, at(silence + 1), 1), flow.index);
    }
}

#[test]
fn a_place_that_is_given_up_is_free_again() {
    let mut one = classifier(1);
    let place = send(&mut one, at(0), 1);
    let (flow, state) = one.flow_state(place, at(0)).expect("it came");
    assert_eq!(one.find_flow(&state), Some(flow));
    assert!(one.forget_flow(flow) && !one.forget_flow(flow));
    assert_eq!((one.flows(), one.find_flow(&state)), (0, None));
    assert!(one.flow_state(place, at(0)).is_none());
}

/// Strangers that nobody has answered, and a connection that is alive.
#[test]
fn those_that_another_table_told_of_take_no_place_from_their_equals() {
    let (mut one, mut other) = (classifier_of(1, 512), classifier_of(2, 64));
    let mut states = Vec::new();
    for port in 0..200_u16 {
        let build = Build::udp(([192, 0, 2, 1], 53).into(), ([10, 0, 0, 1], 1_000 + port).into());
        let bytes = build.to_vec();
        let place = one.one(at(0), Side::Wan, &Headers::parse(&bytes), &bytes).flow.index;
        states.push(one.flow_state(place, at(0)).expect("it came").1);
    }
    let mark = one.seed_mark();
    let arrivals: Vec<Arrival> =
        states.iter().map(|state| other.bring_flow(at(0), mark, state)).collect();
    let count = |is: fn(&Arrival) -> bool| arrivals.iter().filter(|a| is(a)).count();
    let placed = count(|arrival| matches!(arrival, Arrival::Placed(_)));
    assert!((50..=64).contains(&placed), "{placed}");
    assert_eq!((other.flows(), count(|a| *a == Arrival::NoRoom)), (placed, 200 - placed));
    // one that stands better does, and it is said
    let alive: Vec<Arrival> = (1..20)
        .map(|mac| {
            let place = send(&mut one, at(1), mac);
            let (_, state) = one.flow_state(place, at(1)).expect("it came");
            other.bring_flow(
                at(1),
                mark,
                &FlowState { ends: u64::from(mac), kind: states[0].kind, ..state },
            )
        })
        .collect();
    assert!(alive.iter().any(|arrival| matches!(arrival, Arrival::Instead(_))));
    assert!(!alive.contains(&Arrival::NoRoom));
}
