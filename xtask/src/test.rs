//! `cargo x test` and `cargo x ci`: every step runs, whatever became of the one before, and a table
//! in the end says what passed, what failed, and what was skipped with the line that would enable
//! it.

use std::io::Write;
use std::time::Instant;

use crate::{Done, count, experiments, fuzz, install, live, shell, tidy};

/// Seconds of each fuzz target in `test` and in `ci`.
const SMOKE_SECS: u64 = 2;
const LONG_SECS: u64 = 60;

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

struct Step {
    name: &'static str,
    /// Whether its output is shown as it comes, or only when it fails.
    loud: bool,
    run: fn() -> Outcome,
}

const QUIET: bool = false;
const LOUD: bool = true;

const STEPS: [Step; 8] = [
    Step { name: "fmt", loud: QUIET, run: format },
    Step { name: "tidy", loud: QUIET, run: tidy },
    Step { name: "clippy", loud: QUIET, run: clippy },
    Step { name: "tests", loud: LOUD, run: tests },
    Step { name: "experiments", loud: LOUD, run: || Outcome::shown(experiments::once(&[])) },
    Step { name: "live", loud: LOUD, run: live },
    Step { name: "counts", loud: LOUD, run: counts },
    Step { name: "fuzz smoke", loud: LOUD, run: || fuzzing(fuzz::Runner::Stable, SMOKE_SECS) },
];

/// Only in `ci`: it fetches a system the first time, and takes a minute and a half.
const INSTALL: Step = Step { name: "install", loud: LOUD, run: || skippable(install::run(&[])) };

const LONG: Step =
    Step { name: "fuzz", loud: LOUD, run: || fuzzing(fuzz::Runner::Best, LONG_SECS) };

/// Only in `ci`: what another project has published since may end it.
const DEPENDENCIES: Step = Step { name: "dependencies", loud: QUIET, run: dependencies };

pub(crate) fn test(arguments: &[String]) -> Done {
    crate::no_arguments(arguments)?;
    Ok(run(&STEPS.iter().collect::<Vec<_>>()))
}

pub(crate) fn ci(arguments: &[String]) -> Done {
    crate::no_arguments(arguments)?;
    Ok(run(&STEPS.iter().chain([&DEPENDENCIES, &INSTALL, &LONG]).collect::<Vec<_>>()))
}

fn run(steps: &[&Step]) -> bool {
    let mut done = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let title = format!("[{}/{}] {}", number + 1, steps.len(), step.name);
        print!("{title} ...{}", if step.loud { "\n" } else { "" });
        // a line that does not reach the terminal in time is no reason to fail
        let _ = std::io::stdout().flush();
        let start = clock();
        let outcome = (step.run)();
        let seconds = start.elapsed().as_secs();
        let word = outcome.word();
        if step.loud {
            println!("{title}: {word}, {seconds} s");
        } else {
            println!(" {word}, {seconds} s");
        }
        if let Outcome::Failed(output) = &outcome {
            print!("{output}");
        }
        done.push((step.name, seconds, outcome));
    }
    println!("\n{}", table(&done));
    done.iter().all(|(_, _, outcome)| !matches!(outcome, Outcome::Failed(_)))
}

fn table(done: &[(&str, u64, Outcome)]) -> String {
    let mut text = String::new();
    let mut counts = [0; 3];
    for (name, seconds, outcome) in done {
        let (kind, note) = match outcome {
            Outcome::Passed => (0, ""),
            Outcome::Failed(_) => (1, "see above"),
            Outcome::Skipped(why) => (2, why.as_str()),
        };
        counts[kind] += 1;
        let line = format!("{name:<12} {:<8} {seconds:>5} s  {note}", outcome.word());
        text += line.trim_end();
        text.push('\n');
    }
    let [passed, failed, skipped] = counts;
    text + &format!("{passed} passed, {failed} failed, {skipped} skipped")
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed(_) => "failed",
            Outcome::Skipped(_) => "skipped",
        }
    }

    /// Of a step whose output was let through.
    fn shown(done: Done) -> Outcome {
        match done {
            Ok(true) => Outcome::Passed,
            Ok(false) => Outcome::Failed(String::new()),
            Err(why) => Outcome::Failed(format!("{why}\n")),
        }
    }
}

