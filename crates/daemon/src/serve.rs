//! Control at work. The thread that runs it takes time and looks after the link; others take
//! signals, connections (one thread for each), and readers of the metrics. What is asked most is
//! answered from the [board](super::board), policies are read at the [desk](super::desk): the one
//! [`Control`] is held only while something is changed or looked up. The packet thread waits for
//! none of them.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_control::{Answer, How, Metrics, Refused, Request, Stopped, pretty};
use weir_engine::{Margin, Report};
use weir_io::wait::now;
use weir_policy::Plan;
use weir_units::{ByWay, Instant, Span, limits};

use crate::board::{Board, Counted, Look, stuck};
use crate::clock;
use crate::control::{After, Asker, Back, Control};
use crate::desk::{Desk, Read, Text};
use crate::facts::Facts;
use crate::link::Link;
use crate::log::say;
use crate::places::Places;
use crate::reader::{Ports, Reader, Terms};
use crate::socket::{Lines, NoLine, Socket};
use crate::trouble::Trouble;
use crate::{answers, http, who};

/// What the system wants of a running link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Read the file again.
    Reload,
    /// End.
    Stop,
    /// Write all there is to the log.
    Dump,
}

/// Where a running link is asked.
pub(crate) struct Doors {
    pub(crate) socket: Socket,
    pub(crate) metrics: Option<TcpListener>,
}

/// How often time is looked at, and how long an end may go unnoticed.
const TICK: Duration = Duration::from_millis(200);
/// How often control looks at time, and at what the link finds of its line.
const CADENCE: Duration = Duration::from_nanos(Margin::CADENCE.ns());

/// Who looks after the interfaces of a link, once a second.
pub(crate) trait Watcher {
    /// Whether it wants to know what the classes have got.
    fn wants_report(&mut self, plan: &Plan, now: Instant) -> bool;

    /// Looks once, and tells what is wrong.
    fn look(&mut self, link: &mut Link, ports: &Ports, report: Option<&Report>) -> Vec<Trouble>;
}

/// Serves until a signal or a request says stop; gives the link back, to be stopped. `signals` is
/// the way in for signals: whoever catches them holds a clone of the sender.
pub(crate) fn run(
    (control, reader): (Control, Reader),
    doors: &Doors,
    signals: (Sender<Signal>, Receiver<Signal>),
    watcher: &mut impl Watcher,
) -> Link {
    let (sender, signals) = signals;
    let (stop, stopped) = channel();
    let hall = Hall {
        board: Board::new(control.told()),
        facts: control.facts(),
        reader: Mutex::new(reader),
        control: Mutex::new(control),
        desk: Desk::new(),
        places: Places::default(),
        large: AtomicBool::new(false),
        readers: AtomicUsize::new(0),
        reloads: AtomicUsize::new(0),
        ending: AtomicBool::new(false),
    };
    let shared = &hall;
    std::thread::scope(|scope| {
        let thread = |name: &str| Builder::new().name(name.to_owned());
        let taking = thread("control").spawn_scoped(scope, || shared.take(scope, doors, &sender));
        let sampling = thread("sampler").spawn_scoped(scope, || shared.sample());
        let heeding =
            thread("signals").spawn_scoped(scope, move || shared.heed(scope, &signals, &stop));
        let telling = doors.metrics.as_ref().map(|listener| {
            thread("metrics").spawn_scoped(scope, move || shared.tell(scope, listener)).map(drop)
        });
        let spawned = [taking.map(drop), sampling.map(drop), heeding.map(drop)];
        for failed in spawned.into_iter().chain(telling).filter_map(Result::err) {
            say(&format!("weir: not all of control works: no thread: {failed}"));
        }
        shared.turn(&stopped, watcher);
        shared.end();
    });
    hall.control.into_inner().unwrap_or_else(PoisonError::into_inner).end()
}

/// What the threads share.
struct Hall {
    /// Who needs both takes the reader first.
    reader: Mutex<Reader>,
    control: Mutex<Control>,
    facts: Arc<Facts>,
    board: Board,
    desk: Desk,
    places: Places,
    /// Whether a large request is being received.
    large: AtomicBool,
    /// How many readers of metrics are being served.
    readers: AtomicUsize,
    /// How often the file was to be read again since it was last begun.
    reloads: AtomicUsize,
    ending: AtomicBool,
}

