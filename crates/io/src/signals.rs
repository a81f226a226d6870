//! What the world tells a process by signals, as values that one thread waits for. No handler runs
//! anywhere, so that no call of any other thread is interrupted.

use std::{io, mem, ptr};

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
    terminals: Vec<libc::c_int>,
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
        about.si_code == libc::SI_KERNEL || self.terminals.iter().any(|&fd| is_closed(fd))
    }
}

fn terminals() -> Vec<libc::c_int> {
    // SAFETY: takes a number; one that is not open is no terminal.
    (0..=2).filter(|&fd| unsafe { libc::isatty(fd) } == 1).collect()
}

/// Whether nobody is at the other end any more.
fn is_closed(fd: libc::c_int) -> bool {
    let mut asked = libc::pollfd { fd, events: 0, revents: 0 };
    // SAFETY: the pointer is to one entry that lives as long as the call, which does not wait.
    let told = unsafe { libc::poll(&raw mut asked, 1, 0) };
    told > 0 && asked.revents & (libc::POLLHUP | libc::POLLERR) != 0
}

/// Passes a signal on to a child.
pub fn send(child: u32, signal: Signal) {
    let number = match signal {
        Signal::Reload | Signal::Hangup => libc::SIGHUP,
        Signal::Stop => libc::SIGTERM,
        Signal::Dump => libc::SIGUSR1,
    };
    if let Ok(pid) = libc::pid_t::try_from(child) {
        // SAFETY: plain integers; a child that has ended keeps its number until it is waited for.
        unsafe { libc::kill(pid, number) };
    }
}
