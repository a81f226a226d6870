//! `weir replay CAPTURE --policy FILE`: a capture's frames through the real engine, at the
//! capture's own pace but in virtual time, and the counters afterwards.

mod player;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use weir_control::{self as control, Named};
use weir_engine::{Counters, Report, Row};
use weir_io::Capture;
use weir_lab::{Grid, grouped};
use weir_packet::Reason;
use weir_policy::Plan;
use weir_units::{Instant, Prefix, Rate, Span};

use crate::explain;
use crate::out::{Out, problem, say};
use crate::progress;
use weir_daemon::answers;
use weir_daemon::files;

pub(crate) use player::{Player, Run};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A pcap or pcapng file (Ethernet, raw IP or Linux cooked)
    capture: PathBuf,
    /// The policy
    #[arg(short, long)]
    policy: PathBuf,
    /// Addresses on the LAN side [default: private ones and those that the policy calls lan]
    #[arg(long, value_name = "BLOCK")]
    lan: Vec<Prefix>,
    /// The link, if the policy has several
    #[arg(long)]
    link: Option<String>,
    /// Maximum number of frames queued for each port
    #[arg(long, default_value_t = 1_000, value_parser = crate::bench::within(1..=10_000))]
    queue: u32,
    /// Seed of the hashes: the same seed gives the same result
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the result as JSON to this file ("-": standard output, instead of the table)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let (reading, at) = match explain::plan(&args.policy, args.link.as_deref()) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let plan = &reading.plans[at];
    let name = args.capture.display().to_string();
    let file = match File::open(&args.capture) {
        Ok(file) => file,
        Err(error) => return problem(&format!("{name}: {}", files::why(&error))),
    };
    if file.metadata().is_ok_and(|about| about.is_dir()) {
        return problem(&format!("{name}: it is a directory, not a file"));
    }
    let progress = progress::of_file(&name, &file);
    let file = BufReader::with_capacity(1 << 18, progress.wrap_read(file));
    let opened = Capture::open(file).map_err(|error| format!("{name}: {error}"));
    let player =
        |capture| Ok((capture, Player::new(plan, args.queue as usize, args.seed, &args.lan)?));
    let (capture, player) = match opened.and_then(player) {
        Ok(opened) => opened,
        Err(why) => {
            progress.finish_and_clear();
            return problem(&why);
        }
    };
    let (run, engine) = player.play(capture);
    progress.finish_and_clear();
    let report = Report::of(&engine, plan);
    let printed = print(args, &name, plan, &run, &report);
    match &run.trouble {
        // what came before the fault has been counted and shown
        Some(why) => {
            say(&format!("weir: {name}: {why}"));
            ExitCode::from(1)
        }
        None if reading.is_at_fault() && printed == ExitCode::SUCCESS => ExitCode::from(1),
        None => printed,
    }
}

fn print(args: &Args, name: &str, plan: &Plan, run: &Run, report: &Report) -> ExitCode {
    let mut out = Out::new();
    if let Some(file) = &args.json {
        let told = Told::of(name, args, plan, run, report);
        let text = serde_json::to_string_pretty(&told).unwrap_or_default() + "\n";
        if file.as_os_str() == "-" {
            out.text(&text);
            return out.end();
        }
        if let Err(why) = files::write(file, &text) {
            return problem(&why);
        }
    }
    for line in lines(name, plan, run, report) {
        out.line(&line);
    }
    out.end()
}

/// The result as a person reads it.
pub(crate) fn lines(name: &str, plan: &Plan, run: &Run, report: &Report) -> Vec<String> {
    let came = run.last.since(Instant::ZERO);
    // what left has left by the end, not by the time that the last frame came
    let time = run.end.since(Instant::ZERO);
    let mut lines = vec![
        format!("{name}: {} frames in {}", grouped(run.frames), seconds(came)),
        format!(
            "link {}: {} down, {} up; delay is mean / maximum",
            plan.name, plan.nodes[0].shares.down.rate, plan.nodes[0].shares.up.rate
        ),
    ];
    lines.push(String::new());
    let mut table = Grid::new(
        1,
        &[
            "class",
            "down: frames",
            "bytes",
            "rate",
            "delay ms",
            "dropped",
            "up: frames",
            "bytes",
            "rate",
            "delay ms",
            "dropped",
        ],
    );
    for row in report.rows.iter().filter(|row| !row.is_silent() || row.depth == 0) {
        let mut cells = vec![format!("{}{}", "  ".repeat(usize::from(row.depth)), row.path)];
        for (_, counters) in row.counters.iter() {
            cells.push(grouped(counters.sent.frames));
            cells.push(grouped(counters.sent.bytes));
            cells.push(rate(counters.sent.bytes, time));
            cells.push(delay(counters));
            cells.push(grouped(counters.dropped_in_all().frames));
        }
        table.rows.push(cells);
    }
    lines.extend(table.lines());
    let silent = report.rows.iter().filter(|row| row.is_silent() && row.is_leaf).count();
    if silent > 0 {
        lines.push(format!("({silent} leaves got no frame)"));
    }
    for asker in &report.askers {
        let (class, who) = (&asker.class, &asker.who);
        lines.push(format!(
            "{who} waits for a leaf of its own in {class}; add it to \"known\" to approve it"
        ));
    }
    lines.push(String::new());
    lines.extend(why_dropped(report));
    lines.extend(remarks(run));
    lines
}

