//! docs/policy.md and the policy crate name the same words. Every word, value and term that the
//! reader accepts is documented, and every one that is documented exists.
//!
//! What the reader accepts is taken from its source: the words that it takes from a table, the
//! lists of them that messages show, and the arrays of values. What is documented are the first
//! cells of the tables of words, values and terms, and every `word = value` in code.

use std::collections::{BTreeMap, BTreeSet};

use super::{Files, Problem, markdown};

const DOCUMENT: &str = "docs/policy.md";
const SOURCES: &str = "crates/policy/src/";
const PROTOCOLS: &str = "crates/units/src/protocol.rs";

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let Some(document) = files.text(DOCUMENT) else { return Vec::new() };
    let accepted = Accepted::of(files);
    let mut problems = Vec::new();
    for (word, (path, line)) in &accepted.all {
        if !stands_in(document, word) {
            let what = format!("the policy's word \"{word}\" is not in {DOCUMENT}: describe it");
            problems.push(Problem::at(path, *line, what));
        }
    }
    for (line, word) in documented(document, &accepted) {
        let what = format!("the policy has no \"{word}\": remove it, or correct its name");
        problems.push(Problem::at(DOCUMENT, line, what));
    }
    problems
}

/// What the reader accepts.
#[derive(Default)]
struct Accepted {
    /// Everything, with the place in the source.
    all: BTreeMap<String, (String, usize)>,
    /// Words of tables, and columns of the table of subscribers.
    words: BTreeSet<String>,
    /// The first words of terms of a rule.
    terms: BTreeSet<String>,
    /// The values of words that have a closed list of them.
    values: BTreeMap<String, BTreeSet<String>>,
}

impl Accepted {
    fn of(files: &Files) -> Accepted {
        let mut accepted = Accepted::default();
        let sources = || files.all().filter(|(path, _)| path.starts_with(SOURCES));
        let mut arrays: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (path, text) in sources() {
            let text = text.split("#[cfg(test)]").next().unwrap_or("");
            for list in lists(text) {
                for (line, word) in list.strings {
                    let place = (path.to_owned(), line);
                    accepted.all.entry(word.to_owned()).or_insert(place);
                    match list.what {
                        What::Words => accepted.words.insert(word.to_owned()),
                        What::Terms => accepted.terms.insert(word.to_owned()),
                        What::Values(name) => {
                            arrays.entry(name).or_default().insert(word.to_owned())
                        }
                    };
                }
            }
        }
        // `entry.word("queue", &QUEUES, problems)` says which values a word has
        for (_, text) in sources() {
            for (word, rest) in after(text, ".word(\"") {
                let name = rest.strip_prefix(", &").and_then(|rest| rest.split(',').next());
                if let Some(values) = name.and_then(|name| arrays.get(name)) {
                    accepted.values.entry(word.to_owned()).or_default().extend(values.clone());
                }
            }
        }
        let protocols = files.text(PROTOCOLS).unwrap_or("");
        accepted.terms.extend(after(protocols, "(\"").map(|(name, _)| name.to_owned()));
        accepted
    }

    fn is_value(&self, word: &str) -> bool {
        self.values.values().any(|values| values.contains(word))
    }
}

/// The texts behind each `mark`, up to the closing quote, and what follows them.
fn after<'t>(text: &'t str, mark: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    text.split(mark).skip(1).filter_map(|rest| rest.split_once('"'))
}

enum What<'t> {
    Words,
    Terms,
    /// Values, by the name of their array.
    Values(&'t str),
}

/// A list of words in a source, with their lines.
struct List<'t> {
    what: What<'t>,
    strings: Vec<(usize, &'t str)>,
}

/// What a list in this line would be of, and the text from which its strings begin.
fn begins(line: &str) -> Option<(What<'_>, &str)> {
    if let Some((_, rest)) = line.split_once("const ")
        && let Some((name, rest)) = rest.split_once(": [")
        && let Some((kind, rest)) = rest.split_once('=')
    {
        let what = match () {
            () if kind.starts_with("(&str,") => What::Values(name),
            () if kind.starts_with("&str;") && name == "TERMS" => What::Terms,
            () if kind.starts_with("&str;") && (name.ends_with("WORDS") || name == "COLUMNS") => {
                What::Words
            }
            () => return None,
        };
        return Some((what, rest));
    }
    let marks = [".finish(&[", "known.extend([", "known = vec!["];
    let rest = marks.iter().find_map(|mark| line.split_once(mark))?.1;
    Some((What::Words, rest))
}

fn lists(text: &str) -> Vec<List<'_>> {
    let numbered = || text.lines().zip(1..);
    let taken = numbered().flat_map(|(line, number): (_, usize)| {
        after(line, ".take(\"").map(move |(word, _)| (number, word))
    });
    let mut found = vec![List { what: What::Words, strings: taken.collect() }];
    let mut is_open = false;
    for (line, number) in numbered() {
        let rest = match begins(line) {
            Some((what, rest)) => {
                found.push(List { what, strings: Vec::new() });
                rest
            }
            None if is_open => line,
            None => continue,
        };
        let list = rest.split(']').next().unwrap_or(rest);
        is_open = list.len() == rest.len();
        let strings = list.split('"').skip(1).step_by(2).map(|word| (number, word));
        found.last_mut().expect("one was begun").strings.extend(strings);
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
        let as_code = matches!(before, Some('`' | '.' | '"' | '[' | ','));
        alone && (as_code || after.starts_with('='))
    })
}

