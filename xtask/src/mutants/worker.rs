//! Copies of what is committed, to build and test with mutants in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::draw::Mutant;
use super::plan::Plan;
use super::verdicts::Verdict;
use crate::shell;

/// A test that has not ended after so many seconds never will.
const LONGEST: &str = "600";

/// A copy of the project and the folder in which it is built. What is not committed is not tested:
/// mutants are named by what others can see.
pub(crate) fn copy(name: &str) -> Result<(PathBuf, PathBuf), String> {
    let folder = super::folder()?;
    let copy = folder.join(format!("copy-{name}"));
    if copy.exists() {
        std::fs::remove_dir_all(&copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    }
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--shared"]).arg(shell::root()).arg(&copy);
    if !shell::show(&mut clone)? {
        return Err("the project cannot be cloned".to_owned());
    }
    Ok((copy, folder.join(format!("build-{name}"))))
}

/// Builds the tests of a copy: the programs, each with the folder it runs in, or what the compiler
/// says.
pub(crate) fn build(
    copy: &Path,
    build: &Path,
    arguments: &[String],
) -> Result<Result<Vec<(PathBuf, PathBuf)>, String>, String> {
    let mut command = cargo(copy, build, LONGEST);
    command.args(arguments.split(|word| word == "--").next().unwrap_or_default());
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    command.env("RUSTFLAGS", "--cap-lints=allow").stdin(Stdio::null());
    let output = shell::keep(&mut command)?;
    if !output.status.success() {
        return Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let value = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("\"{name}\":\""))?;
        rest.split_once('"').map(|(value, _)| PathBuf::from(value))
    };
    let program = |line: &str| {
        let folder = value(line, "manifest_path")?.parent()?.to_owned();
        Some((value(line, "executable")?, folder))
    };
    let is_test = |line: &&str| line.contains("\"test\":true");
    Ok(Ok(text.lines().filter(is_test).filter_map(program).collect()))
}

/// `cargo test`, built in pieces so that a change builds fast, with all that is checked.
fn cargo(copy: &Path, build: &Path, longest: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", longest, "cargo", "test", "--quiet", "--profile", "sim"]);
    command.current_dir(copy).env("CARGO_TARGET_DIR", build);
    for (name, value) in [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("INCREMENTAL", "true")] {
        command.env(format!("CARGO_PROFILE_SIM_{name}"), value);
    }
    command.env("CARGO_PROFILE_SIM_DEBUG", "false").env("PROPTEST_MAX_SHRINK_ITERS", "0");
    command
}

/// A copy in which one mutant after the other is built and tested.
pub(crate) struct Worker {
    copy: PathBuf,
    build: PathBuf,
}

impl Worker {
    pub(crate) fn new(number: usize) -> Result<Worker, String> {
        let (copy, build) = copy(&number.to_string())?;
        Ok(Worker { copy, build })
    }

    pub(crate) fn judge(&self, mutant: &Mutant, plan: &Plan) -> Result<Verdict, String> {
        let path = self.copy.join(&mutant.file);
        let fault = |e: std::io::Error| format!("{}: {e}", path.display());
        let source = std::fs::read_to_string(&path).map_err(fault)?;
        let Some(changed) = mutant.of(&source) else {
            return Err(format!("{} is not what is committed: commit first", mutant.file));
        };
        std::fs::write(&path, changed).map_err(fault)?;
        let verdict = self.verdict(mutant, plan);
        std::fs::write(&path, source).map_err(fault)?;
        // what random tests found is this mutant's, not the next one's
        self.git(&["checkout", "--quiet", "."])?;
        self.git(&["clean", "-fdq", "crates"])?;
        verdict
    }

    fn verdict(&self, mutant: &Mutant, plan: &Plan) -> Result<Verdict, String> {
        let judges = plan.judges.get(mutant.of_crate());
        let judges = judges.ok_or(format!("nothing judges crate {}", mutant.of_crate()))?;
        for arguments in judges {
            let options = arguments.split(|word| word == "--").next().unwrap_or_default();
            let mut build = cargo(&self.copy, &self.build, LONGEST);
            if !is_fine(build.args(options).arg("--no-run"))? {
                return Ok(Verdict::Void);
            }
            if !is_fine(cargo(&self.copy, &self.build, LONGEST).args(arguments))? {
                return Ok(Verdict::Killed);
            }
        }
        Ok(Verdict::Survived)
    }

    fn git(&self, arguments: &[&str]) -> Result<(), String> {
        let is_done = shell::show(Command::new("git").args(arguments).current_dir(&self.copy))?;
        is_done.then_some(()).ok_or(format!("git {} failed", arguments.join(" ")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all::<&Path>(&self.copy);
    }
}

fn is_fine(command: &mut Command) -> Result<bool, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell::show(command)
}
