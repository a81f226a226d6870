//! Amounts that may differ by direction (`{ down = ..., up = ... }`) and may be a part of the
//! parent's.

use std::fmt;
use std::str::FromStr;

use weir_units::{ByWay, Bytes, Rate, Span, Unreadable};

use crate::problem::{At, Problems};
use crate::reader::Entry;

/// A rate, or a part of the parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many bits per second.
    Rate(Rate),
    /// Millionths of the parent's.
    Part(u32),
}

impl Amount {
    /// The rate, when the parent has `whole`.
    #[must_use]
    pub fn of(self, whole: Rate) -> Rate {
        match self {
            Amount::Rate(rate) => rate,
            Amount::Part(millionths) => whole.part(millionths),
        }
    }
}

impl FromStr for Amount {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Amount, Unreadable> {
        const EXPECTED: &str =
            "a rate such as \"20kbit\" or \"1.5mbit\", or a percentage such as \"40%\"";
        match text.trim().strip_suffix('%') {
            Some(number) => percent(number, text, EXPECTED).map(Amount::Part),
            None => match text.parse() {
                Ok(rate) => Ok(Amount::Rate(rate)),
                Err(error) => Err(error.expecting(EXPECTED)),
            },
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Rate(rate) => rate.fmt(f),
            Amount::Part(n) if n % 10_000 == 0 => write!(f, "{}%", n / 10_000),
            Amount::Part(n) => {
                let text = format!("{}.{:04}", n / 10_000, n % 10_000);
                write!(f, "{}%", text.trim_end_matches('0'))
            }
        }
    }
}

/// A percentage above 0 and up to 100, in millionths.
fn percent(number: &str, text: &str, expected: &'static str) -> Result<u32, Unreadable> {
    let (whole, fraction) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 4 {
        let why = "the number before the % cannot be read (at most four decimal places)";
        return Err(Unreadable::new(text, why, expected));
    }
    let millionths = format!("{whole}{fraction:0<4}").parse::<u32>().unwrap_or(u32::MAX);
    if millionths == 0 || millionths > 1_000_000 {
        return Err(Unreadable::new(text, "a percentage is above 0% and at most 100%", expected));
    }
    Ok(millionths)
}

/// How much may leave at once: an amount of bytes, or what the ceiling carries in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// So many bytes.
    Bytes(Bytes),
    /// What the ceiling carries in this time.
    Time(Span),
}

impl Burst {
    /// In bytes, beside this ceiling.
    #[must_use]
    pub fn at(self, ceil: Rate) -> Bytes {
        match self {
            Burst::Bytes(bytes) => bytes,
            Burst::Time(time) => ceil.bytes_in(time),
        }
    }
}

impl FromStr for Burst {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Burst, Unreadable> {
        const EXPECTED: &str = "an amount such as \"15kb\" or a time such as \"10ms\"";
        let bytes = text.parse().map(Burst::Bytes);
        bytes.or_else(|_| text.parse().map(Burst::Time)).map_err(|_: Unreadable| {
            Unreadable::new(text, "it is neither an amount of bytes nor a time", EXPECTED)
        })
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Burst::Bytes(bytes) => bytes.fmt(f),
            Burst::Time(span) => span.fmt(f),
        }
    }
}

/// Reads `"2mbit"` or `{ down = "2mbit", up = "1mbit" }`.
pub(crate) fn both<T: Copy + FromStr<Err = Unreadable>>(
    entry: Option<Entry<'_>>,
    name: &str,
    expected: &str,
    problems: &mut Problems,
) -> ByWay<Option<At<T>>> {
    let Some(entry) = entry else { return ByWay { down: None, up: None } };
    if entry.value.is_table() {
        let what = format!("\"{name}\"");
        let Some(mut table) = entry.table(&what, problems) else {
            return ByWay { down: None, up: None };
        };
        let mut one = |direction: &str| {
            let entry = table.take(direction)?;
            Some(entry.at(entry.read(name, expected, problems)?))
        };
        let both = ByWay { down: one("down"), up: one("up") };
        table.finish(&["down", "up"], problems);
        return both;
    }
    let value = entry.read(name, expected, problems).map(|value| entry.at(value));
    ByWay { down: value, up: value }
}

/// For which directions a value is written, readable or not.
pub(crate) fn says(entry: Option<Entry<'_>>) -> ByWay<bool> {
    match entry.map(|e| e.value.as_table()) {
        None => ByWay::same(false),
        Some(None) => ByWay::same(true),
        Some(Some(table)) => {
            let has = |direction| table.keys().any(|key| key.get_ref().as_ref() == direction);
            ByWay { down: has("down"), up: has("up") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_are_exact_to_four_digits() {
        assert_eq!("40%".parse::<Amount>().unwrap(), Amount::Part(400_000));
        assert_eq!("33.3333%".parse::<Amount>().unwrap(), Amount::Part(333_333));
        for text in ["0%", "101%", "-1%", "x%", "1.23456%", "%"] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
        assert_eq!(Amount::Part(333_333).to_string(), "33.3333%");
        assert_eq!(Amount::Part(970_000).of(Rate::from_bps(100)), Rate::from_bps(97));
    }

    #[test]
    fn a_burst_is_bytes_or_time() {
        assert_eq!("15kb".parse::<Burst>().unwrap(), Burst::Bytes(Bytes::new(15_000)));
        assert_eq!("10ms".parse::<Burst>().unwrap(), Burst::Time(Span::from_ms(10)));
        assert!("10mbit".parse::<Burst>().is_err());
    }
}
