//! What the world tells a process by signals, as values that one thread waits for. No handler runs
//! anywhere, so that no call of any other thread is interrupted.

use std::io::IsTerminal;
use std::os::fd::BorrowedFd;
use std::{io, mem, ptr};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, kill_process};

/// A signal that means something to weir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: read the policy again.
    Reload,
    /// SIGTERM or SIGINT: end.
    Stop,
    /// SIGUSR1: write all there is to the log.
    Dump,
    /// SIGHUP because the terminal was closed, not because somebody wants the policy read again.
    Hangup,
}

/// The signals that are waited for.
#[derive(Debug)]
pub struct Signals {
    set: libc::sigset_t,
    /// Descriptors that were a terminal when the process began.
    terminals: Vec<BorrowedFd<'static>>,
}

const OURS: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGTERM, libc::SIGINT, libc::SIGUSR1];

impl Signals {
    /// Keeps these signals from ending the process. To be called before any thread is made: the
    /// threads inherit it.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn block() -> io::Result<Signals> {
        // SAFETY: all zeroes is a valid signal set.
        let mut set: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: the pointer is to a set that lives long enough.
        unsafe { libc::sigemptyset(&raw mut set) };
        for signal in OURS {
            // SAFETY: as above, and the numbers are of signals that exist.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        // SAFETY: the set was made above; the old one is not asked for.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) } {
            0 => Ok(Signals { set, terminals: terminals() }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Waits for the next one.
    #[must_use]
    pub fn wait(&self) -> Signal {
        loop {
            // SAFETY: all zeroes is a valid siginfo.
            let mut about: libc::siginfo_t = unsafe { mem::zeroed() };
            // SAFETY: both pointers are to values that live as long as the call.
            match unsafe { libc::sigwaitinfo(&raw const self.set, &raw mut about) } {
                libc::SIGHUP if self.is_hangup(&about) => return Signal::Hangup,
                libc::SIGHUP => return Signal::Reload,
                libc::SIGUSR1 => return Signal::Dump,
                libc::SIGTERM | libc::SIGINT => return Signal::Stop,
                _ => {}
            }
        }
    }

    /// A terminal that is closed sends SIGHUP by the kernel, or by its shell when that ends.
    fn is_hangup(&self, about: &libc::siginfo_t) -> bool {
        about.si_code == libc::SI_KERNEL || self.terminals.iter().any(|fd| is_closed(*fd))
    }
}

fn terminals() -> Vec<BorrowedFd<'static>> {
    let all = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    all.into_iter().filter(IsTerminal::is_terminal).collect()
}

/// Whether nobody is at the other end any more.
fn is_closed(fd: BorrowedFd<'_>) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    // it does not wait
    let told = poll(&mut asked, Some(&Timespec::default()));
    told.is_ok() && asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Passes a signal on to a child.
pub fn send(child: u32, signal: Signal) {
    let number = match signal {
        Signal::Reload | Signal::Hangup => rustix::process::Signal::HUP,
        Signal::Stop => rustix::process::Signal::TERM,
        Signal::Dump => rustix::process::Signal::USR1,
    };
    if let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) {
        // a child that has ended keeps its number until it is waited for
        let _ = kill_process(pid, number);
    }
}
