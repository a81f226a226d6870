//! Control of a running link: which policy it has and who changed it, what it answers to those who
//! ask. It owns control's end of the packet thread; one request is dealt with after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_control::{
    Answer, Applied, Compared, Confirmed, How, Kept, Mode, Moved, Observed, Problem, Refused,
    Request, RevisionState, Stored, Subscribers,
};
use weir_engine::Snapshot;
use weir_policy::{Plan, Source};
use weir_units::{Instant, Span};

use crate::answers;
use crate::begin::Begin;
use crate::board::Told;
use crate::change::{Changes, Step};
#[cfg(test)]
use crate::desk::Text;
use crate::desk::{Prepared, Read};
use crate::facts::Facts;
use crate::history::History;
use crate::link::Link;
use crate::log::say;
use crate::revision::{By, Revision, changes};
use crate::trouble::Trouble;

/// A link and everything that is known about its policy.
pub(crate) struct Control {
    link: Link,
    changes: Changes,
    history: History,
    /// What the link was started with, and is read again on SIGHUP; none where all stood on the
    /// command line.
    file: Option<PathBuf>,
    started: Instant,
    /// The file as it was last read.
    read: Vec<Kept>,
    /// Why the file was not taken when it was last read again.
    not_taken: Option<String>,
    /// What the watcher of the link has found.
    troubles: Vec<Trouble>,
    /// When the disk is tried again.
    again_at: Instant,
}

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) name: &'a str,
    pub(crate) now: Instant,
    /// Seconds since 1970.
    pub(crate) of_day: u64,
}

impl Asker<'_> {
    /// The same for the history.
    pub(crate) fn by(self, how: How) -> By {
        By { author: self.name.to_owned(), how, comment: String::new(), time: self.of_day }
    }
}

/// A way back: it was gone, or these files have to be read first.
pub(crate) enum Back {
    Done(Moved),
    To(Vec<Source>, By),
}

/// What is to be done when the answer is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Nothing,
    Stop,
}

/// What stands for the file where the policy is made of the command line.
pub(crate) const COMMAND_LINE: &str = "the command line";

/// How often a disk that took nothing is tried again.
const AGAIN: Span = Span::from_secs(60);

impl Control {
    /// Control of a link that was started with the plan of `begin`.
    pub(crate) fn new(
        link: Link,
        begin: Begin,
        mut history: History,
        file: &Path,
        now: Instant,
    ) -> Control {
        let first = Arc::new(begin.revision);
        if begin.is_new {
            history.keep(&first, RevisionState::Confirmed);
        }
        let read = first.about.read.clone();
        begin.remarks.iter().for_each(|remark| say(&format!("weir: {remark}")));
        Control {
            link,
            changes: Changes::new(first),
            history,
            file: (file != Path::new(COMMAND_LINE)).then(|| file.to_owned()),
            read,
            started: now,
            not_taken: None,
            troubles: Vec::new(),
            again_at: now + AGAIN,
        }
    }

    /// Reads the file again, here and now.
    #[cfg(test)]
    pub(crate) fn reload(&mut self, now: Instant, of_day: u64) {
        let asker = Asker { name: "SIGHUP", now, of_day };
        let Some(file) = self.file_to_read() else { return };
        let text = Text::File(file);
        let read = text.read(asker.by(How::Reload), self.told().before());
        self.reloaded(read, asker);
    }

    /// What needs neither a text nor what the packet thread counts by class.
    pub(crate) fn simple(&mut self, asked: &Request, asker: Asker<'_>) -> Result<Answer, Refused> {
        match asked {
            Request::Confirm => {
                let steps = self.changes.confirm()?;
                self.keep(steps);
                let revision = self.changes.current().about.revision();
                Ok(Answer::Confirmed(Confirmed { revision }))
            }
            Request::History => Ok(Answer::History(self.all_revisions())),
            Request::Observe { on } => {
                self.link.observe(*on).map_err(|why| crate::board::stuck(&why))?;
                let does = if *on { "is observing" } else { "is shaping" };
                say(&format!("weir: the link {does}, as requested by {}", asker.name));
                Ok(Answer::Observed(Observed { mode: Mode::of(self.link.is_observing()) }))
            }
            Request::Status
            | Request::Tree { .. }
            | Request::Books
            | Request::Metrics
            | Request::Apply(_)
            | Request::Rollback { .. }
            | Request::Stop => Err(Refused::cannot("this is asked elsewhere", "")),
        }
    }

    /// The file that SIGHUP reads again; without one that is said.
    pub(crate) fn file_to_read(&self) -> Option<PathBuf> {
        if self.file.is_none() {
            say("weir: the link was started without a policy file; SIGHUP changes nothing");
        }
        self.file.clone()
    }

