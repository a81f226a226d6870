//! Any input at all: times that stand still, jump and go backwards, parameters of zero and without
//! end, states that another algorithm left. Nothing may panic, and arithmetic is checked here.

use proptest::prelude::*;
use weir_shape::aqm::{
    Aqm, AqmState, Arriving, Cobalt, Codel, Curve, Decision, Depth, Leaving, Pie, Random, Red, Wred,
};
use weir_units::{Bytes, Instant, Rate, Span};

/// Small numbers, huge ones, and what lies between.
fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..4, any::<u64>(), (0u32..64).prop_map(|bit| 1 << bit), Just(u64::MAX)]
}

fn aqm() -> impl Strategy<Value = Aqm> {
    let curve = || {
        (any_size(), any_size(), any::<u32>(), any::<bool>()).prop_map(|(min, max, top, gentle)| {
            Curve::new(Bytes::new(min), Bytes::new(max), top, gentle)
        })
    };
    let curves = [curve(), curve(), curve()];
    let span = || any_size().prop_map(Span::from_ns);
    let rate = any_size().prop_map(Rate::from_bps);
    prop_oneof![
        Just(Aqm::None),
        (curve(), any::<u32>(), span()).prop_map(|(c, s, t)| Aqm::Red(Red::new(c, s, t))),
        (curves, any::<u32>(), span()).prop_map(|(c, s, t)| Aqm::Wred(Wred::new(c, s, t))),
        (span(), span(), any::<u32>()).prop_map(|(t, i, m)| Aqm::Codel(Codel::new(t, i, m))),
        (span(), span()).prop_map(|(t, i)| Aqm::Cobalt(Cobalt::new(t, i))),
        (span(), span()).prop_map(|(t, i)| Aqm::Pie(Pie::new(t, i))),
        (rate, 0u8..5, prop::option::of(any_size()), prop::option::of(any_size())).prop_map(
            |(rate, kind, a, b)| {
                let (span, bytes) =
                    (|n: Option<u64>| n.map(Span::from_ns), |n: Option<u64>| n.map(Bytes::new));
                match kind {
                    0 => Aqm::Red(Red::for_rate(rate, bytes(a), bytes(b), None)),
                    1 => Aqm::Wred(Wred::for_rate(rate, bytes(a), bytes(b), None)),
                    2 => Aqm::Codel(Codel::for_rate(rate, span(a), span(b))),
                    3 => Aqm::Cobalt(Cobalt::for_rate(rate, span(a), span(b))),
                    _ => Aqm::Pie(Pie::for_rate(rate, span(a), span(b))),
                }
            }
        ),
    ]
}

/// One call: which, how the time moves, and the frame with its queue.
type Call = (u8, i8, u64, u64, u32, u64, u8, bool);

fn call() -> impl Strategy<Value = Call> {
    let depth = (prop_oneof![0u32..3, any::<u32>()], any_size());
    (0u8..8, -1i8..3, any_size(), any_size(), depth, any::<u8>(), any::<bool>()).prop_map(
        |(which, way, by, since, (frames, bytes), colour, can_mark)| {
            (which, way, by, since, frames, bytes, colour, can_mark)
        },
    )
}

proptest! {
    #[test]
    fn nothing_panics(
        aqms in prop::collection::vec(aqm(), 1..4),
        calls in prop::collection::vec(call(), 1..200),
        seed in any::<u64>(),
    ) {
        let (mut state, mut random) = (AqmState::default(), Random::new(seed));
        let (mut now, mut at) = (Instant::ZERO, 0);
        for (which, way, by, since, frames, bytes, colour, can_mark) in calls {
            now = match way {
                -1 => now - Span::from_ns(by),
                0 => now,
                // most times are of a size that queues have
                1 => now + Span::from_ns(by % 100_000_000),
                _ => now + Span::from_ns(by),
            };
            let aqm = &aqms[at % aqms.len()];
            let depth = Depth { frames, bytes };
            let fate = match which {
                0..3 => {
                    let frame = Arriving { colour, can_mark };
                    aqm.arrive(&mut state, now, frame, depth, &mut random)
                }
                3..5 => {
                    let since = Instant::from_ns(since);
                    aqm.leave(&mut state, now, Leaving { since, can_mark }, depth, &mut random)
                }
                5 => { aqm.overflow(&mut state, now); Decision::Take }
                6 => { aqm.emptied(&mut state, now); Decision::Take }
                _ => { at += 1; Decision::Take }
            };
            prop_assert!(fate != Decision::Mark || can_mark);
        }
    }
}
