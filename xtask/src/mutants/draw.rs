//! The mutants of a file: single changes that a compiler accepts and a test should not.

use crate::shell;
use crate::tidy::rust::code_only;

/// One change in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// From the root on.
    pub(crate) file: String,
    /// Bytes of the source that are replaced.
    pub(crate) at: usize,
    pub(crate) from: String,
    pub(crate) to: String,
    /// File, line and change: stays the same while that line does.
    pub(crate) name: String,
}

/// What is exchanged for what wherever it stands.
const SWAPS: [(&str, &str); 33] = [
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" == ", " != "),
    (" != ", " == "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " / "),
    (" / ", " * "),
    (" % ", " / "),
    (" << ", " >> "),
    (" >> ", " << "),
    (" && ", " || "),
    (" || ", " && "),
    (" & ", " | "),
    (" += ", " -= "),
    (" -= ", " += "),
    (".min(", ".max("),
    (".max(", ".min("),
    (".saturating_add(", ".saturating_sub("),
    (".saturating_sub(", ".saturating_add("),
    (".wrapping_add(", ".wrapping_sub("),
    (".wrapping_sub(", ".wrapping_add("),
    (".plus(", ".minus("),
    (".minus(", ".plus("),
    (".is_some()", ".is_none()"),
    (".is_none()", ".is_some()"),
    (".first()", ".last()"),
    (".any(", ".all("),
    (".all(", ".any("),
    ("true", "false"),
    ("false", "true"),
];

/// Lines that begin so change nothing that runs.
const PASSED_OVER: [&str; 9] =
    ["debug_assert", "assert!", "const _", "#[", "use ", "pub use ", "mod ", "impl", "pub struct"];
/// A line that begins so is no statement that could be left out.
const NO_STATEMENT: [&str; 12] = [
    "let ", "return", "break", "continue", "const ", "pub ", "static ", "type ", "}", ")", ".", "]",
];

impl Mutant {
    /// The name of the crate it lies in.
    pub(crate) fn of_crate(&self) -> &str {
        self.file.split('/').nth(1).unwrap_or_default()
    }

    /// The source with the change.
    pub(crate) fn of(&self, source: &str) -> Option<String> {
        let end = self.at + self.from.len();
        (source.get(self.at..end)? == self.from)
            .then(|| format!("{}{}{}", &source[..self.at], self.to, &source[end..]))
    }
}

pub(crate) fn of_file(file: &str) -> Result<Vec<Mutant>, String> {
    let path = shell::root().join(file);
    let source = std::fs::read_to_string(path).map_err(|e| format!("{file}: {e}"))?;
    Ok(of_text(file, &source))
}

/// The modules of a file that are built for its tests alone, by what the names of their files begin
/// with.
pub(crate) fn tests_of(file: &str) -> Vec<String> {
    let source = std::fs::read_to_string(shell::root().join(file)).unwrap_or_default();
    let of_folder = ["lib.rs", "mod.rs", "main.rs"].iter().find_map(|end| file.strip_suffix(end));
    let folder = of_folder.map_or(file.replace(".rs", "/"), str::to_owned);
    let lines: Vec<&str> = source.lines().collect();
    let modules = lines
        .windows(2)
        .filter(|pair| pair[0] == "#[cfg(test)]")
        .filter_map(|pair| pair[1].strip_prefix("mod ").and_then(|name| name.strip_suffix(';')));
    modules.flat_map(|name| [format!("{folder}{name}.rs"), format!("{folder}{name}/")]).collect()
}

pub(crate) fn of_text(file: &str, source: &str) -> Vec<Mutant> {
    let code = code_only(source);
    let end = code.find("#[cfg(test)]").unwrap_or(code.len());
    let mut found: Vec<Mutant> = Vec::new();
    let (mut start, mut before) = (0, "");
    for line in code[..end].split_inclusive('\n') {
        let text = line.trim();
        if !text.is_empty() {
            if !PASSED_OVER.iter().any(|word| text.starts_with(word)) {
                for (column, from, to) in of_line(line.trim_end(), before) {
                    let at = start + column;
                    // with what its strings say
                    let from = source[at..at + from.len()].to_owned();
                    let name = String::new();
                    found.push(Mutant { file: file.to_owned(), at, from, to, name });
                }
            }
            before = text;
        }
        start += line.len();
    }
    name(file, source, &mut found);
    found
}

/// The changes of a line: where, what, and what it becomes. `before` is the line before it.
fn of_line<'l>(line: &'l str, before: &str) -> Vec<(usize, &'l str, String)> {
    let text = line.trim();
    let mut found = Vec::new();
    for (from, to) in SWAPS {
        for (at, matched) in line.match_indices(from) {
            let is_word = from.starts_with(|c: char| c.is_ascii_alphabetic());
            if !is_word || stands_alone(line, at, matched.len()) {
                found.push((at, matched, to.to_owned()));
            }
        }
    }
    let is_const = ["const ", "pub const ", "pub(crate) const ", "pub(super) const "]
        .iter()
        .any(|word| text.starts_with(word));
    for (at, literal) in literals(line) {
        let plain: String = literal.chars().filter(|c| *c != '_').collect();
        let Ok(number) = plain.parse::<u64>() else { continue };
        let is_behind = line[..at].contains(" = ");
        if is_const && is_behind {
            found.push((at, literal, (number / 2).to_string()));
        }
        if (is_const && is_behind || !is_const && number >= 2) && number < 1 << 60 {
            found.push((at, literal, (number.max(1) * 2).to_string()));
        }
    }
    found.extend(condition(line).map(|(at, what)| (at, what, format!("!({what})"))));
    if is_statement(text, before) {
        found.push((line.len() - line.trim_start().len(), text, String::new()));
    }
    found
}

