//! `weir live`, from the command line to the proving ground. It is for who works on weir, and
//! hidden from the help; `cargo x live` and `cargo x soak` build it for speed.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use weir_proving::{Middle, Paper};

use crate::out::{Out, problem, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to prove
    #[arg(value_enum, required = true)]
    names: Vec<Name>,
    /// What joins the two sides
    #[arg(long, value_enum, value_name = "MIDDLE", default_values = ["xdp"])]
    through: Vec<Through>,
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

#[derive(Clone, Copy, ValueEnum)]
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
    /// A line that falls and rises is followed by `margin = "auto"`
    Margin,
    /// Rate control of the kernel's TCP with each of its options
    Tcp,
    /// A day in half an hour
    Soak,
}

impl From<Name> for weir_proving::Name {
    fn from(name: Name) -> weir_proving::Name {
        match name {
            Name::Path => Self::Path,
            Name::Accuracy => Self::Accuracy,
            Name::Edits => Self::Edits,
            Name::Failure => Self::Failure,
            Name::Evening => Self::Evening,
            Name::Garbage => Self::Garbage,
            Name::Margin => Self::Margin,
            Name::Tcp => Self::Tcp,
            Name::Soak => Self::Soak,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Through {
    /// The kernel's bridge: no policy, nothing to kill
    Bridge,
    /// weir with AF_XDP
    Xdp,
    /// weir with packet sockets
    Packet,
}

impl From<Through> for Middle {
    fn from(through: Through) -> Middle {
        match through {
            Through::Bridge => Middle::Bridge,
            Through::Xdp => Middle::Xdp,
            Through::Packet => Middle::Packet,
        }
    }
}

impl Paper for Out {
    fn line(&mut self, text: &str) {
        Out::line(self, text);
    }

    fn flush(&mut self) {
        Out::flush(self);
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let proofs = weir_proving::Args {
        names: args.names.iter().copied().map(Into::into).collect(),
        through: args.through.iter().copied().map(Into::into).collect(),
        short: args.short,
        minutes: args.minutes,
        verbose: args.verbose,
        weir: args.weir.clone(),
        faults: args.fault.clone(),
    };
    let mut out = Out::new();
    let held = weir_proving::run(&proofs, &mut out);
    let printed = out.end();
    match held {
        Err(why) => problem(&why),
        Ok(false) if printed == ExitCode::SUCCESS => {
            say("weir: not every bar was held");
            ExitCode::from(1)
        }
        Ok(_) => printed,
    }
}
