//! The text of the project: every file that git tracks or would track.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::shell;

/// Path from the root, with `/`, to text. A file that is not text has none.
#[derive(Default)]
pub(crate) struct Files {
    texts: BTreeMap<String, Option<String>>,
}

impl Files {
    pub(crate) fn read(root: &Path) -> Result<Files, String> {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let output = shell::keep(shell::program("git", &list).current_dir(root))?;
        if !output.status.success() {
            return Err("git cannot list the files: tidy runs in a clone".to_owned());
        }
        let mut files = Files::default();
        for path in String::from_utf8_lossy(&output.stdout).split_terminator('\0') {
            // one that was removed but not yet committed is still listed
            if let Ok(bytes) = std::fs::read(root.join(path)) {
                files.texts.insert(path.to_owned(), String::from_utf8(bytes).ok());
            }
        }
        Ok(files)
    }

    #[cfg(test)]
    pub(crate) fn of(texts: &[(&str, &str)]) -> Files {
        let texts = texts.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())));
        Files { texts: texts.collect() }
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path)?.as_deref()
    }

    /// Whether there is such a file or directory.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        path.is_empty()
            || self.texts.contains_key(path)
            || self
                .texts
                .range(inside.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&inside))
    }

    /// Every text file.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Every text file whose name ends in one of these.
    pub(crate) fn ending<'f>(
        &'f self,
        ends: &'f [&str],
    ) -> impl Iterator<Item = (&'f str, &'f str)> {
        self.all().filter(|(path, _)| ends.iter().any(|end| path.ends_with(end)))
    }

    /// Names of the directories in `crates/`.
    pub(crate) fn crates(&self) -> BTreeSet<&str> {
        let inside = self.texts.keys().filter_map(|path| path.strip_prefix("crates/"));
        inside.filter_map(|path| path.split_once('/')).map(|(name, _)| name).collect()
    }

    /// The file that a crate starts with: its `lib.rs`, or else its `main.rs`.
    pub(crate) fn crate_root(&self, name: &str) -> Option<(String, &str)> {
        ["lib.rs", "main.rs"].iter().find_map(|file| {
            let path = format!("crates/{name}/src/{file}");
            let text = self.text(&path)?;
            Some((path, text))
        })
    }
}
