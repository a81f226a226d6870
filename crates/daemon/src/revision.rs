//! A revision: a policy that a link had, with who brought it, when, and what it changed.

use weir_control::{About, How, Kept, Refused, RevisionState, Subscribers};
use weir_policy::{Plan, Reading, Source, Subscriber, diff};
use weir_units::limits;

use weir_control::shown;

/// A policy in full.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) about: About,
    /// The policy, its table of subscribers if it has one, and the rows that hold because those of
    /// the table were skipped.
    pub(crate) sources: Vec<Source>,
    pub(crate) plan: Plan,
    pub(crate) rows: Subscribers,
}

/// What became of the rows of the table.
pub(crate) fn rows_of(reading: &Reading) -> Subscribers {
    let skipped = reading.policy.subscribers.as_ref().map(|table| &table.skipped);
    skipped.map_or_else(Subscribers::default, |skipped| Subscribers {
        skipped: skipped.count(),
        held: skipped.held(),
    })
}

/// The files that the operator wrote: what is held follows from them.
const WRITTEN: usize = 2;

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
        let files: Vec<Kept> = reading.sources.iter().map(kept).collect();
        let about = About {
            number: 0,
            time: by.time,
            author: by.author,
            how: by.how,
            comment: by.comment,
            changes,
            fate: RevisionState::Confirmed,
            read: if by.how.is_of_file() { written(&files).to_vec() } else { Vec::new() },
            files,
        };
        let rows = rows_of(&reading);
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
    if rows_of(&reading).skipped == 0 || before.is_empty() {
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
        return Err(Refused::policy(what, reading, shown::text(reading, false)));
    }
    reading.plans.iter().find(|plan| plan.name == link).cloned().ok_or_else(|| {
        let names: Vec<&str> = reading.plans.iter().map(|plan| plan.name.as_str()).collect();
        let what = format!("{name} has no link \"{link}\"; nothing was changed");
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

/// Whether files still are what they were.
pub(crate) fn are_same(kept: &[Kept], sources: &[Source]) -> bool {
    let sources = written(sources);
    kept.len() == sources.len() && kept.iter().zip(sources).all(|(k, s)| is_same(k, s.bytes()))
}

/// A file as it is now.
pub(crate) fn kept(source: &Source) -> Kept {
    let bytes = source.bytes();
    Kept { name: source.name().to_owned(), bytes: bytes.len() as u64, check: check(bytes) }
}

/// Whether a file still is what it was, whatever its name.
pub(crate) fn is_same(kept: &Kept, bytes: &[u8]) -> bool {
    kept.bytes == bytes.len() as u64 && kept.check == check(bytes)
}

/// FNV-1a, 64 bits: finds what a disk did, not what an enemy would do.
pub(crate) fn check(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &b| (sum ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}
