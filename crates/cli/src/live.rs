//! `weir live NAME`: the proving ground. Real namespaces, real TCP, real calls, through weir as an
//! operator runs it, or through the kernel's bridge for the same figures without weir. It is for
//! who works on weir, and hidden from the help; `cargo x live` and `cargo x soak` build it for
//! speed.

mod accuracy;
pub(crate) mod clock;
mod edits;
mod evening;
mod failure;
mod family;
mod garbage;
pub(crate) mod middle;
mod path;
mod policy;
pub(crate) mod shell;
mod soak;
mod tcp;
pub(crate) mod traffic;
mod verdict;
pub(crate) mod world;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;

use crate::out::{Out, problem, say};
use middle::Middle;
use shell::Shell;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to prove
    #[arg(value_enum, required = true)]
    names: Vec<Name>,
    /// What joins the two sides
    #[arg(long, value_enum, value_name = "MIDDLE", default_values = ["xdp"])]
    through: Vec<Middle>,
    /// A tenth of the time, for a first look: the bars stay
    #[arg(long)]
    short: bool,
    /// How long `soak` takes
    #[arg(long, default_value_t = 30, value_parser = crate::bench::within(1..=1_440))]
    minutes: u32,
    /// Show every command that makes and changes the namespaces
    #[arg(long)]
    verbose: bool,
    /// Another binary to play `evening` and `tcp` with, such as one from before a change
    #[arg(long, value_name = "FILE", hide = true)]
    weir: Option<PathBuf>,
    /// Of `evening` only the faults that begin like this, such as H4
    #[arg(long, value_name = "FAULT", hide = true)]
    fault: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Frames pass: a few seconds of everything
    Path,
    /// Leaves from 100 kbit/s to 200 Mbit/s get their ceilings
    Accuracy,
    /// A thousand edits under load lose nothing
    Edits,
    /// A daemon that dies or stands still, interfaces that come and go
    Failure,
    /// What operators and hostile hosts do on a bad evening
    Evening,
    /// Hostile bytes into both ports for ten minutes of the daemon's CPU
    Garbage,
    /// Rate control of the kernel's TCP with each of its options
    Tcp,
    /// A day in half an hour
    Soak,
}

/// What each proof is given.
struct Run {
    out: Out,
    shell: Shell,
    short: bool,
    minutes: u32,
    weir: Option<PathBuf>,
    faults: Vec<String>,
}

/// What must be there, or the line that would enable it.
pub(crate) fn cannot() -> Option<String> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    if !is_root {
        return Some("network namespaces need root; run it with sudo".to_owned());
    }
    shell::missing().map(|line| format!("a tool is missing; run: {line}"))
}

pub(crate) fn run(args: &Args) -> ExitCode {
    if let Some(why) = cannot() {
        return problem(&why);
    }
    let shell = Shell { verbose: args.verbose };
    let mut run = Run {
        out: Out::new(),
        shell,
        short: args.short,
        minutes: args.minutes,
        weir: args.weir.clone(),
        faults: args.fault.clone(),
    };
    let mut fine = true;
    for &middle in &args.through {
        for &name in &args.names {
            let prove = match name {
                Name::Path => path::run,
                Name::Accuracy => accuracy::run,
                Name::Edits => edits::run,
                Name::Failure => failure::run,
                Name::Evening => evening::run,
                Name::Garbage => garbage::run,
                Name::Tcp => tcp::run,
                Name::Soak => soak::run,
            };
            match prove(&mut run, middle) {
                Ok(held) => fine &= held,
                Err(why) => {
                    run.out.flush();
                    return problem(&why);
                }
            }
        }
    }
    match run.out.end() {
        ExitCode::SUCCESS if !fine => {
            say("weir: not every bar was held");
            ExitCode::from(1)
        }
        printed => printed,
    }
}
