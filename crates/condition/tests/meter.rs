//! Meters against what they promise and against a slow one that was written apart.

use proptest::prelude::*;
use weir_condition::meter::{Colour, Meter, Terms};
use weir_units::limits::POLICE_BURST_BYTES;
use weir_units::{Bytes, Instant, Rate};

/// What was agreed, in plain numbers: bits per second and bytes.
#[derive(Clone, Copy, Debug)]
struct Said {
    two_rates: bool,
    rate: u64,
    burst: u64,
    peak: u64,
    excess: u64,
}

/// When a frame comes (nanoseconds after the one before, or before it), its bytes, its colour.
type Coming = (i64, u64, Colour);

impl Said {
    fn terms(self) -> Terms {
        let (rate, peak) = (Rate::from_bps(self.rate), Rate::from_bps(self.peak));
        let (burst, excess) = (Bytes::new(self.burst), Bytes::new(self.excess));
        match self.two_rates {
            true => Terms::two_rates(rate, burst, peak, excess),
            false => Terms::single_rate(rate, burst, excess),
        }
    }
}

/// From 8 kbit/s to 10 Tbit/s, as many small as large ones.
fn rates() -> impl Strategy<Value = u64> {
    (13u32..44, any::<u64>()).prop_map(|(bits, low)| {
        ((1 << bits) | (low & ((1 << bits) - 1))).clamp(8_000, Rate::MAX.bps())
    })
}

fn bursts() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        8 => 0u64..10_000,
        4 => 0u64..1_000_000,
        1 => 0..=POLICE_BURST_BYTES,
        1 => Just(POLICE_BURST_BYTES),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    (any::<bool>(), rates(), bursts(), rates(), bursts()).prop_map(
        |(two_rates, rate, burst, peak, excess)| {
            let (rate, peak) = if two_rates { (rate.min(peak), rate.max(peak)) } else { (rate, 0) };
            Said { two_rates, rate, burst, peak, excess }
        },
    )
}

fn colours() -> impl Strategy<Value = Colour> {
    prop_oneof![4 => Just(Colour::Green), 1 => Just(Colour::Yellow), 1 => Just(Colour::Red)]
}

/// Frames close enough together that the buckets matter, at any rate.
fn frames() -> impl Strategy<Value = Vec<Coming>> {
    let pause = (0u32..40, any::<u64>(), 0u8..12).prop_map(|(bits, low, back)| {
        let ns = i64::try_from(low & ((1 << bits) - 1)).expect("is small");
        if back == 0 { -ns } else { ns }
    });
    let bytes = prop_oneof![9 => 1u64..2_000, 1 => 1u64..100_000, 1 => 1..=2 * POLICE_BURST_BYTES];
    prop::collection::vec((pause, bytes, colours()), 1..80)
}

/// Moments of the frames, with the latest so far: time that goes backwards brings nothing.
fn moments(frames: &[Coming]) -> Vec<(u64, u64)> {
    let (mut now, mut latest) = (1u64 << 50, 0);
    let one = |&(pause, ..): &Coming| {
        now = now.saturating_add_signed(pause);
        latest = now.max(latest);
        (now, latest)
    };
    frames.iter().map(one).collect()
}

fn run(said: Said, frames: &[Coming], aware: bool) -> Vec<Colour> {
    let (terms, moments) = (said.terms(), moments(frames));
    let mut meter = Meter::full(&terms);
    let mut one = |(&(_, bytes, came), &(now, _)): (&Coming, &(u64, u64))| {
        let came = if aware { came } else { Colour::Green };
        meter.colour(&terms, Instant::from_ns(now), Bytes::new(bytes), came)
    };
    frames.iter().zip(&moments).map(&mut one).collect()
}

