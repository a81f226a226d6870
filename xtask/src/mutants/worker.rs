//! A copy of what is committed, in which one mutant after the other is built and tested.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::draw::Mutant;
use super::plan::Plan;
use super::verdicts::Verdict;
use crate::shell;

/// A test that has not ended after so many seconds never will.
const LONGEST: &str = "600";

pub(crate) struct Worker {
    copy: PathBuf,
    build: PathBuf,
}

impl Worker {
    /// What is not committed is not tested: mutants are named by what others can see.
    pub(crate) fn new(number: usize) -> Result<Worker, String> {
        let folder = super::folder()?;
        let copy = folder.join(format!("copy-{number}"));
        if copy.exists() {
            std::fs::remove_dir_all(&copy).map_err(|e| format!("{}: {e}", copy.display()))?;
        }
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet", "--shared"]).arg(shell::root()).arg(&copy);
        if !shell::show(&mut clone)? {
            return Err("the project cannot be cloned".to_owned());
        }
        Ok(Worker { copy, build: folder.join(format!("build-{number}")) })
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
            let mut build = self.cargo(options);
            if !is_fine(build.arg("--no-run"))? {
                return Ok(Verdict::Void);
            }
            if !is_fine(&mut self.cargo(arguments))? {
                return Ok(Verdict::Killed);
            }
        }
        Ok(Verdict::Survived)
    }

    /// `cargo test`, built in pieces so that a change builds fast, with all that is checked.
    fn cargo(&self, arguments: &[String]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", LONGEST, "cargo", "test", "--quiet", "--profile", "sim"]);
        command.args(arguments);
        command.current_dir(&self.copy).env("CARGO_TARGET_DIR", &self.build);
        for (name, value) in [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("INCREMENTAL", "true")] {
            command.env(format!("CARGO_PROFILE_SIM_{name}"), value);
        }
        command.env("CARGO_PROFILE_SIM_DEBUG", "false").env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command
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
