//! Results as one page of HTML.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_lab::{Outcome, Report, Section, outcome};

use super::compare;
use crate::files;
use crate::out::{problem, say};

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
    match files::write(&args.out, &page("Results", &outcomes, &[])) {
        Ok(()) => {
            say(&format!("the report is {}", args.out.display()));
            ExitCode::SUCCESS
        }
        Err(why) => problem(&why),
    }
}

/// Writes the page of a run into a folder.
pub(crate) fn into(
    folder: &Path,
    name: &str,
    outcomes: &[Outcome],
    texts: &[String],
) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("{}: {}", folder.display(), files::why(&error)))?;
    let name = Path::new(name).file_name().map_or_else(|| "run".into(), |n| n.to_string_lossy());
    let path = folder.join(format!("{name}.html"));
    files::write(&path, &page(&name, outcomes, texts))?;
    say(&format!("the report is {}", path.display()));
    Ok(())
}

fn page(title: &str, outcomes: &[Outcome], texts: &[String]) -> String {
    let sections = outcomes.iter().enumerate().map(|(at, one)| {
        let text = texts.get(at).map_or("", String::as_str);
        Section::of(one, &outcome::drawn(one), &one.experiment, text)
    });
    let text = "Means over seeds in virtual time; whiskers are deviations among seeds.";
    Report { title: title.to_owned(), text: text.to_owned(), sections: sections.collect() }.html()
}
