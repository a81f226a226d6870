//! `cargo x experiments`: every experiment that `weir` carries, whether its claims hold, and if its
//! README has the figures of today. `cargo x test` runs them with one seed, which the claims
//! must survive too, and compares what is printed with `result.snap` of each folder, byte by byte:
//! virtual time gives the same everywhere.

mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Done, shell};

/// All of them as the scenarios say; or with one seed, to compare (`--once`); or both, to keep what
/// is printed (`--snap`). Behind the word may stand those that are meant.
pub(crate) fn all(arguments: &[String]) -> Done {
    let (word, names) = match arguments {
        [word, names @ ..] if word.starts_with("--") => (word.as_str(), names),
        names => ("", names),
    };
    if let Some(other) = names.iter().find(|name| !is_there(name)) {
        return Err(format!("takes --once or --snap and names, but was given \"{other}\""));
    }
    match word {
        "" => run(names, &[], |folder, text| {
            print!("{text}");
            let is_new = |readme: &str| tables::renewed(readme, text) == readme;
            let fine = read(&folder.join(README)).is_ok_and(|readme| is_new(&readme));
            if !fine {
                println!("{}: tables of {README} are out of date: {RENEW}", name(folder));
            }
            Ok(fine)
        }),
        "--once" => once(names),
        "--snap" => {
            let one =
                run(names, &["--seeds", "1"], |folder, text| write(&folder.join(SNAP), text))?;
            let all = run(names, &[], |folder, text| {
                let path = folder.join(README);
                write(&path, &tables::renewed(&read(&path)?, text))
            })?;
            Ok(one && all)
        }
        other => Err(format!("takes --once or --snap and names, but was given \"{other}\"")),
    }
}

fn is_there(experiment: &str) -> bool {
    folders().is_ok_and(|folders| folders.iter().any(|folder| name(folder) == experiment))
}

const SNAP: &str = "result.snap";
const README: &str = "README.md";
const RENEW: &str = "cargo x experiments --snap, and look at git diff";

/// Those of these names, or all of them, with one seed; what does not hold, or is not as it was, is
/// shown.
pub(crate) fn once(names: &[String]) -> Done {
    run(names, &["--seeds", "1"], |folder, text| {
        for line in text.lines().filter(|line| is_told(line)) {
            println!("{}: {line}", name(folder));
        }
        let kept = read(&folder.join(SNAP)).unwrap_or_default();
        let said = difference(&kept, text);
        if let Some(said) = &said {
            println!("{}: {SNAP} is not what is printed now:\n{said}", name(folder));
            println!("if it should be: {RENEW}");
        }
        Ok(said.is_none())
    })
}

/// Runs each of these names, or all, and hands over what it printed; whether all was well.
fn run(names: &[String], more: &[&str], each: impl Fn(&Path, &str) -> Done) -> Done {
    let weir = shell::build_weir()?;
    let mut fine = true;
    for folder in of(names)? {
        let mut command = std::process::Command::new(&weir);
        command.args(["lab", "run", &name(&folder)]).args(more);
        let output = shell::keep(&mut command)?;
        fine &= each(&folder, &String::from_utf8_lossy(&output.stdout))?;
        if !output.status.success() {
            print!("{}", String::from_utf8_lossy(&output.stderr));
            fine = false;
        }
    }
    Ok(fine)
}

/// The folders of these names, or of all.
pub(crate) fn of(names: &[String]) -> Result<Vec<PathBuf>, String> {
    if let Some(other) = names.iter().find(|name| !is_there(name)) {
        return Err(format!("there is no experiment \"{other}\""));
    }
    let mut all = folders()?;
    all.retain(|folder| names.is_empty() || names.contains(&name(folder)));
    Ok(all)
}

/// Those that have a scenario, by name.
fn folders() -> Result<Vec<PathBuf>, String> {
    let all = shell::root().join("experiments");
    let entries = fs::read_dir(&all).map_err(|error| format!("{}: {error}", all.display()))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    folders.retain(|folder| folder.join("scenario.toml").is_file());
    folders.sort();
    Ok(folders)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Done {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(true)
}

fn name(folder: &Path) -> String {
    folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The first few lines that differ; none if all are the same.
fn difference(kept: &str, now: &str) -> Option<String> {
    if kept == now {
        return None;
    }
    let (mut before, mut after) = (kept.lines(), now.lines());
    let mut said = String::new();
    for _ in 0..kept.lines().count().max(now.lines().count()) {
        let (before, after) = (before.next().unwrap_or(""), after.next().unwrap_or(""));
        if before != after {
            said += &format!("  - {before}\n  + {after}\n");
        }
        if said.lines().count() >= 12 {
            return Some(said + "  and more");
        }
    }
    Some(said)
}

/// The sums of claims, and those that do not hold.
fn is_told(line: &str) -> bool {
    line.contains("claims:") || line.contains("claim:") || line.starts_with("does not hold")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_it_was_is_shown() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\nc\n").unwrap(), "  - b\n  + c\n");
        // a snapshot that is not there is one without lines
        assert!(difference("", "a\n").unwrap().contains("+ a"));
        // and an end that is missing is a difference too
        assert!(difference("a\n", "a").is_some());
    }

    #[test]
    fn there_are_experiments() {
        assert!(folders().unwrap().iter().any(|folder| name(folder) == "home"));
    }
}