impl Hall {
    /// A request that panicked has left a link that still is one.
    fn locked(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the link counts; control is not held for that.
    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the classes have got, and by which policy. Control is held only where the policy
    /// changes faster than the books can be read.
    fn report(&self) -> (Result<Report, String>, Terms) {
        let mut reader = self.reader();
        for _ in 0..TRIES {
            let terms = self.board.told().terms.clone();
            if let Some(report) = reader.report(&terms).transpose() {
                return (report, terms);
            }
        }
        let control = self.locked();
        let terms = control.told().terms;
        let none = || "the policy changes all the time".to_owned();
        (reader.report(&terms).and_then(|report| report.ok_or_else(none)), terms)
    }

    /// Does something with control, and writes down what it knows then.
    fn control<T>(&self, work: impl FnOnce(&mut Control) -> T) -> T {
        let mut control = self.locked();
        let done = work(&mut control);
        self.board.tell(control.told());
        done
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Time and the link, until the end.
    fn turn(&self, stopped: &Receiver<()>, watcher: &mut impl Watcher) {
        let mut second = now() + Span::from_secs(1);
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(CADENCE) {
            self.control(|control| control.step(now()));
            let is_second = now() >= second;
            if is_second || self.finds() {
                self.note_what_is_found(is_second);
            }
            if is_second {
                second = now() + Span::from_secs(1);
                self.look_after(watcher);
            }
            if !self.board.told().is_alive {
                return;
            }
        }
    }

    /// Whether the packet thread finds what the line carries.
    fn finds(&self) -> bool {
        let told = self.board.told();
        told.is_alive && !told.is_observing && told.terms.plan.finds != ByWay::default()
    }

    /// Notes what the packet thread has found of the line, and how long ways take.
    fn note_what_is_found(&self, is_second: bool) {
        let totals = self.reader().totals();
        match totals {
            Ok(totals) => self.control(|control| control.has_found(&totals)),
            Err(why) if is_second => say(&format!("weir: {why}")),
            Err(_) => {}
        }
    }

    /// Looks after the interfaces. What the packet thread is asked for that is asked before control
    /// is held.
    fn look_after(&self, watcher: &mut impl Watcher) {
        let Ok(ports) = self.reader().ports() else { return };
        let told = self.board.told();
        let report = watcher.wants_report(&told.terms.plan, now()).then(|| self.report());
        let report = report.and_then(|(report, _)| report.ok());
        self.control(|control| {
            let troubles = watcher.look(control.link(), &ports, report.as_ref());
            control.set_troubles(troubles);
        });
    }

    /// Does what signals ask, until the end. Nothing that takes time is done here.
    fn heed<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        signals: &Receiver<Signal>,
        stop: &Sender<()>,
    ) {
        while !self.is_ending() {
            let work: fn(&Hall) = match signals.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => continue,
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    let _ = stop.send(());
                    return;
                }
                // the one who reads it looks once more
                Ok(Signal::Reload) if self.reloads.fetch_add(1, Relaxed) > 0 => continue,
                Ok(Signal::Reload) => Hall::reload,
                Ok(Signal::Dump) => Hall::dump,
            };
            let thread = Builder::new().name("signalled".to_owned());
            if let Err(why) = thread.spawn_scoped(scope, move || work(self)) {
                self.reloads.store(0, Relaxed);
                say(&format!("weir: a signal was ignored: no thread: {why}"));
            }
        }
    }

    /// Reads the file again, as often as somebody asked meanwhile.
    fn reload(&self) {
        loop {
            let asked = self.reloads.load(Relaxed);
            if let Some(file) = self.control(|control| control.file_to_read()) {
                let asker = Asker { name: "SIGHUP", now: now(), of_day: clock::of_day() };
                let read = self.read(Text::File(file), asker, How::Reload);
                if self.is_ending() {
                    return;
                }
                self.control(|control| control.reloaded(read, asker));
            }
            if self.reloads.compare_exchange(asked, 0, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }

    /// What a log should have when someone asks for all there is.
    fn dump(&self) {
        let status = pretty(&self.board.status());
        let tree = self.board.tree(true, "", "");
        let tree = tree.map_or_else(|refused| refused.to_string(), |tree| pretty(&tree));
        say(&format!("{status}\n{tree}"));
    }

    /// Looks and counts when somebody wants to know, until the end.
    fn sample(&self) {
        while !self.is_ending() {
            let wanted = self.board.wanted(TICK);
            if wanted.look {
                let is_alive = self.board.told().is_alive;
                let mut reader = self.reader();
                self.board.put_look(Look::of(&mut reader, &self.facts, is_alive, now()));
            }
            if wanted.count {
                self.count();
            }
        }
    }

    /// Counts, and does so again while the policy changes before that is written down.
    fn count(&self) {
        while !self.is_ending() {
            let (report, terms) = self.report();
            if self.board.put_counted(Counted::of(report, &terms, now()), terms.version) {
                return;
            }
        }
    }

    fn read(&self, text: Text, asker: Asker<'_>, how: How) -> Result<Read, Refused> {
        let before = self.board.told().before();
        self.desk.read(text, asker.by(how), before, || self.is_ending())
    }

    /// Takes connections until the end. Where all places are taken, some wait for one.
    fn take<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        doors: &'scope Doors,
        signals: &Sender<Signal>,
    ) {
        let mut waiting: VecDeque<(UnixStream, Instant)> = VecDeque::new();
        let mut number = 0;
        while !self.is_ending() {
            let within = if waiting.is_empty() { TICK } else { LOOK };
            if is_ready(&doors.socket.listener, within) {
                match doors.socket.listener.accept() {
                    Ok((stream, _)) if waiting.len() < limits::CONTROL_CONNECTIONS => {
                        waiting.push_back((stream, now()));
                    }
                    Ok((stream, _)) => refuse(stream),
                    // no descriptors are left, say: that passes, but not at once
                    Err(_) => std::thread::park_timeout(LOOK),
                }
            }
            while let Some((stream, since)) = waiting.pop_front() {
                number += 1;
                match self.seat(stream, number) {
                    Ok(Some(stream)) => self.attend(scope, stream, number, signals.clone()),
                    Ok(None) => {}
                    Err(stream) if now().since(since) > WAITS => refuse(stream),
                    Err(stream) => {
                        waiting.push_front((stream, since));
                        break;
                    }
                }
            }
        }
    }

    /// Gives a connection a place, or back if there is none.
    fn seat(&self, stream: UnixStream, number: u64) -> Result<Option<UnixStream>, UnixStream> {
        let (Ok(known), Ok(())) = (stream.try_clone(), stream.set_nonblocking(false)) else {
            return Ok(None);
        };
        match self.places.take(number, known, now()) {
            Ok(()) => Ok(Some(stream)),
            Err(_) => Err(stream),
        }
    }

    /// Starts a thread that answers a connection.
    fn attend<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stream: UnixStream,
        number: u64,
        signals: Sender<Signal>,
    ) {
        let thread = Builder::new().name("asked".to_owned()).stack_size(ASKED_STACK);
        let spawned = thread.spawn_scoped(scope, move || {
            // what goes wrong with one must not end them all
            let _ = catch_unwind(AssertUnwindSafe(|| self.serve(stream, number, &signals)));
            self.places.leave(number);
        });
        if spawned.is_err() {
            self.places.leave(number);
        }
        // one that came while all were told of the end was not told
        if self.is_ending() {
            self.places.end();
        }
    }

    /// Answers one connection line by line.
    fn serve(&self, stream: UnixStream, number: u64, signals: &Sender<Signal>) {
        let name = who::is_at(&stream);
        let mut lines = Lines::new(stream);
        loop {
            let mut large = None;
            let line = lines.read_if(|| {
                large = Large::take(&self.large);
                large.is_some()
            });
            let line = match line {
                Ok(line) => line,
                Err(NoLine::Gone) => return,
                Err(why) => {
                    let _ = lines.write(&weir_control::line::<()>(&Err(not_read(why))));
                    return;
                }
            };
            self.places.works(number);
            let asker = Asker { name: &name, now: now(), of_day: clock::of_day() };
            let (answer, after) = self.answer_line(line, asker);
            drop(large);
            // before the answer is written: they wait in the order in which they were answered,
            // whichever thread goes on first
            self.places.waits(number, now());
            let fetched = lines.write(&answer);
            if after == After::Stop {
                let _ = signals.send(Signal::Stop);
            }
            if fetched.is_err() {
                return;
            }
        }
    }

    /// Answers one line with one line. Never fails: what is wrong is the answer.
    fn answer_line(&self, line: Vec<u8>, asker: Asker<'_>) -> (String, After) {
        let read = if line.len() <= limits::CONTROL_SMALL_BYTES {
            Request::read(&line).map(Read::Request)
        } else {
            self.read(Text::Line(line), asker, How::Apply)
        };
        let stops = matches!(read, Ok(Read::Request(Request::Stop)));
        let answer = read.and_then(|read| match read {
            Read::Request(request) => self.answer(request, asker),
            read => self.put(read, asker),
        });
        let after = if stops && answer.is_ok() { After::Stop } else { After::Nothing };
        (weir_control::line(&answer), after)
    }

    /// Does what is asked. What only needs to be known, and the end, waits for nobody.
    fn answer(&self, request: Request, asker: Asker<'_>) -> Result<Answer, Refused> {
        match request {
            Request::Status => Ok(Answer::Status(Box::new(self.board.status()))),
            Request::Tree { all, path, filter } => {
                self.board.tree(all, &path, &filter).map(Answer::Tree)
            }
            Request::Metrics => Ok(Answer::Metrics(Metrics { text: self.board.metrics() })),
            Request::Stop => {
                say(&format!("weir: stopped by {}", asker.name));
                let link = self.board.told().revision.plan.name.clone();
                Ok(Answer::Stopped(Stopped { link }))
            }
            Request::Apply(apply) => {
                self.put(self.read(Text::Policy(apply), asker, How::Apply)?, asker)
            }
            Request::Rollback { to, comment } => {
                match self.control(|control| control.back_to(to, &comment, asker))? {
                    Back::Done(moved) => Ok(Answer::Moved(moved)),
                    Back::To(sources, by) => {
                        let before = self.board.told().before();
                        let text = Text::Again(sources);
                        match self.desk.read(text, by, before, || self.is_ending())? {
                            Read::Policy(prepared) => self
                                .control(|control| control.go_back(*prepared, asker))
                                .map(Answer::Moved),
                            _ => Err(Refused::cannot("no policy came", "")),
                        }
                    }
                }
            }
            Request::Books => books(&mut self.reader(), asker.now),
            other => self.control(|control| control.simple(&other, asker)),
        }
    }

    /// Puts a policy that was read into force.
    fn put(&self, read: Read, asker: Asker<'_>) -> Result<Answer, Refused> {
        match read {
            Read::Policy(prepared) => self.control(|control| control.put(*prepared, asker)),
            Read::Request(_) | Read::File(..) => Err(Refused::cannot("no policy came", "")),
        }
    }

    /// Tells the metrics to whoever comes, until the end.
    fn tell<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, listener: &'scope TcpListener) {
        if listener.set_nonblocking(true).is_err() {
            return;
        }
        while !self.is_ending() {
            // the others wait in the kernel's queue
            if self.readers.load(Relaxed) >= limits::METRICS_READERS {
                std::thread::park_timeout(LOOK);
                continue;
            }
            if !is_ready(listener, TICK) {
                continue;
            }
            let Ok((stream, _)) = listener.accept() else {
                std::thread::park_timeout(LOOK);
                continue;
            };
            self.readers.fetch_add(1, Relaxed);
            let thread = Builder::new().name("measured".to_owned()).stack_size(READER_STACK);
            let spawned = thread.spawn_scoped(scope, || {
                let told = || http::answer(stream, || self.board.metrics());
                let _ = catch_unwind(AssertUnwindSafe(told));
                self.readers.fetch_sub(1, Relaxed);
            });
            if spawned.is_err() {
                self.readers.fetch_sub(1, Relaxed);
            }
        }
    }

    fn end(&self) {
        self.ending.store(true, Relaxed);
        self.places.end();
    }
}

