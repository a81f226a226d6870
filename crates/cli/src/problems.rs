//! Problems of a policy as an operator reads them: the line, the place in it, what is wrong, the
//! cure.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use weir_policy::{Problem, Reading, Severity, Source};
use weir_units::limits;

/// Longest line that is shown around a problem.
const SHOWN: usize = 160;

/// Prints all problems to standard error, and how many there are.
pub(crate) fn print(reading: &Reading) {
    #[expect(clippy::print_stderr, reason = "problems belong to standard error")]
    {
        eprint!("{}", text(reading, std::io::stderr().is_terminal()));
    }
}

/// All problems as text.
pub(crate) fn text(reading: &Reading, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    // where there are too many to show, the worst are
    let mut shown: Vec<&Problem> = reading.problems.iter().collect();
    shown.sort_by_key(|p| p.severity);
    shown.truncate(limits::PROBLEMS_SHOWN);
    shown.sort_by_key(|p| p.place);
    for problem in shown {
        let source = reading.sources.get(usize::from(problem.place.file));
        let report = match source {
            Some(source) => one(problem, source, &renderer),
            None => format!("{}: {}", problem.severity, problem.what),
        };
        let _ = writeln!(out, "{report}\n");
    }
    if let Some(more) = reading.problems.len().checked_sub(limits::PROBLEMS_SHOWN + 1) {
        let _ = writeln!(out, "... and {} more problems like these\n", more + 1);
    }
    if !reading.problems.is_empty() {
        let _ = writeln!(out, "{}", sum(reading));
    }
    out
}

/// `2 errors, 3 rows set aside, 1 note`.
fn sum(reading: &Reading) -> String {
    let count = |severity| reading.problems.iter().filter(|p| p.severity == severity).count();
    let names = [
        (Severity::Error, "error", "errors"),
        (Severity::Aside, "row set aside", "rows set aside"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Note, "note", "notes"),
    ];
    let parts: Vec<String> = names
        .into_iter()
        .map(|(severity, one, many)| (count(severity), one, many))
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| format!("{n} {}", if n == 1 { one } else { many }))
        .collect();
    format!("{}: {}", reading.sources[0].name(), parts.join(", "))
}

fn one(problem: &Problem, source: &Source, renderer: &Renderer) -> String {
    let start = (problem.place.start as usize).min(source.bytes().len());
    let (line, column) = source.line_column(start);
    let text = shown_line(source, start);
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Aside => Level::ERROR.with_name(Some("set aside")),
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let at = text.chars().take(column - 1).map(char::len_utf8).sum::<usize>();
    let length = (problem.place.end as usize).saturating_sub(start).max(1);
    let end = (at + length).min(text.len());
    let end = (at..=end).rev().find(|&n| text.is_char_boundary(n)).unwrap_or(at);
    let snippet = Snippet::source(text.as_str())
        .path(source.name())
        .line_start(line)
        .annotation(AnnotationKind::Primary.span(at..end));
    let mut group = Group::with_title(level.primary_title(&problem.what)).element(snippet);
    if !problem.help.is_empty() {
        group = group.element(Level::HELP.message(&problem.help));
    }
    renderer.render(&[group])
}

/// The line around a byte, cut where it grows too long, without what a terminal would obey.
fn shown_line(source: &Source, at: usize) -> String {
    let bytes = source.bytes();
    let start = bytes[..at].iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
    let end = bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n);
    let line = String::from_utf8_lossy(&bytes[start..end]);
    line.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
