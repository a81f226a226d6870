//! What is no TOML, in words for people who never heard of TOML.

use std::collections::BTreeSet;

use crate::problem::{Mark, Position, Problems};
use crate::source::Lines;

/// Says what is wrong with the form of the file. Several errors of one line have one cause.
pub(crate) fn check(errors: &[toml::de::Error], text: &str, problems: &mut Problems) -> Torn {
    let mut torn = Torn::default();
    let lines = Lines::of(text.as_bytes());
    let mut said = BTreeSet::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        if !said.insert(lines.line(span.start)) {
            continue;
        }
        if problems.is_full() {
            break;
        }
        let line = line_at(text, span.start);
        let message = error.message();
        if message.contains("duplicate key") {
            twice(line, text.get(span.clone()).unwrap_or_default(), &span, problems);
            continue;
        }
        // what is missing may be in what cannot be read
        problems.is_torn = true;
        let is_open = message.contains("unclosed") || message.contains("missing comma");
        if is_open && torn.is_open {
            continue;
        }
        torn.is_open |= is_open;
        torn.lines.push(lines.line(span.start));
        let what = format!("this is not TOML: {message}");
        problems.error(Position::of(&span), what, help(message, line));
    }
    torn
}

/// Where the file could not be read.
#[derive(Default)]
pub(crate) struct Torn {
    lines: Vec<usize>,
    /// Whether a bracket stays open: what follows was read as something else than it is.
    is_open: bool,
}

impl Torn {
    /// Forgets problems found since that have their cause in it.
    pub(crate) fn forget_since(&self, mark: Mark, text: &str, problems: &mut Problems) {
        if self.is_open {
            problems.forget_since(mark);
        } else if !self.lines.is_empty() {
            let lines = Lines::of(text.as_bytes());
            problems.retain_since(mark, |problem| {
                !self.lines.contains(&lines.line(problem.place.start as usize))
            });
        }
    }
}

fn line_at(text: &str, at: usize) -> &str {
    let at = at.min(text.len());
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    text[start..].lines().next().unwrap_or_default().trim()
}

/// A word or a table that occurs twice.
fn twice(line: &str, key: &str, span: &std::ops::Range<usize>, problems: &mut Problems) {
    if let Some(table) = line.strip_prefix('[') {
        let table = table.split(']').next().unwrap_or(table);
        let help = "write all of it in one table, or give one of them another name";
        problems.error(Position::of(span), format!("[{table}] occurs twice"), help);
    } else {
        let key = key.trim_matches('"');
        let what = format!("\"{key}\" occurs twice in this table");
        problems.error(Position::of(span), what, "remove it");
    }
}

fn help(message: &str, line: &str) -> String {
    let bare = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let value = line.split_once('=').map_or("", |(_, value)| value.trim());
    if line.starts_with("//") || line.starts_with(';') || line.starts_with("--") {
        return "comments start with \"#\"".to_owned();
    }
    if let Some((word, value)) = line.split_once(':').filter(|(word, _)| bare(word.trim())) {
        return format!("write {} = {}", word.trim(), value.trim());
    }
    if bare(line) && !line.is_empty() {
        return format!("give it a value: {line} = ...");
    }
    if let Some(table) = line.strip_prefix('[')
        && !line.contains(']')
    {
        let quote = if line.matches('"').count() % 2 == 1 { "\"" } else { "" };
        return format!("close the bracket: write [{}{quote}]", table.trim());
    }
    if let Some(path) = line.strip_prefix("[class.").and_then(|rest| rest.strip_suffix(']'))
        && !path.contains('"')
    {
        return format!("put the text in double quotes: write [class.\"{path}\"]");
    }
    if matches!(value, "yes" | "no" | "on" | "off" | "True" | "False") {
        let meant = matches!(value, "yes" | "on" | "True");
        let word = line.split('=').next().unwrap_or_default().trim();
        return format!("write {word} = {meant} (the words are true and false)");
    }
    let is_open = message.contains("unclosed") || message.contains("missing comma");
    if is_open || value.starts_with(['"', '\'']) {
        let help =
            "close the bracket or quote before the next line, and separate entries by commas";
        return help.to_owned();
    }
    if !value.is_empty() && !value.starts_with(['"', '[', '{', '\'']) {
        return "put the text in double quotes".to_owned();
    }
    String::new()
}
