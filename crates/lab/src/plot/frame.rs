//! What all plots share: the area, its grid and labels, the legend, and text that is safe in a
//! page.

use std::fmt::Write;

use super::Plot;
use super::axis::Ruler;

pub(crate) const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
/// Of a letter of labels, on average, at their size of 12 pixels.
const LETTER: f64 = 6.6;
const ROW: f64 = 18.0;

/// Where things are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// An area under a legend of some rows, with room for labels to its right.
pub(crate) fn area(legend_rows: f64, right: f64) -> Area {
    let top = 30.0 + legend_rows * ROW;
    Area { left: 64.0, right: WIDTH - right.max(16.0), top, bottom: top + HEIGHT - 70.0 }
}

/// The `svg` element around a body.
pub(crate) fn element(plot: &Plot, area: Area, body: &str) -> String {
    let (title, height) =
        (escaped(&plot.title), area.bottom + if plot.x.name.is_empty() { 26.0 } else { 44.0 });
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" \
         aria-label=\"{title}\">\n{body}</svg>\n",
        at(height)
    )
}

/// Horizontal lines of the grid with their labels, and the name of the axis above them.
pub(crate) fn upright(area: Area, y: &Ruler, name: &str) -> String {
    let mut out = String::new();
    for (value, label) in &y.ticks {
        let Some(place) = y.place(*value) else { continue };
        let (x, far, place) = (at(area.left), at(area.right), at(place));
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{x} {place}H{far}\"/>");
        out += &text("tick end", area.left - 8.0, &place, "0.32em", label);
    }
    out + &text("name", 4.0, &at(area.top - 14.0), "0", name)
}

/// The axis at the bottom with its ticks and its name.
pub(crate) fn level(area: Area, x: &Ruler, name: &str) -> String {
    let mut out = String::new();
    for (value, label) in &x.ticks {
        let Some(place) = x.place(*value) else { continue };
        let (across, down) = (at(place), at(area.bottom));
        let _ = writeln!(out, "<path class=\"axis\" d=\"M{across} {down}v5\"/>");
        out += &text("tick middle", place, &at(area.bottom + 18.0), "0", label);
    }
    out + &base(area, name)
}

/// The line at the bottom, and the name under it.
pub(crate) fn base(area: Area, name: &str) -> String {
    let (x, far, down) = (at(area.left), at(area.right), at(area.bottom));
    let line = format!("<path class=\"axis\" d=\"M{x} {down}H{far}\"/>\n");
    let middle = f64::midpoint(area.left, area.right);
    line + &text("name middle", middle, &at(area.bottom + 37.0), "0", name)
}

/// The rows that a legend of these names takes, and how it is drawn.
pub(crate) fn legend(names: &[&str], swatch: &dyn Fn(usize, f64, f64) -> String) -> (f64, String) {
    let (mut x, mut y, mut rows) = (64.0, 10.0, 1.0);
    let mut out = String::new();
    for (number, name) in names.iter().enumerate() {
        let wide = 26.0 + width(name) + 16.0;
        if x + wide > WIDTH && x > 64.0 {
            (x, y, rows) = (64.0, y + ROW, rows + 1.0);
        }
        out += &swatch(number, x, y);
        out += &text("label", x + 26.0, &at(y), "0.32em", name);
        x += wide;
    }
    (rows, out)
}

pub(crate) fn text(class: &str, x: f64, y: &str, dy: &str, what: &str) -> String {
    if what.is_empty() {
        return String::new();
    }
    let (x, what) = (at(x), escaped(what));
    let dy = if dy == "0" { String::new() } else { format!(" dy=\"{dy}\"") };
    format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{dy}>{what}</text>\n")
}

/// About how wide a text is.
#[expect(clippy::cast_precision_loss, reason = "a label")]
pub(crate) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// A place in the drawing, to a tenth of a pixel.
pub(crate) fn at(place: f64) -> String {
    let text = format!("{place:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text without meaning to HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
