//! Running other programs, and getting those that are missing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// The directory that holds the whole project: where this runs or above. Not where this was built:
/// several clones may share one directory for what they build.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let here = std::env::current_dir().unwrap_or_default();
        let root = here.ancestors().find(|path| path.join("xtask/Cargo.toml").is_file());
        root.unwrap_or(&here).to_owned()
    });
    &ROOT
}

/// `program` with `arguments`, in the root of the project.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs it with its output let through.
pub(crate) fn show(command: &mut Command) -> Result<bool, String> {
    command.status().map(|status| status.success()).map_err(|e| cannot_start(command, &e))
}

/// Runs it and keeps its output.
pub(crate) fn keep(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|e| cannot_start(command, &e))
}

/// Runs it and returns its standard output; `Err` says what it said if it failed.
pub(crate) fn output_of(command: &mut Command) -> Result<String, String> {
    let output = keep(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("\"{}\" failed: {}", command.get_program().display(), said.trim()))
}

/// Whether a program is there and answers.
pub(crate) fn present(name: &str, arguments: &[&str]) -> bool {
    keep(&mut program(name, arguments)).is_ok_and(|output| output.status.success())
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start \"{}\": {error}", command.get_program().display())
}

/// Builds the `weir` binary for speed; `Err` says why there is none.
pub(crate) fn build_weir() -> Result<PathBuf, String> {
    if !root().join("crates/cli").is_dir() {
        return Err("there is no crates/cli yet, so no `weir` to run".to_owned());
    }
    let build = ["build", "--quiet", "--release", "--package", "weir-cli", "--bin", "weir"];
    if !show(&mut program("cargo", &build))? {
        return Err("`weir` does not build; see above".to_owned());
    }
    Ok(target()?.join("release/weir"))
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> Result<PathBuf, String> {
    let metadata = ["metadata", "--format-version", "1", "--no-deps"];
    let text = output_of(&mut program("cargo", &metadata))?;
    let directory = text
        .split_once("\"target_directory\":\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(directory, _)| directory)
        .ok_or("cargo metadata names no target directory")?;
    Ok(PathBuf::from(directory))
}

/// Makes sure that `tool` is there, from the Debian package of that name; `Err` is the line to run.
pub(crate) fn ensure(tool: &str) -> Result<(), String> {
    ensure_packages(&[tool], || present(tool, &["--version"]))
}

/// Makes sure that what these Debian packages bring is there; `Err` is the line to run.
pub(crate) fn ensure_packages(
    packages: &[&str],
    is_there: impl Fn() -> bool,
) -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    let arguments = [&["install", "-y", "--no-install-recommends"], packages].concat();
    let line = format!("apt-get {}", arguments.join(" "));
    if !is_root() || !Path::new("/etc/debian_version").exists() {
        return Err(line);
    }
    println!("{} is missing: running {line}", packages.join(", "));
    let install = || {
        let mut command = program("apt-get", &arguments);
        show(command.env("DEBIAN_FRONTEND", "noninteractive")).unwrap_or(false)
    };
    if !install() {
        println!("that failed: running apt-get update and trying once more");
        show(&mut program("apt-get", &["update"])).map_err(|_| line.clone())?;
        if !install() {
            return Err(line);
        }
    }
    if is_there() { Ok(()) } else { Err(line) }
}

/// Whether this may do what only root may.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}
