#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accuracy;
mod clock;
pub mod driver;
mod edits;
mod evening;
mod failure;
mod family;
mod garbage;
mod handover;
mod margin;
mod middle;
mod path;
mod policy;
mod shell;
mod soak;
mod tcp;
pub mod tour;
mod traffic;
mod verdict;
mod world;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

pub use middle::Middle;
use shell::Shell;
use verdict::Table;

/// Where results are printed.
pub trait Paper {
    /// Prints a line.
    fn line(&mut self, text: &str);
    /// Shows what has been printed so far.
    fn flush(&mut self);
}

/// What is to be proven, and how.
#[derive(Clone, Debug)]
pub struct Args {
    /// What to prove.
    pub names: Vec<Name>,
    /// What joins the two sides.
    pub through: Vec<Middle>,
    /// A tenth of the time, for a first look; the bounds are the same.
    pub short: bool,
    /// How long `soak` takes.
    pub minutes: u32,
    /// Whether every command is shown that makes and changes the namespaces.
    pub verbose: bool,
    /// Another binary to play `evening` and `tcp` with, such as one from before a change.
    pub weir: Option<PathBuf>,
    /// Of `evening` only the faults that begin like this, such as H4.
    pub faults: Vec<String>,
}

/// What can be proven; [`Name::about`] tells each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are described where the help is")]
pub enum Name {
    Path,
    Accuracy,
    Edits,
    Failure,
    Handover,
    Evening,
    Garbage,
    Margin,
    Tcp,
    Soak,
}

/// What each proof is given.
struct Run<'o> {
    out: &'o mut dyn Paper,
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
#[must_use]
pub fn cannot() -> Option<String> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    if !is_root {
        return Some("network namespaces need root; run it with sudo".to_owned());
    }
    shell::missing().map(|line| format!("a tool is missing; run: {line}"))
}

/// Proves it, and tells whether every bar was held.
///
/// # Errors
///
/// What could not be played.
pub fn run(args: &Args, out: &mut dyn Paper) -> Result<bool, String> {
    cannot().map_or(Ok(()), Err)?;
    let mut run = Run {
        out,
        shell: Shell { verbose: args.verbose },
        short: args.short,
        minutes: args.minutes,
        weir: args.weir.clone(),
        faults: args.faults.clone(),
        missed: Vec::new(),
        twice: Vec::new(),
    };
    let mut missed = Vec::new();
    for &middle in &args.through {
        for &name in &args.names {
            missed.extend(run.prove(name, middle)?);
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
    Ok(missed.is_empty())
}

impl Run<'_> {
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
        self.missed.extend(table.print(self.out));
        self.missed.is_empty()
    }
}

fn first_cell(row: Vec<String>) -> Option<String> {
    row.into_iter().next()
}

impl Name {
    fn proof(self) -> fn(&mut Run<'_>, Middle) -> Result<bool, String> {
        match self {
            Name::Path => path::run,
            Name::Accuracy => accuracy::run,
            Name::Edits => edits::run,
            Name::Failure => failure::run,
            Name::Handover => handover::run,
            Name::Evening => evening::run,
            Name::Garbage => garbage::run,
            Name::Margin => margin::run,
            Name::Tcp => tcp::run,
            Name::Soak => soak::run,
        }
    }

    /// All of them.
    pub const ALL: [Name; 10] = [
        Name::Path,
        Name::Accuracy,
        Name::Edits,
        Name::Failure,
        Name::Handover,
        Name::Evening,
        Name::Garbage,
        Name::Margin,
        Name::Tcp,
        Name::Soak,
    ];

    /// What is proven, for help.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Name::Path => "Frames pass: a few seconds of everything",
            Name::Accuracy => "Leaves from 100 kbit/s to 200 Mbit/s get their ceilings",
            Name::Edits => "A thousand edits under load lose nothing",
            Name::Failure => "A daemon that dies or stands still, interfaces that come and go",
            Name::Handover => "A restart forgets no connection",
            Name::Evening => "What operators and hostile hosts do on a bad evening",
            Name::Garbage => "Hostile bytes into both ports for ten minutes of the daemon's CPU",
            Name::Margin => "A line that falls and rises is followed by `margin = \"auto\"`",
            Name::Tcp => "Rate control of the kernel's TCP with each of its options",
            Name::Soak => "A day in half an hour",
        }
    }

    /// As it is said on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Name::Path => "path",
            Name::Accuracy => "accuracy",
            Name::Edits => "edits",
            Name::Failure => "failure",
            Name::Handover => "handover",
            Name::Evening => "evening",
            Name::Garbage => "garbage",
            Name::Margin => "margin",
            Name::Tcp => "tcp",
            Name::Soak => "soak",
        }
    }
}
