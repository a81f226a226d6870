//! `cargo x bench --peers`: DPDK's hierarchical scheduler and ours, one after the other on one
//! core, round by round. The machine's mood changes; so what is compared runs side by side, and
//! what is reported is the median of the ratios of each round. A report, no gate: a bar that does
//! not hold is printed as such.

mod bars;
mod programs;
mod report;

use std::path::PathBuf;

use crate::Done;
use bars::{BARS, Figure, Program};
use programs::Programs;

const ROUNDS: usize = 7;

/// What one program said, round by round.
struct Run {
    program: Program,
    arguments: &'static str,
    outputs: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    rounds: usize,
    json: Option<PathBuf>,
}

pub(crate) fn run(arguments: &[String]) -> Done {
    let arguments = read(arguments)?;
    let programs = Programs::build()?;
    let mut runs = runs();
    runs.retain(|run| programs.has(run.program));
    let before = report::load();
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for at in 0..runs.len() {
            // there and back again, so that nobody is always the one who comes first
            let at = if round % 2 == 0 { at } else { runs.len() - 1 - at };
            let run = &mut runs[at];
            run.outputs.push(programs.run(run.program, run.arguments)?);
        }
    }
    let rows = report::rows(&runs);
    println!("{}", report::title(arguments.rounds, programs.core(), &before));
    print!("{}", report::table(&rows));
    println!("{}", report::summary(&rows));
    if let Err(line) = programs.rte() {
        println!("skipped, for want of DPDK: every ratio to rte_sched; to enable them run: {line}");
    }
    if let Some(file) = arguments.json {
        std::fs::write(&file, report::json(&rows))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    Ok(true)
}

/// Each run that some bar asks for, once; in the order of the bars, which keeps together what is
/// compared.
fn runs() -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for figure in BARS.iter().flat_map(|bar| bar.theirs.iter().chain([&bar.ours])) {
        if find(&runs, figure).is_none() {
            let Figure { program, arguments, .. } = *figure;
            runs.push(Run { program, arguments, outputs: Vec::new() });
        }
    }
    runs
}

fn find<'r>(runs: &'r [Run], figure: &Figure) -> Option<&'r Run> {
    runs.iter().find(|run| (run.program, run.arguments) == (figure.program, figure.arguments))
}

fn read(arguments: &[String]) -> Result<Arguments, String> {
    let mut read = Arguments { rounds: ROUNDS, json: None };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("\"{word}\" wants a value"));
        match word.as_str() {
            "--rounds" => {
                let rounds = value?.parse().ok().filter(|rounds| (1..=1_000).contains(rounds));
                read.rounds = rounds.ok_or("--rounds wants a number from 1 to 1000")?;
            }
            "--json" => read.json = Some(value?.into()),
            _ => {
                let takes = "--rounds N and --json FILE";
                return Err(format!("bench --peers takes {takes}, but was given \"{word}\""));
            }
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(words: &[&str]) -> Result<Arguments, String> {
        read(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_read() {
        assert_eq!(given(&[]).unwrap().rounds, ROUNDS);
        let both = given(&["--rounds", "3", "--json", "a"]).unwrap();
        assert_eq!(both, Arguments { rounds: 3, json: Some("a".into()) });
        assert!(given(&["--rounds", "0"]).unwrap_err().contains("1 to 1000"));
        assert!(given(&["--rounds"]).unwrap_err().contains("wants a value"));
        assert!(given(&["--fast"]).is_err());
        assert!(given(&["--fast", "x"]).unwrap_err().contains("--fast"));
    }

    #[test]
    fn each_run_is_made_once() {
        let runs = runs();
        for (at, run) in runs.iter().enumerate() {
            let same =
                |other: &&Run| (other.program, other.arguments) == (run.program, run.arguments);
            assert_eq!(runs[at..].iter().filter(same).count(), 1, "{}", run.arguments);
        }
    }
}