    /// Takes the file as it was read again, as SIGHUP asked.
    pub(crate) fn reloaded(&mut self, read: Result<Read, Refused>, asker: Asker<'_>) {
        let taken = match read {
            Ok(Read::File(kept, prepared)) => {
                self.read = kept.unwrap_or_else(|| std::mem::take(&mut self.read));
                prepared.and_then(|prepared| self.put(*prepared, asker)).map(drop)
            }
            Ok(_) => Ok(()),
            Err(refused) => Err(refused),
        };
        self.not_taken = taken.err().map(|refused| refused.to_string());
        if let Some(why) = &self.not_taken {
            say(&format!("weir: the policy stays as it is: {why}"));
        }
    }

    /// What time alone brings about: going back, and trying the disk again.
    pub(crate) fn step(&mut self, now: Instant) {
        let waited = self.changes.current().about.number;
        let link = &mut self.link;
        match self.changes.expire(now, &mut |plan| link.change_to(plan.clone())) {
            Ok(steps) if steps.is_empty() => {}
            Ok(steps) => {
                self.keep(steps);
                let number = self.changes.current().about.number;
                say(&format!(
                    "weir: nobody confirmed revision {waited}: revision {number} is back"
                ));
            }
            Err(why) => say(&format!("weir: revision {waited} cannot be taken back yet: {why}")),
        }
        if now >= self.again_at {
            self.again_at = now + AGAIN;
            self.history.again(self.changes.confirmed());
        }
    }

    /// What is wrong with the link by the word of who watches it; replaces what was said before.
    pub(crate) fn set_troubles(&mut self, troubles: Vec<Trouble>) {
        self.troubles = troubles;
    }

    /// The link, for who watches its interfaces.
    pub(crate) fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// What is known without asking the packet thread.
    pub(crate) fn told(&self) -> Told {
        Told {
            revision: self.changes.current().clone(),
            confirmed: self.changes.confirmed().clone(),
            is_observing: self.link.is_observing(),
            way: self.link.way(),
            bypass: self.link.bypass().map(str::to_owned),
            file: match &self.file {
                Some(file) => file.display().to_string(),
                None => COMMAND_LINE.to_owned(),
            },
            started: self.started,
            waits: self.waits(),
            history: Stored {
                folder: self.history.folder().display().to_string(),
                kept: self.history.told().count(),
            },
            troubles: self.troubles(),
            is_alive: self.link.is_alive(),
            found: self.link.found(),
            round_trips: self.link.round_trips(),
            passed: self.link.passed(),
            taken_over: self.link.taken_over().clone(),
            terms: self.link.terms(),
        }
    }

    /// Notes what the link has found of its line, and how long ways take.
    pub(crate) fn has_found(&mut self, totals: &Snapshot) {
        self.link.has_found(totals);
    }

    /// What the packet thread tells of itself, for who asks without holding control.
    pub(crate) fn facts(&self) -> Arc<Facts> {
        self.link.facts().clone()
    }

    /// Gives the link back, to be stopped.
    pub(crate) fn end(self) -> Link {
        self.link
    }

    /// Until when what is in effect must be confirmed, and what comes back otherwise.
    fn waits(&self) -> Option<(Instant, u64)> {
        self.changes.waits_until().map(|at| (at, self.changes.confirmed().about.number))
    }

    /// All revisions that are known.
    fn all_revisions(&self) -> weir_control::History {
        weir_control::History {
            current: self.changes.current().about.number,
            confirmed: self.changes.confirmed().about.number,
            folder: self.history.folder().display().to_string(),
            revisions: self.history.told().cloned().collect(),
            damaged: self.history.damaged().to_vec(),
            trouble: self.history.trouble().map(str::to_owned),
        }
    }

    /// What is wrong, but for what the packet thread says.
    fn troubles(&self) -> Vec<Trouble> {
        let mut troubles = self.troubles.clone();
        let history = self.history.folder().display();
        troubles.extend(self.history.trouble().map(|why| {
            let cure = format!("make room in {history}; weir tries again each minute");
            Trouble::new(format!("history could not be written: {why}"), cure)
        }));
        let cure = format!("move it out of {history}, or restore it");
        let damaged = self.history.damaged().iter();
        troubles
            .extend(damaged.map(|what| Trouble::new(format!("history: {what}"), cure.as_str())));
        let file = self.file.as_deref().unwrap_or(Path::new(COMMAND_LINE)).display();
        troubles.extend(self.not_taken.iter().map(|why| {
            let cure = format!("correct {file} and send SIGHUP, or apply another policy");
            Trouble::new(format!("{file} was not taken: {why}"), cure)
        }));
        let current = self.changes.current();
        if current.rows.skipped > 0 {
            let (number, Subscribers { skipped, held }) = (current.about.number, current.rows);
            let what = format!(
                "{skipped} subscribers of revision {number} were skipped, of which {held} keep \
                 their last good row"
            );
            let cure = "correct the rows that `weir check POLICY` names, and apply it again";
            troubles.push(Trouble::new(what, cure));
        }
        troubles
    }

