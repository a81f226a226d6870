//! Bars in groups, with whiskers of one deviation and, where there is room, their values.

use std::fmt::Write;

use super::axis::{Ends, Ruler};
use super::frame::{self, at};
use super::{Bars, COLOURS, Plot};
use crate::number::show;
use crate::result::Figure;

/// The widest a bar gets.
const WIDEST: f64 = 46.0;

#[expect(clippy::cast_precision_loss, reason = "a few bars")]
pub(crate) fn draw(plot: &Plot, groups: &[String], sets: &[Bars]) -> String {
    let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    let swatch = |number: usize, x: f64, y: f64| {
        bar(number, &format!("M{} {}h14v10h-14z", at(x + 6.0), at(y - 5.0)))
    };
    let (rows, legend) = frame::legend(&names, &swatch);
    let (rows, legend) = if sets.len() > 1 { (rows, legend) } else { (0.0, String::new()) };
    let area = frame::area(rows, 0.0);
    let reach = |figure: &Figure| {
        let sd = figure.sd.unwrap_or(0.0);
        // bars stand on zero, so it is always on the axis
        [figure.mean - sd, figure.mean + sd, 0.0]
    };
    let y =
        Ruler::new(&plot.y, figures(sets).flat_map(reach), (area.bottom, area.top), Ends::Ticks);
    let mut body = legend + &frame::upright(area, &y, &plot.y.name);
    let group = (area.right - area.left) / groups.len().max(1) as f64;
    let wide = (group * 0.82 / sets.len().max(1) as f64).min(WIDEST);
    let longest = figures(sets).map(|figure| frame::width(&value(figure.mean))).fold(0.0, f64::max);
    // values are set smaller than labels
    let valued = longest * 0.84 <= wide;
    for (number, name) in groups.iter().enumerate() {
        let middle = area.left + group * (number as f64 + 0.5);
        body += &frame::text("tick middle", middle, &at(area.bottom + 18.0), "0", name);
        for (of, set) in sets.iter().enumerate() {
            let Some(Some(figure)) = set.values.get(number) else { continue };
            let left = middle + wide * (of as f64 - sets.len() as f64 / 2.0);
            body += &one(of, left, wide, *figure, &y, valued);
        }
    }
    body += &frame::base(area, &plot.x.name);
    frame::element(plot, area, &body)
}

fn figures(sets: &[Bars]) -> impl Iterator<Item = &Figure> {
    sets.iter().flat_map(|set| &set.values).flatten()
}

fn one(of: usize, left: f64, wide: f64, figure: Figure, y: &Ruler, valued: bool) -> String {
    let Some(top) = y.place(figure.mean) else { return String::new() };
    let base = y.base();
    let gap = (wide * 0.08).min(1.5);
    let (x, width) = (at(left + gap), at(wide - 2.0 * gap));
    let mut out = bar(of, &format!("M{x} {}h{width}V{}h-{width}z", at(base), at(top)));
    let middle = left + wide / 2.0;
    let mut above = top.min(base);
    if let Some(sd) = figure.sd.filter(|sd| *sd > 0.0) {
        let (low, high) = (y.place(figure.mean - sd), y.place(figure.mean + sd));
        let (low, high) = (low.unwrap_or(base), high.unwrap_or(top));
        let half = (wide * 0.2).min(5.0);
        let (x, half2) = (at(middle - half), at(2.0 * half));
        let _ = writeln!(
            out,
            "<path class=\"whisker\" d=\"M{x} {}h{half2}M{} {}V{}M{x} {}h{half2}\"/>",
            at(high),
            at(middle),
            at(high),
            at(low),
            at(low)
        );
        above = above.min(high);
    }
    if valued {
        out += &frame::text("value middle", middle, &at(above - 4.0), "0", &value(figure.mean));
    }
    out
}

/// A value over its bar, to three digits: the tables have more.
fn value(number: f64) -> String {
    show(format!("{number:.2e}").parse().unwrap_or(number))
}

/// A bar; where colours come again it is hollow.
fn bar(number: usize, path: &str) -> String {
    let hollow = if number >= COLOURS { " hollow" } else { "" };
    let colour = number % COLOURS;
    format!("<path class=\"fill f{colour} l{colour}{hollow}\" d=\"{path}\"/>\n")
}