/// The RFCs by what is owed instead of what is there: a frame conforms if what is owed behind it is
/// no more than the burst; time pays. In whole 10^-9 bits of 128 places.
fn slowly(said: Said, frames: &[Coming], aware: bool) -> Vec<Colour> {
    const BYTE: u128 = 8_000_000_000;
    let (mut owed_first, mut owed_second) = (0u128, 0u128);
    let mut before = None;
    let mut colours = Vec::new();
    for (&(_, bytes, came), (_, latest)) in frames.iter().zip(moments(frames)) {
        let passed = u128::from(latest - before.unwrap_or(latest));
        before = Some(latest);
        let paid = passed * u128::from(said.rate);
        let to_spare = paid.saturating_sub(owed_first);
        owed_first = owed_first.saturating_sub(paid);
        let paid = if said.two_rates { passed * u128::from(said.peak) } else { to_spare };
        owed_second = owed_second.saturating_sub(paid);

        let cost = u128::from(bytes) * BYTE;
        let first = owed_first + cost <= u128::from(said.burst) * BYTE;
        let second = owed_second + cost <= u128::from(said.excess) * BYTE;
        let came = if aware { came } else { Colour::Green };
        let colour = if said.two_rates {
            match came {
                _ if !second => Colour::Red,
                Colour::Red => Colour::Red,
                Colour::Green if first => Colour::Green,
                _ => Colour::Yellow,
            }
        } else {
            match came {
                Colour::Green if first => Colour::Green,
                Colour::Green | Colour::Yellow if second => Colour::Yellow,
                _ => Colour::Red,
            }
        };
        if colour == Colour::Green {
            owed_first += cost;
        }
        if colour == Colour::Yellow || (said.two_rates && colour == Colour::Green) {
            owed_second += cost;
        }
        colours.push(colour);
    }
    colours
}

/// The most bytes of these colours beyond `rate` in any window, in 10^-9 bits.
fn worst(frames: &[Coming], colours: &[Colour], of: &[Colour], rate: u64) -> i128 {
    let moments = moments(frames);
    let mut worst = i128::MIN;
    for from in 0..frames.len() {
        let mut bits = 0;
        for to in from..frames.len() {
            if of.contains(&colours[to]) {
                bits += i128::from(frames[to].1) * 8_000_000_000;
            }
            let time = i128::from(moments[to].1 - moments[from].1);
            worst = worst.max(bits - i128::from(rate) * time);
        }
    }
    worst
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn as_the_slow_one_says(said in said(), frames in frames(), aware in any::<bool>()) {
        prop_assert_eq!(run(said, &frames, aware), slowly(said, &frames, aware));
    }

    #[test]
    fn no_window_has_more_than_was_agreed(
        said in said(),
        frames in frames(),
        aware in any::<bool>(),
    ) {
        use Colour::{Green, Yellow};
        let colours = run(said, &frames, aware);
        let bits = |bytes: u64| i128::from(bytes) * 8_000_000_000;
        prop_assert!(worst(&frames, &colours, &[Green], said.rate) <= bits(said.burst));
        if said.two_rates {
            let both = worst(&frames, &colours, &[Green, Yellow], said.peak);
            prop_assert!(both <= bits(said.excess));
        } else {
            let yellow = worst(&frames, &colours, &[Yellow], said.rate);
            prop_assert!(yellow <= bits(said.excess));
            let both = worst(&frames, &colours, &[Green, Yellow], said.rate);
            prop_assert!(both <= bits(said.burst) + bits(said.excess));
        }
    }

    #[test]
    fn who_is_aware_makes_no_colour_better(said in said(), frames in frames()) {
        for (colour, (.., came)) in run(said, &frames, true).into_iter().zip(&frames) {
            prop_assert!(colour >= *came);
        }
    }

    /// At a steady pace above the rate, what is green is the rate to a frame and the burst: nothing
    /// drifts, however long it takes.
    #[test]
    fn nothing_drifts(rate in rates(), bytes in 64u64..1_519, above in 2u64..5) {
        // the bucket has room for what comes between two ticks of the clock
        let burst = 2 * bytes + rate / 8_000_000_000 + 1;
        let said = Said { two_rates: false, rate, burst, peak: 0, excess: 0 };
        // frames come `above` times as fast, at whole nanoseconds
        let moment = |n: u128| {
            let ns = n * u128::from(bytes) * 8_000_000_000 / u128::from(rate * above);
            u64::try_from(ns).expect("is small")
        };
        let terms = said.terms();
        let mut meter = Meter::full(&terms);
        let (mut green, frames) = (0u64, 20_000);
        for n in 0..frames {
            let now = Instant::from_ns(moment(n));
            let colour = meter.colour(&terms, now, Bytes::new(bytes), Colour::Green);
            green += u64::from(colour == Colour::Green);
        }
        let time = u128::from(moment(frames - 1));
        let may = u128::from(rate) * time + u128::from(said.burst) * 8_000_000_000;
        let did = u128::from(green * bytes) * 8_000_000_000;
        prop_assert!(did <= may);
        // what is left is in the bucket
        prop_assert!(may - did <= u128::from(burst) * 8_000_000_000, "{} of {}", did, may);
    }
}
