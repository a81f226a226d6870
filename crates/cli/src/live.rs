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
mod margin;
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
use verdict::Table;

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
    /// A line that falls and rises is followed by `margin = "auto"`
    Margin,
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
    /// The rows that missed their bar in the proof at hand.
    missed: Vec<Vec<String>>,
    /// What missed a bar the first time, or could not be played.
    twice: Vec<String>,
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
        missed: Vec::new(),
        twice: Vec::new(),
    };
    let mut missed = Vec::new();
    for &middle in &args.through {
        for &name in &args.names {
            match run.prove(name, middle) {
                Ok(rows) => missed.extend(rows),
                Err(why) => {
                    run.out.flush();
                    return problem(&why);
                }
            }
        }
    }
    let twice = std::mem::take(&mut run.twice);
    for (title, rows) in
        [("proven twice, because of:", &twice), ("bars that were missed:", &missed)]
    {
        if !rows.is_empty() {
            run.out.line(title);
            rows.iter().for_each(|row| run.out.line(row));
        }
    }
    match run.out.end() {
        ExitCode::SUCCESS if !missed.is_empty() => {
            say("weir: not every bar was held");
            ExitCode::from(1)
        }
        printed => printed,
    }
}

impl Run {
    /// Tells the rows that missed their bar. Beside other work a short run may miss one that weir
    /// holds, or wait in vain, so it proves again, once, what has missed; both tables are printed,
    /// and the end says what was proven twice.
    fn prove(&mut self, name: Name, middle: Middle) -> Result<Vec<String>, String> {
        self.missed.clear();
        let first = name.proof()(self, middle);
        if first.as_ref().is_ok_and(|held| *held) || !self.short {
            return first.map(|_| self.rows_that_missed(name, middle));
        }
        let why = match first {
            Err(why) => vec![format!("{}, {}: {why}", name.word(), middle.name())],
            Ok(_) => self.rows_that_missed(name, middle),
        };
        self.out.line("not every bar was held: what missed one is proven once more\n");
        let asked = self.faults.clone();
        // the rows of an evening begin with their fault
        let rows: Vec<String> = self.missed.drain(..).filter_map(first_cell).collect();
        if !rows.is_empty() {
            self.faults = rows;
            self.faults.dedup();
        }
        let again = name.proof()(self, middle);
        self.faults = asked;
        self.twice.extend(why);
        again.map(|_| self.rows_that_missed(name, middle))
    }

    fn rows_that_missed(&self, name: Name, middle: Middle) -> Vec<String> {
        let named =
            |row: &Vec<String>| format!("{}, {}: {}", name.word(), middle.name(), row.join(", "));
        self.missed.iter().map(named).collect()
    }

    /// Prints a table and keeps what has missed its bar; tells whether nothing has.
    fn conclude(&mut self, table: &Table) -> bool {
        self.missed.extend(table.print(&mut self.out));
        self.missed.is_empty()
    }
}

fn first_cell(row: Vec<String>) -> Option<String> {
    row.into_iter().next()
}

impl Name {
    fn proof(self) -> fn(&mut Run, Middle) -> Result<bool, String> {
        match self {
            Name::Path => path::run,
            Name::Accuracy => accuracy::run,
            Name::Edits => edits::run,
            Name::Failure => failure::run,
            Name::Evening => evening::run,
            Name::Garbage => garbage::run,
            Name::Margin => margin::run,
            Name::Tcp => tcp::run,
            Name::Soak => soak::run,
        }
    }

    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
