//! Where the kernel cannot run a program of ours, a tiny process of the same binary does its work:
//! it looks at the daemon's pulse, and when that stops it lets the kernel's bridge carry the
//! frames that the daemon does not. The two ports are members of that bridge all the time; what
//! keeps it from carrying frames between them while weir does is that they are isolated.
//!
//! The helper looks at the same page and does the same when the guard does not: of the three, any
//! two may die or stand still.

use std::fs::{File, OpenOptions};
use std::process::ExitCode;
use std::time::Duration;

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_io::page::Page;
use weir_io::privileges::{self, Calls, Capabilities, Capability};
use weir_io::signals::Signals;
use weir_io::wait::now;
use weir_units::{Instant, Span, limits};

use crate::log::{print_aside, problem, say};

use crate::pulse::{BEAT, BYPASSED, GUARD_BEAT, LEAVING};

/// A pulse older than this has stopped; the program at the ports of AF_XDP says so too.
const STOPPED: Span = Span::from_ms(limits::STALE_MS);

/// How often a watcher looks.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

/// How often a watcher does again what it has done: another may have undone it.
const AGAIN: Span = Span::from_ms(250);

/// What the guard is started with.
#[derive(Clone, Debug)]
pub struct Args {
    /// Descriptor of the page with the pulse.
    pub page: i32,
    /// The two ports.
    pub ports: Vec<String>,
}

/// The guard itself. Its standard input ends when the daemon has died.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let page = match page_of(args.page) {
        Ok(page) => page,
        Err(error) => return problem(&format!("weir starts its guard itself ({error})")),
    };
    // who ends a daemon by a signal to all its processes must not end its guard first
    let _ = Signals::block();
    let _ = std::fs::write("/proc/self/comm", "weir-guard");
    // a guard with too many rights is better than a line that is cut
    let kept = give_up().err();
    // a thread has the rights of the one that makes it
    print_aside();
    if let Some(error) = kept {
        say(&format!("weir guard: cannot give up privileges: {error}"));
    }
    let _ = weir_io::wait::be_punctual();
    let ports = args.ports.clone();
    let mut watcher = Watcher::new(page, ports, Duty::Guard);
    let life = std::io::stdin();
    loop {
        watcher.look(now());
        if has_ended(life.as_fd(), LOOK) {
            watcher.open_the_way();
            return ExitCode::SUCCESS;
        }
    }
}

fn page_of(descriptor: i32) -> std::io::Result<Page> {
    let path = format!("/proc/self/fd/{descriptor}");
    OpenOptions::new().read(true).write(true).open(path).map(File::into).and_then(Page::of)
}

/// Keeps what it takes to isolate a port, and no file. Before that it becomes punctual.
fn give_up() -> std::io::Result<()> {
    // where there is the right to; it is the least that runs, and somebody waits for it
    let _ = weir_io::wait::be_first();
    privileges::confine(&[], &[])?;
    privileges::drop_to(Capabilities::of(&[Capability::NetAdmin]))?;
    match privileges::leave_only(Calls::Guard) {
        // a kernel without seccomp
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}

/// Whether the other end was closed, looked at for so long.
fn has_ended(life: BorrowedFd<'_>, span: Duration) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(life, PollFlags::IN)];
    let span = Timespec::try_from(span).ok();
    matches!(poll(&mut asked, span.as_ref()), Ok(1..))
}

/// Which of the two watchers it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// It always acts.
    Guard,
    /// It acts while the guard does not.
    Helper,
}

/// Looks at the daemon's pulse, and says to the bridge whether it carries.
#[derive(Debug)]
pub(crate) struct Watcher {
    page: Page,
    /// By name, and the number that had the name when it was looked up last: an interface may be
    /// called otherwise meanwhile, or be another one.
    ports: Vec<(String, Option<u32>)>,
    duty: Duty,
    said_at: Instant,
    /// What could not be done, as it was said last.
    trouble: Option<String>,
}

/// What a watcher makes of what it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Let the bridge carry.
    Open,
    /// Let weir carry.
    Close,
    /// Say again what holds.
    Again {
        open: bool,
    },
    Nothing,
}

impl Watcher {
    pub(crate) fn new(page: Page, ports: Vec<String>, duty: Duty) -> Watcher {
        let number = |port: String| {
            let index = weir_io::netdev::index_of(&port).ok();
            (port, index)
        };
        let ports = ports.into_iter().map(number).collect();
        Watcher { page, ports, duty, said_at: Instant::ZERO, trouble: None }
    }

