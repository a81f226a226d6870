//! `cargo x tidy`: the rules of the house that neither the compiler nor clippy knows. Each check is
//! a file; it gets the text of the whole project and gives back what is wrong, with the place and
//! the cure. Checks touch no file system, so their tests are a few lines of text.

mod dead;
mod edges;
mod files;
mod limits;
mod links;
mod map;
mod markdown;
mod orphans;
mod paths;
mod readme;
pub(crate) mod rust;
mod sizes;
mod specification;
mod unfinished;
mod unsafety;
mod words;

use std::fmt;

pub(crate) use files::Files;

use crate::{Done, shell};

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    path: String,
    /// Counted from 1; 0 where the file as a whole is meant.
    line: usize,
    what: String,
}

impl Problem {
    fn at(path: &str, line: usize, what: impl Into<String>) -> Problem {
        Problem { path: path.to_owned(), line, what: what.into() }
    }

    fn of(path: &str, what: impl Into<String>) -> Problem {
        Problem::at(path, 0, what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

const CHECKS: [fn(&Files) -> Vec<Problem>; 13] = [
    edges::check,
    sizes::check,
    readme::check,
    unsafety::check,
    unfinished::check,
    paths::check,
    limits::check,
    links::check,
    map::check,
    specification::check,
    orphans::check,
    dead::check,
    words::check,
];

pub(crate) fn run(arguments: &[String]) -> Done {
    match arguments {
        [] => {}
        [option] if option == "--fix-limits" => return fix_limits(),
        [option] if option == "--fix-lab" => return lab_tables(true),
        [other, ..] => {
            return Err(format!("no option \"{other}\", there are --fix-limits and --fix-lab"));
        }
    }
    let problems = problems()?;
    for problem in &problems {
        eprintln!("{problem}");
    }
    let is_told = lab_tables(false)?;
    match problems.len() + usize::from(!is_told) {
        0 => println!("tidy"),
        n => eprintln!("{n} to put right"),
    }
    Ok(problems.is_empty() && is_told)
}

/// Everything that is wrong, in the order of files.
pub(crate) fn problems() -> Result<Vec<Problem>, String> {
    let files = Files::read(shell::root())?;
    let mut problems: Vec<Problem> = CHECKS.iter().flat_map(|check| check(&files)).collect();
    problems.sort();
    Ok(problems)
}

/// Only the laboratory itself knows its words, so one of its tests compares docs/lab.md with them,
/// or writes them there.
fn lab_tables(write: bool) -> Done {
    let test = ["test", "--quiet", "--package", "weir-lab", "--test", "docs", "the_tables"];
    let mut test = shell::program("cargo", &test);
    if write {
        return shell::show(test.env("WEIR_WRITE_LAB_TABLES", "1"));
    }
    let output = shell::keep(&mut test)?;
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    }
    Ok(output.status.success())
}

fn fix_limits() -> Done {
    let files = Files::read(shell::root())?;
    let text = limits::fixed(&files);
    std::fs::write(shell::root().join(limits::TABLE), text)
        .map_err(|e| format!("cannot write {}: {e}", limits::TABLE))?;
    println!("{} written; say there what happens at each new bound", limits::TABLE);
    Ok(true)
}
