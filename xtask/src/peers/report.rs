//! Ratios of each round, their median, and whether the bar holds; as a table that can be pasted
//! into a document, and as JSON.

use std::fmt::Write as _;

use super::bars::{BARS, Bar, Figure};
use super::{Run, find};

/// One bar, measured.
pub(super) struct Row {
    bar: &'static Bar,
    /// Medians.
    theirs: Option<f64>,
    ours: f64,
    /// The median of the ratios of each round; of a bar without a rival, ours itself.
    measured: Option<f64>,
    /// The shares of what was offered that were taken.
    accepted: (Option<f64>, Option<f64>),
}

impl Row {
    /// `None`: it could not be measured.
    fn holds(&self) -> Option<bool> {
        self.measured.map(|measured| measured <= self.bar.limit)
    }

    fn verdict(&self) -> &'static str {
        match self.holds() {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "skipped",
        }
    }
}

pub(super) fn rows(runs: &[Run]) -> Vec<Row> {
    BARS.iter().filter_map(|bar| row(bar, runs)).collect()
}

fn row(bar: &'static Bar, runs: &[Run]) -> Option<Row> {
    let all = |figure: &Figure| find(runs, figure).map(|run| of(run, figure));
    let ours = all(&bar.ours)?;
    let theirs = bar.theirs.as_ref().and_then(all);
    let measured = match (&bar.theirs, &theirs) {
        (None, _) => median(ours.clone()),
        (Some(_), Some(theirs)) => median(ours.iter().zip(theirs).map(|(o, t)| o / t).collect()),
        (Some(_), None) => None,
    };
    let accepted = |figure: &Figure| {
        let run = find(runs, figure)?;
        median(run.outputs.iter().flat_map(|text| values(text, "accepted")).collect())
    };
    Some(Row {
        bar,
        theirs: theirs.and_then(median),
        ours: median(ours)?,
        measured,
        accepted: (bar.theirs.as_ref().and_then(accepted), accepted(&bar.ours)),
    })
}

/// The figure of each round.
fn of(run: &Run, figure: &Figure) -> Vec<f64> {
    let sum = |text: &String| {
        let parts = figure.metrics.iter().map(|(times, metric)| {
            // a program that does not say it makes the row one that is not measured
            times * median(values(text, metric)).unwrap_or(f64::NAN)
        });
        parts.sum()
    };
    run.outputs.iter().map(sum).collect()
}

/// All that an output says of a metric: `metric=1.5` among words, or `"metric": 1.5` on a line.
fn values(text: &str, metric: &str) -> Vec<f64> {
    let word = format!("{metric}=");
    let key = format!("\"{metric}\":");
    let words = text.split_whitespace().filter_map(|w| w.strip_prefix(word.as_str()));
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(key.as_str()));
    let numbers = words.chain(lines.map(|rest| rest.trim().trim_end_matches(',')));
    numbers.filter_map(|number| number.parse().ok()).collect()
}

fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.retain(|figure| figure.is_finite());
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// What was measured, where, and how busy it was.
pub(super) fn title(rounds: usize, core: &str, before: &str) -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches([' ', '\t', ':']);
    let after = load();
    format!(
        "{rounds} interleaved rounds on core {core} of {model}; load {before} before, {after} \
         after; medians, ns per frame where nothing else is said\n"
    )
}

/// Programs that ran at once, over the last minute.
pub(super) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

pub(super) fn table(rows: &[Row]) -> String {
    let head = ["bar", "what", "peer", "weir", "ratio", "bar", "taken", "verdict"];
    let mut lines = vec![head.map(str::to_owned)];
    for row in rows {
        let is_ratio = row.bar.theirs.is_some();
        let ratio = row.measured.filter(|_| is_ratio);
        let shown = |figure: Option<f64>, digits: usize| {
            figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
        };
        let taken = match row.accepted {
            (Some(theirs), Some(ours)) => format!("{theirs:.3}, {ours:.3}"),
            (_, ours) => shown(ours, 3),
        };
        lines.push([
            row.bar.number.to_owned(),
            row.bar.what.to_owned(),
            shown(row.theirs, 1),
            shown(Some(row.ours), 1),
            shown(ratio, 2),
            if is_ratio { format!("{} x", row.bar.limit) } else { row.bar.limit.to_string() },
            taken,
            row.verdict().to_owned(),
        ]);
    }
    let widths: [usize; 8] =
        std::array::from_fn(|at| lines.iter().map(|line| line[at].len()).max().unwrap_or(0));
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        if number == 0 {
            let _ = writeln!(text, "| {} |", widths.map(|width| "-".repeat(width)).join(" | "));
        }
    }
    text
}

