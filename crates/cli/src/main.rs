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
mod pages;
mod problems;
mod progress;
mod replay;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// weir manages the bandwidth of a link: it shares the link fairly, in a hierarchy of classes, and
/// protects calls.
///
/// Exit status of every command: 0 success, 1 errors in the content or a claim that does not hold,
/// 2 wrong usage or unreadable input.
#[derive(Parser)]
#[command(name = "weir", version, arg_required_else_help = true, max_term_width = 100)]
struct Weir<C: Subcommand> {
    #[command(subcommand)]
    command: C,
}

/// What the command line may say.
#[derive(Subcommand)]
enum Any {
    #[command(flatten)]
    Command(Command),
    #[command(flatten)]
    Hidden(Hidden),
}

/// What the help, the manual pages and the completions list.
#[derive(Subcommand)]
enum Command {
    /// Check a policy: report all errors at once, each with its place and a fix
    Check(Check),
    /// Show which class a packet belongs to, by which rule, and which classes above limit it
    Explain(explain::Args),
    /// Show what changes from one policy to another, in the words of the policy
    Diff(Diff),
    /// Rewrite a policy in canonical form; comments and the order of classes are kept
    Fmt(Fmt),
    /// Replay a capture through a policy in virtual time: what each class got, what was dropped and
    /// why
    Replay(replay::Args),
    /// Run a link: shape the traffic between two interfaces
    Run(Box<run::Args>),
    /// Restore the interfaces of a link that does not run: remove the bridge, reset offloads and
    /// promiscuous mode
    Remove(run::Remove),
    #[command(flatten)]
    Ask(ask::Ask),
    /// Run experiments in virtual time, list them, compare their results
    Lab(lab::Args),
    /// Measure how fast weir is on this machine
    Bench(bench::Args),
    /// Take a tour in half a minute: a policy with mistakes, packets explained, an evening at home
    /// replayed
    Demo(demo::Args),
}

/// What only weir itself starts, and what is for people who build it.
#[derive(Subcommand)]
enum Hidden {
    /// Watches the packet thread where no program in the kernel can
    #[command(hide = true)]
    Guard(run::Guard),
    /// Keeps the privileges that a running weir gives up
    #[command(hide = true)]
    Helper(run::Helper),
    /// Live tests: real namespaces, real traffic, figures compared with their bounds
    #[command(hide = true)]
    Live(live::Args),
    /// Write the manual pages and the completions of the shells, for a package
    #[command(hide = true)]
    Pages(pages::Args),
}

#[derive(Args)]
struct Check {
    /// The policy
    file: PathBuf,
    /// Print nothing if the policy is correct
    #[arg(short, long)]
    quiet: bool,
    /// Also list notes, and every skipped row of the table of subscribers
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Args)]
struct Diff {
    /// The current policy
    before: PathBuf,
    /// The new policy
    after: PathBuf,
}

#[derive(Args)]
struct Fmt {
    /// The policy
    file: PathBuf,
    /// Only report, by the exit status, whether the file is in canonical form
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Print the canonical form and do not change the file
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
    let weir = match Weir::<Any>::try_parse() {
        Ok(weir) => weir,
        Err(error) => {
            // help and version are no errors; they go to standard output
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match weir.command {
        Any::Command(command) => run(command),
        Any::Hidden(Hidden::Guard(args)) => run::guard(args),
        Any::Hidden(Hidden::Helper(args)) => run::helper(args),
        Any::Hidden(Hidden::Live(args)) => live::run(&args),
        Any::Hidden(Hidden::Pages(args)) => pages::run(&args),
    }
}

fn run(command: Command) -> ExitCode {
    match command {
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
        Command::Remove(args) => run::remove(&args),
        Command::Ask(ask) => ask::run(&ask),
        Command::Lab(args) => lab::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Demo(args) => demo::run(&args),
    }
}
