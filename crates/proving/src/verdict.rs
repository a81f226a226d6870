//! What was measured beside its bar. A figure that the machine itself may have spoilt is void: it
//! neither holds nor fails.

use weir_lab::Grid;
use weir_units::Span;

use super::traffic::Delays;
use crate::Paper;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Held,
    Failed,
    /// The machine was too late for the figure to mean anything.
    Void,
    /// There is no bound: the figure is informational.
    Seen,
}

impl Verdict {
    pub(crate) fn of(held: bool) -> Verdict {
        if held { Verdict::Held } else { Verdict::Failed }
    }

    /// Void when the machine was later than this.
    pub(crate) fn unless_late(self, late: Span, bound: Span) -> Verdict {
        if late > bound { Verdict::Void } else { self }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Held => "held",
            Verdict::Failed => "NOT HELD",
            Verdict::Void => "void",
            Verdict::Seen => "-",
        }
    }
}

/// A table with a verdict in each row's last column.
pub(crate) struct Table {
    grid: Grid,
    verdicts: Vec<Verdict>,
}

impl Table {
    pub(crate) fn new(words: usize, head: &[&str]) -> Table {
        let head: Vec<&str> = head.iter().copied().chain(["verdict"]).collect();
        Table { grid: Grid::new(words, &head), verdicts: Vec::new() }
    }

    pub(crate) fn row(&mut self, mut cells: Vec<String>, verdict: Verdict) {
        cells.push(verdict.word().to_owned());
        self.grid.rows.push(cells);
        self.verdicts.push(verdict);
    }

    /// Prints it and tells the rows that missed their bar.
    pub(crate) fn print(&self, out: &mut dyn Paper) -> Vec<Vec<String>> {
        self.grid.lines().iter().for_each(|line| out.line(line));
        let void = self.verdicts.iter().filter(|v| **v == Verdict::Void).count();
        if void > 0 {
            out.line(&format!("{void} void: the machine was too late; run again when it is idle"));
        }
        out.line("");
        out.flush();
        let rows = self.grid.rows.iter().zip(&self.verdicts);
        rows.filter(|(_, verdict)| **verdict == Verdict::Failed)
            .map(|(row, _)| row.clone())
            .collect()
    }
}

/// A time to the hundredth of a millisecond.
pub(crate) fn ms(span: Span) -> String {
    format!("{}.{:02}", span.ns() / 1_000_000, span.ns() / 10_000 % 100)
}

/// How late the machine was, in a line.
pub(crate) fn lateness(late: &Delays) -> String {
    let p99 = late.at_most(990).unwrap_or(Span::ZERO);
    format!("{} / {}", ms(p99), ms(late.longest()))
}
