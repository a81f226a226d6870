//! A revision: a policy that a link had, with who brought it, when, and what it changed.

use serde_json::{Value, json};
use weir_policy::{Plan, Reading, Source, Subscriber, diff};
use weir_units::limits;

use super::refused::Refused;
use crate::problems;

/// A policy in full.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) about: About,
    /// The policy, its table of subscribers if it has one, and the rows that hold because those of
    /// the table were skipped.
    pub(crate) sources: Vec<Source>,
    pub(crate) plan: Plan,
    pub(crate) rows: Rows,
}

/// What became of the rows of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) skipped: usize,
    /// How many of these keep their last good row.
    pub(crate) held: usize,
}

impl Rows {
    pub(crate) fn of(reading: &Reading) -> Rows {
        let table = reading.policy.subscribers.as_ref();
        let (skipped, held) =
            table.map_or((0, 0), |table| (table.skipped.count(), table.skipped.held()));
        Rows { skipped, held }
    }

    pub(crate) fn to_json(self) -> Value {
        json!({ "skipped": self.skipped, "held": self.held })
    }
}

/// The files that the operator wrote: what is held follows from them.
const WRITTEN: usize = 2;

/// What is told of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) number: u64,
    /// Seconds since 1970.
    pub(crate) time: u64,
    /// A user's name, or `start` or `SIGHUP`.
    pub(crate) author: String,
    pub(crate) how: How,
    pub(crate) comment: String,
    /// What changed, in the words of `weir diff`.
    pub(crate) changes: Vec<String>,
    pub(crate) fate: Fate,
    /// The files as they were.
    pub(crate) files: Vec<Kept>,
    /// The file that the link was started with, as it was when it was last read: a restart sees by
    /// it whether the file was edited.
    pub(crate) read: Vec<Kept>,
}

/// A file of a revision: enough to see whether it is still the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) check: u64,
}

/// How a revision came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// From the file, when the link was started.
    Start,
    /// From the file, when it was to be read again.
    Reload,
    Apply,
    Rollback,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// In effect until somebody confirms it or its time is over.
    Waiting,
    Confirmed,
    /// It was to be confirmed, and was not.
    Undone,
}

const HOWS: [(&str, How); 4] = [
    ("start", How::Start),
    ("reload", How::Reload),
    ("apply", How::Apply),
    ("rollback", How::Rollback),
];
const FATES: [(&str, Fate); 3] =
    [("waiting", Fate::Waiting), ("confirmed", Fate::Confirmed), ("undone", Fate::Undone)];

impl How {
    pub(crate) fn word(self) -> &'static str {
        word(&HOWS, self)
    }

    /// Whether it came from the file that the link was started with.
    pub(crate) fn is_of_file(self) -> bool {
        matches!(self, How::Start | How::Reload)
    }
}

impl Fate {
    pub(crate) fn word(self) -> &'static str {
        word(&FATES, self)
    }
}

fn word<T: PartialEq + Copy>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, v)| *v == value).map_or("", |(word, _)| word)
}