/// Which frames went no further, and why.
fn why_dropped(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for row in report.rows.iter().filter(|row| row.is_leaf) {
        for (way, counters) in row.counters.named() {
            for reason in Reason::all() {
                let count = counters.dropped[reason.index()];
                if count.frames > 0 {
                    lines.push(format!(
                        "{} {way}: {} frames ({} bytes) dropped, {}: {}",
                        row.path,
                        grouped(count.frames),
                        grouped(count.bytes),
                        reason.name(),
                        reason.meaning()
                    ));
                }
            }
        }
    }
    if lines.is_empty() {
        lines.push("nothing was dropped".to_owned());
    }
    lines
}

/// What a reader must know to trust the numbers.
fn remarks(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |count: u64, text: &str| {
        if count > 0 {
            lines.push(format!("{} {text}", grouped(count)));
        }
    };
    add(run.cut, "frames are truncated in the capture; they count with their full length");
    add(run.oversize, "frames are longer than 65 535 bytes and count as 65 535 bytes");
    add(
        run.backwards,
        "records have an earlier time than the previous one; they get the latest time so far",
    );
    add(run.foreign, "records have a link type that Ethernet does not carry, and were skipped");
    add(run.guessed, "frames do not show their side and count as coming from the LAN (see --lan)");
    let late = run.end.since(run.last);
    if late > Span::from_ms(1) {
        lines.push(format!(
            "the last frame left {} after it arrived: the link was full",
            seconds(late)
        ));
    }
    lines
}

/// A mean rate to three digits.
pub(crate) fn rate(bytes: u64, time: Span) -> String {
    if time == Span::ZERO || bytes == 0 {
        return "-".to_owned();
    }
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(time.ns());
    let bits = u64::try_from(bits).unwrap_or(u64::MAX);
    // three digits are enough for a reader
    let step = 10u64.pow(bits.max(1).ilog10().saturating_sub(2));
    Rate::from_bps(bits / step * step).to_string()
}

/// Mean and longest delay in milliseconds.
fn delay(counters: &Counters) -> String {
    if counters.sent.frames == 0 {
        return "-".to_owned();
    }
    let ms = |span: Span| format!("{}.{}", span.ns() / 1_000_000, span.ns() / 100_000 % 10);
    let mean = counters.delay.mean(counters.sent.frames);
    format!("{} / {}", ms(mean), ms(Span::from_ns(counters.delay.max_ns)))
}

/// A time to the millisecond.
fn seconds(time: Span) -> String {
    let ms = time.ns() / 1_000_000;
    format!("{}.{:03} s", ms / 1_000, ms % 1_000)
}

/// The result for programs.
#[derive(Serialize)]
struct Told<'t> {
    capture: &'t str,
    policy: String,
    link: &'t str,
    seed: u64,
    frames: u64,
    cut_frames: u64,
    oversize_frames: u64,
    backward_records: u64,
    foreign_records: u64,
    guessed_sides: u64,
    duration_ns: u64,
    last_frame_left_ns: u64,
    trouble: &'t Option<String>,
    classes: Vec<Class<'t>>,
    askers: Vec<control::Asker>,
}

#[derive(Serialize)]
struct Class<'t> {
    class: &'t str,
    leaf: bool,
    down: Direction,
    up: Direction,
}

#[derive(Serialize)]
struct Direction {
    received: control::Count,
    sent: control::Count,
    held: control::Count,
    delay_ns_mean: u64,
    delay_ns_max: u64,
    dropped: Named<control::Count>,
}

impl Direction {
    fn of(counters: &Counters) -> Direction {
        let told = answers::counters(counters);
        let dropped = |reason: Reason| {
            let name = reason.name();
            (name, told.dropped.get(name).copied().unwrap_or_default())
        };
        Direction {
            received: told.received,
            sent: told.sent,
            held: told.backlog,
            delay_ns_mean: told.delay_ns_mean(),
            delay_ns_max: told.delay_ns_max,
            dropped: Reason::all().map(dropped).collect(),
        }
    }
}

impl<'t> Told<'t> {
    fn of(
        name: &'t str,
        args: &Args,
        plan: &'t Plan,
        run: &'t Run,
        report: &'t Report,
    ) -> Told<'t> {
        let class = |row: &'t Row| Class {
            class: &row.path,
            leaf: row.is_leaf,
            down: Direction::of(&row.counters.down),
            up: Direction::of(&row.counters.up),
        };
        Told {
            capture: name,
            policy: args.policy.display().to_string(),
            link: &plan.name,
            seed: args.seed,
            frames: run.frames,
            cut_frames: run.cut,
            oversize_frames: run.oversize,
            backward_records: run.backwards,
            foreign_records: run.foreign,
            guessed_sides: run.guessed,
            duration_ns: run.last.ns(),
            last_frame_left_ns: run.end.ns(),
            trouble: &run.trouble,
            classes: report.rows.iter().map(class).collect(),
            askers: report.askers.iter().map(answers::asker).collect(),
        }
    }
}
