//! Running `ip`, `tc` and `ethtool`, shown on request so that a reader can repeat by hand what was
//! done.

use std::io::Write;
use std::process::{Command, Stdio};

use weir_daemon::log::say;

#[derive(Clone)]
pub(crate) struct Shell {
    pub(crate) verbose: bool,
}

impl Shell {
    /// Runs a line of words to its end.
    pub(crate) fn run(&self, line: &str) -> Result<(), String> {
        self.ask(line).map(drop)
    }

    /// The same, with what it printed.
    pub(crate) fn ask(&self, line: &str) -> Result<String, String> {
        self.with_input(line, "")
    }

    /// The same with something to read.
    pub(crate) fn feed(&self, line: &str, input: &str) -> Result<(), String> {
        self.with_input(line, input).map(drop)
    }

    fn with_input(&self, line: &str, input: &str) -> Result<String, String> {
        if self.verbose {
            say(&format!("$ {line}"));
            input.lines().for_each(|line| say(&format!("  {line}")));
        }
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |why: &dyn std::fmt::Display| format!("\"{line}\" failed: {why}");
        let mut child = command.spawn().map_err(|e| failed(&e))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).map_err(|e| failed(&e))?;
        }
        let output = child.wait_with_output().map_err(|e| failed(&e))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(failed(&String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// What of `programs` is not there, as the line that brings it.
pub(crate) fn missing() -> Option<String> {
    const PROGRAMS: [(&str, &str, &str); 4] = [
        ("ip", "-V", "iproute2"),
        ("tc", "-V", "iproute2"),
        ("ethtool", "--version", "ethtool"),
        ("sysctl", "--version", "procps"),
    ];
    let there = |program: &str, argument: &str| {
        let mut command = Command::new(program);
        command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok()
    };
    let missing: Vec<&str> = PROGRAMS.iter().filter(|p| !there(p.0, p.1)).map(|p| p.2).collect();
    (!missing.is_empty()).then(|| format!("apt-get install {}", missing.join(" ")))
}
