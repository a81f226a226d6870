//! Every word that a policy may use stands in docs/policy.md. The words are the arrays of that name
//! in the sources of the crate that reads them.

use super::{Files, Problem};

const DOCUMENT: &str = "docs/policy.md";
const SOURCES: &str = "crates/policy/src/";

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let Some(document) = files.text(DOCUMENT) else { return Vec::new() };
    let sources = files.all().filter(|(path, _)| path.starts_with(SOURCES));
    let mut problems = Vec::new();
    for (path, text) in sources {
        for (line, word) in words(text) {
            if !stands_in(document, word) {
                let what =
                    format!("the policy's word \"{word}\" is not in {DOCUMENT}: describe it");
                problems.push(Problem::at(path, line, what));
            }
        }
    }
    problems
}

/// The texts of every constant array whose name ends in `WORDS`, with their lines.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (line, number) in text.lines().zip(1..) {
        let begins = line.contains("const ") && line.contains("WORDS: [");
        inside |= begins;
        if !inside {
            continue;
        }
        let values = if begins { line.split_once('=').map_or("", |(_, rest)| rest) } else { line };
        found.extend(values.split('"').skip(1).step_by(2).map(|word| (number, word)));
        inside = !line.trim_end().ends_with("];");
    }
    found
}

/// Whether a document names a word as code: alone, before `=`, or as the key of a table.
fn stands_in(document: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    document.match_indices(word).any(|(at, _)| {
        let before = document[..at].chars().next_back();
        let after = document[at + word.len()..].trim_start();
        let alone =
            !before.is_some_and(is_part) && !document[at + word.len()..].starts_with(is_part);
        let as_code = matches!(before, Some('`' | '.' | '"' | '['));
        alone && (as_code || after.starts_with('='))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_nobody_describes_is_found() {
        let source = "pub(crate) const WORDS: [&str; 4] =\n    [\"rate\", \"peak-burst\",\n \
                      \"ecn\", \"lost\"];\nconst OTHER: [&str; 1] = [\"x\"];\n";
        let document = "`rate` is\n{ peak-burst = \"3kb\" } and link.ecn\nlost words\n";
        let files = Files::of(&[("crates/policy/src/leaf.rs", source), (DOCUMENT, document)]);
        let found: Vec<(usize, String)> =
            check(&files).into_iter().map(|problem| (problem.line, problem.what)).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 == 3 && found[0].1.contains("\"lost\""), "{found:?}");
    }
}