/// Runs each and keeps what they said, for when one fails.
fn quietly(commands: &[&[&str]]) -> Outcome {
    let mut said = String::new();
    for arguments in commands {
        match shell::keep(&mut shell::program("cargo", arguments)) {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                said += &String::from_utf8_lossy(&output.stdout);
                said += &String::from_utf8_lossy(&output.stderr);
            }
            Err(why) => said += &why,
        }
    }
    if said.is_empty() { Outcome::Passed } else { Outcome::Failed(said) }
}

fn format() -> Outcome {
    quietly(&[&["fmt", "--all", "--check"], &["fmt", "--manifest-path", fuzz::MANIFEST, "--check"]])
}

fn tidy() -> Outcome {
    let problems = match tidy::problems() {
        Ok(problems) => problems,
        Err(why) => return Outcome::Failed(format!("{why}\n")),
    };
    if problems.is_empty() {
        return Outcome::Passed;
    }
    Outcome::Failed(problems.iter().map(|problem| format!("{problem}\n")).collect())
}

fn clippy() -> Outcome {
    quietly(&[
        &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
        &[
            "clippy",
            "--quiet",
            "--all-targets",
            "--manifest-path",
            fuzz::MANIFEST,
            "--",
            "-D",
            "warnings",
        ],
    ])
}

fn tests() -> Outcome {
    let all = shell::show(&mut shell::program("cargo", &["test", "--workspace"]));
    // as the runner is built, so that it is built once
    let runner = ["test", "--quiet", "--release", "--bin", "weir-fuzz"];
    let runner =
        shell::show(shell::program("cargo", &runner).args(["--manifest-path", fuzz::MANIFEST]));
    Outcome::shown(all.and_then(|all| Ok(all & runner?)))
}

/// On real namespaces, which need root.
fn live() -> Outcome {
    skippable(live::short())
}

/// Of a step that says itself when it cannot run here.
fn skippable(done: Done) -> Outcome {
    match done {
        Err(why) => match why.strip_prefix("skipped: ") {
            Some(why) => Outcome::Skipped(why.to_owned()),
            None => Outcome::Failed(format!("{why}\n")),
        },
        done => Outcome::shown(done),
    }
}

fn counts() -> Outcome {
    match count::has_entries() {
        Ok(true) => {}
        Ok(false) => return Outcome::Skipped("bench/instructions.toml has no entries".to_owned()),
        Err(why) => return Outcome::Failed(format!("{why}\n")),
    }
    match shell::ensure("valgrind") {
        Ok(()) => Outcome::shown(count::run()),
        Err(line) => Outcome::Skipped(format!("valgrind is missing; run: {line}")),
    }
}

/// Holds the lock file to deny.toml: what its crates may be licensed under and come from, and that
/// none has a known fault. Building the program that does it takes five minutes, so it is not done
/// here.
fn dependencies() -> Outcome {
    if !shell::present("cargo", &["deny", "--version"]) {
        let line = "cargo-deny is missing; run: cargo install cargo-deny --locked";
        return Outcome::Skipped(line.to_owned());
    }
    let fixed = quietly(&[&["deny", "check", "bans", "licenses", "sources"]]);
    if !matches!(fixed, Outcome::Passed) {
        return fixed;
    }
    match quietly(&[&["deny", "check", "advisories"]]) {
        Outcome::Failed(said) if said.contains(NO_ADVISORIES) => Outcome::Skipped(
            "licenses and sources are fine, known faults cannot be fetched; where there is a \
             network, run: cargo deny check advisories"
                .to_owned(),
        ),
        outcome => outcome,
    }
}

/// What cargo-deny says of a list of known faults that it cannot get.
const NO_ADVISORIES: &str = "failed to fetch advisory database";

fn fuzzing(runner: fuzz::Runner, seconds: u64) -> Outcome {
    Outcome::shown(fuzz::all(runner, seconds))
}

#[expect(clippy::disallowed_methods, reason = "how long a step took is informational")]
fn clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_in_the_line_that_ci_reads() {
        let done = [
            ("fmt", 1, Outcome::Passed),
            ("tests", 20, Outcome::Failed(String::new())),
            ("counts", 0, Outcome::Skipped("run: x".to_owned())),
        ];
        let table = table(&done);
        assert_eq!(table.lines().last(), Some("1 passed, 1 failed, 1 skipped"));
        assert!(table.contains("run: x"), "{table}");
        assert!(table.lines().all(|line| line == line.trim_end()));
    }
}
