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
}

/// The signals that are waited for.
#[derive(Debug)]
pub struct Signals(libc::sigset_t);

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
            0 => Ok(Signals(set)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Waits for the next one.
    #[must_use]
    pub fn wait(&self) -> Signal {
        loop {
            let mut signal = 0;
            // SAFETY: both pointers are to values that live as long as the call.
            let error = unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
            match signal {
                libc::SIGHUP if error == 0 => return Signal::Reload,
                libc::SIGUSR1 if error == 0 => return Signal::Dump,
                libc::SIGTERM | libc::SIGINT if error == 0 => return Signal::Stop,
                _ => {}
            }
        }
    }
}

/// Passes a signal on to a child.
pub fn send(child: u32, signal: Signal) {
    let number = match signal {
        Signal::Reload => libc::SIGHUP,
        Signal::Stop => libc::SIGTERM,
        Signal::Dump => libc::SIGUSR1,
    };
    if let Ok(pid) = libc::pid_t::try_from(child) {
        // SAFETY: plain integers; a child that has ended keeps its number until it is waited for.
        unsafe { libc::kill(pid, number) };
    }
}