    /// One look; it never waits for anybody but the kernel.
    pub(crate) fn look(&mut self, now: Instant) {
        match judge(&self.page, self.duty, now, self.said_at) {
            Verdict::Nothing => return,
            Verdict::Open => {
                // first the word, so that a daemon that wakes now sends nothing twice
                self.page.set(BYPASSED, 1);
                self.isolate(false);
            }
            Verdict::Close => {
                if self.isolate(true) {
                    self.page.set(BYPASSED, 0);
                }
            }
            Verdict::Again { open } => {
                self.isolate(!open);
            }
        }
        self.said_at = now;
    }

    /// Whether the bridge carries.
    pub(crate) fn is_bypassed(&self) -> bool {
        self.page.get(BYPASSED) != 0
    }

    /// For good, because the daemon has died: a pulse that is still young counts no more.
    pub(crate) fn open_the_way(&mut self) {
        self.page.set(BYPASSED, 1);
        self.isolate(false);
    }

    /// Keeps the bridge from carrying frames between the ports, or lets it. Whether that is so now.
    fn isolate(&mut self, isolated: bool) -> bool {
        let mut done = true;
        let mut trouble = None;
        for (port, index) in &mut self.ports {
            *index = weir_io::netdev::index_of(port).ok().or(*index);
            let Some(index) = *index else { continue };
            if let Err(error) = weir_io::netdev::set_isolated_at(index, isolated)
                // an interface that is gone or in no bridge carries nothing
                && error.raw_os_error() != Some(rustix::io::Errno::OPNOTSUPP.raw_os_error())
                && error.raw_os_error() != Some(rustix::io::Errno::NODEV.raw_os_error())
            {
                done = false;
                trouble = Some(format!("weir guard: {port}: {error}"));
            }
        }
        if trouble != self.trouble {
            trouble.iter().for_each(|why| say(why));
            self.trouble = trouble;
        }
        done
    }
}

/// What is to be done, by the words of the page. The guard leaves a sign that it has looked.
fn judge(page: &Page, duty: Duty, now: Instant, said_at: Instant) -> Verdict {
    let is_old = |word| {
        let beat = Instant::from_ns(page.get(word));
        // one that is ahead of the clock comes from nobody who turns
        now.since(beat) > STOPPED || beat.since(now) > STOPPED
    };
    match duty {
        Duty::Guard => page.set(GUARD_BEAT, now.ns()),
        Duty::Helper if !is_old(GUARD_BEAT) => return Verdict::Nothing,
        Duty::Helper => {}
    }
    let open = page.get(LEAVING) != 0 || is_old(BEAT);
    match (open, page.get(BYPASSED) != 0) {
        (true, false) => Verdict::Open,
        (false, true) => Verdict::Close,
        _ if now.since(said_at) >= AGAIN => Verdict::Again { open },
        _ => Verdict::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Instant = Instant::from_ns(10_000_000_000);

    fn ms(n: u64) -> Span {
        Span::from_ms(n)
    }

    #[test]
    fn the_bridge_carries_exactly_while_the_daemon_does_not_turn() {
        let page = Page::new().unwrap();
        let judged = |now| judge(&page, Duty::Guard, now, now);
        page.set(BYPASSED, 1);
        assert_eq!(judged(T), Verdict::Nothing, "no pulse yet, and the bridge carries");
        page.set(BEAT, T.ns());
        assert_eq!(judged(T + ms(1)), Verdict::Close);
        page.set(BYPASSED, 0);
        assert_eq!(judged(T + ms(50)), Verdict::Nothing);
        assert_eq!(judged(T + ms(51)), Verdict::Open);
        page.set(BEAT, u64::MAX / 2);
        assert_eq!(judged(T + ms(1)), Verdict::Open, "a pulse of the future");
        page.set(BEAT, T.ns());
        page.set(LEAVING, 1);
        assert_eq!(judged(T + ms(1)), Verdict::Open, "weir says that it leaves");
        page.set(BYPASSED, 1);
        assert_eq!(judged(T + ms(1)), Verdict::Nothing);
        assert_eq!(judge(&page, Duty::Guard, T + ms(250), T), Verdict::Again { open: true });
        assert_eq!(page.get(GUARD_BEAT), (T + ms(250)).ns());
    }

    #[test]
    fn the_helper_acts_when_the_guard_does_not_look() {
        let page = Page::new().unwrap();
        page.set(BEAT, T.ns());
        page.set(GUARD_BEAT, (T + ms(20)).ns());
        assert_eq!(judge(&page, Duty::Helper, T + ms(60), T), Verdict::Nothing);
        assert_eq!(judge(&page, Duty::Helper, T + ms(71), T), Verdict::Open);
        assert_eq!(page.get(GUARD_BEAT), (T + ms(20)).ns(), "it does not speak for the guard");
    }
}
