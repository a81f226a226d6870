//! What holds for every policy and every traffic: the index answers as the rules asked one by one,
//! the tables never change an answer, both directions share a flow, and every bound holds.

mod reference;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use proptest::prelude::*;
use weir_classify::{By, Classifier, Event, Index, Limits, Owner, Seed, Spec, Target, core_of};
use weir_packet::{Build, Flow, Fragment, Headers, Label, Pool, Side};
use weir_units::{Instant, Span};

fn classifier(spec: &weir_classify::Spec, flows: usize) -> Classifier {
    let limits = Limits { flows, fragmented: 8 };
    Classifier::new(limits, Seed::new(7), Index::compile(spec))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_index_answers_as_the_rules_asked_one_by_one(
        spec in world::spec(),
        frames in prop::collection::vec(world::frame(), 1..60),
    ) {
        let classifier = classifier(&spec, 8);
        for (side, bytes) in frames {
            let headers = Headers::parse(&bytes);
            let explained = classifier.explain(side, &headers, &bytes);
            let expected = reference::answer(&spec, side, &headers, &bytes);
            prop_assert_eq!(explained.rule.zip(explained.class), expected);
            if let Some(leaf) = reference::fixed_leaf(&spec, side, &headers, &bytes) {
                prop_assert_eq!(explained.leaf, Some(leaf));
            }
        }
    }

    #[test]
    fn the_tables_never_change_an_answer(
        specs in (world::spec(), world::spec()),
        frames in prop::collection::vec((world::frame(), 0u64..2_000), 1..200),
        flows in 0usize..40,
        swap_at in 0usize..200,
    ) {
        let mut classifier = classifier(&specs.0, flows);
        let mut now = Instant::ZERO;
        let mut spec = &specs.0;
        for (n, ((side, bytes), ms)) in frames.into_iter().enumerate() {
            now += Span::from_ms(ms);
            if n == swap_at {
                let _ = classifier.replace(Index::compile(&specs.1));
                spec = &specs.1;
            }
            classifier.age(now, |leaf| leaf % 3 != 0);
            let headers = Headers::parse(&bytes);
            let before = classifier.explain(side, &headers, &bytes);
            let label = classifier.one(now, side, &headers, &bytes);
            let after = classifier.explain(side, &headers, &bytes);
            if headers.fragment == Fragment::Later {
                continue;
            }
            prop_assert_eq!(Some(label.leaf), after.leaf);
            if let Some(leaf) = before.leaf {
                prop_assert_eq!(label.leaf, leaf);
            }
            if let Some(leaf) = reference::fixed_leaf(spec, side, &headers, &bytes) {
                prop_assert_eq!(label.leaf, leaf);
            }
            prop_assert!(classifier.flows() <= classifier.flow_capacity());
            prop_assert_eq!(classifier.is_current(label.flow), !label.flow.is_none());
        }
    }

    #[test]
    fn a_burst_is_labelled_as_its_frames_one_by_one(
        spec in world::spec(),
        frames in prop::collection::vec(world::frame(), 1..150),
        flows in 0usize..40,
    ) {
        let (mut one, mut many) = (classifier(&spec, flows), classifier(&spec, flows));
        let mut pool = Pool::new(200, 256);
        for side in [Side::Lan, Side::Wan] {
            let bytes: Vec<_> = frames.iter().filter(|f| f.0 == side).map(|f| &f.1).collect();
            let tokens: Vec<_> = bytes.iter().map(|bytes| pool.fill(bytes).unwrap()).collect();
            let headers: Vec<_> = bytes.iter().map(|bytes| Headers::parse(bytes)).collect();
            let mut labels = vec![Label::new(side, &Headers::EMPTY); bytes.len()];
            many.burst(Instant::ZERO, side, &pool, &tokens, &headers, &mut labels);
            for ((bytes, headers), label) in bytes.iter().zip(&headers).zip(&labels) {
                prop_assert_eq!(&one.one(Instant::ZERO, side, headers, bytes), label);
            }
        }
        prop_assert_eq!(one.counters(), many.counters());
    }

    #[test]
    fn both_directions_share_a_flow(
        spec in world::spec(),
        (side, bytes) in world::frame(),
    ) {
        let headers = Headers::parse(&bytes);
        if !headers.is_ip() || headers.fragment == Fragment::Later {
            return Ok(());
        }
        let back = Headers {
            source: headers.target,
            target: headers.source,
            source_port: headers.target_port,
            target_port: headers.source_port,
            ..headers
        };
        let mut classifier = classifier(&spec, 64);
        let there = classifier.one(Instant::ZERO, side, &headers, &bytes);
        let back = classifier.one(Instant::ZERO, side.other(), &back, &bytes);
        prop_assert_eq!(there.flow, back.flow);
        prop_assert!(!there.flow.is_none());
        prop_assert_eq!(classifier.flows(), 1);
    }

    #[test]
    fn the_core_of_a_frame_is_that_of_the_host_on_its_label(
        frames in prop::collection::vec(world::frame(), 1..60),
        (seed, routers, cores) in (any::<u128>(), 0u8..4, 1u32..33),
    ) {
        let cores = NonZeroU32::new(cores).expect("one at least");
        let routers = (0..routers).map(|number| [2, 0, 0, 0, 0, number]).collect();
        let index = Index::compile(&Spec { routers, ..Spec::default() });
        let limits = Limits { flows: 64, fragmented: 8 };
        let mut classifier = Classifier::new(limits, Seed::new(seed), index);
        let homes = classifier.homes(cores);
        for (side, bytes) in frames {
            let headers = Headers::parse(&bytes);
            let core = homes.core(side, &bytes);
            let label = classifier.one(Instant::ZERO, side, &headers, &bytes);
            prop_assert_eq!(core, core_of(label.host, cores));
        }
    }

    #[test]
    fn a_leaf_has_one_owner_and_a_host_one_leaf(
        spec in world::spec(),
        frames in prop::collection::vec((world::frame(), 0u64..1_500), 1..200),
    ) {
        let mut classifier = classifier(&spec, 64);
        let mut now = Instant::ZERO;
        let mut owners: BTreeMap<u32, Owner> = BTreeMap::new();
        for ((side, bytes), ms) in frames {
            now += Span::from_ms(ms);
            classifier.age(now, |_| true);
            classifier.one(now, side, &Headers::parse(&bytes), &bytes);
            while let Some(event) = classifier.event() {
                match event {
                    Event::Made { leaf, owner, .. } => {
                        prop_assert_eq!(owners.insert(leaf, owner), None);
                    }
                    Event::Asked { .. } => prop_assert!(false, "everybody is known"),
                    Event::Aged { leaf, owner, .. } => {
                        prop_assert_eq!(owners.remove(&leaf), Some(owner));
                    }
                }
            }
            for (&leaf, &owner) in &owners {
                prop_assert_eq!(classifier.owner(leaf), Some(owner));
            }
        }
        for class in &spec.classes {
            let Target::Each(each) = &class.target else { continue };
            if each.by == By::LanHost {
                // known by its first address, which another host may use as well
                continue;
            }
            let leaves = each.first_leaf..each.first_leaf + each.count;
            let of_class: Vec<_> = owners.range(leaves).map(|(_, owner)| owner).collect();
            let different: BTreeSet<_> = of_class.iter().collect();
            prop_assert!(of_class.len() <= each.count as usize);
            prop_assert_eq!(of_class.len(), different.len());
        }
    }

    #[test]
    fn a_flood_never_takes_the_place_of_a_connection_that_is_alive(
        flows in 8usize..64,
        alive in 1u16..64,
        seed in any::<u128>(),
    ) {
        let limits = Limits { flows, fragmented: 8 };
        let index = Index::compile(&weir_classify::Spec::default());
        let mut classifier = Classifier::new(limits, Seed::new(seed), index);
        let mut now = Instant::ZERO;
        let udp = |a: u16, b: u16| {
            let from = std::net::SocketAddr::from(([10, 0, 0, 1], a));
            let to = std::net::SocketAddr::from(([192, 0, 2, 1], b));
            (Build::udp(from, to).to_vec(), Build::udp(to, from).to_vec())
        };
        let mut held: Vec<(u16, Flow)> = Vec::new();
        for port in 0..alive {
            let (there, back) = udp(port, 53);
            let flow = classifier.one(now, Side::Lan, &Headers::parse(&there), &there).flow;
            classifier.one(now, Side::Wan, &Headers::parse(&back), &back);
            if !flow.is_none() {
                held.push((port, flow));
            }
        }
        for n in 0..2_000u16 {
            now += Span::from_ms(1);
            let (there, _) = udp(n, 7_777);
            let label = classifier.one(now, Side::Lan, &Headers::parse(&there), &there);
            prop_assert_eq!(label.leaf, 0);
            prop_assert!(classifier.flows() <= flows);
        }
        for (port, flow) in held {
            let (there, _) = udp(port, 53);
            let label = classifier.one(now, Side::Lan, &Headers::parse(&there), &there);
            prop_assert_eq!(label.flow, flow);
        }
    }
}
