//! A relative link of a Markdown file points at something that is there.

use super::markdown;
use super::{Files, Problem};

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in files.ending(&[".md"]) {
        for (number, line) in markdown::prose(text) {
            for link in links(line) {
                if !leads_somewhere(files, path, link) {
                    let what = format!("the link to \"{link}\" leads nowhere");
                    problems.push(Problem::at(path, number, what));
                }
            }
        }
    }
    problems
}

/// The targets of `[text](target)`, code aside.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let prose = line.split('`').step_by(2);
    prose.flat_map(|part| part.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()))
}

fn leads_somewhere(files: &Files, from: &str, link: &str) -> bool {
    let target = link.split('#').next().unwrap_or("");
    let elsewhere = link.contains("://") || link.starts_with("mailto:");
    if elsewhere || target.is_empty() {
        return true;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return false;
                }
            }
            name => parts.push(name),
        }
    }
    files.exists(&parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "[a](b.md#x) [c](../crates/a) [d](https://e.org/f) [g](#h) `[i](j)`\n\
            ```\n[k](l)\n```\n";
        let files = [("docs/a.md", text), ("docs/b.md", ""), ("crates/a/README.md", "")];
        assert_eq!(check(&Files::of(&files)), []);
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let found = check(&Files::of(&[("docs/a.md", "x\n[a](b.md), [`c`](../../c.md)\n")]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].line, 2);
    }
}