pub(super) fn summary(rows: &[Row]) -> String {
    let count = |wanted: Option<bool>| rows.iter().filter(|row| row.holds() == wanted).count();
    format!(
        "{} hold, {} do not hold, {} skipped; instructions (bar 8): cargo x bench --count",
        count(Some(true)),
        count(Some(false)),
        count(None)
    )
}

pub(super) fn json(rows: &[Row]) -> String {
    let number = |figure: Option<f64>| {
        figure.map_or_else(|| "null".to_owned(), |figure| format!("{figure:.3}"))
    };
    let row = |row: &Row| {
        let holds = row.holds().map_or_else(|| "null".to_owned(), |holds| holds.to_string());
        let is_ratio = row.bar.theirs.is_some();
        format!(
            "  {{\"bar\": \"{}\", \"what\": \"{}\", \"theirs\": {}, \"ours\": {}, \"ratio\": {}, \
             \"limit\": {}, \"holds\": {holds}}}",
            row.bar.number,
            row.bar.what,
            number(row.theirs),
            number(Some(row.ours)),
            number(row.measured.filter(|_| is_ratio)),
            row.bar.limit,
        )
    };
    format!("[\n{}\n]\n", rows.iter().map(row).collect::<Vec<_>>().join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::bars::Program;

    fn said(program: Program, arguments: &'static str, outputs: &[&str]) -> Run {
        let outputs = outputs.iter().map(|text| (*text).to_owned()).collect();
        Run { program, arguments, outputs }
    }

    /// The first bar: idle, 64 leaves, 0.5 x.
    fn first(rte: &[&str], weir: &[&str]) -> Row {
        let theirs = BARS[0].theirs.as_ref().unwrap();
        let runs = [
            said(Program::Rte, theirs.arguments, rte),
            said(Program::Weir, BARS[0].ours.arguments, weir),
        ];
        row(&BARS[0], &runs).unwrap()
    }

    #[test]
    fn both_ways_to_say_a_figure_are_read() {
        let rte = "sched enq_ns=1.0 sum_ns=97.5 per_sent_ns=2\nsched sum_ns=98.5\n";
        assert_eq!(values(rte, "sum_ns"), [97.5, 98.5]);
        let weir = "{\n  \"metrics\": {\n    \"ns_per_packet\": 65.5,\n    \"accepted\": 1.0\n";
        assert_eq!(values(weir, "ns_per_packet"), [65.5]);
        assert_eq!(values(weir, "accepted"), [1.0]);
        assert!(values(weir, "packet").is_empty());
    }

    #[test]
    fn the_ratio_is_the_median_of_the_ratios_of_each_round() {
        // medians of each are 100 and 40; ratios 0.4, 0.9, 0.2
        let rte = ["sum_ns=100", "sum_ns=100", "sum_ns=100"];
        let weir = ["\"ns_per_packet\": 40", "\"ns_per_packet\": 90", "\"ns_per_packet\": 20"];
        let row = first(&rte, &weir);
        assert_eq!(row.measured, Some(0.4));
        assert_eq!(row.verdict(), "holds");
        let slow = first(&["sum_ns=100"], &["\"ns_per_packet\": 51"]);
        assert_eq!(slow.verdict(), "does not hold");
        assert!(table(&[slow]).contains("| 0.51  | 0.5 x |"));
    }

    #[test]
    fn without_the_rival_a_ratio_is_skipped() {
        let runs = [said(Program::Weir, BARS[0].ours.arguments, &["\"ns_per_packet\": 40"])];
        let row = row(&BARS[0], &runs).unwrap();
        assert_eq!(row.verdict(), "skipped");
        assert!(json(&[row]).contains("\"ratio\": null"));
    }

    #[test]
    fn a_figure_that_is_not_said_holds_nothing() {
        let row = first(&["sum_ns=100"], &["\"ns_per_packet\": 40"]);
        assert_eq!(row.holds(), Some(true));
        let row = first(&["other=100"], &["\"ns_per_packet\": 40"]);
        assert_eq!(row.holds(), None);
    }
}
