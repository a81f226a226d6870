//! The revisions of a link's policy on disk, so that one can go back, and so that a restart comes
//! up with what was confirmed last: a folder per link, per revision the policy (`7.toml`), its
//! table (`7.csv`), the rows that hold in place of skipped ones (`7.held`) and what is told of it
//! (`7.json`), and `head`, the number of the one confirmed
//! last. Nothing about traffic depends on the disk: what cannot be written is said, and tried
//! again.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use weir_control::{About, RevisionState};
use weir_policy::Source;
use weir_units::limits;

use crate::files;
use crate::revision::{Revision, is_same};

/// Where the histories of all links are, unless the operator says otherwise.
pub const STATE: &str = "/var/lib/weir";

/// What the names of a revision's files end with: the policy, its table, and the rows that hold
/// because those of the table were skipped.
const ENDINGS: [&str; 3] = ["toml", "csv", "held"];

/// Bytes of what is told of a revision.
const ABOUT_BYTES: u64 = 1 << 20;

/// The history of one link.
#[derive(Debug)]
pub(crate) struct History {
    folder: PathBuf,
    told: BTreeMap<u64, About>,
    head: Option<u64>,
    /// Beyond every number that was ever given, also to what is damaged now.
    next: u64,
    damaged: Vec<String>,
    /// Why the disk does not have what it should.
    trouble: Option<String>,
    /// How many bytes the files of all revisions may have.
    most: u64,
    /// Revisions that made room, until somebody says so.
    pruned: Vec<u64>,
}

impl History {
    /// The history in `state`, as far as it can be read.
    pub(crate) fn open(state: &Path, link: &str) -> History {
        let mut history = History {
            folder: state.join(link),
            told: BTreeMap::new(),
            head: None,
            next: 1,
            damaged: Vec::new(),
            trouble: None,
            most: limits::HISTORY_BYTES,
            pruned: Vec::new(),
        };
        if let Err(why) = history.look() {
            history.trouble = Some(format!("{}: {why}", history.folder.display()));
        }
        history
    }

    /// Keeps a revision with what became of it. The head moves last, and only to a revision that
    /// is confirmed.
    pub(crate) fn keep(&mut self, revision: &Revision, fate: RevisionState) {
        let about = About { fate, ..revision.about.clone() };
        let number = about.number;
        let are_there = self.told.contains_key(&number) && self.lacks(&about).is_none();
        self.next = self.next.max(number + 1);
        self.told.insert(number, about);
        let written = self.write(number, (!are_there).then_some(&revision.sources));
        self.trouble = written.err().map(|why| format!("{}: {why}", self.folder.display()));
        self.prune();
    }

    /// Tries once more to write what could not be written: at least what a restart needs.
    pub(crate) fn again(&mut self, confirmed: &Revision) {
        if self.trouble.is_some() {
            self.keep(confirmed, RevisionState::Confirmed);
        }
    }

