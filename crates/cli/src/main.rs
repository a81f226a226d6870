#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod ask;
mod bench;
mod check;
mod choice;
mod compare;
mod demo;
mod explain;
mod fmt;
mod lab;
mod live;
mod out;
mod problems;
mod progress;
mod replay;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// weir shares a link: fairly, in a tree of classes, with calls protected.
///
/// Exit status of every command: 0 fine, 1 the content is at fault or a claim does not hold, 2 a
/// wrong call or unreadable input.
#[derive(Parser)]
#[command(name = "weir", version, arg_required_else_help = true, max_term_width = 100)]
struct Weir {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check a policy: everything that is wrong with it, each at its place, with its cure
    Check(Check),
    /// Tell which class a packet goes to, by which rule, and which classes above limit it
    Explain(explain::Args),
    /// Tell what changes from one policy to another, in the words of the policy
    Diff(Diff),
    /// Write a policy in its canonical form; comments and the order of classes stay
    Fmt(Fmt),
    /// Run a capture through a policy in virtual time: what each class got, what was dropped and
    /// why
    Replay(replay::Args),
    /// Carry a link: shape what passes between two interfaces
    Run(Box<run::Args>),
    /// Watches over a weir that the kernel cannot watch over
    #[command(hide = true)]
    Guard(run::Guard),
    /// Keeps the rights that a running weir gives up
    #[command(hide = true)]
    Helper(run::Helper),
    /// Take back what weir has changed of the interfaces of a link that does not run: bridge,
    /// offloads, promiscuous mode
    Remove(run::Remove),
    #[command(flatten)]
    Ask(ask::Ask),
    /// Experiments in virtual time: list them, run them, set two runs side by side
    Lab(lab::Args),
    /// Measure how fast weir is on this machine
    Bench(bench::Args),
    /// A tour in half a minute: a policy with a mistake, packets explained, an evening at home
    /// replayed
    Demo(demo::Args),
    /// The proving ground: real namespaces, real traffic, the bars held live
    #[command(hide = true)]
    Live(live::Args),
}

#[derive(Args)]
struct Check {
    /// The policy
    file: PathBuf,
    /// Say nothing when it is fine
    #[arg(short, long)]
    quiet: bool,
    /// Also list every skipped row of the table of subscribers
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Args)]
struct Diff {
    /// The policy as it is
    before: PathBuf,
    /// The policy as it shall be
    after: PathBuf,
}

#[derive(Args)]
struct Fmt {
    /// The policy
    file: PathBuf,
    /// Only tell (by the exit status) whether it is in canonical form
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Print the canonical form and leave the file as it is
    #[arg(long)]
    stdout: bool,
}

/// A side of the box.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Port {
    /// The port towards the LAN: the packet travels up
    Lan,
    /// The port towards the WAN: the packet travels down
    Wan,
}

fn main() -> ExitCode {
    let weir = match Weir::try_parse() {
        Ok(weir) => weir,
        Err(error) => {
            // help and version are no errors; they go to standard output
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match weir.command {
        Command::Check(args) => check::run(&args.file, args.quiet, args.verbose),
        Command::Explain(args) => explain::run(&args),
        Command::Diff(args) => compare::run(&args.before, &args.after),
        Command::Fmt(args) => {
            let mode = match (args.check, args.stdout) {
                (true, _) => fmt::Mode::Check,
                (_, true) => fmt::Mode::Show,
                _ => fmt::Mode::Write,
            };
            fmt::run(&args.file, mode)
        }
        Command::Replay(args) => replay::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Guard(args) => run::guard(args),
        Command::Helper(args) => run::helper(args),
        Command::Remove(args) => run::remove(&args),
        Command::Ask(ask) => ask::run(&ask),
        Command::Lab(args) => lab::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Live(args) => live::run(&args),
    }
}
