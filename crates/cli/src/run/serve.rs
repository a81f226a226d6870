//! Control at work: one thread that takes signals and time, one that takes connections, one for
//! each of these, one for the metrics. All of them wait for the one [`Control`]; the packet thread
//! waits for none of them.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_io::wait::now;
use weir_units::{Span, limits};

use super::clock;
use super::control::{After, Asker, Control, line_of};
use super::link::{Link, Ports};
use super::refused::Refused;
use super::socket::{Lines, NoLine, Socket};
use super::{http, who};
use crate::out::say;

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

/// How often signals and time are looked at, and how long an end may go unnoticed.
const TICK: Duration = Duration::from_millis(200);

/// Serves until a signal or a request says stop; gives the link back, to be stopped. `signals` is
/// the way in for signals: whoever catches them holds a clone of the sender. `every_second` is
/// called with the link and how its ports are.
pub(crate) fn run(
    control: Control,
    doors: &Doors,
    signals: (Sender<Signal>, Receiver<Signal>),
    mut every_second: impl FnMut(&mut Link, &Ports),
) -> Link {
    let (sender, signals) = signals;
    let hall = Hall {
        control: Mutex::new(control),
        open: Mutex::new(BTreeMap::new()),
        ending: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let thread = |name: &str| Builder::new().name(name.to_owned());
        let taking = thread("control").spawn_scoped(scope, || hall.take(scope, doors, &sender));
        let measured = doors.metrics.as_ref().map(|listener| {
            thread("metrics").spawn_scoped(scope, || hall.tell(listener)).map(drop)
        });
        for failed in [taking.map(drop).err(), measured.and_then(Result::err)].into_iter().flatten()
        {
            say(&format!("weir: nobody can ask this link: no thread: {failed}"));
        }
        hall.turn(&signals, &mut every_second);
        hall.end();
    });
    hall.control.into_inner().unwrap_or_else(PoisonError::into_inner).end()
}

/// What the threads share.
struct Hall {
    control: Mutex<Control>,
    /// The connections that are open.
    open: Mutex<BTreeMap<u64, UnixStream>>,
    ending: AtomicBool,
}

impl Hall {
    /// A request that panicked has left a link that still is one.
    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals and time, until the end.
    fn turn(&self, signals: &Receiver<Signal>, every_second: &mut impl FnMut(&mut Link, &Ports)) {
        let mut second = now() + Span::from_secs(1);
        loop {
            match signals.recv_timeout(TICK) {
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Signal::Reload) => self.control().reload(now(), clock::of_day()),
                Ok(Signal::Dump) => say(&self.control().dump(now())),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let mut control = self.control();
            if !control.is_alive() {
                return;
            }
            control.step(now());
            if now() >= second {
                second = now() + Span::from_secs(1);
                if let Some((link, ports)) = control.watched() {
                    every_second(link, &ports);
                }
            }
        }
    }

    /// Takes connections until the end.
    fn take<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        doors: &'scope Doors,
        signals: &Sender<Signal>,
    ) {
        for number in 0.. {
            let Some(stream) = self.next(&doors.socket.listener, || {
                doors.socket.listener.accept().map(|(stream, _)| stream)
            }) else {
                return;
            };
            let mut open = self.open();
            let (Ok(known), Ok(())) = (stream.try_clone(), stream.set_nonblocking(false)) else {
                continue;
            };
            if open.len() >= limits::CONTROL_CONNECTIONS {
                drop(open);
                refuse(stream);
                continue;
            }
            open.insert(number, known);
            drop(open);
            // one that came while all were told of the end was not told
            if self.ending.load(Relaxed) {
                return;
            }
            let signals = signals.clone();
            let spawned = Builder::new().name("asked".to_owned()).spawn_scoped(scope, move || {
                // what goes wrong with one must not end them all
                let _ = catch_unwind(AssertUnwindSafe(|| self.serve(stream, &signals)));
                self.open().remove(&number);
            });
            if spawned.is_err() {
                self.open().remove(&number);
            }
        }
    }

    /// Answers one connection line by line.
    fn serve(&self, stream: UnixStream, signals: &Sender<Signal>) {
        let name = who::is_at(&stream);
        let mut lines = Lines::new(stream);
        loop {
            let line = match lines.read() {
                Ok(line) => line,
                Err(NoLine::Gone) => return,
                Err(NoLine::TooLong) => {
                    let what = "the request is too long";
                    let most = limits::CONTROL_LINE_BYTES >> 20;
                    let cure = format!("{most} MiB at most; what is larger comes from the file");
                    let _ = lines.write(&line_of(Err(Refused::call(what, cure))));
                    return;
                }
            };
            let asker = Asker { name: &name, now: now(), of_day: clock::of_day() };
            let (answer, after) = self.control().answer_line(&line, asker);
            let fetched = lines.write(&answer);
            if after == After::Stop {
                let _ = signals.send(Signal::Stop);
            }
            if fetched.is_err() {
                return;
            }
        }
    }

    /// Tells the metrics to whoever comes, one after the other, until the end.
    fn tell(&self, listener: &TcpListener) {
        if listener.set_nonblocking(true).is_err() {
            return;
        }
        while let Some(stream) = self.next(listener, || listener.accept().map(|(s, _)| s)) {
            let told = || http::answer(stream, || self.control().metrics(now()));
            let _ = catch_unwind(AssertUnwindSafe(told));
        }
    }

    /// The next who comes; `None` at the end.
    fn next<S>(&self, listener: &impl AsFd, accept: impl Fn() -> std::io::Result<S>) -> Option<S> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        loop {
            if self.ending.load(Relaxed) {
                return None;
            }
            let mut ready = [PollFd::new(listener, PollFlags::IN)];
            match poll(&mut ready, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                _ => match accept() {
                    Ok(stream) => return Some(stream),
                    // no descriptors are left, say: that passes, but not at once
                    Err(_) => std::thread::park_timeout(TICK),
                },
            }
        }
    }

    fn end(&self) {
        self.ending.store(true, Relaxed);
        for stream in self.open().values() {
            // an answer that is on its way still arrives
            let _ = stream.shutdown(Shutdown::Read);
        }
    }
}

/// Says that there are too many.
fn refuse(stream: UnixStream) {
    let what = format!("{} programs talk to this link already", limits::CONTROL_CONNECTIONS);
    let line = line_of(Err(Refused::cannot(what, "try again when one of them is done")));
    // so short that it fits into any socket: nobody waits for who does not read
    let _ = stream.set_nonblocking(true);
    let _ = Lines::new(stream).write(&line);
}
