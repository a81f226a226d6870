//! A scripted evening: the mistakes that people make, one after the other, through the binary. The
//! cases are data ([evening/](evening/README.md)): what somebody wrote, what weir says, the exit
//! status. A cure that weir proposes is applied, and must then work.

#[path = "evening/case.rs"]
mod case;
#[path = "evening/cure.rs"]
mod cure;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use case::Case;

/// As many cases as an evening has at least, and cures that are edits.
const LEAST: usize = 150;
const CURES: usize = 90;

#[test]
fn every_mistake_is_said_and_every_cure_works() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/evening");
    let mut cases = Vec::new();
    let mut tables: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder of the cases")
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    tables.sort();
    for table in &tables {
        let text = std::fs::read_to_string(table).expect("a table of cases");
        cases.extend(case::read(&text, table.file_name().expect("a name").to_str().expect("text")));
    }
    assert!(cases.len() >= LEAST, "{} cases, and an evening has {LEAST}", cases.len());
    let only = chosen();
    let chosen = cases.iter().filter(|case| only.as_ref().is_none_or(|o| case.title.contains(o)));
    let (mut wrong, mut cured) = (Vec::new(), 0);
    for (number, case) in chosen.enumerate() {
        match run(case, number, &folder, only.is_some()) {
            Ok(cures) => cured += cures,
            Err(why) => wrong.push(format!("{}, \"{}\":\n{why}", case.table, case.title)),
        }
    }
    assert!(wrong.is_empty(), "{} cases differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    say(&format!("{} cases, {cured} cures applied", cases.len()));
    assert!(only.is_some() || cured >= CURES, "only {cured} cures were applied");
}

/// A part of the titles that are asked for, if any.
#[expect(clippy::disallowed_methods, reason = "whoever works on a case chooses it so")]
fn chosen() -> Option<String> {
    std::env::var("EVENING").ok()
}

#[expect(clippy::print_stdout, reason = "shown by --nocapture")]
fn say(text: &str) {
    println!("{text}");
}

/// Runs one case; returns how many cures were applied.
fn run(case: &Case, number: usize, base: &Path, shows: bool) -> Result<usize, String> {
    let folder = Folder::new(number, base);
    for change in &case.changes {
        change.make(&folder.0)?;
    }
    let (status, said) = folder.weir(&case.command);
    if shows {
        say(&format!("== {}\n$ weir {}\n{said}= {status}\n", case.title, case.command.join(" ")));
    }
    case.judge(status, &said)?;
    if case.has_no_cure {
        return Ok(0);
    }
    let blocks = cure::blocks(&said);
    let applied = cure::apply(&blocks, &folder.0)?;
    if applied.is_empty() {
        return Ok(0);
    }
    let (after, still) = folder.weir(&case.command);
    if shows {
        say(&format!("cured:\n{still}= {after}\n"));
    }
    for title in &applied {
        if cure::blocks(&still).iter().any(|block| block.title == *title) {
            return Err(format!("the cure was applied, and it is refused as before:\n{still}"));
        }
    }
    match case.cured {
        expected if expected == after => Ok(applied.len()),
        expected => Err(format!("with the cure the status is {after}, not {expected}:\n{still}")),
    }
}

/// A folder with the files that every case starts from, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(number: usize, base: &Path) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("evening-{number}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the case");
        for file in std::fs::read_dir(base).expect("the files of the cases") {
            let file = file.expect("a file").path();
            if file.extension().is_some_and(|ending| ending == "toml" || ending == "csv") {
                let name = file.file_name().expect("a name");
                std::fs::copy(&file, path.join(name)).expect("a copy");
            }
        }
        Folder(path)
    }

    /// Exit status, and standard error followed by standard output.
    fn weir(&self, arguments: &[String]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(arguments)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .expect("weir runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stderr) + &text(&output.stdout);
        (output.status.code().unwrap_or(-1), said)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
