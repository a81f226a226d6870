//! The integers of the allocators. A rate is in 2^-12 bytes per 2^21 ns, 0.93 bit/s: so that the
//! bytes of a packet become a rate, and a rate times nanoseconds an amount, by shifting. 10 Tbit/s
//! are less than 2^44 of them; the sum over 2^20 nodes fits 64 bits.
//!
//! What is configured and what is a level is kept in 32 bits: 26 of the number, 6 of how far it is
//! shifted. That is right to 3 in 10^8.

use weir_units::Rate;

/// The base-2 logarithm of the nanoseconds that a rate counts in.
pub(crate) const PERIOD: u32 = 21;
/// Bits behind the byte in a rate.
pub(crate) const FRACTION: u32 = 12;
/// Bits behind the byte in what a rate gives over nanoseconds: a credit, a queue.
pub(crate) const CREDIT: u32 = PERIOD + FRACTION;
/// The longest packet that counts as it is.
pub(crate) const LONGEST: u32 = 65_535;
/// No rate is above this: 10 Tbit/s, as in `Rate`.
pub(crate) const MOST: u64 = units(Rate::MAX);

/// A rate in units of this crate, to the nearest.
pub(crate) const fn units(rate: Rate) -> u64 {
    let wide = ((rate.bps() as u128) << 30) + 500_000_000;
    narrow(wide / 1_000_000_000)
}

/// The rate of so many units, to the nearest bit per second.
pub(crate) fn rate(units: u64) -> Rate {
    let wide = (u128::from(units) * 1_000_000_000 + (1 << 29)) >> 30;
    Rate::from_bps(narrow(wide))
}

/// The low 64 bits, or the most they hold.
pub(crate) const fn narrow(wide: u128) -> u64 {
    if wide > u64::MAX as u128 {
        u64::MAX
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        {
            wide as u64
        }
    }
}

/// How many bits a number has.
pub(crate) const fn bits(number: u64) -> u32 {
    64 - number.leading_zeros()
}

/// A number of 64 bits in 32, rounded down to 26 significant bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed(u32);

impl Packed {
    /// More than any number.
    pub(crate) const INFINITE: Packed = Packed(u32::MAX);

    pub(crate) const fn new(number: u64) -> Packed {
        let shift = bits(number).saturating_sub(26);
        #[expect(clippy::cast_possible_truncation, reason = "26 bits are left")]
        let packed = shift << 26 | (number >> shift) as u32;
        Packed(packed)
    }

    /// The number; 2^63 for one that is infinite, which falls out of shifting as well: this is
    /// done some fifty times for a packet five levels down.
    pub(crate) const fn get(self) -> u64 {
        ((self.0 & 0x3ff_ffff) as u64) << (self.0 >> 26)
    }

    pub(crate) fn is_infinite(self) -> bool {
        self == Packed::INFINITE
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_are_right_to_26_bits() {
        for number in [0, 1, (1 << 26) - 1, 1 << 26, 671_088_640, MOST, MOST << 16, u64::MAX >> 1] {
            let back = Packed::new(number).get();
            assert!(back <= number && number - back <= number >> 25, "{number} {back}");
        }
        assert!(Packed::new(u64::MAX).get() > u64::MAX >> 1);
        assert_eq!(Packed::INFINITE.get(), 1 << 63);
        assert!(Packed::new(0).is_zero() && !Packed::new(1).is_zero());
    }

    #[test]
    fn rates_come_back() {
        for bps in [0, 8_000, 20_000, 100_000_000, 10_000_000_000, Rate::MAX.bps()] {
            let back = rate(units(Rate::from_bps(bps))).bps();
            assert!(back.abs_diff(bps) <= 1, "{bps} {back}");
        }
        const { assert!(MOST < 1 << 44) };
    }
}
