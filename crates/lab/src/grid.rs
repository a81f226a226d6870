//! Tables of figures and claims, for the terminal and the report alike.

use crate::claim::{Expected, Judged, Printed};
use crate::compare::Comparison;
use crate::number::show;
use crate::result::{Figure, Outcome};

/// Rows of cells under a head. The first `words` columns are words and stand to the left, numbers
/// to the right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// What the columns are.
    pub head: Vec<String>,
    /// As many cells each as the head has.
    pub rows: Vec<Vec<String>>,
    /// How many columns are words.
    pub words: usize,
}

impl Grid {
    /// A head without rows yet.
    #[must_use]
    pub fn new(words: usize, head: &[&str]) -> Grid {
        let head = head.iter().map(|cell| (*cell).to_owned()).collect();
        Grid { head, rows: Vec::new(), words }
    }

    /// Every figure of some profiles, with the spread, and what the paper printed beside it.
    #[must_use]
    pub fn figures(outcome: &Outcome, expected: &Expected, profiles: &[&str]) -> Grid {
        let mut grid = Grid::new(1, &["figure"]);
        let mut columns = Vec::new();
        for name in profiles {
            let Some(figures) = outcome.figures(name) else { continue };
            let printed = figures.iter().any(|(key, _)| expected.printed(name, key).is_some());
            grid.head.push((*name).to_owned());
            grid.head.extend(printed.then(|| "paper".to_owned()));
            columns.push((*name, figures, printed));
        }
        let mut keys: Vec<&str> = Vec::new();
        for (_, figures, _) in &columns {
            keys.extend(
                figures
                    .iter()
                    .map(|(key, _)| key)
                    .filter(|key| !keys.contains(key))
                    .collect::<Vec<_>>(),
            );
        }
        for key in keys {
            let mut row = vec![key.to_owned()];
            for (name, figures, printed) in &columns {
                row.push(figures.get(key).map_or(String::new(), spread));
                let paper =
                    || expected.printed(name, key).map_or(String::new(), Printed::to_string);
                row.extend(printed.then(paper));
            }
            grid.rows.push(row);
        }
        grid
    }

    /// Every claim with its verdict.
    #[must_use]
    pub fn claims(claims: &[Judged]) -> Grid {
        let mut grid = Grid::new(5, &["verdict", "claim", "says", "paper", "ours"]);
        for claim in claims {
            let note = claim.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
            let shown = |printed: &Option<Printed>| {
                printed.as_ref().map_or_else(|| "-".to_owned(), Printed::to_string)
            };
            grid.rows.push(vec![
                claim.holds.word().to_owned(),
                claim.id.clone(),
                format!("{}{note}", claim.text),
                shown(&claim.paper),
                shown(&claim.measured),
            ]);
        }
        grid
    }

    /// Two sets of figures side by side, under the names of both.
    #[must_use]
    pub fn differences(comparison: &Comparison, first: &str, second: &str) -> Grid {
        let mut grid = Grid::new(1, &["figure", first, second, "change", "", "beyond the spread"]);
        for one in &comparison.differences {
            let share =
                one.share().map_or(String::new(), |share| format!("{:+.1} %", share * 100.0));
            let beyond = match one.beyond() {
                Some(true) => "yes",
                Some(false) => "no",
                None => "one seed",
            };
            grid.rows.push(vec![
                one.key.clone(),
                spread(one.first),
                spread(one.second),
                show(one.change()),
                share,
                beyond.to_owned(),
            ]);
        }
        grid
    }

    /// The lines of the table in plain text.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..self.head.len()).filter_map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
                if at < self.words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        all().map(line).collect()
    }
}

/// A figure, and its deviation where that is not zero.
fn spread(figure: Figure) -> String {
    // what is beyond nine digits is arithmetic, as in `stable`
    match figure.sd.filter(|sd| *sd > figure.mean.abs() * 1e-9) {
        Some(sd) => format!("{} ± {}", show(figure.mean), brief(sd)),
        None => show(figure.mean),
    }
}

/// To two significant digits.
fn brief(number: f64) -> String {
    show(format!("{number:.1e}").parse().unwrap_or(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouped;

    #[test]
    fn numbers_stand_to_the_right_and_in_groups() {
        let mut grid = Grid::new(1, &["class", "bytes"]);
        grid.rows.push(vec!["/a".into(), grouped(1_234_567)]);
        assert_eq!(grid.lines(), ["class      bytes", "/a     1 234 567"]);
        assert_eq!(grouped(999), "999");
    }
}
