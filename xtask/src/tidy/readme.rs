//! Each crate has a README in one form, and shows it as its documentation, so that the two cannot
//! drift apart.

use super::{Files, Problem};

const PARTS: [&str; 5] =
    ["**Purpose.**", "**In and out.**", "**Algorithm.**", "**Bounds.**", "**Cost.**"];
const INCLUDE: &str = "#![doc = include_str!(\"../README.md\")]";

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in files.crates() {
        let path = format!("crates/{name}/README.md");
        match files.text(&path) {
            None => problems.push(Problem::of(&path, "is missing")),
            Some(text) => {
                let missing = PARTS.iter().filter(|part| !text.contains(**part));
                problems.extend(missing.map(|part| Problem::of(&path, format!("has no {part}"))));
            }
        }
        match files.crate_root(name) {
            None => problems.push(Problem::of(&format!("crates/{name}"), "has no src/lib.rs")),
            Some((root, text)) if !text.lines().any(|line| line.trim() == INCLUDE) => {
                problems.push(Problem::of(&root, format!("does not start with {INCLUDE}")));
            }
            Some(_) => {}
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_in_the_form_is_fine() {
        let readme = PARTS.join(" x\n");
        let files = [("crates/a/README.md", readme.as_str()), ("crates/a/src/lib.rs", INCLUDE)];
        assert_eq!(check(&Files::of(&files)), []);
    }

    #[test]
    fn what_is_missing_is_named() {
        let files = [("crates/a/README.md", "**Purpose.** x"), ("crates/a/src/main.rs", "")];
        let found = check(&Files::of(&files));
        assert_eq!(found.len(), PARTS.len(), "{found:?}");
        assert!(found.iter().any(|problem| problem.path == "crates/a/src/main.rs"));
    }
}
