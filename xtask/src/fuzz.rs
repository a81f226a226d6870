//! `cargo x fuzz`: the best fuzzer that is here. With nightly and cargo-fuzz, libFuzzer guided by
//! coverage; otherwise the plain mutating runner of `fuzz/`, which needs nothing but cargo.

use std::path::{Path, PathBuf};

use crate::{Done, near, shell};

pub(crate) const MANIFEST: &str = "fuzz/Cargo.toml";
/// Seconds of each target unless the caller says otherwise.
const SECONDS: u64 = 30;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runner {
    /// Coverage-guided where possible.
    Best,
    /// The plain one.
    Stable,
}

#[derive(Debug, PartialEq, Eq)]
struct Call {
    target: Option<String>,
    seconds: u64,
    replay: Option<PathBuf>,
    runner: Runner,
}

pub(crate) fn run(arguments: &[String]) -> Done {
    let call = read(arguments)?;
    let mut known = targets()?;
    if let Some(target) = &call.target {
        if !known.contains(target) {
            let meant = near::nearest(target, known.iter().map(String::as_str))
                .map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"));
            let known = known.join(", ");
            return Err(format!("no fuzz target \"{target}\", there is {known}{meant}"));
        }
        known = vec![target.clone()];
    }
    match &call.replay {
        Some(file) => replay(&known[0], file),
        None => each(&known, call.runner, call.seconds),
    }
}

/// All targets, one after the other.
pub(crate) fn all(runner: Runner, seconds: u64) -> Done {
    each(&targets()?, runner, seconds)
}

fn each(targets: &[String], runner: Runner, seconds: u64) -> Done {
    let guided = runner == Runner::Best && guided();
    let mut fine = true;
    for target in targets {
        let entry = shell::root().join(format!("fuzz/fuzz_targets/{target}.rs"));
        fine &= match guided && entry.is_file() {
            true => libfuzzer(target, seconds)?,
            false => plain(target, seconds)?,
        };
    }
    Ok(fine)
}

fn read(arguments: &[String]) -> Result<Call, String> {
    let mut call = Call { target: None, seconds: SECONDS, replay: None, runner: Runner::Best };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let value = words.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                call.seconds = value.ok_or("--seconds takes a whole number above 0")?;
            }
            "--replay" => {
                let file = words.next().ok_or("--replay takes the file to run again")?;
                call.replay = Some(PathBuf::from(file));
            }
            "--stable" => call.runner = Runner::Stable,
            option if option.starts_with('-') => {
                return Err(format!("no option \"{option}\": --seconds, --replay, --stable"));
            }
            _ if call.target.is_some() => return Err("takes one target at most".to_owned()),
            name => call.target = Some(name.to_owned()),
        }
    }
    if call.replay.is_some() && call.target.is_none() {
        return Err("--replay needs to know the target: cargo x fuzz TARGET --replay FILE".into());
    }
    Ok(call)
}

fn stable(arguments: &[&str]) -> std::process::Command {
    let mut command = shell::program("cargo", &["run", "--quiet", "--release"]);
    command.args(["--manifest-path", MANIFEST, "--bin", "weir-fuzz", "--"]).args(arguments);
    command
}

/// The names in the runner's own table: one truth.
fn targets() -> Result<Vec<String>, String> {
    let output = shell::keep(&mut stable(&["--list"]))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the fuzz targets do not build:\n{said}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn plain(target: &str, seconds: u64) -> Done {
    shell::show(&mut stable(&[target, "--seconds", &seconds.to_string()]))
}

fn replay(target: &str, file: &Path) -> Done {
    let file = std::path::absolute(file).map_err(|e| format!("{}: {e}", file.display()))?;
    if !file.is_file() {
        return Err(format!("there is no file {}", file.display()));
    }
    shell::show(stable(&[target, "--replay"]).arg(file))
}

/// Whether coverage-guided runs are possible, made so where nightly is there.
fn guided() -> bool {
    if shell::present("cargo", &["+nightly", "fuzz", "--version"]) {
        return true;
    }
    if !shell::present("cargo", &["+nightly", "--version"]) {
        println!("plain mutations; guided by coverage after: rustup toolchain install nightly");
        return false;
    }
    println!("nightly is here, cargo-fuzz is not: running cargo install --locked cargo-fuzz");
    let install = ["+nightly", "install", "--quiet", "--locked", "cargo-fuzz"];
    let installed = shell::show(&mut shell::program("cargo", &install)).unwrap_or(false)
        && shell::present("cargo", &["+nightly", "fuzz", "--version"]);
    if !installed {
        println!("that failed: plain mutations instead");
    }
    installed
}

fn libfuzzer(target: &str, seconds: u64) -> Done {
    let (corpus, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
    for folder in [&corpus, &seeds] {
        std::fs::create_dir_all(shell::root().join(folder))
            .map_err(|e| format!("cannot make {folder}: {e}"))?;
    }
    println!("{target}: guided by coverage, {seconds} s and the time to build");
    let mut command = shell::program("cargo", &["+nightly", "fuzz", "run"]);
    command.args(["--features", "libfuzzer", target, &corpus, &seeds, "--"]);
    command.arg(format!("-max_total_time={seconds}"));
    command.args(["-max_len=65536", "-verbosity=0", "-print_final_stats=1"]);
    let output = shell::keep(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let runs = said.lines().find_map(|l| l.strip_prefix("stat::number_of_executed_units:"));
        println!("{target}: {} inputs", runs.map_or("no count of", str::trim));
        return Ok(true);
    }
    print!("{said}");
    let written = said.lines().find_map(|l| l.split_once("Test unit written to ")).map(|(_, f)| f);
    if let Some(file) = written {
        let file = Path::new(file.trim());
        let file = file.strip_prefix(shell::root()).unwrap_or(file);
        println!("run it again: cargo x fuzz {target} --replay {}", file.display());
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_call_is_read() {
        let call = read(&words("capture --seconds 5 --stable")).unwrap();
        assert_eq!(call.target.as_deref(), Some("capture"));
        assert_eq!((call.seconds, call.runner), (5, Runner::Stable));
    }

    #[test]
    fn a_wrong_call_is_refused() {
        for wrong in ["--seconds", "--seconds 0", "--replay f", "a b", "--fast"] {
            assert!(read(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
