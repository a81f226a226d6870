//! `weir demo`: the tour. It writes a policy and a capture of an evening at home into a folder,
//! runs the same commands on them that the reader can run afterwards, and shows what they answer.

mod traffic;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_engine::{Engine, Report};
use weir_io::{Capture, PcapWriter};
use weir_packet::{Build, Side};
use weir_policy::Plan;

use crate::out::{Out, problem};
use crate::{explain, lab, problems, replay};
use weir_daemon::files;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder for the files of the tour
    #[arg(long, default_value = "weir-demo")]
    folder: PathBuf,
    /// Only the parts in virtual time, even as root
    #[arg(long = "virtual")]
    only_virtual: bool,
}

const HOME: &str = include_str!("../../../examples/home.toml");

/// Seconds of the evening.
const SECONDS: u64 = 20;

pub(crate) fn run(args: &Args) -> ExitCode {
    let mut out = Out::new();
    match tour(&args.folder, args.only_virtual, &mut out) {
        Ok(()) => out.end(),
        Err(why) => problem(&why),
    }
}

fn tour(folder: &Path, only_virtual: bool, out: &mut Out) -> Result<(), String> {
    fs::create_dir_all(folder)
        .map_err(|e| format!("{}: {}", folder.display(), files::why_not_written(&e)))?;
    let write = |name: &str, bytes: &[u8]| -> Result<PathBuf, String> {
        let path = folder.join(name);
        fs::write(&path, bytes)
            .map_err(|e| format!("{}: {}", path.display(), files::why_not_written(&e)))?;
        Ok(path)
    };
    let wrong = HOME
        .replace("priority = \"realtime\"", "priorty = \"realtime\"")
        .replace("rate = \"1mbit\"", "rate = \"1mbyte\"");
    let wrong = write("wrong.toml", wrong.as_bytes())?;
    let home = write("home.toml", HOME.as_bytes())?;
    let evening = write("evening.pcap", &evening()?)?;

    title(out, "1. A policy with two mistakes: both are reported, each with a fix");
    typed(out, &format!("weir check {}", wrong.display()));
    out.text(&problems::text(&files::policy(&wrong)?, false));

    title(out, "2. Which class does a packet belong to, and what limits it?");
    let (reading, plan) =
        explain::plan(&home, None).map_err(|_| "the demo's policy is at fault".to_owned())?;
    for packet in [
        "udp 192.168.1.20:40000 > 203.0.113.7:3478 dscp ef",
        "tcp 192.168.1.30:50022 > 198.51.100.9:22 length 1514",
    ] {
        typed(out, &format!("weir explain {} --packet '{packet}'", home.display()));
        let bytes = packet.parse::<Build>().map_err(|e| e.to_string())?.to_vec();
        explain::trace(&reading, plan, Side::Lan, &bytes)?.iter().for_each(|line| out.line(line));
    }

    title(
        out,
        "3. An evening at home, in virtual time: a call, a game, the web, and a backup that",
    );
    out.line("   sends more than the 20 Mbit/s uplink carries from second 5 to 15");
    typed(out, &format!("weir replay {} --policy {}", evening.display(), home.display()));
    out.flush();
    let bare = HOME.find("\n# Calls").map_or(HOME, |end| &HOME[..end]);
    let bare = format!("{bare}\n[class.\"/all\"]\nmatch = \"any\"\nqueue = \"fifo\"\n");
    let bare = files::policy(&write("one-queue.toml", bare.as_bytes())?)?;
    let bare = bare.plans.first().ok_or("the demo's policy is at fault")?;
    evening_replayed(&evening, bare, &reading.plans[plan], out)?;

    title(out, "4. Before it meets users: the same link with real TCP, without weir, with fair");
    out.line("   queueing alone, and with classes for calls and games");
    typed(out, &format!("weir lab run home --report {}", folder.display()));
    out.flush();
    lab::rehearse("home", folder, out)?;

    if !only_virtual {
        title(out, "5. The same home on real interfaces, with the kernel's TCP:");
        out.flush();
        match weir_proving::cannot() {
            Some(why) => out.line(&format!("   left out: {why}")),
            None => weir_proving::tour::show(HOME, out)?,
        }
    }

    out.line("");
    out.line(&format!(
        "The files are in {}: change the policy and run the commands again.",
        folder.display()
    ));
    out.line(
        "`weir --help` lists the commands, examples/ has policies for an office, a campus, an ISP.",
    );
    Ok(())
}

fn title(out: &mut Out, text: &str) {
    out.line("");
    out.line(text);
}

fn typed(out: &mut Out, command: &str) {
    out.line("");
    out.line(&format!("$ {command}"));
}

