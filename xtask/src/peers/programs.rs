//! The two programs: built, and run on one core.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::bars::Program;
use crate::shell;

const SOURCE: &str = "bench/peers/rte_bench.c";
const PACKAGES: [&str; 5] = ["dpdk-dev", "libdpdk-dev", "pkg-config", "gcc", "libc6-dev"];

/// What DPDK's start wants to know: no network card, no huge pages, which core.
const RTE_START: &str =
    "--no-huge --no-pci --no-telemetry --no-shconf -m 1200 --log-level=3 -l {core} --";
/// Three rounds of 40 ms after a warm-up that touches every queue.
const RTE_ALWAYS: &str = "burst=32 size=64 rounds=3 ms=40";
const WEIR_ALWAYS: &str = "--burst 32 --packets 400000 --rounds 3 --json -";

pub(super) struct Programs {
    weir: PathBuf,
    /// Or the line that would enable it.
    rte: Result<PathBuf, String>,
    core: String,
}

impl Programs {
    pub(super) fn build() -> Result<Programs, String> {
        let core = last_core().ok_or("/proc/self/status names no core that may be used")?;
        shell::ensure_packages(&["util-linux"], || shell::present("taskset", &["--version"]))
            .map_err(|line| format!("taskset is missing; run: {line}"))?;
        let is_there = || {
            shell::present("gcc", &["--version"])
                && shell::present("pkg-config", &["--exists", "libdpdk"])
        };
        let rte = match shell::ensure_packages(&PACKAGES, is_there) {
            Ok(()) => Ok(build_rte()?),
            Err(line) => Err(line),
        };
        Ok(Programs { weir: shell::build_weir()?, rte, core })
    }

    /// What the program says; `Err` where it fails.
    pub(super) fn run(&self, program: Program, arguments: &str) -> Result<String, String> {
        let path = match program {
            Program::Weir | Program::Police => &self.weir,
            Program::Rte => self.rte.as_ref().map_err(Clone::clone)?,
        };
        let before = match program {
            Program::Weir => "bench sched".to_owned(),
            Program::Police => "bench police".to_owned(),
            Program::Rte => RTE_START.replace("{core}", &self.core),
        };
        let always = if program == Program::Rte { RTE_ALWAYS } else { WEIR_ALWAYS };
        let mut command = shell::program("taskset", &["-c", &self.core]);
        command.arg(path);
        for words in [&before, always, arguments] {
            command.args(words.split_whitespace());
        }
        finish(&mut command, arguments)
    }

    pub(super) const fn has(&self, program: Program) -> bool {
        !matches!(program, Program::Rte) || self.rte.is_ok()
    }

    pub(super) fn core(&self) -> &str {
        &self.core
    }

    /// `Err` is the line that would enable it.
    pub(super) fn rte(&self) -> Result<&Path, &str> {
        self.rte.as_deref().map_err(String::as_str)
    }
}

fn build_rte() -> Result<PathBuf, String> {
    let directory = shell::root().join("target/peers");
    std::fs::create_dir_all(&directory)
        .map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
    let binary = directory.join("rte_bench");
    let mut ask = shell::program("pkg-config", &["--cflags", "--libs", "libdpdk"]);
    let flags = finish(&mut ask, "libdpdk")?;
    let mut gcc = shell::program("gcc", &["-O3", "-march=native", "-DALLOW_EXPERIMENTAL_API"]);
    gcc.arg(SOURCE).arg("-o").arg(&binary).args(flags.split_whitespace());
    finish(&mut gcc, SOURCE)?;
    Ok(binary)
}

/// What it says on standard output; where it fails, `Err` with what it says besides.
fn finish(command: &mut Command, what: &str) -> Result<String, String> {
    let output = shell::keep(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("\"{}\" failed with \"{what}\":\n{said}", command.get_program().display()))
}

/// The last core that this process may use; the first has the interrupts, as a rule.
fn last_core() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    last_of(list)
}

fn last_of(list: &str) -> Option<String> {
    let last = list.trim().rsplit([',', '-']).next()?;
    last.parse::<u16>().ok().map(|core| core.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_core_of_a_list() {
        assert_eq!(last_of("\t0-3,8-11\n").as_deref(), Some("11"));
        assert_eq!(last_of("5").as_deref(), Some("5"));
        assert_eq!(last_of(""), None);
    }
}
