//! Time as an argument: an `Instant` is nanoseconds since whatever the caller calls zero, a `Span`
//! is the distance between two. Arithmetic saturates: a clock that goes backwards gives a span of
//! zero, never a panic.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use crate::parse::{Unreadable, decimal, trim_zeros};

/// A point in time: nanoseconds since the caller's own zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Instant {
    /// The caller's zero.
    pub const ZERO: Instant = Instant(0);
    /// Later than anything.
    pub const MAX: Instant = Instant(u64::MAX);

    /// `ns` nanoseconds after zero.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Instant(ns)
    }

    /// Nanoseconds since zero.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not.
    #[must_use]
    pub const fn since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than anything.
    pub const MAX: Span = Span(u64::MAX);

    /// `n` nanoseconds.
    #[must_use]
    pub const fn from_ns(n: u64) -> Self {
        Span(n)
    }

    /// `n` microseconds.
    #[must_use]
    pub const fn from_us(n: u64) -> Self {
        Span(n.saturating_mul(1_000))
    }

    /// `n` milliseconds.
    #[must_use]
    pub const fn from_ms(n: u64) -> Self {
        Span(n.saturating_mul(1_000_000))
    }

    /// `n` seconds.
    #[must_use]
    pub const fn from_secs(n: u64) -> Self {
        Span(n.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }
}

impl Add<Span> for Instant {
    type Output = Instant;
    fn add(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Instant {
    type Output = Instant;
    fn sub(self, span: Span) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl FromStr for Span {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Span, Unreadable> {
        const EXPECTED: &str = "a time such as \"20ms\", \"1.5s\" or \"5m\"";
        let (number, unit) = decimal(text, EXPECTED)?;
        let Some(&(_, ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(Unreadable::unit(text, unit, EXPECTED, &["ns", "us", "ms", "s", "m", "h"]));
        };
        number.times(ns).map(Span).ok_or_else(|| Unreadable::range(text, EXPECTED))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = match self.0 {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("us", 1_000),
            1_000_000..1_000_000_000 => ("ms", 1_000_000),
            n if n % 60_000_000_000 == 0 => ("m", 60_000_000_000),
            _ => ("s", 1_000_000_000),
        };
        f.pad(&trim_zeros(self.0, size, unit))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_going_backwards_gives_no_time() {
        assert_eq!(Instant::from_ns(5).since(Instant::from_ns(9)), Span::ZERO);
        assert_eq!(Instant::MAX + Span::from_secs(1), Instant::MAX);
    }

    #[test]
    fn reads_and_writes_what_an_operator_says() {
        for (text, ns) in [("20ms", 20_000_000), ("1.5s", 1_500_000_000), ("5m", 300_000_000_000)] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.ns(), ns);
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn a_wrong_unit_is_named() {
        let error = "20mbit".parse::<Span>().unwrap_err().to_string();
        assert!(error.contains("mbit") && error.contains("ms"), "{error}");
    }
}
