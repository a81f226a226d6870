//! What became of each mutant, kept in a file: a line is the verdict and the mutant's name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use super::draw::Mutant;
use crate::shell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A test failed, or did not end.
    Killed,
    /// It does not build.
    Void,
    /// No test noticed.
    Survived,
}

const WORDS: [(Verdict, &str); 3] =
    [(Verdict::Killed, "killed"), (Verdict::Void, "void"), (Verdict::Survived, "survived")];

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        WORDS.iter().find(|(verdict, _)| *verdict == self).map_or("", |(_, word)| word)
    }
}

pub(crate) struct Verdicts {
    path: PathBuf,
    known: BTreeMap<String, Verdict>,
}

impl Verdicts {
    pub(crate) fn open() -> Result<Verdicts, String> {
        let path = shell::root().join("xtask/mutants.txt");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Ok(Verdicts { path, known: text.lines().filter_map(line).collect() })
    }

    pub(crate) fn of(&self, mutant: &Mutant) -> Option<Verdict> {
        self.known.get(&mutant.name).copied()
    }

    /// Written at once: a run may be stopped at any time.
    pub(crate) fn add(&mut self, mutant: &Mutant, verdict: Verdict) -> Result<(), String> {
        let fault = |e: std::io::Error| format!("{}: {e}", self.path.display());
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.append(true).create(true).open(&self.path).map_err(fault)?;
        writeln!(file, "{} {}", verdict.word(), mutant.name).map_err(fault)?;
        self.known.insert(mutant.name.clone(), verdict);
        Ok(())
    }

    pub(crate) fn forget(&mut self, mutants: &[Mutant]) -> Result<(), String> {
        mutants.iter().for_each(|mutant| _ = self.known.remove(&mutant.name));
        let mut text = String::new();
        for (name, verdict) in &self.known {
            let _ = writeln!(text, "{} {name}", verdict.word());
        }
        std::fs::write(&self.path, text).map_err(|e| format!("{}: {e}", self.path.display()))
    }
}

fn line(line: &str) -> Option<(String, Verdict)> {
    let (word, name) = line.split_once(' ')?;
    let (verdict, _) = WORDS.iter().find(|(_, w)| *w == word)?;
    Some((name.to_owned(), *verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_and_half_a_line_is_none() {
        assert_eq!(line("void a.rs: `x`"), Some(("a.rs: `x`".to_owned(), Verdict::Void)));
        assert_eq!(line("surv"), None);
        assert_eq!(line("kill a.rs"), None);
    }
}
