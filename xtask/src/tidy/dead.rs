//! A function or constant that a crate makes public is used by another crate, or by its own tests
//! outside `src`: the compiler warns of nothing that is public, so code that nobody calls would
//! stay for ever. Types are left out, as other crates hold values of types that they never name.

use std::collections::{BTreeMap, BTreeSet};

use super::rust::code_only;
use super::{Files, Problem};

const KINDS: [&str; 3] = ["fn", "const", "static"];

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let sources: Vec<(&str, String)> =
        files.ending(&[".rs"]).map(|(path, text)| (path, code_only(text))).collect();
    // in how many homes each word stands, and in which if it is one
    let mut homes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, code) in &sources {
        let home = home(path).unwrap_or(path);
        for word in code.split(|c: char| !c.is_alphanumeric() && c != '_') {
            homes.entry(word).or_default().insert(home);
        }
    }
    let mut problems = Vec::new();
    for (path, code) in &sources {
        if home(path).is_none() {
            continue;
        }
        for (name, line) in public(code) {
            if homes.get(name).is_some_and(|homes| homes.len() == 1) {
                let what = format!(
                    "`{name}` is public and used by no other crate: make it pub(crate), or remove \
                     it if nobody calls it then"
                );
                problems.push(Problem::at(path, line, what));
            }
        }
    }
    problems
}

/// The sources of a library: all of its files are one home. Others stand for themselves.
fn home(path: &str) -> Option<&str> {
    let at = path.strip_prefix("crates/")?.find("/src/")?;
    Some(&path[.."crates/".len() + at])
}

/// Functions and constants that are public, with their lines.
fn public(code: &str) -> impl Iterator<Item = (&str, usize)> {
    code.lines().zip(1..).filter_map(|(line, number)| {
        let mut words = line.trim_start().strip_prefix("pub ")?.split_whitespace();
        let kind = words.by_ref().find(|word| !["async", "unsafe"].contains(word))?;
        let mut name = words.next()?;
        if !KINDS.contains(&kind) {
            return None;
        }
        if name == "fn" {
            // a constant function
            name = words.next()?;
        }
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        Some((&name[..end], number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_other_crate_uses_is_found() {
        let files = Files::of(&[
            (
                "crates/a/src/lib.rs",
                "pub const fn lost(a: u8) {}\npub fn used<T>() {}\npub(crate) fn own() {}\n\
                 pub const ALONE: u8 = 1; // used\npub struct Held;\n// pub fn said() {}\n",
            ),
            ("crates/a/src/more.rs", "fn x() { lost(); ALONE; }"),
            ("crates/a/tests/t.rs", "fn x() { tested() }"),
            ("crates/a/src/t.rs", "pub fn tested() {}"),
            ("crates/b/src/lib.rs", "fn y() { used::<u8>(); } // lost"),
        ]);
        let found: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/lib.rs:1: `lost`"), "{found:?}");
        assert!(found[1].starts_with("crates/a/src/lib.rs:4: `ALONE`"), "{found:?}");
    }
}
