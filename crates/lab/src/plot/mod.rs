//! Plots as SVG that stands in a page: lines over time, distributions, points, and bars with
//! whiskers. The page gives colours by class, so that one drawing serves light and dark.

mod axis;
mod bars;
mod frame;
mod lines;

pub(crate) use axis::{Axis, Scale};
pub(crate) use frame::escaped;

use crate::result::Figure;

/// A drawing with a title that says what is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// A sentence.
    pub title: String,
    /// To the right. Bars have groups there, and only its name counts.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn.
    pub shape: Shape,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// From point to point.
    Lines(Vec<Line>),
    /// Level from point to point: distributions.
    Steps(Vec<Line>),
    /// The same as lines, each point marked.
    Points(Vec<Line>),
    /// Bars in groups, one of each set in every group.
    Bars {
        /// What the groups are called.
        groups: Vec<String>,
        /// What stands in them.
        sets: Vec<Bars>,
    },
}

/// Points under a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// In order of x.
    pub points: Vec<(f64, f64)>,
}

/// Bars of one colour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// What they are.
    pub name: String,
    /// One for each group, where there is one.
    pub values: Vec<Option<Figure>>,
}

/// Colours before they come again.
pub(crate) const COLOURS: usize = 8;

impl Plot {
    /// The drawing as an `svg` element. Its classes get their colours from the page.
    pub(crate) fn svg(&self) -> String {
        match &self.shape {
            Shape::Bars { groups, sets } => bars::draw(self, groups, sets),
            Shape::Lines(lines) => lines::draw(self, lines, lines::Style::Straight),
            Shape::Steps(lines) => lines::draw(self, lines, lines::Style::Steps),
            Shape::Points(lines) => lines::draw(self, lines, lines::Style::Marked),
        }
    }
}

#[cfg(test)]
mod tests;
