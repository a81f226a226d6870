//! Control of a running link: which policy it has and who changed it, what it answers to those who
//! ask. It owns control's end of the packet thread; one request is dealt with after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use weir_policy::{Plan, Reading, Source};
use weir_units::{Instant, Span};

use super::answers;
use super::begin::{Begin, kept};
use super::change::{Changes, Step};
use super::history::History;
use super::link::{Link, Ports};
use super::metrics;
use super::protocol::{Apply, Request, VERSION};
use super::refused::{self, Refused};
use super::revision::{By, Fate, How, Kept, Revision, read, read_again};
use crate::out::say;
use crate::{files, problems};

/// A link and everything that is known about its policy.
pub(crate) struct Control {
    link: Link,
    changes: Changes,
    history: History,
    /// What the link was started with, and is read again on SIGHUP.
    file: PathBuf,
    started: Instant,
    /// The file as it was last read.
    read: Vec<Kept>,
    /// Why the file was not taken when it was last read again.
    not_taken: Option<String>,
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

/// What is to be done when the answer is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Nothing,
    Stop,
}

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
            history.keep(&first, Fate::Confirmed);
        }
        let read = first.about.read.clone();
        begin.remarks.iter().for_each(|remark| say(&format!("weir: {remark}")));
        Control {
            link,
            changes: Changes::new(first),
            history,
            file: file.to_owned(),
            read,
            started: now,
            not_taken: None,
            again_at: now + AGAIN,
        }
    }

    /// Answers one line with one line. Never fails: what is wrong is the answer.
    pub(crate) fn answer_line(&mut self, line: &[u8], asker: Asker<'_>) -> (String, After) {
        let request = Request::read(line);
        let stops = matches!(request, Ok(Request::Stop));
        let answer = request.and_then(|request| self.answer(request, asker));
        let after = if stops && answer.is_ok() { After::Stop } else { After::Nothing };
        (line_of(answer), after)
    }

    /// Does what is asked.
    pub(crate) fn answer(&mut self, asked: Request, asker: Asker<'_>) -> Result<Value, Refused> {
        match asked {
            Request::Status => Ok(self.status(asker.now)),
            Request::Tree { all } => self.tree(all, asker.now),
            Request::Books => {
                let books = self.link.books().map_err(stuck)?;
                Ok(answers::books(&books, asker.now))
            }
            Request::Apply(apply) => self.apply(*apply, asker),
            Request::Confirm => {
                let steps = self.changes.confirm()?;
                self.keep(steps);
                Ok(json!({ "revision": answers::revision(self.changes.current()) }))
            }
            Request::Rollback { to, comment } => self.rollback(to, comment, asker),
            Request::History => Ok(answers::history(&self.history, &self.changes)),
            Request::Observe { on } => {
                self.link.observe(on).map_err(stuck)?;
                let does = if on { "only observes" } else { "shapes" };
                say(&format!("weir: the link {does}, as {} asked", asker.name));
                Ok(json!({ "mode": answers::mode(&self.link) }))
            }
            Request::Metrics => Ok(json!({ "text": self.metrics(asker.now) })),
            Request::Stop => {
                say(&format!("weir: stopped by {}", asker.name));
                Ok(json!({ "link": self.link.plan().name }))
            }
        }
    }

    /// Reads the file again, as SIGHUP asks. What is wrong with it goes to standard error.
    pub(crate) fn reload(&mut self, now: Instant, of_day: u64) {
        let asker = Asker { name: "SIGHUP", now, of_day };
        let taken = match files::policy(&self.file) {
            Ok(reading) => {
                problems::print(&reading);
                self.read = reading.sources.iter().map(Kept::of).collect();
                self.take(reading, How::Reload, String::new(), None, asker).map(drop)
            }
            Err(why) => Err(Refused::cannot(why, "")),
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

    /// Whether packets still turn.
    pub(crate) fn is_alive(&self) -> bool {
        self.link.is_alive()
    }

    /// The link, for who watches its interfaces, and how its ports are.
    pub(crate) fn watched(&mut self) -> Option<(&mut Link, Ports)> {
        let ports = self.link.ports().ok()?;
        Some((&mut self.link, ports))
    }

    /// The metrics as text.
    pub(crate) fn metrics(&mut self, now: Instant) -> String {
        let (report, ports) = (self.link.report(), self.link.ports());
        metrics::text(&metrics::Told {
            plan: self.link.plan(),
            report: report.ok().as_ref(),
            ports: ports.ok().as_ref(),
            facts: self.link.facts(),
            is_alive: self.link.is_alive(),
            is_observing: self.link.is_observing(),
            revision: self.changes.current().about.number,
            uptime: now.since(self.started),
        })
    }

    /// What a log should have when someone asks for all there is.
    pub(crate) fn dump(&mut self, now: Instant) -> String {
        let tree = self.tree(true, now).unwrap_or_else(|refused| refused.to_json());
        format!("{:#}\n{tree:#}", self.status(now))
    }

    /// Gives the link back, to be stopped.
    pub(crate) fn end(self) -> Link {
        self.link
    }

    fn status(&mut self, now: Instant) -> Value {
        let ports = self.link.ports();
        let mut trouble: Vec<String> = Vec::new();
        if let Err(why) = &ports {
            trouble.push(format!("no frame passes through weir: {why}"));
        }
        let written = self.history.trouble();
        trouble.extend(written.map(|why| format!("history could not be written: {why}")));
        trouble.extend(self.history.damaged().iter().map(|what| format!("history: {what}")));
        let not_taken = self.not_taken.as_ref();
        let file = self.file.display();
        trouble.extend(not_taken.map(|why| format!("{file} was not taken: {why}")));
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "link": self.link.plan().name,
            "mode": answers::mode(&self.link),
            "io": self.link.way(),
            "bypass": self.link.bypass(),
            "found_down": self.link.found().map(weir_units::Rate::bps),
            "round_trips": answers::round_trips(self.link.round_trips()),
            "file": file.to_string(),
            "uptime_s": now.since(self.started).ns() / 1_000_000_000,
            "revision": answers::revision(self.changes.current()),
            "confirm": answers::confirm(&self.changes, now),
            "ports": answers::ports(self.link.plan(), ports.as_ref().ok()),
            "packets": answers::packets(&self.link, now),
            "flows": ports.as_ref().map_or(Value::Null, |ports| Value::from(ports.flows)),
            "history": {
                "folder": self.history.folder().display().to_string(),
                "kept": self.history.told().count(),
            },
            "trouble": trouble,
        })
    }

    fn tree(&mut self, all: bool, now: Instant) -> Result<Value, Refused> {
        let report = self.link.report().map_err(stuck)?;
        let mut tree = answers::tree(&report, self.link.plan(), all, now);
        tree["mode"] = Value::from(answers::mode(&self.link));
        Ok(tree)
    }

    fn apply(&mut self, apply: Apply, asker: Asker<'_>) -> Result<Value, Refused> {
        let table = apply.subscribers.as_deref().map(str::as_bytes);
        let reading = read(Source::new(apply.name, apply.text), table)?;
        if !apply.dry {
            return self.take(reading, How::Apply, apply.comment, apply.confirm, asker);
        }
        let problems = refused::problems(&reading);
        let revision = self.revision(reading, How::Apply, apply.comment, asker)?;
        self.changes.may(&revision.plan, asker.now, apply.confirm)?;
        Ok(json!({ "changes": revision.about.changes, "problems": problems }))
    }

    /// Puts a policy that was read into effect.
    fn take(
        &mut self,
        reading: Reading,
        how: How,
        comment: String,
        confirm: Option<Span>,
        asker: Asker<'_>,
    ) -> Result<Value, Refused> {
        let problems = refused::problems(&reading);
        let revision = self.revision(reading, how, comment, asker)?;
        let changes = revision.about.changes.clone();
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
        Ok(json!({
            "revision": answers::revision(self.changes.current()),
            "new": is_new,
            "changes": changes,
            "problems": problems,
            "confirm": answers::confirm(&self.changes, asker.now),
            "history_trouble": self.history.trouble(),
        }))
    }

    fn rollback(
        &mut self,
        to: Option<u64>,
        comment: String,
        asker: Asker<'_>,
    ) -> Result<Value, Refused> {
        let (confirmed, current) = (self.changes.confirmed().clone(), self.changes.current());
        let waits = self.changes.waits_until().is_some();
        let before = current.about.number;
        if waits && to.is_none_or(|to| to == confirmed.about.number) {
            let link = &mut self.link;
            let steps = self.changes.undo(&mut |plan| link.change_to(plan.clone()))?;
            self.keep(steps);
        } else {
            let target = self.target(to)?;
            let number = target.about.number;
            let said = if comment.is_empty() { comment } else { format!(": {comment}") };
            let comment = format!("back to revision {number}{said}");
            let reading = read_again(target.sources)?;
            let revision = self.revision(reading, How::Rollback, comment, asker)?;
            let link = &mut self.link;
            let mut put = |plan: &Plan| link.change_to(plan.clone());
            let steps = self.changes.go_back(revision, &mut put)?;
            self.keep(steps);
        }
        let current = self.changes.current();
        say(&format!("weir: from revision {before} to {} by {}", current.about.number, asker.name));
        Ok(json!({
            "revision": answers::revision(current),
            "changes": current.about.changes,
            "history_trouble": self.history.trouble(),
        }))
    }

    /// The revision to go back to; without a number the one confirmed before.
    fn target(&self, to: Option<u64>) -> Result<Revision, Refused> {
        let current = self.changes.current().about.number;
        let earlier = || {
            let mut earlier = self.history.told().rev().filter(|about| about.number < current);
            earlier.find(|about| about.fate == Fate::Confirmed).map(|about| about.number)
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
            return Ok(Revision::clone(held));
        }
        if self.history.about(number).is_none() {
            let what = format!("there is no revision {number}");
            return Err(Refused::call(what, "`weir history` lists what there is"));
        }
        kept(&self.history, number, &self.link.plan().name)
    }

    fn revision(
        &self,
        reading: Reading,
        how: How,
        comment: String,
        asker: Asker<'_>,
    ) -> Result<Revision, Refused> {
        let by = By { author: asker.name.to_owned(), how, comment, time: asker.of_day };
        let current = &self.changes.current().plan;
        let mut revision = Revision::of(reading, &self.link.plan().name, Some(current), by)?;
        revision.about.number = self.history.next();
        if !how.is_of_file() {
            revision.about.read.clone_from(&self.read);
        }
        Ok(revision)
    }

    fn keep(&mut self, steps: Vec<Step>) {
        for (revision, fate) in steps {
            self.history.keep(&revision, fate);
        }
        if let Some(why) = self.history.trouble() {
            say(&format!("weir: history could not be written: {why}"));
        }
    }
}

/// An answer as a line.
pub(crate) fn line_of(answer: Result<Value, Refused>) -> String {
    let (ok, mut rest) = match answer {
        Ok(answer) => (true, answer),
        Err(refused) => (false, json!({ "error": refused.to_json() })),
    };
    let mut line = json!({ "weir": VERSION, "ok": ok });
    if let (Some(line), Some(rest)) = (line.as_object_mut(), rest.as_object_mut()) {
        line.append(rest);
    }
    format!("{line}\n")
}

fn stuck(why: String) -> Refused {
    Refused::cannot(
        why,
        "`weir status` says more; frames pass beside weir if it has a way to let them",
    )
}
