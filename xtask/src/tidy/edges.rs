//! Which crate may use which. The table in ARCHITECTURE.md is the only place that says so; what the
//! manifests do must be within it. Tests may use any crate but io, daemon, proving and cli: the
//! core is tested without a system under it.

use std::collections::{BTreeMap, BTreeSet};

use super::markdown;
use super::{Files, Problem};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Crate dependencies";

#[derive(Debug, PartialEq, Eq)]
enum Allowed {
    Everything,
    These(BTreeSet<String>),
}

impl Allowed {
    fn has(&self, name: &str) -> bool {
        match self {
            Allowed::Everything => true,
            Allowed::These(names) => names.contains(name),
        }
    }
}

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let table = match table(files) {
        Ok(table) => table,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    for name in files.crates() {
        let path = format!("crates/{name}/Cargo.toml");
        let Some(manifest) = files.text(&path) else { continue };
        let Some(allowed) = table.get(name) else {
            let what = format!("no row of \"{HEADING}\" says what {name} may use");
            problems.push(Problem::of(ARCHITECTURE, what));
            continue;
        };
        match used(manifest) {
            Err(why) => problems.push(Problem::of(&path, why)),
            Ok((uses, tests_use)) => {
                let outside = |used: &&String| !allowed.has(used) && *used != name;
                problems.extend(uses.iter().filter(outside).map(|used| edge(&path, name, used)));
                let system =
                    |used: &&String| ["io", "daemon", "proving", "cli"].contains(&used.as_str());
                let tests = tests_use.iter().filter(system).filter(outside);
                problems.extend(tests.map(|used| edge(&path, &format!("tests of {name}"), used)));
            }
        }
    }
    problems
}

fn edge(path: &str, who: &str, used: &str) -> Problem {
    let what = format!(
        "{who} may not use {used}; a new edge is a decision: argue it in the commit that adds it \
         to \"{HEADING}\" in {ARCHITECTURE}"
    );
    Problem::of(path, what)
}

fn table(files: &Files) -> Result<BTreeMap<String, Allowed>, Problem> {
    let text = files.text(ARCHITECTURE).unwrap_or_default();
    let (_, lines) = markdown::section(text, HEADING)
        .ok_or_else(|| Problem::of(ARCHITECTURE, format!("has no section \"{HEADING}\"")))?;
    let mut table = BTreeMap::new();
    for row in lines.iter().filter_map(|line| markdown::cells(line)).skip(1) {
        let [names, allowed] = row[..] else { continue };
        for name in list(names) {
            table.insert(name, uses(allowed));
        }
    }
    Ok(table)
}

fn uses(cell: &str) -> Allowed {
    match cell {
        "everything" => Allowed::Everything,
        "nothing of ours" => Allowed::These(BTreeSet::new()),
        names => Allowed::These(list(names).collect()),
    }
}

/// `a, b (only its face)` as `a` and `b`.
fn list(cell: &str) -> impl Iterator<Item = String> + '_ {
    cell.split(',').map(|part| part.split('(').next().unwrap_or("").trim().to_owned())
}

/// Our crates in the dependencies of a manifest, and in those of its tests.
fn used(manifest: &str) -> Result<(BTreeSet<String>, BTreeSet<String>), String> {
    let table: toml::Table = manifest.parse().map_err(|e| format!("is not TOML: {e}"))?;
    let mut found = (BTreeSet::new(), BTreeSet::new());
    let targets = table.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(toml::Table::values);
    for owner in targets.filter_map(toml::Value::as_table).chain([&table]) {
        found.0.extend(ours(owner, "dependencies"));
        found.0.extend(ours(owner, "build-dependencies"));
        found.1.extend(ours(owner, "dev-dependencies"));
    }
    Ok(found)
}

fn ours<'t>(owner: &'t toml::Table, kind: &str) -> impl Iterator<Item = String> + use<'t> {
    let table = owner.get(kind).and_then(toml::Value::as_table);
    table.into_iter().flatten().filter_map(|(key, value)| {
        let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(key);
        package.strip_prefix("weir-").map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# x\n## Crate dependencies\n\n| crate | may use |\n|---|---|\n\
        | units | nothing of ours |\n| packet, io | units |\n| cli | everything |\n## Next\n";

    fn problems(name: &str, manifest: &str) -> Vec<Problem> {
        let path = format!("crates/{name}/Cargo.toml");
        check(&Files::of(&[("ARCHITECTURE.md", TABLE), (&path, manifest)]))
    }

    #[test]
    fn an_edge_in_the_table_is_fine() {
        let manifest = "[dependencies]\nweir-units.workspace = true\nserde = \"1\"\n";
        assert_eq!(problems("packet", manifest), []);
        assert_eq!(problems("cli", manifest), []);
    }

    #[test]
    fn an_edge_outside_the_table_is_named() {
        for manifest in [
            "[dependencies]\nweir-io.workspace = true\n",
            "[build-dependencies]\nweir-io = { path = \"../io\" }\n",
            "[dependencies]\nsneaky = { package = \"weir-io\", path = \"../io\" }\n",
            "[target.'cfg(unix)'.dependencies]\nweir-io.workspace = true\n",
        ] {
            let found = problems("packet", manifest);
            assert_eq!(found.len(), 1, "{manifest}");
            assert!(found[0].what.contains("packet may not use io"), "{}", found[0]);
        }
    }

    #[test]
    fn tests_may_use_all_but_the_system() {
        assert_eq!(problems("units", "[dev-dependencies]\nweir-packet.workspace = true\n"), []);
        let found = problems("units", "[dev-dependencies]\nweir-io.workspace = true\n");
        assert!(found[0].what.contains("tests of units may not use io"), "{}", found[0]);
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        assert!(problems("new", "")[0].what.contains("what new may use"));
        let none = check(&Files::of(&[("ARCHITECTURE.md", "# x\n")]));
        assert!(none[0].what.contains("no section"));
    }
}
