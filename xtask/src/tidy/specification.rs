//! Each command that SPECIFICATION.md names as the proof of a promise is one that exists, by its
//! first word: those of `cargo x` from its own table, those of `weir` from the words in its source.

use super::markdown;
use super::rust;
use super::{Files, Problem};

const SPECIFICATION: &str = "SPECIFICATION.md";

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let Some(text) = files.text(SPECIFICATION) else {
        return vec![Problem::of(SPECIFICATION, "is missing")];
    };
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let cells = markdown::cells(line).unwrap_or_default();
        for command in cells.into_iter().flat_map(markdown::code_spans) {
            if !is_known(files, command) {
                let what = format!("`{command}` starts with a word that is no command");
                problems.push(Problem::at(SPECIFICATION, number + 1, what));
            }
        }
    }
    problems
}

fn is_known(files: &Files, command: &str) -> bool {
    if let Some(rest) = command.strip_prefix("cargo x ") {
        return first(rest).is_some_and(|word| crate::COMMANDS.iter().any(|c| c.name == word));
    }
    if let Some(rest) = command.strip_prefix("weir ") {
        return first(rest).is_some_and(|word| in_source(files, word));
    }
    true
}

fn first(rest: &str) -> Option<&str> {
    rest.split_whitespace().next()
}

/// As a string (`"check"`) or as a variant (`Check`). Without a crates/cli there is nothing to ask.
fn in_source(files: &Files, word: &str) -> bool {
    if !files.exists("crates/cli") {
        return true;
    }
    let text = format!("\"{word}\"");
    let variant: String = word.split('-').map(capital).collect();
    let mut sources = files.all().filter(|(path, _)| path.starts_with("crates/cli/src/"));
    sources
        .any(|(_, source)| source.contains(&text) || rust::words(source, &variant).next().is_some())
}

fn capital(part: &str) -> String {
    let mut letters = part.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(table: &str) -> Vec<usize> {
        let files =
            [(SPECIFICATION, table), ("crates/cli/src/main.rs", "enum C { BondSim } \"check\"")];
        check(&Files::of(&files)).iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn known_commands_are_fine() {
        assert_eq!(
            found("| a | `weir check FILE`, `weir bond-sim` |\n| b | `cargo x bench` |\n"),
            []
        );
        assert_eq!(found("`weir nothing` outside a table\n| c | `cargo test` |\n"), []);
    }

    #[test]
    fn an_unknown_command_is_named() {
        assert_eq!(found("| a | `weir chekc FILE` |\n| b | `cargo x brew` |\n"), [1, 2]);
    }
}
