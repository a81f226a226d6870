//! Chance that is the same on every machine: a small generator with a seed and a stream, and draws
//! made of additions, multiplications, divisions and square roots only. Those are exact by IEEE
//! 754, while the logarithms of two C libraries differ in their last bit.

use weir_units::Span;

/// A stream of random numbers: xoshiro256** by Blackman and Vigna, seeded through splitmix64.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

/// How often something happens, in parts of 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u32);

impl Chance {
    /// It never happens.
    pub const NEVER: Chance = Chance(0);
    /// It always happens.
    pub const ALWAYS: Chance = Chance(1_000_000_000);

    /// So many of 10^9.
    #[must_use]
    pub const fn ppb(parts: u32) -> Chance {
        Chance(if parts > Chance::ALWAYS.0 { Chance::ALWAYS.0 } else { parts })
    }

    /// So many of a million.
    #[must_use]
    pub const fn ppm(parts: u32) -> Chance {
        Chance::ppb(parts.saturating_mul(1_000))
    }

    /// So many of 100.
    #[must_use]
    pub const fn percent(parts: u32) -> Chance {
        Chance::ppb(parts.saturating_mul(10_000_000))
    }

    /// As a part of one.
    #[must_use]
    pub fn part(self) -> f64 {
        f64::from(self.0) / 1e9
    }
}

impl Random {
    /// The numbers of `seed`; each `stream` of a seed is independent of the others, so that a new
    /// link does not change the luck of the old ones.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut mix = seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Random { state: std::array::from_fn(|_| splitmix(&mut mix)) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether it happens this time. What never or always happens draws nothing.
    pub(crate) fn happens(&mut self, chance: Chance) -> bool {
        match chance {
            Chance::NEVER => false,
            Chance::ALWAYS => true,
            Chance(parts) => self.below(u64::from(Chance::ALWAYS.0)) < u64::from(parts),
        }
    }

    /// Evenly from above 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let whole = ((self.bits() >> 11) + 1) as f64;
        whole / 9_007_199_254_740_992.0
    }

    /// From a bell curve of mean 0 and deviation 1 (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        // 27 tries in a row fail with a chance of 10^-18
        for _ in 0..64 {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * (-2.0 * ln(s) / s).sqrt();
            }
        }
        0.0
    }

    /// From an exponential distribution of mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -ln(self.unit())
    }

    /// From a Pareto distribution that starts at 0 (Lomax): `shape` 3 has the mean 0.5.
    pub(crate) fn pareto(&mut self, shape: f64) -> f64 {
        exp(self.exponential() / shape.max(0.1)) - 1.0
    }

    /// A span from an exponential distribution.
    pub fn wait(&mut self, mean: Span) -> Span {
        times(mean, self.exponential())
    }
}

/// `span` x `factor`, not below zero.
#[must_use]
pub(crate) fn times(span: Span, factor: f64) -> Span {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a cast of a float saturates; below a nanosecond nobody looks"
    )]
    Span::from_ns((span.ns() as f64 * factor) as u64)
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The natural logarithm of a positive, normal number, to about 14 digits.
#[must_use]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    #[expect(clippy::cast_possible_wrap, reason = "an exponent has 11 bits")]
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1_023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1_023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 atanh((m - 1) / (m + 1)); the argument is below 0.172, so 9 terms suffice
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let (mut term, mut sum) = (z, 0.0);
    for n in 0..10_u32 {
        sum += term / f64::from(2 * n + 1);
        term *= square;
    }
    #[expect(clippy::cast_precision_loss, reason = "an exponent has 11 bits")]
    let whole = exponent as f64;
    2.0 * sum + whole * std::f64::consts::LN_2
}

/// e to the power of `x`, to about 14 digits; the largest number where it would not fit.
#[must_use]
pub fn exp(x: f64) -> f64 {
    if x > 700.0 {
        return f64::MAX;
    }
    if x < -700.0 {
        return 0.0;
    }
    // e^x = (e^(x / 1024))^1024
    let small = x / 1_024.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..12_u32 {
        term *= small / f64::from(n);
        sum += term;
    }
    for _ in 0..10 {
        sum *= sum;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_mixed_as_published() {
        let mut state = 1_234_567;
        let first: Vec<u64> = (0..3).map(|_| splitmix(&mut state)).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn the_generator_is_the_published_one() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| random.bits()).collect();
        assert_eq!(first, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn own_logarithm_and_power_agree_with_the_library_to_twelve_digits() {
        for n in 1..2_000 {
            let x = f64::from(n) / 137.0;
            assert!((ln(x) - x.ln()).abs() < 1e-12, "ln {x}");
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-11, "exp {x}");
            assert!((exp(-x) / (-x).exp() - 1.0).abs() < 1e-11, "exp -{x}");
        }
        assert!((ln(1e-300) - (1e-300_f64).ln()).abs() < 1e-9);
    }

    #[test]
    fn draws_have_the_moments_they_should() {
        let mut random = Random::new(7, 0);
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || random.unit()) - 0.5).abs() < 0.005);
        assert!(mean(&mut || random.normal()).abs() < 0.01);
        assert!((mean(&mut || random.normal().powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(&mut || random.exponential()) - 1.0).abs() < 0.01);
        assert!((mean(&mut || random.pareto(3.0)) - 0.5).abs() < 0.02);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let first = |seed, stream| Random::new(seed, stream).bits();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_eq!(first(3, 4), first(3, 4));
    }

    #[test]
    fn a_chance_is_met_in_the_long_run() {
        let mut random = Random::new(1, 1);
        let hits = (0..1_000_000).filter(|_| random.happens(Chance::percent(3))).count();
        assert!((29_400..30_600).contains(&hits), "{hits}");
        assert!(!random.happens(Chance::NEVER) && random.happens(Chance::ALWAYS));
    }
}
