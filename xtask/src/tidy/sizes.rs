//! How wide a line, how long a function and a file may be. `xtask/ratchet.toml` lists what is over,
//! with its present size; an entry with room in it is itself a problem, so the list only shrinks.

use std::collections::BTreeSet;

use super::rust;
use super::{Files, Problem};

const RATCHET: &str = "xtask/ratchet.toml";

/// One thing that is measured of each file.
struct Bound {
    /// The table in the ratchet.
    kind: &'static str,
    allowed: usize,
    measure: fn(&str) -> Vec<Size>,
}

/// A measure with its place.
struct Size {
    line: usize,
    size: usize,
    what: String,
}

const BOUNDS: [Bound; 3] = [
    Bound { kind: "columns", allowed: 100, measure: columns },
    Bound { kind: "functions", allowed: 70, measure: functions },
    Bound { kind: "lines", allowed: 600, measure: lines },
];

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let ratchet: toml::Table = match files.text(RATCHET).unwrap_or_default().parse() {
        Ok(table) => table,
        Err(error) => return vec![Problem::of(RATCHET, format!("is not TOML: {error}"))],
    };
    let mut problems = unknown(&ratchet);
    for bound in &BOUNDS {
        let listed = ratchet.get(bound.kind).and_then(toml::Value::as_table);
        let mut seen = BTreeSet::new();
        for (path, text) in files.ending(&[".rs"]) {
            let entry = listed.and_then(|table| table.get(path)).and_then(toml::Value::as_integer);
            let entry = entry.and_then(|n| usize::try_from(n).ok());
            seen.insert(path);
            bound.hold(path, &(bound.measure)(text), entry, &mut problems);
        }
        let stale = listed.into_iter().flat_map(toml::Table::keys);
        for path in stale.filter(|path| !seen.contains(path.as_str())) {
            let what = format!("[{}] lists \"{path}\", which is no file: remove it", bound.kind);
            problems.push(Problem::of(RATCHET, what));
        }
    }
    problems
}

fn unknown(ratchet: &toml::Table) -> Vec<Problem> {
    let known = |key: &&String| BOUNDS.iter().any(|bound| bound.kind == key.as_str());
    let unknown = ratchet.keys().filter(|key| !known(key));
    unknown.map(|key| Problem::of(RATCHET, format!("no bound is called \"{key}\""))).collect()
}

impl Bound {
    fn hold(&self, path: &str, sizes: &[Size], entry: Option<usize>, out: &mut Vec<Problem>) {
        let allowed = entry.unwrap_or(self.allowed);
        for over in sizes.iter().filter(|size| size.size > allowed) {
            let what = format!("{} has {}, {allowed} are allowed", over.what, over.size);
            out.push(Problem::at(path, over.line, what));
        }
        let Some(entry) = entry else { return };
        let worst = sizes.iter().map(|size| size.size).max().unwrap_or(0);
        let kind = self.kind;
        if worst <= self.allowed {
            let what = format!("[{kind}] \"{path}\" is within {} now: remove it", self.allowed);
            out.push(Problem::of(RATCHET, what));
        } else if worst < entry {
            let what = format!("[{kind}] \"{path}\" = {entry} has room: lower it to {worst}");
            out.push(Problem::of(RATCHET, what));
        }
    }
}

fn columns(text: &str) -> Vec<Size> {
    let size = |(number, line): (usize, &str)| Size {
        line: number + 1,
        size: line.chars().count(),
        what: "the line, in columns,".to_owned(),
    };
    text.lines().enumerate().map(size).collect()
}

fn functions(text: &str) -> Vec<Size> {
    let found = rust::functions(&rust::code_only(text)).into_iter();
    found
        .map(|f| Size { line: f.line, size: f.lines, what: format!("`{}`, in lines,", f.name) })
        .collect()
}

fn lines(text: &str) -> Vec<Size> {
    vec![Size { line: 0, size: text.lines().count(), what: "the file, in lines,".to_owned() }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, ratchet: &str) -> Vec<String> {
        let files = Files::of(&[("a.rs", text), (RATCHET, ratchet)]);
        check(&files).iter().map(ToString::to_string).collect()
    }

    fn long_function(lines: usize) -> String {
        format!("\nfn long() {{\n{}}}\n", "    a();\n".repeat(lines - 2))
    }

    #[test]
    fn a_wide_line_is_named() {
        assert_eq!(found(&"é".repeat(100), ""), [""; 0]);
        let found = found(&format!("a\n{}", "x".repeat(101)), "");
        assert_eq!(found, ["a.rs:2: the line, in columns, has 101, 100 are allowed"]);
    }

    #[test]
    fn a_long_function_is_named() {
        assert_eq!(found(&long_function(70), ""), [""; 0]);
        let found = found(&long_function(71), "");
        assert_eq!(found, ["a.rs:2: `long`, in lines, has 71, 70 are allowed"]);
    }

    #[test]
    fn a_long_file_is_named() {
        assert_eq!(found(&"a\n".repeat(600), ""), [""; 0]);
        assert_eq!(found(&"a\n".repeat(601), "").len(), 1);
    }

    #[test]
    fn the_ratchet_allows_what_it_lists() {
        assert_eq!(found(&long_function(80), "[functions]\n\"a.rs\" = 80\n"), [""; 0]);
        assert_eq!(found(&long_function(81), "[functions]\n\"a.rs\" = 80\n").len(), 1);
    }

    #[test]
    fn the_ratchet_only_shrinks() {
        let room = found(&long_function(79), "[functions]\n\"a.rs\" = 80\n");
        assert!(room[0].contains("lower it to 79"), "{room:?}");
        let within = found(&long_function(9), "[functions]\n\"a.rs\" = 80\n");
        assert!(within[0].contains("remove it"), "{within:?}");
        let stale = found("", "[functions]\n\"b.rs\" = 80\n[width]\n");
        assert_eq!(stale.len(), 2, "{stale:?}");
    }
}
