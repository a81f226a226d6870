//! The commands that control a running link: `weir status`, `weir tree`, `weir apply` and others.
//! They speak the protocol of docs/control.md, as any other program may.

mod change;
mod line;
mod status;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_control::{Apply, Request, Status, Stopped};
use weir_policy::Reading;
use weir_units::{Span, limits};

use crate::out::{Out, problem, say};
use line::Line;
use weir_daemon::files;

/// Which link a command controls.
#[derive(clap::Args)]
pub(crate) struct Whom {
    /// The link [default: the only one that runs here]
    #[arg(long, value_name = "NAME", conflicts_with = "socket")]
    link: Option<String>,
    /// Its control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
pub(crate) enum Ask {
    /// Apply another policy to a running link, atomically
    Apply(ApplyArgs),
    /// Confirm a change that was applied with --confirm
    Confirm(Whom),
    /// Restore an earlier policy; without a number, the previous one
    Rollback(RollbackArgs),
    /// List the policies that a link has had
    History(Show),
    /// Show the state of a running link: policy, ports, trouble (exit status 1 if there is any)
    Status(Show),
    /// Show the rate, delay and drops of each class of a running link
    #[command(after_help = tree::LEGEND)]
    Tree(TreeArgs),
    /// Stop shaping and only count traffic, until `weir shape`
    Observe(Whom),
    /// Start shaping again after `weir observe`
    Shape(Whom),
    /// Stop a running link
    Stop(Whom),
}

#[derive(clap::Args)]
pub(crate) struct ApplyArgs {
    /// The policy
    file: PathBuf,
    /// Restore the old policy after this time, such as 60s, unless `weir confirm` is run
    #[arg(long, value_name = "TIME")]
    confirm: Option<Span>,
    /// The reason, for the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    comment: String,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Apply the policy even if rows of its table of subscribers are skipped
    #[arg(long)]
    allow_skipped: bool,
    #[command(flatten)]
    whom: Whom,
}

#[derive(clap::Args)]
pub(crate) struct RollbackArgs {
    /// A number that `weir history` lists
    revision: Option<u64>,
    /// The reason, for the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    comment: String,
    #[command(flatten)]
    whom: Whom,
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whom: Whom,
}

#[derive(clap::Args)]
pub(crate) struct TreeArgs {
    /// Refresh every second
    #[arg(long)]
    watch: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// Include classes that never got a frame
    #[arg(long)]
    all: bool,
    /// Only this class and those below it, such as /sites/north
    #[arg(value_name = "PATH", default_value = "", hide_default_value = true)]
    path: String,
    /// Only classes with this text in their path, such as a customer's id
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// List the leaves with the highest values first, without the tree
    #[arg(long, value_name = "COLUMN", value_enum)]
    sort: Option<tree::Sort>,
    /// Only the first N leaves [sorted by rate, unless --sort says otherwise]
    #[arg(long, value_name = "N", value_parser = crate::bench::within(1..=1_000_000))]
    top: Option<u32>,
    #[command(flatten)]
    whom: Whom,
}

/// Runs one of them.
pub(crate) fn run(ask: &Ask) -> ExitCode {
    let done = match ask {
        Ask::Apply(args) => apply(args),
        Ask::Confirm(whom) => simple(whom, &Request::Confirm, change::confirmed),
        Ask::Rollback(args) => {
            let request = Request::Rollback { to: args.revision, comment: args.comment.clone() };
            simple(&args.whom, &request, change::went_back)
        }
        Ask::History(show) => shown(show, &Request::History, change::history),
        Ask::Status(show) => status(show),
        Ask::Tree(args) => tree::run(args),
        Ask::Observe(whom) => simple(whom, &Request::Observe { on: true }, change::mode),
        Ask::Shape(whom) => simple(whom, &Request::Observe { on: false }, change::mode),
        Ask::Stop(whom) => stop(whom),
    };
    done.unwrap_or_else(|code| code)
}

/// Sends one request and prints the response in words.
fn simple<T: DeserializeOwned>(
    whom: &Whom,
    request: &Request,
    words: impl Fn(&T) -> Vec<String>,
) -> Result<ExitCode, ExitCode> {
    let answer = Line::open(whom)?.ask(request)?;
    Ok(print(&words(&answer)))
}

/// The same, or prints the response as JSON.
fn shown<T: DeserializeOwned>(
    show: &Show,
    request: &Request,
    words: impl Fn(&T) -> Vec<String>,
) -> Result<ExitCode, ExitCode> {
    let mut line = Line::open(&show.whom)?;
    if show.json {
        let answer: Value = line.ask(request)?;
        return Ok(print(&[format!("{answer:#}")]));
    }
    Ok(print(&words(&line.ask(request)?)))
}

/// `weir status`: 1 while something is wrong, so that a script sees it too.
fn status(show: &Show) -> Result<ExitCode, ExitCode> {
    let answer: Value = Line::open(&show.whom)?.ask(&Request::Status)?;
    let whole = format!("{answer:#}");
    let status: Status = serde_json::from_value(answer)
        .map_err(|why| problem(&format!("the response cannot be read: {why}")))?;
    let code = print(&if show.json { vec![whole] } else { status::lines(&status) });
    let is_sound = status.trouble.is_empty() || code != ExitCode::SUCCESS;
    Ok(if is_sound { code } else { ExitCode::from(1) })
}

fn print(lines: &[String]) -> ExitCode {
    let mut out = Out::new();
    lines.iter().for_each(|line| out.line(line));
    out.end()
}

/// `weir stop`: done when nothing is left of the link, so that another can be started at once.
fn stop(whom: &Whom) -> Result<ExitCode, ExitCode> {
    let mut line = Line::open(whom)?;
    let status: Status = line.ask(&Request::Status)?;
    let answer: Stopped = line.ask(&Request::Stop)?;
    // with guard and helper gone nobody lets the bridge carry; the daemon has said what to run
    let cuts: Vec<&String> =
        status.trouble.iter().filter(|trouble| trouble.contains(" cut")).collect();
    for _ in 0..200 {
        // the socket goes away last; one that nobody takes away has nobody behind it
        if std::os::unix::net::UnixStream::connect(line.path()).is_err() {
            let printed = print(&change::stopped(&answer));
            cuts.iter().for_each(|cut| say(&format!("warning: {cut}")));
            return Ok(if cuts.is_empty() { printed } else { ExitCode::from(1) });
        }
        #[expect(clippy::disallowed_methods, reason = "nobody tells when another program ends")]
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(problem("the link has accepted the stop, but still runs after 10 s"))
}

/// `weir apply FILE`: checked here first, so that what is wrong is shown even where nothing runs.
fn apply(args: &ApplyArgs) -> Result<ExitCode, ExitCode> {
    let (request, reading) = brought(args)?;
    let links: Vec<&str> = reading.plans.iter().map(|plan| plan.name.as_str()).collect();
    let mut line = Line::open_for(&args.whom, &links)?;
    let code = print(&match args.dry_run {
        true => change::compared(&line.ask(&request)?),
        false => change::applied(&line.ask(&request)?),
    });
    // rows that were skipped are a fault, though the others are in effect
    Ok(if reading.is_at_fault() && code == ExitCode::SUCCESS { ExitCode::from(1) } else { code })
}

/// The policy and its table as a request, and as they were read.
fn brought(args: &ApplyArgs) -> Result<(Request, Reading), ExitCode> {
    let second = 1_000_000_000;
    let most = Span::from_secs(limits::CONFIRM_SECS);
    if args.confirm.is_some_and(|span| span.ns() % second != 0 || span.ns() == 0 || span > most) {
        return Err(problem(&format!(
            "--confirm takes whole seconds, from 1s to {most}, as in --confirm 60s"
        )));
    }
    let reading = files::policy(&args.file).map_err(|why| problem(&why))?;
    crate::problems::print(&reading);
    if reading.plans.is_empty() {
        return Err(ExitCode::from(1));
    }
    let skipped = reading.policy.subscribers.as_ref().map_or(0, |table| table.skipped.count());
    if skipped > 0 && !args.allow_skipped && !args.dry_run {
        problem(&format!("nothing was changed: {}", refused_rows(skipped)));
        return Err(ExitCode::from(1));
    }
    let text = |at: usize| reading.sources.get(at).map(|source| (source.name(), source.text()));
    let subscribers = match text(1) {
        None => None,
        Some((_, Ok(table))) => Some(table.to_owned()),
        Some((name, Err(at))) => {
            return Err(problem(&format!(
                "{name}: byte {at} is not UTF-8: convert the file to UTF-8"
            )));
        }
    };
    let Some((name, Ok(policy))) = text(0) else { return Err(ExitCode::from(1)) };
    let apply = Apply {
        name: name.to_owned(),
        text: policy.to_owned(),
        subscribers,
        comment: args.comment.clone(),
        confirm: args.confirm,
        dry: args.dry_run,
        allow_skipped: args.allow_skipped,
    };
    Ok((Request::Apply(Box::new(apply)), reading))
}

/// What is said of a policy that is not applied because of its rows.
fn refused_rows(skipped: usize) -> String {
    let rows = if skipped == 1 { "row of the table is" } else { "rows of the table are" };
    format!("{skipped} {rows} skipped: correct them, or add --allow-skipped to apply the others")
}

/// Where the sockets of all links are.
fn folder() -> &'static Path {
    Path::new(weir_control::FOLDER)
}
