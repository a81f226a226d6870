//! Problems of a policy as an operator reads them: the line, the place in it, what is wrong, the
//! cure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use weir_policy::{Position, Problem, Reading, Severity, Source};
use weir_units::limits;

/// Characters that are shown of a long line: around the place of the problem.
const SHOWN: usize = 160;

/// Each row that was skipped, a line each.
#[must_use]
fn skipped(reading: &Reading) -> Vec<String> {
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

/// All problems as text, but for the notes: a policy that is as its operator wants it keeps them.
#[must_use]
pub fn text(reading: &Reading, colour: bool) -> String {
    let is_shown = |p: &&Problem| p.severity != Severity::Note;
    let shown: Vec<&Problem> = reading.problems.iter().filter(is_shown).collect();
    let hint = if shown.len() == reading.problems.len() { "" } else { NOTES };
    let sum = || format!("{}{hint}\n", sum(&reading.problems, &reading.sources));
    blocks(&shown, &reading.sources, colour) + &some(&reading.problems, sum)
}

/// What is said where notes are left out.
const NOTES: &str = " (`weir check -v` lists the notes)";

/// All problems as text, each row that was skipped in a line of its own.
#[must_use]
pub fn everything(reading: &Reading, colour: bool) -> String {
    let is_row = |p: &&Problem| p.severity != Severity::Skipped;
    let shown: Vec<&Problem> = reading.problems.iter().filter(is_row).collect();
    let mut out = String::new();
    // one by one, however alike
    for problem in shown {
        out += &blocks(&[problem], &reading.sources, colour);
    }
    for line in skipped(reading) {
        let _ = writeln!(out, "{line}");
    }
    out + &some(&reading.problems, || format!("{}\n", sum(&reading.problems, &reading.sources)))
}

fn some(problems: &[Problem], text: impl Fn() -> String) -> String {
    if problems.is_empty() { String::new() } else { text() }
}

/// The problems of any file as text.
#[must_use]
pub fn text_of(problems: &[Problem], sources: &[Source], colour: bool) -> String {
    let all: Vec<&Problem> = problems.iter().collect();
    let sum = || format!("{}\n", sum(problems, sources));
    blocks(&all, sources, colour) + &some(problems, sum)
}

/// One block of lines for each problem; for those that are alike, one for the first of them.
fn blocks(problems: &[&Problem], sources: &[Source], colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    // where there are too many to show, the worst are
    let mut shown = alike(problems);
    shown.sort_by_key(|(first, _)| first.severity);
    let more = shown.len().saturating_sub(limits::PROBLEMS_SHOWN);
    shown.truncate(limits::PROBLEMS_SHOWN);
    shown.sort_by_key(|(first, _)| first.place);
    for (problem, others) in shown {
        let source = sources.get(usize::from(problem.place.file));
        let mut problem = problem.clone();
        if let (Some(source), false) = (source, others.is_empty()) {
            problem.what += &and_more(source, &others);
        }
        let report = match source {
            Some(source) => one(&problem, source, &renderer),
            None => format!("{}: {}", problem.severity, problem.what),
        };
        let _ = writeln!(out, "{report}\n");
    }
    if more > 0 {
        let _ = writeln!(out, "... and {more} more problems like these\n");
    }
    out
}

/// Of problems with other names and numbers in the same words, so many are listed one by one.
const SIMILAR: usize = 3;

/// The first of the problems that are alike, with the places of the others.
fn alike<'p>(problems: &[&'p Problem]) -> Vec<(&'p Problem, Vec<Position>)> {
    let similar = |p: &Problem| (p.place.file, p.severity, masked(&p.what), masked(&p.help));
    let mut count: BTreeMap<_, usize> = BTreeMap::new();
    for problem in problems {
        *count.entry(similar(problem)).or_default() += 1;
    }
    let mut groups: Vec<(&Problem, Vec<Position>)> = Vec::new();
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for problem in problems {
        let key = similar(problem);
        let exact = match count.get(&key) {
            Some(count) if *count > SIMILAR => None,
            _ => Some((&problem.what, &problem.help)),
        };
        match known.get(&(key.clone(), exact)) {
            Some(&group) => groups[group].1.push(problem.place),
            None => {
                known.insert((key, exact), groups.len());
                groups.push((problem, Vec::new()));
            }
        }
    }
    groups
}

/// The same words with other names and numbers.
fn masked(text: &str) -> String {
    let parts = text.split('"').enumerate();
    let words = parts.map(|(at, part)| if at % 2 == 1 { "\"" } else { part }).collect::<String>();
    words.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// ` (and 12 more like it: lines 3-5, 9)`.
fn and_more(source: &Source, others: &[Position]) -> String {
    let mut lines: Vec<usize> =
        others.iter().map(|place| source.line_column(place.start as usize).0).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if line == *last + 1 => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    let more = if ranges.len() > RANGES { ", ..." } else { "" };
    let named = ranges.iter().take(RANGES).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let lines = if named.contains([',', '-']) { "lines" } else { "line" };
    format!(" (and {} more like it: {lines} {named}{more})", others.len())
}

/// Ranges of lines that one block names.
const RANGES: usize = 8;

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

    fn read(policy: &str) -> Reading {
        let link = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10mbit\"\nup = \"10mbit\"\n";
        let policy = format!("{link}{policy}");
        weir_policy::read(Source::new("p", policy), &mut |_| Err(String::new())).unwrap()
    }

    #[test]
    fn problems_that_are_alike_are_one_block_with_their_count() {
        let classes: String = (0..40).map(|n| format!("[class.\"/c{n}\"]\n")).collect();
        let reading = read(&classes);
        let text = text(&reading, false);
        assert_eq!(text.matches("no frame can reach").count(), 1, "{text}");
        assert!(text.contains("(and 39 more like it: lines 7-45)"), "{text}");
        assert!(text.ends_with("p: 40 warnings\n"), "{text}");
        assert_eq!(everything(&reading, false).matches("no frame can reach").count(), 40);
        // three are few enough to be listed, unless they are the same
        let text = super::text(
            &read(&classes.lines().take(3).map(|line| format!("{line}\n")).collect::<String>()),
            false,
        );
        assert_eq!(text.matches("no frame can reach").count(), 3, "{text}");
    }

    #[test]
    fn notes_are_for_who_asks_for_them() {
        let reading =
            read("[class.\"/a\"]\nmatch = \"dscp ef\"\n[class.\"/b\"]\nmatch = \"tcp\"\n");
        let text = text(&reading, false);
        assert_eq!(text, "p: 1 note (`weir check -v` lists the notes)\n");
        assert!(everything(&reading, false).contains("note: \"/b\" overlaps with \"/a\""));
        assert_eq!(super::text(&read(""), false), "");
    }

    #[test]
    fn letters_of_several_bytes_and_the_end_of_a_line_are_places_too() {
        let text = shown("# \u{e4}\u{1f600}\nlunk.\"\u{e4}\u{7}\u{f6}\" = [", "p:3:");
        assert!(!text.contains('\u{7}'), "{text}");
    }
}
