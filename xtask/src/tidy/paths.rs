//! No trace of whose machine it was written on: no home or work directories, no tabs, no blanks at
//! the end of a line.

use super::{Files, Problem};

// in halves, so that this file does not find itself
const MACHINES: [&str; 3] = [concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/ro", "ot/")];

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in files.all() {
        for (number, line) in text.lines().enumerate() {
            problems.extend(MACHINES.iter().filter(|machine| names(line, machine)).map(
                |machine| {
                    let what = format!("{machine} is a path of one machine; name it from the root");
                    Problem::at(path, number + 1, what)
                },
            ));
        }
    }
    for (path, text) in files.ending(&[".rs", ".md", ".toml"]) {
        for (number, line) in text.split('\n').enumerate() {
            if line.contains('\t') {
                problems.push(Problem::at(path, number + 1, "a tab: indent with spaces"));
            }
            if line != line.trim_end_matches([' ', '\t', '\r']) {
                problems.push(Problem::at(path, number + 1, "a blank at the end of the line"));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            problems.push(Problem::of(path, "the last line does not end"));
        }
    }
    problems
}

/// Whether an absolute path starts there: `a/work/b` is somebody's folder, not the directory.
fn names(line: &str, machine: &str) -> bool {
    line.match_indices(machine).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_named() {
        let text = format!("a\nsee {}me/x\n", MACHINES[0]);
        let found = check(&Files::of(&[("a.csv", &text)]));
        assert_eq!((found.len(), found[0].line), (1, 2));
        let inside = format!("docs{}me\n", MACHINES[1]);
        assert_eq!(check(&Files::of(&[("a.csv", &inside)])), []);
    }

    #[test]
    fn blanks_at_the_end_and_tabs_are_named() {
        let found = check(&Files::of(&[("a.md", "a \n\tb\nc"), ("a.csv", "a \n\tb")]));
        let lines: Vec<_> = found.iter().map(|p| p.line).collect();
        assert_eq!(lines, [1, 2, 0], "{found:?}");
    }
}
