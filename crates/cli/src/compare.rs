//! `weir diff A B`: what changes from one policy to another.

use std::path::Path;
use std::process::ExitCode;

use weir_policy::diff;

use crate::out::{Out, problem, say};
use crate::problems;
use weir_daemon::files;

pub(crate) fn run(before: &Path, after: &Path) -> ExitCode {
    let mut plans = Vec::new();
    let mut at_fault = false;
    for file in [before, after] {
        match files::policy(file) {
            Ok(reading) => {
                if reading.is_at_fault() {
                    at_fault = true;
                    problems::print(&reading);
                }
                plans.push(reading.plans);
            }
            Err(why) => return problem(&why),
        }
    }
    if plans.iter().any(Vec::is_empty) {
        say("weir: cannot compare a policy with errors");
        return ExitCode::from(1);
    }
    let changes = diff(&plans[0], &plans[1]);
    let width = changes.iter().map(|c| c.subject.chars().count()).max().unwrap_or(0).min(40);
    let mut out = Out::new();
    for change in &changes {
        out.line(&format!("{} {:width$}  {}", change.mark, change.subject, change.words));
    }
    if changes.is_empty() {
        out.line("no difference in meaning");
    }
    match out.end() {
        ExitCode::SUCCESS if at_fault => ExitCode::from(1),
        code => code,
    }
}