    /// A number that no revision has had.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The revision that was confirmed last, by what the disk says.
    pub(crate) fn head(&self) -> Option<u64> {
        self.head
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// All that is known, the oldest first.
    pub(crate) fn told(&self) -> impl DoubleEndedIterator<Item = &About> {
        self.told.values()
    }

    pub(crate) fn about(&self, number: u64) -> Option<&About> {
        self.told.get(&number)
    }

    /// Entries that were found and cannot be used, each with the reason.
    pub(crate) fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Why the disk does not have what it should; `None` if it has.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The files of a revision, if they are as they were.
    pub(crate) fn load(&self, number: u64) -> Result<Vec<Source>, String> {
        let about = self.told.get(&number).ok_or_else(|| format!("there is no {number}"))?;
        let bounds = [
            (ENDINGS[0], limits::POLICY_BYTES),
            (ENDINGS[1], limits::SUBSCRIBER_BYTES),
            (ENDINGS[2], limits::SUBSCRIBER_BYTES),
        ];
        let mut sources = Vec::new();
        for (kept, (ending, most)) in about.files.iter().zip(bounds) {
            let path = self.path(number, ending);
            let bytes =
                files::read_own(&path, most).map_err(|why| format!("{}: {why}", path.display()))?;
            if !is_same(kept, &bytes) {
                return Err(format!("{}: it has changed since it was written", path.display()));
            }
            sources.push(Source::new(kept.name.as_str(), bytes));
        }
        if sources.is_empty() { Err(format!("{number} has no policy")) } else { Ok(sources) }
    }

    fn path(&self, number: u64, ending: &str) -> PathBuf {
        self.folder.join(format!("{number}.{ending}"))
    }

    fn look(&mut self) -> std::io::Result<()> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        files::close_folder(&self.folder)?;
        let mut numbers = std::collections::BTreeSet::new();
        for entry in entries {
            let path = entry?.path();
            let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
            if ending.starts_with("weir-") {
                // half of a file that was being written when the power went
                let _ = std::fs::remove_file(&path);
            } else if let Some(number) = path.file_stem().and_then(|s| s.to_str()?.parse().ok()) {
                let number: u64 = number;
                self.next = self.next.max(number.saturating_add(1));
                numbers.insert(number);
            }
        }
        for number in numbers {
            match self.read(number) {
                Ok(about) => drop(self.told.insert(number, about)),
                Err(why) => self.damaged.push(why),
            }
        }
        self.find_head();
        Ok(())
    }

