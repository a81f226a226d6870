//! Which mutants there are, by whose tests they are judged, and which survivors are argued:
//! xtask/mutants.toml.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use values::{list, text, whole};

use super::draw::{self, Mutant};
use crate::shell;

const FILE: &str = "xtask/mutants.toml";

pub(crate) struct Plan {
    /// Files and folders of which all mutants are tried.
    whole: Vec<String>,
    /// Crates of which some of the rest are, so many, drawn from this seed.
    rest: Vec<String>,
    draw: usize,
    pub(crate) seed: u64,
    /// By crate: what `cargo test` is given, one after the other.
    pub(crate) judges: BTreeMap<String, Vec<Vec<String>>>,
    /// Why a survivor may be one.
    pub(crate) argued: BTreeMap<String, String>,
}

impl Plan {
    pub(crate) fn read() -> Result<Plan, String> {
        let path = shell::root().join(FILE);
        let source = std::fs::read_to_string(&path).map_err(|e| format!("{FILE}: {e}"))?;
        Plan::parse(&source).map_err(|e| format!("{FILE}: {e}"))
    }

    fn parse(source: &str) -> Result<Plan, String> {
        let table: toml::Table = source.parse().map_err(|e: toml::de::Error| e.to_string())?;
        let mut judges = BTreeMap::new();
        for judge in tables(&table, "judge") {
            let runs = list(judge, "tests")?.into_iter().map(|run| split(&run)).collect();
            judges.insert(text(judge, "crate")?, runs);
        }
        let mut argued = BTreeMap::new();
        for entry in tables(&table, "argued") {
            let why = text(entry, "why")?;
            if why.is_empty() {
                return Err("an argued mutant says no \"why\"".to_owned());
            }
            for mutant in list(entry, "mutants")? {
                argued.insert(mutant, why.clone());
            }
        }
        Ok(Plan {
            whole: list(&table, "whole")?,
            rest: list(&table, "rest")?,
            draw: usize::try_from(whole(&table, "draw")?).unwrap_or(usize::MAX),
            seed: whole(&table, "seed")?,
            judges,
            argued,
        })
    }

    /// All of the files that are named, and those drawn from the rest.
    pub(crate) fn mutants(&self) -> Result<Vec<Mutant>, String> {
        let mut named = BTreeSet::new();
        for path in &self.whole {
            sources(&shell::root().join(path), &mut named)?;
        }
        let mut others = BTreeSet::new();
        for name in &self.rest {
            sources(&shell::root().join(format!("crates/{name}/src")), &mut others)?;
        }
        let tests: BTreeSet<_> = others.iter().flat_map(|file| draw::tests_of(file)).collect();
        let is_test = |file: &String| tests.iter().any(|test| file.starts_with(test.as_str()));
        named.retain(|file| !is_test(file));
        others.retain(|file| !is_test(file));
        let mut all = Vec::new();
        for file in &named {
            all.append(&mut draw::of_file(file)?);
        }
        let mut drawn = Vec::new();
        for file in others.difference(&named) {
            drawn.append(&mut draw::of_file(file)?);
        }
        drawn.sort_by_key(|mutant| draw::place(&mutant.name, self.seed));
        drawn.truncate(self.draw);
        drawn.sort_by(|a, b| (&a.file, a.at).cmp(&(&b.file, b.at)));
        all.append(&mut drawn);
        Ok(all)
    }
}

/// The files of Rust at a path, by their names from the root on.
fn sources(path: &Path, found: &mut BTreeSet<String>) -> Result<(), String> {
    let fault = |e: std::io::Error| format!("{}: {e}", path.display());
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(fault)? {
            sources(&entry.map_err(fault)?.path(), found)?;
        }
    } else if !path.is_file() {
        return Err(format!("{FILE} names {}, which is not there", path.display()));
    } else if path.extension().is_some_and(|e| e == "rs") {
        let name = path.strip_prefix(shell::root()).unwrap_or(path);
        found.insert(name.display().to_string());
    }
    Ok(())
}

fn split(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

fn tables<'t>(table: &'t toml::Table, name: &str) -> impl Iterator<Item = &'t toml::Table> {
    let list = table.get(name).and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(toml::Value::as_table)
}

/// Values of a table, each with its fault in words.
mod values {
    pub(super) fn text(table: &toml::Table, name: &str) -> Result<String, String> {
        let value = table.get(name).and_then(toml::Value::as_str);
        value.map(str::to_owned).ok_or(format!("an entry says no \"{name}\""))
    }

    pub(super) fn list(table: &toml::Table, name: &str) -> Result<Vec<String>, String> {
        let list = table.get(name).and_then(toml::Value::as_array);
        let list = list.ok_or(format!("\"{name}\" is not a list"))?;
        let text = |value: &toml::Value| value.as_str().map(str::to_owned);
        list.iter()
            .map(text)
            .collect::<Option<_>>()
            .ok_or(format!("\"{name}\" has what is no text"))
    }

    pub(super) fn whole(table: &toml::Table, name: &str) -> Result<u64, String> {
        let value = table.get(name).and_then(toml::Value::as_integer);
        value.and_then(|n| u64::try_from(n).ok()).ok_or(format!("\"{name}\" is not a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_and_is_there() {
        let plan = Plan::read().unwrap();
        let mutants = plan.mutants().unwrap();
        let names: BTreeSet<_> = mutants.iter().map(|m| &m.name).collect();
        assert_eq!(names.len(), mutants.len(), "names are one each");
        for mutant in &mutants {
            assert!(plan.judges.contains_key(mutant.of_crate()), "{}", mutant.name);
        }
        let again: Vec<_> = plan.mutants().unwrap().into_iter().map(|m| m.name).collect();
        assert!(again.iter().eq(mutants.iter().map(|m| &m.name)));
    }
}
