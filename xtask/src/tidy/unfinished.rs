//! Nothing is left for later in the tree: what is not done is not there, or is an issue.

use super::rust;
use super::{Files, Problem};

// in halves, so that this file does not find itself
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
const MACROS: [&str; 2] = ["todo", "unimplemented"];

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in files.ending(&[".rs", ".md", ".toml"]) {
        for mark in MARKS {
            problems.extend(rust::words(text, mark).map(|at| {
                let what = format!("{mark}: finish it, or leave it out and open an issue");
                Problem::at(path, rust::line_of(text, at), what)
            }));
        }
    }
    for (path, text) in files.ending(&[".rs"]) {
        let code = rust::code_only(text);
        for name in MACROS {
            let calls =
                rust::words(&code, name).filter(|at| code[at + name.len()..].starts_with('!'));
            problems.extend(calls.map(|at| {
                Problem::at(path, rust::line_of(&code, at), format!("{name}!: write it or cut it"))
            }));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_macros_are_named() {
        let text = format!("// {}: later\nfn f() {{ todo!() }}\n", MARKS[0]);
        let found = check(&Files::of(&[("a.rs", &text), ("b.md", MARKS[2])]));
        let lines: Vec<_> = found.iter().map(|p| (p.path.as_str(), p.line)).collect();
        assert_eq!(lines, [("a.rs", 1), ("b.md", 1), ("a.rs", 2)]);
    }

    #[test]
    fn the_words_in_other_places_are_fine() {
        let text = "fn f() { let todo = \"todo!\"; } // a todo! list";
        assert_eq!(check(&Files::of(&[("a.rs", text), ("Cargo.toml", "todo = \"warn\"")])), []);
    }
}
