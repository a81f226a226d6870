//! Amounts of bytes.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use crate::parse::{Unreadable, decimal, trim_zeros};

/// An amount of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);

    /// `n` bytes.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Bytes(n)
    }

    /// How many.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

const UNITS: [(&str, u64); 7] = [
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

impl FromStr for Bytes {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Bytes, Unreadable> {
        const EXPECTED: &str = "an amount of bytes such as \"1500b\", \"15kb\" or \"2mb\"";
        let (number, unit) = decimal(text, EXPECTED)?;
        let lower = unit.to_ascii_lowercase();
        let Some(&(_, size)) = UNITS.iter().find(|(name, _)| *name == lower) else {
            if lower.ends_with("bit") {
                let why = "that is a rate in bits, not an amount of bytes";
                return Err(Unreadable::new(text, why, EXPECTED));
            }
            let names = UNITS.map(|(name, _)| name);
            return Err(Unreadable::unit(text, unit, EXPECTED, &names));
        };
        number.times(size).map(Bytes).ok_or_else(|| Unreadable::range(text, EXPECTED))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = match self.0 {
            0..1_000 => ("b", 1),
            1_000..1_000_000 => ("kb", 1_000),
            1_000_000..1_000_000_000 => ("mb", 1_000_000),
            _ => ("gb", 1_000_000_000),
        };
        f.pad(&trim_zeros(self.0, size, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_bits_are_told_apart() {
        assert_eq!("15kb".parse::<Bytes>().unwrap(), Bytes::new(15_000));
        assert_eq!("1KiB".parse::<Bytes>().unwrap(), Bytes::new(1_024));
        let error = "15kbit".parse::<Bytes>().unwrap_err().to_string();
        assert!(error.contains("rate in bits"), "{error}");
    }

    #[test]
    fn text_reads_back() {
        for n in [0, 1, 999, 1_000, 1_514, 65_536, 1_000_001] {
            let size = Bytes::new(n);
            assert_eq!(size.to_string().parse::<Bytes>().unwrap(), size);
        }
    }
}
