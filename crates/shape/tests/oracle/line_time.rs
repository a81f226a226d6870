//! The line carries its rate to the byte, whatever its layer counts: each frame starts when those
//! before it have taken their time, to the nanosecond, and no remainder is lost in a long run.

use proptest::prelude::*;
use weir_shape::{FrameCost, Layer};
use weir_units::Span;

use crate::case::{Case, Told, rate};
use crate::world::World;

const LAYERS: [Layer; 6] =
    [Layer::Ip, Layer::Ethernet, Layer::Wire, Layer::Atm, Layer::Docsis, Layer::Ptm];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn every_frame_starts_to_the_nanosecond(
        rate in rate(),
        odd in 0u64..999,
        layer in prop::sample::select(&LAYERS),
        overhead in -20i16..60,
        seed in any::<u64>(),
    ) {
        let sizes = (60, 1_514);
        let told = Told { sizes, ..Told::default() };
        let nodes = vec![told, Told { weight: 3, ..told }];
        let case = Case { rate: rate + odd, nodes, seed };
        let mut spec = case.spec();
        spec.link = FrameCost { layer, overhead };
        let mut world = World::of(&case, spec);
        let (start, mut bits, mut wrong) = (world.now, 0u128, None);
        world.run(start + Span::from_secs(1 << 30), 20_000, |world, sent| {
            let due = bits * 1_000_000_000 / u128::from(world.spec.rate.bps());
            let off = u128::from(world.now.since(start).ns()).abs_diff(due);
            if off > 0 && wrong.is_none() {
                wrong = Some((bits, off));
            }
            bits += u128::from(sent.bytes) * 8;
        });
        prop_assert_eq!(wrong, None, "bits before the frame, nanoseconds off");
    }
}
