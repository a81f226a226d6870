//! `cargo x`: the one front door. A subcommand is a file; this one knows their names, what each
//! does in a line, and the exit status: 0 fine, 1 a check failed, 2 a wrong call or cannot run
//! here.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks")]

mod bench;
mod claims;
mod count;
mod deb;
mod demo;
mod experiments;
mod fuzz;
mod install;
mod live;
mod mutants;
mod near;
mod peers;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

/// Whether all was well, or why it could not even be tried.
pub(crate) type Done = Result<bool, String>;

struct Command {
    name: &'static str,
    arguments: &'static str,
    does: &'static str,
    run: fn(&[String]) -> Done,
}

const COMMANDS: [Command; 13] = [
    Command {
        name: "test",
        arguments: "",
        does: "what must hold before a commit: fmt, tidy, clippy, tests, experiments, counts, fuzz",
        run: test::test,
    },
    Command {
        name: "ci",
        arguments: "",
        does: "test, the dependencies by deny.toml, install-test, a minute of every fuzz target",
        run: test::ci,
    },
    Command {
        name: "tidy",
        arguments: "[--fix-limits | --fix-lab]",
        does: "the rules of the house that the compiler does not know",
        run: tidy::run,
    },
    Command {
        name: "bench",
        arguments: "[NAME.. [-- ARG..]] | --count | --peers [--rounds N] [--json FILE]",
        does: "measure; --count holds instructions to their limits, --peers compares with DPDK",
        run: bench::run,
    },
    Command {
        name: "experiments",
        arguments: "[--once | --snap] [NAME ...]",
        does: "experiments, or some; --once: with one seed; --snap: keep what they print",
        run: experiments::all,
    },
    Command {
        name: "claims",
        arguments: "[--verbose] [NAME ...]",
        does: "change each experiment as it lists: every claim must fail under one of the changes",
        run: claims::run,
    },
    Command {
        name: "fuzz",
        arguments: "[TARGET] [--seconds N] [--replay FILE]",
        does: "feed broken input to the parsers until one breaks",
        run: fuzz::run,
    },
    Command {
        name: "mutants",
        arguments: "[--list] [--anew] [--jobs N] [--minutes N] [FILE..]",
        does: "change the code in one place after the other; a test must notice each",
        run: mutants::run,
    },
    Command {
        name: "live",
        arguments: "[NAME..] [--through bridge|xdp|packet] [--short] [--verbose]",
        does: "prove weir on real namespaces, TCP and calls; needs root",
        run: live::run,
    },
    Command {
        name: "soak",
        arguments: "[--minutes N] [--through bridge|xdp|packet] [--verbose]",
        does: "a day of hosts, edits and failures in half an hour; needs root",
        run: live::soak,
    },
    Command {
        name: "deb",
        arguments: "[--binary FILE]",
        does: "make a Debian package",
        run: deb::run,
    },
    Command {
        name: "install-test",
        arguments: "[--binary FILE]",
        does: "run docs/install.md on a fresh Debian that it boots; needs root",
        run: install::run,
    },
    Command {
        name: "demo",
        arguments: "[ARG..]",
        does: "build weir and see it work",
        run: demo::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((first, rest)) = arguments.split_first() else {
        print!("{}", help());
        return ExitCode::SUCCESS;
    };
    if ["help", "--help", "-h"].contains(&first.as_str()) {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|c| c.name == first) else {
        eprintln!("{}", unknown(first));
        return ExitCode::from(2);
    };
    if rest.iter().take_while(|a| *a != "--").any(|a| a == "--help" || a == "-h") {
        println!("cargo x {} {}\n    {}", command.name, command.arguments, command.does);
        return ExitCode::SUCCESS;
    }
    match (command.run)(rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("cargo x {}: {why}", command.name);
            ExitCode::from(2)
        }
    }
}

fn help() -> String {
    let mut text = String::from("cargo x COMMAND\n\n");
    for command in &COMMANDS {
        text += &format!("    {:<12} {}\n", command.name, command.does);
    }
    text + "\nExit status: 0 fine, 1 a check failed, 2 a wrong call or cannot run here.\n"
}

fn unknown(word: &str) -> String {
    let names = COMMANDS.map(|c| c.name);
    match near::nearest(word, names) {
        Some(name) => format!("cargo x: no command \"{word}\"; did you mean \"{name}\"?"),
        None => format!("cargo x: no command \"{word}\"; there are {}", names.join(", ")),
    }
}

/// Refuses arguments where a command takes none.
pub(crate) fn no_arguments(arguments: &[String]) -> Result<(), String> {
    match arguments.first() {
        Some(first) => Err(format!("takes no argument, but was given \"{first}\"")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_a_line_for_each_command() {
        for command in &COMMANDS {
            assert!(help().contains(command.does));
        }
    }

    #[test]
    fn a_mistyped_command_is_answered_with_the_nearest() {
        assert!(unknown("tets").contains("\"test\""), "{}", unknown("tets"));
        assert!(unknown("zzzzzzzz").contains("tidy"));
    }
}