/// What the document names and the reader does not accept.
fn documented<'d>(document: &'d str, accepted: &Accepted) -> Vec<(usize, &'d str)> {
    let mut unknown = Vec::new();
    let (mut head, mut table) = ("", "");
    for (line, number) in document.lines().zip(1..) {
        let cells = markdown::cells(line);
        match cells.as_ref().and_then(|cells| cells.first()) {
            Some(first @ &("word" | "value" | "term")) => head = first,
            Some(first) => {
                let is_known = |span: &str| match head {
                    "word" => accepted.words.contains(span),
                    "value" => accepted.is_value(span),
                    "term" => span.split(' ').next().is_some_and(|w| accepted.terms.contains(w)),
                    _ => true,
                };
                let spans = markdown::code_spans(first).filter(|span| !is_known(span));
                unknown.extend(spans.map(|span| (number, span)));
            }
            None if line.starts_with('|') => {}
            None => head = "",
        }
        let code: Vec<&str> = match line.strip_prefix("    ") {
            Some(code) => vec![code.split(" # ").next().unwrap_or(code)],
            None => markdown::code_spans(line).collect(),
        };
        if line.starts_with("    [") {
            table = line.trim_start();
        }
        // the names of groups are the operator's own
        if !table.starts_with("[group]") || !line.starts_with("    ") {
            unknown.extend(code.into_iter().flat_map(settings).filter_map(|(word, value)| {
                let values = accepted.values.get(word);
                let is_wrong = |value: &&str| values.is_some_and(|all| !all.contains(*value));
                match value.filter(is_wrong) {
                    _ if !accepted.words.contains(word) => Some((number, word)),
                    wrong => wrong.map(|value| (number, value)),
                }
            }));
        }
    }
    unknown
}

/// Each `word = "value"` of a piece of code; no value where it is not a text.
fn settings(code: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    code.match_indices(" = ").filter_map(|(at, mark)| {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let word = &code[code[..at].rfind(|c| !is_part(c)).map_or(0, |end| end + 1)..at];
        let value = code[at + mark.len()..].strip_prefix('"').and_then(|v| v.split('"').next());
        (!word.is_empty()).then_some((word, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: &str = "pub(crate) const WORDS: [&str; 4] =\n    [\"rate\", \"peak-burst\",\n \
        \"ecn\", \"queue\"];\nconst OTHER: [&str; 1] = [\"x\"];\n\
        const QUEUES: [(&str, Queue); 2] = [(\"fifo\", F), (\"fair\", G)];\n\
        let queue = entry.word(\"queue\", &QUEUES, problems);\nlet a = table.take(\"age\");\n\
        table.finish(&[\"when\"], problems);\n#[cfg(test)]\nlet a = table.take(\"none\");\n";
    const WHOLE: &str = "`rate` is\n{ peak-burst = \"3kb\" } and link.ecn\n| word | meaning |\n\
        |---|---|\n| `queue` | `fifo`, `fair` |\n\n    age = \"5m\"\n    when = \"x\"\n    \
        queue = \"fifo\"\n\n    [group]\n    mine = []\n";

    fn found(document: &str) -> Vec<(usize, String)> {
        let files = Files::of(&[("crates/policy/src/leaf.rs", READER), (DOCUMENT, document)]);
        check(&files).into_iter().map(|problem| (problem.line, problem.what)).collect()
    }

    #[test]
    fn what_is_described_is_fine() {
        assert_eq!(found(WHOLE), []);
    }

    #[test]
    fn a_word_that_nobody_describes_is_found() {
        for (word, line) in [("ecn", 3), ("fair", 5), ("age", 7), ("when", 8)] {
            let found = found(&WHOLE.replace(word, "another"));
            let is_named = |(at, what): &(usize, String)| {
                *at == line && what.contains(&format!("\"{word}\" is not in"))
            };
            assert!(found.iter().any(is_named), "{word}: {found:?}");
        }
    }

    #[test]
    fn a_word_that_does_not_exist_is_found() {
        for (line, more) in [
            (5, "| `rat` | |"),
            (13, "`rat = 5`"),
            (13, "    [class.\"/a\"]\n    rat = \"5m\""),
            (13, "    [x]\n    queue = \"fiffo\""),
        ] {
            let document = match line {
                5 => WHOLE.replace("| `queue`", &format!("{more}\n| `queue`")),
                _ => format!("{WHOLE}{more}\n"),
            };
            let found = found(&document);
            assert!(found.len() == 1 && found[0].1.contains("has no"), "{more}: {found:?}");
            assert!(found[0].0 >= line, "{more}: {found:?}");
        }
    }
}
