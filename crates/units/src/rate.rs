//! Bits per second.

use std::fmt;
use std::str::FromStr;

use crate::parse::{Decimal, Unreadable, decimal, trim_zeros};
use crate::{Bytes, Span};

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const NS_PER_SECOND: u128 = 1_000_000_000;

impl Rate {
    /// Nothing may pass.
    pub const ZERO: Rate = Rate(0);
    /// The most a rate can be: 10 Tbit/s, so that sums and products stay inside their integers.
    pub const MAX: Rate = Rate(10_000_000_000_000);

    /// `bits` per second, at most [`Rate::MAX`].
    #[must_use]
    pub const fn from_bps(bits: u64) -> Self {
        if bits > Rate::MAX.0 { Rate::MAX } else { Rate(bits) }
    }

    /// Bits per second.
    #[must_use]
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// How long `bytes` take at this rate, rounded up; [`Span::MAX`] at rate zero.
    #[must_use]
    pub fn time_for(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let ns = (u128::from(bytes.get()) * 8 * NS_PER_SECOND).div_ceil(u128::from(self.0));
        Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How many whole bytes pass in `span`.
    #[must_use]
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.ns()) / (8 * NS_PER_SECOND);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// `millionths` of this rate: `rate.part(970_000)` is 97 %.
    #[must_use]
    pub const fn part(self, millionths: u32) -> Rate {
        #[expect(clippy::cast_possible_truncation, reason = "MAX x 2^32 / 10^6 fits 64 bits")]
        Rate::from_bps((self.0 as u128 * millionths as u128 / 1_000_000) as u64)
    }

    /// The sum, at most [`Rate::MAX`].
    #[must_use]
    pub const fn plus(self, other: Rate) -> Rate {
        Rate::from_bps(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn minus(self, other: Rate) -> Rate {
        Rate(self.0.saturating_sub(other.0))
    }
}

const UNITS: [(&str, u64); 5] = [
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
];

impl FromStr for Rate {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Rate, Unreadable> {
        const EXPECTED: &str = "a rate such as \"20kbit\", \"1.5mbit\" or \"10gbit\"";
        let (number, unit) =
            decimal(text, EXPECTED).map_err(|wrong| wrong.meaning(with_point(text)))?;
        let lower = unit.to_ascii_lowercase();
        let known = UNITS.iter().find(|(name, _)| *name == lower || format!("{name}/s") == lower);
        let Some(&(_, bits)) = known else {
            if matches!(lower.as_str(), "b" | "kb" | "mb" | "gb" | "kib" | "mib" | "gib") {
                let why = "that is an amount of bytes, not bits per second";
                return Err(Unreadable::new(text, why, EXPECTED).meaning(meant(number, unit)));
            }
            let names = UNITS.map(|(name, _)| name);
            let wrong = Unreadable::unit(text, unit, EXPECTED, &names);
            return Err(wrong.meaning(with_point(text).or_else(|| meant(number, unit))));
        };
        match number.times(bits) {
            Some(rate) if rate <= Rate::MAX.0 => Ok(Rate(rate)),
            _ => Err(Unreadable::range(text, EXPECTED)),
        }
    }
}

/// The same number with a decimal point instead of a comma, if that is a rate.
fn with_point(text: &str) -> Option<String> {
    if !text.contains(',') {
        return None;
    }
    let text = text.trim().replacen(',', ".", 1);
    let (number, unit) = decimal(&text, "").ok()?;
    let is_rate = UNITS.iter().any(|(name, _)| name.eq_ignore_ascii_case(unit));
    (is_rate && number.times(1).is_some()).then_some(text)
}

/// What a unit that other programs know was meant to be. A large B is a byte, a small b a bit;
/// without any unit, lines are a few megabits or thousands of kilobits.
fn meant(number: Decimal, unit: &str) -> Option<String> {
    let few = number.times(1)?;
    let (scale, rest) = match unit.chars().next().map(|c| c.to_ascii_lowercase()) {
        None if few < 1_000 => (1_000_000, ""),
        None if few < 100_000 => (1_000, ""),
        None => (1, ""),
        Some('k') => (1_000, &unit[1..]),
        Some('m') => (1_000_000, &unit[1..]),
        Some('g') => (1_000_000_000, &unit[1..]),
        Some('b') => (1, unit),
        Some(_) => return None,
    };
    let lower = rest.to_ascii_lowercase();
    let bare = lower.trim_start_matches("ega").trim_start_matches("ilo").trim_start_matches("iga");
    let bits = match bare.trim_end_matches("/sec").trim_end_matches("/s").trim_end_matches("ps") {
        "byte" | "bytes" => 8,
        "b" if rest.starts_with('B') => 8,
        "" | "b" | "bit" | "bits" => 1,
        _ => return None,
    };
    number
        .times(scale * bits)
        .filter(|&bits| bits <= Rate::MAX.0)
        .map(|bits| Rate(bits).to_string())
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = match self.0 {
            0..1_000 => ("bit", 1),
            1_000..1_000_000 => ("kbit", 1_000),
            1_000_000..1_000_000_000 => ("mbit", 1_000_000),
            1_000_000_000..1_000_000_000_000 => ("gbit", 1_000_000_000),
            _ => ("tbit", 1_000_000_000_000),
        };
        f.pad(&trim_zeros(self.0, size, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_an_operator_writes() {
        for (text, bits) in [
            ("20kbit", 20_000),
            ("1.5mbit", 1_500_000),
            ("10 gbit", 10_000_000_000),
            ("64bit", 64),
            ("1.544Mbit/s", 1_544_000),
            ("1_500kbit", 1_500_000),
            (".5kbit", 500),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().bps(), bits, "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, word) in [
            ("20", "no unit"),
            ("20kb", "bytes"),
            ("-1mbit", "negative"),
            ("fast", "number"),
            ("99999999999gbit", "large"),
            ("1.2.3mbit", "number"),
            ("_mbit", "number"),
            ("._mbit", "number"),
            ("1_mbit", "number"),
            (".mbit", "number"),
            ("0.00000000000000000000000000000000000000000000000001mbit", "digits"),
        ] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn says_what_was_meant() {
        for (text, meant) in [
            ("10M", Some("10mbit")),
            ("10Mbps", Some("10mbit")),
            ("10 Mbits/s", Some("10mbit")),
            ("1.5g", Some("1.5gbit")),
            ("2MB/s", Some("16mbit")),
            ("2mbyte", Some("16mbit")),
            ("10mb", Some("10mbit")),
            ("10MB", Some("80mbit")),
            ("10 megabit", Some("10mbit")),
            ("100", Some("100mbit")),
            ("20000", Some("20mbit")),
            ("1,5mbit", Some("1.5mbit")),
            ("20 apples", None),
            ("fast", None),
            ("10mibi", None),
        ] {
            let error = text.parse::<Rate>().unwrap_err();
            assert_eq!(error.meant(), meant, "{text}");
        }
    }

    #[test]
    fn a_frame_takes_its_time() {
        let rate: Rate = "100mbit".parse().unwrap();
        assert_eq!(rate.time_for(Bytes::new(1250)), Span::from_us(100));
        assert_eq!(rate.bytes_in(Span::from_us(100)), Bytes::new(1250));
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Span::MAX);
    }

    proptest! {
        #[test]
        fn text_reads_back_to_the_same_rate(bits in 0..=Rate::MAX.bps()) {
            let rate = Rate::from_bps(bits);
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Span>();
            let _ = text.parse::<Bytes>();
        }
    }
}
