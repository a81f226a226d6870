//! Numbers as files keep them and as people read them.

/// To nine significant digits: what differs beyond is the arithmetic of the machine, not the
/// result, so the same run gives the same bytes anywhere. Never minus zero.
pub(crate) fn stable(number: f64) -> f64 {
    if number == 0.0 {
        return 0.0;
    }
    format!("{number:.8e}").parse().unwrap_or(number)
}

/// To four significant digits, thousands apart.
pub(crate) fn show(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) {
        return format!("{number:.1e}");
    }
    let places = [1.0, 10.0, 100.0, 1000.0].iter().filter(|bound| size >= **bound).count();
    let places = if size >= 0.1 || size == 0.0 { 4 - places } else { 5 };
    let text = format!("{number:.places$}");
    let text = if places > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let text = if text == "-0" { "0" } else { text };
    if size >= 10_000.0 { grouped(text) } else { text.to_owned() }
}

/// `12345678` as `12 345 678`.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "numbers are handed over by value")]
pub fn grouped(whole: impl ToString) -> String {
    let whole = whole.to_string();
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut text = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            // a thin space would be nicer, but not every terminal has one
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_digits_are_kept() {
        assert_eq!(stable(1.0 / 3.0), 0.333_333_333);
        assert_eq!(stable(123_456_789_012.0), 123_456_789_000.0);
        assert_eq!(stable(0.1 + 0.2), 0.3);
        assert!(stable(-0.0).is_sign_positive());
    }

    #[test]
    fn people_read_four() {
        let shown = [0.0, 0.973_33, 12.0, 1.5, 93.206, 2_310.4, 12_345_678.4, -20_000.0, 0.012_345];
        let shown: Vec<String> = shown.into_iter().map(show).collect();
        let expected =
            ["0", "0.9733", "12", "1.5", "93.21", "2310", "12 345 678", "-20 000", "0.01235"];
        assert_eq!(shown, expected);
        assert_eq!(
            (show(3.1e-7), show(-0.0), show(1e20)),
            ("3.1e-7".into(), "0".into(), "1.0e20".into())
        );
    }
}