    /// Where the disk says nothing usable, the confirmed revision with the highest number it is.
    fn find_head(&mut self) {
        let path = self.folder.join("head");
        let said = files::read_own(&path, 64).ok();
        let said = said.and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse().ok());
        self.head = said.filter(|number| self.told.contains_key(number));
        if self.head.is_none() && !self.told.is_empty() {
            let confirmed =
                self.told.values().filter(|about| about.fate == RevisionState::Confirmed);
            self.head = confirmed.map(|about| about.number).next_back();
            self.damaged
                .push(format!("{}: it names a revision that does not exist", path.display()));
        }
    }

    fn read(&self, number: u64) -> Result<About, String> {
        let path = self.path(number, "json");
        let why = |why: &str| format!("{}: {why}", path.display());
        let bytes = files::read_own(&path, ABOUT_BYTES).map_err(|error| why(&error))?;
        let about: About =
            serde_json::from_slice(&bytes).map_err(|error| why(&error.to_string()))?;
        if about.number != number {
            return Err(why("it belongs to another revision"));
        }
        match self.lacks(&about) {
            Some(path) => Err(format!("{}: it has changed since it was written", path.display())),
            None => Ok(about),
        }
    }

    /// The file of a revision that is not there, or not whole.
    fn lacks(&self, about: &About) -> Option<PathBuf> {
        let files = about.files.iter().zip(ENDINGS);
        let mut files = files.map(|(kept, ending)| (kept, self.path(about.number, ending)));
        let whole = |path: &Path, bytes| std::fs::metadata(path).is_ok_and(|f| f.len() == bytes);
        files.find(|(kept, path)| !whole(path, kept.bytes)).map(|(_, path)| path)
    }

    /// The files first, what is told of them next: where that stands, all stands.
    fn write(&mut self, number: u64, sources: Option<&Vec<Source>>) -> Result<(), String> {
        let Some(about) = self.told.get(&number) else { return Ok(()) };
        let why = |error: &std::io::Error| files::why(error);
        files::own_folder(&self.folder).map_err(|e| why(&e))?;
        for (source, ending) in sources.into_iter().flatten().zip(ENDINGS) {
            files::replace_own(&self.path(number, ending), source.bytes()).map_err(|e| why(&e))?;
        }
        let text = serde_json::to_string_pretty(about).map_err(|e| e.to_string())? + "\n";
        files::replace_own(&self.path(number, "json"), text).map_err(|e| why(&e))?;
        let sync = || File::open(&self.folder)?.sync_all();
        sync().map_err(|e| why(&e))?;
        if about.fate == RevisionState::Confirmed {
            files::replace_own(&self.folder.join("head"), format!("{number}\n"))
                .map_err(|e| why(&e))?;
            sync().map_err(|e| why(&e))?;
            self.head = Some(number);
        }
        Ok(())
    }

    /// Lets go of the oldest: never of the head, nor of the one to go back to, nor of the newest.
    fn prune(&mut self) {
        let confirmed = self.told.values().filter(|about| about.fate == RevisionState::Confirmed);
        let before = confirmed.map(|about| about.number).rfind(|number| Some(*number) < self.head);
        let kept = [self.head, before, self.told.keys().next_back().copied()];
        let bytes = |about: &About| about.files.iter().map(|file| file.bytes).sum::<u64>();
        let mut all: u64 = self.told.values().map(bytes).sum();
        while self.told.len() > limits::REVISIONS || all > self.most {
            let oldest = self.told.keys().copied().find(|number| !kept.contains(&Some(*number)));
            let Some(oldest) = oldest else { return };
            all -= self.told.remove(&oldest).as_ref().map_or(0, bytes);
            self.pruned.push(oldest);
            // what is told of it goes first: without that, nobody takes the rest for whole
            for ending in ["json"].into_iter().chain(ENDINGS) {
                let _ = std::fs::remove_file(self.path(oldest, ending));
            }
        }
    }

    /// Which revisions have made room since this was asked last, in words.
    pub(crate) fn pruned(&mut self) -> Option<String> {
        let pruned = std::mem::take(&mut self.pruned);
        let (first, last) = (pruned.first()?, pruned.last()?);
        let which = match first == last {
            true => format!("revision {first} was"),
            false => format!("revisions {first} to {last} were"),
        };
        Some(format!(
            "{which} removed from the history, which keeps at most {} revisions and {}",
            limits::REVISIONS,
            weir_units::Bytes::new(self.most)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Folder, revision};

    #[test]
    fn what_was_kept_is_there_after_a_restart() {
        let folder = Folder::new("history-kept");
        let mut history = History::open(&folder.0, "l");
        history.keep(&revision(1, "10mbit"), RevisionState::Confirmed);
        history.keep(&revision(2, "20mbit"), RevisionState::Confirmed);
        history.keep(&revision(3, "30mbit"), RevisionState::Waiting);
        assert_eq!(history.trouble(), None);
        let after = History::open(&folder.0, "l");
        assert_eq!((after.head(), after.next(), after.damaged().len()), (Some(2), 4, 0));
        assert_eq!(after.about(3).unwrap().fate, RevisionState::Waiting);
        assert!(after.told().eq(history.told()));
        assert!(revision(2, "20mbit").is_same_text(&after.load(2).unwrap()));
    }

    #[test]
    fn what_is_damaged_is_named_and_the_rest_is_used() {
        let folder = Folder::new("history-damaged");
        let mut history = History::open(&folder.0, "l");
        for number in 1..=6 {
            history.keep(&revision(number, "10mbit"), RevisionState::Confirmed);
        }
        let write = |name: &str, text: &str| std::fs::write(folder.0.join("l").join(name), text);
        write("2.json", "{").unwrap();
        write("3.toml", "short").unwrap();
        write("6.json", "{\"number\": 6}").unwrap();
        write("9.weir-77", "half").unwrap();
        let same_length = "x".repeat(revision(4, "10mbit").sources[0].bytes().len());
        write("4.toml", &same_length).unwrap();
        let history = History::open(&folder.0, "l");
        let damaged = history.damaged().join("\n");
        for part in
            ["2.json: EOF", "3.toml: it has changed", "6.json: missing field `time`", "head"]
        {
            assert!(damaged.contains(part), "{part}: {damaged}");
        }
        assert_eq!((history.head(), history.next()), (Some(5), 7));
        assert!(
            history.load(4).unwrap_err().contains("4.toml: it has changed since it was written")
        );
        assert!(history.load(5).is_ok() && history.load(3).is_err());
        assert!(!folder.0.join("l/9.weir-77").exists());
    }

    #[test]
    fn a_disk_that_takes_nothing_is_said_and_tried_again() {
        let folder = Folder::new("history-full");
        let state = folder.0.join("state");
        // not even root makes a folder of a file
        std::fs::write(&state, "in the way").unwrap();
        let mut history = History::open(&state, "l");
        let first = revision(1, "10mbit");
        history.keep(&first, RevisionState::Confirmed);
        assert!(history.trouble().is_some());
        assert_eq!((history.head(), history.told().count()), (None, 1));
        std::fs::remove_file(&state).unwrap();
        history.again(&first);
        assert_eq!((history.trouble(), history.head()), (None, Some(1)));
        assert!(History::open(&state, "l").load(1).is_ok());
    }

    #[test]
    fn the_oldest_go_and_the_head_stays() {
        let folder = Folder::new("history-bound");
        let mut history = History::open(&folder.0, "l");
        history.keep(&revision(1, "10mbit"), RevisionState::Confirmed);
        let most = limits::REVISIONS as u64;
        for number in 2..=most + 3 {
            history.keep(&revision(number, "20mbit"), RevisionState::Undone);
        }
        let numbers: Vec<u64> = history.told().map(|about| about.number).collect();
        assert_eq!((numbers.len() as u64, numbers[0], numbers[1]), (most, 1, 5));
        assert_eq!(history.head(), Some(1));
        assert!(!folder.0.join("l/3.toml").exists() && folder.0.join("l/5.toml").exists());
        assert_eq!(History::open(&folder.0, "l").told().count() as u64, most);
    }

    #[test]
    fn the_bytes_have_a_bound_and_two_are_always_kept() {
        let folder = Folder::new("history-bytes");
        let mut history = History::open(&folder.0, "l");
        let one = revision(1, "10mbit").sources[0].bytes().len() as u64;
        history.most = 3 * one + 10;
        for number in 1..=6 {
            history.keep(&revision(number, "10mbit"), RevisionState::Confirmed);
        }
        let numbers =
            |history: &History| -> Vec<u64> { history.told().map(|about| about.number).collect() };
        assert_eq!(numbers(&history), [4, 5, 6]);
        assert!(!folder.0.join("l/3.toml").exists() && folder.0.join("l/4.toml").exists());
        let said = history.pruned().unwrap();
        assert!(said.contains("revisions 1 to 3 were removed"), "{said}");
        assert_eq!(history.pruned(), None);
        // where even two are too many, it is two, and the one that waits
        history.most = 1;
        history.keep(&revision(7, "10mbit"), RevisionState::Confirmed);
        assert_eq!(numbers(&history), [6, 7]);
        history.keep(&revision(8, "10mbit"), RevisionState::Waiting);
        assert_eq!((numbers(&history), history.head()), (vec![6, 7, 8], Some(7)));
        history.keep(&revision(8, "10mbit"), RevisionState::Undone);
        history.keep(&revision(9, "10mbit"), RevisionState::Waiting);
        assert_eq!((numbers(&history), history.head()), (vec![6, 7, 9], Some(7)));
    }

    #[test]
    fn what_is_kept_is_for_the_owner_and_the_group() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new("history-mode");
        let mut history = History::open(&folder.0, "l");
        history.keep(&revision(1, "10mbit"), RevisionState::Confirmed);
        let mode = |name: &str| {
            let about = std::fs::metadata(folder.0.join(name)).unwrap();
            about.permissions().mode() & 0o777
        };
        for name in ["l/1.toml", "l/1.json", "l/head"] {
            assert_eq!(mode(name) & !0o640, 0, "{name}");
        }
        assert_eq!(mode("l") & !0o750, 0);
        // as an earlier weir left it
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.0.join("l"), open).unwrap();
        assert_eq!(History::open(&folder.0, "l").head(), Some(1));
        assert_eq!(mode("l"), 0o750);
        // a pipe is nothing that weir wrote
        std::fs::remove_file(folder.0.join("l/head")).unwrap();
        let pipe = folder.0.join("l/head");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        assert_eq!(History::open(&folder.0, "l").head(), Some(1));
    }
}
