//! `weir bench`: how fast weir is on this machine. Rounds of all measurements are interleaved and
//! medians are printed, since machines are noisy; what must not grow is held by counted
//! instructions (`cargo x bench --count`), which no neighbour can touch.

mod classify;
mod condition;
mod edit;
mod enforce;
mod lab;
mod police;
mod policy;
mod sched;
mod share;
mod turn;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Map, Value, json};
use weir_lab::Grid;

use crate::out::{Out, problem};
use weir_daemon::files;

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// A whole iteration of the engine: segments of open connections, in and out
    Turn(turn::Args),
    /// Classification: frames of known flows, of new flows, and parsing headers
    Classify(classify::Args),
    /// TCP rate control alone: data and acknowledgements of open connections
    Condition(condition::Args),
    /// The scheduler: the tree of classes alone
    Sched(sched::Args),
    /// The policer alone
    Police(police::Args),
    /// The allocators without queues
    Share(share::Args),
    /// Enforcing shares: the whole engine, beside the same classes with queues
    Enforce(enforce::Args),
    /// Applying a policy while frames are queued: how long it occupies the packet thread
    Edit(edit::Args),
    /// Reading and checking a policy with its table of subscribers
    Policy(policy::Args),
    /// The laboratory: speed relative to real time, and frames per second
    Lab(lab::Args),
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match &args.what {
        What::Turn(args) => turn::run(args),
        What::Classify(args) => classify::run(args),
        What::Condition(args) => condition::run(args),
        What::Sched(args) => sched::run(args),
        What::Police(args) => police::run(args),
        What::Share(args) => share::run(args),
        What::Enforce(args) => enforce::run(args),
        What::Edit(args) => edit::run(args),
        What::Policy(args) => policy::run(args),
        What::Lab(args) => lab::run(args),
    }
}

/// An argument that is a number of this range.
pub(crate) fn within(
    range: std::ops::RangeInclusive<i64>,
) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(range)
}

/// A stop watch; the only place of the command that reads a clock.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}

/// Nanoseconds per piece of work.
pub(crate) fn per(time: Duration, pieces: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    {
        time.as_nanos() as f64 / pieces.max(1) as f64
    }
}

/// Figures of several rounds under the name of their metric.
pub(crate) struct Figures {
    names: Vec<&'static str>,
    rounds: Vec<Vec<f64>>,
}

impl Figures {
    pub(crate) fn new(names: &[&'static str]) -> Figures {
        Figures { names: names.to_vec(), rounds: vec![Vec::new(); names.len()] }
    }

    pub(crate) fn add(&mut self, name: &str, figure: f64) {
        if let Some(at) = self.names.iter().position(|n| *n == name) {
            self.rounds[at].push(figure);
        }
    }

    /// Median and smallest of a metric.
    fn of(&self, at: usize) -> Option<(f64, f64)> {
        let mut sorted = self.rounds[at].clone();
        sorted.sort_by(f64::total_cmp);
        Some((*sorted.get(sorted.len() / 2)?, *sorted.first()?))
    }

    /// Prints the table and writes the medians as JSON.
    pub(crate) fn show(&self, title: &str, to: &Json) -> ExitCode {
        let mut out = Out::new();
        let mut table = Grid::new(1, &["metric", "median", "minimum"]);
        let mut metrics = Map::new();
        for (at, name) in self.names.iter().enumerate() {
            let Some((median, least)) = self.of(at) else { continue };
            let cells = [(*name).to_owned(), format!("{median:.1}"), format!("{least:.1}")];
            table.rows.push(cells.into());
            metrics.insert((*name).to_owned(), Value::from((median * 100.0).round() / 100.0));
        }
        let text = format!("{:#}\n", json!({ "metrics": metrics }));
        match to.json.as_deref() {
            Some(file) if file.as_os_str() == "-" => {
                out.text(&text);
                return out.end();
            }
            Some(file) => {
                if let Err(why) = files::write(file, &text) {
                    return problem(&why);
                }
            }
            None => {}
        }
        out.line(title);
        table.lines().iter().for_each(|line| out.line(line));
        out.end()
    }
}

/// How much is measured where frames are, and where figures go.
#[derive(clap::Args)]
pub(crate) struct Rounds {
    /// Frames per round
    #[arg(long, default_value_t = 1_000_000, value_parser = within(1..=100_000_000))]
    pub(crate) packets: u32,
    /// Number of rounds; the result is their median
    #[arg(long = "rounds", value_name = "ROUNDS", default_value_t = 9)]
    #[arg(value_parser = within(1..=1_000))]
    pub(crate) count: u32,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Where figures go besides the table.
#[derive(clap::Args)]
pub(crate) struct Json {
    /// Write the medians as JSON to this file ("-": standard output, instead of the table)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}
