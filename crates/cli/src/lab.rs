//! `weir lab`: experiments in virtual time. An experiment is a scenario (who is there, who says
//! what to whom) with profiles (what the box between does), figures and claims; the binary carries
//! those of the papers, and a folder or file of one's own runs alike.

mod claims;
mod compare;
mod csv;
mod report;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use weir_io::PcapWriter;
use weir_lab::scenario::{self, Scenario, Size};
use weir_lab::{Expected, Outcome, library, outcome, run as runs, write, write_group};
use weir_policy::Source;

use weir_proving::driver;

use crate::out::{Out, problem, say};
use crate::{problems, progress};
use weir_daemon::files;

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// List the experiments that this binary includes
    List,
    /// Run an experiment: a name, a group (survey, edge, hsdba), a scenario file or its folder
    Run(Run),
    /// Compare two runs, or two profiles of one run
    Compare(compare::Args),
    /// Check that each claim of an experiment can fail: run it with the changes of its changes.toml
    Claims(claims::Args),
    /// Write an HTML page of results from --json: claims, plots, all figures
    Report(report::Args),
}

#[derive(clap::Args)]
struct Run {
    /// Name, group, file or folder
    what: String,
    /// Only this profile
    #[arg(long)]
    profile: Option<String>,
    /// Number of runs of each profile [default: as in the scenario]
    #[arg(long, value_parser = crate::bench::within(1..=1_000))]
    seeds: Option<u32>,
    /// Only the run with this seed
    #[arg(long, conflicts_with = "seeds", value_parser = crate::bench::within(1..=1_000_000))]
    seed: Option<u32>,
    /// Run at the size of the paper if the experiment is scaled down: minutes to hours
    #[arg(long)]
    full: bool,
    /// Where the experiment runs
    #[arg(long, value_enum, default_value_t = Driver::Virtual)]
    driver: Driver,
    /// Write the result as JSON to this file ("-": standard output, instead of the table)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures as CSV to this file ("-": standard output, instead of the table)
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    csv: Option<PathBuf>,
    /// Write one page of HTML with claims, plots and all figures into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Write every frame of a link in the first run to a capture (LINK=FILE)
    #[arg(long, value_name = "LINK=FILE")]
    pcap: Option<String>,
    /// Number of runs in parallel [default: the number of cores]
    #[arg(long, value_parser = crate::bench::within(1..=256))]
    threads: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Driver {
    /// In one process, in virtual time
    Virtual,
    /// In network namespaces, in real time; needs root
    Live,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match &args.what {
        What::List => list(),
        What::Run(args) => run_all(args),
        What::Compare(args) => compare::run(args),
        What::Claims(args) => claims::run(args),
        What::Report(args) => report::run(args),
    }
}

fn list() -> ExitCode {
    let mut out = Out::new();
    let mut group = "";
    for experiment in library::EXPERIMENTS {
        if experiment.group != group {
            group = experiment.group;
            out.line(group);
        }
        let source = Source::new(experiment.name, experiment.scenario.to_owned());
        let reading = scenario::read(source, &mut |_| Err(String::new()));
        let scenario = reading.ok().and_then(|reading| reading.scenario);
        let about = scenario.map_or_else(String::new, |scenario| scenario.about);
        out.line(&format!("  {:<22} {about}", experiment.name));
    }
    out.end()
}

/// A scenario with its name, and what is expected of it.
struct Named {
    name: String,
    scenario: Scenario,
    expected: Expected,
}

fn run_all(args: &Run) -> ExitCode {
    let size = if args.full { Size::Full } else { Size::Usual };
    let found = match find(&args.what, size) {
        Ok(found) => found,
        Err(code) => return code,
    };
    for named in found.iter().filter(|named| args.full && !named.scenario.has_full) {
        say(&format!("{}: runs at the paper's size already", named.name));
    }
    let (mut outcomes, mut has_void) = (Vec::new(), false);
    let is_group = found.len() > 1;
    for named in &found {
        match run_one(args, named) {
            Ok((outcome, is_void)) => {
                has_void |= is_void;
                outcomes.push(outcome);
            }
            Err(why) => return problem(&format!("{}: {why}", named.name)),
        }
    }
    let failed: usize = outcomes.iter().map(Outcome::failed).sum();
    let text = match (&outcomes[..], is_group) {
        ([only], false) => write(only),
        (all, _) => write_group(all),
    };
    let opening = match show::opening(&args.what, &found) {
        Ok(opening) => opening,
        Err(why) => return problem(&why),
    };
    let text = if args.csv.is_some() { csv::text(&outcomes) } else { text };
    let file = args.csv.as_ref().or(args.json.as_ref());
    let is_shown = file.is_none_or(|file| file.as_os_str() != "-");
    let kept = [
        args.report
            .as_ref()
            .map(|folder| report::into(folder, (&args.what, &opening), &outcomes, &found)),
        file.filter(|_| is_shown).map(|file| files::write(file, &text)),
    ];
    let mut out = Out::new();
    if is_shown {
        show::tables(&mut out, &opening);
        for (outcome, named) in outcomes.iter().zip(&found) {
            show::outcome(&mut out, outcome, &named.expected);
        }
    } else {
        out.text(&text);
    }
    let mut end = out.end();
    // after the figures, which may have taken an hour
    for why in kept.into_iter().flatten().filter_map(Result::err) {
        end = problem(&why);
    }
    let is_fine = failed == 0 && !has_void;
    if end != ExitCode::SUCCESS || is_fine { end } else { ExitCode::from(1) }
}

/// What came of an experiment, and whether all runs of a profile are void.
fn run_one(args: &Run, named: &Named) -> Result<(Outcome, bool), String> {
    let scenario = &named.scenario;
    let all: Vec<usize> = (0..scenario.profiles.len()).collect();
    let mut profiles =
        match &args.profile {
            None => all,
            Some(name) => {
                let at = scenario.profiles.iter().position(|profile| profile.name == *name);
                let known: Vec<&str> = scenario.profiles.iter().map(|p| p.name.as_str()).collect();
                vec![at.ok_or(format!(
                    "there is no profile \"{name}\"; there are {}",
                    known.join(", ")
                ))?]
            }
        };
    let seeds = match args.seed {
        Some(seed) => seed..=seed,
        None => 1..=args.seeds.unwrap_or(scenario.seeds),
    };
    if args.pcap.is_some() && args.driver == Driver::Live {
        return Err("--pcap captures a run under the virtual clock: leave out --driver live".into());
    }
    if let Some(words) = &args.pcap {
        capture(words, scenario, profiles[0], *seeds.start())?;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or(threads, |threads| threads as usize);
    let progress = progress::of_runs(&named.name);
    if args.driver == Driver::Live {
        keep_playable(named, &mut profiles)?;
    }
    let asked = profiles.len();
    let (driver, runs) = match args.driver {
        Driver::Virtual => {
            let runs = runs::all(scenario, &profiles, seeds, threads, &progress)?;
            (weir_lab::Driver::Virtual, runs)
        }
        Driver::Live => {
            let runs = play(named, &mut profiles, seeds, threads, &progress)?;
            (weir_lab::Driver::Live, runs)
        }
    };
    let is_void = profiles.len() < asked;
    // void runs are none
    let count = runs.iter().map(Vec::len).min().unwrap_or(0);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let about = (scenario, &named.expected);
    let outcome = outcome::outcome((&named.name, driver), about, &profiles, &runs, count);
    Ok((Outcome { is_full: args.full && scenario.has_full, ..outcome }, is_void))
}

/// Leaves out the profiles that cannot be played live, and says why.
fn keep_playable(named: &Named, profiles: &mut Vec<usize>) -> Result<(), String> {
    let Named { name, scenario, .. } = named;
    let mut left_out: Vec<(String, Vec<&str>)> = Vec::new();
    profiles.retain(|&at| {
        let profile = &scenario.profiles[at];
        let why = driver::cannot(scenario, profile).join("; ");
        if why.is_empty() {
            return true;
        }
        match left_out.iter_mut().find(|(other, _)| *other == why) {
            Some((_, profiles)) => profiles.push(&profile.name),
            None => left_out.push((why, vec![&profile.name])),
        }
        false
    });
    if profiles.is_empty() {
        let why: Vec<String> = left_out.into_iter().map(|(why, _)| why).collect();
        return Err(format!("it cannot be played live: {}", why.join("; ")));
    }
    if let Some(why) = weir_proving::cannot() {
        return Err(why);
    }
    for (why, profiles) in left_out {
        say(&format!("{name}: left out: {}: {why}", profiles.join(", ")));
    }
    Ok(())
}

/// The runs in real time. Profiles all of whose runs are void are left out.
fn play(
    named: &Named,
    profiles: &mut Vec<usize>,
    seeds: std::ops::RangeInclusive<u32>,
    threads: usize,
    progress: &runs::Progress<'_>,
) -> Result<Vec<Vec<runs::Run>>, String> {
    let Named { name, scenario, .. } = named;
    let count = seeds.clone().count();
    let takes = driver::takes(scenario, profiles, count, threads);
    let runs = profiles.len() * count;
    say(&format!("{name}: real time, {runs} runs, {} s", takes.ns() / 1_000_000_000));
    let played = driver::all(scenario, profiles, seeds, threads, progress)?;
    played.void.iter().for_each(|void| say(&format!("{name}: void: {void}")));
    let mut whole = played.runs.iter().map(|runs| !runs.is_empty());
    profiles.retain(|&at| {
        let has_runs = whole.next().unwrap_or(false);
        if !has_runs {
            let profile = &scenario.profiles[at].name;
            say(&format!("{name}: left out: {profile}: all its runs are void"));
        }
        has_runs
    });
    let runs: Vec<_> = played.runs.into_iter().filter(|runs| !runs.is_empty()).collect();
    if runs.is_empty() {
        return Err("all runs are void: play it on a machine that is less busy".to_owned());
    }
    let late = runs::ms(played.late);
    say(&format!("{name}: lateness of the machine, 99 of 100: {late:.2} ms in the worst run"));
    Ok(runs)
}

/// Runs an experiment that the binary carries, prints what came out and writes its report.
pub(crate) fn rehearse(name: &str, folder: &Path, out: &mut Out) -> Result<(), String> {
    let found = find(name, Size::Usual).map_err(|_| format!("{name} is at fault"))?;
    for named in &found {
        let Named { name, scenario, expected } = named;
        let profiles: Vec<usize> = (0..scenario.profiles.len()).collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let seeds = scenario.seeds;
        let runs = runs::all(scenario, &profiles, 1..=seeds, threads, &progress::of_runs(name))?;
        let by = (&**name, weir_lab::Driver::Virtual);
        let outcome = outcome::outcome(by, (scenario, expected), &profiles, &runs, seeds);
        show::outcome(out, &outcome, expected);
        report::into(folder, (name, &[]), &[outcome], std::slice::from_ref(named))?;
    }
    Ok(())
}

/// The scenarios of a name: what the binary carries, or a file.
fn find(what: &str, size: Size) -> Result<Vec<Named>, ExitCode> {
    let carried = library::named(what);
    if !carried.is_empty() {
        let read = |e: library::Experiment| {
            let source = Source::new(e.name, e.scenario.to_owned());
            let named = read(e.name, (source, size), &mut |_| Err("it is not carried".to_owned()))?;
            expecting(named, "expected.toml", e.expected)
        };
        return carried.into_iter().map(read).collect();
    }
    let path = PathBuf::from(what);
    let is_folder = path.is_dir();
    let path = if is_folder { path.join("scenario.toml") } else { path };
    if !path.exists() {
        let help = "weir lab list shows the names; or give a scenario file or its folder";
        return Err(problem(&match is_folder {
            true => format!("the folder \"{what}\" has no scenario.toml: {help}"),
            false => format!("there is no experiment \"{what}\": {help}"),
        }));
    }
    let bytes = files::read(&path, weir_units::limits::POLICY_BYTES)
        .map_err(|why| problem(&format!("{}: {why}", path.display())))?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut load = |name: &str| {
        let bytes = files::read(&folder.join(name), weir_units::limits::POLICY_BYTES)?;
        String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())
    };
    let name = path.display().to_string();
    let short = match path.file_name().is_some_and(|name| name == "scenario.toml") {
        true => folder.file_name().map(|name| name.to_string_lossy().into_owned()),
        false => path.file_stem().map(|name| name.to_string_lossy().into_owned()),
    };
    let named = read(&short.unwrap_or_default(), (Source::new(name, bytes), size), &mut load)?;
    let beside = folder.join("expected.toml");
    if !beside.exists() {
        return Ok(vec![named]);
    }
    let text =
        load("expected.toml").map_err(|why| problem(&format!("{}: {why}", beside.display())))?;
    Ok(vec![expecting(named, &beside.display().to_string(), &text)?])
}

/// With what the text says that is expected.
fn expecting(named: Named, file: &str, text: &str) -> Result<Named, ExitCode> {
    match Expected::read(text) {
        Ok(expected) => Ok(Named { expected, ..named }),
        Err(why) => {
            problem(&format!("{file} of {}: {why}", named.name));
            Err(ExitCode::from(1))
        }
    }
}

fn read(
    name: &str,
    (source, size): (Source, Size),
    load: &mut scenario::Load<'_>,
) -> Result<Named, ExitCode> {
    let reading = scenario::read_sized(source, size, load)
        .map_err(|at| problem(&format!("{name}: it is not text: byte {at} is not UTF-8")))?;
    problems::print_of(&reading.problems, std::slice::from_ref(&reading.source));
    match reading.scenario {
        Some(scenario) => {
            Ok(Named { name: name.to_owned(), scenario, expected: Expected::default() })
        }
        None => Err(ExitCode::from(1)),
    }
}

/// Runs a seed once more with a capture of one link.
fn capture(words: &str, scenario: &Scenario, profile: usize, seed: u32) -> Result<(), String> {
    let parts = words.split_once('=').filter(|(_, file)| !file.is_empty());
    let (link, file) = parts.ok_or_else(|| {
        format!("--pcap cannot be \"{words}\": write LINK=FILE, as in line=line.pcap")
    })?;
    let at = scenario.links.iter().position(|wire| wire.name == link);
    let known: Vec<&str> = scenario.links.iter().map(|wire| wire.name.as_str()).collect();
    let at = at.ok_or_else(|| match &known[..] {
        [] => format!("there is no link \"{link}\", nor any other"),
        known => format!("there is no link \"{link}\"; there are {}", known.join(", ")),
    })?;
    let mut built = runs::build(scenario, &scenario.profiles[profile], u64::from(seed))?;
    let failed = |error: &std::io::Error| format!("{file}: {}", files::why_not_written(error));
    let out = std::fs::File::create(file).map_err(|e| failed(&e))?;
    let writer = PcapWriter::new(std::io::BufWriter::new(out)).map_err(|e| failed(&e))?;
    // what goes wrong on the way is told in the end: a world cannot stop for it
    let writing = Arc::new(Mutex::new(Some(Ok(writer))));
    let tapped = Arc::clone(&writing);
    let (there, back) = built.links[at];
    built.world.tap(
        &[there, back],
        Box::new(move |_, at, bytes| {
            let mut state = tapped.lock().unwrap_or_else(PoisonError::into_inner);
            let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            if let Some(Ok(writer)) = &mut *state
                && let Err(error) = writer.write(at, len, bytes)
            {
                *state = Some(Err(error));
            }
        }),
    );
    built.world.run_until(weir_units::Instant::ZERO + scenario.run);
    let state = writing.lock().unwrap_or_else(PoisonError::into_inner).take();
    let ended = state.map_or(Ok(()), |writer| writer.and_then(|w| w.finish().map(|_| ())));
    ended.map_err(|e| format!("{}; the capture is not whole", failed(&e)))?;
    say(&format!("{file}: the frames of {link}, both ways"));
    Ok(())
}