/// The capture as a file.
fn evening() -> Result<Vec<u8>, String> {
    let mut pcap = PcapWriter::new(Vec::new()).map_err(|e| e.to_string())?;
    for (at, bytes) in traffic::evening(SECONDS) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        pcap.write(at, length, &bytes).map_err(|e| e.to_string())?;
    }
    pcap.finish().map_err(|e| e.to_string())
}

/// What was seen of one class and direction second by second.
struct Line {
    path: &'static str,
    side: Side,
    sent: (u64, u64, u64),
    rates: Vec<u64>,
    delays: Vec<u64>,
}

impl Line {
    fn new(path: &'static str, side: Side) -> Line {
        Line { path, side, sent: (0, 0, 0), rates: Vec::new(), delays: Vec::new() }
    }

    fn look(&mut self, report: &Report) {
        let Some(row) = report.rows.iter().find(|r| r.path == self.path) else { return };
        let counters = row.from(self.side);
        let now = (counters.sent.bytes, counters.sent.frames, counters.delay.sum_ns);
        self.rates.push((now.0 - self.sent.0) * 8);
        self.delays.push((now.2 - self.sent.2) / (now.1 - self.sent.1).max(1));
        self.sent = now;
    }
}

/// One run of the evening under a policy.
fn play(evening: &Path, plan: &Plan, lines: &mut [Line]) -> Result<(replay::Run, Report), String> {
    let name = evening.display().to_string();
    let file = fs::File::open(evening).map_err(|e| format!("{name}: {}", files::why(&e)))?;
    let capture =
        Capture::open(std::io::BufReader::new(file)).map_err(|e| format!("{name}: {e}"))?;
    let mut look = |_, engine: &Engine| {
        let report = Report::of(engine, plan);
        lines.iter_mut().for_each(|line| line.look(&report));
    };
    let player = replay::Player::new(plan, 1_000, 1, &[])?;
    let (run, engine) = player.watched_by(&mut look).play(capture);
    Ok((run, Report::of(&engine, plan)))
}

fn evening_replayed(evening: &Path, bare: &Plan, plan: &Plan, out: &mut Out) -> Result<(), String> {
    let mut together = [Line::new("/", Side::Lan)];
    let (_, without) = play(evening, bare, &mut together)?;
    let mut lines = [
        Line::new("/", Side::Lan),
        Line::new("/calls", Side::Lan),
        Line::new("/backup", Side::Lan),
        Line::new("/", Side::Wan),
    ];
    let (run, report) = play(evening, plan, &mut lines)?;
    let name = evening.display().to_string();
    replay::lines(&name, plan, &run, &report).iter().for_each(|line| out.line(line));
    out.line("");
    out.line("second by second, each bar from zero to the number after it:");
    for (name, values, unit) in [
        ("uplink, rate", &lines[0].rates, "mbit/s"),
        ("backup up, rate", &lines[2].rates, "mbit/s"),
        ("backup up, delay", &lines[2].delays, "ms"),
        ("call up, delay", &lines[1].delays, "ms"),
        ("in one queue", &together[0].delays, "ms"),
        ("downlink, rate", &lines[3].rates, "mbit/s"),
    ] {
        out.line(&bars(name, values, unit));
    }
    let lost = |report: &Report, path: &str| {
        let row = report.rows.iter().find(|r| r.path == path);
        row.map_or(0, |r| r.from(Side::Lan).dropped_in_all().frames)
    };
    let longest = |report: &Report, path: &str| {
        let row = report.rows.iter().find(|r| r.path == path);
        let ns = row.map_or(0, |r| r.from(Side::Lan).delay.max_ns);
        format!("{}.{} ms", ns / 1_000_000, ns / 100_000 % 10)
    };
    out.line("");
    out.line(&format!(
        "In one queue with the backup the call waits up to {}, and loses with it",
        longest(&without, "/")
    ));
    out.line(&format!(
        "({} frames in total). With this policy it waits at most {} and loses {}; the backup fills",
        lost(&without, "/"),
        longest(&report, "/calls"),
        lost(&report, "/calls")
    ));
    out.line("the link.");
    Ok(())
}

/// Values as bars of eight heights.
fn bars(name: &str, values: &[u64], unit: &str) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let height = |v: &u64| HEIGHTS[usize::try_from(v * 7 / most).unwrap_or(7).min(7)];
    let bars: String = values.iter().map(height).collect();
    // rates are in bit/s and delays in ns: both are a million times what is shown
    format!("  {name:<16} {bars}  {}.{:02} {unit}", most / 1_000_000, most / 10_000 % 100)
}