fn value<T: Copy>(words: &[(&'static str, T)], word: &str) -> Option<T> {
    words.iter().find(|(w, _)| *w == word).map(|(_, value)| *value)
}

/// Who brings a policy, and why.
#[derive(Clone, Debug)]
pub(crate) struct By {
    pub(crate) author: String,
    pub(crate) how: How,
    pub(crate) comment: String,
    /// Seconds since 1970.
    pub(crate) time: u64,
}

impl Revision {
    /// The policy that was read, for this link; `before` is what it changes.
    pub(crate) fn of(
        reading: Reading,
        link: &str,
        before: Option<&Plan>,
        by: By,
    ) -> Result<Revision, Refused> {
        let plan = plan_for(&reading, link)?;
        let changes = before.map_or_else(Vec::new, |before| changes(before, &plan));
        let files: Vec<Kept> = reading.sources.iter().map(Kept::of).collect();
        let about = About {
            number: 0,
            time: by.time,
            author: by.author,
            how: by.how,
            comment: by.comment,
            changes,
            fate: Fate::Confirmed,
            read: if by.how.is_of_file() { written(&files).to_vec() } else { Vec::new() },
            files,
        };
        let rows = Rows::of(&reading);
        Ok(Revision { about, sources: reading.sources, plan, rows })
    }

    /// Whether it was made of the same bytes.
    pub(crate) fn is_same_text(&self, sources: &[Source]) -> bool {
        let (mine, others) = (written(&self.sources), written(sources));
        mine.len() == others.len()
            && mine.iter().zip(others).all(|(mine, other)| mine.bytes() == other.bytes())
    }
}

/// The files among these that the operator wrote.
pub(crate) fn written<F>(files: &[F]) -> &[F] {
    &files[..files.len().min(WRITTEN)]
}

/// Reads a policy that came with its table, or without.
pub(crate) fn read(policy: Source, mut table: Option<Vec<u8>>) -> Result<Reading, Refused> {
    read_over(policy, &mut |wanted| Some(Source::new(wanted, table.take()?)), &[])
}

fn read_over(
    policy: Source,
    table: &mut dyn FnMut(&str) -> Option<Source>,
    before: &[Subscriber],
) -> Result<Reading, Refused> {
    let name = policy.name().to_owned();
    let missing = || "it did not come with the policy".to_owned();
    let mut load = |wanted: &str| table(wanted).ok_or_else(missing);
    weir_policy::read_over(policy, &mut load, before)
        .map_err(|at| Refused::content(format!("{name}: byte {at} is not UTF-8"), ""))
}

/// Reads a policy that was kept.
pub(crate) fn read_again(sources: Vec<Source>) -> Result<Reading, Refused> {
    let held = sources.get(WRITTEN).map_or_else(Vec::new, weir_policy::held_rows);
    over(sources, &held)
}

fn over(sources: Vec<Source>, before: &[Subscriber]) -> Result<Reading, Refused> {
    let mut sources = sources.into_iter();
    let policy = sources.next().unwrap_or_else(|| Source::new("policy", Vec::new()));
    read_over(policy, &mut |_| sources.next(), before)
}

/// Lets the rows of the policy that was in effect hold where rows of `reading` were skipped.
pub(crate) fn hold(reading: Reading, before: &[Source]) -> Result<Reading, Refused> {
    if Rows::of(&reading).skipped == 0 || before.is_empty() {
        return Ok(reading);
    }
    let rows = read_again(before.to_vec())?.policy.subscribers.map(|table| table.rows);
    let Some(rows) = rows else { return Ok(reading) };
    over(reading.sources, &rows)
}

/// The plan of one link, or everything that is wrong with the policy.
fn plan_for(reading: &Reading, link: &str) -> Result<Plan, Refused> {
    let name = reading.sources.first().map_or("", Source::name);
    if reading.plans.is_empty() {
        let what = format!("{name} has errors; nothing was changed");
        return Err(Refused::policy(what, reading, problems::text(reading, false)));
    }
    reading.plans.iter().find(|plan| plan.name == link).cloned().ok_or_else(|| {
        let names: Vec<&str> = reading.plans.iter().map(|plan| plan.name.as_str()).collect();
        let what = format!("{name} says nothing of the link \"{link}\"; nothing was changed");
        Refused::content(what, format!("it has [link.{}]", names.join("], [link.")))
    })
}

/// Differences line by line, the first so many of them.
pub(crate) fn changes(before: &Plan, after: &Plan) -> Vec<String> {
    let all = diff(std::slice::from_ref(before), std::slice::from_ref(after));
    let line = |change: &weir_policy::Change| {
        format!("{} {}  {}", change.mark, change.subject, change.words)
    };
    let mut lines: Vec<String> = all.iter().take(limits::CHANGES_SHOWN).map(line).collect();
    if all.len() > lines.len() {
        lines.push(format!("... and {} more changes", all.len() - lines.len()));
    }
    lines
}

impl Kept {
    /// Whether files still are what they were.
    pub(crate) fn are(kept: &[Kept], sources: &[Source]) -> bool {
        let sources = written(sources);
        kept.len() == sources.len() && kept.iter().zip(sources).all(|(k, s)| k.is(s.bytes()))
    }

    pub(crate) fn of(source: &Source) -> Kept {
        let bytes = source.bytes();
        Kept { name: source.name().to_owned(), bytes: bytes.len() as u64, check: check(bytes) }
    }

    /// Whether a file still is what it was, whatever its name.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        self.bytes == bytes.len() as u64 && self.check == check(bytes)
    }
}

/// FNV-1a, 64 bits: finds what a disk did, not what an enemy would do.
fn check(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &b| (sum ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

impl About {
    /// As it is told to programs and written to disk.
    pub(crate) fn to_json(&self) -> Value {
        let files = |files: &[Kept]| files.iter().map(Kept::to_json).collect::<Vec<_>>();
        json!({
            "number": self.number,
            "time": self.time,
            "author": self.author,
            "how": self.how.word(),
            "comment": self.comment,
            "changes": self.changes,
            "fate": self.fate.word(),
            "files": files(&self.files),
            "read": files(&self.read),
        })
    }

    /// From what was written to disk; says which word is missing or wrong.
    pub(crate) fn from_json(value: &Value) -> Result<About, &'static str> {
        let number = |key| value.get(key).and_then(Value::as_u64).ok_or(key);
        let text = |key| value.get(key).and_then(Value::as_str).ok_or(key);
        let list = |key| value.get(key).and_then(Value::as_array).ok_or(key);
        let files = |key| {
            let files: Option<Vec<Kept>> = list(key)?.iter().map(Kept::from_json).collect();
            files.ok_or(key)
        };
        Ok(About {
            number: number("number")?,
            time: number("time")?,
            author: text("author")?.to_owned(),
            how: self::value(&HOWS, text("how")?).ok_or("how")?,
            comment: text("comment")?.to_owned(),
            changes: list("changes")?.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            fate: self::value(&FATES, text("fate")?).ok_or("fate")?,
            files: files("files")?,
            read: files("read")?,
        })
    }
}

impl Kept {
    fn to_json(&self) -> Value {
        json!({ "name": self.name, "bytes": self.bytes, "check": format!("{:016x}", self.check) })
    }

    fn from_json(value: &Value) -> Option<Kept> {
        Some(Kept {
            name: value.get("name")?.as_str()?.to_owned(),
            bytes: value.get("bytes")?.as_u64()?,
            check: u64::from_str_radix(value.get("check")?.as_str()?, 16).ok()?,
        })
    }
}