/// The condition of an `if` or `while` that fits into its line.
fn condition(line: &str) -> Option<(usize, &str)> {
    let word =
        ["} else if ", "if ", "while "].iter().find(|w| line.trim_start().starts_with(**w))?;
    let at = line.len() - line.trim_start().len() + word.len();
    let what = line[at..].strip_suffix(" {")?;
    (!what.contains("let ") && is_balanced(what)).then_some((at, what))
}

fn is_statement(text: &str, before: &str) -> bool {
    text.ends_with(';')
        && before.ends_with(['{', '}', ';'])
        && is_balanced(text)
        && !NO_STATEMENT.iter().any(|word| text.starts_with(word))
}

fn is_balanced(text: &str) -> bool {
    let mut depth = 0;
    text.bytes().all(|byte| {
        depth += match byte {
            b'(' | b'[' | b'{' => 1,
            b')' | b']' | b'}' => -1,
            _ => 0,
        };
        depth >= 0
    }) && depth == 0
}

/// Whole numbers that stand alone.
fn literals(line: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    for word in line.split_inclusive(|c: char| !is_part(c)) {
        let number = word.trim_end_matches(|c: char| !is_part(c));
        let is_field = line[..at].ends_with('.') && !line[..at].ends_with("..");
        let is_number = number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '_');
        if is_number && !is_field {
            found.push((at, number));
        }
        at += word.len();
    }
    found
}

fn stands_alone(line: &str, at: usize, len: usize) -> bool {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let bytes = line.as_bytes();
    !at.checked_sub(1).is_some_and(|at| is_part(&bytes[at]))
        && !bytes.get(at + len).is_some_and(is_part)
}

/// Names by line and change, numbered where those are the same.
fn name(file: &str, source: &str, mutants: &mut [Mutant]) {
    let mut seen = std::collections::BTreeMap::new();
    for mutant in mutants {
        let start = source[..mutant.at].rfind('\n').map_or(0, |at| at + 1);
        let line = source[start..].lines().next().unwrap_or_default().trim();
        let (from, to) = (mutant.from.trim(), mutant.to.trim());
        let change = match to.is_empty() {
            true => format!("{file}: `{line}` left out"),
            false => format!("{file}: `{line}`: `{from}` is `{to}`"),
        };
        let count: &mut u32 = seen.entry(change.clone()).or_default();
        *count += 1;
        mutant.name = if *count == 1 { change } else { format!("{change} ({count})") };
    }
}

/// Where a mutant stands among those that may be drawn: by its name, so that a line more or less
/// anywhere changes no other's place (FNV-1a).
pub(crate) fn place(name: &str, seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    let mixed = name
        .bytes()
        .fold(start, |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_in_one_place_and_has_a_name() {
        let source = "\
const LATE: u64 = 2;
fn f(a: u64) -> u64 {
    // a + b
    debug_assert!(a < 9);
    if a < 4 && b {
        self.x = a;
    }
    a + 1
}
#[cfg(test)]
mod tests { fn g() { a + b } }
";
        let found = of_text("crates/shape/src/f.rs", source);
        let names: Vec<_> =
            found.iter().map(|m| m.name.strip_prefix("crates/shape/src/f.rs: ").unwrap()).collect();
        assert_eq!(
            names,
            [
                "`const LATE: u64 = 2;`: `2` is `1`",
                "`const LATE: u64 = 2;`: `2` is `4`",
                "`if a < 4 && b {`: `<` is `<=`",
                "`if a < 4 && b {`: `&&` is `||`",
                "`if a < 4 && b {`: `4` is `8`",
                "`if a < 4 && b {`: `a < 4 && b` is `!(a < 4 && b)`",
                "`self.x = a;` left out",
                "`a + 1`: `+` is `-`",
            ]
        );
        assert!(found[3].of(source).unwrap().contains("if a < 4 || b {"));
        assert!(!found[6].of(source).unwrap().contains("self.x"));
        assert_eq!(found[0].of_crate(), "shape");
    }

    #[test]
    fn a_mutant_more_changes_no_other_s_place() {
        let order = |count: u32, seed: u64| {
            let mut names: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            names.sort_by_key(|name| place(name, seed));
            names
        };
        let (few, many) = (order(99, 1), order(100, 1));
        assert!(few.iter().eq(many.iter().filter(|name| *name != "99")));
        assert_ne!(many, order(100, 2));
    }

    #[test]
    fn modules_of_tests_are_known() {
        let file = "crates/shape/src/tree/interior.rs";
        let ends = ["awake.rs", "awake/", "edited.rs", "edited/"];
        let folder = "crates/shape/src/tree/interior";
        assert_eq!(tests_of(file), ends.map(|end| format!("{folder}/{end}")));
    }
}
