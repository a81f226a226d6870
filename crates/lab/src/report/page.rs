//! How a report looks: on paper, in light and in dark.

pub(crate) const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
";

/// A sign for each verdict, so that colour is not needed.
pub(crate) const VERDICTS: [(&str, &str); 4] = [
    ("holds", "<b class=\"yes\">✓</b>"),
    ("does not hold", "<b class=\"no\">✗</b>"),
    ("pending", "<b>…</b>"),
    ("void", "<b>∅</b>"),
];

/// Colours after Okabe and Ito, which differ for nearly every eye; darker on white and lighter on
/// black than theirs where a thin line needs it.
pub(crate) const STYLE: &str = concat!("<style>\n", include_str!("page.css"), "</style>\n");
