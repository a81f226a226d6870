//! Where policies are read: on a thread of its own, one after the other, so that neither control
//! nor who feeds the watchdog waits for a text, and so that two of them never need memory at once.
//! The thread is left behind when weir ends: nobody waits for a text that nobody needs any more.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::time::Duration;

use weir_control::{Apply, How, Kept, Problem, Refused, Request};
use weir_io::wait::now;
use weir_policy::{Reading, Source};
use weir_units::Span;

use crate::revision::{By, Revision, hold, kept, read, read_again, rows_of, written};
use weir_control::shown;

use crate::{files, log};

/// What is to be read.
pub(crate) enum Text {
    /// A long request, of which nobody knows yet what it asks.
    Line(Vec<u8>),
    /// A policy that came with a request.
    Policy(Box<Apply>),
    /// The file that the link was started with.
    File(PathBuf),
    /// A policy that the link had.
    Again(Vec<Source>),
}

/// What it says.
pub(crate) enum Read {
    Request(Request),
    Policy(Box<Prepared>),
    /// The files as they were read, if they could be, and what they say.
    File(Option<Vec<Kept>>, Result<Box<Prepared>, Refused>),
}

/// A policy that needs only to be put into effect.
pub(crate) struct Prepared {
    /// Without its number.
    pub(crate) revision: Revision,
    /// What was in effect when it was read: its differences are from that.
    pub(crate) before: Arc<Revision>,
    /// For programs.
    pub(crate) problems: Vec<Problem>,
    /// Only to be compared.
    pub(crate) dry: bool,
    /// How long it may wait for its confirmation.
    pub(crate) confirm: Option<Span>,
}

/// What a text is read over.
#[derive(Clone)]
pub(crate) struct Before {
    /// In effect: differences are from that.
    pub(crate) now: Arc<Revision>,
    /// Confirmed: rows that cannot be read are held from that.
    pub(crate) good: Arc<Revision>,
}

struct Job {
    text: Text,
    by: By,
    before: Before,
    to: Sender<Result<Read, Refused>>,
}

/// The way to the thread.
pub(crate) struct Desk {
    jobs: Option<SyncSender<Job>>,
}

/// How often one who waits looks whether it still should.
const LOOK: Duration = Duration::from_millis(20);

/// How long one policy waits for another.
const PATIENCE: Span = Span::from_secs(30);

impl Desk {
    pub(crate) fn new() -> Desk {
        let (jobs, inbox) = sync_channel(0);
        let thread = std::thread::Builder::new().name("reading".to_owned());
        let spawned = thread.spawn(move || work(&inbox));
        Desk { jobs: spawned.ok().map(|_| jobs) }
    }

    /// Has a text read; others wait meanwhile. Given up on when `is_over`.
    pub(crate) fn read(
        &self,
        text: Text,
        by: By,
        before: Before,
        is_over: impl Fn() -> bool,
    ) -> Result<Read, Refused> {
        let ends = || Refused::cannot("weir ends", "start it again");
        let broken = || Refused::cannot("the thread that reads policies has ended", "restart weir");
        let (to, answer) = channel();
        let mut job = Job { text, by, before, to };
        let jobs = self.jobs.as_ref().ok_or_else(broken)?;
        let until = now() + PATIENCE;
        loop {
            match jobs.try_send(job) {
                Ok(()) => break,
                Err(TrySendError::Full(_)) if is_over() => return Err(ends()),
                Err(TrySendError::Full(_)) if now() > until => {
                    let what = format!("another policy is still being read after {PATIENCE}");
                    return Err(Refused::cannot(what, "try again when that is done"));
                }
                Err(TrySendError::Full(same)) => job = same,
                Err(TrySendError::Disconnected(_)) => return Err(broken()),
            }
            std::thread::park_timeout(LOOK);
        }
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) if is_over() => return Err(ends()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let cure = "report the policy: weir must not fail to read it like this";
                    return Err(Refused::cannot("the policy could not be read", cure));
                }
            }
        }
    }
}

fn work(inbox: &Receiver<Job>) {
    while let Ok(Job { text, by, before, to }) = inbox.recv() {
        let read = std::panic::AssertUnwindSafe(move || text.read(by, before));
        if let Ok(read) = std::panic::catch_unwind(read) {
            // who asked may have gone
            let _ = to.send(read);
        }
    }
}

impl Text {
    /// Reads it here and now.
    pub(crate) fn read(self, by: By, before: Before) -> Result<Read, Refused> {
        match self {
            Text::Line(line) => {
                let request = Request::read(&line);
                // the text is in the request now
                drop(line);
                match request? {
                    Request::Apply(apply) => Text::Policy(apply).read(by, before),
                    request => Ok(Read::Request(request)),
                }
            }
            Text::Policy(apply) => policy(*apply, by, before).map(Read::Policy),
            Text::Again(sources) => Prepared::of(read_again(sources)?, by, before.now)
                .map(|p| Read::Policy(Box::new(p))),
            Text::File(file) => {
                let read = files::policy(&file).map_err(|why| Refused::cannot(why, ""));
                let reading = match read.and_then(|reading| hold(reading, &before.good.sources)) {
                    Ok(reading) => reading,
                    Err(refused) => return Ok(Read::File(None, Err(refused))),
                };
                log::problems(&reading);
                let kept = written(&reading.sources).iter().map(kept).collect();
                Ok(Read::File(Some(kept), Prepared::of(reading, by, before.now).map(Box::new)))
            }
        }
    }
}

/// A policy that came with a request.
fn policy(apply: Apply, by: By, before: Before) -> Result<Box<Prepared>, Refused> {
    let Apply { name, text, subscribers, allow_skipped, dry, confirm, comment } = apply;
    let table = subscribers.map(String::into_bytes);
    let reading = hold(read(Source::new(name, text), table)?, &before.good.sources)?;
    let skipped = rows_of(&reading).skipped;
    if skipped > 0 && !dry && !allow_skipped && !reading.plans.is_empty() {
        let text = shown::text(&reading, false);
        return Err(Refused::skipped(skipped, &reading, text));
    }
    let by = By { how: How::Apply, comment, ..by };
    let prepared = Prepared::of(reading, by, before.now)?;
    Ok(Box::new(Prepared { dry, confirm, ..prepared }))
}

impl Prepared {
    fn of(reading: Reading, by: By, before: Arc<Revision>) -> Result<Prepared, Refused> {
        let problems = weir_control::problems(&reading);
        let link = before.plan.name.clone();
        let revision = Revision::of(reading, &link, Some(&before.plan), by)?;
        Ok(Prepared { revision, before, problems, dry: false, confirm: None })
    }
}
