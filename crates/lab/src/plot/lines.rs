//! Lines, distributions and marked points. Names stand at the ends of their lines where these are
//! apart, else in a legend.

use std::fmt::Write;

use super::axis::{Ends, Ruler};
use super::frame::{self, Area, at};
use super::{COLOURS, Line, Plot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Straight,
    Steps,
    Marked,
}

/// Between names at the ends of lines.
const APART: f64 = 15.0;
/// How far a name may stand from the end of its line.
const AWAY: f64 = 40.0;

pub(crate) fn draw(plot: &Plot, lines: &[Line], style: Style) -> String {
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let widest = names.iter().map(|name| frame::width(name)).fold(0.0, f64::max);
    let direct = frame::area(0.0, (widest + 14.0).min(180.0));
    let (x, y) = rulers(plot, lines, direct);
    let ends: Vec<Option<f64>> = lines.iter().map(|line| end(line, &y)).collect();
    // distributions all end at 1
    let places = places(&ends, direct).filter(|_| style != Style::Steps && widest < 170.0);
    let mut body = String::new();
    let Some(places) = places else {
        let swatch = |number: usize, x: f64, y: f64| {
            let path = format!("M{} {}h20", at(x), at(y));
            stroke(number, &path) + &marks(style, number, &[(x + 10.0, y)])
        };
        let (rows, legend) = frame::legend(&names, &swatch);
        let area = frame::area(rows, 0.0);
        let (x, y) = rulers(plot, lines, area);
        body += &legend;
        body += &inside(plot, lines, style, area, &x, &y);
        return frame::element(plot, area, &body);
    };
    body += &inside(plot, lines, style, direct, &x, &y);
    for (number, (line, place)) in lines.iter().zip(places).enumerate() {
        let class = format!("label t{}", number % COLOURS);
        if let Some(place) = place {
            body += &frame::text(&class, direct.right + 8.0, &at(place), "0.32em", &line.name);
        }
    }
    frame::element(plot, direct, &body)
}

fn rulers(plot: &Plot, lines: &[Line], area: Area) -> (Ruler, Ruler) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let xs = points().map(|(x, _)| *x);
    let ys = points().map(|(_, y)| *y);
    let x = Ruler::new(&plot.x, xs, (area.left, area.right), Ends::Data);
    let y = Ruler::new(&plot.y, ys, (area.bottom, area.top), Ends::Ticks);
    (x, y)
}

fn inside(plot: &Plot, lines: &[Line], style: Style, area: Area, x: &Ruler, y: &Ruler) -> String {
    let mut body = frame::upright(area, y, &plot.y.name) + &frame::level(area, x, &plot.x.name);
    for (number, line) in lines.iter().enumerate() {
        let places = line.points.iter();
        let places = places.filter_map(|(a, b)| Some((x.place(*a)?, y.place(*b)?)));
        let places = thinned(&places.collect::<Vec<_>>());
        body += &stroke(number, &path(&places, style));
        body += &marks(style, number, &places);
    }
    body
}

/// Of the points in one column of pixels only the first, lowest, highest and last can be seen.
fn thinned(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for column in places.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let (first, last) = (column[0], column[column.len() - 1]);
        let low = column.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
        let high = column.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        let mut of: Vec<(f64, f64)> =
            [Some(first), low, high, Some(last)].into_iter().flatten().collect();
        of.sort_by(|a, b| a.0.total_cmp(&b.0));
        of.dedup();
        kept.extend(of);
    }
    kept
}

fn path(places: &[(f64, f64)], style: Style) -> String {
    let mut path = String::new();
    for (number, (x, y)) in places.iter().enumerate() {
        let (x, y) = (at(*x), at(*y));
        let _ = match (number, style) {
            (0, _) => write!(path, "M{x} {y}"),
            (_, Style::Steps) => write!(path, "H{x}V{y}"),
            _ => write!(path, "L{x} {y}"),
        };
    }
    path
}

fn stroke(number: usize, path: &str) -> String {
    // colours come again, then broken
    let broken = if number >= COLOURS { " broken" } else { "" };
    format!("<path class=\"line l{}{broken}\" d=\"{path}\"/>\n", number % COLOURS)
}

fn marks(style: Style, number: usize, places: &[(f64, f64)]) -> String {
    if style != Style::Marked || places.is_empty() {
        return String::new();
    }
    // a shape for each, for who sees no colours
    let shape = ["m-4 -4h8v8h-8z", "m0 -5l5 9h-10z", "m0 -5l5 5l-5 5l-5 -5z", "m0 5l5 -9h-10z"];
    let mut path = String::new();
    for (x, y) in places {
        let (x, y) = (at(*x), at(*y));
        let _ = match number % 5 {
            0 => write!(path, "M{x} {y}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"),
            other => write!(path, "M{x} {y}{}", shape[other - 1]),
        };
    }
    format!("<path class=\"fill f{}\" d=\"{path}\"/>\n", number % COLOURS)
}

/// How high a line ends.
fn end(line: &Line, y: &Ruler) -> Option<f64> {
    line.points.iter().rev().find_map(|(_, value)| y.place(*value))
}

/// Where names at the ends of lines can stand without touching; none if that is too far from them.
fn places(ends: &[Option<f64>], area: Area) -> Option<Vec<Option<f64>>> {
    let mut order: Vec<usize> = (0..ends.len()).filter(|number| ends[*number].is_some()).collect();
    let end = |number: usize| ends[number].unwrap_or(area.bottom);
    order.sort_by(|a, b| end(*a).total_cmp(&end(*b)));
    let mut places = vec![None; ends.len()];
    let mut free = area.top - APART;
    for number in &order {
        free = end(*number).max(free);
        places[*number] = Some(free);
        free += APART;
    }
    // what was pushed below the area goes up again
    let mut least = area.bottom;
    for number in order.iter().rev() {
        let place = places[*number].unwrap_or(least).min(least);
        places[*number] = Some(place);
        least = place - APART;
    }
    let near = |number: &usize| (places[*number].unwrap_or(0.0) - end(*number)).abs() <= AWAY;
    order.iter().all(near).then_some(places)
}
