//! Two runs side by side: what changed by more than the runs of one differ among themselves.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_lab::{Comparison, Figures, Grid, Outcome};

use crate::out::{Out, problem};
use weir_daemon::files;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A result (written by --json), or a result and a profile of it: FILE@PROFILE
    before: String,
    /// Another
    after: String,
}

/// Bytes of a result at most.
const MOST: u64 = 256 << 20;

pub(super) fn run(args: &Args) -> ExitCode {
    let (before, after) = match (side(&args.before), side(&args.after)) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(why), _) | (_, Err(why)) => return problem(&why),
    };
    let mut out = Out::new();
    let comparison = Comparison::of(&before, &after);
    let grid = Grid::differences(&comparison, &args.before, &args.after);
    grid.lines().iter().for_each(|line| out.line(line));
    let (beyond, all) = (comparison.beyond(), comparison.differences.len());
    out.line("");
    out.line(&format!("{beyond} of {all} figures differ by more than runs of one differ"));
    out.end()
}

fn side(words: &str) -> Result<Figures, String> {
    let (file, profile) = match words.rsplit_once('@') {
        Some((file, profile)) => (file, Some(profile)),
        None => (words, None),
    };
    let path = PathBuf::from(file);
    let outcomes = read(&path).map_err(|why| format!("{file}: {why}"))?;
    let [outcome] = &outcomes[..] else {
        return Err(format!("{file}: it holds {} experiments; compare one", outcomes.len()));
    };
    let profile = profile.unwrap_or(&outcome.profile);
    let known: Vec<&str> = outcome.each_profile().map(|(name, _)| name).collect();
    let figures = outcome.figures(profile).cloned();
    figures
        .ok_or(format!("{file}: there is no profile \"{profile}\"; there are {}", known.join(", ")))
}

pub(super) fn read(path: &Path) -> Result<Vec<Outcome>, String> {
    let bytes = files::read(path, MOST)?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    weir_lab::read(&text).map_err(|why| format!("it is no result that --json has written: {why}"))
}
