//! Results as one page of HTML.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_lab::{Block, Expected, Grid, Outcome, Report, Section, library, outcome};

use super::{Named, compare};
use crate::out::{problem, say};
use weir_daemon::files;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Results that --json has written
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// The page
    #[arg(short, long, default_value = "report.html")]
    out: PathBuf,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let mut outcomes = Vec::new();
    for path in &args.results {
        match compare::read(path) {
            Ok(read) => outcomes.extend(read),
            Err(why) => return problem(&format!("{}: {why}", path.display())),
        }
    }
    let carried: Vec<Expected> = outcomes.iter().map(carried).collect();
    let carried: Vec<(&str, &Expected)> = carried.iter().map(|expected| ("", expected)).collect();
    match files::write(&args.out, &page(("Results", &[]), &outcomes, &carried)) {
        Ok(()) => {
            say(&format!("the report is {}", args.out.display()));
            ExitCode::SUCCESS
        }
        Err(why) => problem(&why),
    }
}

/// What is expected of an experiment that the binary carries; nothing of others.
fn carried(outcome: &Outcome) -> Expected {
    let found = library::EXPERIMENTS.iter().find(|e| e.name == outcome.experiment);
    let expected = found.and_then(|e| Expected::read(e.expected).ok());
    expected.unwrap_or_default()
}

/// Writes the page of a run into a folder.
pub(super) fn into(
    folder: &Path,
    (name, opening): (&str, &[(String, Grid)]),
    outcomes: &[Outcome],
    found: &[Named],
) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("{}: {}", folder.display(), files::why_not_written(&error)))?;
    let name = Path::new(name).file_name().map_or_else(|| "run".into(), |n| n.to_string_lossy());
    let path = folder.join(format!("{name}.html"));
    let said = found.iter().map(|named| (named.scenario.about.as_str(), &named.expected));
    files::write(&path, &page((&name, opening), outcomes, &said.collect::<Vec<_>>()))?;
    say(&format!("the report is {}", path.display()));
    Ok(())
}

fn page(
    (title, opening): (&str, &[(String, Grid)]),
    outcomes: &[Outcome],
    said: &[(&str, &Expected)],
) -> String {
    let blocks = opening.iter().map(|(title, grid)| Block::Table(title.clone(), grid.clone()));
    let first = (!opening.is_empty()).then(|| Section {
        id: "systems".to_owned(),
        title: "The systems".to_owned(),
        blocks: blocks.collect(),
    });
    let sections = outcomes.iter().zip(said).map(|(one, (text, expected))| {
        Section::of(one, &outcome::drawn(one, expected), &one.experiment, text)
    });
    let text = "Means over seeds in virtual time; whiskers are deviations among seeds.";
    Report {
        title: title.to_owned(),
        text: text.to_owned(),
        sections: first.into_iter().chain(sections).collect(),
    }
    .html()
}
