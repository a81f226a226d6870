//! `weir live`, from the command line to the live tests. It is for people who work on weir, and
//! hidden from the help; `cargo x live` and `cargo x soak` build it for speed.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_proving::{Middle, Name, Paper};

use crate::choice::one_of;
use crate::out::{Out, problem, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which tests to run
    #[arg(required = true, value_parser = one_of(&Name::ALL, Name::word, Name::about))]
    names: Vec<Name>,
    /// What joins the two sides
    #[arg(long, value_name = "MIDDLE", default_values = ["xdp"])]
    #[arg(value_parser = one_of(&Middle::ALL, Middle::word, Middle::about))]
    through: Vec<Middle>,
    /// Take a tenth of the time; the bounds are the same
    #[arg(long)]
    short: bool,
    /// Duration of `soak` in minutes
    #[arg(long, default_value_t = 30, value_parser = crate::bench::within(1..=1_440))]
    minutes: u32,
    /// Show every command that creates and changes the namespaces
    #[arg(long)]
    verbose: bool,
    /// Another binary for `evening` and `tcp`, such as one from before a change
    #[arg(long, value_name = "FILE", hide = true)]
    weir: Option<PathBuf>,
    /// Only the faults of `evening` whose names begin like this, such as H4
    #[arg(long, value_name = "FAULT", hide = true)]
    fault: Vec<String>,
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
        names: args.names.clone(),
        through: args.through.clone(),
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
            say("weir: not every bound was met");
            ExitCode::from(1)
        }
        Ok(_) => printed,
    }
}
