//! What is to be drawn of an outcome, as data.

use serde::Deserialize;

use crate::claim::{Expected, Printed, matched};
use crate::plot::{Axis, Bars, Line, Plot, Scale, Shape};
use crate::result::{Figure, Outcome};

/// A drawing that an experiment asks for: `[[plot]]` of its `expected.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drawing {
    /// How it is drawn.
    pub kind: PlotKind,
    /// What is shown, in a sentence.
    pub title: String,
    /// Which series (lines, steps) or keys (bars, points); `*` stands for the name of each line,
    /// the group of bars, or the number at which a point stands.
    pub of: String,
    /// The name of the axis to the right; of series it is known.
    #[serde(default)]
    pub x: String,
    /// The name of the upright axis; of series it is known.
    #[serde(default)]
    pub y: String,
    /// Which axes are logarithmic.
    #[serde(default)]
    pub log: Option<Logarithm>,
    /// Which profiles; all if none is named.
    #[serde(default)]
    pub profiles: Vec<String>,
}

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// Series from point to point.
    Lines,
    /// Series as distributions.
    Steps,
    /// Figures over the number in their key, a line for each profile.
    Points,
    /// Figures in groups, a bar for each profile.
    Bars,
}

/// Which axes are logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Logarithm {
    /// The one to the right.
    X,
    /// The upright one.
    Y,
    /// Both.
    Xy,
}

impl Drawing {
    /// The drawing of an outcome, beside the numbers that the paper printed; none if there is
    /// nothing to draw.
    #[must_use]
    pub fn of(&self, outcome: &Outcome, expected: &Expected) -> Option<Plot> {
        let shape = match self.kind {
            PlotKind::Lines => Shape::Lines(self.series(outcome)?),
            PlotKind::Steps => Shape::Steps(self.series(outcome)?),
            PlotKind::Points => Shape::Points(self.points(outcome)?),
            PlotKind::Bars => self.bars(outcome, expected)?,
        };
        let mut series = outcome.series.iter().filter(|(name, _)| self.names(name).is_some());
        let series = series.next().map(|(_, series)| series);
        let known = |own: &str, of: Option<&String>| match of {
            Some(name) if own.is_empty() => name.clone(),
            _ => own.to_owned(),
        };
        let axis = |name, is_log| {
            let scale = if is_log { Scale::Log } else { Scale::Linear };
            Axis { name, scale, range: None }
        };
        let (x, y) = (Some(Logarithm::X), Some(Logarithm::Y));
        let both = self.log == Some(Logarithm::Xy);
        Some(Plot {
            title: self.title.clone(),
            x: axis(known(&self.x, series.map(|s| &s.x)), both || self.log == x),
            y: axis(known(&self.y, series.map(|s| &s.y)), both || self.log == y),
            shape,
        })
    }

    fn series(&self, outcome: &Outcome) -> Option<Vec<Line>> {
        let line = |(name, series): (&str, &crate::Series)| {
            let name = self.names(name)?.to_owned();
            Some(Line { name, points: series.points.clone() })
        };
        let lines: Vec<Line> = outcome.series.iter().filter_map(line).collect();
        (!lines.is_empty()).then_some(lines)
    }

    fn points(&self, outcome: &Outcome) -> Option<Vec<Line>> {
        let mut lines = Vec::new();
        for (name, figures) in outcome.each_profile().filter(|(name, _)| self.wants(name)) {
            let point = |(key, figure): (&str, crate::Figure)| {
                Some((matched(&self.of, key)?.parse::<f64>().ok()?, figure.mean))
            };
            let mut points: Vec<(f64, f64)> = figures.iter().filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if !points.is_empty() {
                lines.push(Line { name: name.to_owned(), points });
            }
        }
        (!lines.is_empty()).then_some(lines)
    }

    fn bars(&self, outcome: &Outcome, expected: &Expected) -> Option<Shape> {
        let profiles = || outcome.each_profile().filter(|(name, _)| self.wants(name));
        let mut groups: Vec<String> = Vec::new();
        for (key, _) in profiles().flat_map(|(_, figures)| figures.iter()) {
            match self.names(key) {
                Some(group) if !groups.iter().any(|other| other == group) => {
                    groups.push(group.to_owned());
                }
                _ => {}
            }
        }
        let sets = profiles().flat_map(|(name, figures)| {
            let value = |group: &String| figures.get(&self.of.replace('*', group));
            let printed = |group: &String| {
                let Printed::Number(mean) =
                    *expected.printed(name, &self.of.replace('*', group))?
                else {
                    return None;
                };
                Some(Figure { mean, sd: None })
            };
            let ours = Bars { name: name.to_owned(), values: groups.iter().map(value).collect() };
            let paper = format!("{name}, paper");
            [ours, Bars { name: paper, values: groups.iter().map(printed).collect() }]
        });
        let sets: Vec<Bars> = sets.filter(|set| set.values.iter().any(Option::is_some)).collect();
        (!groups.is_empty()).then_some(Shape::Bars { groups, sets })
    }

    fn wants(&self, profile: &str) -> bool {
        self.profiles.is_empty() || self.profiles.iter().any(|name| name == profile)
    }

    /// The name that a series or key has in the drawing.
    fn names<'n>(&self, series: &'n str) -> Option<&'n str> {
        if self.of == series { Some(series) } else { matched(&self.of, series) }
    }
}
