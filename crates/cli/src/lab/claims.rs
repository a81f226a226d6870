//! Whether the claims of an experiment can fail: it is run with each change that its
//! `changes.toml` lists, and each claim must fail under one of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_lab::changes::{Change, Changes, Failure, Tried, Verdict, try_all};
use weir_lab::scenario::Size;
use weir_lab::{Outcome, outcome, run as runs};
use weir_policy::Source;

use super::{Named, find, read};
use crate::out::{Out, problem};
use crate::progress;
use weir_daemon::files;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders with scenario.toml and changes.toml
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// List every claim with the changes under which it fails
    #[arg(short, long)]
    verbose: bool,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let mut out = Out::new();
    let (mut is_fine, mut sums) = (true, BTreeMap::new());
    for folder in &args.folders {
        let tried = match try_folder(folder) {
            Ok(tried) => tried,
            Err(Stopped::Said(code)) => return code,
            Err(Stopped::Why(why)) => return problem(&format!("{}: {why}", folder.display())),
        };
        is_fine &= tried.iter().all(|(_, tried)| tried.verdict.is_fine());
        tried.iter().for_each(|(_, tried)| *sums.entry(word(tried.verdict)).or_insert(0) += 1);
        show(&mut out, folder, &tried, args.verbose);
    }
    let all: u32 = sums.values().sum();
    let counts: Vec<String> = sums.iter().map(|(word, count)| format!("{count} {word}")).collect();
    out.line(&format!("{all} claims: {}", counts.join(", ")));
    let end = out.end();
    if end == ExitCode::SUCCESS && !is_fine { ExitCode::from(1) } else { end }
}

enum Stopped {
    /// It has been printed.
    Said(ExitCode),
    Why(String),
}

impl From<String> for Stopped {
    fn from(why: String) -> Stopped {
        Stopped::Why(why)
    }
}

/// The claims of an experiment, in words, and what its changes do to them.
fn try_folder(folder: &Path) -> Result<Vec<(String, Tried)>, Stopped> {
    let found = find(&folder.display().to_string(), Size::Usual).map_err(Stopped::Said)?;
    let [named] = &found[..] else {
        return Err(Stopped::Why("it is a group, not a folder".to_owned()));
    };
    let text_of = |name: &str| {
        let bytes = files::read(&folder.join(name), weir_units::limits::POLICY_BYTES)?;
        String::from_utf8(bytes).map_err(|_| format!("{name} is not text"))
    };
    let changes = text_of("changes.toml").map_err(|why| {
        format!("changes.toml: {why}; it lists changes under which claims must fail: docs/lab.md")
    })?;
    let changes = Changes::read(&changes).map_err(|why| format!("changes.toml: {why}"))?;
    let text = text_of("scenario.toml")?;
    let mut changed = Vec::new();
    for change in &changes.list {
        changed.push(if change.edit.is_empty() {
            None
        } else {
            let source =
                Source::new(format!("{} with {}", named.name, change.id), change.of(&text)?);
            let mut load = |name: &str| text_of(name);
            Some(read(&named.name, (source, Size::Usual), &mut load).map_err(Stopped::Said)?)
        });
    }
    let (unchanged, changed) = play(named, &changes, &changed)?;
    let claims = outcome::claims(&named.scenario, &named.expected, u32::MAX);
    let tried = try_all(&claims, &unchanged, &changed);
    Ok(claims.into_iter().map(|claim| claim.text).zip(tried).collect())
}

/// What came of the scenario without a change, and with each.
type Ran<'c> = (Outcome, Vec<(&'c Change, Outcome)>);

/// Runs the scenario without a change and with each, all side by side.
fn play<'c>(
    named: &Named,
    changes: &'c Changes,
    changed: &[Option<Named>],
) -> Result<Ran<'c>, Stopped> {
    let scenarios: Vec<&Named> = std::iter::once(named).chain(changed.iter().flatten()).collect();
    let asked = std::iter::once(&[][..]);
    let edits = changes.list.iter().filter(|change| !change.edit.is_empty());
    let asked = asked.chain(edits.map(|change| &change.profiles[..]));
    let mut jobs = Vec::new();
    for (at, (Named { scenario, .. }, asked)) in scenarios.iter().zip(asked).enumerate() {
        let names: Vec<&str> = scenario.profiles.iter().map(|p| p.name.as_str()).collect();
        if let Some(name) = asked.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(Stopped::Why(format!("changes.toml: there is no profile \"{name}\"")));
        }
        let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
        jobs.extend((0..names.len()).filter(|&p| is_asked(names[p])).map(|p| (at, p)));
    }
    let numbers: Vec<usize> = (0..jobs.len()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let progress = progress::of_runs(&named.name);
    let seeds = 1..=changes.seeds;
    let ran = runs::side_by_side(&numbers, seeds, threads, &progress, |_, job, seed| {
        let (at, profile) = jobs[job];
        let scenario = &scenarios[at].scenario;
        runs::one(scenario, &scenario.profiles[profile], u64::from(seed))
    });
    let mut ran = ran.into_iter();
    let mut outcomes = Vec::new();
    for (at, Named { name, scenario, expected }) in scenarios.iter().enumerate() {
        let mine: Vec<usize> = jobs.iter().filter(|job| job.0 == at).map(|job| job.1).collect();
        let runs: Result<Vec<Vec<runs::Run>>, String> =
            mine.iter().map(|_| ran.by_ref().take(changes.seeds as usize).collect()).collect();
        let by = (&**name, weir_lab::Driver::Virtual);
        outcomes.push(outcome::outcome(by, (scenario, expected), &mine, &runs?, changes.seeds));
    }
    let unchanged = outcomes.remove(0);
    let mut outcomes = outcomes.into_iter();
    let mut with = Vec::new();
    for change in &changes.list {
        let ran = if change.edit.is_empty() { None } else { outcomes.next() };
        with.push((change, change.figures(&unchanged, ran.as_ref())?));
    }
    Ok((unchanged, with))
}

fn show(out: &mut Out, folder: &Path, tried: &[(String, Tried)], verbose: bool) {
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
    let fails = tried.iter().filter(|(_, tried)| tried.verdict == Verdict::Fails).count();
    out.line(&format!("{name}: {} claims, {fails} fail under a change", tried.len()));
    for (text, Tried { id, verdict, failures }) in tried {
        if *verdict != Verdict::Fails || verbose {
            out.line(&format!("  {id}: {}: {text}", word(*verdict)));
        }
        for Failure { change, past, margin } in failures {
            if verbose || *verdict == Verdict::OnlyLarge {
                out.line(&format!("    {change}: past by {past:.3}, margin {margin:.3}"));
            }
        }
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fails => "fail under a change",
        Verdict::Pending => "pending",
        Verdict::Differs => "known to differ",
        Verdict::OnlyLarge => "fail only under changes of more than twice their margin",
        Verdict::Survives => "hold under every change",
        Verdict::Wrong => "not as they say",
    }
}
