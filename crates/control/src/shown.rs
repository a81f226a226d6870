//! Problems of a policy as an operator reads them: the line, the place in it, what is wrong, the
//! cure.

use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use weir_policy::{Problem, Reading, Severity, Source};
use weir_units::limits;

/// Characters that are shown of a long line: around the place of the problem.
const SHOWN: usize = 160;

/// Each row that was skipped, a line each.
#[must_use]
pub fn skipped(reading: &Reading) -> Vec<String> {
    let (Some(table), Some(source)) = (&reading.policy.subscribers, reading.sources.get(1)) else {
        return Vec::new();
    };
    let mut skipped: Vec<_> = table.skipped.all().collect();
    skipped.sort_by_key(|(row, ..)| row.place);
    let said = skipped.into_iter().map(|(row, cause, help)| {
        let kept = if row.held { "; the last good row holds" } else { "" };
        let help = if help.is_empty() { String::new() } else { format!(" ({help})") };
        format!("{}:{}: skipped because {cause}{help}{kept}", source.name(), row.line)
    });
    said.collect()
}

/// All problems as text.
#[must_use]
pub fn text(reading: &Reading, colour: bool) -> String {
    text_of(&reading.problems, &reading.sources, colour)
}

/// The problems of any file as text.
#[must_use]
pub fn text_of(problems: &[Problem], sources: &[Source], colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    // where there are too many to show, the worst are
    let mut shown: Vec<&Problem> = problems.iter().collect();
    shown.sort_by_key(|p| p.severity);
    shown.truncate(limits::PROBLEMS_SHOWN);
    shown.sort_by_key(|p| p.place);
    for problem in shown {
        let source = sources.get(usize::from(problem.place.file));
        let report = match source {
            Some(source) => one(problem, source, &renderer),
            None => format!("{}: {}", problem.severity, problem.what),
        };
        let _ = writeln!(out, "{report}\n");
    }
    if let Some(more) = problems.len().checked_sub(limits::PROBLEMS_SHOWN + 1) {
        let _ = writeln!(out, "... and {} more problems like these\n", more + 1);
    }
    if !problems.is_empty() {
        let _ = writeln!(out, "{}", sum(problems, sources));
    }
    out
}

/// `2 errors, 3 rows skipped, 1 note`.
fn sum(problems: &[Problem], sources: &[Source]) -> String {
    let rows = |p: &Problem| p.rows.as_ref().map_or(1, |rows| rows.count);
    let count = |severity| problems.iter().filter(|p| p.severity == severity).map(rows).sum();
    let names = [
        (Severity::Error, "error", "errors"),
        (Severity::Skipped, "row skipped", "rows skipped"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Note, "note", "notes"),
    ];
    let parts: Vec<String> = names
        .into_iter()
        .map(|(severity, one, many)| -> (usize, _, _) { (count(severity), one, many) })
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| format!("{n} {}", if n == 1 { one } else { many }))
        .collect();
    format!("{}: {}", sources.first().map_or("", Source::name), parts.join(", "))
}

fn one(problem: &Problem, source: &Source, renderer: &Renderer) -> String {
    let start = (problem.place.start as usize).min(source.bytes().len());
    let (line, column) = source.line_column(start);
    let shown = Shown::around(source, start, problem.place.end as usize);
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Skipped | Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let snippet = Snippet::source(shown.text.as_str())
        .line_start(line)
        .annotation(AnnotationKind::Primary.span(shown.place));
    let group = Group::with_title(level.primary_title(&problem.what));
    // the column in a line that was cut is not the one in the file
    let mut group = if shown.cut {
        let origin = Origin::path(source.name()).line(line).char_column(column);
        group.element(origin).element(snippet)
    } else {
        group.element(snippet.path(source.name()))
    };
    if !problem.help.is_empty() {
        group = group.element(Level::HELP.message(&problem.help));
    }
    renderer.render(&[group])
}

/// A line, cut around the place of a problem where it is too long.
struct Shown {
    text: String,
    /// The place in it.
    place: Range<usize>,
    /// Whether it starts behind the start of the line.
    cut: bool,
}

impl Shown {
    /// The line of the bytes from `at` to `end`, without what a terminal would obey.
    fn around(source: &Source, at: usize, end: usize) -> Shown {
        let bytes = source.bytes();
        let start = bytes[..at].iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
        let line_end = bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n);
        let plain = |from: usize, to: usize| -> Vec<char> {
            let text = String::from_utf8_lossy(&bytes[from..to]);
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
        };
        let (before, behind) = (plain(start, at), plain(at, line_end));
        let length = plain(at, end.clamp(at, line_end)).len().clamp(1, SHOWN);
        // a short line as it is; else half of what is shown before the place, and the rest behind
        let fits = before.len() + length <= SHOWN;
        let skip = if fits { 0 } else { before.len().saturating_sub((SHOWN - length) / 2) };
        let mut text: String = if skip > 0 { "...".to_owned() } else { String::new() };
        text.extend(&before[skip..]);
        let from = text.len();
        let room = (SHOWN + skip).saturating_sub(before.len()).max(length);
        text.extend(behind.iter().take(length));
        let to = text.len();
        text.extend(behind.iter().take(room).skip(length));
        Shown { text, place: from..to, cut: skip > 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str, part: &str) -> String {
        let policy = format!("# one\n{line}\n");
        let reading = weir_policy::read(Source::new("p", policy), &mut |_| Err(String::new()));
        let text = text(&reading.unwrap(), false);
        assert!(text.contains(part), "{text}");
        text
    }

    #[test]
    fn a_problem_is_shown_with_its_place() {
        let text = shown("lunk = 3", "2 | lunk = 3");
        assert!(text.contains("--> p:2:1\n  |\n2 | lunk") && text.contains("| ^^^^\n"), "{text}");
    }

    #[test]
    fn a_problem_far_along_a_long_line_is_shown_with_what_is_around_it() {
        let members: String = (0..100).map(|n| format!("\"10.0.0.{n}\", ")).collect();
        let line = format!("group.g = [{members}\"10.0.0.300\", {members}]");
        let text = shown(&line, "\"10.0.0.99\", \"10.0.0.300\", \"10.0.0.0\"");
        let column = line.find("\"10.0.0.300\"").unwrap() + 1;
        assert!(text.contains(&format!("--> p:2:{column}\n")), "{text}");
        assert!(text.contains("^^^^^^^^^^^^\n"), "{text}");
        let longest = text.lines().filter(|l| l.starts_with("2 |")).map(|l| l.chars().count());
        assert!(longest.max().unwrap() <= SHOWN + 8, "{text}");
    }

    #[test]
    fn letters_of_several_bytes_and_the_end_of_a_line_are_places_too() {
        let text = shown("# \u{e4}\u{1f600}\nlunk.\"\u{e4}\u{7}\u{f6}\" = [", "p:3:");
        assert!(!text.contains('\u{7}'), "{text}");
    }
}
