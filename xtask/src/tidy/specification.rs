//! Each command that SPECIFICATION.md names as the proof of a promise is one that exists: those of
//! `cargo x` by its own table, those of `weir` by the words in its source, and those of
//! `cargo test` by the crate, the test and the name that they choose: one that chooses nothing
//! passes.

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
                let what = format!("`{command}` is no command, or proves nothing: it is not there");
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
    match command.strip_prefix("cargo test --package weir-") {
        Some(rest) => chooses_tests(files, rest),
        None => true,
    }
}

/// Whether `CRATE [--test TEST].. [NAME]` is there.
fn chooses_tests(files: &Files, rest: &str) -> bool {
    let mut words = rest.split_whitespace().take_while(|word| *word != "--");
    let Some(name) = words.next() else { return false };
    let home = format!("crates/{name}");
    let mut is_there = files.exists(&home);
    while let Some(word) = words.next() {
        is_there &= match word {
            "--test" => words.next().is_some_and(|test| {
                let test = format!("{home}/tests/{test}");
                files.exists(&format!("{test}.rs")) || files.exists(&format!("{test}/main.rs"))
            }),
            // a target that has no other name than its crate's
            "--lib" | "--doc" => true,
            option if option.starts_with('-') => false,
            path => path.split("::").filter(|part| !part.is_empty()).all(|part| {
                let of_crate = |(path, _): &(&str, &str)| path.starts_with(&format!("{home}/"));
                let names = |(path, text): (&str, &str)| {
                    path.contains(part)
                        || text.contains(&format!("mod {part}"))
                        || text.lines().any(|l| l.contains("fn ") && l.contains(part))
                };
                files.ending(&[".rs"]).filter(of_crate).any(names)
            }),
        };
    }
    is_there
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
        let files = [
            (SPECIFICATION, table),
            ("crates/cli/src/main.rs", "enum C { BondSim } \"check\""),
            ("crates/a/src/lib.rs", "mod tests { fn all_is_well() {} }"),
            ("crates/a/tests/it/main.rs", ""),
        ];
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

    #[test]
    fn tests_that_are_not_there_prove_nothing() {
        let row = |arguments: &str| format!("| a | `cargo test --package weir-{arguments}` |\n");
        for there in ["a", "a --test it", "a tests::all_is", "a --test it --test it -- --ignored"] {
            assert_eq!(found(&row(there)), [], "{there}");
        }
        for not in ["b", "a --test at", "a run::", "a tests::gone", "a --bin weir", ""] {
            assert_eq!(found(&row(not)), [1], "{not}");
        }
    }
}
