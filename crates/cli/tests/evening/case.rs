//! One case of the tables, as README.md beside them describes it.

use std::path::Path;

/// A mistake: what somebody wrote, and what weir says to it.
pub(crate) struct Case {
    pub(crate) table: String,
    pub(crate) title: String,
    pub(crate) changes: Vec<Change>,
    pub(crate) command: Vec<String>,
    status: i32,
    says: Vec<String>,
    says_not: Vec<String>,
    pub(crate) has_no_cure: bool,
    /// The exit status once the proposed cure is applied.
    pub(crate) cured: i32,
}

/// What somebody did to a file.
pub(crate) enum Change {
    Replace { file: String, old: String, new: String },
    Append { file: String, line: String },
    Empty { file: String },
}

impl Change {
    pub(crate) fn make(&self, folder: &Path) -> Result<(), String> {
        let (Change::Replace { file, .. } | Change::Append { file, .. } | Change::Empty { file }) =
            self;
        let path = folder.join(file);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let after = match self {
            Change::Replace { old, new, .. } if before.contains(old.as_str()) => {
                before.replacen(old, new, 1)
            }
            Change::Replace { old, .. } => return Err(format!("{file} does not contain {old:?}")),
            Change::Append { line, .. } => before + line + "\n",
            Change::Empty { .. } => String::new(),
        };
        std::fs::write(&path, after).map_err(|error| error.to_string())
    }
}

impl Case {
    /// Whether this is what weir is to do.
    pub(crate) fn judge(&self, status: i32, said: &str) -> Result<(), String> {
        let squeezed = said.split_whitespace().collect::<Vec<_>>().join(" ");
        if status != self.status {
            return Err(format!("the status is {status}, not {}:\n{said}", self.status));
        }
        if let Some(part) = self.says.iter().find(|part| !squeezed.contains(part.as_str())) {
            return Err(format!("this is not said: {part}\n{said}"));
        }
        if let Some(part) = self.says_not.iter().find(|part| squeezed.contains(part.as_str())) {
            return Err(format!("this is said: {part}\n{said}"));
        }
        if said.contains("panicked") || said.contains("a fault of weir") {
            return Err(format!("weir panics:\n{said}"));
        }
        Ok(())
    }
}

/// Reads a table.
pub(crate) fn read(text: &str, table: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let wrong = |why: &str| -> ! { panic!("{table}:{number}: {why}: {line}") };
        if let Some(title) = line.strip_prefix("== ") {
            cases.push(Case {
                table: format!("{table}:{number}"),
                title: title.to_owned(),
                changes: Vec::new(),
                command: vec!["check".to_owned(), "home.toml".to_owned()],
                status: 1,
                says: Vec::new(),
                says_not: Vec::new(),
                has_no_cure: false,
                cured: 0,
            });
            continue;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(case) = cases.last_mut() else { wrong("this belongs to no case") };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let squeezed = || rest.split_whitespace().collect::<Vec<_>>().join(" ");
        let status = || rest.parse().unwrap_or_else(|_| wrong("a status is a number"));
        match word {
            "$" => case.command = words(rest),
            "=" => case.status = status(),
            ">" => case.says.push(squeezed()),
            "!" => case.says_not.push(squeezed()),
            "cured" => case.cured = status(),
            "no-cure" => case.has_no_cure = true,
            "empty" => case.changes.push(Change::Empty { file: rest.to_owned() }),
            file if file.contains('.') => case.changes.push(change(file, rest)),
            _ => wrong("this is no line of a case"),
        }
    }
    cases
}

/// `FILE OLD -> NEW`, or `FILE + LINE`.
fn change(file: &str, rest: &str) -> Change {
    let file = file.to_owned();
    let plain = |text: &str| text.replace("\\t", "\t").replace("\\n", "\n");
    match (rest.strip_prefix('+'), rest.split_once(" -> ")) {
        (Some(line), _) => {
            Change::Append { file, line: plain(line.strip_prefix(' ').unwrap_or(line)) }
        }
        (None, Some((old, new))) => Change::Replace { file, old: plain(old), new: plain(new) },
        (None, None) => panic!("neither + LINE nor OLD -> NEW: {rest}"),
    }
}

/// The arguments of a command, some of them in single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (part, is_quoted) in line.split('\'').zip([false, true].into_iter().cycle()) {
        match is_quoted {
            true => words.push(part.to_owned()),
            false => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    let weir = (!words.is_empty()).then(|| words.remove(0));
    assert_eq!(weir.as_deref(), Some("weir"), "a command starts with weir: {line}");
    words
}
