//! Reading a decimal number with a unit, without a float: `1.5mbit` is 15 tenths of a megabit.

use std::fmt;

/// Why a word could not be read, in words for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    text: String,
    why: String,
    expected: &'static str,
    meant: Option<String>,
}

impl Unreadable {
    /// The text is not of the expected form.
    #[must_use]
    pub fn new(text: &str, why: impl Into<String>, expected: &'static str) -> Self {
        Unreadable { text: text.to_owned(), why: why.into(), expected, meant: None }
    }

    /// The same where the text was probably meant to say this.
    #[must_use]
    pub fn meaning(mut self, meant: Option<String>) -> Self {
        self.meant = meant;
        self
    }

    /// The same where more than what was read is expected.
    #[must_use]
    pub fn expecting(mut self, expected: &'static str) -> Self {
        self.expected = expected;
        self
    }

    pub(crate) fn unit(text: &str, unit: &str, expected: &'static str, known: &[&str]) -> Self {
        let why = if unit.is_empty() {
            format!("it has no unit (one of {})", known.join(", "))
        } else {
            format!("\"{unit}\" is not one of {}", known.join(", "))
        };
        Unreadable::new(text, why, expected)
    }

    pub(crate) fn range(text: &str, expected: &'static str) -> Self {
        Unreadable::new(text, "the number is too large", expected)
    }

    /// What would have been read, for a message that says how to cure it.
    #[must_use]
    pub fn expected(&self) -> &'static str {
        self.expected
    }

    /// What is wrong with the text.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// What was probably meant, as it would be read.
    #[must_use]
    pub fn meant(&self) -> Option<&str> {
        self.meant.as_deref()
    }

    /// How to cure it.
    #[must_use]
    pub fn help(&self) -> String {
        match &self.meant {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("write {}", self.expected),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not {}: {}", self.text, self.expected, self.why)?;
        self.meant.as_ref().map_or(Ok(()), |meant| write!(f, "; did you mean \"{meant}\"?"))
    }
}

impl std::error::Error for Unreadable {}

/// A decimal number as an integer and the count of its digits behind the point.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    digits: u64,
    behind: u32,
}

impl Decimal {
    /// The number times `unit`, or `None` when it does not fit; parts below one are dropped.
    pub(crate) fn times(self, unit: u64) -> Option<u64> {
        let product = u128::from(self.digits) * u128::from(unit);
        u64::try_from(product / 10u128.pow(self.behind)).ok()
    }
}

/// Splits `1.5mbit` into its number and its unit.
pub(crate) fn decimal<'t>(
    text: &'t str,
    expected: &'static str,
) -> Result<(Decimal, &'t str), Unreadable> {
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let has_digits = number.bytes().any(|b| b.is_ascii_digit());
    // a line under a number divides digits, as in 1_000
    let divides = |part: &str| part.split('_').all(|digits| !digits.is_empty());
    let divided = |part: &str| !part.contains('_') || divides(part);
    if fraction.contains('.') || !has_digits || !divided(whole) || !divided(fraction) {
        let why = if trimmed.starts_with('-') {
            "it is negative"
        } else if number.is_empty() {
            "it does not start with a number"
        } else {
            "the number cannot be read"
        };
        return Err(Unreadable::new(text, why, expected));
    }
    let fraction = fraction.trim_end_matches('0');
    let mut digits: u64 = 0;
    for digit in whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit) {
        digits = digits
            .checked_mul(10)
            .and_then(|d| d.checked_add(u64::from(digit - b'0')))
            .ok_or_else(|| Unreadable::range(text, expected))?;
    }
    let behind = fraction.bytes().filter(u8::is_ascii_digit).count();
    let behind = u32::try_from(behind).unwrap_or(u32::MAX);
    if behind > 18 {
        return Err(Unreadable::new(text, "it has too many digits behind the point", expected));
    }
    Ok((Decimal { digits, behind }, unit.trim()))
}

/// `value / size` as a decimal without superfluous zeros, and the unit.
pub(crate) fn trim_zeros(value: u64, size: u64, unit: &str) -> String {
    let (whole, rest) = (value / size, value % size);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let width = size.ilog10() as usize;
    // sizes that are no power of ten (minutes) never come here with a rest
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}