    /// Puts a policy that was read into effect, or says what it would change.
    pub(crate) fn put(&mut self, prepared: Prepared, asker: Asker<'_>) -> Result<Answer, Refused> {
        let (dry, confirm) = (prepared.dry, prepared.confirm);
        let (revision, problems) = self.numbered(prepared);
        let changes = revision.about.changes.clone();
        let subscribers = revision.rows;
        if dry {
            self.changes.may(&revision.plan, asker.now, confirm)?;
            return Ok(Answer::Compared(Compared { changes, subscribers, problems }));
        }
        let is_new = confirm.is_some()
            || self.changes.waits_until().is_some()
            || !self.changes.current().is_same_text(&revision.sources);
        if is_new {
            let link = &mut self.link;
            let mut put = |plan: &Plan| link.change_to(plan.clone());
            let steps = self.changes.apply(revision, asker.now, confirm, &mut put)?;
            self.keep(steps);
            let number = self.changes.current().about.number;
            say(&format!("weir: revision {number} by {}", asker.name));
        }
        Ok(Answer::Applied(Applied {
            revision: self.changes.current().about.revision(),
            new: is_new,
            changes,
            subscribers,
            problems,
            confirm: answers::confirm(self.waits(), asker.now),
            history_trouble: self.history.trouble().map(str::to_owned),
        }))
    }

    /// Goes back if nothing needs to be read for that; says otherwise what does.
    pub(crate) fn back_to(
        &mut self,
        to: Option<u64>,
        comment: &str,
        asker: Asker<'_>,
    ) -> Result<Back, Refused> {
        let before = self.changes.current().about.number;
        let waits = self.changes.waits_until().is_some();
        if waits && to.is_none_or(|to| to == self.changes.confirmed().about.number) {
            let link = &mut self.link;
            let steps = self.changes.undo(&mut |plan| link.change_to(plan.clone()))?;
            self.keep(steps);
            return Ok(Back::Done(self.is_back(before, asker)));
        }
        let (number, sources) = self.target(to)?;
        let said = if comment.is_empty() { String::new() } else { format!(": {comment}") };
        let comment = format!("back to revision {number}{said}");
        Ok(Back::To(sources, By { comment, ..asker.by(How::Rollback) }))
    }

    /// Goes back to what was read.
    pub(crate) fn go_back(
        &mut self,
        prepared: Prepared,
        asker: Asker<'_>,
    ) -> Result<Moved, Refused> {
        let before = self.changes.current().about.number;
        let (revision, _) = self.numbered(prepared);
        let link = &mut self.link;
        let mut put = |plan: &Plan| link.change_to(plan.clone());
        let steps = self.changes.go_back(revision, &mut put)?;
        self.keep(steps);
        Ok(self.is_back(before, asker))
    }

    fn is_back(&self, before: u64, asker: Asker<'_>) -> Moved {
        let current = self.changes.current();
        say(&format!("weir: from revision {before} to {} by {}", current.about.number, asker.name));
        Moved {
            revision: current.about.revision(),
            changes: current.about.changes.clone(),
            history_trouble: self.history.trouble().map(str::to_owned),
        }
    }

    /// The revision to go back to and its files; without a number the one confirmed before.
    fn target(&self, to: Option<u64>) -> Result<(u64, Vec<Source>), Refused> {
        let current = self.changes.current().about.number;
        let earlier = || {
            let mut earlier = self.history.told().rev().filter(|about| about.number < current);
            earlier.find(|about| about.fate == RevisionState::Confirmed).map(|about| about.number)
        };
        let before = self.changes.before().map(|before| before.about.number);
        let Some(number) = to.or(before).or_else(earlier) else {
            let what = format!("there is nothing before revision {current}");
            return Err(Refused::call(what, "`weir history` lists what there is"));
        };
        if number == current {
            return Err(Refused::call(format!("revision {number} is in effect"), ""));
        }
        // those in memory need no disk
        let held = [Some(self.changes.confirmed()), self.changes.before()];
        if let Some(held) = held.into_iter().flatten().find(|held| held.about.number == number) {
            return Ok((number, held.sources.clone()));
        }
        if self.history.about(number).is_none() {
            let what = format!("there is no revision {number}");
            return Err(Refused::call(what, "`weir history` lists what there is"));
        }
        let sources = self.history.load(number).map_err(|why| Refused::cannot(why, ""))?;
        Ok((number, sources))
    }

    /// A policy that was read as the next revision, and its problems.
    fn numbered(&self, prepared: Prepared) -> (Revision, Vec<Problem>) {
        let Prepared { mut revision, before, problems, .. } = prepared;
        let current = self.changes.current();
        if !Arc::ptr_eq(&before, current) {
            // another came between
            revision.about.changes = changes(&current.plan, &revision.plan);
        }
        revision.about.number = self.history.next();
        if !revision.about.how.is_of_file() {
            revision.about.read.clone_from(&self.read);
        }
        (revision, problems)
    }

    fn keep(&mut self, steps: Vec<Step>) {
        for (revision, fate) in steps {
            self.history.keep(&revision, fate);
        }
        if let Some(what) = self.history.pruned() {
            say(&format!("weir: {what}"));
        }
        if let Some(why) = self.history.trouble() {
            say(&format!("weir: history could not be written: {why}"));
        }
    }
}