/// Bytes of stack of a thread that serves one who asks, and a reader of metrics: all memory stays
/// in RAM, so a thread more is to cost little.
const ASKED_STACK: usize = 512 << 10;
const READER_STACK: usize = 256 << 10;

/// How often those who wait for a place, or for a thread, are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long one waits for a place: longer than a silent one keeps it.
const WAITS: Span = Span::from_secs(limits::CONTROL_PLACE_SECS + 1);

/// How often the books are read again because the policy has changed meanwhile.
const TRIES: u32 = 3;

/// The raw counters.
pub(crate) fn books(reader: &mut Reader, now: Instant) -> Result<Answer, Refused> {
    let books = reader.books().map_err(|why| stuck(&why))?;
    Ok(Answer::Books(Box::new(answers::books(&books, now))))
}

/// The right to have a large request: one at a time, so that their memory has a bound.
struct Large<'h>(&'h AtomicBool);

impl Large<'_> {
    fn take(taken: &AtomicBool) -> Option<Large<'_>> {
        (!taken.swap(true, Relaxed)).then(|| Large(taken))
    }
}

impl Drop for Large<'_> {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

/// Whether somebody comes within this time.
fn is_ready(listener: &impl AsFd, within: Duration) -> bool {
    let timeout = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
    let mut ready = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut ready, Some(&timeout)).is_ok_and(|count| count > 0)
}

/// Why a request was not even read.
fn not_read(why: NoLine) -> Refused {
    if why == NoLine::Busy {
        let what = "another large request is being received";
        return Refused::cannot(what, "try again when it is done");
    }
    let most = limits::CONTROL_LINE_BYTES >> 20;
    let cure = format!("{most} MiB at most; what is larger comes from the file");
    Refused::call("the request is too long", cure)
}

/// Says that there are too many.
fn refuse(stream: UnixStream) {
    let what = format!(
        "{} control clients are already connected to this link",
        limits::CONTROL_CONNECTIONS
    );
    let line =
        weir_control::line::<()>(&Err(Refused::cannot(what, "try again when one of them is done")));
    // so short that it fits into any socket: nobody waits for who does not read
    let _ = stream.set_nonblocking(true);
    let _ = Lines::new(stream).write(&line);
}
