//! What holds for any impairments, whatever they are.

use proptest::prelude::*;
use weir_shape::{FrameCost, Layer};
use weir_sim::Chance;
use weir_sim::impair::{
    Delivery, Impair, Impairments, Jitter, Limit, Loss, Outage, Reorder, Service, Shape, Shift,
    Trace,
};
use weir_units::{Instant, Rate, Span};

fn chance() -> impl Strategy<Value = Chance> {
    (0..=1_000_000_000_u32).prop_map(Chance::ppb)
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (chance(), chance()).prop_map(|(chance, correlation)| Loss::Random { chance, correlation }),
        (0..50_u64, 0..50_u64).prop_map(|(every, phase)| Loss::Periodic { every, phase }),
        prop::collection::btree_set(1..200_u64, 0..20)
            .prop_map(|set| Loss::List(set.into_iter().collect())),
        (chance(), chance(), chance(), chance()).prop_map(|(worse, better, in_good, in_bad)| {
            Loss::Bursts { worse, better, in_good, in_bad }
        }),
    ]
}

fn service() -> impl Strategy<Value = Service> {
    prop_oneof![
        Just(Service::Free),
        (1_000..10_000_000_u64, 1..50_usize).prop_map(|(bps, frames)| Service::Rate {
            rate: Rate::from_bps(bps),
            link: FrameCost { layer: Layer::Ip, overhead: 0 },
            limit: Limit::Frames(frames),
        }),
        Just(Service::Trace {
            trace: Trace::read("1\n1\n4\n9").expect("a trace"),
            limit: Limit::Bytes(20_000),
        }),
    ]
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let span = || (0..50_000_000_u64).prop_map(Span::from_ns);
    let jitter = prop_oneof![
        Just(None),
        (span(), chance())
            .prop_map(|(s, correlation)| Some(Jitter { shape: Shape::Normal(s), correlation })),
        (span(), chance()).prop_map(|(s, correlation)| Some(Jitter {
            shape: Shape::Pareto { scale: s, shape_tenths: 25 },
            correlation
        })),
    ];
    let outage = prop_oneof![
        Just(Outage::Never),
        (span(), span()).prop_map(|(up, down)| Outage::Random { up, down }),
    ];
    (outage, loss(), service(), span(), jitter, chance(), chance()).prop_map(
        |(outage, loss, service, delay, jitter, duplicate, corrupt)| Impairments {
            outage,
            loss,
            service,
            delay,
            jitter,
            duplicate,
            corrupt,
            ..Impairments::default()
        },
    )
}

fn fates(what: &Impairments, seed: u64, packets: &[(u64, usize)]) -> Vec<(Instant, Delivery)> {
    let mut impair = Impair::new(what, seed, 0);
    let mut now = Instant::ZERO;
    packets
        .iter()
        .map(|&(gap, bytes)| {
            now += Span::from_ns(gap);
            (now, impair.on_packet(now, bytes))
        })
        .collect()
}

proptest! {
    #[test]
    fn same_seed_same_fates_and_the_order_is_kept(
        what in impairments(),
        seed: u64,
        packets in prop::collection::vec((0..3_000_000_u64, 60..1_515_usize), 1..200),
    ) {
        let run = fates(&what, seed, &packets);
        prop_assert_eq!(&run, &fates(&what, seed, &packets));
        let mut last = Instant::ZERO;
        for (&(sent, fate), (_, bytes)) in run.iter().zip(&packets) {
            if let Delivery::Arrives(arrival) = fate {
                prop_assert!(arrival.at >= sent, "before it was sent");
                prop_assert!(arrival.at >= last, "out of order");
                prop_assert!(arrival.wrong_bit.is_none_or(|bit| (bit as usize) < 8 * bytes));
                last = arrival.at;
            }
        }
    }
}

#[test]
fn a_reordered_packet_overtakes_or_falls_behind() {
    let packets = vec![(1_000_000, 100); 10];
    let order = |by| {
        let what = Impairments {
            delay: Span::from_ms(5),
            reorder: Some(Reorder { gap: 5, chance: Chance::ALWAYS, by }),
            ..Impairments::default()
        };
        let mut at: Vec<_> = fates(&what, 1, &packets)
            .iter()
            .enumerate()
            .map(|(n, (_, fate))| match fate {
                Delivery::Arrives(arrival) => (arrival.at, n + 1),
                Delivery::Lost(_) => panic!("nothing is lost here"),
            })
            .collect();
        at.sort();
        at.into_iter().map(|(_, n)| n).collect::<Vec<_>>()
    };
    assert_eq!(order(Shift::Early), [5, 1, 2, 3, 4, 10, 6, 7, 8, 9]);
    assert_eq!(order(Shift::Late(Span::from_us(2_500))), [1, 2, 3, 4, 6, 7, 5, 8, 9, 10]);
}

#[test]
fn seeds_differ() {
    let what = Impairments {
        loss: Loss::Random { chance: Chance::percent(50), correlation: Chance::NEVER },
        ..Impairments::default()
    };
    let packets = vec![(1_000, 100); 64];
    assert_ne!(fates(&what, 1, &packets), fates(&what, 2, &packets));
}
