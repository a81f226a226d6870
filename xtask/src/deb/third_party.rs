//! The libraries that the binary is built from: name, version and licence of each, and the texts
//! that their licences want to be passed on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::shell;

/// How the files begin that hold a licence or a notice.
const TEXTS: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// The whole list.
pub(super) fn text() -> Result<String, String> {
    let tree = ["tree", "--package", "weir-cli", "--edges", "normal", "--prefix", "none"];
    let mut tree = shell::program("cargo", &tree);
    let crates = linked(&shell::output_of(tree.args(["--format", "{p}|{l}"]))?);
    let registries = registries();
    let mut said = String::from("Libraries that the program weir is built from.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (folder, licence) in &crates {
        said += &format!("{folder}  {licence}\n");
        let places = registries.iter().map(|registry| registry.join(folder));
        for path in places.flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            if TEXTS.iter().any(|text| name.starts_with(text))
                && let Ok(text) = fs::read_to_string(&path)
            {
                texts.entry(text.trim().to_owned()).or_default().push(folder.clone());
            }
        }
    }
    // many have the same text: once for all of them
    let mut texts: Vec<(Vec<String>, String)> = texts.into_iter().map(|(t, of)| (of, t)).collect();
    texts.sort();
    for (folders, text) in texts {
        said += &format!("\n{}\n{}\n\n{text}\n", "=".repeat(78), folders.join(", "));
    }
    Ok(said)
}

/// `name-version` and the licence of each library, from the lines of `cargo tree`: without our own
/// and those that only run while weir is built.
fn linked(tree: &str) -> BTreeSet<(String, String)> {
    let ours = |package: &str| package.contains('/');
    let lines = tree.lines().filter_map(|line| line.split_once('|'));
    let lines = lines.filter(|(package, _)| !ours(package) && !package.contains("(proc-macro)"));
    lines
        .filter_map(|(package, licence)| {
            let (name, version) = package.split_once(" v")?;
            let version = version.split(' ').next()?;
            let licence = licence.trim_end_matches(" (*)");
            Some((format!("{name}-{version}"), licence.to_owned()))
        })
        .collect()
}

/// Where cargo keeps the sources of what it has built.
fn registries() -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.unwrap_or_default().join("registry/src");
    let entries = fs::read_dir(sources).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_and_those_of_the_build_are_not_listed() {
        let tree = "weir-cli v0.1.0 (/src/crates/cli)|Apache-2.0\n\
                    clap v4.6.7|MIT OR Apache-2.0\n\
                    clap v4.6.7|MIT OR Apache-2.0 (*)\n\
                    clap_derive v4.6.7 (proc-macro)|MIT OR Apache-2.0\n";
        let all: Vec<_> = linked(tree).into_iter().collect();
        assert_eq!(all, [("clap-4.6.7".to_owned(), "MIT OR Apache-2.0".to_owned())]);
    }
}
